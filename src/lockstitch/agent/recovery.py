"""Which way out of a failure there is (pure): the seam between the turn machine and the ladder."""

from typing import Final

from ..providers.classify import recovery_of
from ..schema.failures import Failure, Recovery

MEDIA_RUNG: Final = "no_media"
"""First rung that sends no images: where a refusal about media goes at once."""


def disposition(failure: Failure) -> Recovery:
    """How to go on after ``failure``; ``none`` ends the turn. Wording has no part in it (P7)."""
    way = recovery_of(failure)
    # A provider or a policy may call a failure retryable that its code alone would not be.
    return "retry" if way == "none" and failure.retryable else way


def next_rung(rungs: tuple[str, ...], rung: str, *, to_media: bool = False) -> str | None:
    """The rung below ``rung``, each tried once; None at the end of the ladder."""
    at = rungs.index(rung) if rung in rungs else -1
    below = rungs[at + 1 :]
    if to_media and MEDIA_RUNG in below:
        return MEDIA_RUNG
    return below[0] if below else None

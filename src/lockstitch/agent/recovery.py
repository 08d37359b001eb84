"""Which way out of a failure there is (pure): the seam between the turn machine and the ladder."""

import re
from collections.abc import Sequence
from typing import Final

from ..providers.classify import recovery_of
from ..schema.failures import Failure, Recovery

MEDIA_RUNG: Final = "no_media"
"""First rung that sends no images: where a refusal about media goes at once."""
TEXT_RUNG: Final = "flattened"
"""First rung that sends calls as text: where a refusal of calls without tools goes at once."""
MAX_LOWERED: Final = 4
"""How often a step halves the limit of output that a provider found too high."""
_TOOL_NUMBER: Final = re.compile(r"\btools(?:\[|\.|/)(\d{1,4})\b")


def disposition(failure: Failure) -> Recovery:
    """How to go on after ``failure``; ``none`` ends the turn. Wording has no part in it (P7)."""
    way = recovery_of(failure)
    # A provider or a policy may call a failure retryable that its code alone would not be.
    return "retry" if way == "none" and failure.retryable else way


def refused_tool(failure: Failure, tools: Sequence[str], without: Sequence[str]) -> str | None:
    """The tool whose definition a provider refused, by its name or its number in the request's list.

    ``without`` are those left out already; numbers count what was sent. None: the refusal does not say.
    """
    said = failure.provider_message or ""
    sent = [name for name in tools if name not in without]
    if numbered := _TOOL_NUMBER.search(said):
        number = int(numbered.group(1))
        return sent[number] if number < len(sent) else None
    named = [name for name in sent if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)]
    return max(named, key=len) if named else None


def next_rung(rungs: tuple[str, ...], rung: str, failure: Failure) -> str | None:
    """The rung below ``rung`` that may help, each tried once; None at the end of the ladder.

    Wording only skips rungs that cannot help.
    """
    at = rungs.index(rung) if rung in rungs else -1
    below = rungs[at + 1 :]
    if failure.subkind == "calls_without_tools" and TEXT_RUNG in below:
        return TEXT_RUNG
    if disposition(failure) == "drop_media" and MEDIA_RUNG in below:
        return MEDIA_RUNG
    return below[0] if below else None

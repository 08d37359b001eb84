"""The window: how many tokens a model takes, as far as anybody said so or a refusal taught it."""

from typing import Final

from ..schema.events import RequestHeader
from .context import Context

THRESHOLD: Final = 0.8
"""Share of the window at which a history is compacted before the next request."""
MAX_OUTPUT_SHARE: Final = 0.5
"""Of the window that an explicit ``max_tokens`` may take away from the prompt."""


def window_of(context: Context, header: RequestHeader, known: int | None) -> int | None:
    """Tokens that a request to the header's model may have; None where nothing is known.

    ``known`` is what the profile or the caller says. What a refusal taught counts if it is less.
    """
    learned = context.windows.get((header.provider, header.model))
    if known is None:
        return learned
    return known if learned is None else min(known, learned)


def threshold_of(window: int, max_tokens: int | None) -> int:
    """Tokens of a prompt from which on the history is compacted first: room for the answer stays."""
    reserved = min(max_tokens or 0, int(window * MAX_OUTPUT_SHARE))
    return min(int(window * THRESHOLD), window - reserved)

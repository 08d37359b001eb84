"""Streamed text on its way into the log, few and large (pure).

The log keeps what was shown, so that a crash does not lose it, but not one record for each token: at most one
record per ``EVERY_MS`` or ``EVERY_BYTES``.
"""

from typing import Final, Literal

from ..schema.events import AssistantDelta

EVERY_MS: Final = 200
"""So much of what was shown a killed process may lose, and so often a page's live tail moves. A record is
twenty times as long as a token: with 50 ms a model of 30 tokens a second had hardly any to join."""
EVERY_BYTES: Final = 16 * 1024
RECORD_MAX_CHARS: Final = 1024 * 1024
"""Of one record: what a single read brought may be a whole answer, and readers take lines whole."""


class Coalescer:
    """Joins neighbouring deltas of one block until there is enough text, or somebody says it is time.

    It has no clock: whoever holds it calls ``flush`` no later than ``EVERY_MS`` after the first delta.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._bytes = 0
        self._index = 0
        self._block: Literal["text", "reasoning"] = "text"

    def add(self, index: int, block: Literal["text", "reasoning"], text: str) -> tuple[AssistantDelta, ...]:
        """What is to be logged now; usually nothing."""
        out: tuple[AssistantDelta, ...] = ()
        if index != self._index or block != self._block:
            out = self.flush()
            self._index, self._block = index, block
        for start in range(0, len(text), RECORD_MAX_CHARS):
            piece = text[start : start + RECORD_MAX_CHARS]
            self._parts.append(piece)
            self._bytes += len(piece) if piece.isascii() else len(piece.encode())
            if self._bytes >= EVERY_BYTES:
                out += self.flush()
        return out

    def flush(self) -> tuple[AssistantDelta, ...]:
        """Whatever is held back."""
        if not self._parts:
            return ()
        delta = AssistantDelta(index=self._index, block=self._block, text="".join(self._parts))
        self._parts.clear()
        self._bytes = 0
        return (delta,)

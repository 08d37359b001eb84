"""How large an answer is once it is written: a body within its limit can become more than a record holds.

Control characters take six bytes as JSON, numbers such as 1e15 eighteen, bytes that are no UTF-8 three,
whatever they took in the body; and some text is kept twice, as text and to be given back.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ..schema.chunks import BlockEnd, Chunk, ReasoningDelta, TextDelta

LARGE_BYTES: Final = 8 * 1024 * 1024
"""Of a body; a smaller one cannot become too large, however it is written."""
ANSWER_MAX: Final = 120 * 1024 * 1024
"""Bytes of an answer as JSON. With what stands around it, this fits into ``wire.jsonl.RECORD_MAX_BYTES``."""

_encode: Final = msgspec.json.Encoder().encode


class AnswerSize:
    """What one answer comes to as JSON, counted once its body is large."""

    def __init__(self) -> None:
        self._shown = 0
        """Of the deltas that were counted; those before take at most six bytes for each of LARGE_BYTES."""

    def first_beyond(self, chunks: Sequence[Chunk]) -> int | None:
        """Where the first of the next chunks is that makes the answer too large; None if none does.

        Deltas count together, those of earlier calls too: a record may hold many of them, and what a cut
        stream leaves holds all. So do ends of blocks, which must all be in ``chunks`` if any is.
        """
        blocks = 0
        for at, chunk in enumerate(chunks):
            if isinstance(chunk, BlockEnd):
                blocks += len(_encode(chunk))
            elif isinstance(chunk, TextDelta | ReasoningDelta):
                self._shown += len(_encode(chunk.text))
            else:
                continue
            if blocks > ANSWER_MAX or self._shown > ANSWER_MAX - 6 * LARGE_BYTES:
                return at
        return None

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


def first_beyond(chunks: Sequence[Chunk]) -> int | None:
    """Where the first chunk is that makes an answer too large, alone (deltas) or together (blocks); None if
    none does. All ends of blocks must be in ``chunks`` if any is.
    """
    size = 0
    for at, chunk in enumerate(chunks):
        if isinstance(chunk, BlockEnd):
            size += len(_encode(chunk))
            beyond = size > ANSWER_MAX
        elif isinstance(chunk, TextDelta | ReasoningDelta):
            beyond = len(chunk.text) > LARGE_BYTES and len(_encode(chunk)) > ANSWER_MAX
        else:
            continue
        if beyond:
            return at
    return None

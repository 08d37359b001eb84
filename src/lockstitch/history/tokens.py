"""Estimates of tokens, without a tokenizer: fast, pure, and high rather than low.

An estimate decides when to compact and what to bill for a cut stream; too low a figure overflows the window,
too high a one only compacts a little early.
"""

import math
import string
from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from ..schema.blocks import Base64Source, Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message, ToolSpec

LOWER: Final = 0.22
"""Tokens of a small letter. The figures are fitted to three vocabularies, so that no kind of text is counted
low on the whole: docs/decisions/0090-tokens-are-estimated-high.md has them."""
UPPER: Final = 0.7
DIGIT: Final = 0.6
SPACE: Final = 0.15
LINE_END: Final = 0.5
PUNCTUATION: Final = 0.7
DENSE: Final = 0.75
"""Of any character in base64, digests and the like, which have no words."""
DENSE_BELOW: Final = 0.05
"""Share of blanks and punctuation below which a stretch of text is such."""
LETTER_2_BYTES: Final = 0.8
"""Cyrillic, Greek, Hebrew, Arabic."""
CHAR_3_BYTES: Final = 1.15
"""Ideographs, kana, hangul: older vocabularies have about one token for each."""
CHAR_4_BYTES: Final = 3.0
"""Emoji."""
DENSE_FROM: Final = 40
"""Letters and digits without a blank; a long word is none yet."""
STRETCH_BYTES: Final = 4_096
"""Looked at by itself, so that a digest within prose counts as one."""
IMAGE_TOKENS: Final = 2_000
"""Above what a 1,500 x 1,000 image costs at any vendor (width x height / 750 at the dearest)."""
MESSAGE_TOKENS: Final = 4
"""Role and delimiters."""
CALL_TOKENS: Final = 12
"""Frame of one call or one result: id, type, name's delimiters."""

_LOWER: Final = string.ascii_lowercase.encode()
_UPPER: Final = string.ascii_uppercase.encode()
_DIGITS: Final = string.digits.encode()
_LINE_ENDS: Final = b"\n\r\t"
_FIRST_2: Final = bytes(range(0xC0, 0xE0))
"""First bytes of characters that take two in UTF-8, and so on."""
_FIRST_3: Final = bytes(range(0xE0, 0xF0))
_FIRST_4: Final = bytes(range(0xF0, 0x100))


def estimate(messages: Iterable[Message], *, system: str = "", tools: Iterable[ToolSpec] = ()) -> int:
    """Tokens of a request's prompt. Adds up over parts, so a sum may be kept and extended."""
    total = text_tokens(system)
    for tool in tools:
        total += CALL_TOKENS + text_tokens(tool.name) + text_tokens(tool.description)
        total += text_tokens(msgspec.json.encode(tool.parameters).decode())
    return total + sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    """Tokens of one message with its frame."""
    return MESSAGE_TOKENS + sum(map(block_tokens, message.content))


def block_tokens(block: Block) -> int:
    """Tokens of one block; encrypted reasoning and unknown blocks count by their size."""
    match block:
        case Text():
            return text_tokens(block.text)
        case Reasoning():
            return text_tokens(block.text) + text_tokens(block.redacted or "")
        case Image():
            return IMAGE_TOKENS
        case ToolCall():
            return CALL_TOKENS + text_tokens(block.name) + text_tokens(block.arguments)
        case ToolResult():
            return CALL_TOKENS + sum(map(block_tokens, block.content))
        case Opaque():
            return text_tokens(msgspec.json.encode(block.value).decode())
        case _:
            assert_never(block)


def text_tokens(text: str) -> int:
    """Tokens of one text, rounded up."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= STRETCH_BYTES:
        return math.ceil(_stretch_tokens(data))
    stretches = range(0, len(data), STRETCH_BYTES)
    return math.ceil(sum(_stretch_tokens(data[at : at + STRETCH_BYTES]) for at in stretches))


def _stretch_tokens(data: bytes) -> float:
    # Deleting a class of bytes and measuring what is left is the fastest count that Python has.
    size = len(data)
    rest = data.translate(None, _LOWER)
    lower = size - len(rest)
    upper = len(rest) - len(rest := rest.translate(None, _UPPER))
    digits = len(rest) - len(rest := rest.translate(None, _DIGITS))
    spaces = rest.count(b" ")
    ends = len(rest) - len(rest := rest.translate(None, _LINE_ENDS))
    others = 0.0
    punctuation = len(rest) - spaces
    if not rest.isascii():
        left = len(rest)
        two, three, four = (
            left - len(rest.translate(None, first)) for first in (_FIRST_2, _FIRST_3, _FIRST_4)
        )
        punctuation -= 2 * two + 3 * three + 4 * four
        others = two * LETTER_2_BYTES + three * CHAR_3_BYTES + four * CHAR_4_BYTES
    words = lower + upper + digits
    if spaces + ends + punctuation < words * DENSE_BELOW and words > DENSE_FROM:
        return words * DENSE + others
    return (
        lower * LOWER
        + upper * UPPER
        + digits * DIGIT
        + spaces * SPACE
        + ends * LINE_END
        + max(punctuation, 0) * PUNCTUATION
        + others
    )


def image_bytes(messages: Iterable[Message]) -> int:
    """Characters of base64 that the messages' images add to a request body."""
    total = 0
    for message in messages:
        for block in message.content:
            for part in block.content if isinstance(block, ToolResult) else (block,):
                if isinstance(part, Image) and isinstance(part.source, Base64Source):
                    total += len(part.source.data)
    return total

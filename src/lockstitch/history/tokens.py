"""Estimates of tokens, without a tokenizer: fast, pure, and high rather than low.

An estimate decides when to compact and what to bill for a cut stream; too low a figure overflows the window,
too high a one only compacts a little early.
"""

import functools
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
_CLASS_OF: Final = bytes.maketrans(
    string.ascii_uppercase.encode() + string.digits.encode() + b"\n\r\t" + bytes(range(0xC0, 0x100)),
    b"A" * 26 + b"0" * 10 + b"\n" * 3 + b"2" * 32 + b"3" * 16 + b"4" * 16,
)
"""Of each byte a name of its class. 2, 3, 4: the first byte of a character that takes so many in UTF-8, whose
later bytes, as punctuation, are left as they are."""


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
        # The frequent ones first: that a block is not of a type is dearer to know than that it is.
        case Text():
            return text_tokens(block.text)
        case ToolResult():
            return CALL_TOKENS + sum(map(block_tokens, block.content))
        case ToolCall():
            return CALL_TOKENS + _name_tokens(block.name) + text_tokens(block.arguments)
        case Reasoning():
            return text_tokens(block.text) + text_tokens(block.redacted or "")
        case Image():
            return IMAGE_TOKENS
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


@functools.lru_cache(maxsize=1_000)
def _name_tokens(name: str) -> int:
    """Of a tool's name, which comes again and again."""
    return text_tokens(name)


def _stretch_tokens(data: bytes) -> float:
    # One pass deletes the letters and names the class of every other byte; what is left is short to count in.
    classes = data.translate(_CLASS_OF, _LOWER)
    lower = len(data) - len(classes)
    upper, digits = classes.count(b"A"), classes.count(b"0")
    spaces, ends = classes.count(b" "), classes.count(b"\n")
    punctuation = len(classes) - upper - digits - spaces - ends
    others = 0.0
    if not data.isascii():
        two, three, four = classes.count(b"2"), classes.count(b"3"), classes.count(b"4")
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

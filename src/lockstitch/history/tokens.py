"""Estimates of tokens, without a tokenizer: fast, pure, and high rather than low.

An estimate decides when to compact and what to bill for a cut stream; too low a figure overflows the window,
too high a one only compacts a little early.
"""

import math
from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from ..schema.blocks import Base64Source, Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message, ToolSpec

ASCII_CHARS_PER_TOKEN: Final = 3.5
"""English prose has about 4.2 and source code about 3.3 with byte-pair vocabularies of 100,000 entries."""
OTHER_BYTES_PER_TOKEN: Final = 2.0
"""UTF-8 bytes outside ASCII: a Chinese character counts 1.5, a Cyrillic letter 1, an emoji 2."""
IMAGE_TOKENS: Final = 2_000
"""Above what a 1,500 x 1,000 image costs at any vendor (width x height / 750 at the dearest)."""
MESSAGE_TOKENS: Final = 4
"""Role and delimiters."""
CALL_TOKENS: Final = 12
"""Frame of one call or one result: id, type, name's delimiters."""


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
    if text.isascii():
        return math.ceil(len(text) / ASCII_CHARS_PER_TOKEN)
    ascii_chars = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_chars
    return math.ceil(ascii_chars / ASCII_CHARS_PER_TOKEN + others / OTHER_BYTES_PER_TOKEN)


def image_bytes(messages: Iterable[Message]) -> int:
    """Characters of base64 that the messages' images add to a request body."""
    total = 0
    for message in messages:
        for block in message.content:
            for part in block.content if isinstance(block, ToolResult) else (block,):
                if isinstance(part, Image) and isinstance(part.source, Base64Source):
                    total += len(part.source.data)
    return total

"""Shortening: a message with head and tail of its long texts, and a mark of what lies between."""

from typing import Final

import msgspec

from ..schema.blocks import Block, Image, Text, ToolResult
from ..schema.messages import Message

NO_IMAGE: Final = "[image omitted: pruned]"


def shortened_result(message: Message, head_chars: int, tail_chars: int) -> Message:
    """The message with each long text of its results cut to head and tail; images of results go.

    Shortening again with the same lengths changes nothing.
    """
    content: list[Block] = []
    for block in message.content:
        if not isinstance(block, ToolResult):
            content.append(block)
            continue
        parts = tuple(
            Text(text=NO_IMAGE) if isinstance(part, Image) else _cut_block(part, head_chars, tail_chars)
            for part in block.content
        )
        content.append(msgspec.structs.replace(block, content=parts))
    return msgspec.structs.replace(message, content=tuple(content))


def shortened_prompt(message: Message, head_chars: int, tail_chars: int) -> Message:
    """The user's message as one text, cut to head and tail; images and foreign blocks go.

    One text, so that its length is bounded however many blocks the message has.
    """
    said = [
        block.text if isinstance(block, Text) else f"[{_name(block)} omitted]" for block in message.content
    ]
    text = cut("\n".join(said), head_chars, tail_chars)
    return msgspec.structs.replace(message, content=(Text(text=text),))


def cut(text: str, head_chars: int, tail_chars: int, word: str = "pruned") -> str:
    """Head and tail of a text that is longer than both, with a mark that tells how much is gone.

    The text itself if the mark would make it no shorter.
    """
    left_out = len(text) - head_chars - tail_chars
    if left_out <= 0:
        return text
    tail = text[-tail_chars:] if tail_chars else ""
    short = f"{text[:head_chars]}\n[{left_out} characters {word}]\n{tail}"
    return short if len(short) < len(text) else text


def _cut_block(part: Text, head_chars: int, tail_chars: int) -> Text:
    text = cut(part.text, head_chars, tail_chars)
    return part if text is part.text else msgspec.structs.replace(part, text=text)


def _name(block: Block) -> str:
    return "image" if isinstance(block, Image) else "block"

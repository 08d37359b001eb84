"""Streams of openai-chat for tests, and what a decoded answer says in comparable form."""

import json
from collections.abc import Sequence
from typing import Any

from lockstitch.history.decode import Decoded
from lockstitch.schema.blocks import Reasoning, Text, ToolCall

DONE = "[DONE]"


def delta(content: Any = None, **fields: Any) -> dict[str, Any]:
    """A chunk whose only choice holds this delta; ``finish`` and ``usage`` go where they belong."""
    finish = fields.pop("finish", None)
    usage = fields.pop("usage", None)
    choice = {"index": 0, "delta": fields if content is None else {"content": content, **fields}}
    chunk: dict[str, Any] = {"choices": [{**choice, "finish_reason": finish}]}
    return chunk if usage is None else {**chunk, "usage": usage}


def entry(index: Any = 0, id: Any = "", name: Any = "", arguments: Any = "") -> dict[str, Any]:
    """One entry of ``tool_calls``; a field that is ``...`` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    outer = {key: value for key, value in (("index", index), ("id", id)) if value is not ...}
    return {**outer, "type": "function", "function": function}


def call(index: Any = 0, id: Any = "", name: Any = "", arguments: Any = "") -> dict[str, Any]:
    """A chunk with one entry of ``tool_calls``."""
    return delta(tool_calls=[entry(index, id, name, arguments)])


def end(reason: Any = "stop") -> list[Any]:
    """The finish chunk and the sentinel."""
    return [delta(finish=reason), DONE]


def body(events: Sequence[Any]) -> bytes:
    """Events as a body; text and bytes are data as they are."""
    return b"".join(frame(event) for event in events)


def frame(event: Any) -> bytes:
    if isinstance(event, bytes):
        data = event
    else:
        data = (event if isinstance(event, str) else json.dumps(event)).encode()
    return b"data: " + data + b"\n\n"


def text_of(decoded: Decoded) -> str:
    return "".join(block.text for block in decoded.content if isinstance(block, Text))


def reasoning_of(decoded: Decoded) -> str:
    return "".join(block.text for block in decoded.content if isinstance(block, Reasoning))


def calls_of(decoded: Decoded) -> list[tuple[str, ...]]:
    """Id, name and arguments of each call, and why it is invalid if it is."""
    return [
        (block.id, block.name, block.arguments, *((block.invalid,) if block.invalid else ()))
        for block in decoded.content
        if isinstance(block, ToolCall)
    ]


def ending_of(decoded: Decoded) -> str:
    """The finish reason, or the code of the failure."""
    failure = decoded.finish.failure
    return decoded.finish.reason if failure is None else failure.code


def notes_of(decoded: Decoded) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for note in decoded.notes:
        kinds[note.kind] = kinds.get(note.kind, 0) + note.count
    return kinds

"""One decoded answer, and the JSON shapes in which answers and chunks are printed."""

from typing import Any

import msgspec

from ..schema.blocks import Block
from ..schema.chunks import Chunk, Finish, ToolCallDelta, UsageChunk
from ..schema.failures import Failure
from ..schema.notes import Note
from ..schema.usage import Usage


class Decoded(msgspec.Struct, frozen=True):
    """One answer, decoded. After a failure ``content`` is the text and reasoning before it, without calls."""

    content: tuple[Block, ...]
    finish: Finish
    usage: Usage | None = None
    notes: tuple[Note, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values in the shape that ``lockstitch wire decode`` prints (docs/decode.md)."""
        return {
            "content": msgspec.to_builtins(self.content),
            "finish": {"reason": self.finish.reason, "failure": failure_json(self.finish.failure)},
            "usage": None if self.usage is None else usage_json(self.usage),
            "notes": msgspec.to_builtins(self.notes),
        }


def chunk_json(chunk: Chunk) -> dict[str, Any]:
    """Plain values of one chunk, in the shape that ``lockstitch wire decode --chunks`` prints."""
    plain: dict[str, Any] = msgspec.to_builtins(chunk)
    if isinstance(chunk, Finish):
        plain["failure"] = failure_json(chunk.failure)
    elif isinstance(chunk, UsageChunk):
        plain["usage"] = usage_json(chunk.usage)
    elif isinstance(chunk, ToolCallDelta):
        plain["arguments"] = chunk.arguments
    return plain


def failure_json(failure: Failure | None) -> dict[str, Any] | None:
    """A failure with ``status`` also where it is null; other fields only where they are known."""
    if failure is None:
        return None
    return {**msgspec.to_builtins(failure), "status": failure.status}


def usage_json(usage: Usage) -> dict[str, Any]:
    """Counts, the two that are always known also where they are 0."""
    always = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {**always, **msgspec.to_builtins(usage)}

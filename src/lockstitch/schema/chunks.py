"""Chunks: what one model response is made of, in the order of the grammar.

Indices count up from 0 in order of opening; a delta or an end needs an open block of its kind; at most one
``usage``; nothing follows ``finish``; blocks may stay open only under ``error`` or ``aborted``. All ends of
blocks come together behind the last delta, so a response that is refused at its end has none.
"""

from typing import Literal, TypeAlias

import msgspec

from .blocks import Block, Replay
from .failures import Failure
from .usage import Usage

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "error", "aborted"]
BlockKind: TypeAlias = Literal["text", "reasoning", "image", "tool_call", "opaque"]


class _Chunk(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", gc=False):
    pass


class BlockStart(_Chunk, tag="block_start", frozen=True):
    index: int
    kind: BlockKind


class TextDelta(_Chunk, tag="text_delta", frozen=True):
    index: int
    text: str


class ReasoningDelta(_Chunk, tag="reasoning_delta", frozen=True):
    index: int
    text: str


class ToolCallDelta(_Chunk, tag="tool_call_delta", frozen=True):
    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None


class BlockEnd(msgspec.Struct, frozen=True, tag="block_end", tag_field="type"):
    index: int
    block: Block
    """The complete block: the first end of an index is authoritative over its deltas."""


class UsageChunk(_Chunk, tag="usage", frozen=True):
    usage: Usage


class Finish(msgspec.Struct, frozen=True, omit_defaults=True, tag="finish", tag_field="type"):
    """How a model call ended: the last chunk of every stream, exactly once."""

    reason: FinishReason
    failure: Failure | None = None
    """Set exactly when reason is ``error`` or ``aborted``."""
    replay: Replay | None = None


Chunk: TypeAlias = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish

"""Chunks to blocks, and the grammar that every stream of chunks obeys."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from ..schema.blocks import Block, Reasoning, Text, ToolCall
from ..schema.chunks import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from ..schema.usage import Usage
from ..wire.pieces import Pieces
from ..wire.visible import is_visible


class GrammarError(AssertionError):
    """A producer of chunks broke the grammar: a bug of ours, never of a provider."""


@dataclass(slots=True)
class _Partial:
    """One block while it streams."""

    kind: BlockKind
    pieces: Pieces = field(default_factory=Pieces)
    id: str | None = None
    name: str | None = None
    block: Block | None = None
    """Given by the first end of the block, and final then."""


class Assembler:
    """Folds chunks into blocks, in the order in which their indices were first seen.

    Lenient, so that it takes chunks of any producer: a delta opens the block it belongs to, the first end of
    a block is authoritative, and what cannot belong anywhere is ignored and counted.
    """

    def __init__(self) -> None:
        self.finish: Finish | None = None
        """The first Finish; None as long as the stream has not ended."""
        self.usage: Usage | None = None
        self.ignored = 0
        """Chunks that changed nothing: repeats, stragglers, deltas of another kind."""
        self._partials: dict[int, _Partial] = {}

    def add(self, chunk: Chunk) -> None:
        if self.finish is not None:
            self.ignored += 1
            return
        match chunk:
            case TextDelta():
                self._extend(chunk.index, "text", chunk.text)
            case ReasoningDelta():
                self._extend(chunk.index, "reasoning", chunk.text)
            case ToolCallDelta():
                partial = self._extend(chunk.index, "tool_call", chunk.arguments)
                if partial is not None:
                    partial.id = partial.id or chunk.id
                    partial.name = partial.name or chunk.name
            case BlockStart():
                if chunk.index in self._partials:
                    self.ignored += 1
                else:
                    self._partials[chunk.index] = _Partial(chunk.kind)
            case BlockEnd():
                self._end(chunk)
            case UsageChunk():
                self.usage = chunk.usage
            case Finish():
                self.finish = chunk
            case _:
                assert_never(chunk)

    def add_all(self, chunks: Iterable[Chunk]) -> None:
        """``add`` for each. More of a block that is open, as nearly every chunk is, takes the short way."""
        partials, last = self._partials, None
        for chunk in chunks:
            if type(chunk) is TextDelta:
                partial = partials.get(chunk.index)
                if (
                    partial is not None
                    and partial.kind == "text"
                    and partial.block is None
                    and self.finish is None
                ):
                    partial.pieces.latest.append(chunk.text)
                    if partial is not last:
                        last = _turned_to(partial, last)
                    continue
            elif type(chunk) is ToolCallDelta and chunk.id is None and chunk.name is None:
                partial = partials.get(chunk.index)
                if (
                    partial is not None
                    and partial.kind == "tool_call"
                    and partial.block is None is self.finish
                ):
                    partial.pieces.latest.append(chunk.arguments)
                    if partial is not last:
                        last = _turned_to(partial, last)
                    continue
            self.add(chunk)
        if last is not None:
            last.pieces.settle()

    @property
    def argument_chars(self) -> int:
        """Characters of call arguments in the deltas so far."""
        calls = (partial for partial in self._partials.values() if partial.kind == "tool_call")
        return sum(len(call.pieces.text()) for call in calls)

    def blocks(self) -> tuple[Block, ...]:
        """The blocks so far. A call that never got a name is none; under ``length`` the last call is
        truncated.
        """
        built = [(partial, _build(partial)) for partial in self._partials.values()]
        blocks = [block for _, block in built if block is not None]
        if self.finish is not None and self.finish.reason == "length" and built:
            last, block = built[-1]
            if isinstance(block, ToolCall) and last.block is None:
                blocks[-1] = ToolCall(block.id, block.name, block.arguments, invalid="truncated")
        return tuple(blocks)

    def interrupted(self) -> tuple[Block, ...]:
        """What to keep of a stream that failed or was cancelled: visible text and reasoning, no calls."""
        return tuple(
            block for block in self.blocks() if isinstance(block, Text | Reasoning) and is_visible(block.text)
        )

    def _extend(self, index: int, kind: BlockKind, piece: str) -> _Partial | None:
        partial = self._partials.get(index)
        if partial is None:
            partial = self._partials[index] = _Partial(kind)
        elif partial.kind != kind or partial.block is not None:
            self.ignored += 1
            return None
        if piece:
            partial.pieces.latest.append(piece)
            partial.pieces.settle()
        return partial

    def _end(self, chunk: BlockEnd) -> None:
        partial = self._partials.setdefault(chunk.index, _Partial(_kind_of(chunk.block)))
        if partial.block is None:
            partial.block = chunk.block
        else:
            self.ignored += 1


def _turned_to(partial: _Partial, last: _Partial | None) -> _Partial:
    """The block written to from here on; the one before has its pieces joined."""
    if last is not None:
        last.pieces.settle()
    return partial


class Grammar:
    """Checks a stream of chunks, one by one. See ``schema.chunks`` for the rules."""

    def __init__(self) -> None:
        self._open: dict[int, BlockKind] = {}
        self._next = 0
        self._used = False
        self._finished = False

    def check_all(self, chunks: Iterable[Chunk]) -> None:
        """``check`` for each. More of a block that is open, as nearly every chunk is, takes the short way."""
        opened = self._open
        for chunk in chunks:
            if type(chunk) is TextDelta:
                allowed = opened.get(chunk.index) == "text"
            elif type(chunk) is ToolCallDelta:
                allowed = opened.get(chunk.index) == "tool_call"
            else:
                allowed = False
            if not allowed or self._finished:
                self.check(chunk)

    def check(self, chunk: Chunk) -> None:
        """Raises GrammarError if this chunk may not come here."""
        if self._finished:
            raise GrammarError(f"{type(chunk).__name__} after Finish")
        match chunk:
            case TextDelta():
                self._expect(chunk.index, "text")
            case ReasoningDelta():
                self._expect(chunk.index, "reasoning")
            case ToolCallDelta():
                self._expect(chunk.index, "tool_call")
            case BlockStart():
                if chunk.index != self._next:
                    raise GrammarError(f"block {chunk.index} opened where {self._next} is next")
                self._next += 1
                self._open[chunk.index] = chunk.kind
            case BlockEnd():
                self._expect(chunk.index, _kind_of(chunk.block))
                del self._open[chunk.index]
            case UsageChunk():
                if self._used:
                    raise GrammarError("a second usage")
                self._used = True
            case Finish():
                self._finish(chunk)
            case _:
                assert_never(chunk)

    def _expect(self, index: int, kind: BlockKind) -> None:
        if self._open.get(index) != kind:
            raise GrammarError(f"block {index} is not an open {kind}: {self._open.get(index)}")

    def _finish(self, chunk: Finish) -> None:
        failed = chunk.reason in ("error", "aborted")
        if self._open and not failed:
            raise GrammarError(f"finish {chunk.reason} with open blocks {sorted(self._open)}")
        if failed != (chunk.failure is not None):
            raise GrammarError(f"finish {chunk.reason} with failure {chunk.failure!r}")
        self._finished = True


def _build(partial: _Partial) -> Block | None:
    if partial.block is not None:
        return partial.block
    text = partial.pieces.text()
    if partial.kind == "text":
        return Text(text)
    if partial.kind == "reasoning":
        return Reasoning(text)
    if partial.kind == "tool_call" and partial.name and partial.id:
        return ToolCall(partial.id, partial.name, text)
    return None


def _kind_of(block: Block) -> BlockKind:
    if isinstance(block, Text):
        return "text"
    if isinstance(block, Reasoning):
        return "reasoning"
    if isinstance(block, ToolCall):
        return "tool_call"
    return "opaque" if block.__struct_config__.tag == "opaque" else "image"

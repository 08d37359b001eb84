"""The blocks of one response while they stream: numbers them, and writes their chunks.

A block is opened by the first thing that belongs to it and keeps its number; blocks of one response are open
side by side and all end together. Here nothing is decided: what is text, whose arguments these are and how
the response ends is the builder's business.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ..schema.blocks import Block, Image, Opaque, Reasoning, Replay, Text, ToolCall
from ..schema.chunks import BlockStart, Chunk, ReasoningDelta, TextDelta, ToolCallDelta
from ..wire.pieces import Pieces
from ..wire.visible import is_visible
from .call_slots import Call

BLOCKS_MAX: Final = 10_000
"""Of one response. Answers with a citation in each block have hundreds; what has more is a model, or a
gateway, that goes round in circles, and each call would be run and each block kept."""

TextKind: TypeAlias = Literal["text", "reasoning"]


@dataclass(slots=True)
class TextSlot:
    """One text or reasoning block."""

    index: int
    kind: TextKind
    pieces: Pieces = field(default_factory=Pieces)
    signature: str | None = None
    redacted: str | None = None
    extra: Mapping[str, Any] | None = None
    replay: Replay | None = None

    def block(self) -> Block:
        text = self.pieces.text()
        if self.kind == "text":
            return Text(text, extra=self.extra, replay=self.replay)
        return Reasoning(
            text, signature=self.signature, redacted=self.redacted, extra=self.extra, replay=self.replay
        )


@dataclass(slots=True)
class WholeSlot:
    """A block that came in one piece."""

    index: int
    whole: Image | Opaque


Slot: TypeAlias = TextSlot | WholeSlot | Call


class BlockWriter:
    """Collects blocks in order of opening, and their chunks until ``take``."""

    def __init__(self, overflow: Callable[[], None]) -> None:
        """``overflow`` is called instead of opening a block beyond ``BLOCKS_MAX``, and has to ``close``."""
        self._overflow = overflow
        self.slots: list[Slot] = []
        self.visible = False
        """Something was given out that a person would take for an answer."""
        self.text_part: Hashable = None
        """The part of the text block written to last."""
        self._text_slot: TextSlot | None = None
        self._call: Call | None = None
        """The call that arguments were given out of last."""
        self._by_part: dict[tuple[TextKind, Hashable], TextSlot] = {}
        self._out: list[Chunk] = []
        self._last: list[Chunk] | None = None
        """The chunks up to the end, once that was reached."""

    def take(self) -> list[Chunk]:
        """The chunks since the last ``take``."""
        if self._text_slot is not None:
            self._text_slot.pieces.settle()
        if self._call is not None:
            self._call.settle()
        out, self._out = self._out, []
        if self._last is not None:
            out, self._last = self._last, []
        return out

    def close(self) -> None:
        """No chunk counts that is written from here on."""
        if self._last is None:
            self._last, self._out = self._out, []

    def write(self, chunk: Chunk) -> None:
        self._out.append(chunk)

    def text(self, piece: str, part: Hashable) -> None:
        """More text of a part; an empty piece opens nothing."""
        if not piece:
            return
        slot = self._text_slot
        if slot is None or part != self.text_part:
            if slot is not None:
                slot.pieces.settle()
            slot = self._text_slot = self.open("text", part)
            self.text_part = part
        slot.pieces.latest.append(piece)
        if not self.visible:
            self.visible = is_visible(piece)
        self._out.append(TextDelta(slot.index, piece))

    def reasoning(self, piece: str, part: Hashable) -> None:
        """More reasoning of a part; an empty piece opens nothing."""
        if piece:
            slot = self.open("reasoning", part)
            slot.pieces.latest.append(piece)
            slot.pieces.settle()
            self._out.append(ReasoningDelta(slot.index, piece))

    def open(self, kind: TextKind, part: Hashable) -> TextSlot:
        """The text or reasoning block of a part, opened if it is new."""
        slot = self._by_part.get((kind, part))
        if slot is None:
            slot = self._by_part[(kind, part)] = TextSlot(len(self.slots), kind)
            self._add(slot, kind)
        return slot

    def opened(self, kind: TextKind, part: Hashable) -> TextSlot | None:
        """The block of a part, if there is one."""
        return self._by_part.get((kind, part))

    def whole(self, block: Image | Opaque, *, visible: bool) -> None:
        """A block in one piece."""
        self._add(WholeSlot(len(self.slots), block), "image" if isinstance(block, Image) else "opaque")
        self.visible = self.visible or visible

    def call(self, call: Call) -> None:
        """Opens the block of a call, whose index must be the next one."""
        self._add(call, "tool_call")

    def arguments(self, call: Call, piece: str) -> None:
        """Gives out one piece of arguments that was just added to a call, if its identity is given out."""
        if call.shown_name and call.shown_id:
            call.shown_parts += 1
            if call is not self._call:
                self._switch(call)
            self._out.append(ToolCallDelta(call.index, piece))
        else:
            self.settled(call)

    def _switch(self, call: Call) -> None:
        if self._call is not None:
            self._call.settle()
        self._call = call

    def settled(self, call: Call, *, ended: bool = False) -> None:
        """Gives out what is settled of a call. Its name is settled once arguments started, a fragment's only
        when it ended.
        """
        if call.name is None or not (ended or (call.parts and not call.fragment)):
            return
        pieces = call.parts[call.shown_parts :]
        identified = call.id is not None and not call.shown_id
        if not pieces and not identified and call.shown_name:
            return
        self._out.append(
            ToolCallDelta(
                call.index,
                "".join(pieces),
                id=call.id if identified else None,
                name=None if call.shown_name else call.name,
            )
        )
        call.shown_parts = len(call.parts)
        if call is not self._call:
            self._switch(call)
        call.shown_name = True
        call.shown_id = call.shown_id or identified

    def texts(self) -> Iterator[str]:
        """The text of each text or reasoning block so far."""
        return (slot.pieces.text() for slot in self.slots if isinstance(slot, TextSlot))

    def _add(self, slot: Slot, kind: Literal["text", "reasoning", "image", "opaque", "tool_call"]) -> None:
        if len(self.slots) >= BLOCKS_MAX:
            self._overflow()
            return
        self._out.append(BlockStart(len(self.slots), kind))
        self.slots.append(slot)


def finished_block(slot: Slot, invalid: str | None) -> Block:
    """The complete block; ``invalid`` says why a call must not be run, and is for calls only."""
    if isinstance(slot, TextSlot):
        return slot.block()
    if isinstance(slot, WholeSlot):
        return slot.whole
    assert slot.id is not None and slot.name is not None
    return ToolCall(slot.id, slot.name, slot.arguments, invalid=invalid, extra=slot.extra, replay=slot.replay)

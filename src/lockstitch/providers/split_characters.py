"""Characters whose two UTF-16 halves came in different deltas, put together; and no half ever given out.

Gateways that cut text by UTF-16 units (JavaScript, Java, C#) end one delta with ``\\ud83d`` and begin the
next with ``\\ude00``. A response in which a frame holds a half is mended here, where its chunks leave; every
other one never comes here.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..schema.chunks import BlockEnd, BlockStart, Chunk, ReasoningDelta, TextDelta, ToolCallDelta
from ..schema.notes import Note
from ..wire.strict_json import REPLACEMENT, well_formed, well_formed_value
from .note_book import NoteBook

_Delta = TextDelta | ReasoningDelta | ToolCallDelta
_SAID_IN_DELTAS: Final = ("text", "arguments")
"""Fields of a block that repeat its deltas, whose halves were noted there."""


class SplitCharacters:
    """Mends the chunks of one response. The deltas of a block add up to the same for every split of it."""

    def __init__(self) -> None:
        self._notebook = NoteBook()
        self._held: dict[int, _Delta] = {}
        """By block, a delta that is the first half of a character."""

    @property
    def notes(self) -> list[Note]:
        """In an order of their own: what is noted when depends on how much was read at once."""
        return sorted(self._notebook.notes(), key=lambda note: note.kind)

    def mended(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks with whole characters only. Half of one is held back until more of its block comes; in
        text or reasoning only as long as nothing else is said, so that no block is shown to go on behind the
        next one.
        """
        out: list[Chunk] = []
        for chunk in chunks:
            match chunk:
                case TextDelta() | ReasoningDelta():
                    out += self._left_behind(chunk.index)
                    if text := self._joined(chunk, chunk.text):
                        out.append(msgspec.structs.replace(chunk, text=text))
                case ToolCallDelta():
                    out += self._left_behind(chunk.index)
                    arguments = self._joined(chunk, chunk.arguments)
                    if arguments or chunk.id or chunk.name:
                        out.append(msgspec.structs.replace(chunk, arguments=arguments))
                case BlockStart():
                    out += self._left_behind(chunk.index)
                    out.append(chunk)
                case _:
                    out += self._given_up(list(self._held))
                    out.append(self._clean(chunk))
        return out

    def clean(self, text: str | None) -> str | None:
        """An id or a name, which cannot go on in a later delta."""
        formed = text if text is None else well_formed(text)
        if formed != text:
            self._notebook.add("lone_surrogate")
        return formed

    def _joined(self, delta: _Delta, piece: str) -> str:
        held = self._held.pop(delta.index, None)
        if held is not None:
            whole = _piece(held) + piece
            if "\udc00" <= piece[:1] <= "\udfff":
                self._notebook.add("split_character")
        else:
            whole = piece
        if "\ud800" <= whole[-1:] <= "\udbff":
            self._held[delta.index] = _with(delta, whole[-1])
            whole = whole[:-1]
        formed = well_formed(whole)
        if formed.count(REPLACEMENT) > whole.count(REPLACEMENT):
            self._notebook.add("lone_surrogate")
        return formed

    def _left_behind(self, index: int) -> list[Chunk]:
        """What is held back of text and reasoning when another block goes on. Calls do take turns."""
        return self._given_up(
            [
                other
                for other, delta in self._held.items()
                if other != index and not isinstance(delta, ToolCallDelta)
            ]
        )

    def _given_up(self, blocks: list[int]) -> list[Chunk]:
        for _ in blocks:
            self._notebook.add("lone_surrogate")
        return [_with(self._held.pop(block), REPLACEMENT) for block in blocks]

    def _clean(self, chunk: Chunk) -> Chunk:
        whole = chunk.block if isinstance(chunk, BlockEnd) else chunk
        formed = _formed(whole)
        if any(
            getattr(formed, name) != getattr(whole, name)
            for name in whole.__struct_fields__
            if name not in _SAID_IN_DELTAS
        ):
            self._notebook.add("lone_surrogate")
        return BlockEnd(chunk.index, formed) if isinstance(chunk, BlockEnd) else formed


def rest_of(whole: str, said: str) -> str | None:
    """What a text adds to its beginning, which may end within a character; None if it begins otherwise."""
    if whole.startswith(said):
        return whole[len(said) :]
    units, before = (text.encode("utf-16-le", "surrogatepass") for text in (whole, said))
    if not units.startswith(before):
        return None
    return units[len(before) :].decode("utf-16-le", "surrogatepass")


def _piece(delta: _Delta) -> str:
    return delta.arguments if isinstance(delta, ToolCallDelta) else delta.text


def _with(delta: _Delta, piece: str) -> _Delta:
    if isinstance(delta, ToolCallDelta):
        return ToolCallDelta(delta.index, piece)
    return msgspec.structs.replace(delta, text=piece)


def _formed(value: Any) -> Any:
    """A value of any type in a chunk, with whole characters only."""
    if isinstance(value, msgspec.Struct):
        fields = {name: _formed(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, Mapping):
        return {well_formed(str(key)): _formed(item) for key, item in value.items()}
    return [_formed(item) for item in value] if isinstance(value, list) else well_formed_value(value)

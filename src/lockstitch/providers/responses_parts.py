"""The parts of an item of openai-responses: what streamed of each, and to which a text given whole belongs.

Gateways number parts by the item, from where they like, or differently from event to event; vLLM goes on
counting through the whole response (https://github.com/vllm-project/vllm/pull/31761, read 2026-12-01). So a
part that is given again is found by its number if that part begins so, and else by what it says.
"""

from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from .split_characters import rest_of

Completed: TypeAlias = tuple[Hashable, str | None]
"""A part's key, and what its whole text adds to what streamed; None if that begins otherwise."""


@dataclass(slots=True)
class _Part:
    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    whole: bool = False
    """It was given whole."""

    def rest(self, whole: str) -> str | None:
        """What ``whole`` adds to it; None if it begins otherwise. Costs no more than ``whole`` is long."""
        if self.chars > 2 * len(whole):  # two halves of a character may stand for one
            return None
        return rest_of(whole, "".join(self.pieces))


class Parts:
    """The parts of one item that text came for, in order of their first text."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, _Part] = {}
        self._keys: dict[Hashable, Hashable] = {}
        """Keys of the numbers that stand for a part of another number."""

    def add(self, number: Hashable, piece: str) -> Hashable:
        """The key of the part that has one more piece."""
        key = self._keys.get(number, number)
        self._append(key, piece)
        return key

    def complete(self, number: Hashable, whole: str) -> Completed:
        """A part that is given whole under this number. If none came under it, that is the part which still
        streams, if that begins so.
        """
        key = self._keys.get(number, number)
        if key not in self._parts and self._parts and whole:
            last, part = next(reversed(self._parts.items()))
            if not part.whole and part.rest(whole) is not None:
                key = self._keys[number] = last
        return self._completed(key, whole)

    def complete_all(self, wholes: Sequence[str]) -> list[Completed]:
        """All parts of the item, given whole: known by their place if they begin so, then by their order;
        what streamed otherwise stays in the place of what is left; the others are new.
        """
        return [self._completed(key, whole) for key, whole in zip(self._keys_of(wholes), wholes, strict=True)]

    def _keys_of(self, wholes: Sequence[str]) -> list[Hashable]:
        found: dict[int, Hashable] = {}
        taken: set[Hashable] = set()
        for position, whole in enumerate(wholes):
            key = self._keys.get(position, position)
            if key in self._parts and key not in taken and self._parts[key].rest(whole) is not None:
                found[position] = key
                taken.add(key)
        following = self._others(taken)
        other = next(following, None)
        for position, whole in enumerate(wholes):
            if position not in found and other is not None and self._parts[other].rest(whole) is not None:
                found[position] = other
                other = next(following, None)
        following = self._others({*found.values()})
        for position, whole in enumerate(wholes):
            if position not in found:
                new = ("whole", position) if position in self._parts or position in self._keys else position
                found[position] = next(following, new) if whole else new
        return [found[position] for position in range(len(wholes))]

    def _completed(self, key: Hashable, whole: str) -> Completed:
        part = self._parts.get(key)
        rest = whole if part is None or not whole else part.rest(whole)
        if rest:
            self._append(key, rest)
        if whole:
            self._parts[key].whole = True
        return key, rest

    def _append(self, key: Hashable, piece: str) -> None:
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part()
        part.pieces.append(piece)
        part.chars += len(piece)

    def _others(self, taken: Set[Hashable]) -> Iterator[Hashable]:
        return (key for key in self._parts if key not in taken)

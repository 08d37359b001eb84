"""Oddities of one response, counted by kind and detail."""

from typing import Final

from ..schema.notes import Note
from ..wire.strict_json import well_formed

_DISTINCT_MAX: Final = 64
_DETAIL_MAX: Final = 300
_READ_MAX: Final = 4 * _DETAIL_MAX
"""Characters of a detail that are looked at: a provider may write megabytes into it."""


class NoteBook:
    """Collects notes; repeats are counted, and past a limit only the kinds are kept apart."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, kind: str, detail: str = "", count: int = 1) -> None:
        key = (kind, " ".join(well_formed(detail[:_READ_MAX]).split())[:_DETAIL_MAX])
        if key not in self._counts and len(self._counts) >= _DISTINCT_MAX:
            key = (kind, "")
        self._counts[key] = self._counts.get(key, 0) + count

    def notes(self) -> list[Note]:
        return [Note(kind, detail, count) for (kind, detail), count in self._counts.items()]

"""Oddities of one response, counted by kind and detail."""

from typing import Final

from ..schema.notes import Note

_DISTINCT_MAX: Final = 64
_DETAIL_MAX: Final = 300


class NoteBook:
    """Collects notes; repeats are counted, and past a limit only the kinds are kept apart."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, kind: str, detail: str = "", count: int = 1) -> None:
        key = (kind, " ".join(detail.split())[:_DETAIL_MAX])
        if key not in self._counts and len(self._counts) >= _DISTINCT_MAX:
            key = (kind, "")
        self._counts[key] = self._counts.get(key, 0) + count

    def notes(self) -> list[Note]:
        return [Note(kind, detail, count) for (kind, detail), count in self._counts.items()]

"""A log written anew: every whole record as it was, and a note in the place of each one that is lost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from lockstitch.schema.events import (
    Body,
    Event,
    NoteEvent,
    SessionRepaired,
    SessionStart,
    TurnEnd,
    TurnStart,
    Unknown,
)
from lockstitch.wire.jsonl import encode

from . import migration
from .scan import Damage, Scanner

LOST_NOTE: Final = "lockstitch.lost"
"""Name of the note that stands where a record was lost, so that the numbers have no gap."""
FORMAT_NOTE: Final = "lockstitch.format"
"""Name of the note that stands where a log of an older format was continued in a newer one."""
LOST_MAX: Final = 100_000
"""Notes in one gap; a wider one stays a gap."""


@dataclass(slots=True)
class Rewriting:
    """Turns the pieces of a log into the lines of a clean one. Iterate ``lines`` once, then read the rest."""

    session_id: str
    start: SessionStart | None = None
    """In the place of the log's own first record; None keeps that."""
    start_ms: int | None = None
    last_turn: int | None = None
    """Nothing behind the end of this turn is taken."""
    detail: str = ""
    """Of the event that says that the log was rewritten; it is added if there is something to say."""
    always_tell: bool = False

    records: int = field(default=0, init=False)
    lost: int = field(default=0, init=False)
    turn: int = field(default=0, init=False)
    """The last turn that was taken."""
    turn_ended: bool = field(default=False, init=False)
    _next_seq: int = field(default=0, init=False)
    _time_ms: int = field(default=0, init=False)
    _told: bool = field(default=False, init=False)
    _older: bool = field(default=False, init=False)
    _full: bool = field(default=False, init=False)

    def lines(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of the new log, newlines included."""
        scanner = Scanner(keep_lines=True)
        for piece in pieces:
            yield from self._events(scanner, scanner.feed(piece))
            if self._full:
                break
        else:
            yield from self._events(scanner, scanner.end())
        if self._next_seq == 0:
            yield self._first(None)
        if self.always_tell or self._told:
            body = SessionRepaired(rewritten=True, detail=self.detail)
            yield encode(self._next_seq, self._time_ms, body)
            self.records += 1

    def _events(self, scanner: Scanner, items: list[Event | Damage]) -> Iterator[bytes]:
        events = [item for item in items if isinstance(item, Event)]
        lines, scanner.lines = scanner.lines, []
        for event, line in zip(events, lines, strict=True):
            if self._full or self._is_behind(event):
                self._full = True
                return
            if self._next_seq == 0:
                yield self._first(event)
            if event.seq > 0 or not isinstance(event.body, SessionStart):
                yield from self._fill(event)
                yield self._line(event, line)
                self.records += 1
            self._count(event)

    def _first(self, event: Event | None) -> bytes:
        """The first record: the one to be put in its place, the log's own, or the one that it implies."""
        own = event.body if event is not None and isinstance(event.body, SessionStart) else None
        self._time_ms = event.time_ms if event is not None else self.start_ms or 0
        start = self.start or own or SessionStart(migration.CURRENT, self.session_id)
        if own is not None and migration.upgrade_from(own.format) is not None:
            self._older = True
            start = msgspec.structs.replace(start, format=migration.CURRENT)
        time_ms = self._time_ms if self.start is None or self.start_ms is None else self.start_ms
        self._next_seq, self.records = 1, 1
        return encode(0, time_ms, start)

    def _line(self, event: Event, line: bytes) -> bytes:
        """The record as it was; of a log of an older format as this version understands it."""
        if not self._older:
            return line + b"\n"
        match event.body:
            case SessionStart():  # where the format was raised
                body: Body = NoteEvent(FORMAT_NOTE)
            case Unknown():
                body = NoteEvent(LOST_NOTE)
                self.lost += 1
            case known:
                body = known
        return encode(event.seq, event.time_ms, body)

    def _fill(self, event: Event) -> Iterator[bytes]:
        gap = event.seq - self._next_seq
        if 0 < gap <= LOST_MAX:
            for seq in range(self._next_seq, event.seq):
                yield encode(seq, self._time_ms, NoteEvent(LOST_NOTE))
            self.records += gap
        self.lost += max(gap, 0)

    def _is_behind(self, event: Event) -> bool:
        if self.last_turn is None:
            return False
        if isinstance(event.body, TurnStart):
            return event.body.turn > self.last_turn
        return self.turn >= self.last_turn and self.turn_ended

    def _count(self, event: Event) -> None:
        self._next_seq = max(self._next_seq, event.seq + 1)
        self._time_ms = event.time_ms
        match event.body:
            case TurnStart(turn=turn):
                self.turn, self.turn_ended = turn, False
            case TurnEnd(turn=turn):
                self.turn, self.turn_ended = turn, True
            case SessionRepaired(set_aside=set_aside, missing=missing):
                self._told = self._told or bool(set_aside or missing)
            case _:
                pass

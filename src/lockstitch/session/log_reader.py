"""From the pieces of a stored log to the state behind it: scanning, judging and folding in one pass."""

from collections.abc import Callable
from typing import Final

import msgspec

from lockstitch.schema.events import FORMAT_VERSION, Body, Event, SessionRepaired, SessionStart, Unknown
from lockstitch.wire.jsonl import KIND_OF

from .gate import refusal
from .log_state import LogState, advance
from .scan import Damage, Scanner

LISTED_MAX: Final = 100
"""Defects and damaged places that are listed one by one; beyond it they are only counted."""

Fold = Callable[[Event], None]


class FoldFailedError(Exception):
    """A caller's ``fold`` raised ``cause``: told apart here from what the file system raises."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class Defect(msgspec.Struct, frozen=True):
    """One event that was read although the gate would refuse it."""

    seq: int
    offset: int
    """Where its record begins in the log."""
    kind: str
    reason: str


class LogReader:
    """Reads one log. Events go to ``fold`` in order, each marked if the gate would have refused it."""

    def __init__(self, session_id: str, fold: Fold | None = None) -> None:
        self.state = LogState()
        self.scanner = Scanner()
        self.damage: list[Damage] = []
        """The first places; a torn end is the last item, if there is one, whatever the number."""
        self.defects: list[Defect] = []
        self.set_aside = 0
        self.missing = 0
        self.torn: Damage | None = None
        self._session_id = session_id
        self._fold = fold

    def feed(self, piece: bytes) -> list[Damage]:
        """Fold the events of one piece of the log; its damage is returned, to be copied aside."""
        return self._take(self.scanner.feed(piece))

    def end(self) -> list[Damage]:
        """Fold what the unterminated end of the log still holds."""
        damage = self._take(self.scanner.end())
        if self.state.start is None:
            self._imply_start()
        return damage

    def _take(self, items: list[Event | Damage]) -> list[Damage]:
        state, fold = self.state, self._fold
        damage = []
        for index, item in enumerate(items):
            if type(item) is Damage:
                self._count(item)
                damage.append(item)
                continue
            event = item
            assert type(event) is Event
            if event.seq < state.next_seq:
                event = self._defective(index, event, f"record {state.next_seq - 1} came before it")
            elif (problem := refusal(state, event.body)) is not None:
                if state.start is None:
                    self._imply_start()
                    problem = refusal(state, event.body)
                if problem is not None:
                    event = self._defective(index, event, problem)
            advance(state, event)
            if fold is not None:
                try:
                    fold(event)
                except Exception as error:
                    raise FoldFailedError(error) from error
        return damage

    def _imply_start(self) -> None:
        self.state.start = SessionStart(FORMAT_VERSION, self._session_id)

    def _defective(self, index: int, event: Event, problem: str) -> Event:
        if len(self.defects) < LISTED_MAX:
            offset = self.scanner.offsets[index]
            self.defects.append(Defect(event.seq, offset, kind_of(event.body), problem))
        return Event(event.seq, event.time_ms, event.body, event.needed, problem)

    def _count(self, damage: Damage) -> None:
        if damage.torn:
            self.torn = damage
        elif damage.length:
            self.set_aside += 1
        else:
            self.missing += 1
        if damage.torn or len(self.damage) < LISTED_MAX:
            self.damage.append(damage)

    def findings(self, file: str = "") -> SessionRepaired | None:
        """What an opening has to tell in the log that no earlier one told; None if there is nothing.

        ``file`` says where damaged bytes were copied.
        """
        state = self.state
        new_set_aside = max(self.set_aside - state.told_set_aside, 0)
        found = SessionRepaired(
            torn_bytes=self.torn.length if self.torn else 0,
            set_aside=new_set_aside,
            missing=max(self.missing - state.told_missing, 0),
            defects=max(state.defects - state.told_defects, 0),
            closed_calls=len(state.calls),
            closed_attempts=int(state.open_attempt is not None),
            file=file if new_set_aside or self.torn else "",
        )
        return None if found == SessionRepaired() else found


def kind_of(body: Body) -> str:
    """The envelope's kind of a body, of a newer version's body as well."""
    return body.stored_kind if isinstance(body, Unknown) else KIND_OF[type(body)]

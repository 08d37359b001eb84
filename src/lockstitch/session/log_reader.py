"""From the pieces of a stored log to the state behind it: scanning, judging and folding in one pass."""

from collections.abc import Callable
from typing import Final

import msgspec

from lockstitch.schema.events import Body, Event, SessionRepaired, SessionStart, Unknown
from lockstitch.wire.jsonl import KIND_OF

from . import migration
from .gate import CHECKS, refusal
from .log_state import FOLDS, LogState, advance
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

    def __init__(
        self, session_id: str, fold: Fold | None = None, *, state: LogState | None = None, offset: int = 0
    ) -> None:
        """``state``: that of the first ``offset`` bytes of the log, all of them sound and ending in a whole
        line, which ``fold`` has been through; what is fed follows them."""
        if state is None or state.start is None:
            self.state, self.scanner = LogState(), Scanner()
        else:
            last, form = state.next_seq - 1, state.start.format
            self.state = state
            self.scanner = Scanner(after=last, format_version=form, offset=offset)
            self.scanner.records = state.next_seq
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

    @property
    def is_sound(self) -> bool:
        """Whether nothing but a torn end was found that a writer of this log would not have written."""
        return not (self.set_aside or self.missing or self.state.defects)

    def _take(self, items: list[Event | Damage]) -> list[Damage]:
        # Written out instead of calling ``refusal`` and ``advance``: a long log passes here, event by event.
        state, fold, checks, folds = self.state, self._fold, CHECKS, FOLDS
        damage: list[Damage] = []
        for index, item in enumerate(items):
            if type(item) is Damage:
                self._count(item)
                damage.append(item)
                continue
            event: Event = item  # type: ignore[assignment]  # of two types, it is not the other
            seq, body = event.seq, event.body
            kind = type(body)
            if seq < state.next_seq or state.start is None or checks[kind](state, body) is not None:
                event = self._unusual(index, event)
            if event.defect is not None or kind is Unknown:
                advance(state, event)
            else:
                state.next_seq = seq + 1
                state.time_ms = event.time_ms
                if (enter := folds.get(kind)) is not None:
                    enter(state, seq, body)
            if fold is not None:
                try:
                    fold(event)
                except Exception as error:
                    raise FoldFailedError(error) from error
        return damage

    def _unusual(self, index: int, event: Event) -> Event:
        """The event itself, or marked with what the gate has against it."""
        if event.seq < self.state.next_seq:
            return self._defective(index, event, f"record {self.state.next_seq - 1} came before it")
        problem = refusal(self.state, event.body)
        if self.state.start is None and problem is not None:
            self._imply_start()
            problem = refusal(self.state, event.body)
        return event if problem is None else self._defective(index, event, problem)

    def _imply_start(self) -> None:
        self.state.start = SessionStart(migration.CURRENT, self._session_id)

    def _defective(self, index: int, event: Event, problem: str) -> Event:
        if len(self.defects) < LISTED_MAX:
            offset = self.scanner.offset_of(index)
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

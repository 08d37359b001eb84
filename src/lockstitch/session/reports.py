"""What opening, checking and listing sessions report."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from lockstitch.schema.usage import Usage

from .log_reader import Defect
from .scan import Damage


class DamageReport(msgspec.Struct, frozen=True):
    """A place of a log that holds no record."""

    offset: int
    length: int
    """Bytes; 0 for a gap in the numbers with nothing in its place."""
    reason: str
    torn: bool
    """An unfinished append at the end, as a crash leaves it."""


class OpenReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when a session was opened, and what was done about it."""

    created: bool = False
    records: int = 0
    set_aside: int = 0
    """Places in the log that are no records, earlier openings' included. They stay, and are skipped."""
    missing: int = 0
    """Gaps in the numbers of the records with nothing in their place."""
    torn_bytes: int = 0
    """Of an unfinished append, cut off."""
    defects: int = 0
    """Events that the gate would refuse; they are kept, and requests are repaired around them."""
    closed_calls: int = 0
    closed_attempts: int = 0
    closed_turn: bool = False
    """The session had been interrupted inside of a turn."""
    files: tuple[str, ...] = ()
    """Copies of the damaged bytes that this opening made, relative to the session's directory."""
    damage: tuple[DamageReport, ...] = ()
    """The first places, in order."""
    defective: tuple[Defect, ...] = ()
    read_only: str | None = None
    """Why the session cannot be continued; None if it can."""

    @property
    def mended(self) -> bool:
        """Whether there is anything to tell a user who only wants to go on."""
        return bool(
            self.torn_bytes or self.closed_calls or self.closed_attempts or self.set_aside or self.missing
        ) or bool(self.defects)


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is damaged in a session, and what opening it would do. Nothing was written for it."""

    id: str
    path: str = ""
    records: int = 0
    bytes: int = 0
    """Size of the log."""
    set_aside: int = 0
    missing: int = 0
    torn_bytes: int = 0
    defects: int = 0
    open_calls: int = 0
    """Tool calls without a result: a running agent's, or an interruption's."""
    open_attempts: int = 0
    open_turn: int | None = None
    read_only: str | None = None
    """Why opening could only show the session."""
    in_use_by: int | None = None
    """Process id of the writer that holds the session."""
    damage: tuple[DamageReport, ...] = ()
    defective: tuple[Defect, ...] = ()
    would: tuple[str, ...] = ()
    """What opening the session would do, one sentence each."""

    @property
    def sound(self) -> bool:
        """Whether there are records, every byte is one, and every record is one that the gate accepts."""
        return self.records > 0 and not (self.set_aside or self.missing or self.torn_bytes or self.defects)


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of a listing. It is in no cycle, so the garbage collector need not watch the many of them."""

    id: str
    path: str = ""
    cwd: str = ""
    created_ms: int | None = None
    updated_ms: int | None = None
    bytes: int = 0
    title: str = ""
    """The session's title, else the first line that a user said."""
    parent: str | None = None
    turns: int | None = None
    """None, like the counts below, where no index knows them."""
    usage: Usage | None = None
    usage_by_model: Mapping[str, Usage] | None = None
    """By ``provider:model``; failed attempts included."""
    problem: str | None = None
    """What is wrong with the session as far as a listing sees it; None if nothing is."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One place where words were found."""

    id: str
    title: str
    cwd: str
    seq: int
    """Record of the event."""
    time_ms: int
    kind: Literal["user", "assistant", "result", "summary", "title"]
    snippet: str
    """Some words around, with those found between U+E000 and U+E001."""


Hits: TypeAlias = list[SearchHit]
"""The best first."""
Listing: TypeAlias = list[SessionInfo]
"""The latest session first."""


def latest_first(infos: Iterable[SessionInfo]) -> Listing:
    return sorted(infos, key=lambda info: (-(info.updated_ms or 0), info.id))


def damage_reports(damage: list[Damage]) -> tuple[DamageReport, ...]:
    return tuple(DamageReport(item.offset, item.length, item.reason, item.torn) for item in damage)

"""Looking after sessions: fork and repair. Both work on any store, and on sessions not open."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, Final

import msgspec

from lockstitch.schema.errors import CallerError
from lockstitch.schema.events import SessionStart

from . import migration
from .reports import CheckReport
from .rewriting import Rewriting
from .scan import PIECE_BYTES
from .store import SessionKeeper, SessionLog

_SPOOL_BYTES: Final = 32 * 1024 * 1024  # of a log that is copied, before a temporary file takes it


class ForkReport(msgspec.Struct, frozen=True, kw_only=True):
    """A session that began as a copy of another's beginning."""

    id: str
    parent: str
    turn: int
    """The last turn they share; 0 for none."""
    records: int


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What repairing a session did."""

    id: str
    before: CheckReport
    after: CheckReport
    backup: str | None
    """Where the log lies as it was; None if it did not have to be rewritten."""
    lost: int
    """Records that are gone; a note stands in the place of each."""


async def fork(store: SessionKeeper, session_id: str, new_id: str, *, turn: int | None = None) -> ForkReport:
    """A new session with everything of another up to the end of ``turn``; None: with all of it.

    The other one may be open, damaged or interrupted; it is only read. Whole records are copied as they are,
    blobs as well. Raises CallerError for an unknown session or turn, or if ``new_id`` is taken.
    """
    view = await store.open(session_id, read_only=True)
    if turn is not None and not 0 <= turn <= view.state.turns:
        raise CallerError(f"session {session_id!r} has {view.state.turns} turns; there is no turn {turn}")
    if view.state.too_new is not None:
        raise CallerError(f"session {session_id!r} cannot be forked by this version: {view.state.too_new}")
    old = view.state.start
    rewriting = Rewriting(
        session_id,
        start=SessionStart(migration.CURRENT, new_id, old.cwd if old else "", parent=session_id),
        start_ms=time.time_ns() // 1_000_000,
        last_turn=turn,
        detail=f"forked from {session_id}",
    )
    with await _spooled(store, session_id) as source:
        await store.put_log(new_id, rewriting.lines(_pieces(source)), _blobs(view))
    return ForkReport(id=new_id, parent=session_id, turn=rewriting.turn, records=rewriting.records)


async def repair(store: SessionKeeper, session_id: str) -> RepairReport:
    """Make a session's log sound: a copy of it first, then without its damage, then closed.

    A log that is sound but interrupted is only closed. Records that break the rules of the log stay: requests
    are repaired around them. Raises CallerError for an unknown session or one of a newer version;
    SessionBusyError while it is open.
    """
    before = await store.check(session_id)
    if before.read_only is not None:
        raise CallerError(f"session {session_id!r} cannot be repaired by this version: {before.read_only}")
    backup, lost = None, 0
    if before.set_aside or before.missing or before.torn_bytes:
        rewriting = Rewriting(session_id, detail="damage taken out", always_tell=True)
        with await _spooled(store, session_id) as source:
            backup = await store.rewrite_log(session_id, rewriting.lines(_pieces(source)))
        lost = rewriting.lost
    await (await store.open(session_id, create=False)).close()
    after = await store.check(session_id)
    return RepairReport(id=session_id, before=before, after=after, backup=backup, lost=lost)


async def _spooled(store: SessionKeeper, session_id: str) -> IO[bytes]:
    """The bytes of a log in a temporary file, at its beginning."""
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  # the caller closes it
    try:
        await store.copy_log(session_id, _writer(spool))
        await asyncio.to_thread(spool.seek, 0)
    except BaseException:
        spool.close()
        raise
    return spool


def _writer(spool: "tempfile.SpooledTemporaryFile[bytes]") -> Callable[[bytes], None]:
    def take(piece: bytes) -> None:
        spool.write(piece)

    return take


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(PIECE_BYTES):
        yield piece


def _blobs(view: SessionLog) -> Iterator[bytes]:
    for name in view.blobs.names():
        yield view.blobs.get(name)

"""Sessions in this process's memory: for tests, and for agents that need not be resumed."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lockstitch.schema.errors import CallerError, SessionBusyError
from lockstitch.schema.events import Event
from lockstitch.wire.jsonl import encode

from .blobs import MemoryBlobs
from .committer import Committer
from .index_text import searchable
from .log_reader import Fold, FoldFailedError, LogReader
from .mending import check_report, corruption, first_record, implied_start, mend, open_report
from .names import directory_name
from .reports import CheckReport, Hits, Listing, SearchHit, SessionInfo, latest_first
from .store import SessionLog


@dataclass(slots=True, eq=False)
class _Stored:
    """One session's bytes, exactly as a file would hold them. It is its log's sink as well."""

    data: bytearray = field(default_factory=bytearray)
    cwd: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    open: bool = False
    backups: list[bytes] = field(default_factory=list)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)

    def commit(self, data: bytes, *, sync: bool) -> None:
        self.data += data
        self.updated_ms = _now_ms()

    def close(self) -> None:
        self.open = False


class MemoryStore:
    """See ``store.SessionStore``. Everything is lost with the object."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Stored] = {}
        self._trash: list[tuple[str, _Stored]] = []
        self._committer = Committer()

    async def open(
        self,
        session_id: str,
        *,
        create: bool = True,
        cwd: str = "",
        fold: Fold | None = None,
        strict: bool = False,
        read_only: bool = False,
    ) -> SessionLog:
        directory_name(session_id)  # the ids that can be are the same everywhere
        stored = self._sessions.get(session_id)
        created = stored is None and create and not read_only
        if created:
            start = encode(0, _now_ms(), first_record(session_id, cwd))
            stored = self._sessions[session_id] = _Stored(bytearray(start), cwd, _now_ms(), _now_ms())
        stored = self._found(session_id) if read_only else self._unused(session_id)
        reader = _read(session_id, stored, fold)
        too_new = reader.state.too_new
        if read_only or too_new is not None:
            report = open_report(reader, read_only=too_new or "it was opened read-only")
            return SessionLog(session_id, path=None, state=reader.state, report=report, blobs=stored.blobs)
        if strict and (error := corruption(reader, session_id)) is not None:
            raise error
        report = open_report(reader, created=created)
        assert reader.scanner.end_offset is not None
        del stored.data[reader.scanner.end_offset :]
        if reader.scanner.unterminated:
            stored.data += b"\n"
        stored.data += mend(reader, implied_start(session_id, cwd), file="", fold=fold).data
        stored.open = True
        return SessionLog(
            session_id,
            path=None,
            state=reader.state,
            report=report,
            blobs=stored.blobs,
            committer=self._committer,
            sink=stored,
        )

    async def list(self) -> Listing:
        infos = [
            SessionInfo(
                id=session_id,
                cwd=stored.cwd,
                created_ms=stored.created_ms,
                updated_ms=stored.updated_ms,
                bytes=len(stored.data),
            )
            for session_id, stored in self._sessions.items()
        ]
        return latest_first(infos)

    async def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> Hits:
        """Without an index every log is read, and words are found as they are written."""
        hits = []
        for info in await self.list():
            if cwd is None or info.cwd == cwd or info.cwd.startswith(cwd.rstrip("/") + "/"):
                hits += _found_in(info, self._sessions[info.id], words.lower().split())
        return hits[:limit]

    async def check(self, session_id: str) -> CheckReport:
        stored = self._found(session_id)
        reader = _read(session_id, stored, None)
        return check_report(reader, session_id, path="", in_use_by=-1 if stored.open else None)

    async def copy_log(self, session_id: str, take: Callable[[bytes], None]) -> None:
        take(bytes(self._found(session_id).data))

    async def put_log(self, session_id: str, log: Iterable[bytes], blobs: Iterable[bytes] = ()) -> None:
        directory_name(session_id)
        if session_id in self._sessions:
            raise CallerError(f"there is a session {session_id!r} already: choose another id, or remove it")
        stored = _Stored(bytearray(b"".join(log)), created_ms=_now_ms(), updated_ms=_now_ms())
        for data in blobs:
            stored.blobs.put(data)
        self._sessions[session_id] = stored

    async def rewrite_log(self, session_id: str, log: Iterable[bytes]) -> str:
        stored = self._unused(session_id)
        stored.backups.append(bytes(stored.data))
        stored.data = bytearray(b"".join(log))
        return f"backup {len(stored.backups)} of {session_id!r} in memory"

    async def remove(self, session_id: str) -> str:
        self._trash.append((session_id, self._unused(session_id)))
        del self._sessions[session_id]
        return "the trash in memory"

    async def restore(self, session_id: str) -> None:
        found = [entry for entry in self._trash if entry[0] == session_id]
        if not found:
            raise CallerError(f"there is no session {session_id!r} in the trash")
        if session_id in self._sessions:
            raise CallerError(f"there is a session {session_id!r} again: remove it first")
        self._trash.remove(found[-1])
        self._sessions[session_id] = found[-1][1]

    async def purge(self) -> int:
        count = len(self._trash)
        self._trash.clear()
        return count

    def _found(self, session_id: str) -> _Stored:
        directory_name(session_id)
        stored = self._sessions.get(session_id)
        if stored is None:
            raise CallerError(f"there is no session {session_id!r} in this store")
        return stored

    def _unused(self, session_id: str) -> _Stored:
        stored = self._found(session_id)
        if stored.open:
            raise SessionBusyError(
                f"session {session_id!r} is open already: close it there, or open it read-only"
            )
        return stored

    def read_log(self, session_id: str) -> bytes:
        """The record lines of a session, as a file would hold them."""
        return bytes(self._sessions[session_id].data)

    def write_log(self, session_id: str, data: bytes) -> None:
        """Put other bytes in their place, to see what is made of them."""
        self._sessions[session_id].data = bytearray(data)

    async def close(self) -> None:
        """Write what is waiting. The sessions stay, and may be opened again."""
        ended, self._committer = self._committer, Committer()
        await asyncio.to_thread(ended.close)


def _read(session_id: str, stored: _Stored, fold: Fold | None) -> LogReader:
    reader = LogReader(session_id, fold)
    try:
        reader.feed(bytes(stored.data))
        reader.end()
    except FoldFailedError as failed:
        raise failed.cause from None
    return reader


def _found_in(info: SessionInfo, stored: _Stored, words: list[str]) -> Hits:
    hits: Hits = []

    def look(event: Event) -> None:
        kind, text = searchable(event.body) or ("title", "")
        if words and all(word in text.lower() for word in words):
            hits.append(
                SearchHit(
                    id=info.id,
                    title=info.title,
                    cwd=info.cwd,
                    seq=event.seq,
                    time_ms=event.time_ms,
                    kind=kind,
                    snippet=text[:200],
                )
            )

    _read(info.id, stored, look)
    return hits


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

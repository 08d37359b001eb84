"""All sessions in one SQLite file: for many small sessions, and where one file is easier to keep.

A session's log is the same bytes as in the file store, in pieces; scanning, judging and mending are the same
code. All logs that have something to write share one transaction.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import apsw

from lockstitch.schema.errors import StorageError

from .committer import Committer, Work
from .index import SessionIndex
from .listing import list_sessions, search_sessions
from .lock import owner
from .log_reader import Fold, FoldFailedError
from .mending import check_report
from .names import directory_name
from .reports import CheckReport, Hits, Listing, SessionInfo, latest_first
from .saving import SAVE_AFTER_BYTES
from .sqlite_database import SqliteFile, told
from .sqlite_keeping import SqliteKeeping
from .sqlite_log import PieceSink, SqliteSource, insert
from .sqlite_open import SqliteOpening
from .store import SessionLog

LOCKS_SUFFIX: Final = "-locks"
"""Of the directory beside the database with a lock per session: SQLite's own last for a transaction only. The
sessions' checkpoints lie there as well."""
INDEX_SUFFIX: Final = "-index"

T = TypeVar("T")
Rows: TypeAlias = list[Any]


class SqliteStore:
    """Sessions in the SQLite file ``path``, which is made with the first of them.

    See ``store.SessionKeeper`` for what the methods promise. Without ``durable`` a flush does not wait for
    the disk: for tests.
    """

    def __init__(self, path: Path, *, durable: bool = True, save_after_bytes: int = SAVE_AFTER_BYTES) -> None:
        self.path = Path(path)
        self._file = SqliteFile(self.path, durable=durable)
        self._locks = self.path.with_name(self.path.name + LOCKS_SUFFIX)
        self._index = SessionIndex(self.path.with_name(self.path.name + INDEX_SUFFIX))
        self._committer = Committer(self._commit)
        self._save_after_bytes = save_after_bytes
        self._keeping = SqliteKeeping(self._file, self._locks)

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
        opening = self._opening(session_id, cwd, fold)
        work = asyncio.ensure_future(
            asyncio.to_thread(
                self._told, opening.view if read_only else lambda: opening.write(create=create, strict=strict)
            )
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            opening.cancel()
            work.add_done_callback(_close_unclaimed)
            raise

    async def list(self) -> Listing:
        return await self._in_thread(self._list)

    async def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> Hits:
        return await self._in_thread(lambda: self._search(words, cwd, limit))

    async def check(self, session_id: str) -> CheckReport:
        return await self._in_thread(lambda: self._check(session_id))

    async def copy_log(self, session_id: str, take: Callable[[bytes], None]) -> None:
        await self._in_thread(lambda: self._keeping.copy(session_id, take))

    async def put_log(self, session_id: str, log: Iterable[bytes], blobs: Iterable[bytes] = ()) -> None:
        await self._in_thread(lambda: self._keeping.put(session_id, log, blobs))

    async def rewrite_log(self, session_id: str, log: Iterable[bytes]) -> str:
        return await self._in_thread(lambda: self._keeping.rewrite(session_id, log))

    async def remove(self, session_id: str) -> str:
        return await self._in_thread(lambda: self._keeping.remove(session_id))

    async def restore(self, session_id: str) -> None:
        await self._in_thread(lambda: self._keeping.restore(session_id))

    async def purge(self) -> int:
        return await self._in_thread(self._keeping.purge)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _opening(self, session_id: str, cwd: str, fold: Fold | None) -> SqliteOpening:
        return SqliteOpening(
            self._file,
            self._locks,
            session_id,
            cwd=cwd,
            fold=fold,
            committer=self._committer,
            save_after_bytes=self._save_after_bytes,
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._told, work)

    def _told(self, work: Callable[[], T]) -> T:
        try:
            with told(self.path):
                return work()
        except FoldFailedError as failed:
            raise failed.cause from None

    def _commit(self, batch: Sequence[Work]) -> None:
        """Write the work of all logs in one transaction."""

        def change(connection: apsw.Connection) -> None:
            for work in batch:
                insert(connection, _sink(work), work.data)

        try:
            self._file.write(change)
        except StorageError as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for work in batch:  # one log's fault must not be the others'
                self._commit([work])
            return
        for work in batch:
            _sink(work).end += len(work.data)

    def _check(self, session_id: str) -> CheckReport:
        reader = self._opening(session_id, "", None).read()
        in_use_by = owner(self._locks / directory_name(session_id))
        return check_report(reader, session_id, path=str(self.path), in_use_by=in_use_by)

    def _list(self) -> Listing:
        present = self._present()
        try:
            return list_sessions(self._index, present, self._source) if present else []
        except (apsw.Error, OSError):  # the index cannot be used: what the database itself says has to do
            path = str(self.path)
            return latest_first(SessionInfo(id=id_, path=path, updated_ms=ms) for id_, ms in present.items())

    def _search(self, words: str, cwd: str | None, limit: int) -> Hits:
        present = self._present()
        if not present:
            return []
        return search_sessions(self._index, present, self._source, words=words, cwd=cwd, limit=limit)

    def _present(self) -> dict[str, int | None]:
        """Ids of the sessions, each with the time of its last change."""
        query = "SELECT id, updated_ms FROM sessions WHERE trashed_ms IS NULL"
        with self._file.reading() as connection:
            rows: Rows = [] if connection is None else connection.execute(query).fetchall()
        return dict(rows)

    def _source(self, session_id: str) -> SqliteSource:
        return SqliteSource(self._file, self._locks, session_id)

    def _close(self) -> None:
        self._committer.close()
        self._file.close()
        self._index.close()


def _sink(work: Work) -> PieceSink:
    assert isinstance(work.sink, PieceSink)
    return work.sink


def _close_unclaimed(work: "asyncio.Task[SessionLog]") -> None:
    """Give the session free that was opened after its caller was cancelled."""
    if not work.cancelled() and work.exception() is None:
        work.result().abandon()

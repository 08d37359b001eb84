"""The default store: a directory per session with a log that can be read by eye and mended by hand.

``<root>/<name>/log.jsonl`` holds one record a line, ``lock`` its writer's process id, ``blobs/`` large
content by hash, ``damaged/`` copies of what could not be read. See docs/formats/session-log.md.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from lockstitch.schema.events import SessionStart
from lockstitch.wire.jsonl import BadRecordError, decode

from .blobs import BLOBS_NAME, DirectoryBlobs
from .committer import Committer
from .file_calls import FileCalls
from .file_keeping import FileKeeping
from .file_open import Opened, Opening
from .file_sink import LOG_NAME, refusal_of_disk
from .lock import owner
from .log_reader import Fold, FoldFailedError
from .mending import check_report
from .names import directory_name, session_id_of
from .reports import CheckReport, Listing, SessionInfo
from .store import SessionLog

_HEAD_BYTES = 64 * 1024  # of a log, enough for its first record

T = TypeVar("T")


class FileStore:
    """Sessions in directories under ``root``, which is made with the first of them.

    One thread writes for all open sessions. See ``store.SessionStore`` for what the methods promise.
    """

    def __init__(self, root: Path, *, calls: FileCalls | None = None) -> None:
        self.root = Path(root)
        self._calls = calls or FileCalls()
        self._committer = Committer()
        self._keeping = FileKeeping(self.root, self._calls)

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
        opening = Opening(self._calls, self.root, session_id, cwd=cwd, fold=fold)
        work = asyncio.ensure_future(
            asyncio.to_thread(
                self._translated,
                opening.view if read_only else lambda: opening.write(create=create, strict=strict),
            )
        )
        try:
            opened = await asyncio.shield(work)
        except asyncio.CancelledError:
            opening.cancel()
            work.add_done_callback(_close_unclaimed)
            raise
        return SessionLog(
            session_id,
            path=opened.path,
            state=opened.state,
            report=opened.report,
            blobs=DirectoryBlobs(opened.path / BLOBS_NAME, self._calls),
            committer=self._committer,
            sink=opened.sink,
            release=opened.lock.close if opened.lock else None,
        )

    async def list(self) -> Listing:
        return await self._in_thread(self._list)

    async def check(self, session_id: str) -> CheckReport:
        return await self._in_thread(lambda: self._check(session_id))

    async def copy_log(self, session_id: str, take: Callable[[bytes], None]) -> None:
        def copy() -> None:
            for piece in self._keeping.pieces(session_id):
                take(piece)

        await self._in_thread(copy)

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
        await asyncio.to_thread(self._committer.close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._translated, work)

    def _translated(self, work: Callable[[], T]) -> T:
        """Errors of the file system as errors for callers; those of a caller's ``fold`` as they are."""
        try:
            return work()
        except FoldFailedError as failed:
            raise failed.cause from None
        except OSError as error:
            raise refusal_of_disk(Path(error.filename or self.root), error) from error

    def _check(self, session_id: str) -> CheckReport:
        opening = Opening(self._calls, self.root, session_id, cwd="", fold=None)
        path = self.root / directory_name(session_id)
        return check_report(opening.read(), session_id, path=str(path), in_use_by=owner(path))

    def _list(self) -> Listing:
        try:
            names = [entry.name for entry in os.scandir(self.root) if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        infos = [info for name in names if (info := self._info(name)) is not None]
        return sorted(infos, key=lambda info: (-(info.updated_ms or 0), info.id))

    def _info(self, name: str) -> SessionInfo | None:
        """One directory's line; None for what is no session. Whatever is wrong with it stays with it."""
        directory = self.root / name
        session_id = session_id_of(name)
        try:
            if not directory.is_dir():
                return None
            status = (directory / LOG_NAME).stat()
            with (directory / LOG_NAME).open("rb") as log:
                head = log.read(_HEAD_BYTES)
        except OSError as error:
            unread = f"its log cannot be read: {error.strerror or error}"
            return SessionInfo(id=session_id or name, path=str(directory), problem=unread)
        start, created_ms, problem = _first_record(head)
        return SessionInfo(
            id=session_id or (start.id if start else name),
            path=str(directory),
            cwd=start.cwd if start else "",
            created_ms=created_ms,
            updated_ms=status.st_mtime_ns // 1_000_000,
            bytes=status.st_size,
            parent=start.parent if start else None,
            problem=problem,
        )


def _first_record(head: bytes) -> tuple[SessionStart | None, int | None, str | None]:
    try:
        event = decode(head.split(b"\n", 1)[0])
    except BadRecordError as error:
        return None, None, f"its first record is damaged: {error}"
    if not isinstance(event.body, SessionStart):
        return None, event.time_ms, "its first record is missing"
    return event.body, event.time_ms, None


def _close_unclaimed(work: "asyncio.Task[Opened]") -> None:
    """Give back what an opening got after its caller was cancelled."""
    if not work.cancelled() and work.exception() is None:
        work.result().close()

"""The default store: a directory per session with a log that can be read by eye and mended by hand.

``<root>/<name>/log.jsonl`` holds one record a line, ``lock`` its writer's process id, ``blobs/`` large
content by hash, ``damaged/`` copies of what could not be read, ``checkpoint.jsonl`` what the log amounts to,
for a fold that can be saved (``saving.SavingFold``). See docs/formats/session-log.md.
"""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lockstitch.schema.errors import StorageError

from .blobs import BLOBS_NAME, DirectoryBlobs
from .committer import Committer
from .file_calls import FileCalls
from .file_keeping import FileKeeping
from .file_listing import plain_info, session_names
from .file_open import Opened, Opening
from .file_sink import refusal_of_disk
from .lock import owner
from .log_reader import Fold, FoldFailedError
from .mending import check_report
from .names import directory_name
from .reports import CheckReport, Hits, Listing, latest_first
from .saving import SAVE_AFTER_BYTES
from .store import SessionLog

if TYPE_CHECKING:
    from .file_index import FileIndex

T = TypeVar("T")


class FileStore:
    """Sessions in directories under ``root``, which is made with the first of them.

    One thread writes for all open sessions. See ``store.SessionKeeper`` for what the methods promise.
    """

    def __init__(
        self,
        root: Path,
        *,
        calls: FileCalls | None = None,
        index: bool = True,
        save_after_bytes: int = SAVE_AFTER_BYTES,
    ) -> None:
        """Without ``index`` a listing reads the beginning of every log, and there is no search.

        ``save_after_bytes``: how much a log grows at least before the state of a ``SavingFold`` is saved.
        """
        self.root = Path(root)
        self._calls = calls or FileCalls()
        self._save_after_bytes = save_after_bytes
        self._committer = Committer()
        self._keeping = FileKeeping(self.root, self._calls)
        self._wants_index = index
        self._index: FileIndex | None = None

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
        opening = Opening(
            self._calls, self.root, session_id, cwd=cwd, fold=fold, save_after_bytes=self._save_after_bytes
        )

        def write() -> Opened:
            opened = opening.write(create=create, strict=strict)
            if opened.lock is not None and (index := self._indexed()) is not None:
                index.mark(opened.path.name)
            return opened

        work = asyncio.ensure_future(self._in_thread(opening.view if read_only else write))
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
            saver=opened.saver,
            release=None if opened.lock is None else lambda: self._release(opened),
        )

    async def list(self) -> Listing:
        return await self._in_thread(self._list)

    async def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> Hits:
        return await self._in_thread(lambda: self._search(words, cwd, limit))

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
        def rewrite() -> str:
            backup = self._keeping.rewrite(session_id, log)
            if (index := self._indexed()) is not None:
                index.forget(directory_name(session_id))
            return backup

        return await self._in_thread(rewrite)

    async def remove(self, session_id: str) -> str:
        return await self._in_thread(lambda: self._keeping.remove(session_id))

    async def restore(self, session_id: str) -> None:
        await self._in_thread(lambda: self._keeping.restore(session_id))

    async def purge(self) -> int:
        return await self._in_thread(self._keeping.purge)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    # --- work in threads -----------------------------------------------------------------------------------

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

    def _indexed(self) -> "FileIndex | None":
        """The index; None if it is not wanted. Loads SQLite."""
        if self._index is None and self._wants_index:
            from .file_index import FileIndex

            self._index = FileIndex(self.root)
        return self._index

    def _list(self) -> Listing:
        index = self._indexed()
        listing = None if index is None else index.listing()
        if listing is not None:
            return listing
        return latest_first(plain_info(self.root, name) for name in session_names(self.root))

    def _search(self, words: str, cwd: str | None, limit: int) -> Hits:
        index = self._indexed()
        if index is None:
            raise StorageError(f"{self.root} is used without an index, so it cannot be searched")
        return index.search(words, cwd=cwd, limit=limit)

    def _check(self, session_id: str) -> CheckReport:
        opening = Opening(self._calls, self.root, session_id, cwd="", fold=None)
        path = self.root / directory_name(session_id)
        return check_report(opening.read(), session_id, path=str(path), in_use_by=owner(path))

    def _release(self, opened: Opened) -> None:
        """Give the session free, and put what was said into the index."""
        assert opened.lock is not None
        opened.lock.close()
        if (index := self._indexed()) is not None:
            index.catch_up(opened.path.name)

    def _close(self) -> None:
        self._committer.close()
        if self._index is not None:
            self._index.close()


def _close_unclaimed(work: "asyncio.Task[Opened]") -> None:
    """Give back what an opening got after its caller was cancelled."""
    if not work.cancelled() and work.exception() is None:
        work.result().close()

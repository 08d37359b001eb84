"""Housekeeping of sessions in directories: whole logs in and out, the trash, rewriting behind a copy."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import CallerError

from .blobs import BLOBS_NAME, DirectoryBlobs
from .checkpoint_file import remove_checkpoint
from .file_calls import FileCalls, read_range, write_new_file
from .file_create import create_directory, remove_unfinished
from .file_open import no_session
from .file_sink import LOG_NAME
from .lock import acquire
from .names import directory_name
from .scan import PIECE_BYTES

TRASH_NAME: Final = ".trash"
BACKUPS_NAME: Final = "backups"
"""Directory in a session's with its log as it was before each rewriting."""


class FileKeeping:
    """The files of one root; every method waits for the disk. Raises OSError besides what it says."""

    def __init__(self, root: Path, calls: FileCalls) -> None:
        self._root = root
        self._calls = calls

    def pieces(self, session_id: str) -> Iterator[bytes]:
        """The bytes of a log as they lie there. Raises CallerError for an unknown session."""
        directory = self._directory(session_id)
        fd = self._calls.open(directory / LOG_NAME, os.O_RDONLY)
        try:
            yield from read_range(self._calls, fd, 0, self._calls.size(fd), PIECE_BYTES)
        finally:
            self._calls.close(fd)

    def put(self, session_id: str, log: Iterable[bytes], blobs: Iterable[bytes]) -> None:
        """Make a session of a whole log. Raises CallerError if there is one of that id."""

        def fill(directory: Path) -> None:
            write_new_file(self._calls, directory / LOG_NAME, log)
            kept = DirectoryBlobs(directory / BLOBS_NAME, self._calls)
            for data in blobs:
                kept.put(data)

        directory = self._root / directory_name(session_id)
        remove_unfinished(self._root)
        lock = None if directory.exists() else create_directory(self._calls, directory, session_id, fill)
        if lock is None:
            raise CallerError(f"there is a session {session_id!r} already: choose another id, or remove it")
        lock.close()

    def rewrite(self, session_id: str, log: Iterable[bytes]) -> str:
        """Put another log in the place of a session's; where its old one is kept.

        Raises SessionBusyError while the session is open.
        """
        directory = self._directory(session_id)
        lock = acquire(directory, session_id)
        try:
            backup = directory / BACKUPS_NAME / f"{time.time_ns() // 1_000_000}-{LOG_NAME}"
            self._calls.make_directory(backup.parent)
            write_new_file(self._calls, backup, self.pieces(session_id))
            self._calls.sync_directory(backup.parent)
            write_new_file(self._calls, directory / LOG_NAME, log)
            remove_checkpoint(self._calls, directory)  # which would not fit any more
            self._calls.sync_directory(directory)
        finally:
            lock.close()
        return str(backup)

    def remove(self, session_id: str) -> str:
        """Move a session to the trash; where it lies now. Raises SessionBusyError while it is open."""
        directory = self._directory(session_id)
        lock = acquire(directory, session_id)
        try:
            trash = self._root / TRASH_NAME
            self._calls.make_directory(trash)
            target = trash / f"{directory.name}.{time.time_ns()}"
            self._calls.rename(directory, target)
            self._calls.sync_directory(trash)
            self._calls.sync_directory(self._root)
        finally:
            lock.close()
        return str(target)

    def restore(self, session_id: str) -> None:
        """Take the session of that id that was removed last back out of the trash.

        Raises CallerError if there is none, or if a session has its id again.
        """
        name = directory_name(session_id)
        found = sorted(self._trashed(name), key=lambda path: int(path.suffix[1:]))
        if not found:
            raise CallerError(f"there is no session {session_id!r} in the trash ({self._root / TRASH_NAME})")
        if (self._root / name).exists():
            raise CallerError(f"there is a session {session_id!r} again: remove it first")
        self._calls.rename(found[-1], self._root / name)
        self._calls.sync_directory(self._root)

    def purge(self) -> int:
        """Delete what is in the trash, for good, and what imports that were killed left; how many sessions
        were in the trash."""
        remove_unfinished(self._root)
        trash = self._root / TRASH_NAME
        count = len(list(trash.iterdir())) if trash.is_dir() else 0
        if count:
            shutil.rmtree(trash)
        return count

    def _directory(self, session_id: str) -> Path:
        directory = self._root / directory_name(session_id)
        if not directory.is_dir():
            raise no_session(session_id, self._root)
        return directory

    def _trashed(self, name: str) -> list[Path]:
        trash = self._root / TRASH_NAME
        entries = trash.iterdir() if trash.is_dir() else ()
        return [path for path in entries if path.stem == name and path.suffix[1:].isdigit()]

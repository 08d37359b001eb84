"""One writer per session: a lock that the kernel releases when its owner dies, whatever way it died."""

import functools
import os
import sys
import weakref
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import SessionBusyError

from .file_calls import FileCalls

LOCK_NAME: Final = "lock"

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int, *, shared: bool = False) -> bool:
        os.lseek(fd, 0x3FFFFFFF, os.SEEK_SET)  # far behind the owner's id, which others must be able to read
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(fd: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class SessionLock:
    """Held for the life of an open session. The file's content, the owner's process id, is for messages only:
    a stale one means nothing."""

    def __init__(self, directory: Path, fd: int) -> None:
        self.directory = directory
        self._fd = fd
        _held.add(self)
        _watch_forks()

    def close(self) -> None:
        """Release the lock. A second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_held: "weakref.WeakSet[SessionLock]" = weakref.WeakSet()


@functools.cache
def _watch_forks() -> None:
    """A forked child shares its parent's locks, and would keep them after the death of their owner."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_let_go_of_all)


def _let_go_of_all() -> None:
    for lock in list(_held):
        lock.close()


def acquire(directory: Path, session_id: str) -> SessionLock:
    """Lock the session in ``directory``, without waiting.

    Raises SessionBusyError if it is open elsewhere, FileNotFoundError if the directory is gone, and any other
    OSError that keeps the file from being opened for writing.
    """
    path = directory / LOCK_NAME
    while True:
        # Never through a link, which would have any file of whoever opens the session emptied.
        fd = FileCalls().open(path, os.O_RDWR | os.O_CREAT)
        try:
            if not _try_lock(fd):
                raise _busy(session_id, _read_owner(fd))
            # The directory may have been moved away between opening and locking: then this locks nothing.
            if _is_same_file(fd, path):
                os.ftruncate(fd, 0)
                os.pwrite(fd, b"%d\n" % os.getpid(), 0)
                return SessionLock(directory, fd)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def owner(directory: Path) -> int | None:
    """Process id of the writer that holds the session; None if nobody does. -1: one that cannot be named."""
    try:
        fd = FileCalls().open(directory / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        if _try_lock(fd, shared=True):
            return None
        pid = _read_owner(fd)
        return -1 if pid is None else pid
    finally:
        os.close(fd)


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def _read_owner(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _busy(session_id: str, pid: int | None) -> SessionBusyError:
    holder = "another process" if pid is None else f"process {pid}"
    if pid == os.getpid():
        holder += ", which is this one"
    return SessionBusyError(
        f"session {session_id!r} is open in {holder}: end it there first, or open it read-only"
    )

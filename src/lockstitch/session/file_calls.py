"""The file calls that durability rests on, in one place, so that a test can fail or interrupt each."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_OPEN_FLAGS: Final = sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOFOLLOW")
)
"""``O_NONBLOCK`` is for what is no regular file: opening a pipe would wait for its other end. ``O_NOFOLLOW``:
a session may have come from elsewhere, and a link in it would lead to any file of whoever opens it."""


class FileCalls:
    """The operating system's. All raise OSError."""

    def open(self, path: Path, flags: int, mode: int = 0o600) -> int:
        """Raises OSError for what is no regular file, too: a pipe would keep its reader waiting for ever, and
        what lies behind a link is not the session's."""
        try:
            fd = os.open(path, flags | _OPEN_FLAGS, mode)
        except OSError as error:
            if error.errno != errno.ELOOP or not path.is_symlink():
                raise
            reason = "it is a symbolic link, which is not followed; put the file itself there"
            raise OSError(errno.ELOOP, reason, str(path)) from error
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            os.close(fd)
            if stat.S_ISDIR(kind):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return fd

    def close(self, fd: int) -> None:
        os.close(fd)

    def read(self, fd: int, length: int, offset: int) -> bytes:
        return os.pread(fd, length, offset)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """How many bytes were written: maybe fewer than given."""
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        """The file's data, and the length it needs to be read back, are on the disk."""
        getattr(os, "fdatasync", os.fsync)(fd)

    def truncate(self, fd: int, length: int) -> None:
        os.ftruncate(fd, length)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def links(self, fd: int) -> int:
        """How many names the file has: none once it was removed, or another was put in its place."""
        return os.fstat(fd).st_nlink

    def make_directory(self, path: Path) -> None:
        """Make it and what is missing above it, for the owner only; ``Path.mkdir`` would leave that open."""
        if not path.parent.exists():
            self.make_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)

    def rename(self, source: Path, target: Path) -> None:
        """Fails if ``target`` is a directory that is not empty; replaces a file."""
        source.rename(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def sync_directory(self, path: Path) -> None:
        """Names made or changed in the directory are on the disk."""
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_all(calls: FileCalls, fd: int, data: bytes, offset: int) -> None:
    """Write every byte of ``data`` at ``offset``. On OSError some of them may have been written."""
    view = memoryview(data)
    while view:
        written = calls.write(fd, view, offset)
        if written <= 0:
            raise OSError("the file system took no bytes and gave no reason")
        view = view[written:]
        offset += written


def write_new_file(calls: FileCalls, path: Path, pieces: Iterable[bytes]) -> None:
    """Make ``path`` hold the pieces, durably, or not exist: by way of a temporary name beside it.

    The name itself is durable once the caller has synced the directory. Raises OSError.
    """
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that died
    fd = calls.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            offset = 0
            for piece in pieces:
                write_all(calls, fd, piece, offset)
                offset += len(piece)
            calls.sync(fd)
        finally:
            calls.close(fd)
        calls.rename(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_range(calls: FileCalls, fd: int, start: int, end: int, piece_bytes: int) -> Iterator[bytes]:
    """The bytes from ``start`` to ``end``, or to the end of the file, in pieces."""
    while start < end and (piece := calls.read(fd, min(piece_bytes, end - start), start)):
        start += len(piece)
        yield piece

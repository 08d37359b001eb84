"""The end of one log file: appends that are whole or undone, whatever the disk answers."""

import os
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import StorageError

from .file_calls import FileCalls, read_range, write_all
from .scan import PIECE_BYTES, Scanner

LOG_NAME: Final = "log.jsonl"
_UNSYNCED_MAX_BYTES: Final = 32 * 1024
"""Of each log, kept to be written again if a later sync fails. An answer at a model's pace fills it in
about a minute, so a thousand at once sync some twenty times a second beside what is waited for."""


class FileSink:
    """Appends to a log whose lock the caller holds. Used by one thread at a time."""

    def __init__(self, calls: FileCalls, path: Path, fd: int, end: int) -> None:
        self._calls = calls
        self._path = path
        self._fd = fd
        self._has_name = calls.links(fd) > 0  # some network file systems do not count
        self._end = end
        """Length of the log in whole lines."""
        self._durable = end
        """Length that a sync has covered."""
        self._unsynced = bytearray()
        """What lies between the two."""
        self._backlog = b""
        """What a failed sync left in doubt: it was taken away again and is written with the next commit."""

    def commit(self, data: bytes, *, sync: bool) -> None:
        """See ``committer.Sink``."""
        try:
            if self._fd < 0:
                self._reopen()
            self._require_unchanged()
            self._append(data)
            if sync or self._end - self._durable > _UNSYNCED_MAX_BYTES:
                self._sync(data)
        except OSError as error:
            raise refusal_of_disk(self._path, error) from error

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._calls.close(fd)

    def _require_unchanged(self) -> None:
        """The lock keeps out who asks for it. Who does not, or had removed it, is not written over, and what
        would lie in no file is not called durable."""
        if self._has_name and not self._calls.links(self._fd):
            raise self._refusal("was removed, or another file was put in its place")
        if (size := self._calls.size(self._fd)) != self._end:
            raise self._refusal(f"has {size} bytes instead of {self._end}: something else changed it")

    def _refusal(self, what: str) -> StorageError:
        return StorageError(
            f"{self._path} {what}, while the session was open here. What was said since then is not kept: "
            "close the session, and open it again"
        )

    def _append(self, data: bytes) -> None:
        data = self._backlog + data
        if not data:
            return
        try:
            write_all(self._calls, self._fd, data, self._end)
        except OSError:
            self._cut_back(self._end)
            raise
        self._end += len(data)
        self._unsynced += data
        self._backlog = b""

    def _sync(self, data: bytes) -> None:
        try:
            self._calls.sync(self._fd)
        except OSError:
            # After a failed sync the kernel may call the pages clean: only writing them anew can make them
            # durable. So all that no sync has covered is taken away; ``data`` is offered again by the caller.
            doubtful = bytes(self._unsynced)
            self._unsynced = bytearray()
            self._backlog = doubtful[: len(doubtful) - len(data)]
            self._end = self._durable
            self._cut_back(self._durable)
            raise
        self._durable = self._end
        self._unsynced = bytearray()

    def _cut_back(self, length: int) -> None:
        """Restore the log's old length; a handle that cannot is given up, and the next commit opens anew."""
        try:
            self._calls.truncate(self._fd, length)
        except OSError:
            fd, self._fd = self._fd, -1
            try:
                self._calls.close(fd)
            except OSError:
                # It is given up either way, and the failure that led here is the one to report.
                return

    def _reopen(self) -> None:
        """Open the log again after a failure, by scan: its whole records must end where they did."""
        fd = self._calls.open(self._path, os.O_RDWR)
        try:
            found = _whole_end(self._calls, fd, self._end)
            if found != self._end:
                raise self._refusal(f"ends at byte {found} instead of {self._end}: something else changed it")
            self._calls.truncate(fd, self._end)
        except BaseException:
            self._calls.close(fd)
            raise
        self._fd = fd


def _whole_end(calls: FileCalls, fd: int, limit: int) -> int:
    """Where the whole records in the first ``limit`` bytes end."""
    scanner = Scanner()
    for piece in read_range(calls, fd, 0, limit, PIECE_BYTES):
        scanner.feed(piece)
    scanner.end()
    assert scanner.end_offset is not None
    return scanner.end_offset


def refusal_of_disk(path: Path, error: OSError) -> StorageError:
    """The error that a caller sees for one of the file system's."""
    return StorageError(
        f"{path}: {error.strerror or error}. Nothing acknowledged is lost; try again when the fault has ended"
    )

"""Opening one session that lies in a directory: create, lock, read, mend."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from lockstitch.schema.errors import CallerError
from lockstitch.wire.jsonl import encode

from .file_calls import FileCalls, read_range, write_new_file
from .file_create import create_directory
from .file_sink import LOG_NAME, FileSink
from .lock import SessionLock, acquire
from .log_reader import Fold, LogReader
from .log_reading import LogBytes, LogReading, read_behind_checkpoint, read_whole, saver_of
from .log_state import LogState
from .mending import corruption, first_record, implied_start, mend, open_report
from .names import directory_name
from .reports import OpenReport
from .saving import SAVE_AFTER_BYTES, Saver, SavingFold
from .scan import PIECE_BYTES, Damage

DAMAGED_NAME: Final = "damaged"
"""Directory with a copy of every damaged place, named for its offset and hash: each is copied once."""


class Opened(NamedTuple):
    path: Path
    state: LogState
    report: OpenReport
    sink: FileSink | None
    lock: SessionLock | None
    saver: Saver | None = None

    def close(self) -> None:
        """Give the file and the lock back."""
        if self.sink is not None:
            self.sink.close()
        if self.lock is not None:
            self.lock.close()


class CancelledOpeningError(Exception):
    """Nobody waits for this opening any more."""


class Opening:
    """One try to open a session, made in a worker thread; ``cancel`` ends it from another."""

    def __init__(
        self,
        calls: FileCalls,
        root: Path,
        session_id: str,
        *,
        cwd: str,
        fold: Fold | None,
        save_after_bytes: int = SAVE_AFTER_BYTES,
    ) -> None:
        self._calls = calls
        self._root = root
        self._id = session_id
        self._cwd = cwd
        self._fold = fold
        self._save_after_bytes = save_after_bytes
        self._cancelled = threading.Event()
        self._directory = root / directory_name(session_id)

    def cancel(self) -> None:
        self._cancelled.set()

    def view(self) -> Opened:
        """Read the session as it lies there, maybe while another process writes it."""
        reader = self.read()
        reason = reader.state.too_new or "it was opened read-only"
        return Opened(self._directory, reader.state, open_report(reader, read_only=reason), None, None)

    def read(self) -> LogReader:
        """Read the log through ``fold``. Raises CallerError if there is no such session."""
        try:
            fd = self._calls.open(self._directory / LOG_NAME, os.O_RDONLY)
        except FileNotFoundError as error:
            if not self._directory.is_dir():
                raise no_session(self._id, self._root) from error
            reader = LogReader(self._id, self._fold)
            reader.end()  # a session whose log is gone: empty, and to be begun again
            return reader
        try:
            return self._read(fd, whole=True).reader
        finally:
            self._calls.close(fd)

    def write(self, *, create: bool, strict: bool) -> Opened:
        """Open the session for its one writer."""
        lock = None
        if not self._directory.is_dir():
            if not create:
                raise no_session(self._id, self._root)
            lock = self._create()
        created = lock is not None
        if lock is None:
            lock = acquire(self._directory, self._id)
        fd = -1
        try:
            fd = self._calls.open(self._directory / LOG_NAME, os.O_RDWR | os.O_CREAT)
            return self._mend(lock, fd, created=created, strict=strict)
        except BaseException:
            if fd >= 0:
                self._calls.close(fd)
            lock.close()
            raise

    def _create(self) -> SessionLock | None:
        start = encode(0, time.time_ns() // 1_000_000, first_record(self._id, self._cwd))
        return create_directory(
            self._calls,
            self._directory,
            self._id,
            lambda directory: write_new_file(self._calls, directory / LOG_NAME, [start]),
        )

    # --- reading and mending -------------------------------------------------------------------------------

    def _mend(self, lock: SessionLock, fd: int, *, created: bool, strict: bool) -> Opened:
        reading = self._read(fd, whole=created or strict)
        reader = reading.reader
        too_new = reader.state.too_new
        if too_new is not None:
            self._calls.close(fd)
            lock.close()
            report = open_report(reader, read_only=too_new)
            return Opened(self._directory, reader.state, report, None, None)
        if strict and (error := corruption(reader, self._id)) is not None:
            raise error
        files = self._copy_aside(fd, reading.damage)
        self._cut_torn_end(fd, reader)
        report = open_report(reader, created=created, files=files)
        file = files[0] if len(files) == 1 else f"{DAMAGED_NAME}/" if files else ""
        saver = saver_of(
            reading, self._fold, self._calls, self._directory, after_bytes=self._save_after_bytes
        )
        admitted = mend(reader, implied_start(self._id, self._cwd), file=file, fold=self._fold)
        assert reader.scanner.end_offset is not None
        sink = FileSink(self._calls, self._directory / LOG_NAME, fd, reader.scanner.end_offset)
        newline = b"\n" if reader.scanner.unterminated else b""
        if newline or admitted.data:
            sink.commit(newline + admitted.data, sync=True)
        if saver is not None:
            saver.took(admitted.data)
        return Opened(self._directory, reader.state, report, sink, lock, saver)

    def _read(self, fd: int, *, whole: bool) -> LogReading:
        def pieces(start: int, end: int) -> Iterator[bytes]:
            for piece in read_range(self._calls, fd, start, end, PIECE_BYTES):
                if self._cancelled.is_set():
                    raise CancelledOpeningError
                yield piece

        log, reading = LogBytes(self._calls.size(fd), pieces), None
        if not whole and isinstance(self._fold, SavingFold):
            reading = read_behind_checkpoint(self._calls, self._directory, log, self._id, self._fold)
        return reading or read_whole(log, self._id, self._fold)

    def _copy_aside(self, fd: int, damage: list[Damage]) -> tuple[str, ...]:
        """Copy each damaged place that has no copy yet; their names, relative to the session's directory."""
        directory = self._directory / DAMAGED_NAME
        files = []
        for place in damage:
            name = f"{place.offset:012d}-{place.digest}.bin"
            if place.length and not (directory / name).exists():
                self._calls.make_directory(directory)
                write_new_file(self._calls, directory / name, self._pieces_of(fd, place))
                files.append(f"{DAMAGED_NAME}/{name}")
        if files:
            self._calls.sync_directory(directory)
            self._calls.sync_directory(self._directory)
        return tuple(files)

    def _pieces_of(self, fd: int, place: Damage) -> Iterator[bytes]:
        return read_range(self._calls, fd, place.offset, place.offset + place.length, PIECE_BYTES)

    def _cut_torn_end(self, fd: int, reader: LogReader) -> None:
        end = reader.scanner.end_offset
        assert end is not None
        if self._calls.size(fd) > end:
            self._calls.truncate(fd, end)


def no_session(session_id: str, where: Path) -> CallerError:
    return CallerError(
        f"there is no session {session_id!r} in {where}; `lockstitch sessions list` shows what is"
    )

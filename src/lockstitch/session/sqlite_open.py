"""Opening one session of a database: find or make, lock, read, mend."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from lockstitch.schema.errors import LockstitchError
from lockstitch.wire.jsonl import encode

from .committer import Committer
from .file_calls import FileCalls
from .file_open import no_session
from .lock import SessionLock, acquire
from .log_reader import Fold, LogReader
from .log_reading import LogBytes, LogReading, read_behind_checkpoint, read_whole, saver_of
from .mending import corruption, first_record, implied_start, mend, open_report
from .names import directory_name
from .saving import SAVE_AFTER_BYTES, SavingFold
from .scan import PIECE_BYTES
from .sqlite_database import SqliteFile
from .sqlite_log import (
    PieceSink,
    SqliteBlobs,
    close_gaps,
    copy_aside,
    cut,
    find,
    insert,
    make,
    read_range,
    size_of,
)
from .store import SessionLog


class CancelledOpeningError(LockstitchError):
    """Nobody waits for this opening any more."""


class SqliteOpening:
    """One try to open a session, made in a worker thread; ``cancel`` ends it from another."""

    def __init__(
        self,
        file: SqliteFile,
        locks: Path,
        session_id: str,
        *,
        cwd: str,
        fold: Fold | None,
        committer: Committer,
        save_after_bytes: int = SAVE_AFTER_BYTES,
    ) -> None:
        self._file = file
        self._lock_directory = locks / directory_name(session_id)
        self._id = session_id
        self._cwd = cwd
        self._fold = fold
        self._committer = committer
        self._save_after_bytes = save_after_bytes
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def view(self) -> SessionLog:
        """Read the session as it lies there, maybe while another process writes it."""
        number = self._number()
        reader = self._read(number, whole=True).reader
        return self._shown(reader, number, reader.state.too_new or "it was opened read-only")

    def read(self) -> LogReader:
        """Read the log through ``fold``. Raises CallerError if there is no such session."""
        return self._read(self._number(), whole=True).reader

    def write(self, *, create: bool, strict: bool) -> SessionLog:
        """Open the session for its one writer."""
        if not create:
            self._number()
        FileCalls().make_directory(self._lock_directory)
        lock = acquire(self._lock_directory, self._id)
        try:
            number, created = self._file.write(self._find_or_make)
            reading = self._read(number, whole=created or strict)
            reader = reading.reader
            if (too_new := reader.state.too_new) is not None:
                lock.close()
                return self._shown(reader, number, too_new)
            if strict and (error := corruption(reader, self._id)) is not None:
                raise error
            return self._mended(reading, number, lock, created=created)
        except BaseException:
            lock.close()
            raise

    def _shown(self, reader: LogReader, number: int, reason: str) -> SessionLog:
        report = open_report(reader, read_only=reason)
        blobs = SqliteBlobs(self._file, number)
        return SessionLog(self._id, path=None, state=reader.state, report=report, blobs=blobs)

    def _number(self) -> int:
        with self._file.reading() as connection:
            number = find(connection, self._id)
        if number is None:
            raise no_session(self._id, self._file.path)
        return number

    def _find_or_make(self, connection: apsw.Connection) -> tuple[int, bool]:
        number = find(connection, self._id)
        if number is not None:
            close_gaps(connection, number)
            return number, False
        number = make(connection, self._id, self._cwd)
        start = encode(0, time.time_ns() // 1_000_000, first_record(self._id, self._cwd))
        connection.execute("INSERT INTO pieces VALUES (?, 0, ?)", (number, start))
        return number, True

    def _read(self, number: int, *, whole: bool) -> LogReading:
        with self._file.reading() as connection:
            assert connection is not None

            def pieces(start: int, end: int) -> Iterator[bytes]:
                for piece in _joined(read_range(connection, number, start, end)):
                    if self._cancelled.is_set():
                        raise CancelledOpeningError
                    yield piece

            log, reading = LogBytes(size_of(connection, number), pieces), None
            if not whole and isinstance(self._fold, SavingFold):
                calls = FileCalls()
                reading = read_behind_checkpoint(calls, self._lock_directory, log, self._id, self._fold)
            return reading or read_whole(log, self._id, self._fold)

    def _mended(self, reading: LogReading, number: int, lock: SessionLock, *, created: bool) -> SessionLog:
        reader, damage = reading.reader, reading.damage
        end = reader.scanner.end_offset
        assert end is not None
        report = open_report(reader, created=created)
        saver = saver_of(
            reading, self._fold, FileCalls(), self._lock_directory, after_bytes=self._save_after_bytes
        )
        added = mend(reader, implied_start(self._id, self._cwd), file="", fold=self._fold).data
        if reader.scanner.unterminated:
            added = b"\n" + added
        sink = PieceSink(self._file, number, end)
        places = [place for place in damage if place.length]
        if places or added:

            def change(connection: apsw.Connection) -> None:
                copy_aside(connection, number, places)
                cut(connection, number, end)
                insert(connection, sink, added)

            self._file.write(change)
            sink.end += len(added)
        if saver is not None:
            saver.took(added)
        return SessionLog(
            self._id,
            path=None,
            state=reader.state,
            report=report,
            blobs=SqliteBlobs(self._file, number),
            committer=self._committer,
            sink=sink,
            saver=saver,
            release=lock.close,
        )


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces: a commit's are some records, and reading costs something a piece."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)

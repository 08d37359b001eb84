"""Opening one session of a database: find or make, lock, read, mend."""

import threading
import time
from pathlib import Path

import apsw

from lockstitch.schema.errors import LockstitchError
from lockstitch.wire.jsonl import encode

from .committer import Committer
from .file_calls import FileCalls
from .file_open import no_session
from .lock import SessionLock, acquire
from .log_reader import Fold, LogReader
from .mending import corruption, first_record, implied_start, mend, open_report
from .names import directory_name
from .scan import Damage
from .sqlite_database import SqliteFile
from .sqlite_log import PieceSink, SqliteBlobs, copy_aside, cut, find, insert, make, read_pieces
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
    ) -> None:
        self._file = file
        self._lock_directory = locks / directory_name(session_id)
        self._id = session_id
        self._cwd = cwd
        self._fold = fold
        self._committer = committer
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def view(self) -> SessionLog:
        """Read the session as it lies there, maybe while another process writes it."""
        number = self._number()
        reader, _ = self._read(number)
        return self._shown(reader, number, reader.state.too_new or "it was opened read-only")

    def read(self) -> LogReader:
        """Read the log through ``fold``. Raises CallerError if there is no such session."""
        return self._read(self._number())[0]

    def write(self, *, create: bool, strict: bool) -> SessionLog:
        """Open the session for its one writer."""
        if not create:
            self._number()
        FileCalls().make_directory(self._lock_directory)
        lock = acquire(self._lock_directory, self._id)
        try:
            number, created = self._file.write(self._find_or_make)
            reader, damage = self._read(number)
            if (too_new := reader.state.too_new) is not None:
                lock.close()
                return self._shown(reader, number, too_new)
            if strict and (error := corruption(reader, self._id)) is not None:
                raise error
            return self._mended(reader, damage, number, lock, created=created)
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
            return number, False
        number = make(connection, self._id, self._cwd)
        start = encode(0, time.time_ns() // 1_000_000, first_record(self._id, self._cwd))
        connection.execute("INSERT INTO pieces VALUES (?, 0, ?)", (number, start))
        return number, True

    def _read(self, number: int) -> tuple[LogReader, list[Damage]]:
        """The log's reader at its end, and all damage in order."""
        reader = LogReader(self._id, self._fold)
        damage: list[Damage] = []
        with self._file.reading() as connection:
            assert connection is not None
            for data in read_pieces(connection, number):
                if self._cancelled.is_set():
                    raise CancelledOpeningError
                damage += reader.feed(data)
        return reader, damage + reader.end()

    def _mended(
        self, reader: LogReader, damage: list[Damage], number: int, lock: SessionLock, *, created: bool
    ) -> SessionLog:
        end = reader.scanner.end_offset
        assert end is not None
        report = open_report(reader, created=created)
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
        return SessionLog(
            self._id,
            path=None,
            state=reader.state,
            report=report,
            blobs=SqliteBlobs(self._file, number),
            committer=self._committer,
            sink=sink,
            release=lock.close,
        )

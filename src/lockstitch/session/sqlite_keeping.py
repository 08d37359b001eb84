"""Housekeeping of sessions in a database: whole logs in and out, the trash, rewriting behind a copy."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from lockstitch.schema.errors import CallerError

from .blobs import source_of
from .checkpoint_file import remove_checkpoint
from .file_calls import FileCalls
from .file_open import no_session
from .lock import acquire
from .names import directory_name
from .sqlite_database import SqliteFile
from .sqlite_log import find, make, read_pieces, touch


class SqliteKeeping:
    """The sessions of one database; every method waits for the disk, and may raise StorageError."""

    def __init__(self, file: SqliteFile, locks: Path) -> None:
        self._file = file
        self._locks = locks

    def copy(self, session_id: str, take: Callable[[bytes], None]) -> None:
        directory_name(session_id)
        with self._file.reading() as connection:
            number = find(connection, session_id)
            if connection is None or number is None:
                raise no_session(session_id, self._file.path)
            for piece in read_pieces(connection, number):
                take(piece)

    def put(self, session_id: str, log: Iterable[bytes], blobs: Iterable[bytes]) -> None:
        directory_name(session_id)

        def change(connection: apsw.Connection) -> None:
            if find(connection, session_id) is not None:
                raise CallerError(
                    f"there is a session {session_id!r} already: choose another id, or remove it"
                )
            number = make(connection, session_id, "")
            _write_pieces(connection, number, log)
            for data in blobs:
                row = (number, source_of(data).sha256, data)
                connection.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)", row)

        self._file.write(change)

    def rewrite(self, session_id: str, log: Iterable[bytes]) -> str:
        pieces = list(log)  # it may read this very database, which the transaction below would keep waiting

        def change(connection: apsw.Connection) -> str:
            number = self._found(connection, session_id)
            old = b"".join(read_pieces(connection, number))
            now = time.time_ns() // 1_000_000
            connection.execute(
                "INSERT INTO backups (session, time_ms, data) VALUES (?, ?, ?)", (number, now, old)
            )
            backup = connection.last_insert_rowid()
            connection.execute("DELETE FROM pieces WHERE session = ?", (number,))
            _write_pieces(connection, number, pieces)
            touch(connection, number)
            return f"backup {backup} in {self._file.path}"

        with self._locked(session_id) as directory:
            remove_checkpoint(FileCalls(), directory)
            return self._file.write(change)

    def remove(self, session_id: str) -> str:
        def change(connection: apsw.Connection) -> None:
            number = self._found(connection, session_id)
            now = time.time_ns() // 1_000_000
            connection.execute("UPDATE sessions SET trashed_ms = ? WHERE number = ?", (now, number))

        with self._locked(session_id) as directory:
            remove_checkpoint(FileCalls(), directory)  # it must not outlive the session, which may be purged
            self._file.write(change)
        return f"the trash of {self._file.path}"

    def restore(self, session_id: str) -> None:
        def change(connection: apsw.Connection) -> None:
            query = (
                "SELECT number FROM sessions WHERE id = ? AND trashed_ms NOT NULL ORDER BY trashed_ms, number"
            )
            found = connection.execute(query, (session_id,)).fetchall()
            if not found:
                raise CallerError(f"there is no session {session_id!r} in the trash of {self._file.path}")
            if find(connection, session_id) is not None:
                raise CallerError(f"there is a session {session_id!r} again: remove it first")
            connection.execute("UPDATE sessions SET trashed_ms = NULL WHERE number = ?", found[-1])

        directory_name(session_id)
        self._file.write(change)

    def purge(self) -> int:
        def change(connection: apsw.Connection) -> int:
            connection.execute("DELETE FROM sessions WHERE trashed_ms NOT NULL")
            return connection.changes()

        return self._file.write(change)

    def _found(self, connection: apsw.Connection, session_id: str) -> int:
        number = find(connection, session_id)
        if number is None:
            raise no_session(session_id, self._file.path)
        return number

    @contextmanager
    def _locked(self, session_id: str) -> Iterator[Path]:
        """Hold the session's lock; the directory where that is.

        Raises SessionBusyError; CallerError for an unknown session.
        """
        directory = self._locks / directory_name(session_id)
        with self._file.reading() as connection:
            if find(connection, session_id) is None:
                raise no_session(session_id, self._file.path)
        FileCalls().make_directory(directory)
        lock = acquire(directory, session_id)
        try:
            yield directory
        finally:
            lock.close()


def _write_pieces(connection: apsw.Connection, number: int, log: Iterable[bytes]) -> None:
    start = 0
    for piece in log:
        if piece:
            connection.execute("INSERT INTO pieces VALUES (?, ?, ?)", (number, start, piece))
            start += len(piece)

"""The index's SQLite file: everything in it can be made again from the logs, and is when it is damaged."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeVar

import apsw

from .file_calls import FileCalls

INDEX_VERSION: Final = 6
"""Of the tables and of what is put into them. Another one in the file: it is made anew."""
_BUSY_MS: Final = 3_000

_SCHEMA: Final = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    -- What a listing shows, so that ten thousand of them are decoded at once.
    info BLOB NOT NULL,
    stamp INTEGER,
    fingerprint TEXT NOT NULL,
    cwd TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    dirty INTEGER NOT NULL
) STRICT;
-- Holds all that a listing asks of each session, in its order: looking up or sorting the rows of ten thousand
-- takes longer than everything else that a listing does.
CREATE INDEX latest_sessions ON sessions (updated_ms DESC, key, dirty, stamp, fingerprint, info);
CREATE TABLE facts (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    facts BLOB NOT NULL
) STRICT;
CREATE TABLE texts (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    kind TEXT NOT NULL
) STRICT;
CREATE INDEX texts_by_session ON texts (session);
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER words_of_text AFTER DELETE ON texts BEGIN DELETE FROM words WHERE rowid = old.number; END;
"""

T = TypeVar("T")


class IndexFile:
    """One file, used by any thread; operations run one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None

    def run(self, work: Callable[[apsw.Connection], T], *, write: bool = False) -> T:
        """Do ``work`` in one transaction; a file that turns out to be no index is made anew.

        Without ``write`` it only reads, and sees one state whatever other processes write meanwhile.

        Raises apsw.Error if it cannot be used now, OSError if its place cannot be.
        """
        with self._lock:
            try:
                return self._run(work, write=write)
            except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError):
                self._discard()
                return self._run(work, write=write)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _run(self, work: Callable[[apsw.Connection], T], *, write: bool) -> T:
        connection = self._connected()
        try:
            with _transaction(connection, "IMMEDIATE" if write else "DEFERRED"):
                return work(connection)
        except BaseException:
            self._disconnect()
            raise

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            connection = _connect(self.path)
            if connection is None:
                self._discard()
                connection = _connect(self.path)
            if connection is None:
                raise apsw.CantOpenError(f"{self.path} is no index even after it was made anew")
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)

    def _discard(self) -> None:
        self._disconnect()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> apsw.Connection | None:
    """A connection with the tables of this version; None if the file has others."""
    FileCalls().make_directory(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        # The pages written last may be lost with the power, and then the file is made anew: no syncs.
        connection.pragma("synchronous", "off")
        connection.pragma("journal_mode", "wal")
        connection.pragma("foreign_keys", True)
        with _transaction(connection, "IMMEDIATE"):
            if connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
                connection.execute(_SCHEMA)
                connection.pragma("user_version", INDEX_VERSION)
        if connection.pragma("user_version") == INDEX_VERSION:
            return connection
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError):
        pass  # it has other bytes than an index: made anew like one of another version
    except BaseException:
        connection.close(True)
        raise
    connection.close(True)
    return None


@contextmanager
def _transaction(connection: apsw.Connection, kind: Literal["IMMEDIATE", "DEFERRED"]) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")

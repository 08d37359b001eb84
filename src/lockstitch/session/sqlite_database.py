"""One SQLite file that holds sessions: its tables, its connections and transactions, its errors for callers.

Nothing but apsw may open the file in a process that uses it here: two copies of SQLite in one process break
each other's locks (https://www.sqlite.org/howtocorrupt.html#_multiple_copies_of_sqlite_linked_into_the_same_application,
read 2026-11-30).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import apsw

from lockstitch.schema.errors import CallerError, StorageError

from .file_calls import FileCalls

APPLICATION_ID: Final = 0x4C53_5431
"""``LST1``: tells the file from other databases."""
SCHEMA_VERSION: Final = 1
BUSY_MS: Final = 10_000
"""How long a write waits for another process's; each holds the file for a few milliseconds."""
_SPARE_READERS: Final = 4  # connections kept open between readings

T = TypeVar("T")

_SCHEMA: Final = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    cwd TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    trashed_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX live_sessions ON sessions (id) WHERE trashed_ms IS NULL;
-- A log is the concatenation of its pieces, byte for byte what the file store keeps in log.jsonl.
CREATE TABLE pieces (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    start INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, start)
) STRICT;
CREATE TABLE damaged (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    start INTEGER NOT NULL,
    digest TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, start, digest)
) STRICT;
-- Logs as they were before they were rewritten.
CREATE TABLE backups (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    time_ms INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE blobs (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, sha256)
) STRICT;
"""


class SqliteFile:
    """The database of a store. Its methods may be called from any thread."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Without ``durable`` a commit does not wait for the disk: for tests and what can be made again."""
        self.path = path
        self._durable = durable
        self._writing = threading.Lock()
        self._writer: apsw.Connection | None = None
        self._spare: list[apsw.Connection] = []
        self._identity: tuple[int, int] | None = None
        """Of the file that the connections are to."""
        self.generation = 0
        """Counts how often another file was found in its place."""

    def write(self, change: Callable[[apsw.Connection], T]) -> T:
        """Run ``change`` in a transaction that is durable on return, or was not made. Raises StorageError."""
        with self._writing, told(self.path):
            self._notice_another_file()
            writer, self._writer = self._writer, None  # in whatever state an error leaves it, it is given up
            if writer is None:
                writer = connect(self.path, create=True, durable=self._durable)
                assert writer is not None  # its tables were made if there were none
                self._identity = identity_of(self.path)
            try:
                writer.execute("BEGIN IMMEDIATE")
                result = change(writer)
                writer.execute("COMMIT")
            except BaseException:
                writer.close(True)
                raise
            self._writer = writer
            return result

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection | None]:
        """A connection that nobody else uses meanwhile; None while there is no database."""
        generation = self.generation
        try:
            connection = self._spare.pop()
        except IndexError:
            connected = (
                connect(self.path, create=False, durable=self._durable) if self.path.exists() else None
            )
            if connected is None:
                yield None
                return
            connection = connected
        try:
            yield connection
        except BaseException:
            connection.close(True)
            raise
        if len(self._spare) < _SPARE_READERS and generation == self.generation:
            self._spare.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        with self._writing:
            self._disconnect()

    def _notice_another_file(self) -> None:
        """SQLite goes on writing a file that was removed, or replaced by a copy: nobody finds that again."""
        if self._identity is not None and self._identity != identity_of(self.path):
            self._identity = None
            self.generation += 1
            self._disconnect()

    def _disconnect(self) -> None:
        writer, self._writer = self._writer, None
        spare, self._spare = self._spare, []
        for connection in [*spare, *([writer] if writer else [])]:
            connection.close()


def identity_of(path: Path) -> tuple[int, int] | None:
    """Tells a file from another in its place; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def connect(path: Path, *, create: bool, durable: bool = True) -> apsw.Connection | None:
    """A connection for one thread at a time, with the tables made if ``create``; None if there are none.

    Raises apsw.Error, OSError; CallerError for a file that is no store of this version.
    """
    if create and not path.exists():
        FileCalls().make_directory(path.parent)
        # SQLite gives its journal the mode of the database, so one private file makes them all private.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MS)
        if create:
            _make_tables(connection)
        elif connection.pragma("user_version") == 0 and not _tables(connection):
            connection.close()
            return None
        _prepare(connection, path)
        # In WAL mode only FULL syncs at each commit; an acknowledged event must survive a loss of power.
        connection.pragma("synchronous", "full" if durable else "off")
    except BaseException:
        connection.close(True)
        raise
    return connection


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Errors of the database and the file system inside of the block become errors for callers."""
    try:
        yield
    except apsw.Error as error:
        raise StorageError(
            f"{path}: {error}. Nothing acknowledged is lost; try again when the fault has ended"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}; try again when the fault has ended"
        ) from error


def _make_tables(connection: apsw.Connection) -> None:
    """Put the tables into an empty file; any other is left as it is."""
    if connection.pragma("user_version") != 0:
        return
    connection.execute("BEGIN IMMEDIATE")  # of several processes one makes them, and the others wait
    if not _tables(connection):
        connection.execute(_SCHEMA)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
    connection.execute("COMMIT")


def _prepare(connection: apsw.Connection, path: Path) -> None:
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION_ID or version != SCHEMA_VERSION:
        raise CallerError(
            f"{path} is no session store of this version (schema {version}, expected {SCHEMA_VERSION}); "
            "name another file, or use the Lockstitch that made it"
        )
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    connection.pragma("foreign_keys", True)
    connection.pragma("trusted_schema", False)


def _tables(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_schema").get)

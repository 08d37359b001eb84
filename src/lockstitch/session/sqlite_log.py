"""A log in a database: the file's bytes in pieces, each the appends of one commit."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from lockstitch.schema.blocks import BlobSource
from lockstitch.schema.errors import StorageError

from .blobs import checked_name, lost, source_of, verified
from .index import Facts
from .lock import owner
from .names import directory_name
from .scan import Damage
from .sqlite_database import SqliteFile, told

_PLACE_AGAIN: Final = """
UPDATE pieces SET start = -1 - due FROM (
    SELECT rowid AS piece,
        sum(length(data)) OVER (ORDER BY start ROWS UNBOUNDED PRECEDING) - length(data) AS due
    FROM pieces WHERE session = ?
) WHERE rowid = piece
"""
"""To places that no piece has: below zero, from where all are turned about."""


class PieceSink:
    """The end of one log; the store's committer writes for it, all logs in one transaction."""

    def __init__(self, file: SqliteFile, number: int, end: int) -> None:
        self.number = number
        """Of the session, in its database."""
        self.end = end
        """Length of the log in bytes."""
        self._file = file
        self._generation = file.generation

    def commit(self, data: bytes, *, sync: bool) -> None:
        """See ``committer.Sink``."""
        self._file.write(lambda connection: insert(connection, self, data))
        self.end += len(data)

    def require_unchanged(self) -> None:
        """Raises StorageError if this log was of another file than the one that is there now."""
        if self._generation != self._file.generation:
            raise StorageError(
                f"{self._file.path} was removed, or another file was put in its place, while the session was "
                "open here. What was said since then is not kept: close the session, and open it again"
            )

    def close(self) -> None:
        """The database is the store's to close."""


class SqliteBlobs:
    """One session's blobs in its store's database."""

    def __init__(self, file: SqliteFile, number: int) -> None:
        self._file = file
        self._number = number

    def put(self, data: bytes) -> BlobSource:
        source = source_of(data)
        row = (self._number, source.sha256, data)
        query = "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)"
        self._file.write(lambda connection: connection.execute(query, row))
        return source

    def get(self, sha256: str) -> bytes:
        where = (self._number, checked_name(sha256))
        query = "SELECT data FROM blobs WHERE session = ? AND sha256 = ?"
        with told(self._file.path), self._file.reading() as connection:
            data = None if connection is None else connection.execute(query, where).get
        if data is None:
            raise lost(sha256, f"it is not in {self._file.path}")
        return verified(data, sha256)

    def names(self) -> list[str]:
        query = "SELECT sha256 FROM blobs WHERE session = ? ORDER BY sha256"
        with told(self._file.path), self._file.reading() as connection:
            rows = () if connection is None else connection.execute(query, (self._number,)).fetchall()
        return [str(name) for (name,) in rows]

    def place(self, sha256: str) -> str:
        return f"blob {checked_name(sha256)} in {self._file.path}"


class SqliteSource:
    """One session, as the index looks at it. See ``listing.Source``."""

    def __init__(self, file: SqliteFile, locks: Path, session_id: str) -> None:
        self._file = file
        self._locks = locks
        self._id = session_id

    def fresh(self) -> Facts:
        return Facts(self._id, str(self._file.path))

    def exists(self) -> bool:
        return True

    def state(self) -> tuple[str, int]:
        rewritten = "SELECT count(*) FROM backups WHERE session = ?"
        with told(self._file.path), self._file.reading() as connection:
            number = find(connection, self._id)
            if connection is None or number is None:
                return "", 0
            times = connection.execute(rewritten, (number,)).get
            return f"{number}.{times}", size_of(connection, number)

    def fingerprint(self) -> str:
        return ""  # the time of its last change is the stamp

    def read(self, offset: int) -> Iterator[bytes]:
        with told(self._file.path), self._file.reading() as connection:
            number = find(connection, self._id)
            if connection is not None and number is not None:
                yield from read_range(connection, number, offset, 2**62)

    def busy(self) -> bool:
        return owner(self._locks / directory_name(self._id)) is not None


def find(connection: apsw.Connection | None, session_id: str) -> int | None:
    """The number of a session that is not in the trash."""
    query = "SELECT number FROM sessions WHERE id = ? AND trashed_ms IS NULL"
    number = None if connection is None else connection.execute(query, (session_id,)).get
    return None if number is None else int(number)


def make(connection: apsw.Connection, session_id: str, cwd: str) -> int:
    """A new session without a log; its number."""
    now = time.time_ns() // 1_000_000
    row = (session_id, cwd, now, now)
    connection.execute("INSERT INTO sessions (id, cwd, created_ms, updated_ms) VALUES (?, ?, ?, ?)", row)
    return connection.last_insert_rowid()


def read_pieces(connection: apsw.Connection, number: int) -> Iterator[bytes]:
    """The bytes of a log, in order."""
    query = "SELECT data FROM pieces WHERE session = ? ORDER BY start"
    for (data,) in connection.execute(query, (number,)):
        yield data


def insert(connection: apsw.Connection, sink: PieceSink, data: bytes) -> None:
    """Append ``data``; the caller moves ``sink.end`` once the transaction is made. Raises StorageError."""
    sink.require_unchanged()
    if data:
        connection.execute("INSERT INTO pieces VALUES (?, ?, ?)", (sink.number, sink.end, data))
        touch(connection, sink.number)


def touch(connection: apsw.Connection, number: int) -> None:
    """Note that the log changed; the index takes the time for its stamp, so it always grows."""
    query = "UPDATE sessions SET updated_ms = max(?, updated_ms + 1) WHERE number = ?"
    connection.execute(query, (time.time_ns() // 1_000_000, number))


def copy_aside(connection: apsw.Connection, number: int, places: Sequence[Damage]) -> None:
    """Keep the bytes of each damaged place that has no copy yet."""
    for place in places:
        data = b"".join(read_range(connection, number, place.offset, place.offset + place.length))
        row = (number, place.offset, place.digest, data)
        connection.execute("INSERT OR IGNORE INTO damaged VALUES (?, ?, ?, ?)", row)


def cut(connection: apsw.Connection, number: int, end: int) -> None:
    """Take away what lies behind the byte ``end`` of the log."""
    connection.execute("DELETE FROM pieces WHERE session = ? AND start >= ?", (number, end))
    connection.execute(
        "UPDATE pieces SET data = substr(data, 1, ?2 - start) "
        "WHERE session = ?1 AND start < ?2 AND start + length(data) > ?2",
        (number, end),
    )


def size_of(connection: apsw.Connection, number: int) -> int:
    """Bytes of a log."""
    size = "SELECT coalesce(max(start + length(data)), 0) FROM pieces WHERE session = ?"
    return int(connection.execute(size, (number,)).get or 0)


def close_gaps(connection: apsw.Connection, number: int) -> None:
    """Put each piece behind the one before, where a damaged database has lost one, or has one misplaced.

    A log is its pieces in their order, and its bytes are counted in that; were the next one put where the
    count says, it would come before those that lie behind a gap.
    """
    due = 0
    pieces = "SELECT start, length(data) FROM pieces WHERE session = ? ORDER BY start"
    for start, size in connection.execute(pieces, (number,)):
        if start != due or not size:
            break
        due += size
    else:
        return
    connection.execute("DELETE FROM pieces WHERE session = ? AND length(data) = 0", (number,))
    connection.execute(_PLACE_AGAIN, (number,))
    connection.execute("UPDATE pieces SET start = -1 - start WHERE session = ?", (number,))


def read_range(connection: apsw.Connection, number: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a log from one place to another, in its pieces."""
    query = (
        "SELECT start, data FROM pieces "
        "WHERE session = ?1 AND start < ?3 AND start + length(data) > ?2 ORDER BY start"
    )
    for begin, data in connection.execute(query, (number, start, end)):
        yield data[max(start - begin, 0) : end - begin]

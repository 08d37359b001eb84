"""Every store of sessions passes one suite."""

from functools import cached_property
from pathlib import Path

import apsw
import pytest

from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_store import FileStore
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.names import directory_name
from lockstitch.session.sqlite_database import connect
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.testing.store_suite import StoreSuite


class Unsynced(FileCalls):
    """Thousands of openings in a test need no disk that spins."""

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


class Directories:
    def __init__(self, root: Path) -> None:
        self.root = root

    def store(self) -> FileStore:
        return FileStore(self.root, calls=Unsynced())

    def read_log(self, session_id: str) -> bytes:
        return self._path(session_id).read_bytes()

    def write_log(self, session_id: str, data: bytes) -> None:
        self._path(session_id).write_bytes(data)

    def _path(self, session_id: str) -> Path:
        return self.root / directory_name(session_id) / "log.jsonl"


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = "(SELECT number FROM sessions WHERE id = ?)"

    def store(self) -> SqliteStore:
        return SqliteStore(self.path, durable=False)

    def read_log(self, session_id: str) -> bytes:
        query = f"SELECT data FROM pieces WHERE session = {self._number} ORDER BY start"
        return b"".join(data for (data,) in self._connection.execute(query, (session_id,)))

    def write_log(self, session_id: str, data: bytes) -> None:
        with self._connection as connection:
            connection.execute(f"DELETE FROM pieces WHERE session = {self._number}", (session_id,))
            for start in range(0, len(data), 1000):
                piece = (session_id, start, data[start : start + 1000])
                connection.execute(f"INSERT INTO pieces VALUES ({self._number}, ?, ?)", piece)

    @cached_property
    def _connection(self) -> apsw.Connection:
        return connect(self.path, create=False, durable=False)


class Memory:
    def __init__(self) -> None:
        self._store = MemoryStore()

    def store(self) -> MemoryStore:
        return self._store

    def read_log(self, session_id: str) -> bytes:
        return self._store.read_log(session_id)

    def write_log(self, session_id: str, data: bytes) -> None:
        self._store.write_log(session_id, data)


class TestFileStore(StoreSuite):
    byte_step = 3

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Directories:
        return Directories(tmp_path / "sessions")


class TestSqliteStore(StoreSuite):
    byte_step = 7

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Database:
        return Database(tmp_path / "deep" / "sessions.db")


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def stored(self) -> Memory:
        return Memory()

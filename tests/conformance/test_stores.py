"""Every store of sessions passes one suite."""

import pickle
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import apsw
import pytest

from lockstitch.schema.events import Body, Event
from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_store import FileStore
from lockstitch.session.log_reader import Fold
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.names import directory_name
from lockstitch.session.sqlite_database import connect
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionLog
from lockstitch.testing.session_samples import every_kind
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


class Replaying:
    """A fold that is saved: it keeps the events, so that whoever opens a session gets all of them."""

    version = "events"
    restored = 0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.events: list[Event] = []
        self.next_seq = 0

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.next_seq = event.seq + 1

    def save(self) -> Callable[[], bytes]:
        events = list(self.events)
        return lambda: zlib.compress(pickle.dumps(events))

    def restore(self, data: bytes | memoryview, next_seq: int) -> None:
        self.events = pickle.loads(zlib.decompress(data))
        self.next_seq = next_seq
        Replaying.restored += 1


class Saved:
    """Mixed into a store: gives every opening a fold that is saved as often as it can be."""

    async def open(self, session_id: str, *, fold: Fold | None = None, **options: Any) -> SessionLog:
        replaying = Replaying()
        log: SessionLog = await super().open(session_id, fold=replaying, **options)  # type: ignore[misc]
        for event in replaying.events if fold is not None else ():
            fold(event)
        append = log.append

        def folded(*bodies: Body, time_ms: int | None = None) -> tuple[Event, ...]:
            taken = append(*bodies, time_ms=time_ms)
            for event in taken:
                replaying(event)
            return taken

        log.append = folded  # type: ignore[method-assign]  # on this one object
        return log


class SavedFiles(Saved, FileStore):
    pass


class SavedInDatabase(Saved, SqliteStore):
    pass


class SavedDirectories(Directories):
    def store(self) -> FileStore:
        return SavedFiles(self.root, calls=Unsynced(), index=False, save_after_bytes=1)


class SavedDatabase(Database):
    def store(self) -> SqliteStore:
        return SavedInDatabase(self.path, durable=False, save_after_bytes=1)


class SavedSuite(StoreSuite):
    """Logs are cut, damaged and replaced beside checkpoints of what they were before."""

    async def test_here_they_are_used(self, stored: SavedDirectories | SavedDatabase) -> None:
        store = stored.store()
        log = await store.open("s")
        log.append(*every_kind())
        await log.close()
        before = Replaying.restored
        await (await store.open("s")).close()
        await store.close()
        assert Replaying.restored == before + 1


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


class TestFileStoreWithCheckpoints(SavedSuite):
    byte_step = 3

    @pytest.fixture
    def stored(self, tmp_path: Path) -> SavedDirectories:
        return SavedDirectories(tmp_path / "sessions")


class TestSqliteStore(StoreSuite):
    byte_step = 7

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Database:
        return Database(tmp_path / "deep" / "sessions.db")


class TestSqliteStoreWithCheckpoints(SavedSuite):
    byte_step = 7

    @pytest.fixture
    def stored(self, tmp_path: Path) -> SavedDatabase:
        return SavedDatabase(tmp_path / "deep" / "sessions.db")


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def stored(self) -> Memory:
        return Memory()

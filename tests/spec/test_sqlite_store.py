"""The SQLite store where files and processes are."""

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from lockstitch.schema.errors import CallerError, SessionBusyError, StorageError
from lockstitch.schema.events import Event, Title
from lockstitch.session import sqlite_store
from lockstitch.session.choose import choose_store
from lockstitch.session.sqlite_database import SqliteFile
from lockstitch.session.sqlite_log import PieceSink
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.testing.session_samples import a_tool_turn


async def test_nobody_else_can_read_the_sessions(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "home" / "s.db")
    log = await store.open("s")
    log.append(*a_tool_turn(1))
    await log.flush()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*")}
    await log.close()
    await store.close()
    assert modes == {
        "s.db": 0o600,
        "s.db-wal": 0o600,
        "s.db-shm": 0o600,
        "s.db-locks": 0o700,
        "s": 0o700,
        "lock": 0o600,
    }
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


async def test_one_file_holds_all_sessions_and_many_logs_share_a_transaction(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    logs = [await store.open(f"s{number}") for number in range(20)]
    for _ in range(3):
        for log in logs:
            log.append(Title(log.id))
        await asyncio.gather(*(log.flush() for log in logs))
    for log in logs:
        await log.close()
    assert {info.id for info in await store.list()} == {log.id for log in logs}
    for log in logs:
        events: list[Event] = []
        await store.open(log.id, read_only=True, fold=events.append)
        assert [event.body for event in events[1:]] == [Title(log.id)] * 3
    await store.close()


OTHERS = {
    "a text file": b"hello\n" * 500,
    "an empty database of another program": None,
}


@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS)
async def test_a_file_of_another_kind_is_not_touched(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    if content is None:
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE mine (x)")
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    store = SqliteStore(path)
    for attempt in (store.open("s"), store.list(), store.check("s")):
        with pytest.raises((CallerError, StorageError)):
            await attempt
    await store.close()
    assert path.read_bytes() == before


async def test_a_store_of_a_newer_version_is_refused_with_one_clear_line(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await (await store.open("s")).close()
    await store.close()
    connection = apsw.Connection(str(tmp_path / "s.db"))
    connection.pragma("user_version", 2)
    connection.close()
    with pytest.raises(CallerError, match="schema 2, expected 1"):
        await SqliteStore(tmp_path / "s.db").open("s")


HOLDER = """
import asyncio, sys
from pathlib import Path
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.schema.events import Title

async def hold():
    log = await SqliteStore(Path(sys.argv[1])).open("s")
    log.append(Title("theirs"))
    await log.flush()
    print("open", flush=True)
    await asyncio.sleep(60)

asyncio.run(hold())
"""


async def test_two_processes_share_a_file_but_not_a_session(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE) as holder:
        store = SqliteStore(path)
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
            with pytest.raises(SessionBusyError, match=f"open in process {holder.pid}"):
                await store.open("s")
            other = await store.open("other")
            other.append(Title("mine"))
            await other.close()
            assert (await store.check("s")).in_use_by == holder.pid
        finally:
            holder.kill()
    log = await store.open("s")
    assert log.report.records == 2
    await log.close()
    await store.close()


async def test_a_failed_commit_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    log = await store.open("s")
    events = [*log.append(Title("before"))]
    await log.flush()

    def full(self: SqliteFile, change: object) -> None:
        raise StorageError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteFile, "write", full)
        events += log.append(Title("during"))
        with pytest.raises(StorageError, match="full"):
            await log.flush()
    events += log.append(Title("after"))
    await log.close()
    seen: list[Event] = []
    await store.open("s", read_only=True, fold=seen.append)
    assert seen[1:] == events
    await store.close()


async def test_one_logs_fault_is_not_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "s.db")
    good, bad = await store.open("good"), await store.open("bad")
    insert = sqlite_store.insert

    def refusing(connection: apsw.Connection, sink: PieceSink, data: bytes) -> None:
        if b"bad" in data:
            raise apsw.TooBigError("string or blob too big")
        insert(connection, sink, data)

    monkeypatch.setattr(sqlite_store, "insert", refusing)
    good.append(Title("good"))
    bad.append(Title("bad"))
    outcomes = await asyncio.gather(good.flush(), bad.flush(), return_exceptions=True)
    assert outcomes[0] is None and isinstance(outcomes[1], StorageError)
    monkeypatch.undo()
    await bad.close()
    await good.close()
    for session_id in ("good", "bad"):
        events: list[Event] = []
        await store.open(session_id, read_only=True, fold=events.append)
        assert [event.body for event in events[1:]] == [Title(session_id)]
    await store.close()


def test_the_store_is_chosen_by_a_word(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for store in (
        choose_store(f"sqlite:{path}", {}),
        choose_store(None, {"LOCKSTITCH_STORE": f"sqlite:{path}"}),
    ):
        assert isinstance(store, SqliteStore) and store.path == path
    for spec in ("sqlite:", "oracle:x", "memory:x"):
        with pytest.raises(CallerError, match="no store is called"):
            choose_store(spec, {})

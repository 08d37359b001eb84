"""A log of an older format opens, shows and continues; the older version then only shows it.

There is one format so far, so these tests raise the present one: in the format before it, turns were numbered
by "number", and titles were "name".
"""

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lockstitch.schema.errors import GateError, SessionReadOnlyError
from lockstitch.schema.events import Body, Event, SessionStart, Title, TurnEnd, TurnStart
from lockstitch.session import migration
from lockstitch.session.file_store import FileStore
from lockstitch.session.housekeeping import fork, repair
from lockstitch.session.intake import admit
from lockstitch.session.log_state import LogState
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionKeeper
from lockstitch.testing.session_samples import a_tool_turn

RENAMED = {"turn_start": ("turn", "number"), "title": ("title", "name")}


def newer(envelope: dict[str, Any]) -> dict[str, Any]:
    """A record of the first format as one of the second."""
    if envelope["kind"] in RENAMED:
        name, old = RENAMED[envelope["kind"]]
        envelope["data"][name] = envelope["data"].pop(old)
    return envelope


def old_line(seq: int, kind: str, data: dict[str, Any]) -> bytes:
    if kind in RENAMED:
        name, old = RENAMED[kind]
        data = {**data, old: data[name]}
        del data[name]
    record = {"seq": seq, "time_ms": 1000 + seq, "kind": kind, "data": data}
    line = msgspec.json.encode(record)[:-1]
    return line + b',"crc":"%08x"}\n' % zlib.crc32(line)


def old_log() -> bytes:
    bodies: list[tuple[str, Body]] = [("title", Title("old")), *_kinds(a_tool_turn(2)[:-2])]
    lines = [old_line(0, "session_start", {"format": 1, "id": "s", "cwd": "/work"})]
    lines += [old_line(seq, kind, msgspec.to_builtins(body)) for seq, (kind, body) in enumerate(bodies, 1)]
    return b"".join(lines)


def _kinds(bodies: list[Body]) -> Iterator[tuple[str, Body]]:
    from lockstitch.wire.jsonl import KIND_OF

    return ((KIND_OF[type(body)], body) for body in bodies)


@contextmanager
def version(number: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "CURRENT", number)
        patch.setattr(migration, "UPGRADES", {1: newer})
        yield


@pytest.fixture(params=["files", "sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionKeeper]:
    stores: dict[str, Callable[[], SessionKeeper]] = {
        "files": lambda: FileStore(tmp_path / "sessions"),
        "sqlite": lambda: SqliteStore(tmp_path / "s.db", durable=False),
        "memory": MemoryStore,
    }
    made = stores[request.param]()
    await made.put_log("s", [old_log()])
    yield made
    await made.close()


async def events_of(store: SessionKeeper, session_id: str = "s") -> list[Event]:
    events: list[Event] = []
    await store.open(session_id, read_only=True, fold=events.append)
    return events


async def test_an_older_log_opens_as_if_it_were_written_today(store: SessionKeeper) -> None:
    with version(2):
        events = await events_of(store)
        assert [event.body for event in events[1:]] == [Title("old"), *a_tool_turn(2)[:-2]]
        assert all(event.defect is None for event in events)
        assert (await store.check("s")).sound
        info = (await store.list())[0]
        assert info.turns in (1, None) and info.problem is None


async def test_it_continues_in_the_present_format_and_its_old_records_stay(store: SessionKeeper) -> None:
    with version(2):
        log = await store.open("s")
        assert not log.read_only and log.report.closed_turn
        log.append(*a_tool_turn(log.state.next_seq, 2))
        await log.close()
        again = await events_of(store)
        assert all(event.defect is None for event in again)
        raised = [event.body for event in again if isinstance(event.body, SessionStart)]
        assert raised == [SessionStart(1, "s", "/work"), SessionStart(2, "s", "/work")]
        assert [event.body.turn for event in again if isinstance(event.body, TurnStart)] == [1, 2]
        reopened = await store.open("s")
        await reopened.close()
        assert await events_of(store) == again
        info = (await store.list())[0]
        assert info.turns in (2, None) and info.problem is None
    pieces: list[bytes] = []
    await store.copy_log("s", pieces.append)
    assert b"".join(pieces).startswith(old_log())


async def test_the_older_version_only_shows_what_the_newer_one_continued(
    store: SessionKeeper,
) -> None:
    with version(2):
        await (await store.open("s")).close()
    with version(1):
        log = await store.open("s")
        assert log.read_only and "format 2" in (log.report.read_only or "")
        with pytest.raises(SessionReadOnlyError):
            log.append(Title("no"))


async def test_a_fork_and_a_repair_of_an_older_log_are_of_the_present_format(store: SessionKeeper) -> None:
    with version(2):
        await (await store.open("s")).close()
        await fork(store, "s", "f")
        forked = await events_of(store, "f")
        assert forked[0].body == SessionStart(2, "f", "/work", parent="s")
        assert forked[1].body == Title("old")
        assert all(event.defect is None for event in forked)
        damaged = old_log().replace(b'"old"', b'"OLD"')
        await store.remove("s")
        await store.put_log("s", [damaged])
        assert (await repair(store, "s")).after.sound
        repaired = await events_of(store)
        assert repaired[0].body == SessionStart(2, "s", "/work")
        assert TurnEnd(1, "interrupted") in [event.body for event in repaired]


async def test_a_record_that_cannot_be_brought_up_to_date_is_set_aside(store: SessionKeeper) -> None:
    with version(2):
        await store.remove("s")
        await store.put_log("s", [old_log().replace(b'"number"', b'"nomber"')])
        report = await store.check("s")
        assert report.set_aside == 1
        broken = old_line(0, "session_start", {"format": 1, "id": "s"}) + old_line(1, "title", {"title": []})
        await store.remove("s")
        await store.put_log("s", [broken])
        assert (await store.check("s")).set_aside == 1


def test_nobody_writes_another_format_than_the_present_one() -> None:
    for number in (0, 1, 3):
        with version(2), pytest.raises(GateError, match="writes format 2"):
            admit(LogState(), [SessionStart(number, "s")], 0)


def test_upgrades_follow_each_other() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "CURRENT", 4)
        patch.setattr(
            migration,
            "UPGRADES",
            {1: lambda value: {**value, "a": 1}, 2: lambda value: {**value, "b": value["a"] + 1}},
        )
        for number, expected in ((1, {"a": 1, "b": 2}), (3, None), (4, None), (5, None)):
            upgrade = migration.upgrade_from(number)
            assert (None if upgrade is None else upgrade({})) == expected

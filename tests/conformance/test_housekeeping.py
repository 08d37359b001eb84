"""Fork, export, import, repair and the trash, over every store."""

import asyncio
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lockstitch.schema.blocks import Image
from lockstitch.schema.errors import CallerError, SessionBusyError
from lockstitch.schema.events import (
    FORMAT_VERSION,
    Event,
    NoteEvent,
    SessionRepaired,
    SessionStart,
    Title,
    TurnEnd,
    UserMessage,
)
from lockstitch.session.bundle import export_session, import_session
from lockstitch.session.file_store import FileStore
from lockstitch.session.housekeeping import fork, repair
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.rewriting import LOST_NOTE
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionKeeper
from lockstitch.testing.session_samples import a_tool_turn


@pytest.fixture(params=["files", "sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionKeeper]:
    stores = {
        "files": lambda: FileStore(tmp_path / "sessions"),
        "sqlite": lambda: SqliteStore(tmp_path / "s.db", durable=False),
        "memory": MemoryStore,
    }
    made: SessionKeeper = stores[request.param]()
    yield made
    await made.close()


async def three_turns(store: SessionKeeper, session_id: str = "s") -> list[Event]:
    log = await store.open(session_id, cwd="/work")
    for turn in (1, 2, 3):
        log.append(*a_tool_turn(log.state.next_seq, turn))
        log.append(Title(f"after {turn}"))
    await log.close()
    return await events_of(store, session_id)


async def events_of(store: SessionKeeper, session_id: str) -> list[Event]:
    events: list[Event] = []
    await store.open(session_id, read_only=True, fold=events.append)
    return events


async def log_of(store: SessionKeeper, session_id: str) -> bytes:
    pieces: list[bytes] = []
    await store.copy_log(session_id, pieces.append)
    return b"".join(pieces)


async def replaced(store: SessionKeeper, session_id: str, data: bytes) -> None:
    """Put a damaged log in the place of a sound one."""
    await store.remove(session_id)
    await store.put_log(session_id, [data])


# --- fork --------------------------------------------------------------------------------------------------


async def test_a_fork_holds_its_parents_events_up_to_the_turn_and_goes_on(store: SessionKeeper) -> None:
    parent = await three_turns(store)
    report = await fork(store, "s", "f", turn=2)
    forked = await events_of(store, "f")
    end = next(event.seq for event in parent if event.body == TurnEnd(2, "completed"))
    assert forked[0].body == SessionStart(FORMAT_VERSION, "f", "/work", parent="s")
    assert forked[1:] == parent[1 : end + 1]
    assert (report.turn, report.records) == (2, end + 1)
    assert (await store.check("f")).sound
    log = await store.open("f")
    log.append(*a_tool_turn(log.state.next_seq, 3))
    await log.close()
    assert await events_of(store, "s") == parent


@pytest.mark.parametrize(("turn", "last"), [(0, 0), (1, 12), (3, 38), (None, 39)])
async def test_a_fork_ends_where_it_is_told(turn: int | None, last: int, store: SessionKeeper) -> None:
    await three_turns(store)
    await fork(store, "s", "f", turn=turn)
    assert (await events_of(store, "f"))[-1].seq == last


async def test_an_open_interrupted_session_can_be_forked(store: SessionKeeper) -> None:
    log = await store.open("s")
    log.append(*a_tool_turn(1)[:7])
    await log.flush()
    await fork(store, "s", "f")
    forked = await store.open("f")
    assert forked.report.closed_calls == 2
    await forked.close()
    await log.close()


async def test_a_fork_of_a_damaged_session_is_sound_and_tells_of_later_damage(store: SessionKeeper) -> None:
    await three_turns(store)
    lines = (await log_of(store, "s")).splitlines(keepends=True)
    await replaced(store, "s", b"".join([*lines[:5], b"garbage\n", *lines[6:]]))
    await (await store.open("s")).close()  # the damage has been told in the log
    await fork(store, "s", "f")
    assert (await store.check("f")).sound
    forked = await log_of(store, "f")
    await replaced(store, "f", forked.replace(b"after 1", b"after X"))
    log = await store.open("f")
    await log.close()
    told = [event.body for event in await events_of(store, "f") if isinstance(event.body, SessionRepaired)]
    assert [repaired.set_aside for repaired in told] == [1, 0, 1]


async def test_a_fork_takes_the_blobs_along(store: SessionKeeper) -> None:
    log = await store.open("s")
    source = await asyncio.to_thread(log.blobs.put, b"picture")
    log.append(*a_tool_turn(1)[:1], UserMessage("u", (Image("image/png", source),)))
    await log.close()
    await fork(store, "s", "f")
    await store.remove("s")
    await store.purge()
    view = await store.open("f", read_only=True)
    assert view.blobs.get(source.sha256) == b"picture"


async def test_what_cannot_be_forked_leaves_nothing(store: SessionKeeper) -> None:
    await three_turns(store)
    for session_id, new_id, turn in (
        ("s", "s", None),
        ("none", "f", None),
        ("s", "f", 4),
        ("s", "f", -1),
        ("s", "", 1),
    ):
        with pytest.raises(CallerError):
            await fork(store, session_id, new_id, turn=turn)
    assert [info.id for info in await store.list()] == ["s"]


# --- export and import -------------------------------------------------------------------------------------


async def test_a_bundle_brings_a_session_to_another_store_byte_for_byte(
    store: SessionKeeper, tmp_path: Path
) -> None:
    await three_turns(store)
    log = await store.open("s")
    source = await asyncio.to_thread(log.blobs.put, b"picture")
    await log.close()
    damaged = (await log_of(store, "s")).replace(b"after 2", b"after X") + b"torn"
    await store.rewrite_log("s", [damaged])
    await export_session(store, "s", tmp_path / "s.zip")
    assert (tmp_path / "s.zip").stat().st_mode & 0o777 == 0o600
    other = MemoryStore()
    manifest = await import_session(other, tmp_path / "s.zip")
    assert manifest.id == "s"
    assert await log_of(other, "s") == damaged
    view = await other.open("s", read_only=True)
    assert view.blobs.get(source.sha256) == b"picture"
    await other.close()


async def test_a_bundle_can_come_under_another_id(store: SessionKeeper, tmp_path: Path) -> None:
    events = await three_turns(store)
    await export_session(store, "s", tmp_path / "s.zip")
    with pytest.raises(CallerError, match="already"):
        await import_session(store, tmp_path / "s.zip")
    await import_session(store, tmp_path / "s.zip", new_id="x" * 500)
    imported = await events_of(store, "x" * 500)
    assert imported[0].body == SessionStart(FORMAT_VERSION, "x" * 500, "/work")
    assert imported[1:] == events[1:]
    assert {info.id for info in await store.list()} == {"s", "x" * 500}


async def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    store = MemoryStore()
    await three_turns(store)
    (tmp_path / "s.zip").write_text("mine")
    with pytest.raises(CallerError, match="exists already"):
        await export_session(store, "s", tmp_path / "s.zip")
    with pytest.raises(CallerError, match="no session"):
        await export_session(store, "none", tmp_path / "other.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["s.zip"]
    await store.close()


async def test_a_damaged_bundle_makes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    await three_turns(store)
    log = await store.open("s")
    await asyncio.to_thread(log.blobs.put, b"picture" * 20)
    await log.close()
    bundle = tmp_path / "s.zip"
    await export_session(store, "s", bundle)
    whole = bundle.read_bytes()
    refused = 0
    for offset in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[offset] ^= 0xFF
        bundle.write_bytes(damaged)
        target = MemoryStore()
        try:
            await import_session(target, bundle)
        except CallerError:
            refused += 1
            assert await target.list() == []
        else:  # in a time stamp or a flag of the container that nobody reads
            assert await log_of(target, "s") == await log_of(store, "s")
        await target.close()
    assert refused > len(whole) // 3 * 0.8
    await store.close()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "no session bundle"),
        ({"manifest.json": b"{"}, "no session bundle"),
        ({"manifest.json": b'{"kind":"recipe","id":"s","members":[]}'}, "holds a 'recipe'"),
        ({"manifest.json": b'{"format":2,"id":"s","members":[]}'}, "format 2"),
        ({"manifest.json": b'{"id":"s","members":[]}'}, "no log"),
        ({"manifest.json": b'{"id":"s","members":[{"name":"log.jsonl","bytes":0,"sha256":""}]}'}, "lacks"),
        (
            {"manifest.json": b'{"id":"s","members":[{"name":"log.jsonl","bytes":0,"sha256":""},'
             b'{"name":"../x","bytes":0,"sha256":"y"}]}', "log.jsonl": b""},
            "damaged",
        ),
    ],
)  # fmt: skip
async def test_a_foreign_file_is_refused_with_a_reason(
    members: dict[str, bytes], reason: str, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.zip"
    with zipfile.ZipFile(bundle, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    store = MemoryStore()
    with pytest.raises(CallerError, match=reason):
        await import_session(store, bundle)
    for path, why in ((tmp_path / "none", "does not exist"), (tmp_path, "cannot be read")):
        with pytest.raises(CallerError, match=why):
            await import_session(store, path)
    await store.close()


# --- repair ------------------------------------------------------------------------------------------------


async def test_a_repaired_log_is_sound_and_keeps_every_whole_record(store: SessionKeeper) -> None:
    events = await three_turns(store)
    whole = await log_of(store, "s")
    lines = whole.splitlines(keepends=True)
    pieces = [
        *lines[:5],
        b"gar",
        *lines[6:9],
        lines[9][:-1],
        b"\0\0\n",
        *lines[10:13],
        *lines[14:18],
        *lines[19:],
    ]
    damaged = b"".join([*pieces, b"torn"])
    await replaced(store, "s", damaged)
    report = await repair(store, "s")
    assert (report.before.sound, report.after.sound) == (False, True)
    assert report.lost == 3 and report.backup is not None
    repaired = await events_of(store, "s")
    assert [event.seq for event in repaired] == list(range(len(repaired)))
    lost = [event.seq for event in repaired if event.body == NoteEvent(LOST_NOTE)]
    assert lost == [5, 13, 18]
    assert [event.body for event in repaired if event.seq not in lost][: len(events) - 3] == [
        event.body for event in events if event.seq not in lost
    ]
    again = await repair(store, "s")
    assert again.backup is None and again.before.sound


async def test_a_log_without_its_beginning_is_repaired_too(store: SessionKeeper) -> None:
    await three_turns(store)
    lines = (await log_of(store, "s")).splitlines(keepends=True)
    for damaged in (b"".join(lines[2:]), b"", b"\0" * 50, b"".join(lines)[1:]):
        await replaced(store, "s", damaged)
        await repair(store, "s")
        report = await store.check("s")
        assert not (report.set_aside or report.missing or report.torn_bytes)
        assert isinstance((await events_of(store, "s"))[0].body, SessionStart)


async def test_an_interrupted_session_is_only_closed(store: SessionKeeper) -> None:
    log = await store.open("s")
    log.append(*a_tool_turn(1)[:7])
    await log.close()
    before = await log_of(store, "s")
    report = await repair(store, "s")
    assert report.backup is None and report.before.open_calls == 2 and report.after.open_calls == 0
    assert (await log_of(store, "s")).startswith(before)


async def test_an_open_session_and_a_newer_one_are_not_repaired(store: SessionKeeper) -> None:
    await three_turns(store)
    data = await log_of(store, "s")
    await replaced(store, "s", data + b"torn")
    view_of_writer = await store.open("s")
    with pytest.raises(SessionBusyError):
        await repair(store, "s")
    await view_of_writer.close()
    await store.put_log("new", [data.replace(b'"format":1', b'"format":2')])
    await store.put_log("newer", [b"torn"])
    assert (await repair(store, "newer")).after.sound


# --- trash -------------------------------------------------------------------------------------------------


async def test_a_removed_session_can_be_restored_until_the_trash_is_purged(store: SessionKeeper) -> None:
    first = await three_turns(store)
    await store.remove("s")
    assert await store.list() == []
    with pytest.raises(CallerError):
        await store.open("s", create=False)
    second = await store.open("s")
    second.append(Title("second"))
    await second.close()
    with pytest.raises(CallerError, match="again"):
        await store.restore("s")
    await store.remove("s")
    await store.restore("s")
    assert (await events_of(store, "s"))[1].body == Title("second")
    await store.remove("s")
    assert await store.purge() == 3 - 1
    assert await store.purge() == 0
    with pytest.raises(CallerError, match="trash"):
        await store.restore("s")
    assert first


async def test_an_open_session_is_not_removed(store: SessionKeeper) -> None:
    log = await store.open("s")
    with pytest.raises(SessionBusyError):
        await store.remove("s")
    log.append(Title("still there"))
    await log.close()
    with pytest.raises(CallerError):
        await store.remove("none")

"""Session folders as hostile testing made them: none reaches another file, or takes memory without an end."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from sound_logs import fold_values
from test_checkpoint import folded
from test_checkpoint_files import Unsynced, session, taken, turns

from lockstitch import Agent
from lockstitch.agent.session_fold import SessionFold
from lockstitch.schema.blocks import Image, Text
from lockstitch.schema.errors import LockstitchError, StorageError
from lockstitch.schema.events import Event, SessionStart, Title, TurnStart, UserMessage
from lockstitch.session import blobs
from lockstitch.session.blobs import GONE_TEXT, BlobLostError, DirectoryBlobs
from lockstitch.session.checkpoint_file import CHECKPOINT_NAME
from lockstitch.session.file_calls import FileCalls, write_new_file
from lockstitch.session.file_store import FileStore
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.testing.session_samples import a_tool_turn
from lockstitch.wire.jsonl import encode

MINE = "precious\n" * 9 + "without an end"


@pytest.mark.parametrize("name", ["lock", "log.jsonl"])
async def test_a_link_in_a_session_that_was_sent_changes_nothing_of_mine(name: str, tmp_path: Path) -> None:
    """Opening cut the file behind the link at its last line, or to nothing, and wrote into it."""
    mine, root = tmp_path / "mine", tmp_path / "sessions"
    mine.write_text(MINE)
    directory = await session(root, *turns(1, 3))
    (directory / name).unlink()
    (directory / name).symlink_to(mine)
    with pytest.raises(LockstitchError, match="symbolic link"):
        await Agent(ScriptedModel(["ok"]), store=root).run("hi", session="s")
    store = FileStore(root)
    await store.list()
    await store.close()
    assert mine.read_text() == MINE


async def test_nor_does_one_in_the_place_of_a_file_that_is_being_made(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text(MINE)
    (tmp_path / f".new.{os.getpid()}.tmp").symlink_to(mine)
    write_new_file(FileCalls(), tmp_path / "new", [b"content"])
    assert mine.read_text() == MINE
    assert (tmp_path / "new").read_bytes() == b"content" and not (tmp_path / "new").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new"]


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(blobs.BLOB_MAX_BYTES + 1)


PLACED: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "more than a blob can hold": large,
}


@pytest.mark.parametrize("place", PLACED.values(), ids=PLACED)
async def test_what_is_no_blob_in_a_blobs_place_is_as_one_that_is_gone(
    place: Callable[[Path], None], tmp_path: Path
) -> None:
    """A pipe kept every request waiting for ever, a device was read without an end, a folder refused it."""
    source = blobs.source_of(b"picture")
    said = UserMessage("u", (Text("look"), Image("image/png", source)))
    (tmp_path / "s" / "blobs").mkdir(parents=True)
    place(tmp_path / "s" / "blobs" / source.sha256)
    bodies = [SessionStart(1, "s"), TurnStart(1), said]
    log = b"".join(encode(seq, 1, body) for seq, body in enumerate(bodies))
    (tmp_path / "s" / "log.jsonl").write_bytes(log)
    async with asyncio.timeout(10):
        with pytest.raises(BlobLostError):
            await asyncio.to_thread(DirectoryBlobs(tmp_path / "s" / "blobs").get, source.sha256)
        model = ScriptedModel(["seen"])
        assert (await Agent(model, store=tmp_path).run("and now?", session="s")).text == "seen"
    assert GONE_TEXT in str(model.requests[0]["body"])


class Reading(Unsynced):
    """Knows how many bytes were read of each file."""

    def __init__(self) -> None:
        self.read_of: dict[str, int] = {}

    def read(self, fd: int, length: int, offset: int) -> bytes:
        data = super().read(fd, length, offset)
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        self.read_of[name] = self.read_of.get(name, 0) + len(data)
        return data


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it tells which file a descriptor is of")
async def test_a_checkpoint_of_somebody_elses_is_not_taken_into_memory(tmp_path: Path) -> None:
    """Behind a log of holes it may be as large as the disk pretends to be."""
    directory = await session(tmp_path, *turns(1, 3))
    stored = (directory / CHECKPOINT_NAME).read_bytes()
    size = 8 << 20
    for beginning in (b"", stored.replace(b'"mac":"', b'"mac":"0', 1), b"\n"):
        os.truncate(directory / "log.jsonl", size)
        (directory / CHECKPOINT_NAME).write_bytes(beginning)
        os.truncate(directory / CHECKPOINT_NAME, size)
        calls = Reading()
        store = FileStore(tmp_path, calls=calls, index=False)
        log = await store.open("s", fold=SessionFold())
        await log.close()
        await store.close()
        assert calls.read_of[CHECKPOINT_NAME] <= 64 * 1024
        assert log.report.torn_bytes > 0


async def test_what_a_killed_process_left_of_a_checkpoint_goes_with_its_session(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", durable=False)
    left = tmp_path / "s.db-locks" / "s" / f".{CHECKPOINT_NAME}.tmp"
    for end in (
        lambda: store.remove("s"),
        lambda: store.rewrite_log("s", [encode(0, 1, SessionStart(1, "s"))]),
    ):
        await (await store.open("s")).close()
        left.write_text("what was said")
        await end()
        assert not left.exists()
    await store.close()


MISPLACED = {
    "one is lost": "DELETE FROM pieces WHERE rowid = 3",
    "the first is lost": "DELETE FROM pieces WHERE rowid = 1",
    "one lies behind a gap": "UPDATE pieces SET start = start + 50 WHERE rowid = 4",
    "all lie before the beginning": "UPDATE pieces SET start = start - 100000",
    "one lies in another": "UPDATE pieces SET start = start - 50 WHERE rowid = 4",
    "an empty one is at the end": "INSERT INTO pieces SELECT 1, max(start + length(data)), x'' FROM pieces",
    "one is there twice": "INSERT INTO pieces SELECT session, start + 1, data FROM pieces WHERE rowid = 3",
    "one lies behind a gap and in the next": "UPDATE pieces SET start = start + 50 WHERE rowid = 3",
    "one is empty": "UPDATE pieces SET data = x'' WHERE rowid = 3",
}


@pytest.mark.parametrize("change", MISPLACED.values(), ids=MISPLACED)
async def test_no_record_is_lost_because_a_piece_of_a_database_is(change: str, tmp_path: Path) -> None:
    """What lay behind a gap was deleted by the next opening, which had just read it."""
    path = tmp_path / "s.db"
    bodies = turns(1, 3)
    for part in (bodies[:12], bodies[12:24], bodies[24:]):
        store, fold = SqliteStore(path, durable=False, save_after_bytes=1), SessionFold()
        log = await store.open("s", fold=fold)
        taken(log, fold, *part)
        await log.close()
        await store.close()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(change)
    store = SqliteStore(path, durable=False, save_after_bytes=1)
    seen: list[Event] = []
    await store.open("s", read_only=True, fold=seen.append)
    for title in ("one", "two"):
        fold = SessionFold()
        log = await store.open("s", fold=fold)
        taken(log, fold, Title(title))
        await log.close()
    after: list[Event] = []
    await store.open("s", read_only=True, fold=after.append)
    assert after[: len(seen)] == seen
    assert [event.body for event in after if isinstance(event.body, Title)] == [Title("one"), Title("two")]
    assert fold_values(fold) == fold_values(folded(after))
    await store.close()


async def test_a_log_that_was_put_back_is_not_listed_as_the_one_it_was(tmp_path: Path) -> None:
    """A copy of before, put back and grown past where the index had read, was read on in its middle."""
    store = FileStore(tmp_path)

    async def say(*titles: str) -> Path:
        log = await store.open("s")
        for title in titles:
            log.append(Title(title))
            log.append(*a_tool_turn(log.state.next_seq, log.state.turns + 1))
        await log.close()
        assert log.path is not None
        return log.path / "log.jsonl"

    path = await say("first")
    kept = path.read_bytes()
    await say("lost", "lost")
    [before] = await store.list()
    path.write_bytes(kept)
    await say(*["another, and longer than what was lost"] * 3)
    assert path.stat().st_size > before.bytes
    [listed], found = await store.list(), await store.search("a", limit=1000)
    (tmp_path / ".index.sqlite").unlink()
    await store.close()
    store = FileStore(tmp_path)
    assert ([listed], found) == (await store.list(), await store.search("a", limit=1000))
    assert (listed.turns, listed.problem, listed.title) == (4, None, "another, and longer than what was lost")
    await store.close()


def with_another_record(path: Path) -> None:
    with path.open("ab") as file:
        file.write(encode(len(path.read_bytes().splitlines()), 1, Title("of somebody else")))


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


CHANGED: dict[str, Callable[[Path], object]] = {
    "another program appended to it": with_another_record,
    "it was cut": lambda path: os.truncate(path, 200),
    "it was emptied": lambda path: path.write_bytes(b""),
    "it was removed": Path.unlink,
    "a copy was put in its place": replaced,
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
async def test_a_log_that_is_changed_while_it_is_written_is_told_and_not_written_over(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    """Where somebody removed a lock, two wrote over each other, and both were told that all is safe."""
    path = await session(tmp_path, *turns(1, 3)) / "log.jsonl"
    store, fold = FileStore(tmp_path, index=False, save_after_bytes=1), SessionFold()
    log = await store.open("s", fold=fold)
    change(path)
    found = path.read_bytes() if path.exists() else None
    for _ in range(2):
        taken(log, fold, Title("mine"))
        with pytest.raises(StorageError, match="while the session was open here"):
            await log.flush()
    with pytest.raises(StorageError):
        await log.close()
    assert (path.read_bytes() if path.exists() else None) == found
    fold = SessionFold()
    log = await store.open("s", fold=fold)
    taken(log, fold, Title("again"))
    await log.close()
    await store.close()
    assert (await FileStore(tmp_path, index=False).check("s")).records == fold.next_seq


def removed_with_its_journal(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink()


@pytest.mark.parametrize(
    "change", [Path.unlink, removed_with_its_journal, replaced], ids=["removed", "removed whole", "replaced"]
)
async def test_nor_is_what_went_into_a_database_that_is_not_there_any_more_called_safe(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    store, fold = SqliteStore(path, durable=False), SessionFold()
    log = await store.open("s", fold=fold)
    taken(log, fold, *turns(1, 1))
    await log.flush()
    change(path)
    for _ in range(2):
        taken(log, fold, Title("mine"))
        with pytest.raises(StorageError, match="while the session was open here"):
            await log.flush()
    with pytest.raises(StorageError):
        await log.close()
    log = await store.open("s", fold=(fold := SessionFold()))
    taken(log, fold, Title("again"))
    await log.close()
    await store.close()
    assert (await SqliteStore(path).check("s")).records == fold.next_seq

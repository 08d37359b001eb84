"""Checkpoints where files are: when they are written, whom they are believed from, and what failing costs."""

import errno
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_world import clock
from event_logs import compaction
from sound_logs import fold_values
from test_file_store import FaultyCalls

from lockstitch import Agent
from lockstitch.agent.session_fold import SessionFold
from lockstitch.llm.retry import RetryPolicy
from lockstitch.schema.events import Body, Event, NoteEvent, SessionStart, Title, TurnStart, Undo
from lockstitch.session.bundle import export_session, import_session
from lockstitch.session.checkpoint_file import CHECKPOINT_NAME, KEY_NAME
from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_store import FileStore
from lockstitch.session.housekeeping import fork, repair
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.saving import SAVE_AFTER_BYTES, SavingFold
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionLog
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.testing.session_samples import a_tool_turn
from lockstitch.wire.jsonl import encode


class Unsynced(FileCalls):
    """Many openings in a test need no disk that spins."""

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


class CountedFold(SessionFold):
    """Knows how many events it was given, and how often it was restored."""

    def __init__(self) -> None:
        super().__init__()
        self.given = self.restored = 0

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        self.given += 1

    def restore(self, data: bytes | memoryview, next_seq: int) -> None:
        super().restore(data, next_seq)
        self.restored += 1


def taken(log: SessionLog, fold: SavingFold, *bodies: Body) -> None:
    """Append one by one, as an agent does, and fold what was taken."""
    for body in bodies:
        for event in log.append(body, time_ms=1_000):
            fold(event)


def turns(first: int, count: int) -> list[Body]:
    return [body for turn in range(first, first + count) for body in a_tool_turn(1 + 12 * (turn - 1), turn)]


async def session(root: Path, *bodies: Body, store: FileStore | None = None) -> Path:
    """A closed session "s" with a checkpoint at its end; its directory."""
    own = store or FileStore(root, save_after_bytes=1)
    fold = SessionFold()
    log = await own.open("s", fold=fold)
    taken(log, fold, *bodies)
    await log.close()
    if store is None:
        await own.close()
    assert log.path is not None
    return log.path


async def opened(root: Path, **options: Any) -> tuple[SessionLog, CountedFold]:
    store = FileStore(root, calls=Unsynced(), index=False, save_after_bytes=1 << 40)
    fold = CountedFold()
    log = await store.open("s", fold=fold, **options)
    await log.close()
    await store.close()
    return log, fold


async def whole(root: Path) -> dict[str, Any]:
    """What the log alone gives, and the log once it was opened, with nothing left behind in ``root``."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    (copy / "s" / CHECKPOINT_NAME).unlink(missing_ok=True)
    log, fold = await opened(copy)
    assert fold.restored == 0
    found = everything(copy, log, fold)
    shutil.rmtree(copy)
    return found


def everything(root: Path, log: SessionLog, fold: SessionFold) -> dict[str, Any]:
    directory = root / "s"
    files = {path.name: path.read_bytes() for path in (directory / "damaged").glob("*")}
    return {
        "state": log.state,
        "report": log.report,
        "fold": fold_values(fold),
        "log": (directory / "log.jsonl").read_bytes(),
        "damaged": files,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


# --- opening -----------------------------------------------------------------------------------------------


async def test_a_session_is_opened_from_its_checkpoint_and_only_the_rest_is_folded(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    log, fold = await opened(root)
    assert (fold.restored, fold.given) == (1, 0)
    with (directory / "log.jsonl").open("ab") as file:
        file.write(encode(37, 1_000, TurnStart(4)))
    expected = await whole(root)
    log, fold = await opened(root)
    assert (fold.restored, fold.given) == (1, 2), "the start of a turn, and the end that closes it"
    assert everything(root, log, fold) == expected


async def test_every_cut_of_the_file_opens_the_same_with_its_checkpoint_and_without(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    kept = {name: (directory / name).read_bytes() for name in ("log.jsonl", CHECKPOINT_NAME)}
    log = kept["log.jsonl"] + b"".join(
        encode(37 + number, 1_000, body) for number, body in enumerate(a_tool_turn(37, 4))
    )
    for cut in range(len(kept["log.jsonl"]) - 3, len(log), 17):
        shutil.rmtree(directory / "damaged", ignore_errors=True)
        (directory / CHECKPOINT_NAME).write_bytes(kept[CHECKPOINT_NAME])
        (directory / "log.jsonl").write_bytes(log[:cut])
        expected = await whole(root)
        shown, fold = await opened(root)
        assert fold.restored == int(cut >= len(kept["log.jsonl"]))
        assert everything(root, shown, fold) == expected


async def test_a_byte_that_was_flipped_in_front_of_it_is_found_as_ever(root: Path) -> None:
    directory = await session(root, *turns(1, 1))
    intact = (directory / "log.jsonl").read_bytes()
    for offset in range(0, len(intact), 29):
        shutil.rmtree(directory / "damaged", ignore_errors=True)
        damaged = bytearray(intact)
        damaged[offset] ^= 1
        (directory / "log.jsonl").write_bytes(damaged)
        expected = await whole(root)
        log, fold = await opened(root)
        assert fold.restored == 0
        assert everything(root, log, fold) == expected
        assert log.report.set_aside or log.report.torn_bytes


BAD_CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "none": lambda path: path.unlink(),
    "an empty one": lambda path: path.write_bytes(b""),
    "one that was cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "a flipped byte in its header": lambda path: flip(path, 20),
    "a flipped byte in its end": lambda path: flip(path, -20),
    "another file": lambda path: path.write_bytes(b"\0" * 5_000),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "one nobody may read": lambda path: path.chmod(0),
    "a very long one": lambda path: path.write_bytes(path.read_bytes() + b" " * 10_000_000),
    "a lost key": lambda path: (path.parents[1] / KEY_NAME).unlink(),
    "another key": lambda path: (path.parents[1] / KEY_NAME).write_text("00" * 32 + "\n"),
    "no key at all": lambda path: (path.parents[1] / KEY_NAME).write_bytes(b"\xff"),
}


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("spoil", BAD_CHECKPOINTS.values(), ids=BAD_CHECKPOINTS)
async def test_a_checkpoint_that_does_not_fit_is_as_none(spoil: Callable[[Path], object], root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    spoil(directory / CHECKPOINT_NAME)
    log, fold = await opened(root)
    nobody_is_root = (directory / CHECKPOINT_NAME).exists() and fold.restored
    assert fold.restored == 0 or (spoil is BAD_CHECKPOINTS["one nobody may read"] and nobody_is_root)
    if (directory / CHECKPOINT_NAME).is_dir():
        (directory / CHECKPOINT_NAME).rmdir()
    assert everything(root, log, fold) == await whole(root)


async def test_one_that_came_with_a_copied_session_is_not_believed(root: Path, tmp_path: Path) -> None:
    """Whoever made it could have put into it what the log does not say."""
    await session(root, *turns(1, 3))
    other = tmp_path / "other"
    await session(other, *turns(1, 1))
    shutil.rmtree(other / "s")
    shutil.copytree(root / "s", other / "s")
    _, fold = await opened(other)
    assert (fold.restored, fold.given) == (0, 37)


async def test_one_of_another_kind_of_fold_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await session(root, *turns(1, 3))
    with monkeypatch.context() as patch:
        patch.setattr(SessionFold, "version", "another")
        _, fold = await opened(root)
        assert (fold.restored, fold.given) == (0, 37)
    _, fold = await opened(root)
    assert fold.restored == 1


async def test_strict_opening_and_plain_folds_read_the_whole(root: Path) -> None:
    await session(root, *turns(1, 3))
    _, fold = await opened(root, strict=True)
    assert (fold.restored, fold.given) == (0, 37)
    store = FileStore(root)
    events: list[Event] = []
    await (await store.open("s", fold=events.append)).close()
    assert len(events) == 37
    view = CountedFold()
    await store.open("s", read_only=True, fold=view)
    assert (view.restored, view.given) == (0, 37)
    assert (await store.check("s")).records == 37
    await store.close()


async def test_a_fold_that_fails_behind_it_is_given_the_whole_and_then_told(root: Path) -> None:
    class Failing(CountedFold):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if event.seq == 38:
                raise BrokenPipeError("mine")

    directory = await session(root, *turns(1, 3))
    with (directory / "log.jsonl").open("ab") as file:
        file.write(encode(37, 1, Title("x")) + encode(38, 1, Title("y")))
    store, fold = FileStore(root), Failing()
    with pytest.raises(BrokenPipeError, match="mine"):
        await store.open("s", fold=fold)
    assert (fold.restored, fold.given) == (1, 2 + 39)
    await store.close()


# --- writing -----------------------------------------------------------------------------------------------


async def test_nobody_else_can_read_it(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    for path in (directory / CHECKPOINT_NAME, root / KEY_NAME):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in directory.iterdir()) == [CHECKPOINT_NAME, "lock", "log.jsonl"]


async def test_it_is_not_written_through_a_link_that_came_with_the_session(
    root: Path, tmp_path: Path
) -> None:
    directory = await session(root, *turns(1, 3))
    (directory / CHECKPOINT_NAME).unlink()
    (root / KEY_NAME).unlink()
    mine = tmp_path / "mine"
    mine.write_text("precious")
    for place in (directory / f".{CHECKPOINT_NAME}.tmp", directory / CHECKPOINT_NAME, root / KEY_NAME):
        place.symlink_to(mine)
    await session(root)
    assert mine.read_text() == "precious"
    assert not (directory / CHECKPOINT_NAME).is_symlink()
    _, fold = await opened(root)
    assert fold.restored == 1


async def test_what_a_dead_process_left_is_cleared_away(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    (directory / CHECKPOINT_NAME).unlink()
    (directory / f".{CHECKPOINT_NAME}.tmp").write_bytes(b"half of one")
    await session(root)
    assert sorted(path.name for path in directory.iterdir()) == [CHECKPOINT_NAME, "lock", "log.jsonl"]


async def test_a_small_session_has_none(root: Path) -> None:
    store = FileStore(root)
    directory = await session(root, *turns(1, 20), store=store)
    await store.close()
    assert (directory / "log.jsonl").stat().st_size < SAVE_AFTER_BYTES
    assert not (directory / CHECKPOINT_NAME).exists() and not (root / KEY_NAME).exists()


async def test_one_is_written_when_a_turn_ends_and_not_inside(root: Path) -> None:
    store, fold = FileStore(root, save_after_bytes=1), SessionFold()
    log = await store.open("s", fold=fold)
    assert log.path is not None
    *most, last = turns(1, 3)
    taken(log, fold, *most)
    await log.flush()
    assert log._saving is None
    taken(log, fold, last)
    await log.flush()
    assert log._saving is not None
    await log._saving
    assert (log.path / CHECKPOINT_NAME).exists()
    log.abandon()
    _, found = await opened(root)
    assert (found.restored, found.given) == (1, 0)
    await store.close()


async def test_all_checkpoints_together_are_at_most_three_times_the_log(root: Path) -> None:
    written: list[int] = []

    class Counting(Unsynced):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if bytes(data[:15]).startswith(b'{"checkpoint":'):
                written.append(len(data))
            return super().write(fd, data, offset)

    store, fold = FileStore(root, calls=Counting(), save_after_bytes=1), SessionFold()
    log = await store.open("s", fold=fold)
    for turn in range(60):
        taken(log, fold, *turns(turn + 1, 1))
        await log.flush()
    await log.close()
    await store.close()
    assert log.path is not None
    assert len(written) > 2
    assert sum(written) <= 3 * (log.path / "log.jsonl").stat().st_size


async def test_a_fold_that_was_not_given_every_event_is_not_saved(root: Path) -> None:
    store, fold = FileStore(root, save_after_bytes=1), SessionFold()
    log = await store.open("s", fold=fold)
    log.append(*turns(1, 3))
    await log.close()
    await store.close()
    assert log.path is not None and not (log.path / CHECKPOINT_NAME).exists()


DAMAGED = {
    "bytes that are no record": b"garbage\n",
    "a gap": encode(50, 1, Title("late")),
    "a record that breaks the rules": encode(37, 1, Undo(99)),
}


@pytest.mark.parametrize("tail", DAMAGED.values(), ids=DAMAGED)
async def test_a_log_that_is_not_sound_has_none(tail: bytes, root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    (directory / CHECKPOINT_NAME).unlink()
    with (directory / "log.jsonl").open("ab") as file:
        file.write(tail)
    await session(root)
    assert not (directory / CHECKPOINT_NAME).exists()


async def test_after_a_crash_a_new_one_covers_the_mended_log(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    log = (directory / "log.jsonl").read_bytes()
    for cut in (len(log) - 30, len(log)):
        (directory / CHECKPOINT_NAME).unlink(missing_ok=True)
        (directory / "log.jsonl").write_bytes(log[:cut] + b'{"seq":9')
        await session(root)
        shown, fold = await opened(root)
        assert (fold.restored, fold.given) == (1, 0)
        assert everything(root, shown, fold)["fold"] == (await whole(root))["fold"]


# --- a disk that refuses -----------------------------------------------------------------------------------

FAULTS: dict[str, dict[str, int | None]] = {
    "the disk is full": {"write": errno.ENOSPC},
    "writes take only a part": {"write": None},
    "a write fails in the middle": {"write_then_fail": errno.EIO},
    "no file can be made": {"open": errno.EACCES},
    "it cannot be put in place": {"rename": errno.EIO},
    "the file system became read-only": {"open": errno.EROFS, "rename": errno.EROFS},
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("has_one", [False, True], ids=["the first", "another"])
async def test_a_checkpoint_that_cannot_be_written_costs_nobody_anything(
    faults: dict[str, int | None], has_one: bool, root: Path
) -> None:
    if has_one:
        await session(root, *turns(1, 1))
    calls = FaultyCalls()
    store, fold = FileStore(root, calls=calls, save_after_bytes=1), SessionFold()
    log = await store.open("s", fold=fold)
    taken(log, fold, *turns(2 if has_one else 1, 5))
    await log._flush()
    before = (root / "s" / "log.jsonl").read_bytes()
    calls.faults = faults
    await log.close()
    calls.faults = {}
    await store.close()
    assert (root / "s" / "log.jsonl").read_bytes() == before
    assert list(root.rglob("*.tmp")) == []  # on a full disk it would take the place of the log's next records
    expected = await whole(root)
    shown, found = await opened(root)
    assert everything(root, shown, found) == expected
    again, found = await opened(root)
    assert again.report.records == len(before.splitlines())


async def test_what_is_wrong_with_the_fold_itself_is_told(root: Path) -> None:
    class Broken(SessionFold):
        def save(self) -> Callable[[], bytes]:
            return lambda: b"x" + None  # type: ignore[operator]  # the mistake

    store, fold = FileStore(root, save_after_bytes=1), Broken()
    log = await store.open("s", fold=fold)
    taken(log, fold, *turns(1, 1))
    with pytest.raises(TypeError):
        await log.close()
    await (await store.open("s")).close()
    await store.close()


# --- housekeeping ------------------------------------------------------------------------------------------


async def test_fork_export_and_import_take_the_log_only(root: Path, tmp_path: Path) -> None:
    await session(root, *turns(1, 3))
    store = FileStore(root)
    await fork(store, "s", "forked")
    manifest = await export_session(store, "s", tmp_path / "s.zip")
    assert [member.name for member in manifest.members] == ["log.jsonl"]
    await import_session(store, tmp_path / "s.zip", new_id="imported")
    await store.close()
    found = sorted(path.parent.name for path in root.glob(f"*/{CHECKPOINT_NAME}"))
    assert found == ["s"]


async def test_a_session_that_was_repaired_has_none_of_before(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    with (directory / "log.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    store = FileStore(root)
    await repair(store, "s")
    await store.close()
    assert not (directory / CHECKPOINT_NAME).exists()
    log, fold = await opened(root)
    assert fold.restored == 0 and log.report.set_aside == 0


async def test_it_comes_back_from_the_trash_with_its_session(root: Path) -> None:
    await session(root, *turns(1, 3))
    store = FileStore(root)
    await store.remove("s")
    assert await store.list() == []
    await store.restore("s")
    _, fold = await opened(root)
    assert fold.restored == 1
    await store.remove("s")
    assert await store.purge() == 1
    await session(root, *turns(1, 4))  # another session of the same id
    _, fold = await opened(root)
    assert (fold.restored, fold.next_seq) == (1, 49)
    await store.close()


async def test_a_checkpoint_of_a_session_that_was_there_before_is_not_used(root: Path) -> None:
    directory = await session(root, *turns(1, 3))
    kept = (directory / CHECKPOINT_NAME).read_bytes()
    shutil.rmtree(directory)
    await session(root, *(NoteEvent("other", number) for number in range(200)))
    (directory / CHECKPOINT_NAME).write_bytes(kept)
    _, fold = await opened(root)
    assert (fold.restored, fold.given) == (0, 201)


# --- an agent ----------------------------------------------------------------------------------------------

ANSWERS = [
    {"tool_calls": [{"name": "clock", "arguments": {}}, {"name": "clock", "arguments": {}}]},
    {"text": "It is noon. " * 40, "usage": {"input_tokens": 50, "output_tokens": 9}},
    {"status": 500, "error": {"message": "broken"}},
    {"text": "Again noon. " * 40},
]


async def conversation(store: Any) -> list[Any]:
    """What a model is sent in a session that is opened anew for every turn, compacted and undone at times."""
    model = ScriptedModel({"answers": ANSWERS * 9, "then": {"text": "Nothing more. " * 40}})
    agent = Agent(model, tools=[clock], store=store, environ={}, retry=RetryPolicy(initial_delay_s=0.001))
    for number in range(12):
        await agent.run(f"What time is it? ({number})", session="s")
        async with agent.open("s") as session:
            if number % 5 == 3:
                session._parts.world.append(*compaction(None, f"SUM{number}"))
            if number % 4 == 2:
                await session.undo()
            if number == 9:
                await session.rewind(2)
    return [request["body"] for request in model.requests]


async def test_an_agent_asks_the_same_whether_its_session_has_checkpoints_or_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored: list[int] = []
    restore = SessionFold.restore

    def counted(self: SessionFold, data: bytes | memoryview, next_seq: int) -> None:
        restore(self, data, next_seq)
        restored.append(next_seq)

    monkeypatch.setattr(SessionFold, "restore", counted)
    expected = await conversation(MemoryStore())
    assert restored == []
    store = FileStore(root, calls=Unsynced(), index=False, save_after_bytes=1)
    assert await conversation(store) == expected
    await store.close()
    assert len(restored) > 10


# --- in a database -----------------------------------------------------------------------------------------


async def test_a_session_of_a_database_has_one_beside_its_lock(tmp_path: Path) -> None:
    store, fold = SqliteStore(tmp_path / "s.db", durable=False, save_after_bytes=1), CountedFold()
    log = await store.open("s", fold=fold)
    taken(log, fold, *turns(1, 3))
    await log.close()
    found = tmp_path / "s.db-locks" / "s" / CHECKPOINT_NAME
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    behind, whole = CountedFold(), CountedFold()
    await (await store.open("s", fold=behind)).close()
    assert (behind.restored, behind.given) == (1, 0)
    await (await store.open("s", fold=whole, strict=True)).close()
    assert (whole.restored, whole.given) == (0, 37)
    assert fold_values(behind) == fold_values(whole) == fold_values(fold)
    await store.remove("s")
    assert not found.exists(), "what is said in it must be gone when the trash is"
    await store.restore("s")
    behind = CountedFold()
    log = await store.open("s", fold=behind)
    assert (behind.restored, behind.given) == (0, 37)
    taken(log, behind, *turns(4, 1))
    await log.close()
    assert found.exists()
    await store.rewrite_log("s", [encode(0, 1, SessionStart(1, "s"))])
    assert not found.exists()
    await store.close()

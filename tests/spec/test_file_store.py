"""The file store where files are: modes, names, locks, copies of damage, and a disk that refuses."""

import asyncio
import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from queue import SimpleQueue

import pytest

from lockstitch.schema.errors import CallerError, SessionBusyError, StorageError
from lockstitch.schema.events import Event, SessionRepaired, Title
from lockstitch.session import lock
from lockstitch.session.committer import Channel, Committer
from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_listing import session_names
from lockstitch.session.file_store import FileStore
from lockstitch.session.home import sessions_root
from lockstitch.session.names import NAME_MAX_CHARS, directory_name, session_id_of
from lockstitch.session.store import SessionLog
from lockstitch.testing.session_samples import a_tool_turn
from lockstitch.testing.store_suite import HOSTILE_IDS

# --- names -------------------------------------------------------------------------------------------------

NAMES = {
    "a plain id": ("2026-11-30_a.b", "2026-11-30_a.b"),
    "a path": ("../x/y", "~2e.~2fx~2fy"),
    "a dot": (".", "~2e"),
    "two dots": ("..", "~2e."),
    "a hidden name": (".git", "~2egit"),
    "a zero byte": ("a\0", "a~00"),
    "an escape": ("~2e", "~7e2e"),
    "letters of another script": ("ü", "~c3~bc"),
    "a blank": (" ", "~20"),
}


@pytest.mark.parametrize(("session_id", "name"), NAMES.values(), ids=NAMES)
def test_directory_names_are_safe_and_give_the_id_back(session_id: str, name: str) -> None:
    assert directory_name(session_id) == name
    assert session_id_of(name) == session_id


def test_long_ids_get_names_that_fit_and_differ() -> None:
    names = {directory_name("x" * length) for length in range(190, 1000)}
    assert len(names) == 810
    assert max(map(len, names)) <= NAME_MAX_CHARS
    assert {session_id_of(name) for name in names if "~~" in name} == {None}


@pytest.mark.parametrize("name", ["~", "~zz", "a~2", "~41", ".git", "ü", "~ff", ""])
def test_other_names_are_no_ids(name: str) -> None:
    assert session_id_of(name) is None


def test_no_two_hostile_ids_share_a_name() -> None:
    assert len({directory_name(session_id) for session_id in HOSTILE_IDS}) == len(HOSTILE_IDS)


def test_the_home_variable_moves_everything(tmp_path: Path) -> None:
    assert sessions_root({"LOCKSTITCH_HOME": str(tmp_path)}) == tmp_path / "sessions"
    assert sessions_root({"LOCKSTITCH_HOME": "~/x"}) == Path.home() / "x" / "sessions"
    assert sessions_root({}).parts[-2:] == ("lockstitch", "sessions")


# --- files -------------------------------------------------------------------------------------------------


async def made(store: FileStore, session_id: str = "s") -> Path:
    """A closed session with one turn; its log."""
    log = await store.open(session_id)
    log.append(*a_tool_turn(1))
    await log.close()
    assert log.path is not None
    return log.path / "log.jsonl"


async def test_nobody_else_can_read_a_session(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "home" / "sessions")
    path = await made(store)
    path.write_bytes(path.read_bytes()[:-5])
    await (await store.open("s")).close()
    await store.close()
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.rglob("*")}
    modes[""] = stat.S_IMODE(path.parent.stat().st_mode)
    modes["sessions"] = stat.S_IMODE(store.root.stat().st_mode)
    modes["home"] = stat.S_IMODE(store.root.parent.stat().st_mode)
    directories = {"", "sessions", "home", "damaged"}
    assert {name for name, mode in modes.items() if mode == 0o700} == directories
    assert {mode for name, mode in modes.items() if name not in directories} == {0o600}


async def test_damage_is_copied_once_and_stays_in_the_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = await made(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"garbage\n", *lines[2:-1], lines[-1][:30]]))
    log = await store.open("s")
    await log.close()
    copies = sorted((path.parent / "damaged").iterdir())
    assert [copy.read_bytes() for copy in copies] == [b"garbage", lines[-1][:30]]
    assert log.report.files == tuple(f"damaged/{copy.name}" for copy in copies)
    assert (log.report.set_aside, log.report.torn_bytes) == (1, 30)
    assert b"garbage\n" in path.read_bytes()
    before = [copy.stat().st_mtime_ns for copy in copies]
    again = await store.open("s")
    await again.close()
    await store.close()
    assert again.report.files == () and again.report.set_aside == 1
    assert [copy.stat().st_mtime_ns for copy in copies] == before


async def test_the_event_says_where_the_copy_is(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = await made(store)
    path.write_bytes(path.read_bytes()[:-5])
    events: list[Event] = []
    await (await store.open("s", fold=events.append)).close()
    await store.close()
    (repair,) = [event.body for event in events if isinstance(event.body, SessionRepaired)]
    assert (path.parent / repair.file).is_file()


async def test_a_session_whose_log_is_gone_begins_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = await made(store)
    path.unlink()
    assert (await store.check("s")).records == 0
    log = await store.open("s")
    log.append(*a_tool_turn(1))
    await log.close()
    await store.close()


async def test_one_bad_session_does_not_hide_the_others(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for session_id in ("good", "headless", "empty", "gone"):
        await made(store, session_id)
    (tmp_path / ".index.sqlite").unlink()  # it would not look at sessions that nobody wrote since
    (tmp_path / "headless" / "log.jsonl").write_bytes(b"\0\0\0")
    (tmp_path / "empty" / "log.jsonl").write_bytes(b"")
    (tmp_path / "gone" / "log.jsonl").unlink()
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "log.jsonl").mkdir()
    (tmp_path / "a file").write_text("x")
    (tmp_path / ".new-left-over").mkdir()
    await store.close()
    for store in (FileStore(tmp_path), FileStore(tmp_path, index=False)):
        listed = {info.id: info.problem for info in await store.list()}
        await store.close()
        assert set(listed) == {"good", "headless", "empty", "gone", "directory"}
        assert [name for name, problem in listed.items() if problem is None] == ["good"]


async def test_making_a_session_twice_at_once_makes_one(tmp_path: Path) -> None:
    stores = [FileStore(tmp_path) for _ in range(8)]
    opened = await asyncio.gather(*(store.open("s") for store in stores), return_exceptions=True)
    logs = [log for log in opened if isinstance(log, SessionLog)]
    assert len(logs) == 1
    assert all(isinstance(error, SessionBusyError) for error in opened if error is not logs[0])
    await logs[0].close()
    assert session_names(tmp_path) == ["s"] and not list(tmp_path.glob(".new*"))
    for store in stores:
        await store.close()


async def test_a_cancelled_opening_gives_the_session_free(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await made(store)
    reached, go_on = threading.Event(), threading.Event()

    def fold(event: Event) -> None:
        reached.set()
        go_on.wait(5)

    opening = asyncio.ensure_future(store.open("s", fold=fold))
    await asyncio.to_thread(reached.wait, 5)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go_on.set()
    for _ in range(100):
        try:
            await (await store.open("s")).close()
            break
        except SessionBusyError:
            await asyncio.sleep(0.01)
    else:
        raise AssertionError("the lock was never given back")
    await store.close()


async def test_what_a_fold_raises_comes_through_and_gives_the_session_free(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await made(store)

    def fold(event: Event) -> None:
        raise BrokenPipeError("mine")

    with pytest.raises(BrokenPipeError, match="mine"):
        await store.open("s", fold=fold)
    await (await store.open("s")).close()
    await store.close()


# --- two processes -----------------------------------------------------------------------------------------

HOLDER = """
import asyncio, sys
from pathlib import Path
from lockstitch.session.file_store import FileStore
from lockstitch.schema.events import Title

async def hold():
    log = await FileStore(Path(sys.argv[1])).open("s")
    log.append(Title("theirs"))
    await log.flush()
    print("open", flush=True)
    await asyncio.sleep(60)

asyncio.run(hold())
"""


async def test_a_second_process_is_told_who_has_the_session_and_gets_it_when_the_owner_is_killed(
    tmp_path: Path,
) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE)
    store = FileStore(tmp_path)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(SessionBusyError, match=f"open in process {holder.pid}"):
            await store.open("s")
        assert (await store.check("s")).in_use_by == holder.pid
        view = await store.open("s", read_only=True)
        assert view.report.records == 2
    finally:
        holder.kill()
        holder.wait()
    log = await store.open("s")
    assert log.report.records == 2
    await log.close()
    assert (await store.check("s")).in_use_by is None
    holder.stdout.close()
    await store.close()


async def test_a_lock_file_with_an_old_process_id_means_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = await made(store)
    for text in ("1\n", "", "garbage"):
        (path.parent / "lock").write_text(text)
        await (await store.open("s")).close()
    (path.parent / "lock").unlink()
    await (await store.open("s")).close()
    await store.close()


def test_a_directory_that_moves_away_while_it_is_locked_is_not_the_one_that_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").mkdir()
    try_lock = lock._try_lock

    def moving(fd: int, *, shared: bool = False) -> bool:
        monkeypatch.undo()
        (tmp_path / "s").rename(tmp_path / "trash")
        (tmp_path / "s").mkdir()
        return try_lock(fd, shared=shared)

    monkeypatch.setattr(lock, "_try_lock", moving)
    held = lock.acquire(tmp_path / "s", "s")
    with pytest.raises(SessionBusyError):
        lock.acquire(tmp_path / "s", "s")
    held.close()


async def test_a_forked_child_cannot_write_the_parents_session(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = await store.open("s")
    log.append(Title("parent"))
    await log.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # later Pythons warn that a process with threads forks: that is the point
        pid = os.fork()
    if pid == 0:  # pragma: no cover  # in the child
        try:
            log.append(Title("child"))
            os._exit(1)
        except CallerError:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    log.append(Title("parent again"))
    await log.close()
    await store.close()


FORKING = HOLDER.replace(
    'print("open", flush=True)', 'os.fork() or print("open", flush=True); time.sleep(20)'
).replace("import asyncio", "import asyncio, os, time")


async def test_a_forked_child_that_outlives_its_parent_does_not_keep_the_session(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORKING, tmp_path],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        holder.kill()
        holder.wait()
        store = FileStore(tmp_path)
        await (await store.open("s")).close()
        await store.close()
        holder.stdout.close()
    finally:
        os.killpg(holder.pid, signal.SIGKILL)


# --- a disk that refuses -----------------------------------------------------------------------------------


class FaultyCalls(FileCalls):
    """Fails the calls it is told to, the way a disk does."""

    def __init__(self) -> None:
        self.faults: dict[str, int | None] = {}
        """Name of a call: error number; None for a write that takes only half."""
        self.made: list[str] = []

    def _meet(self, name: str) -> bool:
        self.made.append(name)
        if name in self.faults and (number := self.faults[name]) is not None:
            raise OSError(number, os.strerror(number))
        return name in self.faults

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        if self._meet("write"):
            return super().write(fd, data[: max(len(data) // 2, 1)], offset)
        if "write_then_fail" in self.faults:
            super().write(fd, data[: len(data) // 2], offset)
            raise OSError(errno.EIO, "input/output error")
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._meet("sync")

    def truncate(self, fd: int, length: int) -> None:
        self._meet("truncate")
        super().truncate(fd, length)

    def open(self, path: Path, flags: int, mode: int = 0o600) -> int:
        self._meet("open")
        return super().open(path, flags, mode)

    def rename(self, source: Path, target: Path) -> None:
        self._meet("rename")
        super().rename(source, target)

    def sync_directory(self, path: Path) -> None:
        self._meet("sync_directory")


FAULTS: dict[str, dict[str, int | None]] = {
    "the disk is full": {"write": errno.ENOSPC},
    "a write fails": {"write": errno.EIO},
    "a write fails in the middle": {"write_then_fail": errno.EIO},
    "a write fails in the middle and cannot be undone": {"write_then_fail": errno.EIO, "truncate": errno.EIO},
    "the file system became read-only": {"write": errno.EROFS, "truncate": errno.EROFS},
    "a sync fails": {"sync": errno.EIO},
    "a sync fails and cannot be undone": {"sync": errno.EIO, "truncate": errno.EIO},
    "the file cannot be opened again either": {
        "write_then_fail": errno.EIO,
        "truncate": errno.EIO,
        "open": errno.EMFILE,
    },
    "writes take only a part": {"write": None},
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
async def test_a_disk_that_refuses_costs_nothing_but_time(
    faults: dict[str, int | None], tmp_path: Path
) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    events = [*log.append(Title("acknowledged"))]
    await log.flush()
    path = tmp_path / "s" / "log.jsonl"
    for number in range(3):
        before = path.read_bytes()
        calls.faults = faults
        events += log.append(Title(f"during fault {number}"))
        if faults == {"write": None}:
            await log.flush()
        else:
            with pytest.raises(StorageError, match="Nothing acknowledged is lost"):
                await log.flush()
        assert await read_back(tmp_path) in (events[: 1 + 2 * number], events[: 2 + 2 * number])
        if "truncate" not in faults and None not in faults.values():
            assert path.read_bytes() == before
        calls.faults = {}
        events += log.append(Title(f"after fault {number}"))
        await log.flush()
        assert await read_back(tmp_path) == events
    await log.close()
    report = await store.check("s")
    assert report.sound and report.records == len(events) + 1
    await store.close()


async def read_back(root: Path) -> list[Event]:
    """What another process would see now, without the start."""
    events: list[Event] = []
    store = FileStore(root)
    await store.open("s", read_only=True, fold=events.append)
    await store.close()
    return events[1:]


@pytest.mark.parametrize("call", ["open", "write", "sync", "rename", "sync_directory"])
async def test_a_session_that_cannot_be_made_leaves_nothing(call: str, tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path / "sessions", calls=calls)
    calls.faults = {call: errno.EIO}
    with pytest.raises(StorageError, match="try again when the fault has ended"):
        await store.open("s")
    calls.faults = {}
    await (await store.open("s")).close()
    assert session_names(tmp_path / "sessions") == ["s"] and not list(tmp_path.rglob(".new*"))
    await store.close()


@pytest.mark.parametrize("call", ["open", "write", "sync", "truncate", "rename", "sync_directory"])
async def test_a_session_that_cannot_be_mended_now_can_be_mended_later(call: str, tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    appended = log.append(*a_tool_turn(1))
    await log.close()
    path = tmp_path / "s" / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    calls.faults = {call: errno.EIO}
    with pytest.raises(StorageError):
        await store.open("s")
    calls.faults = {}
    events: list[Event] = []
    await (await store.open("s", fold=events.append)).close()
    assert events[1 : len(appended)] == list(appended[:-1])
    assert (await store.check("s")).sound
    await store.close()


async def test_a_failed_background_write_is_told_by_the_next_flush(tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    calls.faults = {"write": errno.ENOSPC}
    calls.made.clear()
    log.append(Title("x"))
    for _ in range(50):
        await asyncio.sleep(0.01)
        if "write" in calls.made:
            break
    with pytest.raises(StorageError):
        await log.flush()
    calls.faults = {}
    await log.close()
    assert [event.body for event in await read_back(tmp_path)] == [Title("x")]
    await store.close()


async def written_without_being_asked(calls: FaultyCalls) -> None:
    for _ in range(100):
        if "write" in calls.made:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing was written")


async def test_a_failed_sync_also_doubts_what_was_written_before(tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    calls.made.clear()
    events = [*log.append(Title("written, not synced"))]
    await written_without_being_asked(calls)
    calls.faults = {"sync": errno.EIO}
    events += log.append(Title("asked for"))
    with pytest.raises(StorageError):
        await log.flush()
    assert await read_back(tmp_path) == [], "what may be lost is taken away"
    calls.faults = {}
    await log.flush()
    assert await read_back(tmp_path) == events
    await log.close()
    await store.close()


async def test_a_store_that_closes_syncs_what_was_only_written(tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    calls.made.clear()
    log.append(Title("x"))
    await written_without_being_asked(calls)
    assert "sync" not in calls.made
    await store.close()
    assert calls.made.count("sync") == 1
    await log.close()


async def test_closing_on_a_full_disk_raises_and_gives_the_session_free(tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    log.append(Title("x"))
    calls.faults = {"write": errno.ENOSPC}
    with pytest.raises(StorageError):
        await log.close()
    calls.faults = {}
    await (await store.open("s")).close()
    await store.close()


# --- group commit ------------------------------------------------------------------------------------------


class CountedSink:
    def __init__(self, gate: threading.Event) -> None:
        self.commits: list[tuple[bytes, bool]] = []
        self._gate = gate

    def commit(self, data: bytes, *, sync: bool) -> None:
        self._gate.wait(5)
        self.commits.append((data, sync))

    def close(self) -> None:
        pass


class FailingSink:
    """Fails while ``faulty``, after it was let go."""

    def __init__(self) -> None:
        self.taken = b""
        self.faulty = True
        self.reached, self.go_on = threading.Event(), threading.Event()

    def commit(self, data: bytes, *, sync: bool) -> None:
        self.reached.set()
        self.go_on.wait(5)
        if self.faulty:
            raise StorageError("full")
        self.taken += data

    def close(self) -> None:
        pass


def test_what_a_commit_failed_with_goes_before_what_came_meanwhile() -> None:
    sink = FailingSink()
    committer, channel = Committer(), Channel(sink)
    committer.put(channel, b"first ")
    answers: SimpleQueue[StorageError | None] = SimpleQueue()
    committer.sync(channel, answers.put)
    sink.reached.wait(5)
    committer.put(channel, b"second ")
    sink.go_on.set()
    assert isinstance(answers.get(timeout=5), StorageError)
    sink.faulty = False
    committer.sync(channel, answers.put)
    assert answers.get(timeout=5) is None
    committer.close()
    assert sink.taken == b"first second "


def test_all_that_wait_share_one_write_and_one_sync() -> None:
    gate = threading.Event()
    sink = CountedSink(gate)
    committer = Committer()
    channel = Channel(sink)
    committer.put(channel, b"first ")
    answers: SimpleQueue[StorageError | None] = SimpleQueue()
    assert committer.sync(channel, answers.put)
    for number in range(100):
        committer.put(channel, b"%d " % number)
        assert committer.sync(channel, answers.put)
    gate.set()
    assert [answers.get(timeout=5) for _ in range(101)] == [None] * 101
    committer.close()
    assert b"".join(data for data, _ in sink.commits) == b"first " + b"".join(b"%d " % n for n in range(100))
    assert len(sink.commits) <= 2
    assert not committer.sync(channel, answers.put)


async def test_flushing_what_is_durable_costs_no_file_call(tmp_path: Path) -> None:
    calls = FaultyCalls()
    store = FileStore(tmp_path, calls=calls)
    log = await store.open("s")
    log.append(Title("x"))
    await log.flush()
    calls.made.clear()
    for _ in range(5):
        await log.flush()
    assert calls.made == []
    await log.close()
    await store.close()


async def test_a_store_that_was_closed_takes_nothing_more(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = await store.open("s")
    log.append(Title("x"))
    await store.close()
    with pytest.raises(StorageError):
        log.append(Title("y"))
    await log.close()
    assert [event.body for event in await read_back(tmp_path)] == [Title("x")]


async def test_threads_end_with_their_stores(tmp_path: Path) -> None:
    def writers() -> int:
        return sum(thread.name == "lockstitch-log" for thread in threading.enumerate())

    before = writers()
    stores = [FileStore(tmp_path / str(number)) for number in range(5)]
    for store in stores:
        log = await store.open("s")
        log.append(Title("x"))
        await log.close()
    assert writers() == before + 5
    for store in stores:
        await store.close()
    assert writers() == before

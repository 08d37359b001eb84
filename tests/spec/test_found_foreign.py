"""Session folders as hostile testing made them: none reaches another file, or takes memory without an end."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from test_checkpoint_files import Unsynced, session, turns

from lockstitch import Agent
from lockstitch.agent.session_fold import SessionFold
from lockstitch.schema.blocks import Image, Text
from lockstitch.schema.errors import LockstitchError
from lockstitch.schema.events import SessionStart, TurnStart, UserMessage
from lockstitch.session import blobs
from lockstitch.session.blobs import GONE_TEXT, BlobLostError, DirectoryBlobs
from lockstitch.session.checkpoint_file import CHECKPOINT_NAME
from lockstitch.session.file_calls import FileCalls, write_new_file
from lockstitch.session.file_store import FileStore
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.testing.scripted_model import ScriptedModel
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

"""Files that hostile testing put in a log's place: no session keeps another, or its reader, waiting."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstitch import Agent
from lockstitch.schema.errors import LockstitchError
from lockstitch.session.file_store import FileStore
from lockstitch.testing.scripted_model import ScriptedModel

PLACED: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
}


async def run(store: Path, session: str, says: str = "ok") -> str:
    return (await Agent(ScriptedModel([says]), store=store).run("hi", session=session)).text


@pytest.mark.parametrize("name", PLACED)
async def test_what_is_no_file_in_a_logs_place_is_told_at_once(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        for session in ("bad", "good"):
            await run(tmp_path, session)
        log = tmp_path / "bad" / "log.jsonl"
        log.unlink()
        PLACED[name](log)
        store = FileStore(tmp_path)
        problems = {info.id: bool(info.problem) for info in await store.list()}
        assert problems == {"bad": True, "good": False}
        with pytest.raises(LockstitchError):
            await store.check("bad")
        with pytest.raises(LockstitchError):
            await run(tmp_path, "bad")
        assert await run(tmp_path, "good", "again") == "again"


async def test_a_pipe_in_the_locks_place_is_told_at_once(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        await run(tmp_path, "s")
        (tmp_path / "s" / "lock").unlink()
        os.mkfifo(tmp_path / "s" / "lock")
        with pytest.raises(LockstitchError):
            await run(tmp_path, "s")
        assert [info.id for info in await FileStore(tmp_path).list()] == ["s"]


@pytest.mark.parametrize("content", [None, b""], ids=["a log that is gone", "a log that is empty"])
async def test_a_log_without_records_is_not_sound(content: bytes | None, tmp_path: Path) -> None:
    await run(tmp_path, "s")
    log = tmp_path / "s" / "log.jsonl"
    log.unlink()
    if content is not None:
        log.write_bytes(content)
    report = await FileStore(tmp_path).check("s")
    assert (report.sound, report.records) == (False, 0)
    assert report.would == ("begin the log anew: it holds no whole record",)
    assert await run(tmp_path, "s", "again") == "again"
    assert (await FileStore(tmp_path).check("s")).sound


async def test_a_session_opens_from_a_folder_whose_name_is_no_unicode(tmp_path: Path) -> None:
    store, folder = tmp_path / "store", tmp_path / "d\udcff"
    folder.mkdir()
    await run(store, "s")
    agent = Agent(ScriptedModel(["there"]), store=store, cwd=folder)
    assert (await agent.run("hi", session="s")).text == "there"

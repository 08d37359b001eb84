"""What a turn survives: refused requests, large and hostile content, many sessions, a full disk."""

import asyncio
import base64
import gc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_world import World, calls

from lockstitch import (
    Hooks,
    ProviderError,
    StorageError,
    tool,
)
from lockstitch.agent.recovery import next_rung
from lockstitch.history.ladder import RUNGS
from lockstitch.providers.classify import classify
from lockstitch.schema import events as log
from lockstitch.schema.blocks import Base64Source, BlobSource, Image, Text, ToolResult
from lockstitch.schema.messages import Message, Request
from lockstitch.session.file_store import FileStore
from lockstitch.session.memory_store import MemoryStore

# ---- requests that are refused ----


async def test_a_refusal_in_words_nobody_knows_climbs_and_what_went_through_is_remembered() -> None:
    no = {"error": {"message": "The quality of this is insufficient."}, "status": 400}
    called = calls("clock")
    world = World(called, no, "Good.", "Better.")
    result = await world.run()
    assert result.text == "Good."
    rungs = [body.rung for body in await world.bodies(log.AttemptStart)]
    assert rungs[:2] == ["normal", "normal"]
    assert rungs[2] != "normal"
    learned = [body for body in await world.bodies(log.Recovery) if body.succeeded]
    assert [body.rung for body in learned] == [rungs[2]]
    await world.run()
    assert [body.rung for body in await world.bodies(log.AttemptStart)][3] == rungs[2]


@pytest.mark.parametrize("wording", ["provider", "opaque"])
async def test_a_session_with_calls_goes_on_without_tools_where_calls_need_them(wording: str) -> None:
    store = MemoryStore()
    await World(calls("clock"), "Noon.", store=store, profile="anthropic", strict=None).run()
    bare = World(
        "Still noon.", "Later.", store=store, tools=[], profile="anthropic", strict="anthropic-messages",
        wording=wording,
    )  # fmt: skip
    assert (await bare.run("And now?")).text == "Still noon."
    refused = [request for request in bare.model.requests if request.get("refused")]
    assert [request["refused"]["rule"] for request in refused] == ["tools_missing"]
    assert "clock" in str(bare.model.requests[-1]["body"]["messages"])
    assert (await bare.run("And then?")).text == "Later."
    assert [request for request in bare.model.requests if request.get("refused")] == refused


SKIPS: dict[str, tuple[str, str, str | None]] = {
    "calls without tools: to calls as text": ("The toolConfig field must be defined", "normal", "flattened"),
    "the same there: on to the digest": ("The toolConfig field must be defined", "flattened", "digest"),
    "an image that is refused: to no images": ("Could not process image", "normal", "no_media"),
    "words nobody knows: one after the other": ("The quality is insufficient.", "normal", "strict"),
    "at the end there is none": ("The quality is insufficient.", "digest", None),
}


@pytest.mark.parametrize("case", SKIPS)
def test_wording_skips_rungs_that_cannot_help(case: str) -> None:
    message, rung, then = SKIPS[case]
    failure = classify(400, {}, {"error": {"message": message}}).failure
    assert next_rung(RUNGS, rung, failure) == then


async def test_a_request_that_breaks_the_rules_is_never_sent() -> None:
    def spoil(request: Request) -> Request:
        orphan = Message("tool", (ToolResult(call_id="nobody", content=(Text("?"),)),))
        return msgspec.structs.replace(request, messages=(*request.messages, orphan))

    world = World("Never.", hooks=Hooks(before_request=spoil))
    with pytest.raises(ProviderError) as caught:
        await world.run()
    assert caught.value.failure is not None
    assert caught.value.failure.code == "INVALID_STRUCTURE"
    assert world.model.requests == []


# ---- large content ----

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(6000)).decode()


async def test_a_large_image_lies_beside_the_log_and_goes_to_the_model_whole() -> None:
    world = World("A picture.", "Still.", profile="openai")
    image = Image(media_type="image/png", source=Base64Source(data=PIXEL))
    await world.agent.run([Text("What is this?"), image], session="s")
    (message,) = await world.bodies(log.UserMessage)
    assert isinstance(message.content[1].source, BlobSource)
    await world.run("And now?")
    for request in world.model.requests:
        assert PIXEL in str(request["body"])


async def test_a_result_that_was_cut_is_kept_whole(tmp_path: Path) -> None:
    @tool
    def long() -> str:
        """Say much."""
        return "word " * 50_000

    world = World(calls("long"), tools=[long], store=FileStore(tmp_path))
    await world.run()
    (finished,) = await world.bodies(log.ToolFinished)
    assert len(finished.content[0].text) < 60_000
    (blob,) = (tmp_path / "s" / "blobs").iterdir()
    assert blob.read_text() == "word " * 50_000
    assert str(blob) in finished.content[0].text


async def test_hostile_output_breaks_neither_log_nor_request() -> None:
    @tool
    def hostile() -> str:
        """Say anything."""
        return "\x1b]0;owned\x07\x00nul\ud800lone\x9b31m" + "x" * 300_000 + "\u2028\r\x85end"

    world = World(calls("hostile"), "Fine.", tools=[hostile])
    assert (await world.run()).text == "Fine."
    (finished,) = await world.bodies(log.ToolFinished)
    text = finished.content[0].text
    assert not {character for character in text if ord(character) < 32 and character not in "\n\t"}
    assert "\ud800" not in text


# ---- many sessions ----


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_many_sessions_leave_no_task_and_no_file(tmp_path: Path) -> None:
    world = World(store=tmp_path)
    gc.collect()  # what earlier tests left to be collected is no part of this
    before = (len(asyncio.all_tasks()), open_files())
    for group in range(50):
        await asyncio.gather(*(world.agent.run("Go.", session=f"s{group}-{n}") for n in range(20)))
    gc.collect()
    assert (len(asyncio.all_tasks()), open_files()) == before
    assert len(list(tmp_path.glob("s*"))) == 1_000


# ---- when the disk refuses ----


class FullDisk(MemoryStore):
    """A store whose logs refuse to be flushed while ``full`` is set."""

    full = False

    async def open(self, *arguments: Any, **options: Any) -> Any:
        opened = await super().open(*arguments, **options)
        flush = opened.flush

        async def refusing() -> None:
            if self.full:
                raise StorageError("no space left on the device")
            await flush()

        opened.flush = refusing  # type: ignore[method-assign]
        return opened


async def test_a_full_disk_stops_the_turn_and_the_session_goes_on_when_there_is_room() -> None:
    store = FullDisk()
    world = World("One.", "Two.", store=store)
    async with world.agent.open("s") as session:
        store.full = True
        with pytest.raises(StorageError):
            await session.send("a").result()
        assert world.model.requests == [], "nothing is sent whose intent is not durable"
        store.full = False
        assert (await session.send("b").result()).text == "One."
    assert await world.reasons() == ["interrupted", "completed"]

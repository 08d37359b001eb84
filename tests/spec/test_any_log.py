"""Whatever a log holds, in whatever order: its session opens, and a turn comes to its answer."""

import asyncio
from typing import Any

from agent_world import World, calls
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.schema import events as log
from lockstitch.schema.blocks import Image, Reasoning, Text, ToolCall, UrlSource
from lockstitch.schema.events import Body
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage
from lockstitch.wire.jsonl import encode

TEXTS = st.sampled_from(["", " \n", "hello", "nul \x00", "你好"])
IDS = st.sampled_from(["", "call_a", "call_b", "call a/b", "x" * 80])
NAMES = st.sampled_from(["", "clock", "launch", "nobody knows"])
ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1}', '{"a', "null", "[1]"])
SMALL = st.integers(0, 9)
TEXT = st.builds(Text, TEXTS)
CALL = st.builds(
    ToolCall, id=IDS, name=NAMES, arguments=ARGUMENTS, invalid=st.sampled_from([None, "truncated"])
)
PICTURE = st.just(Image(media_type="image/tiff", source=UrlSource(url="file:///x")))
SAID = st.lists(st.one_of(TEXT, st.builds(Reasoning, TEXTS), PICTURE, CALL), max_size=4).map(tuple)
ASKED = st.lists(st.one_of(TEXT, PICTURE), max_size=3).map(tuple)
ENDS = st.sampled_from(["completed", "failed", "cancelled", "interrupted"])
FINISHES = st.sampled_from(["stop", "tool_calls", "length", "aborted", "interrupted"])
FAILED = failure("SERVER", "broken", status=500)

BODIES: st.SearchStrategy[Body] = st.one_of(
    st.builds(log.TurnStart, SMALL),
    st.builds(log.TurnEnd, SMALL, ENDS, st.sampled_from([None, FAILED])),
    st.builds(log.StepStart, SMALL, SMALL),
    st.builds(log.StepEnd, SMALL, SMALL),
    st.builds(log.UserMessage, IDS, ASKED, st.sampled_from(["user", "steer", "runtime", ""])),
    st.builds(log.InputQueued, IDS, ASKED, st.sampled_from(["steer", "follow_up"])),
    st.builds(log.InputTaken, IDS),
    st.builds(log.RequestHeader, st.sampled_from(["generic", "anthropic", ""]), TEXTS),
    st.builds(log.AttemptStart, SMALL, SMALL, SMALL),
    st.builds(log.AssistantDelta, SMALL, st.sampled_from(["text", "reasoning"]), TEXTS),
    st.builds(log.AssistantMessage, IDS, SAID, FINISHES, usage=st.sampled_from([None, Usage(3, 4)])),
    st.builds(log.AttemptFailed, st.just(FAILED)),
    st.builds(log.RetryScheduled, SMALL, st.just("SERVER"), SMALL),
    st.builds(log.RetryStarted, SMALL),
    st.builds(log.ToolCallStarted, SMALL, SMALL, IDS, NAMES),
    st.builds(log.ToolFinished, SMALL, SMALL, IDS, ASKED, st.sampled_from(["done", "failed", "unknown"])),
    st.builds(log.Approval, SMALL, SMALL, st.sampled_from(["asked", "allowed", "denied"])),
    st.builds(log.Clear),
    st.builds(log.Undo, SMALL),
    st.builds(log.Title, TEXTS),
    st.builds(
        log.Recovery, st.sampled_from(["strict", "no_media", "unheard of", ""]), succeeded=st.booleans()
    ),
    st.builds(log.CompactionStart, IDS, st.just("manual"), st.one_of(st.none(), SMALL)),
    st.builds(log.CompactionCall, IDS, SMALL),
    st.builds(log.OutputCount, SMALL),
    st.builds(log.CompactionSummary, IDS, ASKED),
    st.builds(log.CompactionEnd, IDS, st.booleans()),
    st.builds(log.LegacyCompaction, ASKED, SMALL),
)
DAMAGE = st.sampled_from([b"", b"", b"", b"not a record\n", b'{"seq":3,"kind":"half'])


PROVIDERS = {
    "openai-chat": "generic",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
}


async def goes_on(dialect: str, bodies: list[Body], end: bytes) -> None:
    world = World(calls("clock"), "Good.", strict=dialect, profile=PROVIDERS[dialect])
    await (await world.store.open("s")).close()
    start: Body = log.SessionStart(format=1, id="s")
    lines = [encode(seq, 1_000 + seq, body) for seq, body in enumerate([start, *bodies])]
    world.store.write_log("s", b"".join(lines) + end)
    async with asyncio.timeout(20):  # a turn that never ends must fail, not hang
        result: Any = await world.run("And now?")
    assert result.text == "Good."
    refused = [entry["refused"] for entry in world.model.requests if "refused" in entry]
    assert refused == []
    assert (await world.run(None)).reason == "completed"


@settings(max_examples=120, deadline=None)
@given(dialect=st.sampled_from(sorted(PROVIDERS)), bodies=st.lists(BODIES, max_size=25), end=DAMAGE)
def test_whatever_a_log_holds_a_turn_comes_to_its_answer(
    dialect: str, bodies: list[Body], end: bytes
) -> None:
    asyncio.run(goes_on(dialect, bodies, end))

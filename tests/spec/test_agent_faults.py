"""A whole agent among faults: whatever gateway, tools and user do, the log is sound, no request refused."""

import asyncio
import random
from typing import Any

from agent_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch import Stuck, tool
from lockstitch.agent.events import TurnEnded
from lockstitch.agent.state import Budget
from lockstitch.llm.retry import RetryPolicy
from lockstitch.testing.quirks import QUIRKS

FAST = RetryPolicy(initial_delay_s=0.0, jitter_ratio=0.0)
ENDS = {"completed", "failed", "cancelled", "length", "approval", "budget"}


@tool(parallel=True)
async def good(n: int = 0) -> str:
    """Work."""
    await asyncio.sleep(0)
    return f"good {n}"


@tool
def bad() -> str:
    """Fail."""
    raise ZeroDivisionError("as always")


@tool(parallel=True)
async def slow() -> str:
    """Take a moment."""
    await asyncio.sleep(0.01)
    return "\x1b[31mslow\x00"


@tool(needs="approval")
def risky() -> str:
    """Risk it."""
    return "lucky"


NAMES = st.sampled_from(["good", "bad", "slow", "risky", "unknown"])
ARGUMENTS: st.SearchStrategy[Any] = st.sampled_from([{}, {"n": 1}, {"n": "x"}, '{"n": ', "[]", "null"])
CALLS = st.lists(st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}), min_size=1, max_size=4)
QUIRK = st.lists(st.sampled_from(sorted(QUIRKS)), max_size=2, unique=True)
SAID = st.fixed_dictionaries(
    {"quirks": QUIRK, "chunk_chars": st.integers(1, 9)},
    optional={
        "text": st.sampled_from(["Let me see.", "", "<think>hm</think>so"]),
        "reasoning": st.just("Well."),
        "tool_calls": CALLS,
        "finish": st.sampled_from(["length", "stop"]),
    },
)
REFUSED = st.sampled_from(
    [
        {"error": {"message": "overloaded"}, "status": 503},
        {"error": {"message": "no words for it"}, "status": 400},
        {"error": {"message": "max_tokens is too large: 99. At most 9 completion tokens"}, "status": 400},
        {"error": {"message": "maximum context length is 900 tokens"}, "status": 400},
        {"error": {"message": "bad key"}, "status": 401},
        {"raw": "<html>no</html>"},
        {"raw": ""},
    ]
)


async def survives(answers: list[Any], seed: int) -> None:
    source = random.Random(seed)
    world = World(
        *answers,
        tools=[good, bad, slow, risky],
        retry=FAST,
        approve=source.choice([None, True, lambda needed: source.random() < 0.5]),
        budget=Budget(steps=5),
        stuck=Stuck(remind_at=(2,), stop_at=4),
    )
    cancel_at = source.choice([None, 0, 1, 2, 5, 9])
    for number in range(2):
        async with world.agent.open("s") as session:
            turn: Any = session.send("Go.")
            seen: list[Any] = []
            async for event in turn:
                seen.append(event)
                if len(seen) - 1 == cancel_at and number == 0:
                    source.choice([turn.cancel, lambda: None])()
                    if source.random() < 0.2:
                        break
            if isinstance(seen[-1], TurnEnded):
                assert seen[-1].reason in ENDS
        report = await world.store.check("s")
        assert report.sound, report
        assert (report.open_calls, report.open_attempts, report.open_turn) == (0, 0, None)
    refused = [entry["refused"] for entry in world.model.requests if "refused" in entry]
    assert refused == []


@settings(max_examples=80, deadline=None)
@given(answers=st.lists(st.one_of(SAID, SAID, REFUSED), max_size=8), seed=st.integers(0, 2**16))
def test_whatever_happens_the_log_is_sound_and_no_request_refused(answers: list[Any], seed: int) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await survives(answers, seed)

    asyncio.run(bounded())

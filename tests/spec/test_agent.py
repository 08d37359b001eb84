"""The runtime as a program embeds it: turns, input while they run, output, and the sync twins."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from agent_world import World, calls, clock

from lockstitch import (
    CallerError,
    Tool,
    TurnFailedError,
    tool,
)
from lockstitch.agent import events as told
from lockstitch.schema import events as log

# ---- turns ----


async def test_one_turn_with_a_tool() -> None:
    world = World(calls("clock"), "It is noon.")
    result = await world.run("What time is it?")
    assert (result.text, result.reason, result.session_id, result.turn) == (
        "It is noon.",
        "completed",
        "s",
        1,
    )
    assert result.usage.output_tokens > 0
    assert await world.outcomes() == ["done"]
    (title,) = await world.bodies(log.Title)
    assert title.title == "What time is it?"


async def test_turns_of_a_session_build_on_each_other() -> None:
    world = World("One.", "Two.")
    async with world.agent.open("s") as session:
        await session.send("first").result()
        await session.send("second").result()
        assert [message.role for message in session.messages] == ["user", "assistant"] * 2
        assert session.title == "first"
    assert world.sent(1) == ["first", "One.", "second"]


async def test_without_an_id_a_session_is_new() -> None:
    world = World("One.", "Two.")
    first, second = await world.agent.run("a"), await world.agent.run("b")
    assert first.session_id != second.session_id
    assert len(await world.store.list()) == 2


async def test_events_tell_the_turn_in_order() -> None:
    world = World(calls("clock", text="Let me see."), "Noon.")
    seen = [event async for event in world.agent.stream("Time?", session="s")]
    assert [type(event).__name__ for event in seen] == [
        "TextDelta",
        "ToolStarted",
        "ToolFinished",
        "TextDelta",
        "TurnEnded",
    ]


async def test_parallel_tools_overlap_and_serial_ones_do_not() -> None:
    running: list[int] = []
    most: dict[str, int] = {}

    async def busy(name: str) -> str:
        running.append(1)
        most[name] = max(most.get(name, 0), len(running))
        await asyncio.sleep(0.02)
        running.pop()
        return name

    @tool(parallel=True)
    async def beside() -> str:
        """Run beside others."""
        return await busy("beside")

    @tool
    async def alone() -> str:
        """Run alone."""
        return await busy("alone")

    world = World(calls("beside", "beside", "beside"), calls("alone", "alone"), tools=[beside, alone])
    await world.run()
    assert most == {"beside": 3, "alone": 1}


async def test_the_model_sees_results_in_call_order() -> None:
    @tool(parallel=True)
    async def wait(seconds: float) -> str:
        """Wait."""
        await asyncio.sleep(seconds)
        return f"waited {seconds}"

    asked = [{"name": "wait", "arguments": {"seconds": seconds}} for seconds in (0.05, 0.0)]
    world = World({"tool_calls": asked}, "Done.", tools=[wait])
    await world.run()
    assert [body.content[0].text for body in await world.bodies(log.ToolFinished)] == [
        "waited 0.0",
        "waited 0.05",
    ]
    assert world.sent(1)[-2:] == ["waited 0.05", "waited 0.0"]


async def test_a_second_turn_at_the_same_time_is_refused() -> None:
    world = World({"text": "Slow.", "delay_ms": 200})
    async with world.agent.open("s") as session:
        first = session.send("a")
        await session_is_busy(session, first)
        with pytest.raises(CallerError, match="steer"):
            await session.send("b").result()
        first.cancel()
        assert (await first.result()).reason == "cancelled"


async def session_is_busy(session: Any, turn: Any) -> None:
    """Start the turn without reading from it."""
    turn._started()
    while not session.messages:
        await asyncio.sleep(0)


async def test_an_empty_prompt_makes_no_session() -> None:
    world = World("One.")
    with pytest.raises(CallerError, match="empty"):
        await world.run("  ")
    assert await world.store.list() == []


# ---- input while a turn runs ----


async def test_steering_reaches_the_next_step_and_a_follow_up_the_next_turn() -> None:
    opened: list[Any] = []

    @tool
    async def work() -> str:
        """Work."""
        await opened[0].steer("Faster!")
        await opened[0].follow_up("And then?")
        return "worked"

    world = World(calls("work"), "Hurried.", "Then this.", tools=[work])
    async with world.agent.open("s") as session:
        opened.append(session)
        result = await session.send("Work.").result()
    assert result.text == "Then this."
    assert world.sent(1)[-1] == "Faster!"
    assert world.sent(2)[-2:] == ["Hurried.", "And then?"]
    origins = [body.origin for body in await world.bodies(log.UserMessage)]
    assert origins == ["user", "steer", "follow_up"]


async def test_input_queued_between_turns_survives_and_begins_the_next() -> None:
    world = World("One.", "Two.")
    async with world.agent.open("s") as session:
        await session.steer("Remember me.")
    async with world.agent.open("s") as session:
        await session.resume().result()
    assert world.sent(0) == ["Remember me."]


# ---- structured output ----


@dataclass
class Weather:
    town: str
    degrees: float


async def test_an_answer_becomes_a_value() -> None:
    world = World('{"town": "Bern", "degrees": 4.5}')
    result = await world.run("Weather?", output=Weather)
    assert result.output == Weather("Bern", 4.5)
    assert '"degrees"' in world.sent(0)[-1]


async def test_an_answer_that_does_not_fit_is_sent_back_with_the_reason() -> None:
    world = World("It is nice.", '{"town": "Bern"}', '```json\n{"town": "Bern", "degrees": 4}\n```')
    result = await world.run("Weather?", output=Weather)
    assert result.output == Weather("Bern", 4)
    assert "degrees" in world.sent(2)[-1]


async def test_answers_that_never_fit_end_the_turn() -> None:
    world = World(*["It is nice."] * 9)
    with pytest.raises(TurnFailedError, match="did not fit"):
        await world.run("Weather?", output=Weather)
    assert len(world.model.requests) == 4


# ---- without an event loop ----


def test_the_sync_twins_run_on_one_thread() -> None:
    threads: list[int] = []

    @tool
    async def where() -> str:
        """Say where."""
        threads.append(threading.get_ident())
        return "here"

    world = World(calls("where"), "One.", calls("where"), "Two.", tools=[where])
    assert world.agent.run_sync("a", session="s").text == "One."
    seen = list(world.agent.stream_sync("b", session="s"))
    assert isinstance(seen[-1], told.TurnEnded)
    assert len(threads) == 2
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


async def test_a_sync_twin_inside_a_loop_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="await"):
        World("One.").agent.run_sync("a")


def test_leaving_a_sync_stream_cancels_the_turn() -> None:
    world = World({"text": "A long story.", "hang": 30, "quirks": ["no_done"], "chunk_chars": 3})
    for _ in world.agent.stream_sync("a", session="s"):
        break
    assert asyncio.run(world.reasons()) == ["cancelled"]


def test_a_tool_may_be_a_plain_function() -> None:
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    world = World({"tool_calls": [{"name": "double", "arguments": {"number": 4}}]}, tools=[double])
    world.agent.run_sync("a", session="s")
    assert world.sent(1)[-1] == "8"
    assert isinstance(clock, Tool)

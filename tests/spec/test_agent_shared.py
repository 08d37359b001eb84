"""What the sessions of one agent share: made whole before it is used, one for each loop, closed once."""

import asyncio
import threading
from pathlib import Path

from lockstitch import Agent
from lockstitch.testing.scripted_model import ScriptedModel


def test_a_loop_in_a_thread_keeps_what_it_uses_when_another_is_done(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel({"answers": [], "then": {"text": "Hello."}}), store=tmp_path)
    here_open, there_open, here_closed = threading.Event(), threading.Event(), threading.Event()
    said: list[str] = []

    async def here() -> None:
        async with agent.open("here"):
            here_open.set()
            await asyncio.to_thread(there_open.wait, 20)
        here_closed.set()

    async def there() -> None:
        here_open.wait(20)
        async with agent.open("there") as session:
            there_open.set()
            await asyncio.to_thread(here_closed.wait, 20)
            said.append((await session.send("Hi.").result()).check().text)

    thread = threading.Thread(target=lambda: asyncio.run(there()))
    thread.start()
    asyncio.run(here())
    thread.join()
    assert said == ["Hello."]


def test_what_a_loop_left_open_when_it_ended_is_forgotten(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel({"answers": [], "then": {"text": "Hello."}}), store=tmp_path)

    async def left_open() -> None:
        await agent.open("s").__aenter__()

    asyncio.run(left_open())
    assert asyncio.run(agent.run("Hi.", session="t")).text == "Hello."
    assert agent._shared._uses == {}


def test_sessions_in_memory_live_as_long_as_their_agent() -> None:
    agent = Agent(ScriptedModel(["One.", "Two."]), store="memory")
    assert agent.run_sync("First.", session="s").text == "One."
    second = agent.run_sync("Second.", session="s")
    assert (second.text, second.turn) == ("Two.", 2)


def test_another_agents_memory_is_another() -> None:
    for _ in range(2):
        agent = Agent(ScriptedModel(["One."]), store="memory")
        assert agent.run_sync("First.", session="s").turn == 1

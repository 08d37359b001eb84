"""Tools of an MCP server in an agent: offered when they are ready, never in the way before."""

import asyncio
import sys
from pathlib import Path

import pytest
from agent_world import World, clock

from lockstitch import Agent, CallerError
from lockstitch.agent.shared import Shared
from lockstitch.testing.scripted_model import ScriptedModel

pytest.importorskip("mcp", reason="the mcp package is not installed")
from lockstitch.tools.mcp import McpServers, StdioServer

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("adder")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


server.run("stdio")
'''


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)


async def test_a_server_that_becomes_ready_between_turns_is_offered_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    call = {"tool_calls": [{"name": "mcp__adder__add", "arguments": {"a": 2, "b": 3}}]}
    server = StdioServer("adder", sys.executable, ("server.py",))
    world = World("Not yet.", call, "Five.", tools=[clock], mcp=[server], cwd=tmp_path, approve=True)
    async with world.agent.open("s") as session:
        await session.send("2 + 3?").result()
        more = session._parts.more_tools
        assert more is not None
        async with asyncio.timeout(30):
            while not more():
                await asyncio.sleep(0.02)
        result = await session.send("And now?").result()
    assert result.text == "Five."
    assert world.sent(2)[-1] == "5"
    offered = [[tool["function"]["name"] for tool in r["body"]["tools"]] for r in world.model.requests]
    assert offered == [["clock"], ["clock", "mcp__adder__add"], ["clock", "mcp__adder__add"]]


async def test_a_server_that_never_starts_costs_nothing(tmp_path: Path) -> None:
    silent = StdioServer("silent", sys.executable, ("-c", "import time; time.sleep(600)"))
    world = World("Hello.", mcp=[silent], cwd=tmp_path)
    async with asyncio.timeout(20):
        assert (await world.run()).text == "Hello."


async def test_servers_that_cannot_be_are_told_of_at_every_opening_not_only_at_the_first() -> None:
    agent = Agent(ScriptedModel(["Hello."]), store="memory", mcp=[StdioServer("a b", "true")])
    for _ in range(2):
        with pytest.raises(CallerError, match="the MCP server name 'a b' is not usable"):
            await agent.run("Hi.")


async def test_sessions_that_open_at_once_have_the_same_servers() -> None:
    shared = Shared("memory", ScriptedModel([]), (StdioServer("quiet", "sleep", ("60",)),))
    first, second = await asyncio.gather(shared.take({}, Path.cwd()), shared.take({}, Path.cwd()))
    assert isinstance(first.servers, McpServers)
    assert first == second
    await shared.give_back()
    assert first.servers.status()[0].state == "starting", "the other session still works with them"
    await shared.give_back()
    assert first.servers.status()[0].state == "closed"

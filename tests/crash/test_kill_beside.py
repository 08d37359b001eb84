"""SIGKILL while one of two parallel tools runs: the one that had ended is known as done."""

import subprocess
import sys
from pathlib import Path

from lockstitch.schema.events import Event, ToolFinished, TurnEnd
from lockstitch.session.file_store import FileStore

CHILD = '''
import asyncio
import sys
import time
from pathlib import Path

from lockstitch import Agent, tool
from lockstitch.agent.events import ToolFinished
from lockstitch.testing.scripted_model import ScriptedModel


@tool(parallel=True)
def fast() -> str:
    """Be quick."""
    return "ready"


@tool(parallel=True)
async def slow() -> str:
    """Take your time."""
    await asyncio.sleep(600)
    return "late"


async def main() -> None:
    calls = [{"name": "slow", "arguments": {}}, {"name": "fast", "arguments": {}}]
    agent = Agent(ScriptedModel([{"tool_calls": calls}]), tools=[fast, slow], store=Path(sys.argv[1]))
    async for event in agent.stream("Go.", session="s"):
        if isinstance(event, ToolFinished):
            print(event.name, flush=True)


asyncio.run(main())
'''


async def test_what_was_done_is_known_and_what_ran_is_unknown(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "fast\n"
    process.kill()
    process.communicate(timeout=30)
    events: list[Event] = []
    store = FileStore(tmp_path)
    await (await store.open("s", fold=events.append)).close()
    await store.close()
    answers = {
        (event.body.position, event.body.outcome) for event in events if isinstance(event.body, ToolFinished)
    }
    assert answers == {(1, "done"), (0, "unknown")}
    assert [event.body.reason for event in events if isinstance(event.body, TurnEnd)] == ["interrupted"]

"""Ctrl-C in code without an event loop: the turn is closed before KeyboardInterrupt reaches the program."""

import signal
import subprocess
import sys
from pathlib import Path

from lockstitch.schema.events import Event, ToolFinished, TurnEnd
from lockstitch.session.file_store import FileStore

PROGRAM = '''
import sys
import time
from pathlib import Path

from lockstitch import Agent, tool
from lockstitch.testing.scripted_model import ScriptedModel


@tool
async def hang() -> str:
    """Hang."""
    import asyncio

    print("hanging", flush=True)
    await asyncio.sleep(600)
    return "never"


call = {"name": "hang", "arguments": {}}
model = ScriptedModel([{"tool_calls": [call, call]}])
agent = Agent(model, tools=[hang], store=Path(sys.argv[1]))
try:
    agent.run_sync("Go.", session="s")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(0.01)
'''


async def test_run_sync_closes_its_turn(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "hanging\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "interrupted\n", "")
    events: list[Event] = []
    store = FileStore(tmp_path)
    await store.open("s", read_only=True, fold=events.append)
    await store.close()
    outcomes = [event.body.outcome for event in events if isinstance(event.body, ToolFinished)]
    assert sorted(outcomes) == ["cancelled", "not_started"]
    assert [event.body.reason for event in events if isinstance(event.body, TurnEnd)] == ["cancelled"]

"""No process of a tool outlives its call, a cancellation, or an agent that is killed."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.tools.builtin import builtin_tools
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call

REGISTRY = Registry(builtin_tools())
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
MARK = "LOCKSTITCH_TEST_MARK"


async def shell(root: Path, command: str, *, context: dict[str, Any] | None = None, **arguments: Any) -> Ran:
    request = ToolCall(id="c1", name="shell", arguments=json.dumps({"command": command, **arguments}))
    return await run_call(REGISTRY, request, ToolContext(root, **(context or {})))


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


@pytest.fixture
def mark() -> Iterator[str]:
    """A value in the environment of all processes of a test; those still alive in the end are ended."""
    value = uuid.uuid4().hex
    yield value
    for pid in survivors(value):
        os.kill(pid, 9)


def survivors(value: str) -> set[int]:
    """Living processes, not this one, that carry the mark."""
    wanted = f"{MARK}={value}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            alive = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
            if alive and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


async def until_gone(value: str) -> set[int]:
    """Who is left when the wait is over, which is far longer than it takes."""
    for _ in range(400):
        if not (left := survivors(value)):
            return left
        await asyncio.sleep(0.02)
    return survivors(value)


FORKS = textwrap.dedent(
    """
    import os, sys, time, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for depth in range(3):            # a new session and a dead parent at each level
        if os.fork():
            os._exit(0)
        os.setsid()
    open(sys.argv[1], "w").close()
    time.sleep(600)
    """
)
TREES: dict[str, str] = {
    "a plain child": "sleep 600 & touch ready; wait",
    "a child in its own session": "setsid sleep 600 & touch ready; wait",
    "a child whose parent is gone": (
        "(setsid sh -c 'trap \"\" TERM HUP; touch ready; while :; do sleep 1; done' &) ; sleep 600"
    ),
    "a child forked away three times that ignores SIGTERM": f"{sys.executable} forks.py ready; sleep 600",
    "a nohup child": "nohup sleep 600 >/dev/null 2>&1 & touch ready; sleep 600",
    "a command that ignores SIGTERM": "trap '' TERM; touch ready; while :; do sleep 1; done",
    "a background job beside a command that became another program": (
        "(sleep 600 >/dev/null 2>&1 & ) ; touch ready; exec sleep 600"
    ),
}


@ON_LINUX
@pytest.mark.parametrize("command", TREES.values(), ids=TREES)
async def test_no_process_outlives_an_agent_that_is_killed(command: str, tmp_path: Path, mark: str) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    agent = textwrap.dedent(
        """
        import asyncio, json, sys
        from pathlib import Path
        from lockstitch.schema.blocks import ToolCall
        from lockstitch.tools.builtin import builtin_tools
        from lockstitch.tools.contract import ToolContext
        from lockstitch.tools.registry import Registry
        from lockstitch.tools.run import run_call
        call = ToolCall(id="c", name="shell", arguments=json.dumps({"command": sys.argv[1]}))
        asyncio.run(run_call(Registry(builtin_tools()), call, ToolContext(Path.cwd())))
        """
    )
    running = subprocess.Popen(
        [sys.executable, "-c", agent, command], cwd=tmp_path, env={**os.environ, MARK: mark}
    )
    for _ in range(500):
        if (tmp_path / "ready").exists():
            break
        await asyncio.sleep(0.02)
    assert len(survivors(mark)) >= 3, "agent, supervisor and command are alive"
    running.kill()
    running.wait()
    assert await until_gone(mark) == set()


@ON_LINUX
@pytest.mark.parametrize("command", TREES.values(), ids=TREES)
async def test_no_process_outlives_a_call_that_is_cancelled(command: str, tmp_path: Path, mark: str) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    running = asyncio.create_task(shell(tmp_path, command, context={"environ": {**os.environ, MARK: mark}}))
    for _ in range(500):
        if (tmp_path / "ready").exists():
            break
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert survivors(mark) == set(), "all are gone when the call is over, not a little later"


@ON_LINUX
async def test_no_process_outlives_its_call(tmp_path: Path, mark: str) -> None:
    command = "sleep 601 & setsid sleep 602 & (setsid sleep 603 &) ; echo done"
    ran = await shell(tmp_path, command, context={"environ": {**os.environ, MARK: mark}})
    assert text_of(ran).startswith("done\n[ended with it, still in the background: ")
    assert survivors(mark) == set()


@ON_LINUX
async def test_a_tree_that_forks_without_end_is_ended(tmp_path: Path, mark: str) -> None:
    command = "f() { while :; do sleep 0.05 & wait; done; }; for i in 1 2 3 4 5 6 7 8; do f & done; wait"
    ran = await shell(tmp_path, command, timeout_s=0.2, context={"environ": {**os.environ, MARK: mark}})
    assert text_of(ran) == "[stopped: it ran longer than 0.2 s]"
    assert survivors(mark) == set()


@ON_LINUX
async def test_a_server_over_standard_input_dies_with_its_parent(tmp_path: Path, mark: str) -> None:
    """As MCP servers are run: standard streams pass through, the parent's death is noticed."""
    script = textwrap.dedent(
        """
        import subprocess, sys, time
        from lockstitch.tools.process import supervised
        server = subprocess.Popen(
            supervised(
                ["sh", "-c", "setsid sleep 600 & read line; echo got $line; sleep 600"],
                line_max_bytes=1000, values_max=1000,
            ),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        server.stdin.write(b"hello\\n"); server.stdin.flush()
        print(server.stdout.readline().decode(), end="", flush=True)
        time.sleep(600)
        """
    )
    agent = subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    assert agent.stdout.readline() == "got hello\n"
    agent.kill()
    agent.wait()
    agent.stdout.close()
    assert await until_gone(mark) == set()


def test_no_thread_or_descriptor_is_left_by_many_calls(tmp_path: Path) -> None:
    async def many() -> None:
        await asyncio.gather(*(shell(tmp_path, "true") for _ in range(4)))

    asyncio.run(many())
    before = set(threading.enumerate())
    descriptors = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        asyncio.run(many())
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(5)  # one that has given its value may still be on its way out
    assert [thread.name for thread in started if thread.is_alive()] == []
    assert len(list(Path("/dev/fd").iterdir())) == descriptors

"""shell: what it returns, what it withholds, and how it is bounded."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.tools import builtin_shell, process
from lockstitch.tools.builtin import builtin_tools
from lockstitch.tools.builtin_shell import tool_environment
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.process import HeadTail
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


COMMANDS: dict[str, tuple[str, str, str]] = {
    "output": ("echo hello", "done", "hello\n"),
    "both streams in their order": ("echo one; echo two >&2; echo three", "done", "one\ntwo\nthree\n"),
    "no output": ("true", "done", "(no output)"),
    "an exit status": ("echo x; exit 3", "failed", "x\n[exit status 3]"),
    "an exit status alone": ("exit 3", "failed", "[exit status 3]"),
    "a command that is not there": ("nonexistent-program-x 2>/dev/null", "failed", "[exit status 127]"),
    "death by a signal": ("kill -9 $$", "failed", "[ended by SIGKILL]"),
    "standard input is closed": ("cat; echo after", "done", "after\n"),
    "there is no terminal": ("tty >/dev/null || echo none; echo $TERM", "done", "none\ndumb\n"),
    "a broken pipe ends its writer silently": ("yes | head -n 1", "done", "y\n"),
    "lines that overwrite themselves are shown as they end": (
        r"printf '10%%\r100%%\nx\r\n'",
        "done",
        "100%\nx\n",
    ),
    "bytes that are not text": (r"printf '\377\000\033[31mred'", "done", "\ufffd\u2400red"),
    "several lines": ("for i in 1 2; do\n  echo $i\ndone", "done", "1\n2\n"),
    "an empty command": (" ", "failed", "The command is empty."),
    "a command with NUL": (
        "echo a\0b",
        "failed",
        "The command holds a NUL character, which no shell can take.",
    ),
    "a command too long for the system": (
        "echo " + "x" * 130_000,
        "failed",
        "The command is longer than 120,000 bytes. Write it to a file first and run that.",
    ),
    "a process left in the background is ended and named": (
        "sleep 987 >/dev/null & sleep 0.1; echo started",
        "done",
        "started\n[ended with it, still in the background: sleep 987]",
    ),
    "the death of the supervisor is told": (
        "kill -9 $PPID; sleep 987",
        "failed",
        "[its exit status is not known: the process that watched it was killed]",
    ),
}


@pytest.mark.parametrize(("command", "outcome", "text"), COMMANDS.values(), ids=COMMANDS)
async def test_commands(command: str, outcome: str, text: str, tmp_path: Path) -> None:
    ran = await shell(tmp_path, command)
    assert (ran.outcome, text_of(ran)) == (outcome, text)


async def test_it_runs_in_the_workspace(tmp_path: Path) -> None:
    assert text_of(await shell(tmp_path, "pwd -P")) == f"{tmp_path.resolve()}\n"


async def test_a_workspace_that_is_gone_is_explained(tmp_path: Path) -> None:
    ran = await shell(tmp_path / "gone", "pwd")
    assert (ran.outcome, text_of(ran)) == (
        "failed",
        f"no process could be started in {tmp_path / 'gone'}: No such file or directory",
    )


async def test_a_command_over_its_time_is_stopped_with_its_output_kept(tmp_path: Path) -> None:
    ran = await shell(tmp_path, "echo begun; sleep 987 & sleep 987", timeout_s=0.2)
    assert (ran.outcome, text_of(ran)) == ("failed", "begun\n[stopped: it ran longer than 0.2 s]")


STUBBORN = {
    "a command that waits": "echo begun; touch ready; sleep 600",
    "one that ignores SIGTERM": "trap '' TERM; echo begun; touch ready; while :; do sleep 1; done",
    "one whose child holds the output open": "echo begun; setsid sleep 600 & touch ready; sleep 600",
    "one that closed its output": "echo begun; exec >&- 2>&-; touch ready; sleep 600",
    "a line without its end": "printf begun; touch ready; sleep 600",
}


@pytest.mark.parametrize("name", STUBBORN)
async def test_a_cancelled_command_keeps_its_output(name: str, tmp_path: Path) -> None:
    told: list[Ran] = []
    call = ToolCall(id="c", name="shell", arguments=json.dumps({"command": STUBBORN[name]}))
    context = ToolContext(cwd=tmp_path)
    running = asyncio.create_task(run_call(REGISTRY, call, context, when_cancelled=told.append))
    while not (tmp_path / "ready").exists():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (ran,) = told
    first, second = ran.content
    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert first.text.startswith("begun\n[stopped: the call was cancelled")
    assert second.text.startswith("[shell was cancelled while it ran.")
    assert (ran.outcome, ran.is_error) == ("cancelled", True)


async def test_a_command_that_writes_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        process.run_process,
        "__kwdefaults__",
        {**process.run_process.__kwdefaults__, "output_max_bytes": 50_000},
    )
    ran = await shell(tmp_path, "yes")
    assert text_of(ran).endswith("y\n[stopped: it wrote more than 64 MiB; write to a file instead]")


async def test_output_streams_as_progress(tmp_path: Path) -> None:
    seen: list[str] = []
    arrived = asyncio.Event()

    def show(text: str) -> None:
        seen.append(text)
        arrived.set()
        (tmp_path / "go").touch()

    ran = await shell(
        tmp_path, "echo first; while [ ! -e go ]; do sleep 0.01; done; echo last", context={"progress": show}
    )
    assert seen[0] == "first\n"
    assert text_of(ran) == "first\nlast\n"


ENVIRON = {
    "PATH": "/bin",
    "OPENAI_API_KEY": "sk-123456789",
    "github_token": "ghp-123456789",
    "DB_PASSWORD": "hunter2hunter2",
    "MY_SECRET": "short",
    "COPY": "sk-123456789",
    "SHORT_COPY": "short",
    "BASH_ENV": "/tmp/evil",
    "HOME": "/root",
}
FIXED = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
ENVIRONMENTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "names and values that are secret are withheld": (
        (),
        {"PATH": "/bin", "HOME": "/root", "SHORT_COPY": "short"},
    ),
    "what is listed is passed": (
        ("OPENAI_API_KEY",),
        {
            "PATH": "/bin",
            "HOME": "/root",
            "SHORT_COPY": "short",
            "OPENAI_API_KEY": "sk-123456789",
            "COPY": "sk-123456789",
        },
    ),
}


@pytest.mark.parametrize(("allow", "expected"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_environment_of_tools(allow: tuple[str, ...], expected: dict[str, str]) -> None:
    assert tool_environment(ENVIRON, allow) == {**expected, **FIXED}


async def test_a_command_sees_no_secret(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        **{name: value for name, value in ENVIRON.items() if name not in ("PATH", "HOME")},
    }
    ran = await shell(tmp_path, "env", context={"environ": environ})
    for name in ("OPENAI_API_KEY", "github_token", "DB_PASSWORD", "MY_SECRET"):
        assert name not in text_of(ran)
        assert ENVIRON[name] + "\n" not in text_of(ran).replace("SHORT_COPY=short", "")


def test_head_and_tail_are_kept_in_bounded_memory() -> None:
    kept = HeadTail(4, 3)
    for byte in b"0123456789":
        kept.feed(bytes([byte]))
    assert kept.value() == b"0123\n[... 3 bytes left out ...]\n789"
    assert (kept.total, len(kept._tail)) == (10, 6)


@pytest.mark.parametrize(("data", "value"), [(b"", b""), (b"0123456", b"0123456"), (b"0123", b"0123")])
def test_what_fits_is_kept_whole(data: bytes, value: bytes) -> None:
    kept = HeadTail(4, 3)
    kept.feed(data)
    assert kept.value() == value


def test_progress_is_not_shown_more_often_than_can_be_seen_and_never_in_the_middle_of_a_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([1.0, 1.01, 1.02, 2.0])
    monkeypatch.setattr(builtin_shell.time, "monotonic", lambda: next(clock))
    seen: list[str] = []
    progress = builtin_shell._Progress(seen.append)
    for piece in (b"a", "é".encode()[:1], "é".encode()[1:], b"z"):
        progress.feed(piece)
    assert seen == ["a", "éz"]

"""What models, tools, gateways and files say reaches a terminal as text, by every command."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import WAIT_S, Cli, call, script_of

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x85\rend"
"""A title, a cleared screen, colour by a C1 character, and characters that only look like nothing."""
OURS = re.compile(r"\x1b\[[0-9;]*m")
STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def on_a_terminal(cli: Cli, *arguments: str, stdin: str = "") -> str:
    """Everything that the command wrote to a terminal, both streams."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lockstitch", *arguments],
        cwd=cli.cwd,
        env={**cli.environ(), "PAGER": "cat", "TERM": "xterm"},
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(stdin.encode())
    process.stdin.close()
    written = b""
    try:
        while data := os.read(ours, 65536):
            written += data
    except OSError:
        pass  # how a terminal says that nobody writes to it any more
    os.close(ours)
    process.wait(WAIT_S)
    return written.decode()


def steering(shown: str) -> list[str]:
    return STEERING.findall(OURS.sub("", shown))


@script_of(
    {"text": HOSTILE, **call("read", path=HOSTILE)},
    {"tool_calls": [{"name": HOSTILE, "arguments": {"x": HOSTILE}}]},
    {"error": {"message": HOSTILE}, "status": 400},
    {"error": {"message": HOSTILE}, "status": 401},
)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_turn(cli: Cli, form: tuple[str, ...]) -> None:
    shown = on_a_terminal(cli, *cli.run_arguments("--session", "s", *form, f"Say {HOSTILE}"))
    assert "end" in shown
    assert steering(shown) == []


COMMANDS = {
    "list": ("list",),
    "list as json": ("list", "--json"),
    "show": ("show", "s"),
    "show as Markdown": ("show", "s", "--format", "markdown"),
    "show as HTML": ("show", "s", "--format", "html"),
    "show as json": ("show", "s", "--json"),
    "search": ("search", "end"),
    "search as json": ("search", "end", "--json"),
    "check": ("check", "s"),
    "check as json": ("check", "s", "--json"),
}


@script_of({"text": HOSTILE, **call("read", path=HOSTILE)}, f"Well. {HOSTILE}")
def test_the_sessions_commands(cli: Cli) -> None:
    cli.run("--session", "s", f"Say {HOSTILE}")
    for name, arguments in COMMANDS.items():
        shown = on_a_terminal(cli, "sessions", *arguments)
        assert "s" in shown, name
        assert steering(shown) == [], name


BODY = (
    'data: {"choices":[{"delta":{"content":"X","tool_calls":[{"index":0,"id":"X","function":'
    '{"name":"X","arguments":"{"}}]},"finish_reason":"X"}]}\n\n'
).replace("X", "\\u001b]0;owned\\u0007\\u009b31m\\u007fend\x9b2J\x7f")
ERROR = '{"error": {"message": "\\u001b[2J\\u009b31m\\u007fend\x9b2J"}}'
REQUEST = '{"model": "m", "messages": [{"role": "\x9b31m\x7fend", "content": "\\u001b[2J"}]}'
WIRE = {
    "decode": ("decode", "--dialect", "openai-chat", "-", BODY),
    "decode as chunks": ("decode", "--dialect", "openai-chat", "--chunks", "-", BODY),
    "decode an error": ("decode", "--dialect", "openai-chat", "--status", "400", "-", ERROR),
    "classify": ("classify", "--status", "400", "-", ERROR),
    "lint": ("lint", "--dialect", "openai-chat", "-", REQUEST),
    "lint and mend": ("lint", "--dialect", "openai-chat", "--fix", "-", REQUEST),
    "a file that is not there": ("decode", "--dialect", "openai-chat", HOSTILE.replace("\r", ""), ""),
    "a dialect that is none": ("decode", "--dialect", HOSTILE, "-", ""),
}


@pytest.mark.parametrize("arguments", WIRE.values(), ids=WIRE)
def test_the_wire_commands(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    *words, body = arguments
    shown = on_a_terminal(Cli(tmp_path), "wire", *words, stdin=body)
    assert "end" in shown
    assert steering(shown) == []


def test_a_hostile_word_would_be_seen() -> None:
    assert len(steering(f"\x1b[2mdim\x1b[0m {HOSTILE}")) == 7

"""The ``lockstitch`` command as a process, in a home of its own, against a mock gateway."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

KEY = "sk-secret-5d41402abc4b2a76"
WAIT_S = 30.0
"""For what must happen; a test fails behind it, none is timed."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        return self.lines[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]


class Cli:
    """Runs commands with one home and one working directory."""

    def __init__(self, folder: Path, base_url: str = "") -> None:
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.base_url = base_url
        self.extra: dict[str, str] = {"DEEPSEEK_API_KEY": KEY}
        self.open: list[Any] = []
        """Held by the test while the command runs."""

    def environ(self) -> Mapping[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY") and not name.lower().endswith("_proxy")
            if not name.startswith("LOCKSTITCH_")
        }
        return {**kept, "LOCKSTITCH_HOME": str(self.home), "PYTHONUTF8": "1", **self.extra}

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "lockstitch", *arguments],
            cwd=self.cwd,
            env=self.environ(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "lockstitch", *arguments],
            cwd=self.cwd,
            env=self.environ(),
            input=stdin.encode() if isinstance(stdin, str) else stdin or b"",
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Ended:
        return self(*self.run_arguments(*arguments), stdin=stdin)

    def run_arguments(self, *arguments: str) -> list[str]:
        return ["run", "-m", "deepseek:deepseek-chat", "--base-url", self.base_url, *arguments]

    def log(self, session: str) -> list[dict[str, Any]]:
        """The records of a session, as they lie on disk."""
        path = self.home / "sessions" / session / "log.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def kinds(self, session: str, *wanted: str) -> list[dict[str, Any]]:
        return [record["data"] for record in self.log(session) if record["kind"] in wanted]


def ended(process: "subprocess.Popen[str]") -> Ended:
    out, err = process.communicate(timeout=WAIT_S)
    return Ended(process.returncode, out, err)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)


def script_of(*answers: Any) -> pytest.MarkDecorator:
    """What the ``gateway`` of this test answers, in order."""
    return pytest.mark.parametrize("gateway", [list(answers)], indirect=True, ids=[""])


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer that calls one tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def outcomes(cli: Cli, session: str) -> list[str]:
    return [data["outcome"] for data in cli.kinds(session, "tool_result")]


def reasons(cli: Cli, session: str) -> list[str]:
    return [data["reason"] for data in cli.kinds(session, "turn_end")]

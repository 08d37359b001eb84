"""The stage of the demo: a folder, a gateway process, and agents as processes that can be killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..schema.errors import LockstitchError
from . import demo_story as story

WAIT_S: Final = 60.0
"""For anything the demo waits for; on a sound machine it is there in a second."""
POLL_S: Final = 0.02
ERRORS_KEPT: Final = 200
"""Lines of an agent's stderr."""


class StageError(LockstitchError):
    """Something the demo needs did not come up; the text says what and shows the process's last words."""

    code = "DEMO"


@dataclass(slots=True)
class AgentRun:
    """One ``lockstitch run`` as a process: its JSON lines as they come, its stderr kept."""

    process: "subprocess.Popen[str]"
    lines: list[dict[str, Any]] = field(default_factory=list)
    errors: "deque[str]" = field(default_factory=lambda: deque(maxlen=ERRORS_KEPT))
    raw: list[str] = field(default_factory=list)
    _readers: list[threading.Thread] = field(default_factory=list)

    def read(self, show: Callable[[dict[str, Any]], None]) -> None:
        """Read both streams in threads until they end."""

        def out() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                self.raw.append(line)
                self.lines.append(json.loads(line))
                show(self.lines[-1])

        def err() -> None:
            assert self.process.stderr is not None
            self.errors.extend(self.process.stderr)

        self._readers = [threading.Thread(target=reader, daemon=True) for reader in (out, err)]
        for thread in self._readers:
            thread.start()

    def wait(self) -> int:
        """The exit code, once everything is read."""
        try:
            code = self.process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired as error:
            raise StageError(f"the agent did not end within {WAIT_S:.0f} s; {self.last_words()}") from error
        for thread in self._readers:
            thread.join(timeout=WAIT_S)
        return code

    def kill(self) -> int:
        """SIGKILL: no handler runs, nothing is flushed, nothing is said."""
        self.process.kill()
        return self.wait()

    def last_words(self) -> str:
        return "".join(list(self.errors)[-5:]).strip() or "it said nothing on stderr"


class Stage:
    """Everything lies under ``folder``; leaving ends every process that was started."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self._folder = folder
        self._gateway: subprocess.Popen[str] | None = None
        self._agents: list[AgentRun] = []
        self.base_url = ""
        self._url = ""

    def __enter__(self) -> "Stage":
        self.project.mkdir(parents=True)
        for name, text in story.PROJECT.items():
            (self.project / name).write_text(text, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        processes = [agent.process for agent in self._agents]
        if self._gateway is not None:
            processes.append(self._gateway)
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def start_gateway(self, answers: list[dict[str, Any]], *options: str) -> None:
        """The mock gateway as a process of its own, refusing what a provider would refuse."""
        script = self._folder / "script.json"
        script.write_text(json.dumps({"answers": answers}), encoding="utf-8")
        command = ["wire", "gateway", "--script", str(script), "--strict", "openai-chat", *options]
        self._gateway = self._spawn(command, stderr=subprocess.DEVNULL)
        assert self._gateway.stdout is not None
        line = self._gateway.stdout.readline()
        if not line:
            raise StageError("the mock gateway did not start; try `lockstitch wire gateway --script FILE`")
        listening = json.loads(line)
        self.base_url, self._url = listening["base_url"], listening["url"]

    def run_agent(self, *arguments: str, show: Callable[[dict[str, Any]], None]) -> AgentRun:
        """``lockstitch run`` in the project, with its own home and a key of the demo."""
        command = ["run", "--session", story.SESSION, "--base-url", self.base_url, "--yes", "--json"]
        command += ["-m", story.MODEL, "--cwd", str(self.project), *arguments]
        agent = AgentRun(self._spawn(command, stderr=subprocess.PIPE))
        self._agents.append(agent)
        agent.read(show)
        return agent

    def journal(self) -> dict[str, Any]:
        """What the gateway received."""
        with urllib.request.urlopen(f"{self._url}/requests", timeout=WAIT_S) as answer:  # noqa: S310  # our own
            found: dict[str, Any] = json.load(answer)
            return found

    def await_sign_of_life(self, agent: AgentRun) -> int:
        """The process id that the slow tool wrote: from then on it surely runs."""
        sign = self.project / story.SIGN_OF_LIFE
        deadline = time.monotonic() + WAIT_S
        while not sign.exists():
            if agent.process.poll() is not None:
                raise StageError(f"the agent ended before its tool ran; {agent.last_words()}")
            if time.monotonic() > deadline:
                raise StageError(f"the tool gave no sign of life within {WAIT_S:.0f} s")
            time.sleep(POLL_S)
        return int(sign.read_text(encoding="utf-8"))

    def project_test_passes(self) -> bool:
        """Run the project's own test, as a person would."""
        command = [sys.executable, "-m", "unittest", "-q"]
        done = subprocess.run(command, cwd=self.project, capture_output=True, check=False, timeout=WAIT_S)
        return done.returncode == 0

    def _spawn(self, arguments: list[str], *, stderr: int) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "lockstitch", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            env=_environment(self.home),
        )


def is_running(pid: int) -> bool:
    """Whether a process of this id lives; one that has ended but was not collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Path("/proc/self").exists() is False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone_soon(pid: int) -> bool:
    """Whether the process is gone, or goes within a few seconds."""
    deadline = time.monotonic() + WAIT_S / 10
    while is_running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(POLL_S)
    return True


def _environment(home: Path) -> Mapping[str, str]:
    """This process's, without proxies that would stand between the agent and loopback, and without keys."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.endswith("_API_KEY")
    }
    return {
        **kept,
        "LOCKSTITCH_HOME": str(home),
        story.KEY_VARIABLE: story.KEY,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
    }

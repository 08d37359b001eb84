"""A program in a real terminal (tmux), driven as a person drives it: keys in, a screen out."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

WAIT_S = 20.0
"""For what must appear; a test fails behind it, none is timed."""


def require_tmux() -> None:
    """Skip, saying so, where there is no tmux; fail where one was promised (``LOCKSTITCH_NEED_TMUX``)."""
    if shutil.which("tmux") is None:
        said = "tmux is not installed, so nothing was tried in a real terminal: apt-get install tmux"
        if os.environ.get("LOCKSTITCH_NEED_TMUX"):
            pytest.fail(said)
        pytest.skip(said)


class Terminal:
    """One window of one tmux server of its own."""

    def __init__(
        self, command: list[str], *, cwd: Path, environ: Mapping[str, str], width: int = 80, height: int = 24
    ) -> None:
        self._name = f"lockstitch-{uuid.uuid4().hex[:12]}"
        size = ["-x", str(width), "-y", str(height)]
        # env -i: the server's own variables must not leak in; cat: the last screen stays to be read.
        pairs = [f"{name}={value}" for name, value in environ.items()]
        # trap: a Ctrl-C that is a signal goes to the whole group, and the shell must outlive it
        # (a trap is not inherited by what it starts, as ignoring would be).
        script = 'trap : INT; env -i "$@"; echo "ENDED $?"; exec cat'
        inner = ["sh", "-c", script, "sh", *pairs, *command]
        self._tmux("new-session", "-d", "-s", "t", *size, "-c", str(cwd), *inner, config=True)

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names, or type text."""
        self._tmux("send-keys", "-t", "t", *keys)

    def line(self, text: str) -> None:
        """Type a line and send it."""
        self._tmux("send-keys", "-t", "t", "-l", text)
        self._tmux("send-keys", "-t", "t", "Enter")

    def paste(self, text: str) -> None:
        """As a terminal pastes: bracketed."""
        subprocess.run(
            ["tmux", "-L", self._name, "load-buffer", "-"], input=text.encode(), check=True, timeout=WAIT_S
        )
        self._tmux("paste-buffer", "-p", "-t", "t")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def screen(self, *, styled: bool = False) -> str:
        """What is to be seen now."""
        return self._tmux("capture-pane", "-p", "-t", "t", *(["-e"] if styled else []))

    def all(self, *, styled: bool = False) -> str:
        """With everything that scrolled away; lines that the terminal wrapped are joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "t", *(["-e"] if styled else []))

    def until(self, *texts: str, gone: tuple[str, ...] = ()) -> str:
        """Wait until the screen shows all of ``texts`` and none of ``gone``; the screen then."""
        return self._wait(
            lambda: (
                all(text in self.screen() for text in texts)
                and not any(text in self.screen() for text in gone)
            ),
            f"{texts!r}" + (f" without {gone!r}" if gone else ""),
        )

    def until_ended(self) -> int:
        """Wait until the program has ended; its exit code."""
        self._wait(lambda: "ENDED " in self.screen(), "the end of the program")
        return int(self.screen().rpartition("ENDED ")[2].split()[0])

    def process(self) -> int:
        """Process id of the program."""
        shell = self._tmux("list-panes", "-t", "t", "-F", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._name, "kill-server"], check=False, capture_output=True)

    def _wait(self, holds: Callable[[], bool], what: str) -> str:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            if time.monotonic() > deadline:
                pytest.fail(f"never came: {what}; the terminal shows:\n{self.all()}")
            time.sleep(0.03)
        return self.screen()

    def _tmux(self, *arguments: str, config: bool = False) -> str:
        own = ["-f", os.devnull] if config else []
        done = subprocess.run(
            ["tmux", "-L", self._name, *own, *arguments],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
        )
        return done.stdout


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]

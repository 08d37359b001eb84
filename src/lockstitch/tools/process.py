"""Commands run under the supervisor: output bounded while it streams, and nothing left running.

Blocking; for worker threads. Not on asyncio's subprocesses: those kill their child when the loop closes, and
the child here is the very process that has to outlive the agent for a moment.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .contract import ToolError

HEAD_MAX_BYTES: Final = 3 * 1024 * 1024
TAIL_MAX_BYTES: Final = 1024 * 1024
"""What is kept of an output; the middle of a longer one is dropped as it comes."""
OUTPUT_MAX_BYTES: Final = 64 * 1024 * 1024
"""A command that writes more is stopped."""
STOP_WAIT_S: Final = 1.2
"""For the supervisor to end the tree; then it is left to it. Below run.GRACE_S."""
_POLL_S: Final = 0.05
_DRAIN_S: Final = 0.2
"""For output that is still in the pipe when the command has ended."""
_READ_BYTES: Final = 65536
_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

Stopped = Literal["", "timeout", "cancelled", "output"]


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command came out."""

    output: bytes
    """Both streams as they came, without the middle if it was more than what is kept."""
    output_bytes: int
    """All that was written."""
    status: int | None
    """Exit status; None if a signal ended it or it was stopped."""
    signal_name: str = ""
    stopped: Stopped = ""
    """Why it was ended from outside."""
    ended: tuple[str, ...] = ()
    """Background processes that were still running when the command ended, and were ended with it."""
    unstoppable: bool = False
    """Not yet gone when the wait was over; the supervisor goes on trying."""


def supervised(argv: Sequence[str], *, line_max_bytes: int, values_max: int) -> list[str]:
    """The argv that runs a server so that it dies with this process, and when it writes too large a line.

    Standard streams pass through. Of the values of a line, objects and lists count.
    """
    limits = (str(line_max_bytes), str(values_max))
    return [*_interpreter(), "--watch-parent", str(os.getpid()), *limits, "--", *argv]


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    stopping: threading.Event,
    on_output: Callable[[bytes], None] | None = None,
    output_max_bytes: int = OUTPUT_MAX_BYTES,
    head_max_bytes: int = HEAD_MAX_BYTES,
) -> Finished:
    """Runs argv with nothing on its standard input and waits for it and all that it started.

    Ends early, tree and all, after ``timeout_s``, when ``stopping`` is set, or beyond ``output_max_bytes``.
    Raises ToolError if it cannot be started.
    """
    try:
        process = subprocess.Popen(
            _interpreter(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(environ),
            start_new_session=True,  # a Ctrl-C in the terminal is for the agent
        )
    except OSError as error:
        raise ToolError(f"no process could be started in {cwd}: {error.strerror}") from error
    run = _Run(process, output_max_bytes, HeadTail(head_max_bytes), on_output)
    try:
        run.start(argv)
        run.follow(time.monotonic() + timeout_s, stopping)
    finally:
        run.close()
    return run.finished()


def _interpreter() -> list[str]:
    python = sys.executable or shutil.which("python3") or ""
    if not python or os.name != "posix":
        raise ToolError(
            "commands can be run on Linux and macOS with a Python interpreter on the PATH; here there is none"
        )
    return [python, "-I", "-S", str(_SUPERVISOR)]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time signal has no name of its own


class HeadTail:
    """Bytes as they come, of which head and tail are kept."""

    def __init__(self, head_max: int = HEAD_MAX_BYTES, tail_max: int = TAIL_MAX_BYTES) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._head_max = head_max
        self._tail_max = tail_max

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_max - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_max:  # trimmed seldom, so that each byte is moved once
            del self._tail[: -self._tail_max]

    def value(self) -> bytes:
        """What was kept, with a line in the place of what was not."""
        tail = self._tail[-self._tail_max :]
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return bytes(self._head + tail)
        return bytes(self._head) + f"\n[... {missing:,} bytes left out ...]\n".encode() + bytes(tail)


class _Run:
    """One command between its start and its report."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        output_max: int,
        kept: HeadTail,
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        assert process.stdin and process.stdout and process.stderr  # all three were asked for
        self._process = process
        self._lifeline = process.stdin
        self._output = process.stdout
        self._report = process.stderr
        self._output_max = output_max
        self._on_output = on_output
        self._kept = kept
        self._told = HeadTail(65536, 65536)
        self._stopped: Stopped = ""
        self._selector = selectors.DefaultSelector()

    def start(self, argv: Sequence[str]) -> None:
        for stream in (self._output, self._report):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        with contextlib.suppress(BrokenPipeError):  # it died at once; its report says why
            arguments = b"\0".join(os.fsencode(argument) for argument in argv)
            self._lifeline.write(b"%d\n" % len(arguments) + arguments)
            self._lifeline.flush()

    def follow(self, deadline: float, stopping: threading.Event) -> None:
        """Reads until the supervisor has ended, or the time to stop it is over."""
        give_up: float | None = None
        while self._process.poll() is None:
            self._pump(_POLL_S)
            now = time.monotonic()
            if give_up is not None:
                if now > give_up:
                    return
                continue
            self._stopped = self._reason_to_stop(now, deadline, stopping)
            if self._stopped:
                self._cut_lifeline()
                give_up = now + STOP_WAIT_S
        until = time.monotonic() + _DRAIN_S
        while self._selector.get_map() and time.monotonic() < until:
            self._pump(_POLL_S)

    def close(self) -> None:
        """Gives everything back. A supervisor that is still busy goes on by itself."""
        self._cut_lifeline()
        self._selector.close()
        self._output.close()
        self._report.close()
        if self._process.poll() is None:
            threading.Thread(target=self._process.wait, name="lockstitch-reaper", daemon=True).start()
        elif not any(self._reported(word) for word in ("status", "signal", "stopped", "error")):
            self._kill_group()

    def finished(self) -> Finished:
        if error := self._reported("error"):
            raise ToolError(f"the command could not be started: {error[0]}")
        status, number = self._reported("status"), self._reported("signal")
        return Finished(
            output=self._kept.value(),
            output_bytes=self._kept.total,
            status=int(status[0]) if status and not self._stopped else None,
            signal_name=_signal_name(int(number[0])) if number else "",
            stopped=self._stopped,
            ended=tuple(self._reported("ended")),
            unstoppable=self._process.returncode is None,
        )

    def _reason_to_stop(self, now: float, deadline: float, stopping: threading.Event) -> Stopped:
        if stopping.is_set():
            return "cancelled"
        if now > deadline:
            return "timeout"
        return "output" if self._kept.total > self._output_max else ""

    def _pump(self, wait_s: float) -> None:
        if not self._selector.get_map():  # both streams have ended, so the supervisor is about to
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
            return
        for key, _ in self._selector.select(wait_s):
            try:
                data = os.read(key.fd, _READ_BYTES)
            except BlockingIOError:
                continue
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._report:
                self._told.feed(data)
            else:
                self._kept.feed(data)
                if self._on_output is not None:
                    self._on_output(data)

    def _cut_lifeline(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._lifeline.close()

    def _reported(self, word: str) -> list[str]:
        """What the supervisor said about something; see there for its words."""
        lines = self._told.value().decode("utf-8", "replace").splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]

    def _kill_group(self) -> None:
        """The supervisor itself was killed (by the command, perhaps): at least the command's group goes."""
        for pid in self._reported("pid")[:1]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(pid), signal.SIGKILL)

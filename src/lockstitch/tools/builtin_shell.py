"""``shell``: a command in the workspace, bounded in time and output, with nothing left running behind it."""

import codecs
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from lockstitch.schema.blocks import Text

from .contract import Tool, ToolContext, ToolError, ToolOutput
from .functions import tool
from .process import OUTPUT_MAX_BYTES, Finished, run_process
from .text import clean

DEFAULT_TIMEOUT_S: Final = 120
MAX_TIMEOUT_S: Final = 3600
COMMAND_MAX_BYTES: Final = 120_000
"""Linux takes 128 KiB in one argument (execve(2), MAX_ARG_STRLEN)."""
PROGRESS_EVERY_S: Final = 0.1

_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SECRET_VALUE_MIN: Final = 8
"""Shorter values of withheld variables are too common to withhold every variable that equals them."""
_FIXED: Final = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Nobody is there to page or to answer."""


def tool_environment(environ: Mapping[str, str], allow: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of tool processes: without anything that looks like a secret, unless it is in
    ``allow``.

    Withheld are variables whose name holds KEY, TOKEN, SECRET, PASSWORD, PASSWD or CREDENTIAL, and those that
    carry the value of one withheld under another name.
    """
    secret = {name for name in environ if _SECRET_NAME.search(name) and name not in allow}
    values = {environ[name] for name in secret if len(environ[name]) >= _SECRET_VALUE_MIN}
    kept = {
        name: value
        for name, value in environ.items()
        if name not in secret and not _runs_at_start(name) and (value not in values or name in allow)
    }
    return {**kept, **_FIXED}


def _runs_at_start(name: str) -> bool:
    """Variables that name a script to run before the command, or that redefine commands."""
    return name in ("BASH_ENV", "ENV") or name.startswith("BASH_FUNC_")


def shell_tool() -> Tool:
    """The tool. It needs an approval, since a command can do whatever its user can."""
    return tool(name="shell", needs="approval", timeout_s=MAX_TIMEOUT_S + 30)(_shell)


def _shell(
    command: Annotated[str, "Run by bash (or sh) in the workspace, with standard input closed."],
    timeout_s: Annotated[float, f"Seconds until it is stopped; at most {MAX_TIMEOUT_S}."] = DEFAULT_TIMEOUT_S,
    *,
    context: ToolContext,
) -> ToolOutput:
    """Run a shell command in the workspace and return its output (stdout and stderr together).

    The command must not wait for input. Processes it leaves in the background are ended when it returns. Long
    output is shown as its beginning and end.
    """
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("The command holds a NUL character, which no shell can take.")
    if len(os.fsencode(command)) > COMMAND_MAX_BYTES:
        raise ToolError(
            f"The command is longer than {COMMAND_MAX_BYTES:,} bytes. Write it to a file first and run that."
        )
    limit_s = min(max(timeout_s, 0.1), MAX_TIMEOUT_S)
    started = time.monotonic()
    finished = run_process(
        [shutil.which("bash") or "/bin/sh", "-c", command],
        cwd=context.cwd,
        environ=tool_environment(context.environ, context.environ_allow),
        timeout_s=limit_s,
        stopping=context.stopping,
        on_output=_Progress(context.progress).feed,
    )
    text = _collapsed(finished.output.decode("utf-8", "replace"))
    remark = _remark(finished, limit_s)
    body = f"{text.rstrip()}\n{remark}" if text.strip() and remark else remark or text
    meta = {
        "status": finished.status,
        "output_bytes": finished.output_bytes,
        "seconds": round(time.monotonic() - started, 3),
    }
    return ToolOutput((Text(body),), is_error=finished.status != 0, meta=meta)


def _remark(finished: Finished, limit_s: float) -> str:
    """What is worth saying beside the output; empty after an uneventful success."""
    remarks: list[str] = []
    match finished.stopped:
        case "timeout":
            remarks.append(f"stopped: it ran longer than {limit_s:g} s")
        case "cancelled":
            remarks.append("stopped: the call was cancelled")
        case "output":
            remarks.append(
                f"stopped: it wrote more than {OUTPUT_MAX_BYTES // 1024**2} MiB; write to a file instead"
            )
        case "":
            if finished.signal_name:
                remarks.append(f"ended by {finished.signal_name}")
            elif finished.status is None:
                remarks.append("its exit status is not known: the process that watched it was killed")
            elif finished.status:
                remarks.append(f"exit status {finished.status}")
    if finished.unstoppable:
        remarks.append("some of its processes could not be stopped yet")
    if finished.ended:
        remarks.append(f"ended with it, still in the background: {'; '.join(finished.ended)}")
    return f"[{'. '.join(remarks)}]" if remarks else ""


def _collapsed(text: str) -> str:
    """Lines that overwrote themselves with CR (progress bars) as they looked in the end."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


class _Progress:
    """Output for a person who watches: whole characters, and not more often than can be seen."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._shown_at = 0.0
        self._lock = threading.Lock()

    def feed(self, data: bytes) -> None:
        self._waiting = (self._waiting + self._decoder.decode(data))[-8192:]
        now = time.monotonic()
        if now - self._shown_at >= PROGRESS_EVERY_S:
            self._shown_at = now
            self._show(clean(self._waiting))
            self._waiting = ""

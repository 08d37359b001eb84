"""How the demo tells its story: one line for each thing that happens, within 80 columns, then a table."""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from ..history.ladder import told
from ..schema.notes import Anomaly
from ..tools.text import clean

WIDTH: Final = 80
LABEL: Final = 10

_COLOURS: Final[Mapping[str, str]] = {
    "gateway": "yellow",
    "model": "cyan",
    "tool": "blue",
    "lockstitch": "green",
    "SIGKILL": "red",
    "differs": "red",
    "ok": "green",
}


class Narrator:
    """Prints to stdout; colour only on a terminal that has it and did not say ``NO_COLOR``."""

    def __init__(self) -> None:
        wants = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._color = sys.stdout.isatty() and wants
        self._said: list[str] = []

    def title(self, text: str) -> None:
        self._print("")
        for line in textwrap.wrap(text, WIDTH, subsequent_indent="    "):
            self._print(click.style(line, bold=True))

    def line(self, label: str, text: str) -> None:
        """A label and its text, wrapped behind it."""
        indent = " " * (LABEL + 4)
        wrapped = textwrap.wrap(" ".join(clean(text).split()), WIDTH - len(indent)) or [""]
        head = click.style(f"{label:<{LABEL}}", fg=_COLOURS.get(label))
        self._print(f"  {head}  {wrapped[0]}")
        for rest in wrapped[1:]:
            self._print(indent + rest)

    def event(self, event: Mapping[str, Any]) -> None:
        """One JSON line of the agent, as a line of the story."""
        kind = event["type"]
        if kind == "text_delta":
            self._said.append(event["text"])
            return
        if kind == "attempt_discarded":
            self._withdrawn(event)
            return
        if kind in ("tool_started", "turn_ended") and self._said:
            self.line("model", "".join(self._said))
            self._said.clear()
        match kind:
            case "session" if event["opened"]["closed_turn"]:
                closed = event["opened"]["closed_calls"]
                calls = "1 interrupted call" if closed == 1 else f"{closed} interrupted calls"
                self.line("lockstitch", f"opens the session, answers {calls}, goes on")
            case "tool_started":
                self.line("tool", f"{event['name']} {_told(event['arguments'])}")
            case "tool_finished":
                self.line("", f"{event['outcome']}: {_telling_line(event['name'], event['text'])}")
            case "retrying":
                self.line("lockstitch", f"retries the same request after {event['delay_ms']} ms")
            case "repaired":
                anomalies = msgspec.convert(event.get("anomalies", []), list[Anomaly])
                self.line("lockstitch", f"mends the request: {told(event['rung'], anomalies)}")
            case _:
                pass

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """The figures of the whole story."""
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self._print(f"  {name:<{width}}  {value}")

    def _withdrawn(self, event: Mapping[str, Any]) -> None:
        if self._said:
            self.line("model", "".join(self._said))
            self._said.clear()
        usage = event.get("usage", {})
        tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        code = event["failure"]["code"]
        self.line("lockstitch", f"refuses the answer: {code}; withdraws its text, counts its {tokens} tokens")

    def _print(self, text: str) -> None:
        click.echo(text, color=self._color)


def _told(arguments: str) -> str:
    """The arguments as people say them: the path or the command."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    said = str(given.get("path") or given.get("command") or arguments)
    return said.replace(sys.executable, "python")


def _telling_line(name: str, text: str) -> str:
    """The line of a result that says most: a command's last, else the first."""
    lines = [line for line in clean(text).splitlines() if line.strip()]
    if not lines:
        return "no output"
    if name == "read":
        return f"{len(lines)} lines"
    return textwrap.shorten(lines[-1] if name == "shell" else lines[0], WIDTH - 30, placeholder=" ...")

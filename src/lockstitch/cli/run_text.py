"""A turn shown to a person: the model's text on stdout, everything else in single lines on stderr."""

import sys
from typing import Final, TextIO, assert_never

import click

from ..agent import events
from ..agent.events import UserEvent
from ..history.ladder import told
from ..schema.errors import CallerError
from ..session.reports import OpenReport
from ..tools.text import clean
from .lines import json_text

ARGUMENTS_SHOWN: Final = 100
"""Characters of a call's arguments in its line."""


class TextPrinter:
    """Prints a turn as it happens.

    On a terminal text appears as it streams. Elsewhere it is held back until its attempt has gone well, so
    that a pipe never gets the text of an attempt that was withdrawn.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._live = self._out.isatty()
        self._held: list[str] = []
        self._open_line = False

    def session(self, session_id: str, report: OpenReport) -> None:
        """Which session this is, and what had to be mended in it."""
        self._note(f"session {session_id}", dim=True)
        if report.mended:
            self._note(f"mended: {mended(report)}")

    def show(self, event: UserEvent) -> None:
        match event:
            case events.TextDelta(text=text):
                self._text(text)
            case events.ReasoningDelta() | events.ToolProgress():
                pass
            case events.ToolStarted(name=name, arguments=arguments):
                self._release()
                self._note(f"{name} {_short(arguments)}", dim=True)
            case events.ToolFinished():
                self._release()
                self._finished(event)
            case events.ApprovalNeeded(name=name, arguments=arguments):
                self._note(f"needs approval: {name} {_short(arguments)}")
            case events.AttemptDiscarded(failure=failure):
                self._withdraw()
                self._note(f"attempt failed: {failure.code}: {failure.message}")
            case events.Retrying(retry=retry, delay_ms=delay_ms, code=code, of=of):
                what = "retry" if of == "answer" else f"no summary ({code}): retry"
                self._note(f"{what} {retry} in {delay_ms / 1000:.1f} s", dim=True)
            case events.Repaired(anomalies=anomalies, rung=rung):
                self._note(f"request mended: {told(rung, anomalies)}")
            case events.Compacting():
                self._end_line()
                self._note("summarising older history", dim=True)
            case events.Compacted(tokens_before=before, tokens_after=after):
                self._note(f"history summarised: {before} tokens to {after}")
            case events.TurnEnded():
                self._release()
                self._end_line()
                self._ended(event)
            case _:
                assert_never(event)

    def _finished(self, event: events.ToolFinished) -> None:
        if event.outcome == "done":
            return
        first = next((line for line in clean(event.text).splitlines() if line.strip()), "")
        self._note(f"{event.name}: {event.outcome}: {first[:ARGUMENTS_SHOWN]}")

    def _ended(self, event: events.TurnEnded) -> None:
        if event.reason == "completed":
            return
        why = event.failure.message if event.failure is not None else ""
        detail = "; ".join(part for part in (why, event.detail) if part)
        self._note(f"turn {event.reason}" + (f": {detail}" if detail else ""))

    def _text(self, text: str) -> None:
        if not self._live:
            self._held.append(text)
            return
        self._out.write(clean(text))
        self._out.flush()
        self._open_line = not text.endswith("\n")

    def _release(self) -> None:
        text = "".join(self._held)
        self._held.clear()
        if text.strip():
            self._out.write(text)
            self._out.flush()
            self._open_line = not text.endswith("\n")
        self._end_line()

    def _withdraw(self) -> None:
        self._held.clear()
        self._end_line()

    def _end_line(self) -> None:
        if self._open_line:
            self._out.write("\n")
            self._out.flush()
            self._open_line = False

    def _note(self, text: str, *, dim: bool = False) -> None:
        self._end_line()
        line = " ".join(clean(text).split())
        click.secho(line, file=self._err, dim=dim)


class JsonPrinter:
    """One JSON object a line, each with the version of the form; nothing else goes to stdout."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def session(self, session_id: str, report: OpenReport) -> None:
        import msgspec

        self._line({"type": "session", "session_id": session_id, "opened": msgspec.to_builtins(report)})

    def show(self, event: UserEvent) -> None:
        import msgspec

        self._line(msgspec.to_builtins(event))

    def result(self, fields: dict[str, object]) -> None:
        self._line({"type": "result", **fields})

    def _line(self, fields: dict[str, object]) -> None:
        self._out.write(json_text({"v": events.EVENTS_VERSION, **fields}) + "\n")
        self._out.flush()


def mended(report: OpenReport) -> str:
    """What opening a session had to do, in one line."""
    parts = [
        (report.torn_bytes, "{} bytes of an unfinished record cut off"),
        (report.set_aside, "{} damaged places skipped"),
        (report.missing, "{} gaps in the records"),
        (report.defects, "{} records out of place"),
        (report.closed_calls, "{} interrupted tool calls answered"),
        (report.closed_attempts, "{} interrupted model calls closed"),
    ]
    return ", ".join(text.format(count) for count, text in parts if count)


def stdin_text(stream: TextIO) -> str:
    """All of stdin. Raises CallerError if it is not UTF-8."""
    try:
        return stream.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise CallerError(f"the prompt on stdin is not UTF-8 at byte {error.start}") from error


def _short(arguments: str) -> str:
    text = " ".join(clean(arguments).split())
    return text if len(text) <= ARGUMENTS_SHOWN else text[: ARGUMENTS_SHOWN - 1] + "…"

"""What a conversation shows, as values: every view prints the same items in its own way.

All text in them comes from outside (models, tools, files, people) and is made safe here, once: no control
character of a model or a tool reaches the terminal, and no direction mark turns a command around.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ..agent import events
from ..agent.api import Session
from ..schema.blocks import Text
from ..tools.text import clean, visible
from ..wire import strict_json

LINE_MAX: Final = 2_000
"""Characters of one line; the rest of a huge line is not for reading."""
SUMMARY_MAX: Final = 160
DIFF_LINES: Final = 40
RESULT_LINES: Final = 4
QUESTION_LINES: Final = 30
RECAP_CHARS: Final = 2_000
"""Of a prompt and of an answer, when a session is opened again."""
_BIDI: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# https://trojansource.codes (read 2026-11-30): with these, text is shown in another order than it is run in.

Tone: TypeAlias = Literal["plain", "dim", "good", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class UserText:
    """What the user said."""

    text: str
    echoed: bool = True
    """Whether it was typed here, so that a plain terminal shows it already."""


@dataclass(frozen=True, slots=True)
class AnswerText:
    """Markdown of the model, as far as it is final."""

    text: str


@dataclass(frozen=True, slots=True)
class NoteLine:
    """One line of the program's own."""

    text: str
    tone: Tone = "dim"


@dataclass(frozen=True, slots=True)
class CallLine:
    """A tool began to run."""

    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class ResultLines:
    """A tool's answer: one line, and what is worth seeing of it."""

    name: str
    outcome: str
    detail: str = ""
    lines: tuple[str, ...] = ()
    diff: bool = False
    """Whether the lines are a unified diff."""
    more: int = 0
    """Lines that are not shown."""
    of: str = ""
    """Which call it answers, where its line does not stand right above."""


Item: TypeAlias = UserText | AnswerText | NoteLine | CallLine | ResultLines


def safe(text: str) -> str:
    """Without escapes and direction marks; lines of bearable length."""
    text = _BIDI.sub("\ufffd", clean(text))
    if len(text) <= LINE_MAX:
        return text
    return "\n".join(line if len(line) <= LINE_MAX else line[:LINE_MAX] + " …" for line in text.split("\n"))


def one_line(text: str, limit: int = SUMMARY_MAX) -> str:
    """Safe, on one line, and cut."""
    text = " ".join(safe(text[: limit * 8]).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def call_line(name: str, arguments: str) -> CallLine:
    """What a call is about: the command, the path, or its arguments."""
    return CallLine(one_line(name, 60), _summary(name, _parsed(arguments), arguments))


def result_lines(event: events.ToolFinished) -> ResultLines:
    """A tool's answer, with the diff of a change, the end of an output, or the reason of a failure."""
    took = (
        "" if event.duration_ms is None or event.duration_ms < 1000 else f"{event.duration_ms / 1000:.1f} s"
    )
    meta: Mapping[str, Any] = event.meta or {}
    if isinstance(meta.get("diff"), str):
        lines = safe(meta["diff"]).rstrip("\n").split("\n")[2:]
        detail = f"+{meta.get('added', '?')} -{meta.get('removed', '?')}"
        return _result(event, detail, lines[:DIFF_LINES], len(lines) - DIFF_LINES, diff=True)
    lines = [line for line in safe(event.text).split("\n") if line.strip()]
    if event.outcome == "done" and event.name != "shell":
        return _result(event, took or _counted(lines), [], 0)
    if event.name == "shell":  # the end of a command's output says how it went
        before = len(lines) - RESULT_LINES
        gap = [f"… {before} lines before"] if before > 0 else []
        return _result(event, took, [*gap, *lines[-RESULT_LINES:]], 0)
    return _result(event, took, lines[:RESULT_LINES], len(lines) - RESULT_LINES)


def question_lines(asked: events.ApprovalNeeded) -> list[str]:
    """What is asked, in full as far as it fits: an escape is shown, not removed, because it would be run."""
    values = _parsed(asked.arguments)
    name = one_line(asked.name, 60)
    if asked.name == "shell" and isinstance(values.get("command"), str):
        body = [f"$ {line}" for line in _shown(values["command"])]
    elif asked.name == "edit" and isinstance(values.get("old"), str) and isinstance(values.get("new"), str):
        body = [f"{name} {one_line(str(values.get('path', '')))}"]
        body += [f"- {line}" for line in _shown(values["old"].rstrip("\n"))] + [
            f"+ {line}" for line in _shown(values["new"].rstrip("\n"))
        ]
    elif asked.name == "write" and isinstance(values.get("content"), str):
        body = [f"{name} {one_line(str(values.get('path', '')))}"]
        body += [f"+ {line}" for line in _shown(values["content"].rstrip("\n"))]
    else:
        body = [f"{name} {line}" for line in _shown(asked.arguments)]
    if len(body) > QUESTION_LINES:
        body = [*body[: QUESTION_LINES - 1], f"… {len(body) - QUESTION_LINES + 1} more lines"]
    return body


def last_exchange(session: Session) -> list[Item]:
    """What a person said last, and what the model said to it; empty if there is nothing."""
    said: list[str] = []
    for message in reversed(session.messages):
        text = "\n\n".join(block.text for block in message.content if isinstance(block, Text)).strip()
        if session.is_prompt(message):
            answer = "\n\n".join(reversed(said))
            if len(answer) > RECAP_CHARS:
                answer = "…\n\n" + answer[-RECAP_CHARS:]
            prompt = text if len(text) <= RECAP_CHARS else text[:RECAP_CHARS] + "…"
            return [UserText(safe(prompt), echoed=False), *([AnswerText(safe(answer))] if answer else [])]
        if message.role == "assistant" and text:
            said.append(text)
    return []


def choices(asked: events.ApprovalNeeded) -> str:
    """The answers there are; first those that a narrow terminal must not cut off."""
    remembered = ""
    if asked.rule:
        rule = one_line(asked.rule, 60)
        remembered = f" · s: {rule} in this session · a: {rule} always"
    return f"y: once · n [why]: no{remembered}"


def _result(
    event: events.ToolFinished, detail: str, lines: list[str], more: int, *, diff: bool = False
) -> ResultLines:
    return ResultLines(
        name=one_line(event.name, 60),
        outcome=event.outcome,
        detail=detail,
        lines=tuple(lines),
        diff=diff,
        more=max(more, 0),
    )


def _shown(text: str) -> list[str]:
    return [line[:LINE_MAX] for line in _BIDI.sub("\ufffd", visible(text)).split("\n")]


def _counted(lines: list[str]) -> str:
    return f"{len(lines)} lines" if len(lines) != 1 else "1 line"


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        return strict_json.arguments(arguments)
    except strict_json.InvalidJson:
        return {}


def _summary(name: str, values: dict[str, Any], raw: str) -> str:
    if name == "shell" and isinstance(values.get("command"), str):
        return one_line("$ " + visible(values["command"][:LINE_MAX]))
    if not values:
        return one_line(raw) if raw.strip() not in ("", "{}", "null") else ""
    first = values.get("pattern", values.get("path", values.get("url")))
    if isinstance(first, str) and name in {"read", "write", "edit", "list", "glob", "grep", "fetch"}:
        where = f" in {values['path']}" if "path" in values and first is not values["path"] else ""
        return one_line(f"{first}{where}")
    return one_line(
        ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    )

"""A session's story for a terminal: plain text that any pager shows."""

import time
from collections.abc import Iterator
from typing import Final

from ..schema.usage import Usage
from ..tools.text import clean
from .story import Called, Item, Mark, Said, Story, TurnStory

RESULT_LINES: Final = 12
"""Lines of a tool's result that are shown without ``--full``."""


def text_of(story: Story, *, full: bool = False) -> Iterator[str]:
    """The lines, without their ends and without control characters."""
    yield from _lines(f"session {story.id}" + (f": {story.title}" if story.title else ""))
    if story.cwd:
        yield from _lines(f"in {story.cwd}")
    if story.parent:
        yield from _lines(f"forked from {story.parent}")
    if story.models:
        yield from _lines(f"with {', '.join(story.models)}")
    for turn in story.turns:
        yield ""
        yield from _turn(turn, full=full)
    yield ""
    yield f"{story.records} records; {usage_text(story.usage)}"


def usage_text(usage: Usage) -> str:
    """Token counts in a few words."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    parts = [f"{usage.input_tokens + cached} tokens in", f"{usage.output_tokens} out"]
    if usage.cache_read_tokens:
        parts.insert(1, f"{usage.cache_read_tokens} of them cached")
    return ", ".join(parts) + (" (partly estimated)" if usage.estimated else "")


def time_text(time_ms: int) -> str:
    """Local time to the second; the number itself for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def call_status(called: Called) -> str:
    """How a call went, in a few words."""
    if called.outcome is None:
        return "running or interrupted" if called.started else "not started"
    took = f", {called.duration_ms} ms" if called.duration_ms is not None else ""
    return f"{called.outcome}{took}"


def _turn(turn: TurnStory, *, full: bool) -> Iterator[str]:
    if turn.number is not None:
        yield f"== turn {turn.number}, {time_text(turn.time_ms)}"
    for item in turn.items:
        yield from _item(item, full=full)
    if turn.number is not None:
        ended = turn.reason or "still open"
        detail = f": {turn.detail}" if turn.detail else ""
        yield from _lines(f"== {ended}{detail}; {usage_text(turn.usage)}")


def _item(item: Item, *, full: bool) -> Iterator[str]:
    match item:
        case Said(who=who, text=text, label=label):
            prefix = {"user": "> ", "assistant": "", "reasoning": "~ ", "summary": "# "}[who]
            if label:
                yield f"{prefix}({label})"
            yield from _lines(text, prefix)
            yield ""
        case Called():
            yield from _lines(f"* {item.name or '(no name)'} {item.arguments}")
            yield from _lines(
                f"  {call_status(item)}" + (f", invalid: {item.invalid}" if item.invalid else "")
            )
            shown = list(_lines(item.result, "  | ")) if item.result else []
            limit = len(shown) if full else RESULT_LINES
            yield from shown[:limit]
            if len(shown) > limit:
                yield f"  | … {len(shown) - limit} more lines (--full shows them)"
            yield ""
        case Mark(kind=kind, text=text):
            yield from _lines(f"! {kind}: {text}")


def _lines(text: str, prefix: str = "") -> Iterator[str]:
    for line in clean(text).split("\n"):
        yield f"{prefix}{line.rstrip()}" if line.strip() else prefix.rstrip()

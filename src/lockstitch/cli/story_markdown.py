"""A session's story as Markdown: what was said as it was said, calls and results in fences."""

import re
from collections.abc import Iterator

from ..tools.text import clean
from .story import Called, Item, Mark, Said, Story, TurnStory
from .story_text import call_status, time_text, usage_text

_BACKTICKS = re.compile("`+")


def markdown_of(story: Story) -> Iterator[str]:
    """The lines, without their ends."""
    yield f"# {_inline(story.title or story.id)}"
    yield ""
    facts = {"Session": story.id, "Folder": story.cwd, "Forked from": story.parent or ""}
    facts |= {"Model": ", ".join(story.models), "Usage": usage_text(story.usage)}
    yield from (f"- {name}: {_inline(text)}" for name, text in facts.items() if text)
    for turn in story.turns:
        yield from _turn(turn)


def _turn(turn: TurnStory) -> Iterator[str]:
    if turn.number is not None:
        yield ""
        yield f"## Turn {turn.number}"
        yield ""
        yield f"*{time_text(turn.time_ms)}*"
    for item in turn.items:
        yield ""
        yield from _item(item)
    if turn.number is not None:
        detail = f": {_inline(turn.detail)}" if turn.detail else ""
        yield ""
        yield f"*{turn.reason or 'still open'}{detail}; {usage_text(turn.usage)}*"


def _item(item: Item) -> Iterator[str]:
    match item:
        case Said(who="user", text=text, label=label):
            yield "**User**" + (f" ({_inline(label)})" if label else "")
            yield ""
            yield from (f"> {line}" for line in clean(text).split("\n"))
        case Said(who=who, text=text, label=label):
            heading = {"assistant": "Assistant", "reasoning": "Reasoning", "summary": "Summary"}[who]
            yield f"**{heading}**" + (f" ({_inline(label)})" if label else "")
            yield ""
            yield from clean(text).split("\n")
        case Called():
            yield from _called(item)
        case Mark(kind=kind, text=text):
            yield f"> **{kind}**: {_inline(text)}"


def _called(called: Called) -> Iterator[str]:
    invalid = f", invalid: {_inline(called.invalid)}" if called.invalid else ""
    yield f"**Tool** {_inline(called.name) or '(no name)'}: {call_status(called)}{invalid}"
    yield ""
    yield from _fenced(called.arguments, "json")
    if called.diff:
        yield from _fenced(called.diff, "diff")
    if called.result:
        yield from _fenced(called.result, "")


def _fenced(text: str, language: str) -> Iterator[str]:
    shown = clean(text)
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + language
    yield from shown.rstrip("\n").split("\n")
    yield fence


def _inline(text: str) -> str:
    """One line that is no markup."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(clean(text).split()))

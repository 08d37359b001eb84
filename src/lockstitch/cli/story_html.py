"""A session's story as one HTML page that needs nothing else: no scripts, no fonts, no network.

Everything that comes out of the log is escaped, and the page's own policy forbids whatever it could load.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from ..tools.text import clean
from .story import Called, Item, Mark, Said, Story, TurnStory
from .story_text import call_status, time_text, usage_text

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8883; --soft: #8881; }
:root { --good: #1a7f37; --bad: #cf222e; --note: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #f85149; --note: #d29922; } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h2 a { color: inherit; text-decoration: none; }
h2 time, .facts, .end, nav { color: #888; font-weight: normal; font-size: .875rem; }
.facts { margin: 0 0 1rem; overflow-wrap: anywhere; }
nav ol { padding-left: 1.25rem; margin: .25rem 0 0; }
nav a { color: inherit; }
.said { margin: .75rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.user { background: var(--soft); border-radius: .5rem; padding: .6rem .8rem; }
.label { color: #888; font-size: .8rem; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: .5rem; }
summary { cursor: pointer; padding: .35rem .7rem; overflow-wrap: anywhere; }
details > :not(summary) { margin: 0; padding: .5rem .7rem; border-top: 1px solid var(--line); }
summary code { font-size: .8rem; color: #888; }
pre, code { font: .8125rem/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 32rem; overflow: auto; }
.said pre { background: var(--soft); border-radius: .4rem; padding: .6rem .7rem; margin: .5rem 0; }
.ok { color: var(--good); } .failed { color: var(--bad); } .open { color: var(--note); }
ins { color: var(--good); text-decoration: none; } del { color: var(--bad); text-decoration: none; }
.mark { margin: .5rem 0; padding: .3rem .7rem; border-left: 3px solid var(--line); font-size: .875rem;
  overflow-wrap: anywhere; }
.repair, .defect { border-color: var(--note); } .failure { border-color: var(--bad); }
@media print { details { border: none; } pre { max-height: none; } }
"""

_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>"""


def html_of(story: Story) -> Iterator[str]:
    """The page, in pieces that are lines or more."""
    yield _HEAD.format(title=_text(story.title or story.id), style=_STYLE)
    yield f'<p class="facts">{_facts(story)}</p>'
    numbered = [turn for turn in story.turns if turn.number is not None]
    if len(numbered) > 1:
        yield "<nav><details><summary>Turns</summary><ol>"
        for turn in numbered:
            yield f'<li value="{turn.number}"><a href="#turn-{turn.number}">{_text(_opening(turn))}</a></li>'
        yield "</ol></details></nav>"
    yield "<main>"
    for turn in story.turns:
        yield from _turn(turn)
    yield "</main>\n</body>\n</html>"


def _facts(story: Story) -> str:
    parts = [f"session {story.id}", story.cwd, f"forked from {story.parent}" if story.parent else ""]
    parts += [", ".join(story.models), usage_text(story.usage), f"{story.records} records"]
    return " · ".join(_text(part) for part in parts if part)


def _opening(turn: TurnStory) -> str:
    said = next((item.text for item in turn.items if isinstance(item, Said) and item.who == "user"), "")
    line = " ".join(said.split())
    return line[:80] + "…" if len(line) > 80 else line or f"turn {turn.number}"


def _turn(turn: TurnStory) -> Iterator[str]:
    if turn.number is not None:
        link = f'<a href="#turn-{turn.number}">Turn {turn.number}</a>'
        yield f'<section id="turn-{turn.number}">'
        yield f"<h2>{link} <time>{_text(time_text(turn.time_ms))}</time></h2>"
    for item in turn.items:
        yield _item(item)
    if turn.number is not None:
        detail = f": {turn.detail}" if turn.detail else ""
        ended = f"{turn.reason or 'still open'}{detail} · {usage_text(turn.usage)}"
        yield f'<p class="end">{_text(ended)}</p>\n</section>'


def _item(item: Item) -> str:
    match item:
        case Said(who="reasoning", text=text):
            head = '<summary class="label">Reasoning</summary>'
            return f'<details>{head}<div class="said">{_prose(text)}</div></details>'
        case Said(who=who, text=text, label=label):
            shown = ", ".join(filter(None, ["summary" if who == "summary" else "", label]))
            told = f'<div class="label">{_text(shown)}</div>' if shown else ""
            return f'<div class="said {who}">{told}{_prose(text)}</div>'
        case Called():
            return _called(item)
        case Mark(kind=kind, text=text):
            return f'<div class="mark {kind}"><b>{kind}</b> {_text(text)}</div>'


def _called(called: Called) -> str:
    look = "open" if called.outcome is None else "failed" if called.is_error else "ok"
    arguments = " ".join(called.arguments.split())
    shortened = arguments[:100] + "…" if len(arguments) > 100 else arguments
    invalid = f", invalid: {called.invalid}" if called.invalid else ""
    head = (
        f"<b>{_text(called.name or '(no name)')}</b> <code>{_text(shortened)}</code> "
        f'<span class="{look}">{_text(call_status(called) + invalid)}</span>'
    )
    parts = [f"<pre>{_text(called.arguments)}</pre>"] if shortened != called.arguments else []
    if called.diff:
        parts.append(f"<pre>{_diff(called.diff)}</pre>")
    if called.result:
        parts.append(f"<pre>{_text(called.result)}</pre>")
    shown = " open" if called.diff else ""
    return f"<details{shown}><summary>{head}</summary>{''.join(parts)}</details>"


def _diff(diff: str) -> str:
    lines = []
    for line in clean(diff).split("\n"):
        tag = {"+": "ins", "-": "del"}.get(line[:1])
        lines.append(f"<{tag}>{escape(line)}</{tag}>" if tag else escape(line))
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Text as people wrote it, with code in fences and backticks set apart."""
    shown = clean(text)
    parts, done = [], 0
    for fence in _FENCE.finditer(shown):
        parts.append(_with_code(shown[done : fence.start()]))
        parts.append(f"<pre>{escape(fence.group(2).rstrip(chr(10)))}</pre>")
        done = fence.end() + (1 if shown[fence.end() : fence.end() + 1] == "\n" else 0)
    parts.append(_with_code(shown[done:]))
    return "".join(parts)


def _with_code(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _text(text: str) -> str:
    return escape(clean(text))

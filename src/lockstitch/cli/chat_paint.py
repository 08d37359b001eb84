"""Items as styled text for a terminal: Markdown, diffs and single lines, through rich."""

import io
from typing import Any, ClassVar, Final, assert_never

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.text import Text

from .chat_items import AnswerText, CallLine, Item, NoteLine, ResultLines, Tone, UserText, safe

STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
}
FENCES: Final = ("```", "~~~")


class _LeftHeading(Heading):
    """A heading where the text is: rich puts it into the middle of the screen, or into a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag in ("h1", "h2") else "bold")
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "heading_open": _LeftHeading}


class Painter:
    """Makes the bytes of a terminal of a given width."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def item(self, item: Item, width: int) -> str:
        """Ends in a line end."""
        match item:
            case UserText(text):
                shown: Any = Text("\n".join(f"> {line}" for line in text.split("\n")), style="bold cyan")
                return "\n" + self._painted(shown, width) + "\n"
            case AnswerText(text):
                return self.markdown(text, width)
            case NoteLine(text, tone):
                return self._painted(Text(text, style=STYLES[tone]), width)
            case CallLine(name, summary):
                return self._painted(Text.assemble(("● ", "cyan"), (name, "bold"), " ", summary), width)
            case ResultLines():
                return self._painted(_result(item), width)
            case _:
                assert_never(item)

    def markdown(self, text: str, width: int) -> str:
        """Markdown; links show their address, because a link that hides it may lead anywhere."""
        return self._painted(_Markdown(safe(text), hyperlinks=False, code_theme="ansi_dark"), width)

    def _painted(self, renderable: Any, width: int) -> str:
        out = io.StringIO()
        console = Console(
            file=out,
            force_terminal=True,
            no_color=not self._colour,
            width=max(width, 20),
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        console.print(renderable)
        return out.getvalue()


def _result(item: ResultLines) -> Text:
    good = item.outcome == "done"
    of = f"{item.of}: " if item.of else ""
    head = f"  {of}{item.outcome}" + (f", {item.detail}" if item.detail else "")
    text = Text(head, style="dim" if good else "yellow")
    for line in item.lines:
        text.append(f"\n  {line}", style=_line_style(line) if item.diff else "dim")
    if item.more:
        text.append(f"\n  … {item.more} more lines", style="dim")
    return text


def _line_style(line: str) -> str:
    if line.startswith("+"):
        return "not dim green"
    if line.startswith("-"):
        return "not dim red"
    return "not dim cyan" if line.startswith("@@") else "dim"


def stable_part(text: str) -> int:
    """Up to where Markdown that still grows will not be read differently: behind the last blank line that is
    not inside a code block."""
    stable = 0
    fence = ""
    at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in FENCES:
            fence = mark
        elif not line.strip() and line.endswith("\n"):
            stable = at
    return stable

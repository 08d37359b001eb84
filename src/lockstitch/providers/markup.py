"""Tool calls that a server left in the text as the model's own markup: finding them while the text streams.

A filter holds marked-up sections back from the text, over any split, outside code; what a section says is
read at the end (``markup_calls``), when it is known whether structured calls came too. Families:

- ``hermes``: ``<tool_call>`` around JSON (Hermes, Qwen), around ``<function=`` (Qwen coder) or ``<arg_key>``
  (GLM); the wrapper may be missing around a ``<function=`` that names an offered tool
  (https://github.com/ollama/ollama/pull/17742, read 2026-11-30);
- ``dsml``: DeepSeek's ``<｜DSML｜...>`` with ``invoke`` and ``parameter``, and the older
  ``<｜tool▁calls▁begin｜>``;
- ``kimi``: ``<|tool_calls_section_begin|>`` with ``<|tool_call_begin|>`` inside;
- ``minimax``: ``<minimax:tool_call>`` with ``invoke`` and ``parameter``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..wire.pieces import PIECES_MAX, Pieces
from .markdown_code import MarkdownCode

BARS: Final = "|｜‖∥"
"""Gateways replace DeepSeek's full-width bar by its look-alikes."""
_BARS_MAX: Final = 4
_MARKER_MAX: Final = 80
"""Characters; no marker is longer, with every bar at its most and a name of 64 characters."""
_NAME_MAX: Final = 64
_SPACE_MAX: Final = 256
"""Characters of white space that are held back in front of what may be a marker."""

# A bar in a marker stands for one to four bars of any kind.
_MARKERS: Final = (
    ("hermes", "<tool_call>", "</tool_call>"),
    ("dsml", "<|DSML|tool_calls>", "</|DSML|tool_calls>"),
    ("dsml", "<|DSML|function_calls>", "</|DSML|function_calls>"),
    ("dsml", "<|DSML|tool_use>", "</|DSML|tool_use>"),
    ("dsml", "<|DSML|invoke", "</|DSML|invoke>"),
    ("dsml", "<|tool▁calls▁begin|>", "<|tool▁calls▁end|>"),
    ("dsml", "<|tool▁call▁begin|>", "<|tool▁call▁end|>"),
    ("kimi", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("kimi", "<|tool_call_begin|>", "<|tool_call_end|>"),
    ("minimax", "<minimax:tool_call>", "</minimax:tool_call>"),
)
_WRAPPER_END: Final = "</tool_call>"
_BARE: Final = "<function="
FAMILIES: Final = tuple(dict.fromkeys(family for family, _, _ in _MARKERS))


@dataclass(slots=True)
class Section:
    """One stretch of markup, markers included."""

    family: str
    parts: list[str] = field(default_factory=list)
    complete: bool = False
    """Its end marker came."""

    @property
    def text(self) -> str:
        return "".join(self.parts)


class MarkupFilter:
    """Takes markup of some families out of a text that comes in pieces.

    White space from a line's end up to a marker goes with the markup, and so does white space behind a
    section if nothing visible follows. In code a marker is literal; with ``code`` false there is no code
    (reasoning).
    """

    def __init__(self, families: tuple[str, ...], tools: Sequence[str] = (), *, code: bool = True) -> None:
        self.sections: list[Section] = []
        self._markers = [marker for marker in _MARKERS if marker[0] in families]
        named = [name for name in tools if 0 < len(name) <= _NAME_MAX] if "hermes" in families else []
        self._bare_markers = [("hermes", f"{_BARE}{name}>", "</function>") for name in named]
        """Of calls without their wrapper. Only of offered tools: answers talk about such tags."""
        self._code = MarkdownCode() if code else None
        self._unread = Pieces()
        """Text given out that ``_code`` has not seen: it is looked at only if a marker may come."""
        self._held = ""
        """Outside a section: white space and the beginning of a marker. Inside: the end of what came."""
        self._section: Section | None = None
        self._end_marker: re.Pattern[str] | None = None
        self._behind = False
        """Nothing visible came since a section ended."""
        self._bare = False
        """The section, or the last one, lacks its wrapper."""
        self._orphan = False
        """The end of a missing wrapper may come next."""

    def feed(self, text: str) -> str:
        """The visible text that ``text`` completes."""
        if "<" not in text and not self._held and self._section is None and text and not text[-1].isspace():
            if self._code is not None:
                self._unread.latest.append(text)
                if len(self._unread.latest) >= PIECES_MAX:
                    self._unread.settle()
            self._behind = self._orphan = False
            return text
        visible: list[str] = []
        rest = self._held + text
        self._held = ""
        while rest:
            rest = self._inside(rest) if self._section is not None else self._outside(rest, visible)
        return "".join(visible)

    def end(self) -> str:
        """Visible text that was held back; a section without its end stays incomplete. Without its wrapper it
        may be text about such tags, and is text."""
        held, self._held = self._held, ""
        section, self._section = self._section, None
        if section is not None:
            section.parts.append(held)
            if self._bare:
                self.sections.remove(section)
            return section.text if self._bare else ""
        family = self._all_but_begun(held.lstrip())
        if family is not None:
            self.sections.append(Section(family, [held]))
            return ""
        return "" if self._behind and held.isspace() else held

    def _all_but_begun(self, held: str) -> str | None:
        """The family of a marker of which only the last bracket is missing; of those made of tokens, which no
        answer writes."""
        whole = held + ">"
        tokens = ((family, begin) for family, begin, _ in self._markers if "|" in begin)
        found = (family for family, begin in tokens if _match(whole, 0, begin) == len(whole))
        return next(found, None) if held else None

    def _outside(self, rest: str, visible: list[str]) -> str:
        """Gives out visible text up to a marker, or all but what must wait; returns what is left to look
        at.
        """
        if self._orphan:
            return self._without_orphan(rest)
        stop, marker, length = self._find_marker(rest)
        keep = self._before_markup(rest, stop)
        if marker is None and len(rest) - keep > _SPACE_MAX + _MARKER_MAX:
            keep = stop
            self._behind = False
        self._give(rest[:keep], visible)
        if marker is None:
            self._held = rest[keep:]
            return ""
        family, begin, end = marker
        self._bare = begin.startswith(_BARE)
        self._section = Section(family, [rest[stop : stop + length]])
        self._end_marker = re.compile(pattern(end))
        self.sections.append(self._section)
        return rest[stop + length :]

    def _without_orphan(self, rest: str) -> str:
        """What is left to look at without the end of a wrapper that never began; nothing while it may."""
        begun = rest.lstrip()
        if len(rest) - len(begun) <= _SPACE_MAX:
            if begun.startswith(_WRAPPER_END):
                self._orphan = False
                return begun[len(_WRAPPER_END) :]
            if _WRAPPER_END.startswith(begun):
                self._held = rest
                return ""
        self._orphan = False
        return rest

    def _find_marker(self, rest: str) -> tuple[int, tuple[str, str, str] | None, int]:
        """Where the first marker is, which, and its length; without one, where an unfinished one may
        begin.
        """
        position = rest.find("<")
        if position < 0:
            return len(rest), None, 0
        code = self._code_so_far()
        done = 0
        while position >= 0:
            if code is not None:
                code.feed(rest[done:position])
                done = position
            if code is None or not code.inside():
                unfinished = False
                bare = rest.startswith(_BARE[: len(rest) - position], position)
                for marker in (*self._markers, *self._bare_markers) if bare else self._markers:
                    length = _match(rest, position, marker[1])
                    if length:
                        return position, marker, length
                    unfinished = unfinished or length is None
                if unfinished:
                    return position, None, 0
            position = rest.find("<", position + 1)
        return len(rest), None, 0

    def _before_markup(self, rest: str, stop: int) -> int:
        """Where the white space begins that goes with markup at ``stop``."""
        shown = len(rest[:stop].rstrip())
        if self._behind and shown == 0:
            return 0
        line_end = re.search(r"[\r\n]", rest[shown:stop])
        return stop if line_end is None else shown + line_end.start()

    def _inside(self, rest: str) -> str:
        assert self._section is not None and self._end_marker is not None
        match = self._end_marker.search(rest)
        if match is None:
            keep = max(0, len(rest) - _MARKER_MAX)
            self._section.parts.append(rest[:keep])
            self._held = rest[keep:]
            return ""
        self._section.parts.append(rest[: match.end()])
        self._section.complete = True
        self._section = None
        self._behind = True
        self._orphan = self._bare
        return rest[match.end() :]

    def _give(self, text: str, visible: list[str]) -> None:
        if not text:
            return
        self._behind = False
        if self._code is not None:
            self._unread.latest.append(text)
            self._unread.settle()
        visible.append(text)

    def _code_so_far(self) -> MarkdownCode | None:
        """A copy of the state behind all text given out, to look ahead with."""
        if self._code is None:
            return None
        self._code.feed(self._unread.text())
        self._unread = Pieces()
        return self._code.copy()


def pattern(marker: str) -> str:
    """A regular expression for a marker, its bars of any kind."""
    return re.escape(marker).replace(r"\|", f"[{BARS}]{{1,{_BARS_MAX}}}")


def mentions(text: str) -> bool:
    """Whether a text holds a marker of any family outside of code. For notes: nothing is taken out."""
    if "<" not in text or not _ANY_MARKER.search(text):
        return False
    probe = MarkupFilter(FAMILIES)
    probe.feed(text)
    return bool(probe.sections)


def _match(text: str, position: int, marker: str) -> int | None:
    """Length of the marker at a position; 0 if it is not there, None if the text ends inside it."""
    at = position
    size = len(text)
    for char in marker:
        if char == "|":
            run = at
            while run < size and run - at < _BARS_MAX and text[run] in BARS:
                run += 1
            if run == at:
                return None if at == size else 0
            at = run
        elif at == size:
            return None
        elif text[at] != char:
            return 0
        else:
            at += 1
    return at - position


_ANY_MARKER = re.compile("|".join(pattern(begin) for _, begin, _ in _MARKERS))

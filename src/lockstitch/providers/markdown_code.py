"""Whether a point of a Markdown text that comes in pieces lies in code.

An approximation of CommonMark (0.31.2, "Fenced code blocks" and "Code spans") that errs towards code at the
ends: a span reaches to the end of its line, an unclosed fence to the end of the text.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

_PIECES = re.compile(r"\n|`+|~+|[^\n`~]+")
_FENCE_MIN: Final = 3


@dataclass(slots=True)
class MarkdownCode:
    """The state at the end of what was fed. ``copy`` looks ahead without deciding."""

    fence: str = ""
    """The run of marks that opened the current fence; empty outside."""
    span: int = 0
    """Length of the run of backticks that opened the current span; 0 outside."""
    run: str = ""
    """A run of marks that the next piece may lengthen."""
    line_begins: bool = True
    """Nothing but indentation and quote marks on this line yet."""
    fence_line: bool = False
    """This line opened the fence."""
    closing: bool = False
    """This line closes the fence if nothing else is on it."""

    def copy(self) -> "MarkdownCode":
        return replace(self)

    def feed(self, text: str) -> None:
        for match in _PIECES.finditer(text):
            piece = match[0]
            if piece[0] in "`~":
                if self.run and self.run[0] != piece[0]:
                    self._settle()
                self.run += piece
                continue
            self._settle()
            if piece == "\n":
                self._end_line()
            else:
                self.line_begins = self.line_begins and not piece.strip(" \t>")
                self.closing = self.closing and piece.isspace()

    def inside(self) -> bool:
        """Whether a character here, which is no mark itself, is in code. Ends a pending run."""
        self._settle()
        return bool(self.fence) or self.span > 0

    def _settle(self) -> None:
        run, self.run = self.run, ""
        if not run:
            return
        at_start, self.line_begins = self.line_begins, False
        if self.fence:
            self._settle_in_fence(run, at_start)
        elif at_start and len(run) >= _FENCE_MIN:
            self.fence = run
            self.fence_line = True
        elif run[0] == "`":
            self._settle_span(run)

    def _settle_in_fence(self, run: str, at_start: bool) -> None:
        if self.fence_line and run[0] == "`" and self.fence[0] == "`":
            # The info string of a backtick fence holds no backtick: it was a span that began a line.
            self.span = len(self.fence)
            self.fence = ""
            self._settle_span(run)
        else:
            self.closing = at_start and run[0] == self.fence[0] and len(run) >= len(self.fence)

    def _settle_span(self, run: str) -> None:
        if self.span == 0:
            self.span = len(run)
        elif self.span == len(run):
            self.span = 0

    def _end_line(self) -> None:
        if self.closing:
            self.fence = ""
        self.closing = self.fence_line = False
        self.line_begins = True
        self.span = 0

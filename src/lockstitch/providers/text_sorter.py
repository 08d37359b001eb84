"""What of a response's text is answer, what is reasoning, and what are calls written as markup.

Joins the two filters: think tags first, then the markup that the profile knows, in the text and in the
reasoning. Both hold back as little as they can and give the same parts for every split.
"""

from collections.abc import Sequence

from . import markup, markup_calls
from .markup_calls import MarkedCall
from .think_tags import Part, ThinkTags


class TextSorter:
    """Sorts the text and reasoning of one response."""

    def __init__(self, families: tuple[str, ...], tools: Sequence[str] = ()) -> None:
        """``families``: of markup that becomes calls (``markup``); ``tools``: names that were offered."""
        self.think = ThinkTags()
        """While it is ``passing``, ``passed`` is a cheaper ``text``."""
        self.filters = bool(families)
        """Markup is looked for: else ``passed`` gives back what it is given, and may be left out."""
        self._in_text = markup.MarkupFilter(families, tools) if families else None
        self._in_reasoning = markup.MarkupFilter(families, tools, code=False) if families else None

    @property
    def holding(self) -> bool:
        """Something was said that has not been given out."""
        return self.think.holding

    def text(self, piece: str) -> list[Part]:
        """The parts that a piece of the answer's text completes."""
        return self._filtered(self.think.feed(piece))

    def passed(self, piece: str) -> str:
        """The visible text that a piece completes behind the think tags."""
        return piece if self._in_text is None else self._in_text.feed(piece)

    def reasoning(self, piece: str) -> str:
        """The reasoning that a piece from a field of its own completes."""
        self.think.reasoning_came()
        return piece if self._in_reasoning is None else self._in_reasoning.feed(piece)

    def pause(self) -> list[Part]:
        """Gives out held white space, because a call comes next."""
        return self._filtered(self.think.pause())

    def end(self) -> list[Part]:
        """What was held back."""
        parts = self._filtered(self.think.end())
        if self._in_text is not None:
            parts.append(("text", self._in_text.end()))
        if self._in_reasoning is not None:
            parts.append(("reasoning", self._in_reasoning.end()))
        return parts

    def found(self, texts: Sequence[str]) -> str | None:
        """What to note about markup, after ``end``; ``texts`` are the texts as given out. None: there is
        none.
        """
        for where, filter in (("text", self._in_text), ("reasoning", self._in_reasoning)):
            if filter is not None and filter.sections:
                return f"the {where} holds tool calls as {filter.sections[0].family} markup"
        if self._in_text is None and any(map(markup.mentions, texts)):
            return "this profile does not read them"
        return None

    def calls(self, *, answered: bool, cut: bool) -> list[MarkedCall] | None:
        """Calls written as markup; None if there is markup that should be calls and cannot be read as such.

        In reasoning it counts only if nothing was ``answered``: a model may think about a call that it then
        does not make. If the output limit ``cut`` the response, incomplete markup is left out, for asking
        again would only cut it again.
        """
        sections = self._in_text.sections if self._in_text is not None else []
        if not sections and not answered and self._in_reasoning is not None:
            sections = self._in_reasoning.sections
        found: list[MarkedCall] = []
        for section in sections:
            if cut and not section.complete:
                continue
            calls = markup_calls.read_calls(section)
            if calls is None:
                return None
            found.extend(calls)
        return found

    def _filtered(self, parts: list[Part]) -> list[Part]:
        if self._in_text is None or self._in_reasoning is None:
            return parts
        return [
            (kind, self._in_reasoning.feed(piece) if kind == "reasoning" else self._in_text.feed(piece))
            for kind, piece in parts
        ]

"""Reasoning that a server left in the answer's text between think tags.

``<think>`` counts only at the start of the answer (also repeatedly), a lone ``</think>`` only right behind
reasoning; anywhere later both are literal text, for an answer may be about such tags. Holds back at most the
beginning of a tag and the white space before it, so any split gives the same parts. Kimi-VL writes
``◁think▷`` (https://github.com/MoonshotAI/Kimi-VL/issues/45, and the outputs in
https://github.com/vllm-project/vllm/pull/16387, read 2026-12-01).

Line ends right behind a closing tag belong to the tag: the chat template of Qwen3 writes two of them there
and takes them off again (``content.split('</think>')[-1].lstrip('\\n')``, read 2026-11-30 in public copies
of the template).
"""

from typing import Final, Literal, TypeAlias

TAGS: Final = (("<think>", "</think>"), ("◁think▷", "◁/think▷"))
_OPENS: Final = tuple(opening for opening, _ in TAGS)
_CLOSES: Final = tuple(closing for _, closing in TAGS)
_HELD_MAX: Final = 4096
"""Characters of leading white space that are waited through before the answer counts as begun."""

Part: TypeAlias = tuple[Literal["text", "reasoning"], str]


class ThinkTags:
    """A splitter for the text of one response."""

    def __init__(self) -> None:
        self.passing = False
        """Text goes through unchanged until reasoning comes again: the caller may skip ``feed``."""
        self._until = ""
        """The closing tag of the reasoning that the text is in; empty outside of it."""
        self._answered = False
        """Visible text was given out, so an opening tag no longer counts."""
        self._reasoned = False
        self._behind_tag = False
        """Nothing but line ends came since a closing tag."""
        self._held = ""

    @property
    def holding(self) -> bool:
        """Something was said that has not been given out."""
        return bool(self._held or self._until)

    def reasoning_came(self) -> None:
        """Reasoning arrived in a field of its own."""
        self._reasoned = True
        self.passing = False

    def feed(self, text: str) -> list[Part]:
        """The parts that ``text`` completes, in order."""
        parts: list[Part] = []
        rest = self._held + text
        self._held = ""
        while rest:
            if self.passing:
                parts.append(("text", rest))
                break
            rest = self._think(rest, parts) if self._until else self._begin(rest, parts)
        return parts

    def pause(self) -> list[Part]:
        """Gives out held white space, because something else than text comes next."""
        if self._until or not self._held.isspace():
            return []
        held, self._held = self._held, ""
        return self._text(held)

    def end(self) -> list[Part]:
        """What was held back; an unfinished tag is what it says, and an unclosed block stays reasoning."""
        held, self._held = self._held, ""
        if not self._until:
            return self._text(held)
        return [("reasoning", held)] if held else []

    def _begin(self, rest: str, parts: list[Part]) -> str:
        begun = rest.lstrip()
        opened = _first_of(_OPENS if not self._answered else (), begun)
        if opened is not None:
            self._until = _CLOSES[_OPENS.index(opened)]
            self._behind_tag = False
            return begun[len(opened) :]
        closed = _first_of(_CLOSES if self._reasoned else (), begun)
        if closed is not None:
            self._behind_tag = True
            return begun[len(closed) :]
        may_come = (*(_OPENS if not self._answered else ()), *(_CLOSES if self._reasoned else ()))
        if any(tag.startswith(begun) for tag in may_come) and len(rest) < _HELD_MAX:
            self._held = rest
            return ""
        self._answered = self._answered or bool(begun)
        self.passing = bool(begun)
        parts.extend(self._text(rest))
        return ""

    def _text(self, text: str) -> list[Part]:
        """Visible text, without the line ends that belong to a closing tag before it."""
        if self._behind_tag:
            text = text.lstrip("\r\n")
            self._behind_tag = not text
        return [("text", text)] if text else []

    def _think(self, rest: str, parts: list[Part]) -> str:
        inside, tag, behind = rest.partition(self._until)
        if tag:
            self._until = ""
            self._reasoned = True
            self._behind_tag = True
        else:
            keep = _overlap(inside, self._until)
            self._held = inside[len(inside) - keep :]
            inside = inside[: len(inside) - keep]
        if inside:
            parts.append(("reasoning", inside))
        return behind


def _first_of(tags: tuple[str, ...], text: str) -> str | None:
    return next((tag for tag in tags if text.startswith(tag)), None)


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of ``text`` that begins ``tag``."""
    longest = min(len(text), len(tag) - 1)
    return next((size for size in range(longest, 0, -1) if tag.startswith(text[-size:])), 0)

"""Shell commands taken apart far enough to decide about them, and no further.

Pure. The grammar is that of bash(1), read conservatively: whatever is not surely understood makes the reading
``plain = False``, and then no pattern can allow the command. Nothing here makes a command safe to run.
"""

import re
from dataclasses import dataclass
from typing import Final

_RESERVED: Final = frozenset(
    """
    ! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while
    """.split()  # noqa: SIM905  # a list of twenty strings is twenty lines
)
_HARMLESS: Final = re.compile(r"(?:>&[12]|>>?[ \t]*/dev/null|<[ \t]*/dev/null)(?=[\s;&|]|$)")
_HARMLESS_BOTH: Final = re.compile(r"&>>?[ \t]*/dev/null(?=[\s;&|]|$)")
_EXPANSION: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\}|[0-9?$!#@*-])")
_EXPANDED: Final = frozenset("*?[]~{}")
"""Unquoted, they stand for something else: file names, a home directory, alternatives."""
_ESCAPABLE: Final = frozenset('$`"\\')
"""What a backslash takes the meaning from inside double quotes."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    literal: bool
    """False if the shell puts something else in its place (a variable, file names)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One command line as far as it was understood."""

    commands: tuple[tuple[Word, ...], ...]
    """The simple commands, also those inside of groups and substitutions."""
    plain: bool
    """Nothing but simple commands joined by ``; & && || |`` and line ends, with no effect beside theirs."""
    opaque: bool
    """Some of what is run is not written here: it comes from a substitution, a variable or a script text."""


def read(command: str) -> Reading:
    """Takes any text; what no shell would accept is read as not plain."""
    return _Reader(command).read()


class _Reader:
    """One pass over the text, a piece at a time; a piece is a character, a quoted part or an operator."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._commands: list[tuple[Word, ...]] = []
        self._words: list[Word] = []
        self._word: list[str] | None = None
        """Parts of the word being read; None between words."""
        self._literal = True
        self._quoted = False
        self._plain = True
        self._opaque = False
        self._joined = False
        """Whether a ``&&``, ``||`` or ``|`` waits for its right side."""

    def read(self) -> Reading:
        while self._at < len(self._text):
            self._piece()
        self._end_command()
        if self._joined or not self._commands:
            self._plain = False
        return Reading(tuple(self._commands), self._plain, self._opaque)

    def _piece(self) -> None:
        character = self._text[self._at]
        match character:
            case " " | "\t":
                self._end_word()
                self._at += 1
            case "'":
                self._single_quoted()
            case '"':
                self._double_quoted()
            case "\\":
                self._escaped()
            case "$":
                self._dollar()
            case "`":
                self._substitution()
            case ";" | "&" | "|" | "\n":
                self._separator()
            case "(" | ")":
                self._plain = False
                self._end_command()
                self._at += 1
            case "<" | ">":
                self._redirection()
            case "#" if self._word is None:
                self._plain = False  # and what it hides is read, in case the shell takes it for a word
                self._ordinary(character)
            case _:
                self._ordinary(character)

    def _ordinary(self, character: str) -> None:
        if not character.isprintable():
            self._plain = False  # how a shell splits at odd spaces depends on its locale
        if character in _EXPANDED:
            self._literal = False
        self._put(character)
        self._at += 1

    def _put(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _single_quoted(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._plain, self._opaque = False, True
            end = len(self._text)
        self._put(self._text[self._at + 1 : end])
        self._quoted = True
        self._at = end + 1

    def _double_quoted(self) -> None:
        self._put("")
        self._quoted = True
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            match character:
                case '"':
                    self._at += 1
                    return
                case "$":
                    self._dollar()
                case "`":
                    self._substitution()
                    return  # what follows is read as if unquoted; no pattern can allow it any more
                case "\\" if self._text[self._at + 1 : self._at + 2] in _ESCAPABLE:
                    self._put(self._text[self._at + 1 : self._at + 2])
                    self._at += 2
                case "\\" if self._text[self._at + 1 : self._at + 2] in ("\n", ""):
                    self._plain = False
                    self._at += 2
                case _:
                    self._put(character)
                    self._at += 1
        self._plain, self._opaque = False, True  # the quotes never end

    def _escaped(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following in ("", "\n"):
            self._plain = False  # a line that goes on
        else:
            self._put(following)
            self._quoted = True
        self._at += 2

    def _dollar(self) -> None:
        if match := _EXPANSION.match(self._text, self._at):
            self._put(match.group())
            self._literal = False
            self._at = match.end()
        elif self._text[self._at + 1 : self._at + 2] in ("(", "{", "[", "'", '"'):
            self._substitution()
        else:
            self._put("$")
            self._at += 1

    def _substitution(self) -> None:
        """Something whose text or effect is not written here; what is inside is read like commands."""
        self._plain, self._opaque = False, True
        self._put("")
        self._literal = False
        self._end_command()
        self._at += 1

    def _separator(self) -> None:
        if match := _HARMLESS_BOTH.match(self._text, self._at):
            self._end_word()
            self._at = match.end()
            return
        character = self._text[self._at]
        double = self._text[self._at + 1 : self._at + 2]
        was_empty = not self._words and self._word is None
        self._end_command()
        if was_empty and character != "\n":
            self._plain = False  # an operator without its left side
        joins = character == "|" or (character == "&" and double == "&")
        self._joined = joins or (self._joined and was_empty)
        self._at += 2 if character + double in ("&&", "||", "|&") else 1

    def _redirection(self) -> None:
        if self._word is not None and not self._quoted and "".join(self._word).isdigit():
            self._word = None  # the number of a descriptor
        self._end_word()
        if match := _HARMLESS.match(self._text, self._at):
            self._at = match.end()
            return
        self._plain = False
        if self._text.startswith(("<(", ">(", "<<"), self._at):
            self._opaque = True
        self._at += 1

    def _end_word(self) -> None:
        if self._word is None:
            return
        text = "".join(self._word)
        if not self._words and not self._quoted and text in _RESERVED:
            self._plain = False  # what follows is a command of its own
        else:
            if not self._words and (not self._literal or not text or "=" in text):
                # a variable in the place of a program, or an assignment that changes what the program does
                self._plain = False
                self._opaque = self._opaque or not self._literal
            self._words.append(Word(text, self._literal))
        self._word, self._literal, self._quoted = None, True, False

    def _end_command(self) -> None:
        self._end_word()
        if self._words:
            self._commands.append(tuple(self._words))
            self._joined = False
        self._words = []

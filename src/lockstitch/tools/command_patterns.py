"""Patterns for shell commands: what one surely allows, and what one may forbid. Pure.

A pattern is a list of words. A star within a word stands for any characters, a star as a word for one word,
and a star as the last word for any number of them.
"""

import posixpath
import re
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from .shell_grammar import Reading, Word, read

Match: TypeAlias = Literal["yes", "no", "perhaps"]

_DEPTH_MAX: Final = 4
"""Of commands inside of quoted words: ``bash -c "sh -c '...'"``."""

_RUNS_OTHERS: Final = frozenset(
    """
    . awk bash builtin bun command dash deno docker doas env eval exec find fish gawk gdb git-shell ksh
    kubectl make nice node nohup npx parallel perl php podman python python3 ruby screen sed setsid sh source
    ssh strace su sudo time timeout tmux uvx watch xargs zsh
    """.split()  # noqa: SIM905  # a list of fifty strings is fifty lines
)
"""Programs whose arguments are programs; only the very same command is offered to be remembered."""
_HAS_SUBCOMMANDS: Final = frozenset(
    """
    apt brew cargo dotnet gh git go gradle mvn npm pip pip3 pnpm poetry rustup systemctl terraform uv yarn
    """.split()  # noqa: SIM905
)
"""Programs whose second word says what they do."""

_SCRIPT: Final = re.compile(r"[\s;&|`$]")
"""A quoted word with these may be a command itself, for a shell to run."""


def suggested(command: str) -> str:
    """A pattern for the command and its like, narrow enough to be accepted at a glance; else empty."""
    reading = read(command)
    if (
        not reading.plain
        or len(reading.commands) != 1
        or not all(word.literal for word in reading.commands[0])
    ):
        return ""
    words = [word.text for word in reading.commands[0]]
    if any(not re.fullmatch(r"[\w@%+=:,./-]+", word) for word in words):
        return ""  # a pattern is split at spaces and has its own stars
    program = posixpath.basename(words[0])
    if program in _RUNS_OTHERS:
        return " ".join(words)
    kept = 2 if program in _HAS_SUBCOMMANDS and len(words) > 1 and not words[1].startswith("-") else 1
    return f"{' '.join(words[:kept])} *"


def allows(reading: Reading, pattern: str) -> Match:
    """``yes`` only for a plain line all of whose commands the pattern covers."""
    covered = reading.plain and all(covers(command, pattern) for command in reading.commands)
    return "yes" if covered else "no"


def covers(command: tuple[Word, ...], pattern: str) -> bool:
    """Every word of the pattern has its word in the command; a star at the end has any number."""
    wanted = pattern.split()
    open_end = wanted[-1] == "*"
    if open_end:
        wanted = wanted[:-1]
    if len(command) < len(wanted) or (len(command) > len(wanted) and not open_end):
        return False
    return all(_word_matches(word, want) for word, want in zip(command, wanted, strict=False))


def _word_matches(word: Word, want: str) -> bool:
    return want == "*" or (word.literal and fnmatchcase(word.text, want.replace("[", "[[]")))


def forbids(reading: Reading, pattern: str, depth: int = 0) -> Match:
    """``yes`` where a command surely is one that the pattern names, ``perhaps`` where it may run one."""
    if any(covers(_by_name(command), pattern) for command in reading.commands):
        return "yes"
    wanted = [want for want in pattern.split() if want != "*"]
    if reading.opaque or any(_may_run(command, wanted) for command in reading.commands):
        return "perhaps"
    words = [word.text for command in reading.commands for word in command]
    for text in words:
        if _SCRIPT.search(text) and (depth == _DEPTH_MAX or forbids(read(text), pattern, depth + 1) != "no"):
            return "perhaps"
    return "no"


def _by_name(command: tuple[Word, ...]) -> tuple[Word, ...]:
    """``/bin/rm`` is ``rm``."""
    first = command[0]
    return (Word(posixpath.basename(first.text), first.literal), *command[1:])


def _may_run(command: tuple[Word, ...], wanted: list[str]) -> bool:
    """The wanted words come in this order, with anything between them.

    An unknown word may be any, but the program only for a program that runs others.
    """
    runs_others = posixpath.basename(command[0].text) in _RUNS_OTHERS
    left = list(wanted)
    for word in command:
        if not left:
            break
        started = len(left) < len(wanted)
        if not word.literal:
            fits = started or runs_others
        else:
            fits = any(fnmatchcase(name, left[0]) for name in (word.text, posixpath.basename(word.text)))
        left = left[1:] if fits else left
    return not left

"""A checkpoint holds state that code made: whoever changes that code must make older checkpoints void."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstitch.session.fold_code import FOLD_CODE

SOURCES = Path(__file__).parents[2] / "src"
ROOTS = (
    "lockstitch.session.log_reader",
    "lockstitch.session.checkpoint",
    "lockstitch.history.context",
    "lockstitch.history.saved_context",
    "lockstitch.agent.carried",
    "lockstitch.agent.session_fold",
)
"""What scans, judges and folds a log, and what saves and restores the state; with all that they import."""
ITSELF = "lockstitch.session.fold_code"


def path_of(module: str) -> Path:
    return SOURCES.joinpath(*module.split(".")).with_suffix(".py")


def imported(module: str) -> Iterator[str]:
    """Modules of the package that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path_of(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                named = f"{origin}.{alias.name}"
                yield named if path_of(named).exists() else origin


def fold_modules() -> list[str]:
    found: set[str] = set()
    waiting = list(ROOTS)
    while waiting:
        module = waiting.pop()
        if module not in found and module != ITSELF and path_of(module).exists():
            found.add(module)
            waiting += [name for name in imported(module) if name.startswith("lockstitch.")]
    return sorted(found)


def code_only(source: str) -> str:
    """The source without comments, docstrings and empty lines: what those say changes no state."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.end_lineno is not None:
            lines[text.lineno - 1 : text.end_lineno] = [""] * (text.end_lineno - text.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def digest() -> str:
    found = hashlib.sha256()
    for module in fold_modules():
        code = code_only(path_of(module).read_text(encoding="utf-8"))
        found.update(f"{module}\n{len(code)}\n{code}\n".encode())
    return found.hexdigest()[:16]


def test_state_of_other_code_is_never_restored() -> None:
    now = digest()
    assert now == FOLD_CODE, (
        "code that decides what a session's log amounts to was changed, so checkpoints of the code before "
        f'must not be used any more: write FOLD_CODE: Final = "{now}" in {path_of(ITSELF)}'
    )


def test_what_folds_a_log_is_in_the_digest() -> None:
    parts = {
        "agent.carried",
        "history.context",
        "history.live_messages",
        "history.saved_context",
        "history.shorten",
        "history.transcript",
        "schema.events",
        "schema.messages",
        "session.gate",
        "session.log_state",
        "session.migration",
        "session.scan",
        "wire.jsonl",
    }
    assert parts <= {module.removeprefix("lockstitch.") for module in fold_modules()}


WORDS = {
    "a comment": ("x = 1\n", "x = 1  # why\n"),
    "a docstring": ("def f():\n    return 1\n", 'def f():\n    """What.\n\n    And how."""\n    return 1\n'),
    "an empty line": ("x = 1\ny = 2\n", "x = 1\n\n\ny = 2\n"),
}


@pytest.mark.parametrize(("before", "after"), WORDS.values(), ids=WORDS)
def test_words_about_the_code_do_not_count(before: str, after: str) -> None:
    assert code_only(before) == code_only(after)


CHANGES = {
    "another value": ("x = 1\n", "x = 2\n"),
    "another text": ('x = "a # b"\n', 'x = "a # c"\n'),
    "another argument": ("def f(x: int) -> None: ...\n", "def f(x: str) -> None: ...\n"),
    "another level": ("if x:\n    y()\nz()\n", "if x:\n    y()\n    z()\n"),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_the_code_itself_counts(before: str, after: str) -> None:
    assert code_only(before) != code_only(after)

"""Docstrings read for their parameters: Google, NumPy and Sphinx style."""

import inspect
import re
from dataclasses import dataclass, field
from typing import Final

_GOOGLE_HEADS: Final = ("args", "arguments", "parameters", "params", "attributes", "keyword args")
_NUMPY_HEADS: Final = ("parameters", "other parameters", "attributes")
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY: Final = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_PARAM: Final = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword|ivar)\s+(?:[^:]*?\s)?\*{0,2}(\w+):\s*(.*)"
)
_SPHINX_FIELD: Final = re.compile(r":[a-zA-Z]+(?:\s[^:]*)?:")


@dataclass(slots=True)
class Docstring:
    description: str = ""
    """Everything but the descriptions of parameters."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Each on one line, whatever its wrapping was."""


def parse(docstring: str | None) -> Docstring:
    """What the docstring says. Text it cannot place stays in the description; nothing raises."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    found = Docstring()
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        head = line.strip().rstrip(":").lower()
        if line.strip().endswith(":") and head in _GOOGLE_HEADS:
            at = _google(lines, at + 1, _indent(line), found.parameters)
        elif head in _NUMPY_HEADS and _underlined(lines, at):
            at = _numpy(lines, at + 2, found.parameters)
        elif match := _SPHINX_PARAM.match(line.strip()):
            at = _sphinx(lines, at, match, found.parameters)
        elif _SPHINX_FIELD.match(line.strip()) and line.strip().startswith((":type", ":rtype")):
            at += 1
        else:
            kept.append(line)
            at += 1
    found.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[at + 1]) is not None


def _google(lines: list[str], at: int, outer: int, into: dict[str, str]) -> int:
    """Entries indented below their head; the first of them sets the column of names."""
    column: int | None = None
    name: str | None = None
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        if _indent(line) <= outer:
            break
        column = _indent(line) if column is None else column
        entry = _GOOGLE_ENTRY.match(line.strip()) if _indent(line) <= column else None
        if entry:
            name = entry.group(1)
            into[name] = entry.group(2).strip()
        elif name is not None:
            into[name] = f"{into[name]} {line.strip()}".strip()
        at += 1
    return at


def _numpy(lines: list[str], at: int, into: dict[str, str]) -> int:
    names: list[str] = []
    while at < len(lines) and not _underlined(lines, at):
        line = lines[at]
        at += 1
        if not line.strip():
            continue
        if _indent(line) == 0:
            entry = _NUMPY_ENTRY.match(line)
            if entry is None:
                return at - 1
            names = [name.strip().lstrip("*") for name in entry.group(1).split(",")]
            into.update(dict.fromkeys(names, ""))
        else:
            into.update({name: f"{into[name]} {line.strip()}".strip() for name in names})
    return at


def _sphinx(lines: list[str], at: int, match: re.Match[str], into: dict[str, str]) -> int:
    parts = [match.group(2).strip()]
    at += 1
    while at < len(lines) and lines[at].strip() and not _SPHINX_FIELD.match(lines[at].strip()):
        parts.append(lines[at].strip())
        at += 1
    into[match.group(1)] = " ".join(part for part in parts if part)
    return at

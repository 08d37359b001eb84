"""Unified diffs for display, bounded in size and time."""

import difflib
import re
from typing import Any, Final

CONTEXT_LINES: Final = 3
DIFF_MAX_LINES: Final = 2_000
"""Of the part that differs; comparing is quadratic at worst."""
DIFF_MAX_CHARS: Final = 20_000
_HUNK: Final = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def unified(before: str, after: str, path: str) -> dict[str, Any]:
    """``diff``, ``added`` and ``removed`` (lines) of a change. A change too large to compare has no diff."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(start - CONTEXT_LINES, 0)
    old = old[first : len(old) - max(end - CONTEXT_LINES, 0)]
    new = new[first : len(new) - max(end - CONTEXT_LINES, 0)]
    if len(old) + len(new) > DIFF_MAX_LINES:
        return {"added": len(new), "removed": len(old)}
    lines = list(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=CONTEXT_LINES))
    body = lines[2:]
    text = "".join(_ended(_shifted(line, first)) for line in lines)
    if len(text) > DIFF_MAX_CHARS:
        text = text[:DIFF_MAX_CHARS] + "\n[... the rest of the diff left out ...]\n"
    return {
        "diff": text,
        "added": sum(line.startswith("+") for line in body),
        "removed": sum(line.startswith("-") for line in body),
    }


def _common(left: list[str], right: list[str]) -> int:
    """Length of the common beginning."""
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))


def _shifted(line: str, lines: int) -> str:
    """A hunk's header with the lines that were cut off before the comparison counted in."""
    match = _HUNK.match(line)
    if match is None:
        return line
    old, old_count, new, new_count = match.groups()
    return f"@@ -{int(old) + lines}{old_count or ''} +{int(new) + lines}{new_count or ''} @@\n"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

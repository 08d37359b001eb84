"""grep without ripgrep, as a process of its own. Standard library and ``walk`` only.

A regular expression can take for ever and holds the interpreter while it does, so it must run where it can be
killed. Takes its arguments as JSON; writes lines of path, NUL, number, colon, text, or an error with status
2.
"""

import json
import os
import re
import sys
from pathlib import Path

from lockstitch.tools.walk import files

FILE_MAX_BYTES = 10 * 1024 * 1024
SNIFF_BYTES = 8192


def main() -> int:
    """Status 0 with matches, 1 without, 2 for a pattern that is none; as grep."""
    asked = json.loads(sys.argv[1])
    out = os.fdopen(1, "w", encoding="utf-8", errors="replace")
    try:
        pattern = re.compile(asked["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        out.write(f"{error}\n")
        out.flush()
        return 2
    found = 0
    target = Path(asked["path"])
    for name in [""] if target.is_file() else files(target):
        path = target / name if name else target
        for number, line in _matches(path, pattern):
            out.write(f"{path}\0{number}:{line}\n")
            found += 1
        if found > asked["matches_max"]:
            break
    out.flush()
    return 0 if found else 1


def _matches(path: Path, pattern: "re.Pattern[str]") -> list[tuple[int, str]]:
    try:
        if path.stat().st_size > FILE_MAX_BYTES:
            return []
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES)
    except OSError:
        return []
    if b"\0" in data[:SNIFF_BYTES]:
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [(number, line.rstrip("\r")) for number, line in enumerate(lines, 1) if pattern.search(line)]

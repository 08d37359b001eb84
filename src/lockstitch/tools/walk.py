"""Files below a directory, without those that ``.gitignore`` leaves out. Standard library only.

For where ripgrep is not there. The rules are those of gitignore(5) as far as they matter for source trees:
comments, negation, anchoring, directories, ``*``, ``?``, ``[...]``, ``**``, and files in every directory.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

IGNORE_FILES = (".gitignore", ".ignore")
IGNORE_MAX_BYTES = 1024 * 1024
DEPTH_MAX = 100


class Rules:
    """The patterns of one ignore file, which hold for what lies below its directory."""

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]

    def verdict(self, relative: str, is_directory: bool) -> bool | None:
        """True: left out, False: taken in again, None: nothing said. Paths are relative to the file's."""
        for pattern, negated, only_directories in reversed(self._rules):
            if (is_directory or not only_directories) and pattern.fullmatch(relative):
                return not negated
        return None


def _rule(line: str) -> tuple[re.Pattern[str], bool, bool] | None:
    line = re.sub(r"(?<!\\)\s+$", "", line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line.removeprefix("!")
    only_directories = line.endswith("/")
    line = line.rstrip("/")
    anchored = "/" in line
    line = line.removeprefix("/")
    if not line:
        return None
    try:
        body = translated(line)
        return re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL), negated, only_directories
    except re.error:
        return None  # a broken pattern matches nothing, as in git


@lru_cache(maxsize=512)
def translated(pattern: str) -> str:
    """A glob as a regular expression over paths: ``**`` crosses ``/``, ``*`` and ``?`` do not."""
    out: list[str] = []
    at = 0
    braces = 0
    while at < len(pattern):
        character = pattern[at]
        rest = pattern[at:]
        at += 1
        if rest.startswith("**/") and (at == 1 or pattern[at - 2] == "/"):
            out.append("(?:[^/]+/)*")
            at += 2
        elif rest.startswith("**"):
            out.append(".*")
            at += 1
        elif character == "*":
            out.append("[^/]*")
        elif character == "?":
            out.append("[^/]")
        elif character == "[" and (end := pattern.find("]", at + 1)) > 0:
            members = pattern[at:end].replace("\\", "\\\\")
            members = "^" + members[1:] if members[0] in "!^" else members
            out.append(f"(?!/)[{members}]")
            at = end + 1
        elif character == "{" and "}" in rest:
            out.append("(?:")
            braces += 1
        elif character == "}" and braces:
            out.append(")")
            braces -= 1
        elif character == "," and braces:
            out.append("|")
        elif character == "\\" and at < len(pattern):
            out.append(re.escape(pattern[at]))
            at += 1
        else:
            out.append(re.escape(character))
    return "".join(out)


def files(root: Path, *, stopped: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """Paths of regular files below ``root``, relative to it, in order of name; hidden ones too, ``.git`` not.

    Links are not followed. Directories that cannot be read are passed over. Ignore files above ``root`` count
    up to the repository's own directory.
    """
    chain = _above(root)
    yield from _below(str(root), "", chain, 0, stopped)


def _above(root: Path) -> list[tuple[str, Rules]]:
    """Rules from the repository's root down to ``root``'s parent, each with the prefix for paths."""
    found: list[tuple[str, Rules]] = []
    if (root / ".git").exists():
        return found
    for directory in root.parents:
        prefix = root.relative_to(directory).as_posix() + "/"
        found[:0] = [(prefix, rules) for rules in _read(directory)]
        if (directory / ".git").exists():
            return found
    return []


def _below(
    root: str, relative: str, chain: list[tuple[str, Rules]], depth: int, stopped: Callable[[], bool]
) -> Iterator[str]:
    here = Path(root, relative)
    try:
        with os.scandir(here) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    # prefix "" with len(relative) cut off: paths are made relative to the ignore file's directory below
    chain = [*chain, *((f"-{len(relative)}", rules) for rules in _read(here))]
    for entry in ordered:
        if stopped():
            return
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file(follow_symlinks=False)
        except OSError:
            continue
        path = relative + entry.name
        if not (is_directory or is_file) or entry.name == ".git" or _ignored(path, is_directory, chain):
            continue
        if is_file:
            yield path
        elif depth < DEPTH_MAX:
            yield from _below(root, path + "/", chain, depth + 1, stopped)


def _ignored(path: str, is_directory: bool, chain: list[tuple[str, Rules]]) -> bool:
    """The innermost file that says anything decides."""
    for prefix, rules in reversed(chain):
        relative = path[int(prefix[1:]) :] if prefix.startswith("-") else prefix + path
        verdict = rules.verdict(relative, is_directory)
        if verdict is not None:
            return verdict
    return False


def _read(directory: Path) -> list[Rules]:
    found = []
    for name in IGNORE_FILES:
        try:
            path = directory / name
            if not path.is_file():  # not a FIFO, which would be waited for
                continue
            with path.open(encoding="utf-8", errors="replace") as file:
                found.append(Rules(file.read(IGNORE_MAX_BYTES)))
        except OSError:
            continue
    return found

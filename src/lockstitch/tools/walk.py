"""Files below a directory, without those that ``.gitignore`` leaves out. Standard library only.

For where ripgrep is not there. The rules are those of gitignore(5) as far as they matter for source trees:
comments, negation, anchoring, directories, ``*``, ``?``, ``[...]``, ``**``, and files in every directory.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

IGNORE_FILES = (".gitignore", ".ignore")
IGNORE_MAX_BYTES = 1024 * 1024
DEPTH_MAX = 100
CROSSING_MAX = 3
_STAR = "[^/]*"


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
    """A glob as a regular expression over paths: ``**`` crosses ``/``, ``*`` and ``?`` do not.

    Patterns come from models and from repositories, so the expression must not take for ever on any path:
    within one name every star but the last is satisfied at the first place that fits, which is enough, and
    not tried again. Raises re.error for a pattern with more doubt in it than that can cover.
    """
    if pattern.count("**") > CROSSING_MAX:
        raise re.error(f"more than {CROSSING_MAX} double stars")
    return "/".join(_segments(pattern.split("/"))).replace("\0/", "")


def _segments(names: list[str]) -> Iterator[str]:
    """Each name of the pattern; NUL behind those that bring their own slash."""
    for position, name in enumerate(names):
        if name == "**" and position < len(names) - 1:
            yield "(?:[^/]+/)*\0"
        elif name == "**":
            yield ".+" if position else ".*"
        else:
            yield _name(name)


def _name(name: str) -> str:
    """One name of the pattern, between slashes."""
    parts, sure = _parts(name)
    stars = [position for position, part in enumerate(parts) if part == _STAR]
    if len(stars) < 3:
        return "".join(parts)
    if not sure:
        raise re.error("more than two stars beside alternatives in one name")
    out = parts[: stars[0]]
    for star, following in pairwise(stars):
        out.append(f"(?>[^/]*?{''.join(parts[star + 1 : following])})")
    return "".join([*out, _STAR, *parts[stars[-1] + 1 :]])


def _parts(name: str) -> tuple[list[str], bool]:
    """The pieces of a name as expressions, and whether each but the stars has one length only."""
    parts: list[str] = []
    braces = 0
    sure = True
    at = 0
    while at < len(name):
        character = name[at]
        at += 1
        if character == "*":
            crossing = name[at : at + 1] == "*"
            at += crossing
            sure = sure and not crossing
            if parts[-1:] != [_STAR] or crossing:
                parts.append(".*" if crossing else _STAR)
        elif character == "?":
            parts.append("[^/]")
        elif character == "[" and (end := name.find("]", at + 1)) > 0:
            parts.append(_set(name[at:end]))
            at = end + 1
        elif character == "{" and "}" in name[at:]:
            parts.append("(?:")
            braces += 1
            sure = False
        elif character == "}" and braces:
            parts.append(")")
            braces -= 1
        elif character == "," and braces:
            parts.append("|")
        elif character == "\\" and at < len(name):
            parts.append(re.escape(name[at]))
            at += 1
        else:
            parts.append(re.escape(character))
    return parts, sure


def _set(members: str) -> str:
    """``[abc-f]`` and ``[!abc]``, with what stands in the brackets."""
    negated = members[0] in "!^" and len(members) > 1
    rest = members[negated:]
    out: list[str] = []
    at = 0
    while at < len(rest):
        if rest[at + 1 : at + 2] == "-" and at + 2 < len(rest):
            out.append(f"{re.escape(rest[at])}-{re.escape(rest[at + 2])}")
            at += 3
        else:
            out.append(re.escape(rest[at]))
            at += 1
    return f"(?!/)[{'^' if negated else ''}{''.join(out)}]"


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

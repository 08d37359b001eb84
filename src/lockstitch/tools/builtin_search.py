"""``glob`` and ``grep``: on ripgrep where it is present, else in Python, with the same bounds."""

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

from .builtin_shell import tool_environment
from .contract import Tool, ToolContext, ToolError
from .functions import tool
from .process import Finished, run_process
from .text import visible
from .walk import files, translated
from .workspace import Place, explained, is_secret, locate

PATHS_MAX: Final = 1_000
"""Paths one glob returns."""
SCANNED_MAX: Final = 200_000
"""Files one glob looks at."""
MATCHES_MAX: Final = 500
"""Lines one grep returns."""
LINE_MAX_CHARS: Final = 500
"""Of one matching line."""
TIMEOUT_S: Final = 60.0
_OUTPUT_MAX_BYTES: Final = 16 * 1024 * 1024
_CHILD: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from lockstitch.tools.search_child import main; sys.exit(main())"
)
_RG_FILES: Final = ("--no-config", "--hidden", "--no-require-git", "--glob", "!.git", "--no-messages")
_RG_LINES: Final = (
    *("--line-number", "--with-filename", "--null", "--no-heading", "--color", "never", "--sort", "path"),
    *("--max-filesize", "10M", "--engine", "auto", "--max-count", str(MATCHES_MAX + 1)),
)
"""Options of ripgrep 13 and later; the Python search does the same without them."""
_BEHIND_PATH: Final = re.compile(r"(\d+):([^\n]*)\n?")
_BINARY: Final = re.compile(
    r"^[^\0\n]*: (?:WARNING: stopped searching binary file after match|binary file matches) \(found .*\)\n",
    re.MULTILINE,
)
"""What ripgrep 13 and 14 write between, where a file turns out to be binary behind a match."""


def search_tools() -> list[Tool]:
    return [
        tool(name="glob", parallel=True, timeout_s=TIMEOUT_S + 5)(_glob),
        tool(name="grep", parallel=True, timeout_s=TIMEOUT_S + 5)(_grep),
    ]


def ripgrep(environ: Mapping[str, str]) -> str | None:
    """Path of ripgrep as the tools' environment finds it."""
    return shutil.which("rg", path=environ.get("PATH"))


def _glob(
    pattern: Annotated[
        str, "For example **/*.py or src/*/test_*.{ts,tsx}. Without a slash: in any directory."
    ],
    *,
    context: ToolContext,
) -> str:
    """Find files of the workspace by a pattern; returns their paths, without those that git ignores."""
    wanted = pattern.removeprefix("./")
    if not wanted or wanted.startswith("/") or ".." in wanted.split("/"):
        raise ToolError("The pattern must be relative to the workspace, without '..'; for example **/*.py.")
    try:
        matches = re.compile(translated(wanted if "/" in wanted else f"**/{wanted}")).fullmatch
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolError(f"The pattern cannot be read: {error}.") from error
    found: list[str] = []
    scanned = 0
    for path in _all_files(context):
        scanned += 1
        if matches(path):
            found.append(path)
        if len(found) > PATHS_MAX or scanned >= SCANNED_MAX:
            break
    lines = [_name(path) for path in found[:PATHS_MAX]]
    if len(found) > PATHS_MAX:
        lines.append(f"[more than {PATHS_MAX:,} files; make the pattern narrower]")
    elif scanned >= SCANNED_MAX:
        lines.append(f"[only the first {SCANNED_MAX:,} files were looked at]")
    return "\n".join(lines) or "No files match."


def _all_files(context: ToolContext) -> Iterable[str]:
    environ = tool_environment(context.environ, context.environ_allow)
    rg = ripgrep(environ)
    if rg is None:
        return files(Path(os.path.realpath(context.cwd)), stopped=context.stopping.is_set)
    finished = _run([rg, *_RG_FILES, "--files", "--null", "--", "."], context, environ)
    paths = finished.output.decode("utf-8", "replace").split("\0")
    return sorted(path.removeprefix("./") for path in paths if path)


def _grep(
    pattern: Annotated[str, "A regular expression, matched within single lines."],
    path: Annotated[str, "File or directory to search; the whole workspace if left out."] = ".",
    *,
    context: ToolContext,
) -> str:
    """Search file contents in the workspace; returns path:line:text.

    Binary files and files ignored by git are left out.
    """
    if not pattern or "\n" in pattern or "\0" in pattern:
        raise ToolError("The pattern must be one non-empty line.")
    place = locate(context, path)
    if not place.path.exists():
        raise explained(place, FileNotFoundError(errno.ENOENT, "missing"))
    if not (place.path.is_dir() or place.path.is_file()):
        raise ToolError(f"{place.shown} is neither a file nor a directory.")
    environ = tool_environment(context.environ, context.environ_allow)
    rg = ripgrep(environ)
    finished = _run(_rg_argv(rg, pattern, place) if rg else _child_argv(pattern, place), context, environ)
    output = finished.output.decode("utf-8", "replace")
    matches = [match for found in _found(_BINARY.sub("", output)) if (match := _match(*found))]
    if finished.stopped == "timeout" and not matches:
        raise ToolError(
            f"The search took longer than {TIMEOUT_S:g} s. Make the pattern simpler or the path narrower."
        )
    if finished.status not in (0, 1) and not finished.stopped and not matches:
        reason = (
            output[:2000].strip() or finished.signal_name or "the pattern takes too much; make it simpler"
        )
        raise ToolError(f"The search failed: {reason}")
    shown = matches[:MATCHES_MAX]
    if len(matches) > MATCHES_MAX or finished.stopped:
        shown.append(f"[more than {len(shown)} lines match; make the pattern or the path narrower]")
    return "\n".join(shown) or "No matches."


def _rg_argv(rg: str, pattern: str, place: Place) -> list[str]:
    return [rg, *_RG_FILES, *_RG_LINES, "--regexp", pattern, "--", place.shown]


def _child_argv(pattern: str, place: Place) -> list[str]:
    asked = {"pattern": pattern, "path": place.shown, "matches_max": MATCHES_MAX + 1}
    source = str(Path(__file__).parents[2])
    return [sys.executable, "-I", "-S", "-c", _CHILD, source, json.dumps(asked)]


def _run(argv: list[str], context: ToolContext, environ: Mapping[str, str]) -> Finished:
    return run_process(
        argv,
        cwd=Path(os.path.realpath(context.cwd)),
        environ=environ,
        timeout_s=TIMEOUT_S,
        stopping=context.stopping,
        output_max_bytes=_OUTPUT_MAX_BYTES,
        head_max_bytes=_OUTPUT_MAX_BYTES,
    )


def _found(output: str) -> Iterator[tuple[str, str, str]]:
    """What either engine wrote of each match: path, NUL, number, colon, text. A path may hold line ends."""
    at = 0
    while (end := output.find("\0", at)) >= 0:
        rest = _BEHIND_PATH.match(output, end + 1)
        if rest is not None:
            yield output[at:end], rest[1], rest[2]
        at = rest.end() if rest else end + 1


def _match(path: str, number: str, text: str) -> str | None:
    """A match for the model; None for one in a secret."""
    if is_secret(Path(path).name):
        return None
    text = text.removesuffix("\r")
    if len(text) > LINE_MAX_CHARS:
        text = f"{text[:LINE_MAX_CHARS]} [... {len(text) - LINE_MAX_CHARS:,} more characters]"
    return f"{_name(path.removeprefix('./'))}:{number}:{text}"


def _name(path: str) -> str:
    """A path on one line, whatever it is called: else a file's name could show matches of another file."""
    return visible(path).replace("\n", "\u2424")

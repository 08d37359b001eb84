"""glob and grep give the same answers with ripgrep and without it."""

import json
import re
import shutil
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.tools import builtin_search
from lockstitch.tools.builtin import builtin_tools
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.process import Finished
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call
from lockstitch.tools.walk import Rules, files, translated

REGISTRY = Registry(builtin_tools())
WITH_RIPGREP = pytest.param(
    "rg",
    marks=pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed"),
    id="ripgrep",
)


@pytest.fixture(params=[WITH_RIPGREP, pytest.param("python", id="python")])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name == "python":
        monkeypatch.setattr(builtin_search, "ripgrep", lambda _environ: None)
    return name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    contents = {
        ".gitignore": b"build/\n*.log\n!keep.log\n",
        ".git/config": b"needle\n",
        ".hidden/h.py": b"needle = 1\n",
        "a.py": b"x = 1\nneedle = 2\n",
        "src/b.py": b"# needle\r\nneedle\r\n",
        "src/c.ts": b"const needle = 3\n",
        "src/deep/d.py": b"nothing\n",
        "src/.gitignore": b"/deep/secret.txt\n",
        "src/deep/secret.txt": b"needle\n",
        "build/out.py": b"needle\n",
        "app.log": b"needle\n",
        "keep.log": b"needle\n",
        ".env": b"needle=1\n",
        "binary.py": b"needle\0\n",
        "latin.py": b"caf\xe9 needle\n",
        "with space/e f.py": b"needle\n",
    }
    for name, data in contents.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


async def call(root: Path, name: str, **arguments: Any) -> Ran:
    request = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    return await run_call(REGISTRY, request, ToolContext(root))


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


GLOBS: dict[str, tuple[str, list[str]]] = {
    "a name is looked for everywhere": (
        "*.py",
        [".hidden/h.py", "a.py", "binary.py", "latin.py", "src/b.py", "src/deep/d.py", "with space/e f.py"],
    ),
    "two stars are any directories, or none": (
        "**/*.py",
        [".hidden/h.py", "a.py", "binary.py", "latin.py", "src/b.py", "src/deep/d.py", "with space/e f.py"],
    ),
    "a directory's own files": ("src/*", ["src/.gitignore", "src/b.py", "src/c.ts"]),
    "all below a directory": ("src/**", ["src/.gitignore", "src/b.py", "src/c.ts", "src/deep/d.py"]),
    "alternatives": ("src/*.{ts,py}", ["src/b.py", "src/c.ts"]),
    "one character": ("src/?.ts", ["src/c.ts"]),
    "a set of characters": ("src/[a-b].*", ["src/b.py"]),
    "all but a set": ("src/[!b].*", ["src/c.ts"]),
    "what git takes in again is found": ("*.log", ["keep.log"]),
    "a dot in front is allowed": ("./a.py", ["a.py"]),
    "nothing": ("*.rs", ["No files match."]),
}


@pytest.mark.parametrize(("pattern", "expected"), GLOBS.values(), ids=GLOBS)
async def test_glob(pattern: str, expected: list[str], engine: str, tree: Path) -> None:
    ran = await call(tree, "glob", pattern=pattern)
    assert (ran.outcome, text_of(ran).split("\n")) == ("done", expected)


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../*", ""])
async def test_a_glob_that_leads_out_is_refused(pattern: str, tree: Path) -> None:
    ran = await call(tree, "glob", pattern=pattern)
    assert text_of(ran) == "The pattern must be relative to the workspace, without '..'; for example **/*.py."


async def test_glob_is_bounded(engine: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_search, "PATHS_MAX", 2)
    assert text_of(await call(tree, "glob", pattern="*.py")) == (
        ".hidden/h.py\na.py\n[more than 2 files; make the pattern narrower]"
    )


GREPS: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "the whole workspace, without binaries, secrets and what git ignores": (
        {"pattern": "needle"},
        [
            ".hidden/h.py:1:needle = 1",
            "a.py:2:needle = 2",
            "keep.log:1:needle",
            "latin.py:1:caf\ufffd needle",
            "src/b.py:1:# needle",
            "src/b.py:2:needle",
            "src/c.ts:1:const needle = 3",
            "with space/e f.py:1:needle",
        ],
    ),
    "a directory": ({"pattern": "^needle", "path": "src"}, ["src/b.py:2:needle"]),
    "a file": ({"pattern": "needle", "path": "a.py"}, ["a.py:2:needle = 2"]),
    "an ignored file that is named": ({"pattern": "needle", "path": "app.log"}, ["app.log:1:needle"]),
    "a regular expression": (
        {"pattern": r"need\w+ = [23]"},
        ["a.py:2:needle = 2", "src/c.ts:1:const needle = 3"],
    ),
    "a pattern that looks like an option": ({"pattern": "--version"}, ["No matches."]),
    "no match": ({"pattern": "haystack"}, ["No matches."]),
}


@pytest.mark.parametrize(("arguments", "expected"), GREPS.values(), ids=GREPS)
async def test_grep(arguments: Mapping[str, str], expected: list[str], engine: str, tree: Path) -> None:
    ran = await call(tree, "grep", **arguments)
    assert (ran.outcome, text_of(ran).split("\n")) == ("done", expected)


NOT_GREPPED: dict[str, tuple[Mapping[str, str], str]] = {
    "a pattern that is none": ({"pattern": "("}, "The search failed: "),
    "an empty pattern": ({"pattern": ""}, "The pattern must be one non-empty line."),
    "two lines": ({"pattern": "a\nb"}, "The pattern must be one non-empty line."),
    "outside": ({"pattern": "root", "path": "/etc"}, "/etc is outside of the workspace"),
    "secrets": ({"pattern": "needle", "path": ".env"}, ".env may hold secrets"),
    "nothing there": ({"pattern": "needle", "path": "lib"}, "lib does not exist."),
}


@pytest.mark.parametrize(("arguments", "message"), NOT_GREPPED.values(), ids=NOT_GREPPED)
async def test_what_cannot_be_searched_is_explained(
    arguments: Mapping[str, str], message: str, engine: str, tree: Path
) -> None:
    ran = await call(tree, "grep", **arguments)
    assert ran.outcome == "failed"
    assert text_of(ran).startswith(message)


async def test_grep_is_bounded_in_matches_and_in_the_length_of_a_line(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin_search, "MATCHES_MAX", 2)
    (tmp_path / "f").write_text("needle " + "x" * 2_000 + "\nneedle\nneedle\nneedle\n")
    assert text_of(await call(tmp_path, "grep", pattern="needle")).split("\n") == [
        "f:1:needle " + "x" * 493 + " [... 1,507 more characters]",
        "f:2:needle",
        "[more than 2 lines match; make the pattern or the path narrower]",
    ]


async def test_a_regular_expression_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin_search, "ripgrep", lambda _environ: None)
    monkeypatch.setattr(builtin_search, "TIMEOUT_S", 0.2)
    (tmp_path / "f").write_text("a" * 64 + "!\n")
    ran = await call(tmp_path, "grep", pattern="(a|aa)+$")
    assert ran.outcome == "failed"
    assert text_of(ran).startswith("The search took longer than 0.2 s.")


IGNORED: dict[str, tuple[str, str, bool, bool | None]] = {
    "a name anywhere": ("*.log", "a/b/x.log", False, True),
    "nothing said": ("*.log", "x.txt", False, None),
    "the last rule that matches decides": ("*.log\n!keep.log", "keep.log", False, False),
    "a slash in front anchors": ("/x", "a/x", False, None),
    "a slash in the middle anchors": ("a/x", "b/a/x", False, None),
    "a slash at the end means directories": ("build/", "build", False, None),
    "and directories they are": ("build/", "build", True, True),
    "two stars in front": ("**/x", "a/b/x", False, True),
    "two stars in the middle": ("a/**/x", "a/x", False, True),
    "two stars at the end": ("a/**", "a/b/c", False, True),
    "a star stops at a slash": ("a/*", "a/b/c", False, None),
    "a comment": ("#x", "#x", False, None),
    "an escaped comment": (r"\#x", "#x", False, True),
    "spaces at the end do not count": ("x  ", "x", False, True),
    "a broken set matches nothing": ("[z-a]", "z", False, None),
    "a set does not match a slash": ("a[!b]c", "a/c", False, None),
}


@pytest.mark.parametrize(("rules", "path", "directory", "expected"), IGNORED.values(), ids=IGNORED)
def test_ignore_rules(rules: str, path: str, directory: bool, expected: bool | None) -> None:
    assert Rules(rules).verdict(path, directory) is expected


@given(st.text(st.sampled_from("ab*?[]!{},/\\-.^"), max_size=12), st.text(st.sampled_from("ab/"), max_size=6))
def test_no_ignore_rule_breaks_the_walk(rule: str, path: str) -> None:
    Rules(rule).verdict(path, True)


def test_rules_above_the_directory_count_up_to_the_repository(tree: Path) -> None:
    (tree / "src" / "x.log").write_text("")
    assert list(files(tree / "src")) == [".gitignore", "b.py", "c.ts", "deep/d.py"]


def test_a_walk_can_be_stopped(tree: Path) -> None:
    assert list(files(tree, stopped=lambda: True)) == []


HARD: dict[str, tuple[str, str, bool]] = {
    "many stars that fit": ("*a*a*a*a*a*b", "a" * 200 + "b", True),
    "many stars that do not fit": ("*a*a*a*a*a*a*a*a*a*a*b", "a" * 250, False),
    "stars between fixed parts": ("x*y*z*.py", "x1y2z3.py", True),
    "the last star takes what is left": ("a*b*c*d", "abcdcd", True),
    "a fixed part that comes again": ("*ab*ab*ab", "ababab", True),
    "and one time too few": ("*ab*ab*ab", "abab", False),
    "directories": ("**/a/**/b/*.c", "x/a/y/z/b/1.c", True),
    "no directories": ("**/a/**/b/*.c", "a/b/1.c", True),
    "a double star inside of a name": ("a**c", "a/b/c", True),
    "double stars on a deep path": ("**/a/**/a/**/a/b", "a/" * 100 + "c", False),
    "a double star at the end needs something": ("a/**", "a/", False),
    "alone it is anything": ("**", "a/b", True),
}


@pytest.mark.parametrize(("pattern", "path", "matches"), HARD.values(), ids=HARD)
def test_patterns_end_on_every_path(pattern: str, path: str, matches: bool) -> None:
    assert (re.fullmatch(translated(pattern), path, re.DOTALL) is not None) is matches


@pytest.mark.parametrize("pattern", ["**/a/**/b/**/c/**/d", "*a*{b,c}*d*"])
async def test_a_pattern_with_too_much_doubt_is_refused(pattern: str, tmp_path: Path) -> None:
    ran = await call(tmp_path, "glob", pattern=pattern)
    assert text_of(ran).startswith("The pattern cannot be read: more than ")


@given(st.text(st.sampled_from("ab*?"), max_size=10), st.text(st.sampled_from("ab"), max_size=10))
def test_patterns_within_a_name_match_what_fnmatch_matches(pattern: str, name: str) -> None:
    if "**" not in pattern:
        assert (re.fullmatch(translated(pattern), name) is not None) is fnmatchcase(name, pattern)


ODD_FILES = {
    "a\nsrc/b.py": b"needle of a file with a line end in its name\n",
    "turns.txt": b"needle\n" + b"x" * 200_000 + b"\n\0\n",
    "with-breaks.txt": "needle\x0cform feed\u2028separator\x85next\r\n".encode(),
    "\x1b[31m.txt": b"needle\n",
}


@pytest.mark.usefixtures("engine")
async def test_a_match_is_told_of_the_file_that_it_is_in_and_whole(tmp_path: Path) -> None:
    for name, data in ODD_FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    ran = await call(tmp_path, "grep", pattern="needle")
    assert sorted(text_of(ran).split("\n")) == [
        "a\u2424src/b.py:1:needle of a file with a line end in its name",
        "turns.txt:1:needle",
        "with-breaks.txt:1:needle\u240cform feed\u2028separator\ufffdnext",
        "\u241b[31m.txt:1:needle",
    ]
    ran = await call(tmp_path, "glob", pattern="**/*.py")
    assert text_of(ran) == "a\u2424src/b.py"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("pattern", ["{" * 2000 + "a" + "}" * 2000], ids=["nested braces"])
async def test_a_pattern_that_python_cannot_take_is_explained(pattern: str, tree: Path) -> None:
    ran = await call(tree, "glob", pattern=pattern)
    assert text_of(ran).startswith("The pattern cannot be read: ")


async def test_a_search_that_gives_no_reason_says_what_to_do(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin_search, "_run", lambda *_: Finished(b"", 0, status=2))
    assert (
        text_of(await call(tree, "grep", pattern="x"))
        == "The search failed: the pattern takes too much; make it simpler"
    )

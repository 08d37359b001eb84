"""read, write, edit and list: what they show, what they refuse, and that they stay in the workspace."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstitch.schema.blocks import Base64Source, Image, Text, ToolCall
from lockstitch.tools import builtin_files, save, workspace
from lockstitch.tools.builtin import builtin_tools
from lockstitch.tools.contract import ToolContext, ToolError
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call

REGISTRY = Registry(builtin_tools())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("def f():\n    return 1\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / ".env").write_text("KEY=1\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    (root / "out").symlink_to(tmp_path)
    (root / "link.py").symlink_to("src/a.py")
    (root / "envlink").symlink_to(".env")
    return root


async def call(root: Path, name: str, **arguments: Any) -> Ran:
    request = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    return await run_call(REGISTRY, request, ToolContext(root))


def names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


def numbered(*rows: tuple[int, str]) -> str:
    return "\n".join(f"{number:>6}\t{text}" for number, text in rows)


READS: dict[str, tuple[bytes, dict[str, int], str]] = {
    "lines are numbered": (b"a\nb\n", {}, numbered((1, "a"), (2, "b"))),
    "the last line may lack its end": (b"a\nb", {}, numbered((1, "a"), (2, "b"))),
    "empty lines count": (b"\n\na", {}, numbered((1, ""), (2, ""), (3, "a"))),
    "an empty file says so": (b"", {}, "(f is empty)"),
    "CRLF is a line end": (b"a\r\nb\r\n", {}, numbered((1, "a"), (2, "b"))),
    "a byte order mark is not shown": (b"\xef\xbb\xbfa\n", {}, numbered((1, "a"))),
    "a part, and where to go on": (
        b"a\nb\nc\nd\n",
        {"offset": 2, "limit": 2},
        numbered((2, "b"), (3, "c")) + "\n[lines 2 to 3 of 4; go on with offset=4]",
    ),
    "the last part says nothing more": (b"a\nb\n", {"offset": 2}, numbered((2, "b"))),
    "offsets below 1 are 1": (b"a\n", {"offset": -5, "limit": 0}, numbered((1, "a"))),
    "escapes are shown, not obeyed": (b"\x1b[31mred\n", {}, numbered((1, "\u241b[31mred"))),
    "bytes that are not UTF-8 are shown and said so": (
        b"caf\xe9\n",
        {},
        numbered((1, "caf\ufffd")) + "\n[some bytes are not UTF-8 and are shown as \ufffd]",
    ),
    "a huge line is cut": (
        b"x" * 5_000 + b"\nb\n",
        {},
        numbered((1, "x" * 4_000 + " [... 1,000 more bytes in this line]"), (2, "b")),
    ),
    "a huge line is not cut inside a character": (
        b"x" + "é".encode() * 2_000 + b"\nb\n",
        {},
        numbered((1, "x" + "é" * 1_999 + " [... 2 more bytes in this line]"), (2, "b")),
    ),
}


@pytest.mark.parametrize(("data", "arguments", "expected"), READS.values(), ids=READS)
async def test_read(data: bytes, arguments: dict[str, int], expected: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    ran = await call(tmp_path, "read", path="f", **arguments)
    assert (ran.outcome, text_of(ran)) == ("done", expected)


async def test_a_long_file_is_read_in_parts_that_end_at_lines(tmp_path: Path) -> None:
    lines = [f"{number} " + "x" * 500 for number in range(1, 301)]
    (tmp_path / "f").write_text("\n".join(lines))
    seen: list[str] = []
    offset: int | None = 1
    while offset:
        *rows, last = text_of(await call(tmp_path, "read", path="f", offset=offset)).split("\n")
        goes_on = last.startswith("[lines ")
        seen += [row.split("\t")[1] for row in (rows if goes_on else [*rows, last])]
        offset = int(last.removesuffix("]").rpartition("=")[2]) if goes_on else None
    assert seen == lines


LONG = b"a\n" * 100_000
PARTS: dict[str, tuple[bytes, int, int, str]] = {
    "a part far behind, in one piece": (
        LONG,
        99_999,
        1,
        numbered((99_999, "a")) + "\n[lines 99,999 to 99,999 of 100,000; go on with offset=100000]",
    ),
    "the last line": (LONG, 100_000, 5, numbered((100_000, "a"))),
    "a last line without an end": (b"a\n" * 40_000 + b"b", 40_001, 5, numbered((40_001, "b"))),
    "a last line without an end behind what is shown": (
        b"a\n\nb",
        1,
        1,
        numbered((1, "a")) + "\n[lines 1 to 1 of 3; go on with offset=2]",
    ),
    "behind a line of many pieces": (b"x" * 300_000 + b"\nb\n", 2, 5, numbered((2, "b"))),
    "beyond the end": (b"a\n" * 70_000, 70_001, 1, "f has 70,000 lines; there is no line 70,001."),
    "far beyond the end": (b"a\nb", 10**30, 1, f"f has 2 lines; there is no line {10**30:,}."),
    "a line of an empty file": (b"", 7, 1, "(f is empty)"),
}


@pytest.mark.parametrize("name", PARTS)
async def test_a_part_of_a_long_file(name: str, tmp_path: Path) -> None:
    data, offset, limit, expected = PARTS[name]
    (tmp_path / "f").write_bytes(data)
    assert text_of(await call(tmp_path, "read", path="f", offset=offset, limit=limit)) == expected


async def test_lines_that_are_not_shown_cost_no_call_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"a\n" * 500_000)
    calls = 0
    line = builtin_files._line

    def counted(*given: Any) -> bytes | None:
        nonlocal calls
        calls += 1
        return line(*given)

    monkeypatch.setattr(builtin_files, "_line", counted)
    await call(tmp_path, "read", path="f", offset=400_000, limit=10)
    assert calls == 10


@pytest.mark.parametrize("data", [b"x" * 5_000_000, b"a\n" * 2_500_000], ids=["one line", "many lines"])
@pytest.mark.parametrize("offset", [1, 2_400_000])
def test_reading_looks_whether_it_is_to_stop(data: bytes, offset: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    context = ToolContext(tmp_path)
    context.stopping.set()
    with pytest.raises(ToolError, match="cancelled"):
        builtin_files._read("f", offset, 1, context=context)


async def test_an_image_is_returned_as_one(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"GIF89a...")
    ran = await call(tmp_path, "read", path="f")
    assert ran.content == (Text("f: image/gif, 9 bytes"), Image("image/gif", Base64Source("R0lGODlhLi4u")))


def fifo(root: Path) -> None:
    os.mkfifo(root / "f")


def unreadable_link(root: Path) -> None:
    (root / "f").symlink_to("f")


def binary(root: Path) -> None:
    (root / "f").write_bytes(b"\x7fELF\0")


def utf16(root: Path) -> None:
    (root / "f").write_bytes("a".encode("utf-16"))


def nothing(_root: Path) -> None: ...


NOT_READ: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "nothing there": (nothing, "src/b.py", "src/b.py does not exist. Did you mean a.py?"),
    "no directory there either": (
        nothing,
        "lib/a.py",
        "lib/a.py does not exist. Neither does its directory lib.",
    ),
    "a file used as a directory": (
        nothing,
        "src/a.py/x",
        "src/a.py/x: a part of the path is a file, not a directory.",
    ),
    "a directory": (nothing, "src", "src is a directory; use list."),
    "the workspace": (nothing, ".", "That is the workspace itself."),
    "a FIFO, without waiting for its writer": (fifo, "f", "f is a FIFO, not a regular file."),
    "a device": (nothing, "/dev/null", "/dev/null is outside of the workspace"),
    "a process": (nothing, "/proc/self/environ", "/proc/self/environ is outside of the workspace"),
    "binary": (binary, "f", "f is a binary file of 5 bytes; it cannot be shown or edited as text."),
    "UTF-16": (utf16, "f", "f is UTF-16 text; convert it with the shell"),
    "a path with dots that leads out": (
        nothing,
        "src/../../outside.txt",
        "src/../../outside.txt is outside of the workspace",
    ),
    "a link that leads out": (nothing, "out/outside.txt", "out/outside.txt is outside of the workspace"),
    "a link to itself": (unreadable_link, "f", "f is a link that leads nowhere"),
    "secrets": (nothing, ".env", ".env may hold secrets and is not read by tools."),
    "secrets through a link": (nothing, "envlink", ".env may hold secrets and is not read by tools."),
    "an empty path": (nothing, "", "The path is empty."),
    "a path with NUL": (nothing, "a\0b", "The path holds a NUL character or is too long."),
    "a long path": (nothing, "x" * 5000, "The path holds a NUL character or is too long."),
    "a long name": (nothing, "x" * 300, "x" * 200 + "...: the name is too long."),
    "a line that is not there": (nothing, "src/a.py", "src/a.py has 2 lines; there is no line 99."),
}


@pytest.mark.parametrize(("prepare", "path", "message"), NOT_READ.values(), ids=NOT_READ)
async def test_what_cannot_be_read_is_explained(
    prepare: Callable[[Path], None], path: str, message: str, work: Path
) -> None:
    prepare(work)
    ran = await call(work, "read", path=path, offset=99)
    assert ran.outcome == "failed"
    assert text_of(ran).startswith(message)


async def test_read_roots_may_be_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "b1").write_text("kept")
    context = ToolContext(tmp_path / "work", read_roots=(tmp_path / "blobs",))
    path = json.dumps({"path": str(tmp_path / "blobs" / "b1")})
    read = await run_call(REGISTRY, ToolCall(id="c", name="read", arguments=path), context)
    assert text_of(read) == numbered((1, "kept"))
    changed = json.dumps({"path": str(tmp_path / "blobs" / "b1"), "content": "x"})
    written = await run_call(REGISTRY, ToolCall(id="c", name="write", arguments=changed), context)
    assert "is outside of the workspace" in text_of(written)


async def test_write_makes_directories_and_tells_the_diff(work: Path) -> None:
    ran = await call(work, "write", path="new/deep/f.txt", content="a\nb")
    assert (ran.outcome, text_of(ran)) == ("done", "Created new/deep/f.txt: 2 lines, 3 bytes.")
    assert ran.meta == {
        "path": "new/deep/f.txt",
        "created": True,
        "diff": "--- a/new/deep/f.txt\n+++ b/new/deep/f.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        "\\ No newline at end of file\n",
        "added": 2,
        "removed": 0,
    }
    assert (work / "new/deep/f.txt").read_bytes() == b"a\nb"


@pytest.mark.parametrize("tool_name", ["write", "edit"])
async def test_a_file_keeps_its_mode_and_leaves_nothing_beside_it(tool_name: str, work: Path) -> None:
    (work / "src/a.py").chmod(0o750)
    arguments = {"content": "x\n"} if tool_name == "write" else {"old": "return 1", "new": "return 2"}
    ran = await call(work, tool_name, path="src/a.py", **arguments)
    assert ran.outcome == "done"
    assert stat.S_IMODE((work / "src/a.py").stat().st_mode) == 0o750
    assert names(work / "src") == ["a.py"]


async def test_edit_shows_what_it_made_and_its_diff(work: Path) -> None:
    ran = await call(work, "edit", path="src/a.py", old="return 1", new="x = 1\n    return x")
    assert text_of(ran) == "Changed src/a.py at line 2. It now reads:\n" + numbered(
        (1, "def f():"), (2, "    x = 1"), (3, "    return x")
    )
    assert ran.meta == {
        "path": "src/a.py",
        "diff": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,3 @@\n"
        " def f():\n-    return 1\n+    x = 1\n+    return x\n",
        "added": 2,
        "removed": 1,
    }


async def test_writing_through_a_link_changes_the_file_and_not_the_link(work: Path) -> None:
    ran = await call(work, "write", path="link.py", content="new\n")
    assert text_of(ran) == "Wrote src/a.py: 1 line, 4 bytes."
    assert (work / "link.py").is_symlink()
    assert (work / "src/a.py").read_text() == "new\n"


NOT_WRITTEN: dict[str, tuple[str, str]] = {
    "outside": ("../outside.txt", "../outside.txt is outside of the workspace"),
    "outside through a link": (
        "out/new.txt",
        "out/new.txt is outside of the workspace",
    ),
    "git's internals": (".git/hooks/pre-commit", ".git/hooks/pre-commit belongs to git"),
    "git's internals in other letters": ("sub/.GIT/config", "sub/.GIT/config belongs to git"),
    "git itself": (".git", ".git belongs to git"),
    "an environment file": (".env", ".env may hold secrets and is not written by tools."),
    "another environment file": ("app/.env.local", "app/.env.local may hold secrets"),
    "a private key": ("id_ed25519", "id_ed25519 may hold secrets"),
    "a certificate's key": ("tls/server.key", "tls/server.key may hold secrets"),
    "a directory of secrets": (".ssh/config", ".ssh/config may hold secrets"),
    "a directory": ("src", "src is a directory"),
    "below a file": ("src/a.py/x", "src/a.py/x: a part of the path is a file, not a directory."),
    "the workspace": (".", "That is the workspace itself."),
}


@pytest.mark.parametrize("tool_name", ["write", "edit"])
@pytest.mark.parametrize(("path", "message"), NOT_WRITTEN.values(), ids=NOT_WRITTEN)
async def test_what_must_not_be_written_is_not(tool_name: str, path: str, message: str, work: Path) -> None:
    before = sorted((str(file), file.read_bytes()) for file in work.parent.rglob("*") if file.is_file())
    arguments = {"content": "x"} if tool_name == "write" else {"old": "core", "new": "x"}
    ran = await call(work, tool_name, path=path, **arguments)
    assert ran.outcome == "failed"
    assert text_of(ran).startswith(message)
    assert (
        sorted((str(file), file.read_bytes()) for file in work.parent.rglob("*") if file.is_file()) == before
    )


@pytest.mark.parametrize("path", [".env.example", "src/keys.py", "environment", ".envoy", "monkey.txt"])
async def test_names_that_only_look_like_secrets_are_written(path: str, work: Path) -> None:
    assert (await call(work, "write", path=path, content="x")).outcome == "done"


@pytest.mark.parametrize("tool_name", ["read", "write", "edit", "list"])
async def test_a_directory_swapped_for_a_link_after_the_check_is_not_followed(
    tool_name: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = work.parent / "secret"
    secret.mkdir()
    (secret / "a.py").write_text("secret return 1\n")
    located = workspace.locate

    def locate_and_swap(*args: Any, **kwargs: Any) -> workspace.Place:
        place = located(*args, **kwargs)
        (work / "src").rename(work / "moved")
        (work / "src").symlink_to(secret)
        return place

    monkeypatch.setattr(builtin_files, "locate", locate_and_swap)
    arguments = {"write": {"content": "x"}, "edit": {"old": "return 1", "new": "x"}}.get(tool_name, {})
    ran = await call(work, tool_name, path="src" if tool_name == "list" else "src/a.py", **arguments)
    assert ran.outcome == "failed"
    assert "secret" not in text_of(ran)
    assert (secret / "a.py").read_text() == "secret return 1\n"
    assert names(secret) == ["a.py"]


@pytest.mark.parametrize("tool_name", ["write", "edit"])
async def test_a_change_by_someone_else_in_between_is_not_overwritten(
    tool_name: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = save.load

    def load_and_change(*args: Any, **kwargs: Any) -> Any:
        result = loaded(*args, **kwargs)
        (work / "src/a.py").write_text("theirs\n")
        return result

    monkeypatch.setattr(builtin_files, "load", load_and_change)
    arguments = {"content": "x"} if tool_name == "write" else {"old": "return 1", "new": "x"}
    ran = await call(work, tool_name, path="src/a.py", **arguments)
    assert text_of(ran).startswith(
        "src/a.py was changed by someone else at the same time; nothing was written."
    )
    assert (work / "src/a.py").read_text() == "theirs\n"
    assert names(work / "src") == ["a.py"]


async def test_list_shows_directories_first_links_and_sizes(work: Path) -> None:
    (work / "new\nline\x1b[31m").write_text("")
    assert text_of(await call(work, "list")) == "\n".join(
        [
            ".git/",
            "src/",
            ".env  6",
            "envlink -> .env",
            "link.py -> src/a.py",
            "new\u2424line\u241b[31m  0",
            f"out -> {work.parent}",
        ]
    )


async def test_list_is_bounded(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_files, "LIST_MAX", 2)
    assert (
        text_of(await call(work, "list", path="."))
        == ".git/\nsrc/\n[4 more entries; use glob to choose among them]"
    )


async def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    assert text_of(await call(tmp_path, "list", path=str(tmp_path))) == "(an empty directory)"

"""Text made safe and cut to size; diffs for display; one exact replacement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.tools.diffs import unified
from lockstitch.tools.replacement import FileText, NotUniqueError, replace_once
from lockstitch.tools.text import clean, middle_cut, visible

CLEAN: dict[str, tuple[str, str]] = {
    "plain text is untouched": ("a\tb\r\nc\n", "a\tb\r\nc\n"),
    "colours go": ("\x1b[1;31mred\x1b[0m", "red"),
    "cursor movement goes": ("a\x1b[2J\x1b[Hb", "ab"),
    "a title ends at BEL": ("\x1b]0;title\x07x", "x"),
    "a link ends at ST": ("\x1b]8;;http://a\x1b\\text\x1b]8;;\x1b\\", "text"),
    "an escape cut short goes": ("a\x1b[31", "a31"),
    "a lone ESC goes": ("a\x1b", "a"),
    "CSI as one character goes": ("\x9b31mred", "red"),
    "other controls become visible": ("\x00\x07\x08\x7f", "\u2400\u2407\u2408\u2421"),
    "C1 controls are replaced": ("a\x85b", "a\ufffdb"),
    "a lone CR ends a line": ("50%\r100%", "50%\n100%"),
    "lone surrogates are replaced": ("\ud83d", "\ufffd"),
}


@pytest.mark.parametrize(("text", "expected"), CLEAN.values(), ids=CLEAN)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_visible_shows_escapes_instead_of_removing_them() -> None:
    assert visible("\x1b[31mred") == "\u241b[31mred"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode()


CUTS: dict[str, tuple[str, int, str]] = {
    "text that fits stays": ("abc", 3, "abc"),
    "two thirds are head": (
        "a" * 6 + "b" * 94,
        9,
        "aaaaaa\n[... 91 characters (0 line ends) left out ...]\nbbb",
    ),
    "nothing but the gap": ("a\nb", 0, "\n[... 3 characters (1 line ends) left out ...]\n"),
}


@pytest.mark.parametrize(("text", "limit", "expected"), CUTS.values(), ids=CUTS)
def test_middle_cut(text: str, limit: int, expected: str) -> None:
    assert middle_cut(text, limit) == expected


def lines(*numbers: int) -> str:
    return "".join(f"{number}\n" for number in numbers)


DIFFS: dict[str, tuple[str, str, dict[str, object]]] = {
    "no change, no diff": ("a\n", "a\n", {"diff": "", "added": 0, "removed": 0}),
    "a new file": (
        "",
        "a\nb",
        {
            "diff": "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n",
            "added": 2,
            "removed": 0,
        },
    ),
    "a change in the middle of a file has its own line numbers": (
        lines(*range(100)),
        lines(*range(50), 777, *range(51, 100)),
        {
            "diff": "--- a/f\n+++ b/f\n@@ -48,7 +48,7 @@\n 47\n 48\n 49\n-50\n+777\n 51\n 52\n 53\n",
            "added": 1,
            "removed": 1,
        },
    ),
    "lines that look like a header are counted": (
        "-- x\n",
        "++ y\n",
        {"diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n--- x\n+++ y\n", "added": 1, "removed": 1},
    ),
    "a change too large to compare is only counted": (
        lines(*range(2_000)),
        lines(*range(5_000, 7_000)),
        {"added": 2_000, "removed": 2_000},
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), DIFFS.values(), ids=DIFFS)
def test_diffs(before: str, after: str, expected: dict[str, object]) -> None:
    assert unified(before, after, "f") == expected


FUNCTIONS = "def one():\n    return 1\n\ndef two():\n    return 1\n"

REPLACED: dict[str, tuple[bytes, str, str, bytes, int]] = {
    "one line": (b"a\nb\nc\n", "b", "B", b"a\nB\nc\n", 2),
    "several lines": (b"a\nb\nc\n", "a\nb", "x", b"x\nc\n", 1),
    "nothing in its place": (b"a\nb\n", "a\n", "", b"b\n", 1),
    "LF means CRLF in a CRLF file": (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n", 1),
    "CRLF may be said in a CRLF file": (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n", 1),
    "a mixed file keeps each line's end": (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n", 2),
    "a byte order mark stays": (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n", 1),
    "bytes that are not UTF-8 stay": (b"\xff\na\n", "a", "b", b"\xff\nb\n", 2),
}


@pytest.mark.parametrize(("data", "old", "new", "expected", "line"), REPLACED.values(), ids=REPLACED)
def test_replacements(data: bytes, old: str, new: str, expected: bytes, line: int) -> None:
    changed, at = replace_once(FileText.decode(data), old, new)
    assert (changed.encode(), at) == (expected, line)


REFUSED: dict[str, tuple[str, str, str]] = {
    "nothing to replace": (
        "a",
        "",
        "the old text is empty. To create a file or replace all of it use write.",
    ),
    "twice": (
        FUNCTIONS,
        "return 1",
        "the old text occurs 2 times, at lines 2, 5. Add lines around it so that it is found only once.",
    ),
    "twice, one over the other": ("aaa", "aa", "the old text occurs 2 times, at lines 1, 1."),
    "with line numbers": (
        FUNCTIONS,
        "     1\tdef one():\n     2\t    return 1",
        "the old text carries the line numbers that read puts in front. Leave number and tab out.",
    ),
    "spaces at the line end": (
        "a  \nb\n",
        "a\nb",
        "the old text differs from the file at line 1 only in spaces at line ends. "
        "There the file reads:\na  \nb",
    ),
    "indentation": (
        FUNCTIONS,
        "def two():\n\treturn 1",
        "the old text differs from the file at line 4 only in indentation. "
        "There the file reads:\ndef two():\n    return 1",
    ),
    "typographic quotes": (
        "x = 'a'\n",
        "x = ‘a’",
        "the old text differs from the file at line 1 only in spaces, quotes or dashes. "
        "There the file reads:\nx = 'a'",
    ),
    "line ends of a mixed file": (
        "a\r\nb\nc\n",
        "a\nb",
        "the old text is there, but its line ends differ: the file mixes LF and CRLF. Use text",
    ),
    "something similar": (
        FUNCTIONS,
        "def twice():\n    return 2",
        "the old text is not there. The nearest is at line 4. "
        "There the file reads:\ndef two():\n    return 1",
    ),
    "nothing similar": (
        FUNCTIONS,
        "import os",
        "the old text is not there, nor anything like it. Read the file again.",
    ),
}


@pytest.mark.parametrize(("text", "old", "message"), REFUSED.values(), ids=REFUSED)
def test_a_text_that_is_not_there_once_is_explained(text: str, old: str, message: str) -> None:
    with pytest.raises(NotUniqueError) as caught:
        replace_once(FileText.decode(text.encode()), old, "new")
    assert str(caught.value).startswith(message)


def test_the_same_text_is_no_change() -> None:
    with pytest.raises(NotUniqueError, match="old and new text are the same"):
        replace_once(FileText("a"), "a", "a")


@given(st.binary())
def test_any_bytes_survive_being_read_as_text(data: bytes) -> None:
    assert FileText.decode(data).encode() == data

"""What a conversation shows of calls, results, questions and failures, and what reaches no terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.agent import events
from lockstitch.cli import chat_why
from lockstitch.cli.chat_items import (
    LINE_MAX,
    CallLine,
    NoteLine,
    ResultLines,
    call_line,
    choices,
    question_lines,
    result_lines,
    safe,
)
from lockstitch.cli.chat_paint import Painter, stable_part
from lockstitch.cli.chat_plain import LINE_MAX as INPUT_MAX
from lockstitch.cli.chat_plain import lines_of, plain
from lockstitch.cli.chat_talk import _answer_in
from lockstitch.schema.failures import failure

CALLS = {
    "a command is shown as it is typed": ("shell", '{"command": "git status"}', "$ git status"),
    "an escape in a command is made visible": ("shell", '{"command": "a\\u001b[2Kb"}', "$ a␛[2Kb"),
    "a direction mark in a command is no mark": ("shell", '{"command": "a\\u202eb"}', "$ a�b"),
    "a file's path": ("edit", '{"path": "a.py", "old": "x", "new": "y"}', "a.py"),
    "a pattern and where it is searched": ("grep", '{"path": "src", "pattern": "def"}', "def in src"),
    "an unknown tool's arguments": ("launch", '{"name": "Apollo"}', 'name="Apollo"'),
    "no arguments": ("now", "{}", ""),
    "arguments that are cut": ("write", '{"path": "a', '{"path": "a'),
}


@pytest.mark.parametrize(("name", "arguments", "summary"), CALLS.values(), ids=CALLS)
def test_a_call(name: str, arguments: str, summary: str) -> None:
    assert call_line(name, arguments) == CallLine(name, summary)


def finished(name: str, outcome: str, text: str, **more: object) -> events.ToolFinished:
    return events.ToolFinished(call_id="c", name=name, outcome=outcome, text=text, **more)  # type: ignore[arg-type]  # a table's strings


RESULTS = {
    "a change is shown as a diff": (
        finished(
            "edit",
            "done",
            "ok",
            meta={"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", "added": 1, "removed": 1},
        ),
        ResultLines("edit", "done", "+1 -1", ("@@ -1 +1 @@", "-x", "+y"), diff=True),
    ),
    "what was read is counted, not shown": (
        finished("read", "done", "a\nb\n"),
        ResultLines("read", "done", "2 lines"),
    ),
    "of a command's output the end is shown": (
        finished("shell", "done", "\n".join("abcdef"), duration_ms=1500),
        ResultLines("shell", "done", "1.5 s", ("… 2 lines before", "c", "d", "e", "f")),
    ),
    "of a failure the beginning": (
        finished("read", "failed", "no such file\nmore"),
        ResultLines("read", "failed", "", ("no such file", "more")),
    ),
}


@pytest.mark.parametrize(("event", "item"), RESULTS.values(), ids=RESULTS)
def test_a_result(event: events.ToolFinished, item: ResultLines) -> None:
    assert result_lines(event) == item


def asked(name: str, arguments: str, rule: str = "") -> events.ApprovalNeeded:
    return events.ApprovalNeeded(call_id="c", name=name, arguments=arguments, rule=rule)


QUESTIONS = {
    "a command, with every line": (asked("shell", '{"command": "a\\nb"}'), ["$ a", "$ b"]),
    "a change, old and new": (
        asked("edit", '{"path": "f", "old": "x\\n", "new": "y\\n"}'),
        ["edit f", "- x", "+ y"],
    ),
    "a new file, with its content": (asked("write", '{"path": "f", "content": "x\\n"}'), ["write f", "+ x"]),
    "anything else, as it came": (asked("launch", '{"name":"\\u0007"}'), ['launch {"name":"\\u0007"}']),
}


@pytest.mark.parametrize(("question", "lines"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_question(question: events.ApprovalNeeded, lines: list[str]) -> None:
    assert question_lines(question) == lines


def test_a_long_question_says_how_much_is_missing() -> None:
    lines = question_lines(asked("write", '{"path": "f", "content": "' + "x\\n" * 100 + '"}'))
    assert (len(lines), lines[-1]) == (30, "… 72 more lines")


def test_only_what_can_be_remembered_is_offered() -> None:
    assert choices(asked("shell", "{}")) == "y: once · n [why]: no"
    assert "s: shell(git *) in this session" in choices(asked("shell", "{}", rule="shell(git *)"))


ANSWERS = {
    "y": (True, "no", ""),
    " Yes ": (True, "no", ""),
    "s": (True, "session", ""),
    "a": (True, "always", ""),
    "n": (False, "no", ""),
    "no, use the other file": (False, "no", "use the other file"),
    "yes but later": None,
    "ya": None,
    "now do it": None,
    "": None,
}


@pytest.mark.parametrize(("line", "meant"), ANSWERS.items(), ids=[repr(line) for line in ANSWERS])
def test_only_a_whole_line_answers(line: str, meant: tuple[bool, str, str] | None) -> None:
    found = _answer_in(line)
    assert (found and (found.allowed, found.remember, found.reason)) == meant


@given(st.text())
def test_nothing_that_is_safe_steers_a_terminal(text: str) -> None:
    shown = safe(text)
    assert not any(ord(c) < 32 and c not in "\t\n\r" for c in shown)
    assert not any(0x7F <= ord(c) < 0xA0 or "\u202a" <= c <= "\u202e" for c in shown)
    assert max(map(len, shown.split("\n"))) <= LINE_MAX + 2


@pytest.mark.parametrize("colour", [True, False], ids=["in colour", "without"])
@given(text=st.text(max_size=200))
def test_any_markdown_can_be_painted(colour: bool, text: str) -> None:
    painted = Painter(colour=colour).markdown(text, 40)
    assert colour or not any(f"\x1b[3{n}m" in painted for n in range(8))
    assert "\x1b]" not in painted, "no link hides its address"


STABLE = {
    "a paragraph is stable behind its blank line": ("One.\n\nTwo", "One.\n\n"),
    "a growing paragraph is not": ("One.\nTwo", ""),
    "a code block with blank lines is not, until it ends": ("A.\n\n```\nx\n\ny\n", "A.\n\n"),
    "a closed code block is": ("```\nx\n\ny\n```\n\nNext", "```\nx\n\ny\n```\n\n"),
    "another fence does not close it": ("~~~\n```\n\n", ""),
}


@pytest.mark.parametrize(("text", "stable"), STABLE.values(), ids=STABLE)
def test_what_is_printed_of_a_growing_answer(text: str, stable: str) -> None:
    assert text[: stable_part(text)] == stable


@given(st.lists(st.sampled_from(["a\n", "\n", "```\n", "~~~\n", "- x\n"])), st.text("ab`~\n", max_size=9))
def test_what_was_stable_stays_so(lines: list[str], more: str) -> None:
    text = "".join(lines)
    assert stable_part(text + more) >= stable_part(text)


def test_plain_lines_hold_everything() -> None:
    item = ResultLines("shell", "failed", "2.0 s", ("x",), more=3)
    assert list(plain(item)) == ["  shell: failed, 2.0 s", "  | x", "  | … 3 more lines"]
    assert list(plain(NoteLine("told", "warn"))) == ["-- told"]


def test_why_tells_the_last_reason_and_those_before() -> None:
    reasons = chat_why.Reasons()
    assert reasons.text() == ["nothing was repaired, retried, refused or set aside so far"]
    reasons.add("first", ["a"])
    told = failure(
        "RATE_LIMIT", "slow down", status=429, provider_message="too \x1b[31mfast", request_id="r1"
    )
    reasons.add("second", chat_why.of_failure(told))
    assert reasons.text() == [
        "second",
        "  slow down",
        "  code: RATE_LIMIT",
        "  HTTP status: 429",
        "  the provider said: too fast",
        "  request id: r1",
        "  (/why 2 to /why 2: what came before)",
    ]
    assert reasons.text(2) == ["first", "  a"]
    assert reasons.text(3) == ["there are only 2 to tell of"]


TYPED: dict[str, tuple[list[bytes], list[str]]] = {
    "nothing": ([], []),
    "lines in one read": ([b"a\nb\n"], ["a", "b"]),
    "a line in pieces": ([b"a", b"b\nc\n"], ["ab", "c"]),
    "a character in pieces": ([b"\xe6\xbc", b"\xa2\n"], ["\u6f22"]),
    "the last line without its end": ([b"a\nb"], ["a", "b"]),
    "ends of another system": ([b"a\r\n", b"b\r\n"], ["a", "b"]),
    "an empty line": ([b"\n"], [""]),
    "bytes that are no text": ([b"\xff\n"], ["\ufffd"]),
    "a line without end, in bounded pieces": ([b"x" * INPUT_MAX, b"y\n"], ["x" * INPUT_MAX, "y"]),
}


@pytest.mark.parametrize(("reads", "lines"), TYPED.values(), ids=TYPED)
def test_lines_of_input(reads: list[bytes], lines: list[str]) -> None:
    coming = iter([*reads, b""])
    assert list(lines_of(lambda: next(coming))) == lines

"""The ``sessions`` commands: what they print and exit with, and that they do it to the right session."""

import asyncio
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lockstitch.cli import main
from lockstitch.cli.story import _TELLERS, Story
from lockstitch.cli.story_html import html_of
from lockstitch.cli.story_markdown import markdown_of
from lockstitch.cli.story_text import text_of
from lockstitch.schema.blocks import Reasoning, Text, ToolCall
from lockstitch.schema.events import (
    KINDS,
    AssistantMessage,
    Body,
    Event,
    SessionStart,
    ToolFinished,
    TurnEnd,
    Unknown,
    UserMessage,
)
from lockstitch.session.file_store import FileStore
from lockstitch.testing.session_samples import a_tool_turn, every_kind

HOSTILE = "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>\0\u202e```\n| `*_[x](y)"


class Commands:
    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = home / "sessions"
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended = main.run(["sessions", *arguments])
        out, self.err = self._capsys.readouterr()
        assert ended == code, (ended, out, self.err)
        return out

    def json(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self(*arguments, "--json", code=code).splitlines()]
        assert all(line["v"] == 1 for line in lines)
        return lines

    def make(self, session_id: str, bodies: list[Body], cwd: str = "/work") -> Path:
        async def write() -> None:
            store = FileStore(self.root)
            log = await store.open(session_id, cwd=cwd)
            for body in bodies:
                log.append(body)
            await log.close()
            await store.close()

        asyncio.run(write())
        return self.root / session_id / "log.jsonl"


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    monkeypatch.setenv("LOCKSTITCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LOCKSTITCH_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path / "home", capsys)


def test_without_sessions_a_listing_is_empty_and_says_what_to_do(sessions: Commands) -> None:
    assert sessions("list") == ""
    assert "lockstitch run" in sessions.err
    assert sessions("list", "--json") == ""
    assert not sessions.root.exists()


def test_a_listing_shows_title_folder_tokens_and_damage(sessions: Commands) -> None:
    sessions.make("good", every_kind())
    bad = sessions.make("bad", a_tool_turn(1))
    bad.write_bytes(bad.read_bytes().replace(b"turn_start", b"turn_stars"))
    listed = {line["id"]: line for line in sessions.json("list")}
    assert (listed["good"]["title"], listed["good"]["cwd"], listed["good"]["turns"]) == ("sizes", "/work", 2)
    assert listed["good"]["usage"]["input_tokens"] == 200
    assert listed["bad"]["problem"] == "1 damaged places in its log"
    assert "[damaged: 1 damaged places in its log]" in sessions("list")
    assert len(sessions.json("list", "--limit", "1")) == 1


def test_a_listing_is_narrowed_by_folder_and_time(sessions: Commands) -> None:
    sessions.make("a", a_tool_turn(1), cwd="/work/a")
    sessions.make("ab", a_tool_turn(1), cwd="/work/ab")
    assert [line["id"] for line in sessions.json("list", "--cwd", "/work/a")] == ["a"]
    assert len(sessions.json("list", "--cwd", "/work")) == 2
    assert len(sessions.json("list", "--since", "1h")) == 2
    assert sessions.json("list", "--since", "2999-01-01") == []
    sessions("list", "--since", "soon", code=2)
    assert "2026-11-30" in sessions.err


CHECKED: dict[str, tuple[Callable[[bytes], bytes], dict[str, int], int]] = {
    "a sound one": (lambda log: log, {"records": 13, "set_aside": 0, "torn_bytes": 0, "defects": 0}, 0),
    "a torn one": (lambda log: log[:-5], {"records": 12, "set_aside": 0, "torn_bytes": 104, "defects": 0}, 1),
    "a damaged one": (
        lambda log: log.replace(b"assistant_delta", b"assistant_delts"),
        {"records": 12, "set_aside": 1, "torn_bytes": 0, "defects": 0},
        1,
    ),
    "one with an event out of place": (
        lambda log: b"".join(line for line in log.splitlines(keepends=True) if b"attempt_start" not in line),
        {"records": 12, "set_aside": 0, "torn_bytes": 0, "missing": 1, "defects": 1},
        1,
    ),
}


@pytest.mark.parametrize(("change", "expected", "code"), CHECKED.values(), ids=CHECKED)
def test_a_check_counts_and_changes_nothing(
    change: Callable[[bytes], bytes], expected: dict[str, int], code: int, sessions: Commands
) -> None:
    path = sessions.make("s", a_tool_turn(1))
    damaged = change(path.read_bytes())
    path.write_bytes(damaged)
    (report,) = sessions.json("check", "s", code=code)
    assert {name: report[name] for name in expected} == expected
    assert report["sound"] == (code == 0)
    text = sessions("check", code=code)
    assert ("damaged" in text) == (code == 1)
    assert path.read_bytes() == damaged
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["lock", "log.jsonl"]


def test_one_unreadable_session_does_not_keep_the_others_from_being_checked(sessions: Commands) -> None:
    sessions.make("good", a_tool_turn(1))
    bad = sessions.make("bad", a_tool_turn(1))
    bad.unlink()
    bad.mkdir()
    reports = {line["id"]: line for line in sessions.json("check", code=1)}
    assert reports["good"]["sound"] and not reports["bad"]["sound"]
    assert "Is a directory" in reports["bad"]["error"], reports


def test_an_unknown_session_is_one_clear_line(sessions: Commands) -> None:
    for arguments in (
        ["show", "x"],
        ["check", "x"],
        ["fork", "x"],
        ["export", "x"],
        ["rm", "x"],
        ["repair", "x"],
        ["show", ""],
        ["import", "none.zip"],
    ):
        assert sessions(*arguments, code=2) == ""
        assert len(sessions.err.splitlines()) == 1
    assert list(Path.cwd().glob("*.zip")) == []


def test_show_prints_turns_calls_results_and_repairs(sessions: Commands) -> None:
    path = sessions.make("s", every_kind())
    text = sessions("show", "s")
    for part in (
        "session s: sizes",
        "== turn 1,",
        "> wie groß ist a?",
        '* read {"path":"a"}',
        "failed",
        "| no such file",
        "! failure: OVERLOADED: busy",
        "! repair: the request was repaired (strict): orphan_result_dropped",
        "== failed: QUOTA: pay first; 100 tokens in, 5 out",
    ):
        assert part in text
    path.write_bytes(path.read_bytes()[:-3])
    sessions("show", "s")
    assert "damaged" in sessions.err
    events = sessions.json("show", "s")
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[1] == {
        "v": 1,
        "seq": 1,
        "time_ms": events[1]["time_ms"],
        "kind": "turn_start",
        "data": {"turn": 1},
    }


def test_long_results_are_shortened_unless_asked(sessions: Commands) -> None:
    turn = a_tool_turn(1)
    turn[8] = ToolFinished(6, 1, "a", (Text("\n".join(f"line {n}" for n in range(100))),), "done")
    sessions.make("s", turn)
    assert "line 99" not in sessions("show", "s") and "88 more lines" in sessions("show", "s")
    assert "line 99" in sessions("show", "s", "--full")


def a_story(*bodies: Body) -> Story:
    story = Story()
    for seq, body in enumerate(bodies):
        story.add(Event(seq, 1_800_000_000_000 + seq, body))
    return story


class Page(HTMLParser):
    """Fails on what is not closed, and collects what a browser would do."""

    VOID = frozenset({"meta", "br", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_escapes_everything() -> None:
    call = ToolCall("a", HOSTILE, HOSTILE, invalid=HOSTILE)
    story = a_story(
        SessionStart(1, HOSTILE, HOSTILE, HOSTILE),
        *a_tool_turn(1)[:4],
        AssistantMessage("m", (Text(HOSTILE), Reasoning(HOSTILE), call), "length", HOSTILE, HOSTILE),
        ToolFinished(
            5, 0, "a", (Text(HOSTILE),), "invalid", is_error=True, meta={"diff": f"+{HOSTILE}\n-{HOSTILE}"}
        ),
        UserMessage("u", (Text(HOSTILE),), HOSTILE),
        TurnEnd(1, "failed", detail=HOSTILE),
        Unknown(HOSTILE, b"{}"),
    )
    page = "\n".join(html_of(story))
    parsed = Page(page)
    assert set(parsed.tags).isdisjoint({"script", "img", "link", "iframe", "object"})
    assert not any(name.startswith("on") or name == "src" for name, _ in parsed.attributes)
    assert all(value.startswith("#") for name, value in parsed.attributes if name == "href" and value)
    assert "\x1b" not in page and "\0" not in page
    assert parsed.text.count("<script>alert(1)</script>") >= 10
    assert "default-src 'none'" in page


def test_every_form_tells_all_that_was_said() -> None:
    bodies: list[Body] = [SessionStart(1, "s", "/work"), *every_kind()]
    said = [
        "wie groß ist a?",
        "Ich sehe nach",
        "no such file",
        "and b?",
        "earlier: sizes",
        "orphan_result_dropped",
    ]
    for form in (text_of, markdown_of, html_of):
        text = re.sub(r"\\(.)", r"\1", "\n".join(form(a_story(*bodies))))
        assert [part for part in said if part not in text] == [], form.__name__


def test_a_fence_is_longer_than_any_in_its_text() -> None:
    turn = a_tool_turn(0)
    turn[8] = ToolFinished(5, 1, "a", (Text("````\ncode\n````"),), "done")
    lines = list(markdown_of(a_story(*turn)))
    assert lines.count("`````") == 2


def test_code_in_fences_is_set_apart_on_the_page() -> None:
    story = a_story(UserMessage("u", (Text("see `x<y`:\n```py\na < b\n```\nend"),)))
    page = "".join(html_of(story))
    assert "<code>x&lt;y</code>" in page and "<pre>a &lt; b</pre>" in page


def test_only_kinds_that_frame_others_tell_nothing() -> None:
    silent = {"step_start", "step_end", "assistant_delta", "output_count", "retry_started"}
    silent |= {"compaction_start", "compaction_call"}
    assert {kind for kind, body in KINDS.items() if body not in _TELLERS} == silent


def test_a_result_that_names_no_call_is_told_too() -> None:
    story = a_story(ToolFinished(5, 0, "lost", (Text("orphan"),), "done"))
    assert any("orphan" in line for line in text_of(story))


def test_search_prints_where_words_were_said(sessions: Commands) -> None:
    sessions.make("s", a_tool_turn(1))
    (hit,) = sessions.json("search", "groß")
    assert (hit["id"], hit["seq"], hit["kind"]) == ("s", 2, "user")
    assert sessions("search", "groß").splitlines()[1] == "    user: wie groß ist a?"
    assert sessions("search", "nowhere", code=1) == ""
    assert sessions.json("search", "groß", "--cwd", "/elsewhere", code=1) == []


def test_fork_export_import_rm_and_repair_work_together(sessions: Commands) -> None:
    path = sessions.make("s", a_tool_turn(1))
    (forked,) = sessions.json("fork", "s", "f", "--turn", "1")
    assert (forked["id"], forked["parent"], forked["turn"], forked["records"]) == ("f", "s", 1, 13)
    assert "records of s, up to turn 1" in sessions("fork", "s")
    (exported,) = sessions.json("export", "s")
    assert exported["file"] == "s.lockstitch.zip" and Path("s.lockstitch.zip").is_file()
    sessions("import", "s.lockstitch.zip", code=2)
    sessions("import", "s.lockstitch.zip", "--as", "copy")
    path.write_bytes(path.read_bytes().replace(b"assistant_delta", b"assistant_delts"))
    (repaired,) = sessions.json("repair", "s")
    assert repaired["lost"] == 1 and repaired["after"]["set_aside"] == 0
    assert "was sound" in sessions("repair", "s")
    sessions("rm", "s", "f")
    assert {line["id"] for line in sessions.json("list")} >= {"copy"}
    assert "s" not in {line["id"] for line in sessions.json("list")}
    sessions("rm", "--restore", "s")
    assert "s" in {line["id"] for line in sessions.json("list")}
    assert sessions.json("rm", "--purge") == [{"v": 1, "purged": 1}]
    sessions("rm", code=2)
    sessions("rm", "--purge", "--restore", "s", code=2)


def test_another_store_is_chosen_by_the_option(sessions: Commands, tmp_path: Path) -> None:
    sessions.make("s", a_tool_turn(1))
    sessions("export", "s", "s.zip")
    store = f"sqlite:{tmp_path / 'x.db'}"
    sessions("import", "s.zip", "--store", store)
    assert [line["id"] for line in sessions.json("list", "--store", store)] == ["s"]
    assert sessions("show", "s", "--store", store) == sessions("show", "s")
    sessions("list", "--store", "nonsense", code=2)

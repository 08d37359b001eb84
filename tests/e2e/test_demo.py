"""``lockstitch demo``: it plays, it is readable, and it would notice if anything differed."""

import os
import pty
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cli_process import Cli

from lockstitch.cli import demo_story as story
from lockstitch.cli.demo import _play
from lockstitch.cli.demo_checks import Evidence, checks
from lockstitch.cli.demo_print import Narrator
from lockstitch.schema.blocks import ToolCall
from lockstitch.schema.events import AssistantMessage, AttemptFailed, Event, ToolFinished


def test_it_plays_to_the_end_and_fits_a_pipe(tmp_path: Path) -> None:
    done = Cli(tmp_path)("demo")
    assert (done.code, done.err) == (0, ""), done.out
    assert "All as it must be." in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert "\x1b" not in done.out
    assert "differs" not in done.out
    assert story.KEY not in done.out


COLOURS = {"a terminal gets colour": ({}, True), "NO_COLOR is heeded": ({"NO_COLOR": "1"}, False)}


@pytest.mark.parametrize(("extra", "coloured"), COLOURS.values(), ids=COLOURS.keys())
def test_colour(
    extra: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in extra.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        Narrator().line("ok", "it holds \x1b[31mand no tool paints\x1b[0m")
        terminal.flush()
        said = os.read(ours, 4096).decode()
    os.close(ours)
    assert ("\x1b[32m" in said) is coloured
    assert "\x1b[31m" not in said
    assert re.sub(r"\x1b\[[0-9]*m", "", said) == "  ok          it holds and no tool paints\r\n"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    """What one play left behind."""
    with tempfile.TemporaryDirectory() as folder:
        yield _play(Path(folder) / "stage", Narrator())


def test_everything_holds(evidence: Evidence) -> None:
    assert [check for check in checks(evidence) if not check.holds] == []


def bodies_changed(change: Callable[[object], object | None]) -> Callable[[Evidence], Evidence]:
    """The evidence with the first body changed that ``change`` has another for."""

    def apply(seen: Evidence) -> Evidence:
        events: list[Event] = []
        done = False
        for event in seen.events:
            body = None if done else change(event.body)
            done = done or body is not None
            events.append(event if body is None else msgspec.structs.replace(event, body=body))
        assert done, "nothing to change was found"
        return replace(seen, events=events)

    return apply


def blank_name(body: object) -> object | None:
    if not isinstance(body, AssistantMessage):
        return None
    calls = [block for block in body.content if isinstance(block, ToolCall)]
    if not calls:
        return None
    blank = msgspec.structs.replace(calls[0], name="")
    content = tuple(blank if block is calls[0] else block for block in body.content)
    return msgspec.structs.replace(body, content=content)


def unbilled(body: object) -> object | None:
    return msgspec.structs.replace(body, usage=None) if isinstance(body, AttemptFailed) else None


def done_after_all(body: object) -> object | None:
    if isinstance(body, ToolFinished) and body.outcome == "unknown":
        return msgspec.structs.replace(body, outcome="done")
    return None


def doubled_request(seen: Evidence) -> Evidence:
    return replace(seen, journal=[*seen.journal, seen.journal[-1]])


def blank_id_sent(seen: Evidence) -> Evidence:
    journal = msgspec.json.decode(msgspec.json.encode(seen.journal))
    messages = journal[-1]["body"]["messages"]
    next(m for m in messages if m.get("tool_calls"))["tool_calls"][0]["id"] = ""
    return replace(seen, journal=journal)


NOTICED: dict[str, tuple[Callable[[Evidence], Evidence], str]] = {
    "a call without a name in the log": (bodies_changed(blank_name), "without id or name"),
    "a refused attempt that is not billed": (bodies_changed(unbilled), "refused attempt's tokens"),
    "an unknown outcome told as done": (bodies_changed(done_after_all), "one answer, and it is true"),
    "one request more": (doubled_request, "refused no request"),
    "a call sent back without its id": (blank_id_sent, "kept its identity"),
    "a tool that outlives its agent": (lambda seen: replace(seen, tool_gone=False), "did not outlive"),
    "a test that still fails": (lambda seen: replace(seen, test_passes_after=False), "passes now"),
    "a test that never failed": (lambda seen: replace(seen, test_failed_before=False), "failed before"),
    "another exit code": (lambda seen: replace(seen, exit_code=1), "exit code 0"),
    "a key in the output": (lambda seen: replace(seen, output=story.KEY), "key is in no log"),
    "damage in the log": (
        lambda seen: replace(seen, report=msgspec.structs.replace(seen.report, torn_bytes=3)),
        "every byte of the log",
    ),
}


@pytest.mark.parametrize(("spoil", "sentence"), NOTICED.values(), ids=NOTICED.keys())
def test_it_notices(spoil: Callable[[Evidence], Evidence], sentence: str, evidence: Evidence) -> None:
    differing = [check.sentence for check in checks(spoil(evidence)) if not check.holds]
    assert any(sentence in said for said in differing), differing


def test_a_broken_history_goes_on(tmp_path: Path) -> None:
    done = Cli(tmp_path)("demo", "--broken-history")
    assert (done.code, done.err) == (0, ""), done.out
    assert "13 defects" in done.out
    assert "All as it must be." in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []

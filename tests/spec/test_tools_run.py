"""run_call: whatever a tool does, its call gets an answer that a log and a request can take."""

import asyncio
import base64
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.schema.blocks import Base64Source, Image, Text, ToolCall
from lockstitch.schema.events import ToolFinished
from lockstitch.schema.messages import ToolSpec
from lockstitch.tools import run
from lockstitch.tools.contract import Tool, ToolContext, ToolError, ToolOutput
from lockstitch.tools.functions import tool
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text either")


@dataclass
class Found:
    path: str
    lines: list[int]


def returning(value: Any) -> Tool:
    def probe() -> Any:
        return value

    return tool(probe)


def raising(error: BaseException) -> Tool:
    def probe() -> Any:
        raise error

    return tool(probe)


def raising_async(error: BaseException) -> Tool:
    async def probe() -> Any:
        raise error

    return tool(probe)


async def run_probe(probe: Tool, arguments: str = "", **context: Any) -> Ran:
    call = ToolCall(id="c1", name=probe.name, arguments=arguments)
    return await run_call(Registry([probe]), call, ToolContext(Path.cwd(), **context))


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


RETURNED: dict[str, tuple[Any, tuple[Text | Image, ...]]] = {
    "text as it is": ("hello", (Text("hello"),)),
    "nothing gets a placeholder": (None, (Text("(no output)"),)),
    "blank text gets a placeholder": (" \n", (Text("(no output)"),)),
    "an empty list is JSON": ([], (Text("[]"),)),
    "numbers, lists and objects as JSON": ({"a": [1, 2.5, None]}, (Text('{"a":[1,2.5,null]}'),)),
    "a dataclass as JSON": (Found("a.py", [1]), (Text('{"path":"a.py","lines":[1]}'),)),
    "a path as JSON text": ([Path("a/b")], (Text('["a/b"]'),)),
    "bytes that are UTF-8": (b"caf\xc3\xa9", (Text("café"),)),
    "bytes that are not": (b"\xff\xfe", (Text("\ufffd\ufffd"),)),
    "an image": (Image("image/png", Base64Source(PIXEL)), (Image("image/png", Base64Source(PIXEL)),)),
    "text and image": (
        [Text("see"), Image("image/png", Base64Source(PIXEL))],
        (Text("see"), Image("image/png", Base64Source(PIXEL))),
    ),
    "an image that is none is left out and said so": (
        Image("image/png", Base64Source("not base64!")),
        (Text("(an image was left out: its data is not base64)"),),
    ),
    "an output with nothing in it gets a placeholder": (ToolOutput(()), (Text("(no output)"),)),
    "NUL and escapes": ("a\0b\x1b[31mred\x1b[0m\x1b]0;title\x07\rend", (Text("a\u2400bred\nend"),)),
    "a lone surrogate": ("a\ud800b", (Text("a\ufffdb"),)),
    "a lone surrogate inside JSON": ({"k": ["\udc00"]}, (Text('{"k":["\ufffd"]}'),)),
    "a value that only has a text": (
        {"at": type("Odd", (), {"__str__": lambda _: "odd"})()},
        (Text('{"at":"odd"}'),),
    ),
}


@pytest.mark.parametrize(("value", "content"), RETURNED.values(), ids=RETURNED)
async def test_what_a_tool_returns_is_shown(value: Any, content: tuple[Text | Image, ...]) -> None:
    ran = await run_probe(returning(value))
    assert (ran.outcome, ran.content, ran.is_error, ran.meta) == ("done", content, False, None)


async def test_a_pydantic_model_is_shown_as_json() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", at=(Path, ...))
    assert text_of(await run_probe(returning(model(at="a/b")))) == '{"at":"a/b"}'


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


FAILED: dict[str, tuple[Tool, str]] = {
    "an error of its own is told as it is": (
        raising(ToolError("no such table; try list")),
        "no such table; try list",
    ),
    "an exception is told with its class": (raising(ValueError("bad")), "probe failed: ValueError: bad"),
    "an exception without text": (raising(KeyError()), "probe failed: KeyError"),
    "an exception whose text cannot be had": (raising(BrokenError()), "probe failed: BrokenError"),
    "leaving the program": (raising(SystemExit(3)), "probe failed: SystemExit: 3"),
    "leaving the program, async": (raising_async(SystemExit(3)), "probe failed: SystemExit: 3"),
    "an interrupt of its own making": (
        raising(KeyboardInterrupt()),
        "probe failed: RuntimeError: KeyboardInterrupt in a worker thread",
    ),
    "the end of an iterator": (
        raising(StopIteration()),
        "probe failed: RuntimeError: coroutine raised StopIteration",
    ),
    "a cancellation of its own making": (
        raising_async(asyncio.CancelledError()),
        "probe cancelled itself and gave no result.",
    ),
    "a value too deep for JSON": (
        returning(nested(100_000)),
        "probe failed: TypeError: the returned value is nested too deeply for JSON",
    ),
    "an output that says so": (returning(ToolOutput((Text("no"),), is_error=True)), "no"),
    "a tool from elsewhere that gives no output": (
        Tool(ToolSpec("probe", "", {"type": "object"}), invoke=lambda _a, _c: asyncio.sleep(0, "text")),  # type: ignore[arg-type]
        "probe failed: TypeError: invoke gave no ToolOutput but str",
    ),
}


@pytest.mark.parametrize(("probe", "text"), FAILED.values(), ids=FAILED)
async def test_a_tool_that_fails_is_answered(probe: Tool, text: str) -> None:
    ran = await run_probe(probe)
    assert (ran.outcome, ran.content, ran.is_error) == ("failed", (Text(text),), True)


async def test_where_it_failed_is_kept_for_display_only() -> None:
    ran = await run_probe(raising(ValueError("bad")))
    assert ran.meta is not None
    assert "in probe\n    raise error\nValueError: bad" in ran.meta["traceback"]


@tool
async def add(a: int, b: int) -> int:
    return a + b


CALLS: dict[str, tuple[ToolCall, str, str]] = {
    "a call that fits is run": (ToolCall(id="c", name="add", arguments='{"a":1,"b":"2"}'), "done", "3"),
    "a tool that is not there": (
        ToolCall(id="c", name="sub", arguments="{}"),
        "unknown_tool",
        "There is no tool named 'sub'. The tools are: add.",
    ),
    "arguments that are not JSON": (
        ToolCall(id="c", name="add", arguments='{"a":1'),
        "invalid",
        "The arguments of add are not a JSON object (",
    ),
    "arguments that are no object": (
        ToolCall(id="c", name="add", arguments="[1,2]"),
        "invalid",
        "The arguments of add are not a JSON object (arguments are a JSON array",
    ),
    "arguments that do not fit": (
        ToolCall(id="c", name="add", arguments='{"a":1}'),
        "invalid",
        "The arguments of add do not fit, so it was not run:\n- b: missing",
    ),
    "a call cut by the output limit is never run": (
        ToolCall(id="c", name="add", arguments='{"a":1,"b":2}', invalid="truncated"),
        "invalid",
        "The call was cut off by the output limit",
    ),
    "a call marked invalid is never run": (
        ToolCall(id="c", name="add", arguments='{"a":1,"b":2}', invalid="not_json"),
        "invalid",
        "The call's arguments could not be used (not_json)",
    ),
}


@pytest.mark.parametrize(("call", "outcome", "text"), CALLS.values(), ids=CALLS)
async def test_calls(call: ToolCall, outcome: str, text: str) -> None:
    ran = await run_call(Registry([add]), call, ToolContext(Path.cwd()))
    assert (ran.outcome, ran.is_error) == (outcome, outcome != "done")
    assert text_of(ran).startswith(text)


async def test_a_sync_wrapper_of_an_async_function_is_awaited() -> None:
    async def slow() -> str:
        await asyncio.sleep(0)
        return "late"

    def probe() -> Awaitable[str]:
        return slow()

    assert text_of(await run_probe(tool(probe))) == "late"


async def test_a_sync_tool_runs_in_a_daemon_thread_and_sees_its_context() -> None:
    def probe(*, context: ToolContext) -> str:
        thread = threading.current_thread()
        return f"{thread.daemon} {thread is threading.main_thread()} {context.session_id} {context.call_id}"

    assert text_of(await run_probe(tool(probe), session_id="s1", call_id="c1")) == "True False s1 c1"


async def settled() -> None:
    """Lets what was left behind take the steps it still can."""
    for _ in range(5):
        await asyncio.sleep(0)


def swallowing(entered: asyncio.Event, release: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def probe() -> str:
        entered.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    return probe


async def test_an_async_tool_that_ignores_its_cancellation_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "GRACE_S", 0.02)
    entered, release = asyncio.Event(), asyncio.Event()
    ran = await run_probe(tool(timeout_s=0.02)(swallowing(entered, release)))
    assert (ran.outcome, ran.is_error) == ("timeout", True)
    assert "probe took longer than 0.02 s; it did not stop when told to and may still be running." in text_of(
        ran
    )
    assert len(run._left_behind) == 1
    release.set()
    await asyncio.wait(set(run._left_behind))
    await asyncio.sleep(0)
    assert run._left_behind == set()


async def test_a_blocked_thread_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE_S", 0.02)
    release = threading.Event()

    def probe() -> str:
        release.wait(20)
        return "too late"

    ran = await run_probe(tool(timeout_s=0.02)(probe))
    release.set()
    assert (ran.outcome, ran.is_error) == ("timeout", True)
    assert "may still be running" in text_of(ran)
    await settled()
    assert run._left_behind == set()


async def test_a_sync_tool_that_looks_at_stopping_is_stopped() -> None:
    def probe(*, context: ToolContext) -> str:
        context.stopping.wait(20)
        return "stopped"

    ran = await run_probe(tool(timeout_s=0.02)(probe))
    assert (ran.outcome, ran.is_error) == ("timeout", True)
    assert "probe took longer than 0.02 s; it was stopped." in text_of(ran)


@pytest.mark.parametrize("hung", [False, True], ids=["a tool that obeys", "a tool that does not"])
async def test_cancellation_passes_through_and_reaches_the_tool(
    hung: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "GRACE_S", 0.05)
    entered, release = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []

    async def obeying() -> None:
        entered.set()
        try:
            await release.wait()
        finally:
            cleaned.append("cleaned up")

    probe = tool(swallowing(entered, release) if hung else obeying)
    running = asyncio.create_task(run_probe(probe))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cleaned == ([] if hung else ["cleaned up"])
    await settled()
    assert run._left_behind == set()


EFFECTS = "What it did until then may have had effects: look before you repeat it."


def counting(entered: threading.Event) -> Callable[..., str]:
    """A sync tool that works until it is told to stop, and returns what it has."""

    def probe(*, context: ToolContext) -> str:
        entered.set()
        context.stopping.wait(20)
        return "one, two"

    return probe


def reporting(entered: threading.Event, output: Any) -> Callable[..., Awaitable[None]]:
    """An async tool that says what it came to when it is cancelled."""

    async def probe(*, context: ToolContext) -> None:
        entered.set()
        try:
            await asyncio.sleep(20)
        finally:
            context.so_far(ToolOutput((Text("too early"),)))
            context.so_far(output)

    return probe


SO_FAR: dict[str, tuple[Callable[[threading.Event], Callable[..., Any]], list[str]]] = {
    "of a sync tool, what it returned": (counting, ["one, two"]),
    "of an async tool, what it said last": (
        lambda entered: reporting(entered, ToolOutput((Text("three"),), meta={"n": 3})),
        ["three"],
    ),
    "of a tool that says something else, nothing": (lambda entered: reporting(entered, "three"), []),
}


@pytest.mark.parametrize("name", SO_FAR)
async def test_the_output_so_far_of_a_run_over_its_time_is_kept(name: str) -> None:
    make, texts = SO_FAR[name]
    ran = await run_probe(tool(timeout_s=0.05)(make(threading.Event())))
    ending = f"probe took longer than 0.05 s; it was stopped. {EFFECTS}"
    assert (ran.outcome, ran.is_error) == ("timeout", True)
    assert ran.content == (*map(Text, texts), Text(f"[{ending}]" if texts else ending))


@pytest.mark.parametrize("name", SO_FAR)
async def test_the_output_so_far_of_a_cancelled_run_is_told_before_the_cancellation(name: str) -> None:
    make, texts = SO_FAR[name]
    entered, told = threading.Event(), list[Ran]()
    running = asyncio.create_task(cancellable(tool(make(entered)), told.append))
    await asyncio.to_thread(entered.wait, 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    ending = Text(f"[probe was cancelled while it ran. {EFFECTS}]")
    assert [(ran.outcome, ran.is_error, ran.content) for ran in told] == (
        [("cancelled", True, (*map(Text, texts), ending))] if texts else []
    )


async def cancellable(probe: Tool, when_cancelled: Callable[[Ran], None], **fields: Any) -> Ran:
    call = ToolCall(id="c", name=probe.name, arguments="")
    context = ToolContext(cwd=Path.cwd(), **fields)
    return await run_call(Registry([probe]), call, context, when_cancelled=when_cancelled)


@pytest.mark.parametrize("content", [(Text("x" * 1000),), None, (object(),)], ids=["long", "none", "foreign"])
async def test_no_output_so_far_holds_up_a_cancellation(content: Any) -> None:
    entered, told, sunk = threading.Event(), list[Ran](), list[bytes]()
    probe = tool(result_max_chars=100)(reporting(entered, ToolOutput(content)))
    fields = {"blob_sink": lambda data: sunk.append(data) or "there"}
    running = asyncio.create_task(cancellable(probe, told.append, **fields))
    await asyncio.to_thread(entered.wait, 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sunk == []
    assert all(
        len("".join(block.text for block in ran.content if isinstance(block, Text))) < 300 for ran in told
    )
    assert len(told) == (0 if content is None else 1)


async def test_what_a_thread_returns_behind_a_blob_sink_is_no_output() -> None:
    entered, release, told = threading.Event(), threading.Event(), list[Ran]()

    def sink(_data: bytes) -> str:
        entered.set()
        release.wait(20)
        return "there"

    probe = tool(result_max_chars=10)(returning("x" * 100).function)
    running = asyncio.create_task(cancellable(probe, told.append, blob_sink=sink))
    await asyncio.to_thread(entered.wait, 20)
    running.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert told == []


async def test_a_second_cancellation_does_not_wait_for_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE_S", 600)
    entered, release = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(run_probe(tool(swallowing(entered, release))))
    await entered.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_long_result_is_cut_in_the_middle_and_kept_whole() -> None:
    whole = "".join(f"line {number}\n" for number in range(5_000))
    kept: list[bytes] = []

    def sink(data: bytes) -> str:
        kept.append(data)
        return "blobs/1"

    def probe() -> str:
        return whole

    ran = await run_probe(tool(result_max_chars=300)(probe), blob_sink=sink)
    text = text_of(ran)
    head, gap, tail = text[:200], text[201:-101], text[-100:]
    assert (head, tail) == (whole[:200], whole[-100:])
    assert gap == "[... 48,590 characters (4,964 line ends) left out; the whole result is in blobs/1 ...]"
    assert kept == [whole.encode()]
    assert ran.meta == {"cut_chars": 48_590, "whole_chars": 48_890, "whole": "blobs/1"}


async def test_a_sink_that_fails_costs_the_copy_and_not_the_answer() -> None:
    def sink(_data: bytes) -> str:
        raise OSError("disk full")

    def probe() -> str:
        return "x" * 500

    ran = await run_probe(tool(result_max_chars=10)(probe), blob_sink=sink)
    assert (ran.outcome, text_of(ran)) == (
        "done",
        "xxxxxx\n[... 490 characters (0 line ends) left out ...]\nxxxx",
    )


async def test_progress_is_cleaned_and_its_failure_is_not_the_tools() -> None:
    seen: list[str] = []

    def show(text: str) -> None:
        seen.append(text)
        if len(seen) == 2:
            raise RuntimeError("the display is gone")

    def probe(*, context: ToolContext) -> str:
        for text in ("\x1b[1mone", "two", "three"):
            context.progress(text)
        return "done"

    ran = await run_probe(tool(probe), progress=show)
    assert (ran.outcome, seen) == ("done", ["one", "two"])


async def test_nothing_is_shown_after_the_run_was_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GRACE_S", 0.02)
    seen: list[str] = []
    release = threading.Event()

    def probe(*, context: ToolContext) -> str:
        context.stopping.wait(20)
        context.progress("late")
        release.wait(20)
        return "too late"

    await run_probe(tool(timeout_s=0.02)(probe), progress=seen.append)
    release.set()
    await settled()
    assert seen == []


META: dict[str, tuple[Any, Any]] = {
    "plain values stay": ({"diff": "+a", "n": 1}, {"diff": "+a", "n": 1}),
    "a lone surrogate is replaced": ({"\ud800": "\ud800"}, {"\ufffd": "\ufffd"}),
    "what has no JSON form is text": ({"at": Path("a")}, {"at": "a"}),
    "what is too large is dropped and said so": (
        {"x": "y" * 300_000},
        {"dropped": "display data of 300,008 bytes"},
    ),
    "what is too deep is dropped and said so": (
        {"x": nested(100_000)},
        {"dropped": "display data with no JSON form"},
    ),
}


@pytest.mark.parametrize(("meta", "expected"), META.values(), ids=META)
async def test_display_data_is_plain(meta: Any, expected: Any) -> None:
    assert (await run_probe(returning(ToolOutput((Text("x"),), meta=meta)))).meta == expected


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=())) | st.binary(), st.integers(1, 60))
async def test_whatever_a_tool_returns_fits_into_a_log_record(value: Any, limit: int) -> None:
    def probe() -> Any:
        return value

    ran = await run_probe(tool(result_max_chars=limit)(probe))
    finished = ToolFinished(1, 0, "c1", ran.content, ran.outcome, ran.is_error, ran.duration_ms, ran.meta)
    encoded = msgspec.json.encode(finished)
    assert msgspec.json.decode(encoded, type=ToolFinished) == finished
    shown = text_of(ran)
    assert shown.strip()
    assert not set(shown) & {chr(code) for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}

"""What append takes is what open decodes, for whatever it is offered."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.schema.blocks import Block, Image, Opaque, Reasoning, Replay, Text, ToolCall, UrlSource
from lockstitch.schema.errors import GateError
from lockstitch.schema.events import (
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    Event,
    NoteEvent,
    SessionStart,
    StepStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnStart,
    Unknown,
    UserMessage,
)
from lockstitch.schema.failures import RETRYABLE, failure
from lockstitch.schema.notes import Note
from lockstitch.schema.usage import Usage
from lockstitch.session import intake
from lockstitch.session.intake import admit
from lockstitch.session.log_reader import LogReader
from lockstitch.session.log_state import LogState
from lockstitch.testing.session_samples import every_kind
from lockstitch.wire.strict_json import parse


def at_call(call: ToolCall) -> LogState:
    """The state behind an answer (record 4) with that call, whose tool was started."""
    state = LogState()
    message = AssistantMessage("m", (call,), "tool_calls")
    start: list[Body] = [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1), message]
    admit(state, [*start, ToolCallStarted(4, 0, call.id, call.name)], 0)
    return state


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@dataclass
class Point:
    x: int


COERCED: dict[str, tuple[Any, Any]] = {
    "a lone surrogate": ("a\ud800b", "a\ufffdb"),
    "two surrogates that are no pair": ("\udc00\ud800", "\ufffd\ufffd"),
    "a surrogate in a key": ({"\ud800": 1}, {"\ufffd": 1}),
    "a path": ([PurePosixPath("/a")], ["/a"]),
    "a path beside a surrogate": ({"p": PurePosixPath("/a"), "s": "\ud800"}, {"p": "/a", "s": "\ufffd"}),
    "a key that is a tuple": ({(1, 2): 3}, {"(1, 2)": 3}),
    "a number as key": ({1: 2}, {"1": 2}),
    "a set": ({7}, [7]),
    "a date": (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    "bytes": (b"ab", "YWI="),
    "a dataclass": (Point(1), {"x": 1}),
    "not a number": (float("nan"), "NaN"),
    "infinity in a list": ([float("-inf"), 1.5], ["-Infinity", 1.5]),
    "a huge integer": (10**40, 10**40),
    "zeros and controls": ("\0\x1b\x7f\u2028", "\0\x1b\x7f\u2028"),
}


@pytest.mark.parametrize(("value", "stored"), COERCED.values(), ids=COERCED)
def test_a_tools_display_data_becomes_json(value: Any, stored: Any) -> None:
    state = at_call(ToolCall("a", "read", "{}"))
    result = ToolFinished(4, 0, "a", (Text("x"),), "done", meta={"value": value})
    (event,) = admit(state, [result], 0).events
    assert event.body == ToolFinished(4, 0, "a", (Text("x"),), "done", meta={"value": stored})


REFUSED: dict[str, tuple[Any, str]] = {
    "no event body": ("x", "not an event body"),
    "an unknown kind": (Unknown("later", b"{}"), "not an event body"),
    "a text where a number belongs": (TurnStart("1"), "Expected `int`"),  # type: ignore[arg-type]  # on purpose
    "a number where a text belongs": (UserMessage(1, ()), "Expected `str`"),  # type: ignore[arg-type]  # on purpose
    "an object of no JSON type in a field": (Title(PurePosixPath("x")), "JSON cannot hold it"),  # type: ignore[arg-type]  # on purpose
    "a value outside of its list": (ToolFinished(4, 0, "a", (), "great"), "Invalid enum value"),  # type: ignore[arg-type]  # on purpose
    "a block of no kind": (UserMessage("u", ({"type": "smell"},)), "Invalid value"),  # type: ignore[arg-type]  # on purpose
    "values nested too deep": (NoteEvent("x", nested(127)), "nested deeper"),
    "values nested without end": (NoteEvent("x", nested(5000)), "JSON cannot hold it"),
    "a call without a name": (AssistantMessage("m", (ToolCall("a", "", ""),), "stop"), "name of call 0"),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_why_and_changes_nothing(body: Any, reason: str) -> None:
    state = LogState()
    admit(state, [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)], 0)
    before = state.snapshot()
    with pytest.raises(GateError, match=reason):
        admit(state, [Title("first"), body], 0)
    assert state == before


def test_a_loop_in_a_value_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(GateError):
        admit(at_call(ToolCall("a", "b", "")), [NoteEvent("x", loop)], 0)


def test_a_record_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "RECORD_MAX_BYTES", 500)
    state = at_call(ToolCall("a", "b", ""))
    with pytest.raises(GateError, match="put large content into a blob"):
        admit(state, [Title("x" * 500)], 0)


def test_braces_in_texts_are_no_nesting() -> None:
    state = at_call(ToolCall("a", "b", ""))
    admit(state, [NoteEvent("x", {"text": '{["\\"' * 1000})], 0)
    admit(state, [NoteEvent("x", nested(123))], 0)


# --- whatever a decoder, a tool or a user can yield ---------------------------------------------------------

NAMES = st.text(min_size=1, max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ANY_TEXT = st.text(st.characters(), max_size=20)  # with surrogates, controls, everything
EXTRA = st.none() | st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=2)
REPLAYS = st.none() | st.builds(
    Replay, ANY_TEXT, ANY_TEXT, st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=2)
)
TEXTS = st.builds(Text, ANY_TEXT, extra=EXTRA, replay=REPLAYS)
IMAGES = st.builds(Image, ANY_TEXT, st.builds(UrlSource, ANY_TEXT), extra=EXTRA)
CALLS = st.builds(ToolCall, NAMES, NAMES, ANY_TEXT, st.none() | ANY_TEXT, extra=EXTRA, replay=REPLAYS)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    TEXTS,
    IMAGES,
    CALLS,
    st.builds(Reasoning, ANY_TEXT, st.none() | ANY_TEXT, st.none() | ANY_TEXT, replay=REPLAYS),
    st.builds(Opaque, ANY_TEXT, JSON_VALUES),
)
USAGES = st.none() | st.builds(
    Usage, st.integers(), st.integers(), st.none() | st.integers(), estimated=st.booleans()
)
NOTES = st.lists(st.builds(Note, ANY_TEXT, ANY_TEXT, st.integers()), max_size=2).map(tuple)
ANSWERS = st.builds(
    AssistantMessage,
    NAMES,
    st.lists(BLOCKS, max_size=4).map(tuple),
    st.sampled_from(["stop", "tool_calls", "length", "aborted"]),
    ANY_TEXT,
    ANY_TEXT,
    USAGES,
    NOTES,
)
FAILURES = st.builds(
    lambda code, text, number, wait: failure(
        code, text, status=number, retry_after_s=wait, provider_code=text
    ),
    st.sampled_from(sorted(RETRYABLE)),
    ANY_TEXT,
    st.none() | st.integers(0, 999),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
RESULTS = st.lists(TEXTS | IMAGES, max_size=3).map(tuple)


def taken(state: LogState, body: Body) -> None:
    """``body`` is accepted, and a reader decodes the very event that the writer was given back."""
    admitted = admit(state, [body], 5)
    events: list[Event] = []
    reader = LogReader("s", events.append)
    reader.feed(admitted.data)
    reader.end()
    assert reader.set_aside == 0 and reader.torn is None
    assert [(event.seq, event.body) for event in events] == [
        (event.seq, event.body) for event in admitted.events
    ]


@given(ANSWERS)
def test_any_answer_of_a_decoder_is_taken(answer: AssistantMessage) -> None:
    state = LogState()
    admit(state, [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)], 0)
    taken(state, answer)


@given(FAILURES, USAGES, NOTES)
def test_any_failure_is_taken(failed: Any, usage: Any, notes: Any) -> None:
    state = LogState()
    admit(state, [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)], 0)
    taken(state, AttemptFailed(failed, usage, notes))


@given(NAMES, RESULTS, EXTRA, st.booleans())
def test_any_output_of_a_tool_is_taken(call_id: str, content: Any, meta: Any, is_error: bool) -> None:
    state = at_call(ToolCall(call_id, "read", "{}"))
    taken(state, ToolFinished(4, 0, call_id, content, "done", is_error, meta=meta))


@given(ANY_TEXT, st.lists(TEXTS | IMAGES, max_size=3).map(tuple))
def test_anything_a_user_says_is_taken(text: str, more: Any) -> None:
    state = LogState()
    admit(state, [SessionStart(1, "s"), TurnStart(1)], 0)
    taken(state, UserMessage("u", (Text(text), *more)))
    taken(state, Title(text))


def test_the_deepest_value_that_a_decoder_parses_is_taken() -> None:
    value = parse("[" * 100 + "]" * 100)
    state = LogState()
    admit(state, [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)], 0)
    block = Opaque("x", value, replay=Replay("p", "m", {"data": value}))
    taken(state, AssistantMessage("m", (block,), "stop"))


def test_the_sample_session_is_taken_as_it_is() -> None:
    state = LogState()
    admitted = admit(state, [SessionStart(1, "s"), *every_kind()], 0)
    assert [event.body for event in admitted.events] == [SessionStart(1, "s"), *every_kind()]

"""Guards of speed that count work instead of time, so that a noisy machine cannot fail or excuse them.

Work is the number of calls of Python functions: it is the same on every run, grows with the input for a
linear algorithm, and jumps when a hot path gains a step. (Calls of built-in functions are not: the
interpreter leaves some of them out of the count once their code is warm.) Time is measured in bench/;
docs/performance.md says where the figures here come from.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lockstitch import Agent
from lockstitch.history.context import Context
from lockstitch.history.decode import Decoder
from lockstitch.history.policy import policy
from lockstitch.history.project import Projector
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile
from lockstitch.schema.blocks import Text, ToolCall, ToolResult
from lockstitch.schema.events import AssistantDelta, AttemptStart, SessionStart, StepStart, TurnStart
from lockstitch.schema.messages import Message, Request
from lockstitch.session import listing
from lockstitch.session.file_index import FileIndex
from lockstitch.session.intake import admit
from lockstitch.session.log_state import LogState
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.wire.jsonl import encode
from lockstitch.wire.sse import SseDecoder

FEW, MANY = 200, 800
SLACK = 1.02
"""Set-up work is the same for few and for many, so the cost of one more can only seem to fall."""


PARSE = "Decoder.decode"
"""msgspec's, the one built-in function that is counted: it always shows."""


def calls_of(work: Callable[[], object], *, package: str = "") -> Counter[str]:
    """How often each Python function (of ``package``), and PARSE, was called while `work` ran, by qualified
    name. Going on with a generator counts as a call."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        if event == "call" and package in frame.f_globals.get("__name__", ""):
            counted[frame.f_code.co_qualname] += 1
        elif event == "c_call" and called.__qualname__ == PARSE:
            counted[PARSE] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


class Copied(bytes):
    """Bytes that count how many bytes are copied when they are joined to others by an operator or sliced."""

    copied = 0

    def __add__(self, other: Any) -> "Copied":
        return self._count(bytes.__add__(self, bytes(other)))

    def __radd__(self, other: Any) -> "Copied":
        return self._count(bytes.__add__(other, bytes(self)))

    def __getitem__(self, part: Any) -> Any:
        found = bytes(self)[part]
        return self._count(found) if isinstance(found, bytes) else found

    @classmethod
    def _count(cls, made: bytes) -> "Copied":
        cls.copied += len(made)
        return cls(made)


def text_frame(number: int) -> bytes:
    delta = b'{"index":0,"delta":{"content":" word%d"},"finish_reason":null}' % number
    return b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[%b]}\n\n' % delta


def framing(body: bytes, read: int) -> Callable[[], object]:
    def run() -> None:
        decoder = SseDecoder()
        for start in range(0, len(body), read):
            decoder.feed(body[start : start + read])
        decoder.end()

    return run


def test_the_counters_see_a_quadratic_buffer() -> None:
    class Quadratic:
        def __init__(self) -> None:
            self.rest = b""

        def feed(self, data: bytes) -> None:
            self.rest = self.rest + data

    Copied.copied = 0
    buffer = Quadratic()
    for _ in range(100):
        buffer.feed(Copied(b"x" * 10))
    assert Copied.copied == sum(range(10, 1001, 10))
    assert calls_of(lambda: [buffer.feed(Copied(b"")) for _ in range(7)]).total() >= 7


FRAMINGS = {"frames of one read each": 75, "many frames a read": 1 << 16, "one-byte reads": 1}


@pytest.mark.parametrize("read", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_framing_costs_the_same_for_each_frame(read: int) -> None:
    few, many = (
        calls_of(framing(b"".join(map(text_frame, range(frames))), read)).total() for frames in (FEW, MANY)
    )
    assert many / MANY <= few / FEW * SLACK


def test_a_long_line_is_copied_once_whatever_the_reads() -> None:
    line = b"data: " + b"x" * 1_000_000 + b"\n\n"
    Copied.copied = 0
    decoder = SseDecoder()
    frames = [
        frame for start in range(0, len(line), 1000) for frame in decoder.feed(Copied(line[start:][:1000]))
    ]
    assert [len(frame.data) for frame in frames] == [1_000_000]
    assert Copied.copied <= 2 * len(line)


def call_frame(number: int) -> bytes:
    """One piece of arguments, with the blank identity that gateways repeat; the first has the real one."""
    first = b'"id":"c","function":{"name":"write","arguments":"{"}'
    entry = b'{"index":0,%b}' % (b'"id":"","function":{"name":"","arguments":" "}' if number else first)
    delta = b'{"index":0,"delta":{"tool_calls":[%b]},"finish_reason":null}' % entry
    return b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[%b]}\n\n' % delta


def decoding(body: bytes, read: int) -> Callable[[], object]:
    def run() -> None:
        decoder = Decoder("openai-chat", tools=("write",))
        for start in range(0, len(body), read):
            decoder.feed(body[start : start + read])
        decoder.end()

    return run


PER_READ = 60
"""Calls that the frames of a read share; the larger stream takes one read more."""
STREAMS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "text": (text_frame, 4),
    "arguments of a call": (call_frame, 6),
}
"""What a frame is made of, and how many calls one may cost, its parsing among them; framing and checking are
shared by all frames of a read."""


@pytest.mark.parametrize(("frame", "budget"), STREAMS.values(), ids=STREAMS.keys())
def test_a_frame_of_a_stream_keeps_to_its_budget_of_calls(frame: Callable[[int], bytes], budget: int) -> None:
    few, many = (calls_of(decoding(b"".join(map(frame, range(frames))), 1 << 16)) for frames in (FEW, MANY))
    assert (many - few)[PARSE] == MANY - FEW, "each frame is parsed once"
    assert (many - few).total() <= budget * (MANY - FEW) + PER_READ


@pytest.mark.parametrize("read", [75, 1 << 16], ids=["frames of several reads", "many frames a read"])
def test_decoding_costs_the_same_for_each_frame(read: int) -> None:
    few, many = (
        calls_of(decoding(b"".join(map(call_frame, range(frames))), read)).total() for frames in (FEW, MANY)
    )
    assert many / MANY <= few / FEW * SLACK


def test_a_delta_costs_the_agent_one_call() -> None:
    """That which gives its event on; the log, the queue of events and the stream take those of a read."""

    def turn(deltas: int) -> Counter[str]:
        async def run() -> None:
            model = ScriptedModel({"answers": [{"text": "x" * deltas, "chunk_chars": 1}]})
            agent = Agent(model, store=MemoryStore(), environ={})
            assert len([event async for event in agent.stream("Go.")]) > deltas

        return calls_of(lambda: asyncio.run(run()), package="lockstitch.agent")

    turn(1)  # what is done once in a process
    more = turn(MANY) - turn(FEW)
    assert {name for name, count in more.items() if count >= MANY - FEW} == {PARSE, "Agent.stream"}
    assert more["Agent.stream"] == MANY - FEW


def exchange(number: int) -> list[Message]:
    call = ToolCall(id=f"c{number}", name="write", arguments="{}")
    return [
        Message("assistant", (call,)),
        Message("tool", (ToolResult(call_id=call.id, content=(Text(text="done"),)),)),
    ]


def first_request(name: str, exchanges: int) -> Callable[[], object]:
    target = profile(name)
    messages = [
        Message("user", (Text(text="Go."),)),
        *(one for at in range(exchanges) for one in exchange(at)),
    ]

    def run() -> None:
        projector, writer = Projector(policy(target, model="m", rung="normal")), dialects.writer(target)
        projector.extend(messages)
        assert writer.write(Request("m", projector.projected.messages)).violations == []

    return run


EXCHANGES = {"generic": 38, "anthropic": 66, "openai-responses": 51, "gemini": 68}
"""Calls that an ordinary exchange may cost in the first request with it: projected, written and checked.
An exchange is a call and its result. Two are for the collector of garbage, which Hypothesis listens to."""


@pytest.mark.parametrize(("name", "budget"), EXCHANGES.items(), ids=EXCHANGES.keys())
def test_an_ordinary_exchange_of_a_first_request_keeps_to_its_budget_of_calls(name: str, budget: int) -> None:
    few, many = (calls_of(first_request(name, exchanges)).total() for exchanges in (FEW, MANY))
    assert (many - few) / (MANY - FEW) <= budget


def test_a_further_request_costs_the_same_after_a_short_and_a_long_history() -> None:
    def further(size: int) -> Counter[str]:
        target = profile("generic")
        projector, writer = Projector(policy(target, model="m", rung="normal")), dialects.writer(target)

        def write(messages: list[Message]) -> None:
            projector.extend(messages)
            writer.write(Request("m", projector.projected.messages))

        write(
            [
                Message("user", (Text(text="Go."),)),
                *(one for number in range(size) for one in exchange(number)),
            ]
        )
        return calls_of(lambda: write(exchange(size)))

    short, long = further(10), further(1_000)
    assert long == short


def test_an_append_costs_the_same_in_a_short_and_a_long_session() -> None:
    def appends(deltas: int) -> Counter[str]:
        state = LogState()
        opened = (SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1))
        admit(state, opened, 0)
        for _ in range(deltas):
            admit(state, (AssistantDelta(0, "text", "word"),), 0)
        return calls_of(lambda: admit(state, (AssistantDelta(0, "text", "word"),), 0))

    assert appends(1_000) == appends(10)


def test_the_log_keeps_few_pieces_of_what_it_was_shown() -> None:
    state = LogState()
    opened = (SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1))
    admit(state, opened, 0)
    shown = [
        AssistantDelta(number // 700, "text", "word" if number % 3 else "longer words")
        for number in range(1_000)
    ]
    for delta in shown:
        admit(state, (delta,), 0)
    assert state.open_attempt is not None
    kept = state.open_attempt.deltas
    assert len(kept) <= 2 * 10, "as many as a number of a thousand has bits, for each block"
    for index in (0, 1):
        said = ["".join(delta.text for delta in deltas if delta.index == index) for deltas in (kept, shown)]
        assert said[0] == said[1]


def test_folding_an_event_costs_the_same_in_a_short_and_a_long_session() -> None:
    def fold(size: int) -> int:
        state, context = LogState(), Context()
        bodies = [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)]
        bodies += [AssistantDelta(0, "text", "word")] * size
        events = [event for body in bodies for event in admit(state, (body,), 0).events]
        return calls_of(lambda: [context.apply(event) for event in events]).total()

    assert fold(4 * FEW) / (4 * FEW) <= fold(FEW) / FEW * SLACK


def test_a_session_that_the_index_knows_costs_a_listing_one_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "VERIFIED_MAX", 3)

    def listed(sessions: int) -> Counter[str]:
        root = tmp_path / str(sessions)
        for number in range(sessions):
            (root / f"s{number}").mkdir(parents=True)
            (root / f"s{number}" / "log.jsonl").write_bytes(encode(0, number, SessionStart(1, f"s{number}")))
        index = FileIndex(root)
        assert len(index.listing() or ()) == sessions
        found = calls_of(index.listing)
        index.close()
        return found

    assert listed(40) - listed(10) == Counter({PARSE: 30})


ERRORS = {
    "frames of chat": ("openai-chat", b'data: {"error":1}\n\n' * MANY),
    "frames of chat that are no JSON": ("openai-chat", b"event: error\ndata: no\n\n" * MANY),
    "errors of chat in one list": ("openai-chat", b"data: [" + b'{"error":1},' * MANY + b"{}]\n\n"),
    "errors of chat in choices": (
        "openai-chat",
        b'data: {"choices":[' + b'{"error":1},' * MANY + b"{}]}\n\n",
    ),
    "a list as the answer of chat": ("openai-chat", b"[" + b'{"error":1},' * MANY + b"{}]"),
    "frames of anthropic": ("anthropic-messages", b'data: {"type":"error","error":1}\n\n' * MANY),
    "a list as the answer of anthropic": ("anthropic-messages", b"[" + b'{"error":1},' * MANY + b"{}]"),
    "failures of responses": (
        "openai-responses",
        b'data: {"type":"response.failed","response":{}}\n\n' * MANY,
    ),
    "errors of gemini in one list": ("gemini", b"data: [" + b'{"error":1},' * MANY + b"{}]\n\n"),
    "a list as the answer of gemini": ("gemini", b"[" + b'{"error":1},' * MANY + b"{}]"),
}


@pytest.mark.parametrize(("dialect", "body"), ERRORS.values(), ids=ERRORS)
def test_only_the_first_error_of_a_stream_is_classified(dialect: str, body: bytes) -> None:
    decoder = Decoder(dialect)

    def decode() -> None:
        decoder.feed(body)
        decoder.end()

    assert 1 <= calls_of(decode)["classify"] <= 2
    assert decoder.result.finish.failure is not None

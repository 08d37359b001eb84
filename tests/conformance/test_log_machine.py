"""A state machine over the session log: whatever is appended, cut, damaged and opened, P4 and P8 hold."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from lockstitch.history.context import Context
from lockstitch.history.project import project
from lockstitch.providers.catalog import profile
from lockstitch.providers.openai_chat_request import encode as encode_chat
from lockstitch.providers.openai_chat_rules import violations
from lockstitch.schema.blocks import Reasoning, Text, ToolCall
from lockstitch.schema.errors import GateError
from lockstitch.schema.events import (
    Approval,
    AssistantDelta,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    Clear,
    CompactionCall,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    InputQueued,
    InputTaken,
    NoteEvent,
    OutputCount,
    RequestHeader,
    RetryScheduled,
    RetryStarted,
    SessionRepaired,
    StepEnd,
    StepStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Undo,
    UserMessage,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.messages import Request
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.store import SessionLog

TEXTS = st.text(max_size=12).map(lambda text: (Text(text),))
IDS = st.sampled_from(["a", "b", "", "toolu_1", "x" * 70])
NAMES = st.sampled_from(["read", "list", ""])
SMALL = st.integers(0, 3)
CALLS = st.builds(
    ToolCall, IDS, NAMES, st.sampled_from(["{}", "", "{", '{"a":1}']), st.sampled_from([None, "cut"])
)
CONTENT = st.lists(
    st.one_of(TEXTS.map(lambda it: it[0]), st.builds(Reasoning, st.text(max_size=5)), CALLS), max_size=3
)


def _events(state: Any) -> st.SearchStrategy[Body]:
    """Events near what may come next: most pass the gate, and many are one off."""
    turn = st.just(state.turn) | SMALL
    step = st.just(state.step) | SMALL
    places = st.sampled_from([*state.calls, (0, 0)])
    results = places.flatmap(
        lambda place: st.builds(
            ToolFinished,
            st.just(place[0]),
            st.just(place[1]),
            st.just(state.calls[place].call_id if place in state.calls else "a"),
            TEXTS,
            st.sampled_from(["done", "denied", "not_started", "unknown", "failed"]),
        )
    )
    starts = places.map(
        lambda place: ToolCallStarted(
            *place,
            call_id=state.calls[place].call_id if place in state.calls else "a",
            name=state.calls[place].name if place in state.calls else "read",
        )
    )
    return st.one_of(
        st.builds(TurnStart, st.just(state.turns + 1) | SMALL),
        st.builds(TurnEnd, turn, st.sampled_from(["completed", "cancelled"])),
        st.builds(StepStart, turn, st.just(state.step + 1) | SMALL),
        st.builds(StepEnd, turn, step),
        st.builds(UserMessage, st.sampled_from(["u", "q", ""]), TEXTS),
        st.builds(AttemptStart, turn, step, st.just(state.attempt + 1) | SMALL),
        st.builds(AssistantDelta, SMALL, st.sampled_from(["text", "reasoning"]), st.text(max_size=9)),
        st.builds(AssistantMessage, st.sampled_from(["m", ""]), CONTENT.map(tuple), st.just("stop")),
        st.builds(AttemptFailed, st.just(failure("SERVER", "x"))),
        starts,
        starts,
        results,
        results,
        places.map(lambda place: Approval(*place, decision="allowed")),
        st.builds(RetryScheduled, st.just(state.retry + 1) | SMALL, st.just("SERVER"), SMALL),
        st.builds(RetryStarted, st.just(state.retry) | SMALL),
        st.builds(InputQueued, st.sampled_from(["q", "r"]), TEXTS, st.sampled_from(["steer", "follow_up"])),
        st.builds(InputTaken, st.sampled_from(["q", "r"]), st.booleans()),
        st.builds(RequestHeader, st.just("generic"), NAMES),
        st.builds(CompactionStart, st.sampled_from(["c", "d"]), st.just("manual"), st.none() | SMALL),
        st.builds(CompactionCall, st.just(state.compaction or "c"), SMALL),
        st.builds(OutputCount, SMALL),
        st.builds(CompactionSummary, st.just(state.compaction or "c"), TEXTS),
        st.builds(CompactionEnd, st.just(state.compaction or "c"), st.booleans()),
        st.builds(Undo, SMALL),
        st.just(Clear()),
        st.builds(Title, st.text(max_size=3)),
        st.builds(NoteEvent, st.text(max_size=2), st.none() | SMALL),
    )


class LogMachine(RuleBasedStateMachine):
    """Between openings ``events`` is what the log must hold."""

    places = Bundle("places")

    @initialize()
    def make(self) -> None:
        self.store = MemoryStore()
        self.loop = asyncio.new_event_loop()
        self.events: list[Event] = []
        self.log = self._open()

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self._run(self.log.close())
            self._run(self.store.close())
            self._run(self.loop.shutdown_default_executor())
            self.loop.close()

    def _run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def _open(self) -> SessionLog:
        self.events = []
        log: SessionLog = self._run(self.store.open("s", fold=self.events.append))
        return log

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        bodies = [data.draw(_events(self.log.state)) for _ in range(data.draw(st.integers(1, 2)))]
        before = self.log.state.snapshot()
        try:
            self.events += self.log.append(*bodies)
        except GateError:
            assert self.log.state == before

    @rule(data=st.data())
    def run_a_turn(self, data: st.DataObject) -> None:
        """What a driver does, as far as the state allows: rules above reach this depth too rarely."""
        state = self.log.state
        if state.turn_open or state.compaction is not None:
            return
        turn, seq = state.turns + 1, state.next_seq
        calls = tuple(ToolCall(data.draw(st.sampled_from(["a", "b"])), "read", "{}") for _ in range(2))
        bodies: list[Body] = [
            TurnStart(turn),
            UserMessage(f"u{turn}", (Text("do"),)),
            StepStart(turn, 1),
            AttemptStart(turn, 1, 1),
            AssistantMessage(f"m{turn}", calls, "tool_calls"),
            ToolCallStarted(seq + 4, 1, calls[1].id, "read"),
            ToolFinished(seq + 4, 1, calls[1].id, (Text("1"),), "done"),
            ToolCallStarted(seq + 4, 0, calls[0].id, "read"),
            ToolFinished(seq + 4, 0, calls[0].id, (Text("0"),), "done"),
            StepEnd(turn, 1),
            TurnEnd(turn, "completed"),
        ]
        self.events += self.log.append(*bodies[: data.draw(st.integers(1, len(bodies)))])

    @rule()
    def reopen(self) -> None:
        expected = self.events
        self._run(self.log.close())
        self.log = self._open()
        assert self.events[: len(expected)] == expected
        assert (not self.log.report.set_aside and not self.log.report.defects) or self._was_damaged
        again = self.events
        self._run(self.log.close())
        self.log = self._open()
        assert self.events == again, "a second opening finds nothing to mend"

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        self._run(self.log.close())
        whole = self.store.read_log("s")
        cut = data.draw(st.integers(0, len(whole)))
        self.store.write_log("s", whole[:cut])
        kept = whole[: cut + 1].count(b'"}\n')
        before = self.events
        self.log = self._open()
        if not self._was_damaged:
            assert self.events[:kept] == before[:kept]

    @precondition(lambda self: not self._was_damaged)
    @rule(data=st.data(), flip=st.integers(1, 255))
    def damage(self, data: st.DataObject, flip: int) -> None:
        self._run(self.log.close())
        whole = bytearray(self.store.read_log("s"))
        offset = data.draw(st.integers(0, len(whole) - 1))
        whole[offset] ^= flip
        struck = bytes(whole[:offset]).count(b"\n")
        before = self.events
        self.store.write_log("s", bytes(whole))
        self.log = self._open()
        assert self.log.report.set_aside or self.log.report.torn_bytes
        bodies = [event.body for event in self.events]
        lost = [event.seq for event in before if event.body not in bodies]
        assert set(lost) <= {struck}
        self._was_damaged = True

    _was_damaged = False

    @invariant()
    def the_next_request_is_valid(self) -> None:
        if not hasattr(self, "log"):
            return
        generic = profile("generic")
        context = Context()
        for event in self.events:
            context.apply(event)
        projected = project(context.messages, generic, model="m")
        body = encode_chat(Request("m", tuple(projected.messages)), generic).body
        assert violations(body, generic) == []

    @invariant()
    def numbers_count_up_and_what_is_told_is_told_once(self) -> None:
        if not hasattr(self, "log"):
            return
        numbers = [event.seq for event in self.events]
        assert numbers == sorted(set(numbers))
        told = sum(event.body.set_aside for event in self.events if isinstance(event.body, SessionRepaired))
        assert told == self.log.state.told_set_aside


LogMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLog = LogMachine.TestCase

"""The live context: what a log amounts to for the next request."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.history.context import _FOLDS, Context
from lockstitch.history.transcript import Entry
from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.schema.events import (
    KINDS,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    Clear,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    InputQueued,
    InputTaken,
    LegacyCompaction,
    NoteEvent,
    Prune,
    Recovery,
    RequestHeader,
    RetryScheduled,
    RetryStarted,
    SessionStart,
    StepEnd,
    StepStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Undo,
    Unknown,
    UserMessage,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.messages import Message
from lockstitch.schema.usage import Usage


def text(words: str) -> tuple[Text, ...]:
    return (Text(text=words),)


def said(words: str) -> UserMessage:
    return UserMessage(id=words, content=text(words))


def answered(words: str, *calls: str, usage: Usage | None = None) -> AssistantMessage:
    blocks = (*text(words), *(ToolCall(id=call, name="read", arguments="{}") for call in calls))
    return AssistantMessage(
        id=words, content=blocks, finish="stop", provider="generic", model="m", usage=usage
    )


def finished(seq: int, position: int, words: str = "out") -> ToolFinished:
    return ToolFinished(message_seq=seq, position=position, call_id="c", content=text(words), outcome="done")


def fold(bodies: Sequence[Body]) -> Context:
    context = Context()
    for seq, body in enumerate(bodies):
        context.apply(Event(seq, 1000 + seq, body))
    return context


def words_of(context: Context) -> list[str]:
    """One line a message: its role and its text, results by their text, calls by their ids."""
    lines = []
    for message in context.messages:
        parts = []
        for block in message.content:
            if isinstance(block, Text):
                parts.append(block.text)
            elif isinstance(block, ToolCall):
                parts.append(f"<{block.id}>")
            else:
                parts.extend(part.text for part in getattr(block, "content", ()) if isinstance(part, Text))
        lines.append(f"{message.role}: {' '.join(parts)}")
    return lines


def turn(number: int, *bodies: Body) -> list[Body]:
    return [TurnStart(number), *bodies, TurnEnd(number, "completed")]


TWO_TURNS = [*turn(1, said("u1"), answered("a1")), *turn(2, said("u2"), answered("a2"))]


def compaction(keep_from_seq: int | None, summary: str = "SUM", *, applied: bool = True) -> list[Body]:
    return [
        CompactionStart("k", "manual", keep_from_seq),
        CompactionSummary("k", text(summary)),
        CompactionEnd("k", applied),
    ]


FOLDS: dict[str, tuple[list[Body], list[str]]] = {
    "an empty log has no messages": ([], []),
    "messages stand in the order of the log": (
        TWO_TURNS,
        ["user: u1", "assistant: a1", "user: u2", "assistant: a2"],
    ),
    "a result stands where it was logged, not behind its call": (
        [TurnStart(1), answered("a", "c"), said("u"), finished(1, 0)],
        ["assistant: a <c>", "user: u", "tool: out"],
    ),
    "a result without its call stays: the history is faithful": (
        [TurnStart(1), finished(7, 0, "lost"), said("u")],
        ["tool: lost", "user: u"],
    ),
    "a compaction keeps what its start names": (
        [*TWO_TURNS, *compaction(5)],
        ["user: SUM", "user: u2", "assistant: a2"],
    ),
    "a compaction that keeps nothing leaves the summary": ([*TWO_TURNS, *compaction(None)], ["user: SUM"]),
    "a compaction that was not applied changes nothing": (
        [*turn(1, said("u1")), *compaction(None, applied=False)],
        ["user: u1"],
    ),
    "a blank summary is a failed compaction": (
        [*turn(1, said("u1")), *compaction(None, "  \n")],
        ["user: u1"],
    ),
    "a summary made only of reasoning is blank": (
        [
            said("u1"),
            CompactionStart("k", "manual"),
            CompactionSummary("k", (Reasoning(text="hm"),)),
            CompactionEnd("k", True),
        ],
        ["user: u1"],
    ),
    "an end of another compaction applies nothing": (
        [
            said("u1"),
            CompactionStart("k", "manual"),
            CompactionSummary("k", text("S")),
            CompactionEnd("x", True),
        ],
        ["user: u1"],
    ),
    "a message logged while the summary was made is kept": (
        [
            said("u1"),
            CompactionStart("k", "overflow"),
            said("u2"),
            CompactionSummary("k", text("S")),
            CompactionEnd("k", True),
        ],
        ["user: S", "user: u2"],
    ),
    "a second compaction supersedes the first": (
        [*TWO_TURNS, *compaction(5, "S1"), *turn(3, said("u3")), *compaction(12, "S2")],
        ["user: S2", "user: u3"],
    ),
    "a range that spans an older compaction is kept without its summary": (
        [
            *turn(1, said("u1"), answered("a1")),
            *compaction(None, "S1"),
            *turn(2, said("u2")),
            *compaction(1, "S2"),
        ],
        ["user: S2", "user: u1", "assistant: a1", "user: u2"],
    ),
    "prompts that the plan names stay behind the summary, in the order of the log": (
        [
            *TWO_TURNS,
            *turn(3, said("u3"), answered("a3")),
            CompactionStart("k", "manual", 10, keep_prompts=(5, 1, 10)),
            CompactionSummary("k", text("S")),
            CompactionEnd("k", True),
        ],
        ["user: S", "user: u1", "user: u2", "assistant: a3"],
    ),
    "a prompt that the plan shortens keeps head and tail": (
        [
            *turn(1, said("a" * 60 + "b" * 60), answered("a1")),
            CompactionStart("k", "manual", keep_prompts=(1,), shorten=(1,), head_chars=3, tail_chars=2),
            CompactionSummary("k", text("S")),
            CompactionEnd("k", True),
        ],
        ["user: S", "user: aaa\n[115 characters pruned]\nbb"],
    ),
    "an answer and an older summary are no prompts, whatever a plan says": (
        [
            *turn(1, said("u1"), answered("a1")),
            *compaction(None, "S1"),
            CompactionStart("k", "manual", keep_prompts=(2, 5)),
            CompactionSummary("k", text("S2")),
            CompactionEnd("k", True),
        ],
        ["user: S2"],
    ),
    "a legacy compaction cuts by counting, even inside an exchange": (
        [
            TurnStart(1),
            said("u1"),
            answered("a1", "x", "y"),
            finished(2, 0, "rx"),
            finished(2, 1, "ry"),
            said("u2"),
            LegacyCompaction(text("OLD"), 3),
        ],
        ["user: OLD", "tool: ry", "user: u2"],
    ),
    "clear empties the context": ([*TWO_TURNS, Clear()], []),
    "an undone turn is gone with its prompt": (
        [*TWO_TURNS, Undo(2)],
        ["user: u1", "assistant: a1"],
    ),
    "an undo to the first turn leaves nothing": ([*TWO_TURNS, Undo(1)], []),
    "an undo to a turn that never was changes nothing": (
        [*turn(1, said("u1")), Undo(9)],
        ["user: u1"],
    ),
    "an undo goes back behind a compaction": (
        [*TWO_TURNS, *compaction(None), *turn(3, said("u3")), Undo(2)],
        ["user: u1", "assistant: a1"],
    ),
    "an undo behind which the compaction lies keeps its summary": (
        [*TWO_TURNS, *compaction(None), *turn(3, said("u3")), Undo(3)],
        ["user: SUM"],
    ),
    "an undo goes back behind a clear": (
        [*TWO_TURNS, Clear(), *turn(3, said("u3")), Undo(2)],
        ["user: u1", "assistant: a1"],
    ),
    "a pruned result keeps head and tail": (
        [TurnStart(1), answered("a", "c"), finished(1, 0, "x" * 50 + "y" * 50), Prune((2,), 3, 2)],
        ["assistant: a <c>", "tool: xxx\n[95 characters pruned]\nyy"],
    ),
    "what was pruned stays so where an undo brings it back": (
        [
            *turn(1, answered("a", "c"), finished(1, 0, "x" * 50 + "y" * 50)),
            Prune((2,), 3, 2),
            *turn(2, said("u2")),
            *compaction(None),
            Undo(2),
        ],
        ["assistant: a <c>", "tool: xxx\n[95 characters pruned]\nyy"],
    ),
    "a short result is not pruned": (
        [TurnStart(1), answered("a", "c"), finished(1, 0, "short"), Prune((2,), 3, 2)],
        ["assistant: a <c>", "tool: short"],
    ),
    "what no model sees is not in the context": (
        [
            SessionStart(1, "s"),
            Title("t"),
            NoteEvent("n"),
            Unknown("k", b"{}"),
            RequestHeader("generic", "m"),
        ],
        [],
    ),
}


@pytest.mark.parametrize("case", FOLDS)
def test_fold(case: str) -> None:
    bodies, expected = FOLDS[case]
    assert words_of(fold(bodies)) == expected


def test_addresses_and_origin_are_on_the_messages() -> None:
    context = fold([TurnStart(1), said("u"), AttemptStart(1, 1, 1), answered("a", "c"), finished(3, 0)])
    assert [(m.role, m.seq, m.answers, m.requests, m.provider, m.model) for m in context.messages] == [
        ("user", 1, None, 0, None, None),
        ("assistant", 3, None, 1, "generic", "m"),
        ("tool", 4, (3, 0), 1, None, None),
    ]


def test_unanswered_calls_say_whether_they_were_started() -> None:
    context = fold(
        [TurnStart(1), answered("a", "x", "y", "z"), ToolCallStarted(1, 1, "y", "read"), finished(1, 0)]
    )
    assert [(seq, position, call.id, started) for seq, position, call, started in context.unanswered] == [
        (1, 1, "y", True),
        (1, 2, "z", False),
    ]


def test_a_compaction_forgets_the_calls_it_folds_away() -> None:
    assert fold([TurnStart(1), answered("a", "x"), *compaction(None)]).unanswered == []


def test_turn_step_and_attempt_are_counted() -> None:
    context = fold(
        [TurnStart(1), TurnEnd(1, "completed"), TurnStart(2), StepStart(2, 1), AttemptStart(2, 1, 1)]
    )
    assert (context.turn, context.step, context.attempt, context.open_turn, context.open_step) == (
        2,
        1,
        1,
        True,
        True,
    )
    context.apply(Event(9, 9, StepEnd(2, 1)))
    context.apply(Event(10, 10, TurnEnd(2, "completed")))
    assert (context.turn, context.step, context.open_turn, context.open_step) == (2, 1, False, False)
    assert context.open_attempt is None


def test_failed_attempts_and_summaries_are_billed() -> None:
    overloaded = failure("OVERLOADED", "busy")
    context = fold(
        [
            TurnStart(1),
            StepStart(1, 1),
            AttemptStart(1, 1, 1),
            AttemptFailed(overloaded, Usage(input_tokens=10, output_tokens=1)),
            AttemptStart(1, 1, 2),
            answered("a", usage=Usage(input_tokens=20, output_tokens=2)),
            CompactionStart("k", "manual"),
            CompactionSummary("k", text("S"), Usage(input_tokens=30, output_tokens=3)),
        ]
    )
    assert context.usage == Usage(input_tokens=60, output_tokens=6)
    assert (context.last_usage, context.measured) == (Usage(input_tokens=20, output_tokens=2), 1)


def test_a_usage_of_zero_is_no_anchor() -> None:
    real = Usage(input_tokens=20, output_tokens=2)
    context = fold([TurnStart(1), answered("a", usage=real), answered("b", usage=Usage())])
    assert (context.last_usage, context.measured) == (real, 1)


def test_another_header_makes_the_count_void() -> None:
    real = Usage(input_tokens=20, output_tokens=2)
    log: list[Body] = [RequestHeader("generic", "m"), TurnStart(1), answered("a", usage=real)]
    assert fold(log).last_usage == real
    assert fold([*log, RequestHeader("generic", "m", base_url="http://other")]).last_usage == real
    assert fold([*log, RequestHeader("generic", "m", system="new")]).last_usage is None


OVERFLOW = failure("CONTEXT_WINDOW_EXCEEDED", "too long")
NAMED = failure(
    "CONTEXT_WINDOW_EXCEEDED", "too long", provider_message="prompt is too long: 9 tokens > 700 maximum"
)
WINDOWS: dict[str, tuple[list[Body], dict[tuple[str, str], int]]] = {
    "a refusal teaches less than what was refused": (
        [AttemptStart(1, 1, 1, input_estimate=1_000), AttemptFailed(OVERFLOW)],
        {("generic", "m"): 850},
    ),
    "a limit that is named is taken": (
        [AttemptStart(1, 1, 1, input_estimate=1_000), AttemptFailed(NAMED)],
        {("generic", "m"): 700},
    ),
    "the smallest counts": (
        [
            AttemptStart(1, 1, 1, input_estimate=800),
            AttemptFailed(OVERFLOW),
            AttemptStart(1, 1, 2, input_estimate=1_000),
            AttemptFailed(OVERFLOW),
        ],
        {("generic", "m"): 680},
    ),
    "a larger request that goes through takes it back": (
        [
            AttemptStart(1, 1, 1, input_estimate=1_000),
            AttemptFailed(OVERFLOW),
            answered("a", usage=Usage(input_tokens=900)),
        ],
        {},
    ),
    "other failures teach nothing": (
        [AttemptStart(1, 1, 1, input_estimate=1_000), AttemptFailed(failure("OVERLOADED", "busy"))],
        {},
    ),
}


@pytest.mark.parametrize(("bodies", "windows"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows_are_learned(bodies: list[Body], windows: dict[tuple[str, str], int]) -> None:
    assert fold([RequestHeader("generic", "m"), TurnStart(1), *bodies]).windows == windows


def test_retries_are_those_of_the_open_step() -> None:
    log: list[Body] = [TurnStart(1), StepStart(1, 1), RetryScheduled(1, "OVERLOADED", 500), RetryStarted(1)]
    state = fold(log).retries
    assert state is not None
    assert (state.retry, state.code, state.delay_ms, state.scheduled_ms, state.started) == (
        1,
        "OVERLOADED",
        500,
        1002,
        True,
    )
    assert fold([*log, StepEnd(1, 1)]).retries is None


def test_queued_inputs_wait_until_they_are_taken() -> None:
    first, second = (InputQueued(name, text(name), "steer") for name in "ab")
    log: list[Body] = [TurnStart(1), first, second, InputTaken("a")]
    assert fold(log).queued == {"b": second}
    assert fold([*log, said("b")]).queued == {}


def test_a_rung_is_remembered_after_it_succeeded_and_until_a_compaction() -> None:
    log: list[Body] = [said("u"), Recovery("strict", provider="generic", model="m")]
    assert fold(log).recovered == {}
    log.append(Recovery("strict", provider="generic", model="m", succeeded=True))
    assert fold(log).recovered == {("generic", "m"): "strict"}
    assert fold([*log, *compaction(None)]).recovered == {}


def test_the_epoch_counts_changes_of_what_stood_before() -> None:
    context = fold(TWO_TURNS)
    assert context.epoch == 0
    for body in (*compaction(None), Clear(), Undo(1)):
        context.apply(Event(50, 50, body))
    assert context.epoch == 3


BODIES = st.one_of(
    st.sampled_from(["u1", "u2"]).map(said),
    st.lists(st.sampled_from("ab"), max_size=2).map(lambda calls: answered("a", *calls)),
    st.builds(finished, st.integers(0, 12), st.integers(0, 2)),
    st.builds(TurnStart, st.integers(1, 4)),
    st.builds(TurnEnd, st.integers(1, 4), st.just("completed")),
    st.builds(AttemptStart, st.just(1), st.just(1), st.just(1)),
    st.builds(CompactionStart, st.just("k"), st.just("manual"), st.none() | st.integers(0, 20)),
    st.builds(CompactionSummary, st.just("k"), st.sampled_from([text("S"), text(" ")])),
    st.builds(CompactionEnd, st.just("k"), st.booleans()),
    st.builds(LegacyCompaction, st.just(text("OLD")), st.integers(0, 6)),
    st.builds(Prune, st.lists(st.integers(0, 12), max_size=2).map(tuple), st.just(1), st.just(1)),
    st.builds(Undo, st.integers(1, 4)),
    st.just(Clear()),
)


@given(st.lists(BODIES, max_size=25))
@settings(deadline=None)
def test_the_context_after_each_event_is_the_fold_of_the_prefix(bodies: list[Body]) -> None:
    context = Context()
    for seq, body in enumerate(bodies):
        context.apply(Event(seq, 1000 + seq, body))
        again = fold(bodies[: seq + 1])
        assert list(context.messages) == list(again.messages)
        assert context.unanswered == again.unanswered
        assert (context.usage, context.turn, context.epoch) == (again.usage, again.turn, again.epoch)


@given(st.lists(BODIES, max_size=25))
@settings(deadline=None)
def test_messages_only_grow_at_the_end_within_an_epoch(bodies: list[Body]) -> None:
    context = Context()
    before, epoch = [], 0
    for seq, body in enumerate(bodies):
        context.apply(Event(seq, 1000 + seq, body))
        now = list(context.messages)
        if context.epoch == epoch:
            assert now[: len(before)] == before
        before, epoch = now, context.epoch


def test_every_kind_of_event_has_its_place_in_the_fold() -> None:
    assert set(_FOLDS) == {*KINDS.values(), Unknown}


def test_what_a_log_holds_is_not_followed_by_the_collector_of_garbage() -> None:
    """Such values are frozen and of JSON: they are in no cycle, and there may be hundreds of thousands."""
    for kind in (*KINDS.values(), Event, Message, Entry, Usage, *get_args(Block)):
        assert not kind.__struct_config__.gc, kind

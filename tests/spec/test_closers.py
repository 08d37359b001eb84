"""What an interruption left open is closed, for every place at which it can happen."""

import pytest

from lockstitch.schema.blocks import Reasoning, Text, ToolCall
from lockstitch.schema.events import (
    AssistantDelta,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    CompactionCall,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    InputQueued,
    OutputCount,
    RequestHeader,
    RetryScheduled,
    SessionStart,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage
from lockstitch.session.closers import KEPT_CHARS_MAX, NOT_STARTED, OUTCOME_UNKNOWN, closers
from lockstitch.session.gate import LogState
from lockstitch.session.intake import admit
from lockstitch.testing.session_samples import a_tool_turn, every_kind
from lockstitch.wire.jsonl import RECORD_MAX_BYTES

STEP: list[Body] = [SessionStart(1, "s"), TurnStart(1), StepStart(1, 1)]
ATTEMPT: list[Body] = [*STEP, AttemptStart(1, 1, 1, input_estimate=70)]
CALL = AssistantMessage("m", (ToolCall("a", "read", "{}"), ToolCall("b", "list", "{}")), "tool_calls")
ENDS: list[Body] = [StepEnd(1, 1), TurnEnd(1, "interrupted")]
LOST = failure(
    "ABORTED", "the session was interrupted before the model had said anything; continue to ask again"
)


def guess(output: int) -> Usage:
    return Usage(70, output, estimated=True)


def lost(position: int, call_id: str, *, started: bool) -> ToolFinished:
    text = OUTCOME_UNKNOWN if started else NOT_STARTED
    outcome = "unknown" if started else "not_started"
    return ToolFinished(4, position, call_id, (Text(text),), outcome, is_error=True)


CASES: dict[str, tuple[list[Body], list[Body]]] = {
    "nothing is open": ([SessionStart(1, "s")], []),
    "a turn": ([SessionStart(1, "s"), TurnStart(1)], [TurnEnd(1, "interrupted")]),
    "a step": (STEP, ENDS),
    "a retry that waits is not carried over": ([*STEP, RetryScheduled(1, "SERVER", 9)], ENDS),
    "an attempt that showed nothing failed": (ATTEMPT, [AttemptFailed(LOST, guess(0)), *ENDS]),
    "an attempt that showed only blanks failed, and is billed": (
        [*ATTEMPT, AssistantDelta(0, "text", " \n ")],
        [AttemptFailed(LOST, guess(1)), *ENDS],
    ),
    "what an attempt showed is kept, by block, with the model that said it": (
        [
            SessionStart(1, "s"),
            RequestHeader("generic", "m"),
            *ATTEMPT[1:],
            AssistantDelta(0, "reasoning", "hm"),
            AssistantDelta(1, "text", "half "),
            AssistantDelta(1, "text", "a sen"),
        ],
        [
            AssistantMessage(
                "interrupted-4",
                (Reasoning("hm"), Text("half a sen")),
                "interrupted",
                "generic",
                "m",
                guess(4),
            ),
            *ENDS,
        ],
    ),
    "a CJK character is a token": (
        [*ATTEMPT, AssistantDelta(0, "text", "你好吗")],
        [AssistantMessage("interrupted-3", (Text("你好吗"),), "interrupted", usage=guess(3)), *ENDS],
    ),
    "a call without an intent was not started": (
        [*ATTEMPT, CALL],
        [lost(0, "a", started=False), lost(1, "b", started=False), *ENDS],
    ),
    "a call with one has an unknown outcome": (
        [*ATTEMPT, CALL, ToolCallStarted(4, 1, "b", "list")],
        [lost(0, "a", started=False), lost(1, "b", started=True), *ENDS],
    ),
    "an answered call stays answered": (
        [*ATTEMPT, CALL, ToolCallStarted(4, 1, "b", "list"), ToolFinished(4, 1, "b", (), "done")],
        [lost(0, "a", started=False), *ENDS],
    ),
    "a compaction is not applied": (
        [SessionStart(1, "s"), CompactionStart("c", "manual")],
        [CompactionEnd("c", applied=False)],
    ),
    "a compaction's call is billed by its estimate, beside those before it": (
        [
            SessionStart(1, "s"),
            CompactionStart("c", "manual"),
            CompactionCall("c", 900),
            CompactionCall("c", 900, spent=Usage(850, 2, cache_read_tokens=50)),
        ],
        [CompactionEnd("c", applied=False, usage=Usage(1_750, 2, cache_read_tokens=50, estimated=True))],
    ),
    "what the last call of a compaction has written is billed too": (
        [
            SessionStart(1, "s"),
            CompactionStart("c", "manual"),
            CompactionCall("c", 900),
            OutputCount(7_000),
            CompactionCall("c", 800, spent=Usage(850, 2)),
            OutputCount(30),
            OutputCount(61),
        ],
        [CompactionEnd("c", applied=False, usage=Usage(1_650, 23, estimated=True))],
    ),
    "arguments that no delta holds are billed beside what was shown": (
        [*ATTEMPT, AssistantDelta(0, "text", "half a sen"), OutputCount(6_000)],
        [
            AssistantMessage("interrupted-3", (Text("half a sen"),), "interrupted", usage=guess(2_004)),
            *ENDS,
        ],
    ),
    "an attempt that only wrote arguments failed, and is billed": (
        [*ATTEMPT, OutputCount(6_000)],
        [AttemptFailed(LOST, guess(2_000)), *ENDS],
    ),
    "a compaction's summary has told what it cost": (
        [
            SessionStart(1, "s"),
            CompactionStart("c", "manual"),
            CompactionCall("c", 900),
            CompactionSummary("c", (Text("short"),), Usage(880, 7)),
        ],
        [CompactionEnd("c", applied=False)],
    ),
    "queued input stays queued": ([SessionStart(1, "s"), InputQueued("q", (), "steer")], []),
}


@pytest.mark.parametrize(("bodies", "expected"), CASES.values(), ids=CASES)
def test_closes(bodies: list[Body], expected: list[Body]) -> None:
    state = LogState()
    for body in bodies:
        admit(state, [body], 0)
    assert closers(state) == expected


@pytest.mark.parametrize("session", [a_tool_turn(1), every_kind()], ids=["a turn", "every kind"])
def test_wherever_a_session_stops_its_closers_pass_the_gate_and_leave_nothing_open(
    session: list[Body],
) -> None:
    for stop in range(len(session) + 1):
        state = LogState()
        for body in [SessionStart(1, "s"), *session[:stop]]:
            admit(state, [body], 0)
        closing = closers(state)
        assert closing == closers(state)
        admit(state, closing, 0)
        assert closers(state) == []
        admit(state, [TurnStart(state.turns + 1)], 0)


def test_what_no_record_would_hold_stays_in_the_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstitch.session.closers.KEPT_CHARS_MAX", 7)
    state = LogState()
    shown = [
        AssistantDelta(0, "reasoning", "abc"),
        AssistantDelta(1, "text", "defg"),
        AssistantDelta(1, "text", "hi"),
    ]
    for body in [*ATTEMPT, *shown, AssistantDelta(2, "text", "j")]:
        admit(state, [body], 0)
    closing = closers(state)
    assert closing[0] == AssistantMessage(
        "interrupted-3", (Reasoning("abc"), Text("defg")), "interrupted", usage=guess(4)
    )
    assert KEPT_CHARS_MAX * 6 <= RECORD_MAX_BYTES - 4 * 1024 * 1024


def test_the_model_is_told_whether_it_may_simply_call_again() -> None:
    assert "safe to make the same call again" in NOT_STARTED
    assert "first check what it did" in OUTCOME_UNKNOWN

"""The gate as a table: after these events, may this one follow?"""

import pytest

from lockstitch.schema.blocks import Opaque, Text, ToolCall, ToolResult
from lockstitch.schema.events import (
    KINDS,
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
    InputQueued,
    InputTaken,
    LegacyCompaction,
    NoteEvent,
    OutputCount,
    Prune,
    Recovery,
    RequestHeader,
    RetryScheduled,
    RetryStarted,
    SessionRepaired,
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
from lockstitch.schema.messages import ToolSpec
from lockstitch.session.gate import LogState, advance, refusal
from lockstitch.session.intake import admit
from lockstitch.testing.session_samples import every_kind

TEXT = (Text("x"),)
FAILURE = failure("SERVER", "x")

# Places in a log, each by the events that lead there. Record 0 is the session_start.
START: list[Body] = [SessionStart(1, "s")]
TURN: list[Body] = [*START, TurnStart(1)]
STEP: list[Body] = [*TURN, StepStart(1, 1)]
ATTEMPT: list[Body] = [*STEP, AttemptStart(1, 1, 1)]
CALL = AssistantMessage(
    "m", (ToolCall("a", "read", "{}"), ToolCall("a", "list", "{", invalid="cut")), "length"
)
CALLS: list[Body] = [*ATTEMPT, CALL]  # message 4
STARTED: list[Body] = [*CALLS, ToolCallStarted(4, 0, "a", "read")]
RETRY: list[Body] = [*ATTEMPT, AttemptFailed(FAILURE), RetryScheduled(1, "SERVER", 5)]
ANSWERED: list[Body] = [*ATTEMPT, AssistantMessage("m", TEXT, "stop")]
ENDED: list[Body] = [*ANSWERED, StepEnd(1, 1), TurnEnd(1, "completed")]
COMPACTING: list[Body] = [*ENDED, CompactionStart("c", "manual")]
SUMMED: list[Body] = [*COMPACTING, CompactionSummary("c", TEXT)]
QUEUED: list[Body] = [*START, InputQueued("q", TEXT, "steer")]


def denied(position: int = 0, call_id: str = "a", message_seq: int = 4) -> ToolFinished:
    return ToolFinished(message_seq, position, call_id, TEXT, "denied", is_error=True)


ACCEPTED: dict[str, tuple[list[Body], Body]] = {
    "a log begins with its start": ([], SessionStart(1, "s")),
    "the next version's start is for LogState.too_new to judge": ([], SessionStart(2, "s")),
    "a turn begins": (START, TurnStart(1)),
    "a turn ends without a step": (TURN, TurnEnd(1, "cancelled")),
    "a step begins": (TURN, StepStart(1, 1)),
    "a step ends without an attempt": (STEP, StepEnd(1, 1)),
    "a user speaks in a turn": (TURN, UserMessage("u", TEXT)),
    "a user may say nothing": (TURN, UserMessage("u", ())),
    "a user steers while tools run": (STARTED, UserMessage("u", TEXT, "steer")),
    "a user queues input at any time": (ATTEMPT, InputQueued("q", TEXT, "steer")),
    "queued input is taken": (QUEUED, InputTaken("q")),
    "queued input is dropped": (QUEUED, InputTaken("q", dropped=True)),
    "a request header without tools": (START, RequestHeader("p", "m")),
    "the first attempt": (STEP, AttemptStart(1, 1, 1)),
    "a second attempt after a failure": ([*ATTEMPT, AttemptFailed(FAILURE)], AttemptStart(1, 1, 2)),
    "a delta of an open attempt": (ATTEMPT, AssistantDelta(0, "text", "")),
    "an answer": (ATTEMPT, AssistantMessage("m", TEXT, "stop")),
    "an answer with two calls of one id": (ATTEMPT, CALL),
    "an answer with a block of another protocol": (
        ATTEMPT,
        AssistantMessage("m", (Opaque("x", {}),), "stop"),
    ),
    "an answer without anything": (ATTEMPT, AssistantMessage("m", (), "length")),
    "a failure": (ATTEMPT, AttemptFailed(FAILURE)),
    "a retry after a failure": ([*ATTEMPT, AttemptFailed(FAILURE)], RetryScheduled(1, "SERVER", 0)),
    "the retry that was scheduled": (RETRY, RetryStarted(1)),
    "an attempt though its retry was not announced": (RETRY, AttemptStart(1, 1, 2)),
    "a second call is started before the first": (
        [
            *CALLS[:-1],
            AssistantMessage("m", (ToolCall("a", "read", "{}"), ToolCall("b", "list", "{}")), "tool_calls"),
        ],
        ToolCallStarted(4, 1, "b", "list"),
    ),
    "a call that ran is done": (STARTED, ToolFinished(4, 0, "a", TEXT, "done")),
    "a call that ran has an unknown outcome": (
        STARTED,
        ToolFinished(4, 0, "a", (), "unknown", is_error=True),
    ),
    "a call that did not run is denied": (CALLS, denied()),
    "an invalid call is answered": (CALLS, ToolFinished(4, 1, "a", TEXT, "invalid", is_error=True)),
    "an unknown tool is answered": (CALLS, ToolFinished(4, 0, "a", TEXT, "unknown_tool", is_error=True)),
    "an intent whose tool never came to run": (STARTED, ToolFinished(4, 0, "a", TEXT, "not_started")),
    "an approval of an open call": (CALLS, Approval(4, 0, "asked")),
    "a step ends when all calls are answered": ([*CALLS, denied(), denied(1)], StepEnd(1, 1)),
    "a compaction between turns": (ENDED, CompactionStart("c", "manual", keep_from_seq=4)),
    "a compaction in a step, after an overflow": (RETRY, CompactionStart("c", "overflow")),
    "a call for its summary": (COMPACTING, CompactionCall("c", 90)),
    "what a call for it has written": ([*COMPACTING, CompactionCall("c", 90)], OutputCount(0)),
    "what an attempt has written beside its text": (ATTEMPT, OutputCount(60)),
    "a second call for its summary": ([*COMPACTING, CompactionCall("c", 90)], CompactionCall("c", 90)),
    "its summary": (COMPACTING, CompactionSummary("c", TEXT)),
    "its end with a summary": (SUMMED, CompactionEnd("c", applied=True)),
    "its end without one": (COMPACTING, CompactionEnd("c", applied=False, failure=FAILURE)),
    "a log of an older agent was compacted": (START, LegacyCompaction(TEXT, 0)),
    "results are pruned": (ENDED, Prune((3,), 0, 0)),
    "the last turn is undone": (ENDED, Undo(1)),
    "everything is cleared": (ENDED, Clear()),
    "a title, even none": (START, Title("")),
    "a recovery": (START, Recovery("strict")),
    "a repair": (ATTEMPT, SessionRepaired(torn_bytes=3)),
    "an extension's note": (ATTEMPT, NoteEvent("x", [1, None])),
    "the next turn": (ENDED, TurnStart(2)),
}

REFUSED: dict[str, tuple[list[Body], Body, str]] = {
    "nothing precedes the start": ([], TurnStart(1), "session_start"),
    "a second start": (START, SessionStart(1, "s"), "at its beginning"),
    "a start without an id": ([], SessionStart(1, ""), "id is empty"),
    "a format below the first": ([], SessionStart(0, "s"), "format 0"),
    "a parent without an id": ([], SessionStart(1, "s", parent=""), "parent"),
    "a turn out of order": (START, TurnStart(2), "turn 2 follows turn 0"),
    "a turn number again": (ENDED, TurnStart(1), "turn 1 follows turn 1"),
    "a turn in a turn": (TURN, TurnStart(2), "turn 1 is still open"),
    "a turn during a compaction": (COMPACTING, TurnStart(2), "compaction 'c' is still open"),
    "the end of no turn": (START, TurnEnd(1, "completed"), "no turn is open"),
    "the end of another turn": (TURN, TurnEnd(2, "completed"), "end of turn 2"),
    "a turn's end with an open step": (STEP, TurnEnd(1, "completed"), "step 1 is still open"),
    "a step outside of turns": (START, StepStart(1, 1), "no turn is open"),
    "a step of another turn": (TURN, StepStart(2, 1), "a step of turn 2"),
    "a step out of order": (TURN, StepStart(1, 2), "step 2 follows step 0"),
    "a step in a step": (STEP, StepStart(1, 2), "step 1 is still open"),
    "the end of no step": (TURN, StepEnd(1, 1), "no step is open"),
    "the end of another step": (STEP, StepEnd(1, 2), "end of step 2"),
    "a step's end with an open attempt": (ATTEMPT, StepEnd(1, 1), "attempt 1 of step 1 is still open"),
    "a step's end with an open call": (CALLS, StepEnd(1, 1), "call 0 of message 4 (read) has no result"),
    "a user outside of turns": (START, UserMessage("u", TEXT), "no turn is open"),
    "a user message without an id": (TURN, UserMessage("", TEXT), "id is empty"),
    "a user message without an origin": (TURN, UserMessage("u", TEXT, ""), "origin is empty"),
    "a user who calls tools": (
        TURN,
        UserMessage("u", (ToolCall("a", "b", ""),)),
        "only an assistant_message",
    ),
    "a user who returns results": (TURN, UserMessage("u", (ToolResult("a", ()),)), "events of their own"),
    "input without an id": (START, InputQueued("", TEXT, "steer"), "id is empty"),
    "input queued twice": (QUEUED, InputQueued("q", TEXT, "steer"), "queued already"),
    "input that nobody queued": (START, InputTaken("q"), "no input 'q'"),
    "input taken twice": ([*QUEUED, InputTaken("q")], InputTaken("q"), "no input 'q'"),
    "a header without a provider": (START, RequestHeader("", "m"), "empty"),
    "a header without a model": (START, RequestHeader("p", ""), "empty"),
    "a tool without a name": (START, RequestHeader("p", "m", tools=(ToolSpec("", "", {}),)), "name is empty"),
    "two tools of one name": (
        START,
        RequestHeader("p", "m", tools=(ToolSpec("a", "", {}),) * 2),
        "same name",
    ),
    "an attempt outside of steps": (TURN, AttemptStart(1, 1, 1), "no step is open"),
    "an attempt of another step": (STEP, AttemptStart(1, 2, 1), "an attempt of step 2"),
    "an attempt out of order": (STEP, AttemptStart(1, 1, 2), "attempt 2 follows attempt 0"),
    "an attempt in an attempt": (ATTEMPT, AttemptStart(1, 1, 2), "attempt 1 of step 1 is still open"),
    "an attempt before calls are answered": (CALLS, AttemptStart(1, 1, 2), "no result yet"),
    "a negative estimate": (STEP, AttemptStart(1, 1, 1, input_estimate=-1), "negative"),
    "a rung without a name": (STEP, AttemptStart(1, 1, 1, rung=""), "rung"),
    "a delta without an attempt": (STEP, AssistantDelta(0, "text", "x"), "no attempt is open"),
    "a delta with a negative index": (ATTEMPT, AssistantDelta(-1, "text", "x"), "negative"),
    "output of no model call": (STEP, OutputCount(60), "no model call is open"),
    "output of a compaction that asked nobody": (COMPACTING, OutputCount(60), "no model call is open"),
    "output behind the summary": (
        [*COMPACTING, CompactionCall("c", 90), CompactionSummary("c", TEXT)],
        OutputCount(60),
        "no model call is open",
    ),
    "output of less than nothing": (ATTEMPT, OutputCount(-1), "negative"),
    "an answer without an attempt": (STEP, AssistantMessage("m", TEXT, "stop"), "no attempt is open"),
    "an answer without an id": (ATTEMPT, AssistantMessage("", TEXT, "stop"), "id is empty"),
    "a call without an id": (
        ATTEMPT,
        AssistantMessage("m", (ToolCall("", "b", ""),), "stop"),
        "id of call 0",
    ),
    "a call without a name": (
        ATTEMPT,
        AssistantMessage("m", (ToolCall("a", "", ""),), "stop"),
        "name of call 0",
    ),
    "an answer that returns results": (ATTEMPT, AssistantMessage("m", (ToolResult("a", ()),), "stop"), "own"),
    "a failure without an attempt": (STEP, AttemptFailed(FAILURE), "no attempt is open"),
    "a retry outside of steps": (TURN, RetryScheduled(1, "SERVER", 0), "no step is open"),
    "a retry of an open attempt": (ATTEMPT, RetryScheduled(1, "SERVER", 0), "still open"),
    "a retry out of order": (STEP, RetryScheduled(2, "SERVER", 0), "retry 2 follows retry 0"),
    "a negative delay": (STEP, RetryScheduled(1, "SERVER", -1), "negative"),
    "a retry that was not scheduled": (STEP, RetryStarted(1), "no retry is scheduled"),
    "a retry that starts twice": ([*RETRY, RetryStarted(1)], RetryStarted(1), "no retry is scheduled"),
    "another retry than the scheduled one": (RETRY, RetryStarted(2), "retry 2 starts"),
    "an intent for no call": (ANSWERED, ToolCallStarted(4, 0, "a", "read"), "no open call 0"),
    "an intent for another id": (CALLS, ToolCallStarted(4, 0, "b", "read"), "not read with 'b'"),
    "an intent for another name": (CALLS, ToolCallStarted(4, 0, "a", "write"), "not write"),
    "a second intent": (STARTED, ToolCallStarted(4, 0, "a", "read"), "was started by record 5"),
    "an intent for an invalid call": (CALLS, ToolCallStarted(4, 1, "a", "list"), "never run it"),
    "a result of no call": (ANSWERED, denied(), "no open call 0"),
    "a result of another message": (CALLS, denied(message_seq=3), "message 3 has no open call"),
    "a result with another id": (CALLS, denied(call_id="b"), "names 'b'"),
    "a result with an empty id": (CALLS, denied(call_id=""), "names ''"),
    "a second result": ([*CALLS, denied()], denied(), "no open call 0"),
    "a result without an intent": (CALLS, ToolFinished(4, 0, "a", TEXT, "done"), "needs the intent first"),
    "an unknown outcome without one": (CALLS, ToolFinished(4, 0, "a", TEXT, "unknown"), "intent first"),
    "a cancelled run without one": (CALLS, ToolFinished(4, 0, "a", TEXT, "cancelled"), "intent first"),
    "a negative duration": (STARTED, ToolFinished(4, 0, "a", TEXT, "done", duration_ms=-1), "negative"),
    "an approval of no call": (ANSWERED, Approval(4, 0, "allowed"), "no open call"),
    "a compaction without an id": (ENDED, CompactionStart("", "manual"), "id is empty"),
    "a compaction in a compaction": (COMPACTING, CompactionStart("d", "manual"), "'c' is still open"),
    "a compaction between call and result": (CALLS, CompactionStart("c", "overflow"), "no result yet"),
    "a compaction during an attempt": (ATTEMPT, CompactionStart("c", "overflow"), "still open"),
    "a tail from the future": (ENDED, CompactionStart("c", "manual", keep_from_seq=99), "record 99"),
    "a prompt to keep that does not exist": (
        ENDED,
        CompactionStart("c", "manual", keep_prompts=(99,)),
        "does not exist",
    ),
    "a prompt kept to a negative length": (ENDED, CompactionStart("c", "manual", head_chars=-1), "negative"),
    "a call for no compaction": (ENDED, CompactionCall("c", 9), "no compaction 'c'"),
    "a call for another one": (COMPACTING, CompactionCall("d", 9), "no compaction 'd'"),
    "a call behind the summary": (SUMMED, CompactionCall("c", 9), "summary already"),
    "a call of less than nothing": (COMPACTING, CompactionCall("c", -9), "negative"),
    "a summary of no compaction": (ENDED, CompactionSummary("c", TEXT), "no compaction 'c'"),
    "a summary of another one": (COMPACTING, CompactionSummary("d", TEXT), "no compaction 'd'"),
    "a second summary": (SUMMED, CompactionSummary("c", TEXT), "summary already"),
    "a summary with calls": (
        COMPACTING,
        CompactionSummary("c", (ToolCall("a", "b", ""),)),
        "only an assistant",
    ),
    "the end of no compaction": (ENDED, CompactionEnd("c", applied=False), "no compaction 'c'"),
    "an end that applies nothing": (COMPACTING, CompactionEnd("c", applied=True), "no summary"),
    "a negative count": (START, LegacyCompaction(TEXT, -1), "negative"),
    "pruning what does not exist": (ENDED, Prune((99,), 0, 0), "does not exist"),
    "pruning to a negative length": (ENDED, Prune((1,), -1, 0), "negative"),
    "undoing a turn that never was": (ENDED, Undo(2), "turn 2 cannot be undone"),
    "undoing in a turn": (TURN, Undo(1), "turn 1 is still open"),
    "clearing in a turn": (TURN, Clear(), "turn 1 is still open"),
    "a recovery without a rung": (START, Recovery(""), "rung"),
    "a repair of less than nothing": (START, SessionRepaired(defects=-1), "negative"),
    "a note without a name": (START, NoteEvent(""), "name is empty"),
}


def at(bodies: list[Body]) -> LogState:
    state = LogState()
    for body in bodies:
        admit(state, [body], 0)
    return state


@pytest.mark.parametrize(("place", "body"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(place: list[Body], body: Body) -> None:
    assert refusal(at(place), body) is None


@pytest.mark.parametrize(("place", "body", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(place: list[Body], body: Body, reason: str) -> None:
    state = at(place)
    before = state.snapshot()
    assert reason in (refusal(state, body) or "accepted")
    assert state == before


def test_both_tables_and_the_sample_session_hold_every_kind() -> None:
    """A kind whose rules nobody wrote down fails here."""
    no_rules = {Title}
    assert {type(body) for _, body in ACCEPTED.values()} == set(KINDS.values())
    assert {type(body) for _, body, _ in REFUSED.values()} | no_rules == set(KINDS.values())
    assert {type(body) for body in every_kind()} | {SessionStart} == set(KINDS.values())


def test_an_unknown_kind_passes_and_is_left_to_the_version_check() -> None:
    state = at(START)
    body = Unknown("later", b"{}")
    assert refusal(state, body) is None
    from lockstitch.schema.events import Event

    advance(state, Event(1, 0, body, needed=False))
    assert state.too_new is None
    advance(state, Event(2, 0, body, needed=True))
    assert "'later'" in (state.too_new or "")


def test_memory_is_for_what_is_open_not_for_what_was() -> None:
    state = at(START)
    for turn in range(1, 40):
        for body in [
            TurnStart(turn),
            StepStart(turn, 1),
            AttemptStart(turn, 1, 1),
            AssistantDelta(0, "text", "x" * 100),
            AssistantMessage(f"m{turn}", (ToolCall("a", "read", "{}"),), "tool_calls"),
            denied(message_seq=state.next_seq + 4),
            StepEnd(turn, 1),
            TurnEnd(turn, "completed"),
        ]:
            admit(state, [body], 0)
    assert (state.calls, state.inputs, state.open_attempt, state.turns) == ({}, {}, None, 39)

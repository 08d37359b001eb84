"""The gate: one pure function that says whether an event may follow a log, for the writer and the reader.

The writer asks ``refusal`` before a byte is written; the reader asks it of what it reads, and marks what the
writer should not have written. Both fold with ``advance``.
"""

from collections.abc import Callable
from typing import Any, Final

from lockstitch.schema.blocks import Block, ToolCall, ToolResult
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

from .log_state import LogState, advance, calls_in

__all__ = ["UNSTARTED_OUTCOMES", "LogState", "advance", "refusal"]

UNSTARTED_OUTCOMES: Final = frozenset({"not_started", "invalid", "unknown_tool", "denied"})
"""Outcomes of a call that needs no recorded intent, because no tool ran."""


def refusal(state: LogState, body: Body) -> str | None:
    """Why ``body`` may not be the next event after ``state``; None if it may.

    The text names the rule and the place. ``body`` has been decoded, so the types of its fields are right.
    """
    if state.start is None and not isinstance(body, SessionStart):
        return "the log does not begin with a session_start"
    check: Callable[[LogState, Any], str | None] | None = CHECKS.get(type(body))
    return "not an event body" if check is None else check(state, body)


# --- what is open -----------------------------------------------------------------------------------------


def _outside(state: LogState) -> str | None:
    """Why nothing that belongs between turns can come now."""
    if state.turn_open:
        return f"turn {state.turn} is still open"
    return _settled(state)


def _settled(state: LogState) -> str | None:
    """Why what is open cannot be closed over, or left behind."""
    if state.open_attempt is not None:
        return f"attempt {state.attempt} of step {state.step} is still open"
    if state.calls:
        (message_seq, position), call = next(iter(state.calls.items()))
        return (
            f"call {position} of message {message_seq} ({call.name}) has no result yet; "
            f"{len(state.calls)} to answer"
        )
    return None


def _in_step(state: LogState) -> str | None:
    return None if state.step_open else "no step is open"


def _no_compaction(state: LogState) -> str | None:
    return None if state.compaction is None else f"compaction {state.compaction!r} is still open"


# --- checks, one a kind -----------------------------------------------------------------------------------


def _session_start(state: LogState, body: SessionStart) -> str | None:
    if state.start is not None and body.format <= state.start.format:
        return "a log has one session_start, at its beginning, and another only where its format is raised"
    if state.start is None and state.next_seq > 0:
        return "a log has one session_start, at its beginning"
    if not body.id:
        return "the session's id is empty"
    if body.format < 1:
        return f"format {body.format} does not exist"
    return "the parent's id is empty" if body.parent == "" else None


def _turn_start(state: LogState, body: TurnStart) -> str | None:
    if body.turn != state.turns + 1:
        return f"turn {body.turn} follows turn {state.turns}"
    return _outside(state) or _no_compaction(state)


def _turn_end(state: LogState, body: TurnEnd) -> str | None:
    if not state.turn_open:
        return "no turn is open"
    if body.turn != state.turn:
        return f"the end of turn {body.turn} in turn {state.turn}"
    if state.step_open:
        return f"step {state.step} is still open"
    return _settled(state) or _no_compaction(state)


def _step_start(state: LogState, body: StepStart) -> str | None:
    if not state.turn_open:
        return "no turn is open"
    if body.turn != state.turn:
        return f"a step of turn {body.turn} in turn {state.turn}"
    if state.step_open:
        return f"step {state.step} is still open"
    if body.step != state.step + 1:
        return f"step {body.step} follows step {state.step}"
    return _settled(state) or _no_compaction(state)


def _step_end(state: LogState, body: StepEnd) -> str | None:
    if not state.step_open:
        return "no step is open"
    if (body.turn, body.step) != (state.turn, state.step):
        return f"the end of step {body.step} of turn {body.turn} in step {state.step} of turn {state.turn}"
    return _settled(state) or _no_compaction(state)


def _user_message(state: LogState, body: UserMessage) -> str | None:
    if not body.id:
        return "the message's id is empty"
    if not body.origin:
        return "the message's origin is empty"
    if not state.turn_open:
        return "no turn is open"
    return _no_exchange(body.content)


def _input_queued(state: LogState, body: InputQueued) -> str | None:
    if not body.id:
        return "the input's id is empty"
    if body.id in state.inputs:
        return f"input {body.id!r} is queued already"
    return _no_exchange(body.content)


def _input_taken(state: LogState, body: InputTaken) -> str | None:
    return None if body.id in state.inputs else f"no input {body.id!r} is queued"


def _request_header(state: LogState, body: RequestHeader) -> str | None:
    if not body.provider or not body.model:
        return "the provider's or the model's name is empty"
    names = [tool.name for tool in body.tools]
    if not all(names):
        return "a tool's name is empty"
    return None if len(set(names)) == len(names) else "two tools have the same name"


def _attempt_start(state: LogState, body: AttemptStart) -> str | None:
    if (problem := _in_step(state) or _settled(state)) is not None:
        return problem
    if (body.turn, body.step) != (state.turn, state.step):
        return f"an attempt of step {body.step} of turn {body.turn} in step {state.step} of turn {state.turn}"
    if body.attempt != state.attempt + 1:
        return f"attempt {body.attempt} follows attempt {state.attempt}"
    if body.input_estimate < 0:
        return "the estimate of the input is negative"
    return None if body.rung else "the rung's name is empty"


def _assistant_delta(state: LogState, body: AssistantDelta) -> str | None:
    if state.open_attempt is None:
        return "no attempt is open"
    return None if body.index >= 0 else "the block's index is negative"


def _output_count(state: LogState, body: OutputCount) -> str | None:
    if state.open_attempt is None and state.compaction_spent is None:
        return "no model call is open"
    return "the number of bytes is negative" if body.bytes < 0 else None


def _assistant_message(state: LogState, body: AssistantMessage) -> str | None:
    if not body.id:
        return "the message's id is empty"
    if state.open_attempt is None:
        return "no attempt is open"
    for position, call in enumerate(calls_in(body.content)):
        if not call.id:
            return f"the id of call {position} is empty"
        if not call.name:
            return f"the name of call {position} is empty"
    return _no_results(body.content)


def _attempt_failed(state: LogState, body: AttemptFailed) -> str | None:
    return "no attempt is open" if state.open_attempt is None else None


def _retry_scheduled(state: LogState, body: RetryScheduled) -> str | None:
    if (problem := _in_step(state)) is not None:
        return problem
    if state.open_attempt is not None:
        return f"attempt {state.attempt} of step {state.step} is still open"
    if body.retry != state.retry + 1:
        return f"retry {body.retry} follows retry {state.retry}"
    return None if body.delay_ms >= 0 else "the delay is negative"


def _retry_started(state: LogState, body: RetryStarted) -> str | None:
    if not state.step_open or not state.retry_waiting:
        return "no retry is scheduled"
    if body.retry != state.retry:
        return f"retry {body.retry} starts where retry {state.retry} is scheduled"
    return None


def _tool_call(state: LogState, body: ToolCallStarted) -> str | None:
    call = state.calls.get((body.message_seq, body.position))
    if call is None:
        return f"message {body.message_seq} has no open call {body.position}"
    if (body.call_id, body.name) != (call.call_id, call.name):
        return (
            f"call {body.position} of message {body.message_seq} is {call.name} with the id "
            f"{call.call_id!r}, not {body.name} with {body.call_id!r}"
        )
    if call.started_seq is not None:
        return f"call {body.position} of message {body.message_seq} was started by record {call.started_seq}"
    if call.invalid is not None:
        return f"call {body.position} of message {body.message_seq} is invalid ({call.invalid}): never run it"
    return None


def _tool_result(state: LogState, body: ToolFinished) -> str | None:
    call = state.calls.get((body.message_seq, body.position))
    if call is None:
        return f"message {body.message_seq} has no open call {body.position} to answer"
    if body.call_id != call.call_id:
        return (
            f"the result names {body.call_id!r}, "
            f"but call {body.position} of message {body.message_seq} is {call.call_id!r}"
        )
    if call.started_seq is None and body.outcome not in UNSTARTED_OUTCOMES:
        return (
            f"the outcome {body.outcome!r} needs the intent first: "
            f"call {body.position} of message {body.message_seq} was never started"
        )
    return "the duration is negative" if (body.duration_ms or 0) < 0 else None


def _approval(state: LogState, body: Approval) -> str | None:
    if (body.message_seq, body.position) in state.calls:
        return None
    return f"message {body.message_seq} has no open call {body.position} to approve"


def _compaction_start(state: LogState, body: CompactionStart) -> str | None:
    if not body.id:
        return "the compaction's id is empty"
    if body.keep_from_seq is not None and not 0 <= body.keep_from_seq < state.next_seq:
        return f"the tail cannot begin at record {body.keep_from_seq}"
    if not all(0 <= seq < state.next_seq for seq in (*body.keep_prompts, *body.shorten)):
        return "a message to keep does not exist"
    if body.head_chars < 0 or body.tail_chars < 0:
        return "a length is negative"
    return _no_compaction(state) or _settled(state)


def _compaction_call(state: LogState, body: CompactionCall) -> str | None:
    if state.compaction is None or body.id != state.compaction:
        return f"no compaction {body.id!r} is open"
    if state.compaction_summed:
        return f"compaction {body.id!r} has its summary already"
    return "the estimate is negative" if body.input_estimate < 0 else None


def _compaction_summary(state: LogState, body: CompactionSummary) -> str | None:
    if state.compaction is None or body.id != state.compaction:
        return f"no compaction {body.id!r} is open"
    if state.compaction_summed:
        return f"compaction {body.id!r} has its summary already"
    return _no_exchange(body.content)


def _compaction_end(state: LogState, body: CompactionEnd) -> str | None:
    if state.compaction is None or body.id != state.compaction:
        return f"no compaction {body.id!r} is open"
    if body.applied and not state.compaction_summed:
        return f"compaction {body.id!r} has no summary to apply"
    return None


def _legacy_compaction(state: LogState, body: LegacyCompaction) -> str | None:
    return "the number of compacted messages is negative" if body.compacted_count < 0 else None


def _prune(state: LogState, body: Prune) -> str | None:
    if not all(0 <= seq < state.next_seq for seq in body.result_seqs):
        return "a result to prune does not exist"
    return None if body.head_chars >= 0 and body.tail_chars >= 0 else "a length is negative"


def _undo(state: LogState, body: Undo) -> str | None:
    if not 1 <= body.to_turn <= state.turns:
        return f"turn {body.to_turn} cannot be undone: there are {state.turns}"
    return _outside(state) or _no_compaction(state)


def _clear(state: LogState, body: Clear) -> str | None:
    return _outside(state) or _no_compaction(state)


def _recovery(state: LogState, body: Recovery) -> str | None:
    return None if body.rung else "the rung's name is empty"


def _session_repaired(state: LogState, body: SessionRepaired) -> str | None:
    counts = (body.torn_bytes, body.set_aside, body.missing, body.defects)
    return "a count is negative" if min(*counts, body.closed_calls, body.closed_attempts) < 0 else None


def _note(state: LogState, body: NoteEvent) -> str | None:
    return None if body.name else "the note's name is empty"


def _title(state: LogState, body: Title) -> str | None:
    return None  # any text; the empty one takes the title away


def _unknown(state: LogState, body: Unknown) -> str | None:
    return None  # a newer writer's; whether it may be continued is for LogState.too_new to say


def _no_results(content: tuple[Block, ...]) -> str | None:
    if any(type(block) is ToolResult for block in content):
        return "results are events of their own, not blocks of a message"
    return None


def _no_exchange(content: tuple[Block, ...]) -> str | None:
    if any(type(block) is ToolCall for block in content):
        return "only an assistant_message may hold a tool call"
    return _no_results(content)


CHECKS: Final[dict[type[Body], Callable[[LogState, Any], str | None]]] = {
    SessionStart: _session_start,
    TurnStart: _turn_start,
    TurnEnd: _turn_end,
    StepStart: _step_start,
    StepEnd: _step_end,
    UserMessage: _user_message,
    InputQueued: _input_queued,
    InputTaken: _input_taken,
    RequestHeader: _request_header,
    AttemptStart: _attempt_start,
    AssistantDelta: _assistant_delta,
    OutputCount: _output_count,
    AssistantMessage: _assistant_message,
    AttemptFailed: _attempt_failed,
    RetryScheduled: _retry_scheduled,
    RetryStarted: _retry_started,
    ToolCallStarted: _tool_call,
    ToolFinished: _tool_result,
    Approval: _approval,
    CompactionStart: _compaction_start,
    CompactionCall: _compaction_call,
    CompactionSummary: _compaction_summary,
    CompactionEnd: _compaction_end,
    LegacyCompaction: _legacy_compaction,
    Prune: _prune,
    Undo: _undo,
    Clear: _clear,
    Title: _title,
    Recovery: _recovery,
    SessionRepaired: _session_repaired,
    NoteEvent: _note,
    Unknown: _unknown,
}

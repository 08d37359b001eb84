"""What a log's writer and its reader must know of the events so far: the state behind the gate.

``advance`` takes constant time per event and keeps what is open, not what was. It also folds events that the
gate refuses, as a damaged log may hold them: openers that they miss are implied.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from lockstitch.schema.blocks import Block, ToolCall
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
    Event,
    InputQueued,
    InputTaken,
    OutputCount,
    RequestHeader,
    RetryScheduled,
    RetryStarted,
    SessionRepaired,
    SessionStart,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Unknown,
    UserMessage,
)
from lockstitch.schema.usage import Usage

from . import migration


@dataclass(slots=True)
class OpenCall:
    """A tool call that has no result yet."""

    call_id: str
    name: str
    invalid: str | None
    started_seq: int | None = None
    """Sequence number of its intent; None if no tool was started for it."""


@dataclass(slots=True)
class OpenAttempt:
    """A model call that has neither an answer nor a failure yet."""

    seq: int
    """Of its start."""
    input_estimate: int
    deltas: list[AssistantDelta] = field(default_factory=list)
    """What was shown, in order. Neighbours of one block may be joined."""
    unlogged_bytes: int = 0
    """Of UTF-8: what it wrote besides."""


@dataclass(slots=True)
class LogState:
    """What the gate and the closers must know of the events so far."""

    next_seq: int = 0
    time_ms: int = 0
    """Of the last event."""
    start: SessionStart | None = None
    """The first record, or the last that raised the format."""
    turn: int = 0
    """Number of the turn that is open, or was last."""
    turns: int = 0
    """Highest turn number so far; the next turn is ``turns + 1``."""
    turn_open: bool = False
    step: int = 0
    """Number of the last step of that turn."""
    step_open: bool = False
    attempt: int = 0
    """Number of the last attempt of that step."""
    open_attempt: OpenAttempt | None = None
    retry: int = 0
    """Number of the last retry scheduled in that step."""
    retry_waiting: bool = False
    calls: dict[tuple[int, int], OpenCall] = field(default_factory=dict)
    """Unanswered calls by (sequence number of their message, position among its calls), oldest first."""
    provider: str = ""
    """Of the last request_header."""
    model: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Mode of each queued input that was not taken yet, by id, oldest first."""
    compaction: str | None = None
    """Id of the open compaction."""
    compaction_summed: bool = False
    compaction_spent: Usage | None = None
    """What the open compaction has cost if it is never ended: its calls, of which the last is estimated."""
    compaction_bytes: int = 0
    """Of UTF-8: what the last of these calls has written, beside that."""
    defects: int = 0
    """Events so far that the gate refuses."""
    told_defects: int = 0
    """Defects that session_repaired events of this log have told of, and so on."""
    told_set_aside: int = 0
    told_missing: int = 0
    too_new: str | None = None
    """Why this version may not continue the log; None if it may."""

    def snapshot(self) -> "LogState":
        """A copy that later events do not change: to try several events before the first is taken."""
        other = copy(self)
        other.calls = {place: copy(call) for place, call in self.calls.items()}
        other.inputs = dict(self.inputs)
        if self.open_attempt is not None:
            other.open_attempt = copy(self.open_attempt)
            other.open_attempt.deltas = list(self.open_attempt.deltas)
        return other

    def restore(self, snapshot: "LogState") -> None:
        """Become the state that ``snapshot`` was taken of; the snapshot is used up."""
        for name in self.__slots__:
            setattr(self, name, getattr(snapshot, name))


def advance(state: LogState, event: Event) -> None:
    """Fold one event into ``state``, refused or not."""
    seq = event.seq
    if seq >= state.next_seq:
        state.next_seq = seq + 1
    state.time_ms = event.time_ms
    if event.defect is not None:
        state.defects += 1
    fold: Callable[[LogState, int, Any], None] | None = FOLDS.get(type(event.body))
    if fold is not None:
        fold(state, seq, event.body)
    elif event.needed and type(event.body) is Unknown and state.too_new is None:
        kind = event.body.stored_kind
        state.too_new = f"record {seq} is of the kind {kind!r}, which this version does not know"


def calls_in(content: tuple[Block, ...]) -> Iterator[ToolCall]:
    """The tool calls of a message in order; a call's position counts from 0 among these."""
    return (block for block in content if type(block) is ToolCall)


def _fold_session_start(state: LogState, seq: int, body: SessionStart) -> None:
    if state.start is None or body.format > state.start.format:
        state.start = body
    if body.format > migration.CURRENT and state.too_new is None:
        known = f"this version writes format {migration.CURRENT}"
        state.too_new = f"the log has format {body.format}, and {known}"


def _enter_turn(state: LogState, turn: int) -> None:
    if turn != state.turn or not state.turn_open:
        state.turn, state.turn_open = turn, True
        state.turns = max(state.turns, turn)
        state.step, state.step_open = 0, False
        _leave_step(state)


def _enter_step(state: LogState, turn: int, step: int) -> None:
    _enter_turn(state, turn)
    if step != state.step or not state.step_open:
        _leave_step(state)
        state.step, state.step_open = step, True


def _leave_step(state: LogState) -> None:
    state.step_open = False
    state.attempt, state.open_attempt = 0, None
    state.retry, state.retry_waiting = 0, False


def _fold_turn_start(state: LogState, seq: int, body: TurnStart) -> None:
    state.turn_open = False  # a turn of the same number begins again, if a log holds one twice
    _enter_turn(state, body.turn)


def _fold_turn_end(state: LogState, seq: int, body: TurnEnd) -> None:
    _enter_turn(state, body.turn)
    _leave_step(state)
    state.turn_open = False


def _fold_step_start(state: LogState, seq: int, body: StepStart) -> None:
    if not (state.turn_open and body.turn == state.turn and not state.step_open):
        _enter_turn(state, body.turn)
        _leave_step(state)
    state.step, state.step_open = body.step, True


def _fold_step_end(state: LogState, seq: int, body: StepEnd) -> None:
    if not state.step_open or (body.turn, body.step) != (state.turn, state.step):
        _enter_step(state, body.turn, body.step)
    _leave_step(state)


def _fold_user_message(state: LogState, seq: int, body: UserMessage) -> None:
    if not state.turn_open:
        _enter_turn(state, state.turns + 1)


def _fold_input_queued(state: LogState, seq: int, body: InputQueued) -> None:
    if body.id:
        state.inputs[body.id] = body.mode


def _fold_input_taken(state: LogState, seq: int, body: InputTaken) -> None:
    state.inputs.pop(body.id, None)


def _fold_request_header(state: LogState, seq: int, body: RequestHeader) -> None:
    state.provider, state.model = body.provider, body.model


def _fold_attempt_start(state: LogState, seq: int, body: AttemptStart) -> None:
    if not state.step_open or (body.turn, body.step) != (state.turn, state.step):
        _enter_step(state, body.turn, body.step)
    state.attempt = body.attempt
    state.open_attempt = OpenAttempt(seq, max(body.input_estimate, 0))
    state.retry_waiting = False


def _fold_assistant_delta(state: LogState, seq: int, body: AssistantDelta) -> None:
    if state.open_attempt is None:
        _imply_step(state)  # first: entering a step leaves no attempt open
        state.open_attempt = OpenAttempt(seq, 0)
    shown = state.open_attempt.deltas
    shown.append(body)
    # Each is joined to a neighbour that is not longer, so that a long answer is kept in few pieces.
    while len(shown) > 1 and _goes_on(shown[-2], shown[-1]):
        last = shown.pop()
        shown[-1] = AssistantDelta(last.index, last.block, shown[-1].text + last.text)


def _goes_on(delta: AssistantDelta, more: AssistantDelta) -> bool:
    return len(delta.text) <= len(more.text) and delta.index == more.index and delta.block == more.block


def _fold_output_count(state: LogState, seq: int, body: OutputCount) -> None:
    if state.compaction_spent is not None:
        state.compaction_bytes = max(body.bytes, state.compaction_bytes)
    elif state.open_attempt is not None:
        state.open_attempt.unlogged_bytes = max(body.bytes, state.open_attempt.unlogged_bytes)


def _fold_assistant_message(state: LogState, seq: int, body: AssistantMessage) -> None:
    if not state.step_open:
        _imply_step(state)
    state.open_attempt = None
    for position, call in enumerate(calls_in(body.content)):
        # A call without identity cannot be answered: the gate refuses its result, the projection drops it.
        if call.id and call.name:
            state.calls[seq, position] = OpenCall(call.id, call.name, call.invalid)


def _fold_attempt_failed(state: LogState, seq: int, body: AttemptFailed) -> None:
    _imply_step(state)
    state.open_attempt = None


def _imply_step(state: LogState) -> None:
    """Openers that a damaged log lost: the step that must have been open here."""
    if not state.step_open:
        turn = state.turn if state.turn_open else state.turns + 1
        _enter_step(state, turn, state.step + 1 if state.turn_open else 1)


def _fold_retry_scheduled(state: LogState, seq: int, body: RetryScheduled) -> None:
    state.retry, state.retry_waiting = body.retry, True


def _fold_retry_started(state: LogState, seq: int, body: RetryStarted) -> None:
    state.retry, state.retry_waiting = body.retry, False


def _fold_tool_call(state: LogState, seq: int, body: ToolCallStarted) -> None:
    call = state.calls.get((body.message_seq, body.position))
    if call is not None and call.started_seq is None:
        call.started_seq = seq


def _fold_tool_result(state: LogState, seq: int, body: ToolFinished) -> None:
    call = state.calls.get((body.message_seq, body.position))
    if call is not None and call.call_id == body.call_id:
        del state.calls[body.message_seq, body.position]


def _fold_compaction_start(state: LogState, seq: int, body: CompactionStart) -> None:
    state.compaction, state.compaction_summed = body.id or None, False
    _forget_spent(state)


def _fold_compaction_call(state: LogState, seq: int, body: CompactionCall) -> None:
    if body.id == state.compaction:
        sent = Usage(input_tokens=max(body.input_estimate, 0), estimated=True)
        state.compaction_spent = sent if body.spent is None else body.spent + sent
        state.compaction_bytes = 0


def _fold_compaction_summary(state: LogState, seq: int, body: CompactionSummary) -> None:
    if body.id == state.compaction:
        state.compaction_summed = True
        _forget_spent(state)  # the summary tells it


def _fold_compaction_end(state: LogState, seq: int, body: CompactionEnd) -> None:
    state.compaction, state.compaction_summed = None, False
    _forget_spent(state)


def _forget_spent(state: LogState) -> None:
    state.compaction_spent, state.compaction_bytes = None, 0


def _fold_session_repaired(state: LogState, seq: int, body: SessionRepaired) -> None:
    if body.rewritten:
        state.told_set_aside = state.told_missing = 0
    state.told_defects += body.defects
    state.told_set_aside += body.set_aside
    state.told_missing += body.missing


FOLDS: Final[dict[type[Body], Callable[[LogState, int, Any], None]]] = {
    SessionStart: _fold_session_start,
    TurnStart: _fold_turn_start,
    TurnEnd: _fold_turn_end,
    StepStart: _fold_step_start,
    StepEnd: _fold_step_end,
    UserMessage: _fold_user_message,
    InputQueued: _fold_input_queued,
    InputTaken: _fold_input_taken,
    RequestHeader: _fold_request_header,
    AttemptStart: _fold_attempt_start,
    AssistantDelta: _fold_assistant_delta,
    OutputCount: _fold_output_count,
    AssistantMessage: _fold_assistant_message,
    AttemptFailed: _fold_attempt_failed,
    RetryScheduled: _fold_retry_scheduled,
    RetryStarted: _fold_retry_started,
    ToolCallStarted: _fold_tool_call,
    ToolFinished: _fold_tool_result,
    CompactionStart: _fold_compaction_start,
    CompactionCall: _fold_compaction_call,
    CompactionSummary: _fold_compaction_summary,
    CompactionEnd: _fold_compaction_end,
    SessionRepaired: _fold_session_repaired,
}

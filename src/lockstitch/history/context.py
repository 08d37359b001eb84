"""The live context: what the events of a session amount to for the next request.

``Context`` is the one reducer of events: wherever it changes its messages it also writes the transcript's
entry, so that the two cannot drift. It never mends anything: orphans, doubles and gaps stay as the log has
them, and the projection deals with them. It never raises on an event the log could hold.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..schema.blocks import Block, ToolCall, ToolResult
from ..schema.events import (
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
from ..schema.failures import Failure, FailureCode
from ..schema.messages import Message
from ..schema.usage import Usage
from .facts import Facts
from .learned_window import learned_window
from .live_messages import LiveMessages, is_blank, seq_of
from .transcript import Entry, MarkKind, Transcript


class RetryState(msgspec.Struct, frozen=True):
    """The retries of the open step so far."""

    retry: int
    code: FailureCode
    delay_ms: int
    scheduled_ms: int
    """When the last one was scheduled, Unix time in milliseconds."""
    started: bool


class Unanswered(NamedTuple):
    """A call of the live context that has no result yet."""

    message_seq: int
    position: int
    call: ToolCall
    started: bool
    """Whether its intent is in the log: if so, its outcome is unknown after a crash."""


class Context:
    """Folds events one at a time; amortised O(1) each, except that a rewrite copies the tail it keeps.

    ``kept_rewrites`` are the compactions and clears that an undo is known to go back behind; without it only
    the last few can be undone at once, so that memory does not hold every message: see ``needed``.
    ``transcript`` takes the entries; None: the latest are held.
    """

    def __init__(
        self, kept_rewrites: frozenset[int] = frozenset(), transcript: Transcript | None = None
    ) -> None:
        self.header: RequestHeader | None = None
        self.turn = 0
        """Number of the last turn that was started; 0 before the first."""
        self.step = 0
        """Number of the last step started in that turn."""
        self.open_turn = False
        self.open_step = False
        self.attempt = 0
        """Number of the last attempt started in that step."""
        self.open_attempt: AttemptStart | None = None
        self.queued: dict[str, InputQueued] = {}
        """Inputs that wait, by id, oldest first."""
        self.retries: RetryState | None = None
        self.usage = Usage()
        """Everything billed to the session: failed attempts and summaries included."""
        self.last_usage: Usage | None = None
        """Of the last answer that reported any; None after a rewrite, because it no longer fits."""
        self.measured = 0
        """How many messages, from the first, ``last_usage`` accounts for."""
        self.title = ""
        self.session_id = ""
        self.cwd = ""
        self.epoch = 0
        """Counts how often messages before the last were changed: projections of an older epoch are void."""
        self.recovered: dict[tuple[str, str], str] = {}
        """The rung that last succeeded, by (provider, model), since the last compaction."""
        self.windows: dict[tuple[str, str], int] = {}
        """Of each (provider, model): tokens that it seems to take, learned from refusals."""
        self.transcript = Transcript() if transcript is None else transcript
        """The latest entries of what was ever said, from the same fold."""
        self._live = LiveMessages(kept_rewrites)
        self._requests = 0
        self._unanswered: dict[tuple[int, int], Unanswered] = {}
        self._runtime: set[int] = set()
        """User messages that no person typed."""
        self._turn_from: dict[int, int] = {}
        self._prompt_from: int | None = None
        self._compaction: tuple[CompactionStart, int] | None = None
        self._summary: tuple[CompactionSummary, int] | None = None

    @property
    def messages(self) -> Sequence[Message]:
        """The live messages, oldest first. A view: it grows with ``apply``; do not change it."""
        return self._live.messages

    @property
    def facts(self) -> Facts:
        """What the last compaction carried on; empty without one."""
        return self._live.facts

    @property
    def needed(self) -> set[int]:
        """Compactions and clears that an undo went back behind, though they were no longer kept.

        If there are any, the messages are incomplete: fold the log again with ``kept_rewrites``.
        """
        return self._live.needed

    @property
    def kept_rewrites(self) -> frozenset[int]:
        """For folding the log again: those that are ``needed`` now, and those that were before."""
        return self._live.kept | self._live.needed

    @property
    def unanswered(self) -> list[Unanswered]:
        """Calls without a result, in the order they were made."""
        return list(self._unanswered.values())

    @property
    def live_turns(self) -> list[int]:
        """Turns that count: undone ones do not. Ascending; those before a compaction are among them."""
        return sorted(self._turn_from)

    def is_prompt(self, message: Message) -> bool:
        """Whether a person typed it: no summary, no reminder of the runtime."""
        seq = seq_of(message)
        return message.role == "user" and seq not in self._live.summaries and seq not in self._runtime

    def apply(self, event: Event) -> None:
        """Take one event of the log, in order of ``seq``."""
        body = event.body
        fold = _FOLDS[type(body)]
        if fold is not None:
            fold(self, body, event)

    def _append(self, message: Message, event: Event, message_id: str, origin: str = "") -> None:
        self._live.messages.append(message)
        role = message.role
        assert role != "system", "no event makes a system message"
        entry = Entry(
            seq=event.seq,
            id=message_id or f"{role}-{event.seq}",
            time_ms=event.time_ms,
            role=role,
            content=message.content,
            turn=self.turn,
            origin=origin,
            answers=message.answers,
        )
        self.transcript.add(entry)

    def _mark(
        self,
        event: Event,
        kind: MarkKind,
        content: tuple[Block, ...] = (),
        *,
        marker_id: str = "",
        to: int = 0,
    ) -> None:
        entry = Entry(
            seq=event.seq,
            id=marker_id or f"{kind}-{event.seq}",
            time_ms=event.time_ms,
            role="marker",
            content=content,
            kind=kind,
            turn=self.turn,
            to_turn=to,
        )
        self.transcript.add(entry)

    def _user(self, body: UserMessage, event: Event) -> None:
        self.queued.pop(body.id, None)
        if not self.open_turn and self._prompt_from is None:
            self._prompt_from = event.seq  # A prompt before its turn's start belongs to that turn.
        if body.origin == "runtime":
            self._runtime.add(event.seq)
        message = Message("user", body.content, seq=event.seq, requests=self._requests)
        self._append(message, event, body.id, body.origin)

    def _assistant(self, body: AssistantMessage, event: Event) -> None:
        seq = event.seq
        message = Message(
            "assistant",
            body.content,
            seq=seq,
            requests=self._requests,
            provider=body.provider or None,
            model=body.model or None,
        )
        self._append(message, event, body.id, body.finish)
        self.open_attempt = None
        position = 0
        for block in body.content:
            if isinstance(block, ToolCall):
                self._unanswered[seq, position] = Unanswered(seq, position, block, started=False)
                position += 1
        self._bill(body.usage)
        usage = body.usage
        if usage is not None and not usage.estimated and usage.context_tokens > 0:
            self.last_usage, self.measured = usage, len(self._live.messages)
            self._fitted(usage.context_tokens - usage.output_tokens)

    def _result(self, body: ToolFinished, event: Event) -> None:
        address = (body.message_seq, body.position)
        self._unanswered.pop(address, None)
        result = ToolResult(call_id=body.call_id, content=body.content, is_error=body.is_error)
        message = Message("tool", (result,), seq=event.seq, answers=address, requests=self._requests)
        self._append(message, event, "", body.outcome)

    def _started(self, body: ToolCallStarted, event: Event) -> None:
        address = (body.message_seq, body.position)
        waiting = self._unanswered.get(address)
        if waiting is not None:
            self._unanswered[address] = waiting._replace(started=True)

    def _turn_start(self, body: TurnStart, event: Event) -> None:
        self._turn_from[body.turn] = event.seq if self._prompt_from is None else self._prompt_from
        self._prompt_from = None
        self.turn, self.step, self.attempt, self.open_turn = body.turn, 0, 0, True
        self.retries = self.open_attempt = None

    def _turn_end(self, body: TurnEnd, event: Event) -> None:
        self.open_turn, self.open_step, self.retries, self.open_attempt = False, False, None, None

    def _step_start(self, body: StepStart, event: Event) -> None:
        self.step, self.attempt, self.open_step = body.step, 0, True
        self.retries = self.open_attempt = None

    def _step_end(self, body: StepEnd, event: Event) -> None:
        self.open_step, self.retries, self.open_attempt = False, None, None

    def _attempt_start(self, body: AttemptStart, event: Event) -> None:
        self._requests += 1
        self.attempt, self.open_attempt = body.attempt, body

    def _attempt_failed(self, body: AttemptFailed, event: Event) -> None:
        if body.failure.code == "CONTEXT_WINDOW_EXCEEDED" and self.open_attempt is not None:
            self._overflowed(body.failure, self.open_attempt.input_estimate)
        self.open_attempt = None
        self._bill(body.usage)

    def _retry_scheduled(self, body: RetryScheduled, event: Event) -> None:
        self.retries = RetryState(body.retry, body.code, body.delay_ms, event.time_ms, started=False)

    def _retry_started(self, body: RetryStarted, event: Event) -> None:
        if self.retries is not None:
            self.retries = msgspec.structs.replace(self.retries, retry=body.retry, started=True)

    def _bill(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = self.usage + usage

    def _input_queued(self, body: InputQueued, event: Event) -> None:
        self.queued[body.id] = body

    def _input_taken(self, body: InputTaken, event: Event) -> None:
        self.queued.pop(body.id, None)

    def _header(self, body: RequestHeader, event: Event) -> None:
        before, self.header = self.header, body
        if before is not None and counted(before) != counted(body):
            self.last_usage, self.measured = None, 0  # Another vocabulary, or other tools: it no longer fits.

    def _overflowed(self, refusal: Failure, estimate: int) -> None:
        learned = learned_window(refusal, estimate)
        if self.header is not None and learned is not None:
            key = (self.header.provider, self.header.model)
            self.windows[key] = min(learned, self.windows.get(key, learned))

    def _fitted(self, tokens: int) -> None:
        """A request of this size went through: what was learned from a smaller one is wrong."""
        if self.header is not None:
            key = (self.header.provider, self.header.model)
            if self.windows.get(key, tokens) < tokens:
                del self.windows[key]

    def _summary_message(self, content: tuple[Block, ...], seq: int) -> Message:
        self._live.summaries.add(seq)
        return Message("user", content, seq=seq, requests=self._requests)

    def _compaction_start(self, body: CompactionStart, event: Event) -> None:
        self._compaction, self._summary = (body, event.seq), None

    def _compaction_summary(self, body: CompactionSummary, event: Event) -> None:
        self._summary = (body, event.seq)
        self._bill(body.usage)

    def _compacted(self, body: CompactionEnd, event: Event) -> None:
        self._bill(body.usage)
        start, summary = self._compaction, self._summary
        self._compaction = self._summary = None
        if not body.applied or start is None or summary is None:
            return
        plan, made = start[0], summary[0]
        if not plan.id == made.id == body.id or is_blank(made.content):
            return  # A blank summary is a failed compaction, whatever its end says: the old history stays.
        keep_from = start[1] if plan.keep_from_seq is None else plan.keep_from_seq
        message = self._summary_message(made.content, summary[1])
        self._live.compact(event.seq, plan, keep_from, made, message)
        self._rewritten()
        self.recovered.clear()
        self._mark(event, "compaction", made.content, marker_id=body.id)

    def _legacy_compaction(self, body: LegacyCompaction, event: Event) -> None:
        tail = self._live.messages[max(body.compacted_count, 0) :]
        self._rewrite(event.seq, [self._summary_message(body.content, event.seq), *tail])
        self._mark(event, "legacy_compaction", body.content)

    def _clear(self, body: Clear, event: Event) -> None:
        self._rewrite(event.seq, [])
        self._live.facts = Facts()
        self._mark(event, "clear")

    def _prune(self, body: Prune, event: Event) -> None:
        self._live.prune(body)
        self._forget_measure()

    def _rewrite(self, seq: int, messages: list[Message]) -> None:
        self._live.replace(seq, messages)
        self._rewritten()

    def _rewritten(self) -> None:
        self._forget_measure()
        live = {message.seq for message in self._live.messages}
        self._unanswered = {key: call for key, call in self._unanswered.items() if key[0] in live}

    def _undo(self, body: Undo, event: Event) -> None:
        starts = [start for turn, start in self._turn_from.items() if turn >= body.to_turn]
        if not starts:
            return
        first = min(starts)
        self._turn_from = {turn: start for turn, start in self._turn_from.items() if turn < body.to_turn}
        self._live.undo(first)
        self._unanswered = {key: call for key, call in self._unanswered.items() if key[0] < first}
        self._forget_measure()
        self._mark(event, "undo", to=body.to_turn)

    def _forget_measure(self) -> None:
        self.epoch += 1
        self.last_usage, self.measured = None, 0

    def _recovery(self, body: Recovery, event: Event) -> None:
        if body.succeeded:
            self.recovered[body.provider, body.model] = body.rung

    def _title(self, body: Title, event: Event) -> None:
        self.title = body.title

    def _session_start(self, body: SessionStart, event: Event) -> None:
        self.session_id, self.cwd = body.id, body.cwd


def counted(header: RequestHeader) -> tuple[object, ...]:
    """What decides how many tokens the same messages are."""
    return header.provider, header.model, header.system, header.tools


# A table, and not a match: asking for one kind after the other took half of the time of opening a long log.
_FOLDS: Final[dict[type[Body], Callable[[Context, Any, Event], None] | None]] = {
    SessionStart: Context._session_start,
    TurnStart: Context._turn_start,
    TurnEnd: Context._turn_end,
    StepStart: Context._step_start,
    StepEnd: Context._step_end,
    UserMessage: Context._user,
    InputQueued: Context._input_queued,
    InputTaken: Context._input_taken,
    RequestHeader: Context._header,
    AttemptStart: Context._attempt_start,
    AssistantDelta: None,
    OutputCount: None,
    AssistantMessage: Context._assistant,
    AttemptFailed: Context._attempt_failed,
    RetryScheduled: Context._retry_scheduled,
    RetryStarted: Context._retry_started,
    ToolCallStarted: Context._started,
    ToolFinished: Context._result,
    Approval: None,
    CompactionStart: Context._compaction_start,
    CompactionCall: None,
    CompactionSummary: Context._compaction_summary,
    CompactionEnd: Context._compacted,
    LegacyCompaction: Context._legacy_compaction,
    Prune: Context._prune,
    Undo: Context._undo,
    Clear: Context._clear,
    Title: Context._title,
    Recovery: Context._recovery,
    SessionRepaired: None,
    NoteEvent: None,
    Unknown: None,
}

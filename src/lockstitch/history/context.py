"""The live context: what the events of a session amount to for the next request.

``Context`` is the one reducer of events. The transcript is folded beside it from the same events, so the two
cannot drift. It never mends anything: orphans, doubles and gaps stay as the log has them, and the projection
deals with them. It never raises on an event the log could hold.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never

import msgspec

from ..schema.blocks import Block, Image, Text, ToolCall, ToolResult
from ..schema.events import (
    Approval,
    AssistantDelta,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
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
from ..schema.failures import FailureCode
from ..schema.messages import Message
from ..schema.usage import Usage

KEPT_REWRITES: Final = 3
"""How many compactions and clears an undo can go back behind; older ones free their messages."""


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


class _Rewrite(NamedTuple):
    seq: int
    before: list[Message]


class Context:
    """Folds events one at a time; amortised O(1) each, except that a rewrite copies the tail it keeps."""

    def __init__(self) -> None:
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
        self._messages: list[Message] = []
        self._requests = 0
        self._unanswered: dict[tuple[int, int], Unanswered] = {}
        self._rewrites: list[_Rewrite] = []
        self._summaries: set[int] = set()
        self._turn_from: dict[int, int] = {}
        self._prompt_from: int | None = None
        self._compaction: tuple[CompactionStart, int] | None = None
        self._summary: tuple[CompactionSummary, int] | None = None

    @property
    def messages(self) -> Sequence[Message]:
        """The live messages, oldest first. A view: it grows with ``apply``; do not change it."""
        return self._messages

    @property
    def unanswered(self) -> list[Unanswered]:
        """Calls without a result, in the order they were made."""
        return list(self._unanswered.values())

    def apply(self, event: Event) -> None:
        """Take one event of the log, in order of ``seq``."""
        body = event.body
        match body:
            # Kinds are asked for one after the other, so the frequent ones come first.
            case AssistantDelta():
                pass
            case StepStart() | StepEnd() | AttemptStart() | AttemptFailed() | TurnStart() | TurnEnd():
                self._enclosure(body, event.seq)
            case AssistantMessage():
                self._assistant(body, event.seq)
            case ToolCallStarted():
                self._started(body)
            case ToolFinished():
                self._result(body, event.seq)
            case UserMessage():
                self._user(body, event.seq)
            case Approval() | NoteEvent() | SessionRepaired() | Unknown():
                pass
            case RetryScheduled() | RetryStarted():
                self._retry(body, event.time_ms)
            case InputQueued():
                self.queued[body.id] = body
            case InputTaken():
                self.queued.pop(body.id, None)
            case RequestHeader():
                self.header = body
            case CompactionStart():
                self._compaction, self._summary = (body, event.seq), None
            case CompactionSummary():
                self._summary = (body, event.seq)
                self._bill(body.usage)
            case CompactionEnd():
                self._compacted(body, event.seq)
            case LegacyCompaction():
                tail = self._messages[body.compacted_count :]
                self._rewrite(event.seq, [self._summary_message(body.content, event.seq), *tail])
            case Prune():
                self._prune(body)
            case Undo():
                self._undo(body)
            case Clear():
                self._rewrite(event.seq, [])
            case Recovery():
                if body.succeeded:
                    self.recovered[body.provider, body.model] = body.rung
            case Title():
                self.title = body.title
            case SessionStart():
                self.session_id, self.cwd = body.id, body.cwd
            case _:
                assert_never(body)

    def _append(self, message: Message) -> None:
        self._messages.append(message)

    def _user(self, body: UserMessage, seq: int) -> None:
        self.queued.pop(body.id, None)
        if not self.open_turn and self._prompt_from is None:
            self._prompt_from = seq  # A prompt before its turn's start belongs to that turn.
        self._append(Message("user", body.content, seq=seq, requests=self._requests))

    def _assistant(self, body: AssistantMessage, seq: int) -> None:
        message = Message(
            "assistant",
            body.content,
            seq=seq,
            requests=self._requests,
            provider=body.provider or None,
            model=body.model or None,
        )
        self._append(message)
        self.open_attempt = None
        position = 0
        for block in body.content:
            if isinstance(block, ToolCall):
                self._unanswered[seq, position] = Unanswered(seq, position, block, started=False)
                position += 1
        self._bill(body.usage)
        if body.usage is not None and body.usage.context_tokens > 0:
            self.last_usage, self.measured = body.usage, len(self._messages)

    def _result(self, body: ToolFinished, seq: int) -> None:
        address = (body.message_seq, body.position)
        self._unanswered.pop(address, None)
        result = ToolResult(call_id=body.call_id, content=body.content, is_error=body.is_error)
        self._append(Message("tool", (result,), seq=seq, answers=address, requests=self._requests))

    def _started(self, body: ToolCallStarted) -> None:
        address = (body.message_seq, body.position)
        waiting = self._unanswered.get(address)
        if waiting is not None:
            self._unanswered[address] = waiting._replace(started=True)

    def _enclosure(
        self, body: TurnStart | TurnEnd | StepStart | StepEnd | AttemptStart | AttemptFailed, seq: int
    ) -> None:
        match body:
            case TurnStart():
                self._turn_from[body.turn] = seq if self._prompt_from is None else self._prompt_from
                self._prompt_from = None
                self.turn, self.step, self.attempt, self.open_turn = body.turn, 0, 0, True
                self.retries = self.open_attempt = None
            case StepStart():
                self.step, self.attempt, self.open_step = body.step, 0, True
                self.retries = self.open_attempt = None
            case StepEnd():
                self.open_step, self.retries, self.open_attempt = False, None, None
            case TurnEnd():
                self.open_turn, self.open_step, self.retries, self.open_attempt = False, False, None, None
            case AttemptStart():
                self._requests += 1
                self.attempt, self.open_attempt = body.attempt, body
            case AttemptFailed():
                self.open_attempt = None
                self._bill(body.usage)

    def _retry(self, body: RetryScheduled | RetryStarted, time_ms: int) -> None:
        if isinstance(body, RetryScheduled):
            self.retries = RetryState(body.retry, body.code, body.delay_ms, time_ms, started=False)
        elif self.retries is not None:
            self.retries = msgspec.structs.replace(self.retries, retry=body.retry, started=True)

    def _bill(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = self.usage + usage

    def _summary_message(self, content: tuple[Block, ...], seq: int) -> Message:
        self._summaries.add(seq)
        return Message("user", content, seq=seq, requests=self._requests)

    def _compacted(self, body: CompactionEnd, seq: int) -> None:
        start, summary = self._compaction, self._summary
        self._compaction = self._summary = None
        if not body.applied or start is None or summary is None:
            return
        if not start[0].id == summary[0].id == body.id or _blank(summary[0].content):
            return  # A blank summary is a failed compaction, whatever its end says: the old history stays.
        keep_from = start[1] if start[0].keep_from_seq is None else start[0].keep_from_seq
        tail = self._since(keep_from)
        self._rewrite(seq, [self._summary_message(summary[0].content, summary[1]), *tail])
        self.recovered.clear()

    def _since(self, seq: int) -> list[Message]:
        """Messages from ``seq`` on, without the summaries of older compactions, oldest first.

        The range may begin before an older compaction; what that one folded away is taken from before it.
        """
        found: dict[int, Message] = {}
        for messages in (*(rewrite.before for rewrite in self._rewrites), self._messages):
            for message in reversed(messages):
                if message.seq in self._summaries:
                    continue
                if message.seq is None or message.seq < seq:
                    break
                found[message.seq] = message
        return [found[key] for key in sorted(found)]

    def _rewrite(self, seq: int, messages: list[Message]) -> None:
        self._rewrites = [*self._rewrites, _Rewrite(seq, self._messages)][-KEPT_REWRITES:]
        self._messages = messages
        self._forget_measure()
        live = {message.seq for message in messages}
        self._unanswered = {key: call for key, call in self._unanswered.items() if key[0] in live}

    def _undo(self, body: Undo) -> None:
        starts = [start for turn, start in self._turn_from.items() if turn >= body.to_turn]
        if not starts:
            return
        first = min(starts)
        self._turn_from = {turn: start for turn, start in self._turn_from.items() if turn < body.to_turn}
        while self._rewrites and self._rewrites[-1].seq >= first:
            self._messages = self._rewrites.pop().before
        messages = self._messages
        while messages and _seq(messages[-1]) >= first and _seq(messages[-1]) not in self._summaries:
            messages.pop()
        self._unanswered = {key: call for key, call in self._unanswered.items() if key[0] < first}
        self._forget_measure()

    def _prune(self, body: Prune) -> None:
        wanted = set(body.result_seqs)
        for index in range(len(self._messages) - 1, -1, -1):
            if not wanted:
                break
            message = self._messages[index]
            if message.seq in wanted:
                wanted.discard(message.seq)
                self._messages[index] = _shortened(message, body.head_chars, body.tail_chars)
        self._forget_measure()

    def _forget_measure(self) -> None:
        self.epoch += 1
        self.last_usage, self.measured = None, 0


def _seq(message: Message) -> int:
    return -1 if message.seq is None else message.seq


def _blank(content: tuple[Block, ...]) -> bool:
    return not any(isinstance(block, Text) and block.text.strip() for block in content)


def _shortened(message: Message, head_chars: int, tail_chars: int) -> Message:
    """The message with each long text of its results cut to head and tail; images of results go."""
    content: list[Block] = []
    for block in message.content:
        if not isinstance(block, ToolResult):
            content.append(block)
            continue
        parts = tuple(_cut(part, head_chars, tail_chars) for part in block.content)
        content.append(msgspec.structs.replace(block, content=parts))
    return msgspec.structs.replace(message, content=tuple(content))


def _cut(part: Text | Image, head_chars: int, tail_chars: int) -> Text:
    if isinstance(part, Image):
        return Text(text="[image omitted: pruned]")
    left_out = len(part.text) - head_chars - tail_chars
    if left_out <= 0:
        return part
    tail = part.text[-tail_chars:] if tail_chars else ""
    text = f"{part.text[:head_chars]}\n[{left_out} characters pruned]\n{tail}"
    return msgspec.structs.replace(part, text=text) if len(text) < len(part.text) else part

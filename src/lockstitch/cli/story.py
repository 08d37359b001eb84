"""A session's events as people read them: turns with what was said, calls with their answers, and marks.

Built from the log alone, in one pass. Nothing of what was said is left out or repaired here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ..schema.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.events import (
    Approval,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Clear,
    CompactionEnd,
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
    SessionRepaired,
    SessionStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Undo,
    Unknown,
    UserMessage,
)
from ..schema.usage import Usage


@dataclass(slots=True)
class Said:
    who: Literal["user", "assistant", "reasoning", "summary"]
    text: str
    label: str = ""
    """What is particular about it: its origin, or why it ended early."""


@dataclass(slots=True)
class Called:
    name: str
    arguments: str
    invalid: str | None = None
    started: bool = False
    outcome: str | None = None
    """None while there is no result."""
    result: str = ""
    is_error: bool = False
    duration_ms: int | None = None
    diff: str = ""


@dataclass(slots=True)
class Mark:
    """Something that happened to the session, rather than in the conversation."""

    kind: Literal["repair", "defect", "failure", "retry", "history", "note"]
    text: str


Item: TypeAlias = Said | Called | Mark


@dataclass(slots=True)
class TurnStory:
    number: int | None
    """None for what lies before, between and behind turns."""
    time_ms: int
    items: list[Item] = field(default_factory=list)
    reason: str | None = None
    """How it ended; None if it did not."""
    detail: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class Story:
    """Feed every event of a log to ``add``; then read."""

    id: str = ""
    cwd: str = ""
    parent: str | None = None
    title: str = ""
    models: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    turns: list[TurnStory] = field(default_factory=list)
    records: int = 0
    _calls: dict[tuple[int, int], Called] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        self.records += 1
        if event.defect is not None:
            self._here(event).items.append(Mark("defect", f"record {event.seq}: {event.defect}"))
        tell: Callable[[Story, Event, Any], None] | None = _TELLERS.get(type(event.body))
        if tell is not None:
            tell(self, event, event.body)

    def _here(self, event: Event) -> TurnStory:
        if not self.turns or (self.turns[-1].number is not None and self.turns[-1].reason is not None):
            self.turns.append(TurnStory(None, event.time_ms))
        return self.turns[-1]

    def _mark(
        self, event: Event, kind: Literal["repair", "failure", "retry", "history", "note"], text: str
    ) -> None:
        self._here(event).items.append(Mark(kind, text))

    def _count(self, event: Event, usage: Usage | None) -> None:
        if usage is not None:
            here = self._here(event)
            here.usage += usage
            self.usage += usage

    def _call(self, message_seq: int, position: int) -> Called | None:
        return self._calls.get((message_seq, position))


def plain_text(content: tuple[Block, ...]) -> str:
    """The text of blocks, with a line in brackets for what is no text."""
    return "\n".join(filter(None, map(_block_text, content)))


def _block_text(block: Block) -> str:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return text
        case Image(media_type=media_type):
            return f"[{media_type}]"
        case ToolCall(name=name, arguments=arguments):
            return f"[call of {name} {arguments}]"
        case ToolResult(content=content):
            return plain_text(content)
        case Opaque(protocol=protocol):
            return f"[a block of {protocol}]"


def _session_start(story: Story, event: Event, body: SessionStart) -> None:
    story.id, story.cwd, story.parent = body.id, body.cwd, body.parent


def _turn_start(story: Story, event: Event, body: TurnStart) -> None:
    story.turns.append(TurnStory(body.turn, event.time_ms))


def _turn_end(story: Story, event: Event, body: TurnEnd) -> None:
    here = story._here(event)
    here.reason = body.reason
    why = f"{body.failure.code}: {body.failure.message}" if body.failure is not None else ""
    here.detail = "; ".join(filter(None, (why, body.detail)))


def _user_message(story: Story, event: Event, body: UserMessage) -> None:
    label = "" if body.origin == "user" else body.origin
    story._here(event).items.append(Said("user", plain_text(body.content), label))


def _input_queued(story: Story, event: Event, body: InputQueued) -> None:
    story._mark(event, "note", f"queued as {body.mode}: {plain_text(body.content)}")


def _input_taken(story: Story, event: Event, body: InputTaken) -> None:
    if body.dropped:
        story._mark(event, "note", f"queued input {body.id} was dropped")


def _request_header(story: Story, event: Event, body: RequestHeader) -> None:
    model = f"{body.provider}:{body.model}"
    if model not in story.models:
        story.models.append(model)
        if len(story.models) > 1:
            story._mark(event, "note", f"model: {model}")


def _attempt_start(story: Story, event: Event, body: AttemptStart) -> None:
    if body.rung != "normal":
        story._mark(event, "repair", f"request sent on the rung {body.rung!r}")


def _assistant_message(story: Story, event: Event, body: AssistantMessage) -> None:
    here = story._here(event)
    label = body.finish if body.finish in ("length", "aborted", "interrupted") else ""
    position = 0
    for block in body.content:
        if isinstance(block, ToolCall):
            called = Called(block.name, block.arguments, block.invalid)
            story._calls[event.seq, position] = called
            position += 1
            here.items.append(called)
        elif text := _block_text(block):
            who: Literal["reasoning", "assistant"] = (
                "reasoning" if isinstance(block, Reasoning) else "assistant"
            )
            here.items.append(Said(who, text, label))
    story._count(event, body.usage)


def _attempt_failed(story: Story, event: Event, body: AttemptFailed) -> None:
    story._mark(event, "failure", f"{body.failure.code}: {body.failure.message}")
    story._count(event, body.usage)


def _retry_scheduled(story: Story, event: Event, body: RetryScheduled) -> None:
    story._mark(event, "retry", f"retry {body.retry} after {body.delay_ms / 1000:.1f} s ({body.code})")


def _tool_call(story: Story, event: Event, body: ToolCallStarted) -> None:
    if (called := story._call(body.message_seq, body.position)) is not None:
        called.started = True


def _tool_result(story: Story, event: Event, body: ToolFinished) -> None:
    called = story._call(body.message_seq, body.position)
    text = plain_text(body.content)
    if called is None or called.outcome is not None:
        story._mark(event, "note", f"a result of no open call ({body.call_id or 'no id'}): {text}")
        return
    called.outcome, called.result, called.is_error = body.outcome, text, body.is_error
    called.duration_ms = body.duration_ms
    diff = (body.meta or {}).get("diff")
    called.diff = diff if isinstance(diff, str) else ""


def _approval(story: Story, event: Event, body: Approval) -> None:
    if body.decision != "asked":
        by = f" by {body.by}" if body.by else ""
        story._mark(event, "note", f"call {body.position} {body.decision}{by}")


def _compaction_summary(story: Story, event: Event, body: CompactionSummary) -> None:
    story._here(event).items.append(Said("summary", plain_text(body.content), body.method))
    story._count(event, body.usage)


def _compaction_end(story: Story, event: Event, body: CompactionEnd) -> None:
    told = (
        "the history before was replaced by the summary" if body.applied else "the history was not compacted"
    )
    story._mark(event, "history", told)
    story._count(event, body.usage)


def _legacy_compaction(story: Story, event: Event, body: LegacyCompaction) -> None:
    story._here(event).items.append(Said("summary", plain_text(body.content), "by an older version"))


def _prune(story: Story, event: Event, body: Prune) -> None:
    story._mark(event, "history", f"{len(body.result_seqs)} long results shortened in requests")


def _undo(story: Story, event: Event, body: Undo) -> None:
    story._mark(event, "history", f"undone from turn {body.to_turn} on")


def _clear(story: Story, event: Event, body: Clear) -> None:
    story._mark(event, "history", "the conversation was cleared")


def _title(story: Story, event: Event, body: Title) -> None:
    story.title = body.title


def _recovery(story: Story, event: Event, body: Recovery) -> None:
    if body.anomalies:
        kinds = ", ".join(sorted({anomaly.kind for anomaly in body.anomalies}))
        story._mark(event, "repair", f"the request was repaired ({body.rung}): {kinds}")


def _session_repaired(story: Story, event: Event, body: SessionRepaired) -> None:
    parts = (
        (body.torn_bytes, "{} bytes of an unfinished record cut off"),
        (body.set_aside, "{} damaged places skipped"),
        (body.missing, "{} gaps in the records"),
        (body.defects, "{} records that break the rules kept"),
        (body.closed_calls, "{} interrupted tool calls answered"),
        (body.closed_attempts, "{} interrupted model calls closed"),
    )
    told = [text.format(count) for count, text in parts if count]
    copied = [f"copied to {body.file}"] if body.file else []
    story._mark(event, "repair", "; ".join([*told, *copied, *filter(None, [body.detail])]) or "nothing")


def _note(story: Story, event: Event, body: NoteEvent) -> None:
    story._mark(event, "note", body.name)


def _unknown(story: Story, event: Event, body: Unknown) -> None:
    story._mark(event, "note", f"an event of a kind that this version does not know: {body.stored_kind}")


_TELLERS: Final[dict[type, Callable[[Story, Event, Any], None]]] = {
    SessionStart: _session_start,
    TurnStart: _turn_start,
    TurnEnd: _turn_end,
    UserMessage: _user_message,
    InputQueued: _input_queued,
    InputTaken: _input_taken,
    RequestHeader: _request_header,
    AttemptStart: _attempt_start,
    AssistantMessage: _assistant_message,
    AttemptFailed: _attempt_failed,
    RetryScheduled: _retry_scheduled,
    ToolCallStarted: _tool_call,
    ToolFinished: _tool_result,
    Approval: _approval,
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
"""Kinds that only frame others have no teller; a test says which."""

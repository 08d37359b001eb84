"""Events of a session log: an append-only list, each in an envelope with a stored sequence number.

Enclosure: turn > step > attempt. A kind a reader does not know is kept as ``Unknown`` with its bytes; if it
is ``needed``, the session can be shown but not continued. The stored form is docs/formats/session-log.md.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from .blocks import Block, Image, Text
from .failures import Failure, FailureCode
from .messages import Options, ToolSpec
from .notes import Anomaly, Note
from .usage import Usage

FORMAT_VERSION: Final = 1
"""Of the log. Raised only if an older reader would misread: docs/formats/session-log.md tells."""


class _Body(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    pass


class SessionStart(_Body, frozen=True):
    """First record of a log; implied where it was lost."""

    format: int
    id: str
    cwd: str = ""
    """Absolute path of the workspace; empty if there is none."""
    parent: str | None = None
    """Session this one was forked from."""


class TurnStart(_Body, frozen=True):
    turn: int
    """Counts up from 1."""


TurnEndReason: TypeAlias = Literal[
    "completed", "failed", "cancelled", "interrupted", "budget", "approval", "length"
]


class TurnEnd(_Body, frozen=True):
    turn: int
    reason: TurnEndReason
    failure: Failure | None = None
    detail: str = ""


class StepStart(_Body, frozen=True):
    turn: int
    step: int
    """Counts up from 1 in its turn."""


class StepEnd(_Body, frozen=True):
    turn: int
    step: int


class UserMessage(_Body, frozen=True):
    id: str
    content: tuple[Block, ...]
    origin: str = "user"
    """``user``, ``steer``, ``follow_up``, or ``runtime`` for reminders that no person typed."""


class InputQueued(_Body, frozen=True):
    id: str
    content: tuple[Block, ...]
    mode: Literal["steer", "follow_up"]


class InputTaken(_Body, frozen=True):
    """The queued input became the user message of the same id, or was dropped."""

    id: str
    dropped: bool = False


class RequestHeader(_Body, frozen=True):
    """What the following requests have in common; appended only when it changed."""

    provider: str
    model: str
    options: Options = Options()
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    base_url: str | None = None


class AttemptStart(_Body, frozen=True):
    """The intent of one model call, durable before the request leaves."""

    turn: int
    step: int
    attempt: int
    """Counts up from 1 in its step."""
    rung: str = "normal"
    """Ladder rung of the request."""
    input_estimate: int = 0
    """Estimated prompt tokens, used if the stream is cut before usage is reported."""


class AssistantDelta(_Body, frozen=True):
    """Text shown while it streams; evidence only, the message or the closer is what counts."""

    index: int
    block: Literal["text", "reasoning"]
    text: str


class OutputCount(_Body, frozen=True):
    """What the open model call has written that no delta holds: arguments of calls, and all of a summary.

    Evidence like a delta, and only used where nothing else tells what the call cost.
    """

    bytes: int
    """Of UTF-8, so far: each takes the place of the one before."""


class AssistantMessage(_Body, frozen=True):
    id: str
    content: tuple[Block, ...]
    finish: Literal["stop", "tool_calls", "length", "aborted", "interrupted"]
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    notes: tuple[Note, ...] = ()


class AttemptFailed(_Body, frozen=True):
    failure: Failure
    usage: Usage | None = None
    notes: tuple[Note, ...] = ()


class RetryScheduled(_Body, frozen=True):
    retry: int
    """Counts up from 1 in its step."""
    code: FailureCode
    delay_ms: int


class RetryStarted(_Body, frozen=True):
    retry: int


class ToolCallStarted(_Body, frozen=True):
    """The intent of one tool run, durable before the tool starts."""

    message_seq: int
    """Sequence number of the assistant message that holds the call."""
    position: int
    """Position of the call among the tool calls of that message, from 0."""
    call_id: str
    name: str


ToolOutcome: TypeAlias = Literal[
    "done", "failed", "invalid", "unknown_tool", "timeout", "cancelled", "denied", "not_started", "unknown"
]


class ToolFinished(_Body, frozen=True):
    """The answer to one call. Appended when it is known, whatever its siblings do."""

    message_seq: int
    position: int
    call_id: str
    content: tuple[Text | Image, ...]
    outcome: ToolOutcome
    is_error: bool = False
    duration_ms: int | None = None
    meta: Mapping[str, Any] | None = None
    """For display only (a diff, a blob that holds the whole output); never sent to a model."""


class Approval(_Body, frozen=True):
    message_seq: int
    position: int
    decision: Literal["asked", "allowed", "denied"]
    by: str = ""
    """Who decided: ``policy``, ``user``, ``--yes``."""
    remember: Literal["no", "session", "always"] = "no"
    pattern: str = ""


class CompactionStart(_Body, frozen=True):
    id: str
    trigger: Literal["manual", "threshold", "overflow"]
    keep_from_seq: int | None = None
    """First event of the tail that is kept verbatim; None: nothing is kept."""
    keep_prompts: tuple[int, ...] = ()
    """User messages before the tail that stay, behind the summary."""
    shorten: tuple[int, ...] = ()
    """Those of ``keep_prompts`` that stay as head and tail only, without images."""
    head_chars: int = 0
    tail_chars: int = 0


class CompactionCall(_Body, frozen=True):
    """The intent of one model call for the open compaction, durable before the request leaves."""

    id: str
    """Of the compaction."""
    input_estimate: int = 0
    """Estimated prompt tokens, used if the process ends before the call has."""
    spent: Usage | None = None
    """Of the compaction's calls that ended before this one. Not ``usage``: its summary or end bills it."""


class CompactionSummary(_Body, frozen=True):
    id: str
    content: tuple[Block, ...]
    usage: Usage | None = None
    """Of all model calls for it, failed ones included."""
    method: Literal["model", "pieces", "digest"] = "model"
    files_read: tuple[str, ...] = ()
    """Paths that tool calls named so far, for the next compaction to carry on; the text lists them too."""
    files_changed: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    """What was still to be done."""


class CompactionEnd(_Body, frozen=True):
    id: str
    applied: bool
    failure: Failure | None = None
    usage: Usage | None = None
    """Of model calls that led to no summary."""


class LegacyCompaction(_Body, frozen=True):
    """Of older agents: the history became the summary and its own messages from ``compacted_count`` on."""

    content: tuple[Block, ...]
    compacted_count: int


class Prune(_Body, frozen=True):
    """Long tool results shortened from here on; the log keeps them whole."""

    result_seqs: tuple[int, ...]
    head_chars: int
    tail_chars: int


class Undo(_Body, frozen=True):
    """Turns from ``to_turn`` on no longer count; the log keeps them."""

    to_turn: int


class Clear(_Body, frozen=True):
    pass


class Title(_Body, frozen=True):
    title: str


class Recovery(_Body, frozen=True):
    """A request had to be repaired or sent on a lower rung."""

    rung: str
    anomalies: tuple[Anomaly, ...] = ()
    provider: str = ""
    model: str = ""
    succeeded: bool | None = None
    """None while the request has not been answered yet."""


class SessionRepaired(_Body, frozen=True):
    """What opening the log had to mend."""

    torn_bytes: int = 0
    set_aside: int = 0
    """Records that could not be decoded."""
    missing: int = 0
    """Places where the numbering has a gap with nothing in it."""
    defects: int = 0
    closed_calls: int = 0
    closed_attempts: int = 0
    file: str = ""
    """Where the damaged bytes were copied, relative to the session's directory."""
    rewritten: bool = False
    """The log was written anew without its damage: what earlier events told of is no longer in it."""
    detail: str = ""


class NoteEvent(_Body, frozen=True):
    """An extension's event; any version can skip it."""

    name: str
    data: Any = None


class Unknown(_Body, frozen=True):
    """A record of a kind this version does not know, kept as it came. Never written."""

    stored_kind: str
    raw: bytes
    """The JSON of its data."""


Body: TypeAlias = (
    SessionStart
    | TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserMessage
    | InputQueued
    | InputTaken
    | RequestHeader
    | AttemptStart
    | AssistantDelta
    | OutputCount
    | AssistantMessage
    | AttemptFailed
    | RetryScheduled
    | RetryStarted
    | ToolCallStarted
    | ToolFinished
    | Approval
    | CompactionStart
    | CompactionCall
    | CompactionSummary
    | CompactionEnd
    | LegacyCompaction
    | Prune
    | Undo
    | Clear
    | Title
    | Recovery
    | SessionRepaired
    | NoteEvent
    | Unknown
)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One record of a log, decoded."""

    seq: int
    """Stored, counts up from 0."""
    time_ms: int
    """Unix time in milliseconds, from the writer's clock."""
    body: Body
    needed: bool = True
    """A reader that does not know the kind may only show the session."""
    defect: str | None = None
    """Why the gate would refuse it; set when an existing log is read, never stored."""


KINDS: Final[Mapping[str, type[Body]]] = {
    "session_start": SessionStart,
    "turn_start": TurnStart,
    "turn_end": TurnEnd,
    "step_start": StepStart,
    "step_end": StepEnd,
    "user_message": UserMessage,
    "input_queued": InputQueued,
    "input_taken": InputTaken,
    "request_header": RequestHeader,
    "attempt_start": AttemptStart,
    "assistant_delta": AssistantDelta,
    "output_count": OutputCount,
    "assistant_message": AssistantMessage,
    "attempt_failed": AttemptFailed,
    "retry_scheduled": RetryScheduled,
    "retry_started": RetryStarted,
    "tool_call": ToolCallStarted,
    "tool_result": ToolFinished,
    "approval": Approval,
    "compaction_start": CompactionStart,
    "compaction_call": CompactionCall,
    "compaction_summary": CompactionSummary,
    "compaction_end": CompactionEnd,
    "legacy_compaction": LegacyCompaction,
    "prune": Prune,
    "undo": Undo,
    "clear": Clear,
    "title": Title,
    "recovery": Recovery,
    "session_repaired": SessionRepaired,
    "note": NoteEvent,
}
"""The envelope's ``kind`` of each body, and so the type its ``data`` is decoded as."""

NOT_NEEDED: Final[frozenset[str]] = frozenset(
    {"assistant_delta", "output_count", "compaction_call", "title", "session_repaired", "note"}
)
"""Kinds written with ``needed`` false: a reader that does not know them can still continue the session."""

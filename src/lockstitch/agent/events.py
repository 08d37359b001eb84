"""User events: what a turn tells whoever watches it, as a closed union.

They are for showing, never for storing: the session log holds the truth, and a run without anybody watching
leaves the same log. Each is one JSON object with the tag ``type`` (the lines of ``lockstitch run --json``,
docs/cli.md), so a change of a field is a change of that format.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..schema.events import ToolOutcome, TurnEndReason
from ..schema.failures import Failure, FailureCode
from ..schema.notes import Anomaly
from ..schema.usage import Usage

EVENTS_VERSION: Final = 1
"""Of the JSON form. Raised only if a reader of the older form would misread."""


class _Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    pass


class TextDelta(_Event, tag="text_delta", frozen=True, gc=False):
    """More visible text of the attempt that runs now."""

    text: str


class ReasoningDelta(_Event, tag="reasoning_delta", frozen=True, gc=False):
    """More of what the model thinks before it answers, where its provider shows it."""

    text: str


class ToolStarted(_Event, tag="tool_started", frozen=True):
    """The tool is about to run; its intent is durable in the log."""

    call_id: str
    name: str
    arguments: str
    """Raw JSON text, as the model wrote it."""


class ToolProgress(_Event, tag="tool_progress", frozen=True):
    """A running tool's own word for people; it reaches neither the model nor the log."""

    call_id: str
    text: str


class ToolFinished(_Event, tag="tool_finished", frozen=True):
    """A call was answered, by its tool or (never run, cancelled, denied) by the runtime."""

    call_id: str
    name: str
    outcome: ToolOutcome
    text: str
    """The text of the answer as the model will read it."""
    is_error: bool = False
    duration_ms: int | None = None
    meta: Mapping[str, Any] | None = None


class ApprovalNeeded(_Event, tag="approval_needed", frozen=True):
    """A call waits for a decision. Where nobody can give one the turn ends with ``approval``."""

    call_id: str
    name: str
    arguments: str
    reason: str = ""
    """Why it is asked."""
    rule: str = ""
    """What would be allowed if the answer is to be remembered; empty: it can only be given once."""


class AttemptDiscarded(_Event, tag="attempt_discarded", frozen=True):
    """The attempt failed: withdraw what it has shown. Its tokens stay billed."""

    attempt: int
    failure: Failure
    usage: Usage | None = None


class Retrying(_Event, tag="retrying", frozen=True):
    """A model call failed and will be tried again after ``delay_ms``."""

    retry: int
    """Counts up from 1: in its step, or for one question about a summary."""
    code: FailureCode
    delay_ms: int
    of: Literal["answer", "summary"] = "answer"
    """What is asked for again; nothing of a summary was shown, so nothing is to be withdrawn."""


class Repaired(_Event, tag="repaired", frozen=True):
    """The request was changed so that the provider takes it; the history itself is untouched."""

    rung: str
    """``normal`` for everyday repairs, else the ladder rung the request was sent on."""
    anomalies: tuple[Anomaly, ...] = ()


class Compacting(_Event, tag="compacting", frozen=True):
    """A model is about to be asked for a summary of older history, which may take as long as an answer.

    ``Compacted`` follows, or none where the history stays as it is. A shortening that asks no model is told
    by ``Compacted`` alone.
    """

    trigger: Literal["manual", "threshold", "overflow"]
    tokens_before: int


class Compacted(_Event, tag="compacted", frozen=True):
    """Older history now reaches the model as a summary, or shortened; the log keeps it whole."""

    trigger: Literal["manual", "threshold", "overflow"]
    method: Literal["model", "pieces", "digest", "prune"]
    tokens_before: int
    tokens_after: int


class TurnEnded(_Event, tag="turn_ended", frozen=True):
    """Last event of a turn."""

    turn: int
    reason: TurnEndReason
    text: str = ""
    """Visible text of the turn's last assistant message."""
    usage: Usage = Usage()
    """Of the turn, failed attempts included."""
    failure: Failure | None = None
    detail: str = ""


UserEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ApprovalNeeded
    | AttemptDiscarded
    | Retrying
    | Repaired
    | Compacting
    | Compacted
    | TurnEnded
)

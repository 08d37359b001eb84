"""Effects of the turn machine: what it wants done, in order, as values.

The driver performs the effects of one transition one after the other; those that take long (a model call, a
tool, a wait, a question) are only started, and their end comes back as an input.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..schema.blocks import ToolCall
from ..schema.events import AssistantMessage, Body, TurnEndReason
from ..schema.failures import Failure
from .events import UserEvent


@dataclass(frozen=True, slots=True)
class Append:
    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class StoreMessage:
    """Append the message and answer ``MessageStored`` with its sequence number."""

    body: AssistantMessage


@dataclass(frozen=True, slots=True)
class Flush:
    """Everything appended so far is durable before the next effect."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Build and check the request on this rung: ``RequestReady`` or ``RequestUnfit``."""

    turn: int
    step: int
    attempt: int
    rung: str
    lowered: int = 0
    """How often the limit of output is halved."""
    without: tuple[str, ...] = ()
    """Tools to leave out."""
    media: bool = True
    """Whether images and files go with it."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Send the prepared request: ``AttemptEnded``."""


@dataclass(frozen=True, slots=True)
class WaitRetry:
    """``RetryDue`` after the delay."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class AskErrorHook:
    """``ErrorHookSaid``."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class AskStopHook:
    """``StopHookSaid``."""

    text: str
    """Visible text of the last message."""


@dataclass(frozen=True, slots=True)
class Compact:
    """``CompactionDone``."""

    trigger: Literal["threshold", "overflow"]
    severity: int = 0
    """How much may be given up; see ``history.compact``."""


@dataclass(frozen=True, slots=True)
class Decide:
    """May this call run: ``CallDecided``, perhaps ``CallAsked`` before it."""

    position: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class RunTool:
    """``ToolEnded``, whatever the tool does."""

    position: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Stop:
    """End all work in flight. A model call and running tools still answer; the rest is forgotten."""


@dataclass(frozen=True, slots=True)
class Emit:
    event: UserEvent


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is closed in the log and flushed."""

    reason: TurnEndReason


Effect: TypeAlias = (
    Append
    | StoreMessage
    | Flush
    | Prepare
    | CallModel
    | WaitRetry
    | AskErrorHook
    | AskStopHook
    | Compact
    | Decide
    | RunTool
    | Stop
    | Emit
    | EndTurn
)

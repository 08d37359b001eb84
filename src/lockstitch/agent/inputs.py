"""Inputs of the turn machine: everything that can happen to a turn, as values.

Whoever performs the machine's effects (``driver``) answers them with these. Jitter and ids are in the inputs
because the machine has no randomness and mints nothing; the time comes beside each input.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..history.decode import Decoded
from ..schema.blocks import Block, Image, Text
from ..schema.events import Body, ToolOutcome, UserMessage
from ..schema.failures import Failure
from ..schema.notes import Anomaly
from ..schema.usage import Usage
from .events import UserEvent


@dataclass(frozen=True, slots=True)
class TurnRequested:
    """Begin a turn with these messages, behind whatever is still queued."""

    messages: tuple[UserMessage, ...]


@dataclass(frozen=True, slots=True)
class InputArrived:
    """A person said something while the turn runs."""

    id: str
    content: tuple[Block, ...]
    mode: Literal["steer", "follow_up"]


@dataclass(frozen=True, slots=True)
class RequestReady:
    """The request for ``Prepare`` passed its validator and can be sent."""

    input_estimate: int
    """Tokens of the prompt, estimated."""
    bodies: tuple[Body, ...] = ()
    """To be logged before the attempt: a changed request header, repairs not logged yet."""
    events: tuple[UserEvent, ...] = ()
    learning: tuple[Anomaly, ...] = ()
    """What the request does without that the log does not know of: to be remembered if it goes through."""
    crowded: bool = False
    """The window is nearly full: the history should be made shorter first."""


@dataclass(frozen=True, slots=True)
class RequestUnfit:
    """The request could not be built validly on this rung, or equals one that was just refused."""

    failure: Failure
    repeated: bool = False
    """True: it is valid but was refused before, byte for byte."""


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    decoded: Decoded
    jitter: float
    """From 0 to 1, drawn by the driver."""
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class MessageStored:
    """The assistant message got this sequence number."""

    seq: int


@dataclass(frozen=True, slots=True)
class RetryDue:
    pass


@dataclass(frozen=True, slots=True)
class ErrorHookSaid:
    verdict: Literal["default", "retry", "compact", "give_up"]
    jitter: float


@dataclass(frozen=True, slots=True)
class StopHookSaid:
    """What the hooks at the end of a turn want said to the model; nothing lets the turn end."""

    messages: tuple[tuple[Block, ...], ...] = ()
    detail: str = ""
    failed: bool = False
    """The answer is not acceptable and asking again is pointless: the turn ends ``failed``."""


@dataclass(frozen=True, slots=True)
class CompactionDone:
    applied: bool
    """Whether the history is shorter than it was."""
    failure: Failure | None = None
    """Why it is not, if a model call is to blame."""
    usage: Usage | None = None
    """Of the model calls it took."""


@dataclass(frozen=True, slots=True)
class CallAsked:
    """The decision on a call is put to a person."""

    position: int
    reason: str = ""
    rule: str = ""
    """Of the approval policy: what could be remembered."""


@dataclass(frozen=True, slots=True)
class CallDecided:
    position: int
    decision: Literal["allowed", "denied", "nobody"]
    """``nobody``: it needs an approval and there is no one to give it."""
    by: str = ""
    reason: str = ""
    remember: Literal["no", "session", "always"] = "no"
    pattern: str = ""
    logged: bool = True
    """False for a plain "no decision was needed"."""


@dataclass(frozen=True, slots=True)
class ToolEnded:
    position: int
    outcome: ToolOutcome
    content: tuple[Text | Image, ...]
    is_error: bool
    duration_ms: int | None = None
    meta: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Broke:
    """A hook or another part of the host failed: close the turn as failed, every call answered."""

    detail: str


Input: TypeAlias = (
    TurnRequested
    | InputArrived
    | RequestReady
    | RequestUnfit
    | AttemptEnded
    | MessageStored
    | RetryDue
    | ErrorHookSaid
    | StopHookSaid
    | CompactionDone
    | CallAsked
    | CallDecided
    | ToolEnded
    | Cancelled
    | Broke
)

"""State of the turn machine: where a turn is, what it was asked for, and the rules it keeps."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..history.policy import RUNGS
from ..llm.retry import RetryPolicy
from ..schema.blocks import Block, ToolCall
from ..schema.events import TurnEndReason
from ..schema.failures import Failure
from ..schema.notes import Anomaly
from ..schema.usage import Usage

MAX_STEPS: Final = 200
"""Steps a turn may take unless the caller says otherwise; a model that needs more is usually lost."""
MAX_PARALLEL: Final = 8
"""Tools that run at once, of those that are declared safe for it."""
NO_USAGE: Final = Usage()
MAX_COMPACTIONS: Final = 4
"""Of one step: before the request, and three times because it was refused as too long all the same."""
MAX_STOP_REQUESTS: Final = 10
"""How often the hooks at the end of a turn may send the model back to work."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of each class; the four are billed apart."""

    input: float
    output: float
    cache_read: float | None = None
    """None: as input."""
    cache_write: float | None = None
    """None: as input."""

    def of(self, usage: Usage) -> float:
        """US dollars for ``usage``."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + (usage.cache_read_tokens or 0) * read
            + (usage.cache_write_tokens or 0) * write
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one model beyond its profile."""

    price: Price | None = None
    context_window: int | None = None
    """Tokens; None: the profile's."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of what may be spent. None: no limit. Checked before each model call, so one call may overrun.

    ``tokens`` and ``cost_usd`` are of the session, resumed or not; ``steps`` and ``seconds`` of one turn.
    """

    steps: int = MAX_STEPS
    tokens: int | None = None
    """Of all four classes, failed attempts included."""
    seconds: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Stuck:
    """When the same calls come again and again, step after step."""

    remind_at: tuple[int, ...] = (3, 5, 8)
    """Repetitions at which the model is told."""
    stop_at: int | None = 12
    """Repetitions at which the turn fails; None: never."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the caller decided; the same for the whole turn."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget = Budget()
    stuck: Stuck = Stuck()
    price: Price | None = None
    parallel: frozenset[str] = frozenset()
    """Tools that may run beside each other."""
    free: frozenset[str] = frozenset()
    """Tools whose calls need no decision: no approval, no hook."""
    tools: tuple[str, ...] = ()
    """Names of all tools."""
    rungs: tuple[str, ...] = RUNGS
    """Ladder of request forms, safest last."""
    can_compact: bool = False
    error_hook: bool = False
    stop_hook: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    id: str
    content: tuple[Block, ...]
    mode: Literal["steer", "follow_up"]


# ---- phases: what the machine waits for ----


@dataclass(frozen=True, slots=True)
class Idle:
    """Between turns."""


@dataclass(frozen=True, slots=True)
class Preparing:
    """For ``RequestReady`` or ``RequestUnfit``."""


@dataclass(frozen=True, slots=True)
class Calling:
    """For ``AttemptEnded``."""


@dataclass(frozen=True, slots=True)
class Storing:
    """For ``MessageStored``."""

    calls: tuple[ToolCall, ...]
    finish: Literal["stop", "tool_calls", "length", "aborted"]


@dataclass(frozen=True, slots=True)
class Judging:
    """For ``ErrorHookSaid``."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Waiting:
    """For ``RetryDue``."""


@dataclass(frozen=True, slots=True)
class Compacting:
    """For ``CompactionDone``."""

    failure: Failure | None
    """The overflow that made it necessary; None: it was due by size."""


SlotStatus: TypeAlias = Literal["waiting", "deciding", "running", "answered"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One call of the stored message and how far its answer is."""

    call: ToolCall
    status: SlotStatus = "waiting"


@dataclass(frozen=True, slots=True)
class Working:
    """For ``CallDecided`` and ``ToolEnded``."""

    message_seq: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    """For ``StopHookSaid``."""


Phase: TypeAlias = Idle | Preparing | Calling | Storing | Judging | Waiting | Compacting | Working | Stopping


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the turn is to end as soon as nothing is open."""

    reason: TurnEndReason
    failure: Failure | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """Everything the machine knows. Made anew from the log when a session opens; see ``resume``."""

    rules: Rules = field(default_factory=Rules)
    phase: Phase = Idle()
    turn: int = 0
    """The turn that runs, or the last one."""
    step: int = 0
    attempt: int = 0
    retry: int = 0
    """Retries of the open step."""
    carried: int = 0
    """Retries that an interrupted step had used up already: they count in the first step of the next turn."""
    rung: str = "normal"
    base_rung: str = "normal"
    """The rung a step begins on: remembered after it succeeded where a higher one was refused."""
    refusal: Failure | None = None
    """The first structural refusal of this step: what is reported if the ladder ends."""
    lowered: int = 0
    """How often the step has halved the limit of output."""
    without: tuple[str, ...] = ()
    """Tools that the provider refused, in earlier turns or in this one: they are left out."""
    media: bool = True
    """False: images or files were refused, so requests hold none until the history is another."""
    learning: tuple[Anomaly, ...] = ()
    """What the request that is under way does without: remembered once it has gone through."""
    server_failures: int = 0
    """Turns in a row, up to the last one, that ended over a server error in spite of every retry."""
    compactions: int = 0
    """How often this step has compacted already; each time more is given up, and the number is bounded."""
    queue: tuple[Queued, ...] = ()
    reminders: tuple[str, ...] = ()
    """Said to the model at the next step, as messages of the runtime."""
    ending: Ending | None = None
    turn_began_ms: int = 0
    step_failed_ms: int | None = None
    """When the first attempt of the step failed: the start of the retry budget."""
    now_ms: int = 0
    turn_usage: Usage = NO_USAGE
    session_usage: Usage = NO_USAGE
    session_cost_usd: float = 0.0
    text: str = ""
    """Visible text of the turn's last message."""
    last_calls: tuple[tuple[str, str], ...] = ()
    repeats: int = 0
    stop_requests: int = 0

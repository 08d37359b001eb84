"""What a turn takes over from earlier ones, folded from a session's events (pure)."""

from dataclasses import replace

import msgspec

from ..schema.events import (
    Approval,
    AssistantMessage,
    Clear,
    CompactionEnd,
    Event,
    LegacyCompaction,
    Recovery,
    RetryScheduled,
    StepStart,
    TurnEnd,
    Undo,
)
from ..schema.failures import Failure
from ..schema.notes import Anomaly
from .amendments import NOTHING, Amendments, amendments_in


class Carried:
    """Folds the events of a session beside its ``Context``; the same log always gives the same."""

    def __init__(self) -> None:
        self.retries = 0
        """Retries that the last turn, if it was interrupted, had used up in its open step."""
        self.repairs: set[bytes] = set()
        """Sets of anomalies that the log names already."""
        self.server_failures = 0
        """Turns in a row that ended over a server error in spite of every retry."""
        self.allowed: set[str] = set()
        """Rules that a person allowed for the whole session."""
        self.amended: dict[tuple[str, str], Amendments] = {}
        """What requests to a model do without, by provider and model."""
        self._before = 0
        self._in_step = 0

    def apply(self, event: Event) -> None:
        """Take one event, in order of ``seq``."""
        match event.body:
            case StepStart(step=step):
                self._before = self.retries if step == 1 else 0
                self._in_step = 0
            case RetryScheduled(retry=retry):
                self._in_step = retry
            case AssistantMessage(finish=finish) if finish != "interrupted":
                self._before = self._in_step = 0
            case TurnEnd(reason=reason, failure=failure):
                died = reason == "failed" and failure is not None and is_server_error(failure)
                self.server_failures = self.server_failures + 1 if died else 0
                self.retries = self._before + self._in_step if reason == "interrupted" else 0
                self._before = self._in_step = 0
            case Recovery() as recovery if recovery.anomalies:
                self._recovered(recovery)
            case CompactionEnd(applied=True) | LegacyCompaction() | Clear() | Undo():
                # Another history deserves its images again, as it does the plain form.
                self.amended = {place: replace(known, media=True) for place, known in self.amended.items()}
            case Approval(decision="allowed", remember="session", pattern=pattern) if pattern:
                self.allowed.add(pattern)
            case _:
                pass

    def amendments(self, provider: str, model: str) -> Amendments:
        """What requests to this model do without."""
        return self.amended.get((provider, model), NOTHING)

    def _recovered(self, body: Recovery) -> None:
        if not body.succeeded:
            self.repairs.add(repair_key(body.rung, body.anomalies))
            return
        known = self.amendments(body.provider, body.model)
        self.amended[body.provider, body.model] = known.joined(amendments_in(body.anomalies))


def repair_key(rung: str, anomalies: tuple[Anomaly, ...]) -> bytes:
    """Stands for a distinct set of anomalies: each is logged and told once."""
    return msgspec.json.encode([rung, sorted(anomalies, key=msgspec.json.encode)])


def is_server_error(failure: Failure) -> bool:
    """A 5xx that says nothing about the load: it may hide a refusal of the request itself."""
    return failure.code == "SERVER" and failure.status is not None and failure.status >= 500

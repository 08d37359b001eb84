"""What a turn takes over from earlier ones, folded from a session's events (pure)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from ..schema.events import (
    Approval,
    AssistantMessage,
    Body,
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
        fold = _FOLDS.get(type(event.body))
        if fold is not None:
            fold(self, event.body)

    def amendments(self, provider: str, model: str) -> Amendments:
        """What requests to this model do without."""
        return self.amended.get((provider, model), NOTHING)

    def _step_start(self, body: StepStart) -> None:
        self._before = self.retries if body.step == 1 else 0
        self._in_step = 0

    def _retry_scheduled(self, body: RetryScheduled) -> None:
        self._in_step = body.retry

    def _answered(self, body: AssistantMessage) -> None:
        if body.finish != "interrupted":
            self._before = self._in_step = 0

    def _turn_end(self, body: TurnEnd) -> None:
        died = body.reason == "failed" and body.failure is not None and is_server_error(body.failure)
        self.server_failures = self.server_failures + 1 if died else 0
        self.retries = self._before + self._in_step if body.reason == "interrupted" else 0
        self._before = self._in_step = 0

    def _recovered(self, body: Recovery) -> None:
        if not body.anomalies:
            return
        if not body.succeeded:
            self.repairs.add(repair_key(body.rung, body.anomalies))
            return
        known = self.amendments(body.provider, body.model)
        self.amended[body.provider, body.model] = known.joined(amendments_in(body.anomalies))

    def _compacted(self, body: CompactionEnd) -> None:
        if body.applied:
            self._rewritten(body)

    def _rewritten(self, body: Body) -> None:
        # Another history deserves its images again, as it does the plain form.
        self.amended = {place: replace(known, media=True) for place, known in self.amended.items()}

    def _approved(self, body: Approval) -> None:
        if body.decision == "allowed" and body.remember == "session" and body.pattern:
            self.allowed.add(body.pattern)


# A table, and not a match: most events of a log are none of these, and each is looked up for each.
_FOLDS: Final[dict[type[Body], Callable[[Carried, Any], None]]] = {
    StepStart: Carried._step_start,
    RetryScheduled: Carried._retry_scheduled,
    AssistantMessage: Carried._answered,
    TurnEnd: Carried._turn_end,
    Recovery: Carried._recovered,
    CompactionEnd: Carried._compacted,
    LegacyCompaction: Carried._rewritten,
    Clear: Carried._rewritten,
    Undo: Carried._rewritten,
    Approval: Carried._approved,
}


def repair_key(rung: str, anomalies: tuple[Anomaly, ...]) -> bytes:
    """Stands for a distinct set of anomalies: each is logged and told once."""
    return msgspec.json.encode([rung, sorted(anomalies, key=msgspec.json.encode)])


def is_server_error(failure: Failure) -> bool:
    """A 5xx that says nothing about the load: it may hide a refusal of the request itself."""
    return failure.code == "SERVER" and failure.status is not None and failure.status >= 500

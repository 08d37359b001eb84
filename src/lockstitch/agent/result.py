"""What a turn came to, and the exception for each way it can have failed."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..schema.errors import ApprovalRequiredError, BudgetError, LockstitchError, ProviderError
from ..schema.events import TurnEndReason
from ..schema.failures import Failure
from ..schema.notes import Anomaly
from ..schema.usage import Usage

T = TypeVar("T")


class TurnFailedError(LockstitchError):
    """The turn ended without a provider being at fault: a stuck model, a hook, an unusable answer."""

    code = "TURN_FAILED"


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """One turn, ended and stored."""

    text: str
    """Visible text of the last message; empty if there was none."""
    output: T
    """The answer as the type that was asked for; None if none was."""
    usage: Usage
    """Of the turn, failed attempts included."""
    cost: float | None
    """US dollars for ``usage``; None where the model's price is not known."""
    session_id: str
    repairs: tuple[Anomaly, ...]
    """What was changed in requests so that the provider took them; the history is untouched."""
    reason: TurnEndReason
    failure: Failure | None = None
    """Why the last attempt failed, where ``reason`` is ``failed``."""
    detail: str = ""
    turn: int = 0

    def check(self) -> "Result[T]":
        """Itself if the turn completed or was cut at the output limit.

        Raises ProviderError, BudgetError, ApprovalRequiredError or TurnFailedError otherwise; the session is
        sound in every case and can go on.
        """
        match self.reason:
            case "completed" | "length":
                return self
            case "approval":
                raise ApprovalRequiredError(f"{self.detail}; pass approve= or --yes")
            case "budget":
                raise BudgetError(self.detail)
            case _ if self.failure is not None:
                raise provider_error(self.failure, self.detail)
            case _:
                raise TurnFailedError(self.detail or f"the turn ended: {self.reason}")


def provider_error(failure: Failure, detail: str) -> ProviderError:
    """The exception for a failure that ended a turn."""
    error = ProviderError(failure.message if not detail else f"{failure.message} ({detail})")
    error.failure = failure
    return error


AnyResult = Result[Any]

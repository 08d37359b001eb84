"""``/why``: the details behind a line that told of a repair, a retry, a refusal or damage."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from ..agent import events
from ..schema.failures import Failure
from ..schema.notes import Anomaly
from ..session.reports import OpenReport
from .chat_items import one_line, safe

KEPT: Final = 50
SHOWN: Final = 20
"""Places of damage, or anomalies, that are listed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A line that was shown, and what is behind it."""

    line: str
    details: tuple[str, ...]


class Reasons:
    """The latest, in order."""

    def __init__(self) -> None:
        self._known: deque[Reason] = deque(maxlen=KEPT)

    def add(self, line: str, details: list[str]) -> None:
        self._known.append(Reason(line, tuple(safe(text) for text in details)))

    def text(self, back: int = 1) -> list[str]:
        """The lines of the last one, or of the one so many before."""
        if not 1 <= back <= len(self._known):
            return [
                "nothing was repaired, retried, refused or set aside so far"
                if not self._known
                else f"there are only {len(self._known)} to tell of"
            ]
        reason = self._known[-back]
        lines = [reason.line, *(f"  {detail}" for detail in reason.details)]
        if back == 1 and len(self._known) > 1:
            lines.append(f"  (/why 2 to /why {len(self._known)}: what came before)")
        return lines


def of_failure(failure: Failure) -> list[str]:
    """Everything a failure holds, for a bug report."""
    pairs = [
        ("code", failure.code),
        ("HTTP status", failure.status),
        ("cause", failure.subkind),
        ("the provider's code", failure.provider_code),
        ("the provider said", failure.provider_message),
        ("it asked to wait", f"{failure.retry_after_s} s" if failure.retry_after_s is not None else None),
        ("request id", failure.request_id),
    ]
    return [failure.message, *(f"{name}: {value}" for name, value in pairs if value is not None)]


def of_repair(event: events.Repaired) -> list[str]:
    """What was changed in the request; the history itself was not."""
    lines = [_anomaly(anomaly) for anomaly in event.anomalies[:SHOWN]]
    if len(event.anomalies) > SHOWN:
        lines.append(f"and {len(event.anomalies) - SHOWN} more")
    way = [] if event.rung == "normal" else [f"sent in the safer form `{event.rung}`"]
    return [*way, *lines, "the session itself is unchanged: repairs are made in the request only"]


def of_opening(report: OpenReport) -> list[str]:
    """Where the log is damaged, and where the bytes went."""
    lines = [
        f"at byte {place.offset:,}, {place.length:,} bytes: {place.reason}" for place in report.damage[:SHOWN]
    ]
    lines += [f"a copy of the damaged bytes is in {name}" for name in report.files]
    if report.closed_calls or report.closed_attempts:
        lines.append("the last turn was interrupted; the model is told which calls may have run")
    if is_damaged(report):
        lines.append("`lockstitch sessions check` says more, and `sessions repair` mends the file")
    return lines


def is_damaged(report: OpenReport) -> bool:
    """Whether records were lost or out of place; one that the end of a process cut off is no damage."""
    return bool(report.set_aside or report.missing or report.defects)


def _anomaly(anomaly: Anomaly) -> str:
    ids = f" ({', '.join(anomaly.ids)})" if anomaly.ids else ""
    detail = f": {anomaly.detail}" if anomaly.detail else ""
    return one_line(f"{anomaly.kind} at {anomaly.where or 'the request'}{ids}{detail}", 300)

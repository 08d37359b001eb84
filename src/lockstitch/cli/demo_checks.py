"""What must be true after the demo: each check is a sentence, and what was found if it does not hold."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..history.context import Context
from ..schema.blocks import ToolCall
from ..schema.events import (
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Event,
    Recovery,
    RetryStarted,
    SessionRepaired,
    ToolFinished,
    TurnEnd,
)
from ..schema.usage import Usage
from ..session.reports import CheckReport
from . import demo_story as story
from . import exit_codes


@dataclass(frozen=True, slots=True)
class Check:
    sentence: str
    holds: bool
    found: str = ""


@dataclass(slots=True)
class Evidence:
    """Everything the story left behind."""

    events: list[Event]
    report: CheckReport
    journal: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    """Of the agent that finished."""
    exit_code: int
    tool_gone: bool
    test_failed_before: bool
    test_passes_after: bool
    project: Path
    home: Path
    output: str
    """All that the agents printed, on both streams."""
    context: Context = field(default_factory=Context)

    def __post_init__(self) -> None:
        for event in self.events:
            self.context.apply(event)

    def bodies(self, kind: type[Any]) -> list[Any]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    @property
    def billed(self) -> Usage:
        return self.context.usage

    @property
    def repairs(self) -> int:
        """Calls and attempts closed after the kill, and repairs of requests."""
        mended = self.bodies(SessionRepaired)
        closed: int = sum(body.closed_calls + body.closed_attempts for body in mended)
        return closed + len(self.bodies(Recovery))


def checks(seen: Evidence) -> list[Check]:
    """All of them, in the order of the story."""
    return [*_log(seen), *_billing(seen), *_requests(seen), *_kill(seen), *_work(seen), *_secrets(seen)]


def _log(seen: Evidence) -> Iterator[Check]:
    report = seen.report
    yield Check(
        "every byte of the log is a record that its own gate accepts",
        report.sound and not report.open_calls and report.open_turn is None,
        str(report),
    )
    attempts = len(seen.bodies(AttemptStart))
    yield Check(f"{story.ATTEMPTS} model calls were made", attempts == story.ATTEMPTS, f"{attempts}")
    calls = _calls(seen)
    nameless = [call for call in calls if not call.id or not call.name]
    yield Check("no call without id or name was ever stored", not nameless, f"{nameless}")
    outcomes = _outcomes(seen)
    yield Check("every call has one answer, and it is true", outcomes == story.CALLS, f"{outcomes}")
    ends = tuple(body.reason for body in seen.bodies(TurnEnd))
    yield Check("the killed turn is closed, the second one completed", ends == story.TURNS, f"{ends}")


def _billing(seen: Evidence) -> Iterator[Check]:
    failed = seen.bodies(AttemptFailed)
    codes = [body.failure.code for body in failed]
    yield Check(
        "the call without a name was refused, and its attempt retried once",
        codes == [story.REFUSED] and len(seen.bodies(RetryStarted)) == 1,
        f"{codes}",
    )
    usages = [body.usage for body in failed]
    yield Check("the refused attempt's tokens are counted", usages == [story.USAGES[1]], f"{usages}")
    yield Check("all tokens the gateway billed are counted", seen.billed == story.billed(), f"{seen.billed}")


def _requests(seen: Evidence) -> Iterator[Check]:
    posted = [entry for entry in seen.journal if entry["method"] == "POST"]
    statuses = [(entry["status"], entry.get("refused")) for entry in posted]
    yield Check(
        "the strict gateway refused no request",
        statuses == [(200, None)] * story.ATTEMPTS,
        f"{statuses}",
    )
    bodies = [entry["body"] for entry in posted]
    same = len(bodies) > 2 and bodies[1] == bodies[2]
    yield Check("the retry sent the same request again", same, "the bodies differ")
    sent = [call for body in bodies for call in _sent_calls(body)]
    bad = [call for call in sent if not call.get("id") or not call["function"].get("name")]
    yield Check("every call sent back kept its identity", bool(sent) and not bad, f"{bad}")


def _kill(seen: Evidence) -> Iterator[Check]:
    yield Check("the killed agent's tool did not outlive it", seen.tool_gone, "it was still running")


def _work(seen: Evidence) -> Iterator[Check]:
    text = (seen.project / "till.py").read_text(encoding="utf-8")
    yield Check("the file holds the edit, once", text == story.MENDED, text)
    yield Check("the project's test failed before", seen.test_failed_before, "it passed")
    yield Check("the project's test passes now", seen.test_passes_after, "it fails")
    last = seen.lines[-1] if seen.lines else {}
    answer = (seen.exit_code, last.get("type"), last.get("reason"), last.get("text"))
    wanted = (exit_codes.DONE, "result", "completed", story.ANSWER)
    yield Check("the agent gave its answer and exit code 0", answer == wanted, f"{answer}")


def _secrets(seen: Evidence) -> Iterator[Check]:
    places = [str(path) for path in seen.home.rglob("*") if path.is_file() and _holds_key(path)]
    if story.KEY in seen.output:
        places.append("the agent's output")
    if story.KEY in json.dumps(seen.journal):
        places.append("the gateway's journal")
    yield Check("the key is in no log, no output and no journal", not places, ", ".join(places))


def _holds_key(path: Path) -> bool:
    return story.KEY.encode() in path.read_bytes()


def _calls(seen: Evidence) -> list[ToolCall]:
    messages: Sequence[AssistantMessage] = seen.bodies(AssistantMessage)
    return [block for message in messages for block in message.content if isinstance(block, ToolCall)]


def _outcomes(seen: Evidence) -> tuple[tuple[str, str], ...]:
    """Name and outcome of each call, in the order they were made, answers counted by occurrence."""
    answers: dict[tuple[int, int], list[str]] = {}
    for body in seen.bodies(ToolFinished):
        answers.setdefault((body.message_seq, body.position), []).append(body.outcome)
    found: list[tuple[str, str]] = []
    for event in seen.events:
        if isinstance(event.body, AssistantMessage):
            calls = [block for block in event.body.content if isinstance(block, ToolCall)]
            for position, call in enumerate(calls):
                found.append((call.name, " and ".join(answers.get((event.seq, position), ["no answer"]))))
    return tuple(found)


def _sent_calls(body: Any) -> Iterator[dict[str, Any]]:
    for message in body.get("messages", ()):
        yield from message.get("tool_calls", ())

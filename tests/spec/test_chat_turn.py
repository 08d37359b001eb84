"""A turn told to a view: which lines stand under each other, and what is told once."""

from types import SimpleNamespace
from typing import Any

import pytest

from lockstitch.agent import events
from lockstitch.cli.chat_items import Item
from lockstitch.cli.chat_plain import plain
from lockstitch.cli.chat_turn import TurnTeller
from lockstitch.cli.chat_why import Reasons
from lockstitch.schema.failures import failure
from lockstitch.schema.notes import Anomaly
from lockstitch.schema.usage import Usage


class Lines:
    """A view that keeps what it was shown."""

    interactive = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    def show(self, item: Item) -> None:
        self.seen += plain(item)

    def stream(self, text: str) -> None:
        self.seen.append(f"~{text}")

    def settle(self) -> None:
        pass

    def withdraw(self) -> None:
        self.seen.append("withdrawn")

    def changed(self) -> None:
        pass


def started(call: str, path: str) -> events.ToolStarted:
    return events.ToolStarted(call_id=call, name="read", arguments=f'{{"path": "{path}"}}')


def finished(call: str, text: str = "a\n") -> events.ToolFinished:
    return events.ToolFinished(call_id=call, name="read", outcome="done", text=text)


DOWN = failure("TRANSPORT", "no connection")
NO_MONEY = failure("QUOTA", "pay first")


def discarded(why: Any) -> events.AttemptDiscarded:
    return events.AttemptDiscarded(attempt=1, failure=why)


def ended(reason: Any, why: Any = None, detail: str = "") -> events.TurnEnded:
    return events.TurnEnded(turn=1, reason=reason, failure=why, detail=detail)


TURNS: dict[str, tuple[list[events.UserEvent], list[str]]] = {
    "a result stands under its call": (
        [started("1", "a"), events.ToolProgress("1", "reading"), finished("1")],
        ["* read a", "  read: done, 1 line"],
    ),
    "results of calls that run at once name theirs": (
        [started("1", "a"), started("2", "b"), finished("1"), finished("2")],
        ["* read a", "* read b", "  read a: done, 1 line", "  read b: done, 1 line"],
    ),
    "the last of them stands under its own, if it is the first to end": (
        [started("1", "a"), started("2", "b"), finished("2"), finished("1")],
        ["* read a", "* read b", "  read: done, 1 line", "  read a: done, 1 line"],
    ),
    "a result of a call that never ran names its tool": ([finished("1")], ["  read: done, 1 line"]),
    "a failure that is retried is told when the retry is": (
        [events.TextDelta("Hel"), discarded(DOWN), events.Retrying(1, "TRANSPORT", 500)],
        ["~Hel", "withdrawn", "-- the model call failed: TRANSPORT: no connection (/why)"],
    ),
    "a failure that ends the turn is told once": (
        [discarded(NO_MONEY), ended("failed", NO_MONEY)],
        ["withdrawn", "-- turn failed: pay first (/why)"],
    ),
    "a failure before another that ends the turn is told as well": (
        [discarded(DOWN), discarded(NO_MONEY), ended("failed", NO_MONEY)],
        [
            "withdrawn",
            "-- the model call failed: TRANSPORT: no connection (/why)",
            "withdrawn",
            "-- turn failed: pay first (/why)",
        ],
    ),
    "a repair is told in words": (
        [events.Repaired("normal", (Anomaly("reasoning_dropped"), Anomaly("limit_lowered")))],
        ["-- request mended: reasoning left out, the limit of output lowered (/why)"],
    ),
    "a safer form is told in words": (
        [events.Repaired("strict", (Anomaly("rung"),))],
        [
            "-- request mended: sent without fields that only some providers know; "
            "a plainer form chosen (/why)"
        ],
    ),
    "a summary is told when it is asked for and when it is there": (
        [
            events.TextDelta("So far."),
            events.Compacting("threshold", 9_000),
            events.Compacted("threshold", "model", 9_000, 1_200),
        ],
        [
            "~So far.",
            "-- summarising older history …",
            "-- older history is now a summary: 9,000 tokens became 1,200",
        ],
    ),
    "an answer that is cut off says how to go on": (
        [ended("length", detail="the model reached its output limit")],
        ["-- the answer is cut off (/continue goes on): the model reached its output limit"],
    ),
}


@pytest.mark.parametrize(("told", "lines"), TURNS.values(), ids=TURNS)
def test_a_turn_is_told(told: list[events.UserEvent], lines: list[str]) -> None:
    view = Lines()
    session: Any = SimpleNamespace(messages=[], queued=(), cost=None, usage=Usage())
    teller = TurnTeller(session, view, Reasons())
    for event in told:
        teller.tell(event)
    assert view.seen == lines

"""How large a session's log gets, beside a log with one record for each delta. Nothing is timed.

Deltas come at a steady rate on a made-up clock, a mix of reasoning, text and arguments of calls in pieces as
long as tokens; the log takes them as the agent does, and the whole message at the end of each response.
"""

import re
from collections.abc import Iterator
from itertools import cycle, islice

from paired import spread
from report import Goal, Report

from lockstitch.agent.deltas import EVERY_MS, Coalescer
from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.schema.events import AssistantDelta, AssistantMessage, Body
from lockstitch.wire.jsonl import encode

DELTAS = 1_300_000
RATES = (30, 100, 300)
"""Deltas a second: a large model, a fast one, and one on a machine made for it."""
SAID = {
    "reasoning": (
        "The test fails only when both clients reconnect at once, so the order of the two locks matters. "
        "Let me look at how `release()` is called: if the socket was closed before, `self._owner` is still "
        "set, and the second client waits for ever. But the timeout should catch that... unless it is 0. "
    ),
    "text": (
        "I found the cause. `release()` returns early when the socket is closed, and leaves `_owner` as it "
        "was:\n\n```python\nif self._socket is None:\n    return\n```\n\nThe next client then waits for a "
        "lock that nobody holds. I will move the assignment, and add a test that closes the socket first. "
    ),
    "arguments": (
        '{"path":"src/pool/lock.py","old":"        if self._socket is None:\\n            return\\n        '
        'self._owner = None\\n","new":"        self._owner = None\\n        if self._socket is None:\\n"}'
    ),
}
COUNTS = {"reasoning": 300, "text": 250, "arguments": 100}
"""Deltas of one response."""
TOKEN = re.compile(r" ?[A-Za-z]{1,7}|[0-9]|\s+|[^\w\s]{1,2}|_")
TIME_MS = 1_760_000_000_000


def run(rounds: int, everything: bool) -> Report:
    """One round is enough: the sizes are always the same."""
    del rounds, everything
    responses = DELTAS // sum(COUNTS.values())
    single = sum(map(_size, _one_record_each()))
    rows = [["one record a delta", "any", f"{single * responses / 2**20:.1f}", "1.00"]]
    goals = []
    for rate in RATES:
        ours = sum(map(_size, _coalesced(rate)))
        size = f"{ours * responses / 2**20:.1f}"
        rows.append(["Lockstitch, messages included", str(rate), size, f"{ours / single:.2f}"])
        what = f"Lockstitch over one record a delta, {rate} deltas a second"
        goals.append(Goal(what, "at most", 0.25, spread([ours / single])))
    method = (
        f"{DELTAS:,} deltas of reasoning, text and arguments, as long as tokens "
        f"({len(''.join(text for _, text in _pieces())) / sum(COUNTS.values()):.1f} characters)."
    )
    return Report("Size of the log", method, ["log", "deltas a second", "MiB", "ratio"], rows, goals)


def _pieces() -> Iterator[tuple[str, str]]:
    """Kind and text of each delta of one response."""
    for kind, count in COUNTS.items():
        for text in islice(cycle(TOKEN.findall(SAID[kind])), count):
            yield kind, text


def _one_record_each() -> Iterator[Body]:
    for kind, text in _pieces():
        yield AssistantDelta(0, "reasoning" if kind == "reasoning" else "text", text)


def _coalesced(rate: int) -> Iterator[Body]:
    """What the agent logs of one response: its timer starts with the first delta that is held back."""
    said = dict.fromkeys(COUNTS, "")
    deltas, held, due_ms = Coalescer(), False, 0.0
    for number, (kind, text) in enumerate(_pieces()):
        now_ms = number * 1000 / rate
        said[kind] += text
        if held and now_ms >= due_ms:
            yield from deltas.flush()
            held = False
        if kind == "arguments":
            continue
        if not held:
            held, due_ms = True, now_ms + EVERY_MS
        yield from deltas.add(int(kind == "text"), "text" if kind == "text" else "reasoning", text)
    yield from deltas.flush()
    content: tuple[Block, ...] = (
        Reasoning(said["reasoning"]),
        Text(said["text"]),
        ToolCall(id="call_1", name="edit", arguments=said["arguments"]),
    )
    yield AssistantMessage("m", content, "tool_calls", "generic", "m")


def _size(body: Body) -> int:
    return len(encode(1_000_000, TIME_MS, body))

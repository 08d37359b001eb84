"""How large a session's log gets, beside a log with one record for each delta. Nothing is timed.

Deltas come at a steady rate on a made-up clock, a mix of reasoning, text and arguments of calls; the log
takes them as the agent does, and the whole message at the end of each response.
"""

from collections.abc import Iterator

from paired import spread
from report import Goal, Report

from lockstitch.agent.deltas import EVERY_MS, Coalescer
from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.schema.events import AssistantDelta, AssistantMessage, Body
from lockstitch.wire.jsonl import encode

DELTAS = 1_300_000
PER_SECOND = 100
"""Of a fast model; a slow one has fewer to join in 50 ms."""
REASONING, TEXT, ARGUMENTS = 300, 250, 100
"""Deltas of one response."""
TIME_MS = 1_760_000_000_000


def run(rounds: int, everything: bool) -> Report:
    """One round is enough: the sizes are always the same."""
    del rounds, everything
    responses = DELTAS // (REASONING + TEXT + ARGUMENTS)
    single = sum(map(_size, _one_record_each()))
    ours = sum(map(_size, _coalesced()))
    rows = [
        ["one record a delta", f"{single * responses / 2**20:.1f}"],
        ["Lockstitch, messages included", f"{ours * responses / 2**20:.1f}"],
    ]
    goal = Goal("Lockstitch over one record a delta", "at most", 0.25, spread([ours / single]))
    method = f"{DELTAS:,} deltas of reasoning, text and arguments, {PER_SECOND} a second."
    return Report("Size of the log", method, ["log", "MiB"], rows, [goal])


def _pieces() -> Iterator[tuple[str, str]]:
    """Kind and text of each delta of one response."""
    for kind, count in (("reasoning", REASONING), ("text", TEXT), ("arguments", ARGUMENTS)):
        for number in range(count):
            yield kind, f" word{number % 89}"


def _one_record_each() -> Iterator[Body]:
    for kind, text in _pieces():
        yield AssistantDelta(0, "reasoning" if kind == "reasoning" else "text", text)


def _coalesced() -> Iterator[Body]:
    """What the agent logs of one response."""
    said = {"reasoning": "", "text": "", "arguments": ""}
    deltas, since_ms, now_ms = Coalescer(), 0.0, 0.0
    for kind, text in _pieces():
        said[kind] += text
        now_ms += 1000 / PER_SECOND
        if kind == "arguments":
            continue
        if now_ms - since_ms >= EVERY_MS:
            yield from deltas.flush()
            since_ms = now_ms
        yield from deltas.add(int(kind == "text"), "text" if kind == "text" else "reasoning", text)
    yield from deltas.flush()
    content: tuple[Block, ...] = (
        Reasoning(said["reasoning"]),
        Text(said["text"]),
        ToolCall(id="call_1", name="write", arguments=said["arguments"]),
    )
    yield AssistantMessage("m", content, "tool_calls", "generic", "m")


def _size(body: Body) -> int:
    return len(encode(1_000_000, TIME_MS, body))

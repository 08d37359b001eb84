"""Made-up sessions for benchmarks: the events of an agent at work, and their log, the same on every run."""

from collections.abc import Iterator

from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.events import (
    AssistantDelta,
    AssistantMessage,
    AttemptStart,
    Body,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    RequestHeader,
    SessionStart,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.messages import ToolSpec
from lockstitch.schema.usage import Usage
from lockstitch.wire.jsonl import encode

STEPS_PER_TURN = 20
TURNS_PER_COMPACTION = 20
DELTAS_PER_STEP = 4
TIME_MS = 1_760_000_000_000


def bodies(*, compacted: bool = True) -> Iterator[Body]:
    """Events without end: turns of twenty steps, each with shown text, one call and its result.

    Compacted as often as an agent's history would have to be, or never.
    """
    yield SessionStart(1, "bench", "/home/user/project")
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    yield RequestHeader(
        "generic", "m", system="Be brief.", tools=(ToolSpec("read", "Read a file.", parameters),)
    )
    seq, turn = 2, 0
    while True:
        turn += 1
        opening: list[Body] = [
            TurnStart(turn),
            UserMessage(f"u{turn}", (Text(text=f"Please look at part {turn} of the project."),)),
        ]
        yield from opening
        seq += len(opening)
        for step in range(1, STEPS_PER_TURN + 1):
            before = [*_attempt(turn, step), _message(turn, step)]
            message_seq = seq + len(before) - 1
            after = _tool(turn, step, message_seq)
            yield from before
            yield from after
            seq += len(before) + len(after)
        yield TurnEnd(turn, "completed")
        seq += 1
        if compacted and turn % TURNS_PER_COMPACTION == 0:
            name = f"c{turn}"
            yield CompactionStart(name, "threshold")
            yield CompactionSummary(name, (Text(text=f"The first {turn} parts were looked at."),))
            yield CompactionEnd(name, applied=True)
            seq += 3


def lines(events: int, *, compacted: bool = True) -> Iterator[bytes]:
    """The log of the first `events` events, as the store writes it."""
    source = bodies(compacted=compacted)
    return (encode(seq, TIME_MS + seq, next(source)) for seq in range(events))


def _attempt(turn: int, step: int) -> list[Body]:
    shown = [
        AssistantDelta(0, "text", f"I am reading piece {number} of what the module says about itself. ")
        for number in range(DELTAS_PER_STEP)
    ]
    return [StepStart(turn, step), AttemptStart(turn, step, 1, input_estimate=1000 * step), *shown]


def _message(turn: int, step: int) -> Body:
    said = "".join(f"I am reading piece {number} of the module. " for number in range(DELTAS_PER_STEP))
    call = ToolCall(id=f"call_{turn}_{step}", name="read", arguments=f'{{"path":"src/module_{step}.py"}}')
    usage = Usage(input_tokens=1000 * step, output_tokens=60, cache_read_tokens=900 * step)
    return AssistantMessage(f"m{turn}_{step}", (Text(text=said), call), "tool_calls", "generic", "m", usage)


def _tool(turn: int, step: int, message_seq: int) -> list[Body]:
    call_id = f"call_{turn}_{step}"
    output = "\n".join(f"    value_{line} = compute({line}, step={step})" for line in range(12))
    return [
        ToolCallStarted(message_seq, 0, call_id, "read"),
        ToolFinished(message_seq, 0, call_id, (Text(text=output),), "done", duration_ms=3),
        StepEnd(turn, step),
    ]

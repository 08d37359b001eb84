"""Logs that the gate accepts, of any shape, and whole values of what is folded from them."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from lockstitch.agent.amendments import Amendments
from lockstitch.agent.session_fold import SessionFold
from lockstitch.history.context import Context
from lockstitch.schema.blocks import Image, Opaque, Reasoning, Replay, Text, ToolCall, UrlSource
from lockstitch.schema.events import (
    Approval,
    AssistantDelta,
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    Clear,
    CompactionCall,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    InputQueued,
    InputTaken,
    LegacyCompaction,
    NoteEvent,
    OutputCount,
    Prune,
    Recovery,
    RequestHeader,
    RetryScheduled,
    RetryStarted,
    SessionRepaired,
    SessionStart,
    StepEnd,
    StepStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Undo,
    UserMessage,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.messages import Options, ToolSpec
from lockstitch.schema.notes import Anomaly, Note
from lockstitch.schema.usage import Usage
from lockstitch.session.gate import refusal
from lockstitch.session.intake import admit
from lockstitch.session.log_state import LogState

SERVER = failure("SERVER", "broken", status=500)
FULL = failure("CONTEXT_WINDOW_EXCEEDED", "maximum context length is 8192 tokens", status=400)
WORDS = "größe 你好 \x00 \U0001f600 " + "x" * 60
AMENDED = Amendments(max_tokens=900, tools=(("read", "0123"), ("x", "4")), media=False).anomalies()
VALUE = {"n": [1, 2.5, -0.0, 1e300, 2**70, None, True, {"deep": [[], {}]}]}


def _said(words: str) -> tuple[Text, ...]:
    return (Text(text=words),)


def _between_turns(state: LogState) -> list[Body]:
    seqs = tuple(range(max(state.next_seq - 9, 0), state.next_seq, 2))
    return [
        *[TurnStart(state.turns + 1)] * 4,
        Undo(max(state.turns - 1, 1)),
        Undo(max(state.turns // 2, 1)),
        Clear(),
        Prune(seqs, 5, 3),
        LegacyCompaction(_said(f"OLD{state.next_seq}"), state.next_seq % 4),
    ]


def _compacting(state: LogState) -> list[Body]:
    seqs = tuple(range(max(state.next_seq - 30, 0), state.next_seq))
    keep = max(state.next_seq - 12, 0)
    name = state.compaction or "none"
    return [
        CompactionStart(f"c{state.next_seq}", "threshold", keep, seqs, seqs[::3], 4, 2),
        CompactionStart(f"c{state.next_seq}", "manual"),
        CompactionCall(name, 700, Usage(4, 5)),
        OutputCount(90),
        CompactionSummary(name, _said(f"SUM{state.next_seq}"), Usage(5, 6), "model", ("a.py",), (), ("do",)),
        CompactionSummary(name, _said(" ")),
        CompactionEnd(name, applied=True),
        CompactionEnd(name, applied=False, usage=Usage(1, 1, estimated=True)),
    ]


def _in_turn(state: LogState) -> list[Body]:
    turn, step, attempt = state.turn, state.step, state.attempt + 1
    calls = (
        ToolCall("a", "read", '{"p":1}'),
        ToolCall("a", "list", "{"),
        ToolCall("b", "x", "", invalid="cut"),
    )
    blocks = (Reasoning("hm", signature="s"), Text(text=WORDS, replay=Replay("p", "m", VALUE)), *calls)
    opaque = (Opaque(protocol="anthropic-messages", value=VALUE), Text(text="t", extra=VALUE))
    answer = (f"m{state.next_seq}", blocks, "tool_calls", "generic", "m", Usage(900, 20, 7, None, 3))
    return [
        TurnEnd(turn, "completed"),
        TurnEnd(turn, "interrupted"),
        TurnEnd(turn, "failed", SERVER),
        *[StepStart(turn, step + 1)] * 3,
        StepEnd(turn, step),
        AttemptStart(turn, step, attempt, input_estimate=9000),
        AttemptStart(turn, step, attempt, rung="strict"),
        AssistantDelta(0, "text", "word"),
        AssistantDelta(1, "reasoning", "why"),
        OutputCount(30),
        *[AssistantMessage(*answer, (Note("no_done"),))] * 4,
        AssistantMessage(f"m{state.next_seq}", opaque, "interrupted"),
        AttemptFailed(SERVER, Usage(90)),
        AttemptFailed(FULL),
        RetryScheduled(state.retry + 1, "SERVER", 100),
        RetryStarted(state.retry),
    ]


def _calls(state: LogState) -> list[Body]:
    image = Image("image/png", UrlSource("https://example.com/a.png"))
    bodies: list[Body] = []
    for place, call in list(state.calls.items())[:2]:
        bodies += [
            ToolCallStarted(*place, call.call_id, call.name),
            Approval(*place, "allowed", "user", "session", f"{call.name} *"),
            ToolFinished(*place, call.call_id, (Text(text=WORDS), image), "done", meta=VALUE),
            ToolFinished(*place, call.call_id, _said("no"), "denied", is_error=True),
        ]
    return bodies


def _anywhere(state: LogState) -> list[Body]:
    n = state.next_seq
    anomalies = (Anomaly("orphan_result_dropped", f"messages[{n % 3}]", ("x",)),)
    return [
        UserMessage(f"u{n}", (*_said(f"u{n} {WORDS}"), Image("image/png", UrlSource("data:x"))), "user"),
        UserMessage(f"u{n}", _said("reminder"), "runtime"),
        InputQueued(f"q{n}", _said("queued"), "steer"),
        *(InputTaken(name, dropped=bool(n % 2)) for name in list(state.inputs)[:1]),
        *(UserMessage(name, _said("taken"), "steer") for name in list(state.inputs)[:1]),
        RequestHeader("generic", "m", Options(max_tokens=5), "be brief", (ToolSpec("read", "reads", VALUE),)),
        RequestHeader("anthropic", f"m{n % 2}"),
        Recovery("strict", anomalies, "generic", "m"),
        Recovery("strict", anomalies, "generic", "m", succeeded=True),
        Recovery("normal", AMENDED, "generic", f"m{n % 2}", succeeded=True),
        Title(f"title {n}"),
        NoteEvent("extension", VALUE),
        SessionRepaired(torn_bytes=3, closed_calls=1),
    ]


def walk(choices: Sequence[int]) -> list[Body]:
    """A session that takes one of its possible next events after the other. Its first is in it."""
    state = LogState()
    bodies: list[Body] = [SessionStart(1, "s", "/somewhere")]
    admit(state, bodies, 0)
    for choice in choices:
        # What a running turn does is weighted, or most logs would be titles.
        group = (_in_turn, _calls, _in_turn, _compacting, _between_turns, _calls, _anywhere)[choice % 7]
        possible = [body for body in group(state) if refusal(state, body) is None]
        if possible:
            body = possible[choice // 7 % len(possible)]
            admit(state, (body,), 0)
            bodies.append(body)
    return bodies


def random_walk(seed: int, steps: int) -> list[Body]:
    chance = random.Random(seed)
    return walk([chance.randrange(7 * 360) for _ in range(steps)])


def sound_logs(steps: int = 120) -> st.SearchStrategy[list[Body]]:
    return st.lists(st.integers(0, 7 * 360 - 1), min_size=1, max_size=steps).map(walk)


def context_values(context: Context) -> dict[str, Any]:
    """Every attribute, those of its parts as well, as values that compare as a whole."""
    values = dict(vars(context))
    values["_live"] = dict(vars(values["_live"]))
    values["transcript"] = dict(vars(values["transcript"]))
    return values


def fold_values(fold: SessionFold) -> dict[str, Any]:
    return {
        "next_seq": fold.next_seq,
        "context": context_values(fold.context),
        "carried": dict(vars(fold.carried)),
    }

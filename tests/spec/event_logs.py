"""Logs for tests: short constructors, and a strategy for sessions with everything that rewrites a history."""

from collections.abc import Sequence

from hypothesis import strategies as st

from lockstitch.history.context import Context
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.events import (
    AssistantMessage,
    AttemptStart,
    Body,
    Clear,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    LegacyCompaction,
    Prune,
    ToolFinished,
    TurnEnd,
    TurnStart,
    Undo,
    UserMessage,
)


def text(words: str) -> tuple[Text, ...]:
    return (Text(text=words),)


def said(words: str, origin: str = "user") -> UserMessage:
    return UserMessage(id=words[:20] or "u", content=text(words), origin=origin)


def answered(words: str, *calls: str, arguments: str = "{}") -> AssistantMessage:
    blocks = (*text(words), *(ToolCall(id=call, name="read", arguments=arguments) for call in calls))
    return AssistantMessage(
        id=words[:20] or "a", content=blocks, finish="stop", provider="generic", model="m"
    )


def finished(seq: int, position: int, words: str = "out") -> ToolFinished:
    return ToolFinished(message_seq=seq, position=position, call_id="c", content=text(words), outcome="done")


def events(bodies: Sequence[Body]) -> list[Event]:
    return [Event(seq, 1000 + seq, body) for seq, body in enumerate(bodies)]


def fold(bodies: Sequence[Body], context: Context | None = None) -> Context:
    context = context or Context()
    for event in events(bodies):
        context.apply(event)
    return context


def compaction(
    keep_from: int | None, summary: str = "SUM", *, applied: bool = True, prompts: tuple[int, ...] = ()
) -> list[Body]:
    return [
        CompactionStart("k", "manual", keep_from, keep_prompts=prompts),
        CompactionSummary("k", text(summary)),
        CompactionEnd("k", applied),
    ]


@st.composite
def logs(draw: st.DrawFn, max_moves: int = 14) -> list[Body]:
    """A session's events: turns with calls, some unanswered, interruptions, and rewrites of every kind."""
    bodies: list[Body] = []
    turn = 0
    for _ in range(draw(st.integers(1, max_moves))):
        move = draw(
            st.sampled_from(["turn"] * 5 + ["compact", "broken", "legacy", "undo", "clear", "prune", "stray"])
        )
        at = len(bodies)
        match move:
            case "turn":
                turn += 1
                bodies += _turn(draw, at, turn)
            case "compact":
                live = [m.seq for m in fold(bodies).messages if m.seq is not None]
                keep = draw(st.none() | st.sampled_from(live)) if live else None
                prompts = tuple(draw(st.lists(st.sampled_from(live), max_size=3))) if live else ()
                bodies += compaction(keep, f"SUM{at}", prompts=prompts)
            case "broken":
                whole = compaction(None, draw(st.sampled_from(["", "S"])), applied=draw(st.booleans()))
                bodies += whole[: draw(st.integers(1, 3))]
            case "legacy":
                bodies.append(LegacyCompaction(text(f"OLD{at}"), draw(st.integers(0, 8))))
            case "undo":
                bodies.append(Undo(draw(st.integers(1, max(turn, 1)))))
            case "clear":
                bodies.append(Clear())
            case "prune":
                bodies.append(Prune(tuple(draw(st.lists(st.integers(0, at), max_size=4))), 2, 1))
            case _:
                bodies.append(finished(draw(st.integers(0, at)), draw(st.integers(0, 2)), "a stray result"))
    return bodies


def _turn(draw: st.DrawFn, at: int, turn: int) -> list[Body]:
    bodies: list[Body] = [TurnStart(turn), said(f"u{turn}", draw(st.sampled_from(["user", "runtime"])))]
    for step in range(draw(st.integers(0, 3))):
        bodies.append(AttemptStart(turn, step + 1, 1))
        calls = draw(st.lists(st.sampled_from("ab"), max_size=2))
        seq = at + len(bodies)
        bodies.append(answered(f"a{seq}", *calls))
        for position in draw(st.permutations(range(len(calls)))):
            if draw(st.integers(0, 5)):
                bodies.append(finished(seq, position, f"result {seq}.{position} " + "x" * 30))
    if draw(st.integers(0, 5)):
        bodies.append(TurnEnd(turn, draw(st.sampled_from(["completed", "interrupted"]))))
    return bodies

"""A session that holds every kind of event, small enough to be cut at every byte."""

from lockstitch.schema.blocks import Image, Reasoning, Text, ToolCall, UrlSource
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
from lockstitch.schema.messages import ToolSpec
from lockstitch.schema.notes import Anomaly, Note
from lockstitch.schema.usage import Usage


def a_tool_turn(first_seq: int, turn: int = 1) -> list[Body]:
    """One turn with two calls, whose first event gets the number ``first_seq``; the gate accepts each."""
    message_seq = first_seq + 5
    return [
        TurnStart(turn),
        UserMessage(f"user-{turn}", (Text("wie groß ist a?"),)),
        StepStart(turn, 1),
        AttemptStart(turn, 1, 1, input_estimate=120),
        AssistantDelta(0, "text", "Ich sehe nach"),
        AssistantMessage(
            f"answer-{turn}",
            (Text("Ich sehe nach"), ToolCall("a", "read", '{"path":"a"}'), ToolCall("a", "list", "{}")),
            "tool_calls",
            "generic",
            "m",
            Usage(100, 20),
        ),
        ToolCallStarted(message_seq, 1, "a", "list"),
        ToolCallStarted(message_seq, 0, "a", "read"),
        ToolFinished(message_seq, 1, "a", (Text("a\nb"),), "done", duration_ms=3, meta={"lines": [1, 2]}),
        ToolFinished(message_seq, 0, "a", (Text("no such file"),), "failed", is_error=True),
        StepEnd(turn, 1),
        TurnEnd(turn, "completed"),
    ]


def every_kind() -> list[Body]:
    """Events of all kinds but ``session_start``, to be appended to a new session; the gate accepts each."""
    first = a_tool_turn(1)
    message_seq = 1 + len(first) + 12
    image = Image("image/png", UrlSource("https://example.com/a.png"))
    return [
        *first,
        Title("sizes"),
        RequestHeader("generic", "m", system="be brief", tools=(ToolSpec("read", "reads", {}),)),
        InputQueued("queued", (Text("and b?"), image), "follow_up"),
        TurnStart(2),
        InputTaken("queued"),
        UserMessage("queued", (Text("and b?"), image), "follow_up"),
        StepStart(2, 1),
        AttemptStart(2, 1, 1),
        AttemptFailed(failure("OVERLOADED", "busy", status=529), Usage(90), (Note("no_done"),)),
        RetryScheduled(1, "OVERLOADED", 500),
        RetryStarted(1),
        AttemptStart(2, 1, 2, rung="strict"),
        AssistantMessage("answer-2", (Reasoning("hm"), ToolCall("b", "shell", "{")), "tool_calls"),
        Recovery("strict", (Anomaly("orphan_result_dropped", "messages[3]", ("x",)),), succeeded=True),
        Approval(message_seq, 0, "denied", by="user"),
        ToolFinished(message_seq, 0, "b", (Text("denied"),), "denied", is_error=True),
        CompactionStart("c", "threshold", keep_from_seq=5),
        CompactionCall("c", 900, Usage(850, 2)),
        OutputCount(40),
        CompactionSummary("c", (Text("earlier: sizes"),), Usage(10, 5)),
        CompactionEnd("c", applied=True),
        StepEnd(2, 1),
        TurnEnd(2, "failed", failure("QUOTA", "pay first")),
        Prune((9,), 100, 50),
        LegacyCompaction((Text("old summary"),), 3),
        NoteEvent("extension", {"n": 1}),
        SessionRepaired(detail="nothing"),
        Undo(2),
        Clear(),
    ]

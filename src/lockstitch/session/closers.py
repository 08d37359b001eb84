"""Closers: the events that end what an interruption left open, so that a log can go on.

A pure function of the state, so the same log always repairs to the same log. What the model is told about a
call depends on whether its intent was recorded: only then can the tool have run.
"""

from typing import Final

from lockstitch.schema.blocks import Block, Reasoning, Text
from lockstitch.schema.events import (
    AssistantDelta,
    AssistantMessage,
    AttemptFailed,
    Body,
    CompactionEnd,
    StepEnd,
    ToolFinished,
    TurnEnd,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage

from .log_state import LogState, OpenAttempt, OpenCall

NOT_STARTED: Final = (
    "The session was interrupted before this tool was started. Nothing was done: "
    "it is safe to make the same call again if it is still needed."
)
OUTCOME_UNKNOWN: Final = (
    "The session was interrupted while this tool was running, and its outcome is unknown: it may have done "
    "nothing, a part, or everything. Repeat the call only if it merely reads, or can be repeated without "
    "harm; otherwise first check what it did."
)

KEPT_CHARS_MAX: Final = 20 * 1024 * 1024
"""Of what an interrupted attempt showed: with six bytes for a character as JSON, a record holds that many."""
_BYTES_PER_TOKEN: Final = 3
"""Of UTF-8. Errs high for prose, and a CJK character is a token. Fixed for ever: repairs must not change."""


def closers(state: LogState) -> list[Body]:
    """The events that close everything open in ``state``, in order; the gate accepts each after the last.

    They are to be stamped with the time of the last event. After them ``closers`` returns nothing.
    """
    bodies: list[Body] = []
    if state.open_attempt is not None:
        bodies.append(_close_attempt(state, state.open_attempt))
    bodies += [_close_call(place, call) for place, call in state.calls.items()]
    if state.compaction is not None:
        bodies.append(CompactionEnd(state.compaction, applied=False, usage=_spent(state)))
    if state.step_open:
        bodies.append(StepEnd(state.turn, state.step))
    if state.turn_open:
        bodies.append(TurnEnd(state.turn, "interrupted"))
    return bodies


def _close_attempt(state: LogState, attempt: OpenAttempt) -> AssistantMessage | AttemptFailed:
    content = _visible(attempt.deltas)
    said = sum(len(delta.text.encode()) for delta in attempt.deltas) + attempt.unlogged_bytes
    usage = Usage(input_tokens=attempt.input_estimate, output_tokens=_tokens(said), estimated=True)
    if content:
        message_id = f"interrupted-{attempt.seq}"
        return AssistantMessage(message_id, content, "interrupted", state.provider, state.model, usage)
    lost = failure(
        "ABORTED", "the session was interrupted before the model had said anything; continue to ask again"
    )
    return AttemptFailed(lost, usage)


def _spent(state: LogState) -> Usage | None:
    """What the calls of a compaction cost that was cut off."""
    if state.compaction_spent is None:
        return None
    return state.compaction_spent + Usage(output_tokens=_tokens(state.compaction_bytes))


def _tokens(written_bytes: int) -> int:
    return -(-written_bytes // _BYTES_PER_TOKEN)


def _visible(deltas: list[AssistantDelta]) -> tuple[Block, ...]:
    """Text and reasoning with a visible character, one block an index, in the order of appearance.

    What is beyond KEPT_CHARS_MAX stays in the deltas alone.
    """
    texts: dict[int, list[str]] = {}
    kinds: dict[int, str] = {}
    left = KEPT_CHARS_MAX
    for delta in deltas:
        kinds.setdefault(delta.index, delta.block)
        texts.setdefault(delta.index, []).append(delta.text[:left])
        left -= min(len(delta.text), left)
    joined = {index: "".join(pieces) for index, pieces in texts.items()}
    return tuple(
        Text(text) if kinds[index] == "text" else Reasoning(text)
        for index, text in joined.items()
        if text.strip()
    )


def _close_call(place: tuple[int, int], call: OpenCall) -> ToolFinished:
    started = call.started_seq is not None
    return ToolFinished(
        *place,
        call_id=call.call_id,
        content=(Text(OUTCOME_UNKNOWN if started else NOT_STARTED),),
        outcome="unknown" if started else "not_started",
        is_error=True,
    )

"""Transitions of tool calls (pure): each call of a stored message ends in exactly one answer."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Literal

from ..schema.blocks import Image, Text, ToolCall
from ..schema.events import Approval, Body, ToolCallStarted, ToolFinished, ToolOutcome
from . import events, turns
from .effects import Append, Decide, Effect, Emit, Flush, RunTool
from .inputs import CallAsked, CallDecided, ToolEnded
from .state import MAX_PARALLEL, Ending, Slot, SlotStatus, State, Working
from .turns import Move

INVALID_TEXT: Final = {
    "truncated": (
        "This call was not run: the response reached its output limit inside the arguments. "
        "Make the call again with shorter arguments, or split the work into several calls."
    ),
}
"""What the model is told about a call that must not run, by reason."""
NOT_STARTED_TEXT: Final = (
    "This call was not run: the turn was stopped before its turn came. It changed nothing."
)
NEEDS_APPROVAL_TEXT: Final = "This call was not run: it needs an approval and nobody was there to give it."
DENIED_TEXT: Final = "This call was not run: it was denied."


def begin_calls(state: State, message_seq: int, calls: tuple[ToolCall, ...]) -> Move:
    """Answer at once what must not run (P12), then start the rest."""
    working = Working(message_seq, tuple(Slot(call) for call in calls))
    effects: list[Effect] = []
    for position, call in enumerate(calls):
        if call.invalid is not None:
            working = _marked(working, position, "answered")
            effects += _answer(working, position, "invalid", invalid_text(call.invalid))
    state, more = proceed(_counted(state, calls), working)
    return state, (*effects, *more)


def call_asked(state: State, working: Working, asked: CallAsked) -> Move:
    """The question is in the log before it is on the screen."""
    if not _is(working, asked.position, "deciding"):
        return state, ()
    call = working.slots[asked.position].call
    body = Approval(
        message_seq=working.message_seq, position=asked.position, decision="asked", pattern=asked.rule
    )
    told = events.ApprovalNeeded(
        call_id=call.id, name=call.name, arguments=call.arguments, reason=asked.reason, rule=asked.rule
    )
    return state, (Append((body,)), Flush(), Emit(told))


def call_decided(state: State, working: Working, decided: CallDecided) -> Move:
    """Run it, or answer it with the refusal; where nobody can decide, the turn ends."""
    if not _is(working, decided.position, "deciding"):
        return state, ()
    match decided.decision:
        case "allowed":
            body = _decision(working, decided, "allowed") if decided.logged else ()
            return _start(state, working, (decided.position,), body)
        case "denied":
            working = _marked(working, decided.position, "answered")
            text = f"{DENIED_TEXT} {decided.reason}".rstrip()
            effects = _answer(working, decided.position, "denied", text)
            logged = (Append(_decision(working, decided, "denied")),) if decided.logged else ()
            state, more = proceed(state, working)
            return state, (*logged, *effects, *more)
        case "nobody":
            working = _marked(working, decided.position, "answered")
            name = working.slots[decided.position].call.name
            ending = Ending("approval", detail=f"{name} needs an approval and nobody was there to give it")
            effects = _answer(working, decided.position, "not_started", NEEDS_APPROVAL_TEXT)
            state, more = proceed(replace(state, ending=state.ending or ending), working)
            return state, (*effects, *more)


def tool_ended(state: State, working: Working, ended: ToolEnded) -> Move:
    """Its answer is logged when it is known, whatever its siblings do."""
    if not _is(working, ended.position, "running"):
        return state, ()
    working = _marked(working, ended.position, "answered")
    logged, told = _finished(
        working,
        ended.position,
        ended.outcome,
        ended.content,
        is_error=ended.is_error,
        ended=ended,
    )
    still_running = any(slot.status == "running" for slot in working.slots)
    # A kill while a slow sibling runs must not forget that this one is done; nobody hears of it before.
    flush: tuple[Effect, ...] = (Flush(),) if still_running else ()
    state, more = proceed(state, working)
    return state, (logged, *flush, told, *more)


def stop_calls(state: State, working: Working) -> Move:
    """The turn is to end: what has not started is answered so; what runs still ends by itself."""
    return proceed(state, working)


def proceed(state: State, working: Working) -> Move:
    """Start what may start now; close the step when every call is answered."""
    effects: list[Effect] = []
    if state.ending is not None:
        for position, slot in enumerate(working.slots):
            if slot.status in ("waiting", "deciding"):
                working = _marked(working, position, "answered")
                effects += _answer(working, position, "not_started", NOT_STARTED_TEXT)
    if all(slot.status == "answered" for slot in working.slots):
        state, more = _end_step(replace(state, phase=working))
        return state, (*effects, *more)
    state, more = _start_next(state, working)
    return state, (*effects, *more)


def invalid_text(reason: str) -> str:
    """What the model reads as the answer to a call that was not run because of ``reason``."""
    default = (
        f"This call was not run: its arguments could not be read ({reason}). "
        "Make the call again with arguments that are one JSON object."
    )
    return INVALID_TEXT.get(reason, default)


def _start_next(state: State, working: Working) -> Move:
    batch = tuple(_startable(state, working))
    free = tuple(p for p in batch if working.slots[p].call.name in state.rules.free)
    if free == batch:
        return _start(state, working, batch, ())
    # Calls that need a decision are asked for one by one; a free call before them starts first.
    first = batch[0]
    if first in free:
        return _start(state, working, free[:1], ())
    working = _marked(working, first, "deciding")
    return replace(state, phase=working), (Decide(first, working.slots[first].call),)


def _startable(state: State, working: Working) -> Iterator[int]:
    """Positions to start now: in call order, one at a time unless all that run are safe beside each other."""
    busy = [slot for slot in working.slots if slot.status in ("running", "deciding")]
    if any(slot.status == "deciding" or not _is_parallel(state, slot) for slot in busy):
        return
    room = MAX_PARALLEL - len(busy)
    for position, slot in enumerate(working.slots):
        if slot.status != "waiting":
            continue
        if not _is_parallel(state, slot):
            if not busy and room == MAX_PARALLEL:
                yield position
            return
        if room == 0:
            return
        room -= 1
        yield position


def _start(state: State, working: Working, positions: Iterable[int], before: tuple[Body, ...]) -> Move:
    """Intent before effect (P9): the log knows of the run before the tool does."""
    positions = tuple(positions)
    if not positions:
        return replace(state, phase=working), ()
    intents: list[Body] = list(before)
    begun: list[Effect] = []
    for position in positions:
        working = _marked(working, position, "running")
        call = working.slots[position].call
        intents.append(
            ToolCallStarted(
                message_seq=working.message_seq, position=position, call_id=call.id, name=call.name
            )
        )
        told = events.ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments)
        begun += [Emit(told), RunTool(position, call)]
    state, more = _start_next(replace(state, phase=working), working)
    return state, (Append(tuple(intents)), Flush(), *begun, *more)


def _end_step(state: State) -> Move:
    stuck = state.rules.stuck
    if stuck.stop_at is not None and state.repeats >= stuck.stop_at:
        detail = f"stuck: the model made the same calls {state.repeats} times in a row"
        state = replace(state, ending=state.ending or Ending("failed", detail=detail))
    elif state.repeats in stuck.remind_at:
        text = (
            f"You have now made exactly the same call {state.repeats} times in a row. Its answer will not "
            "change unless something else does. Try a different way, or say what keeps you from going on."
        )
        state = replace(state, reminders=(*state.reminders, text))
    return turns.next_step(state)


def _counted(state: State, calls: tuple[ToolCall, ...]) -> State:
    fingerprint = tuple((call.name, call.arguments) for call in calls)
    repeats = state.repeats + 1 if fingerprint == state.last_calls else 1
    return replace(state, last_calls=fingerprint, repeats=repeats)


def _answer(working: Working, position: int, outcome: ToolOutcome, text: str) -> tuple[Effect, ...]:
    return _finished(working, position, outcome, (Text(text=text),), is_error=True)


def _finished(
    working: Working,
    position: int,
    outcome: ToolOutcome,
    content: tuple[Text | Image, ...],
    *,
    is_error: bool,
    ended: ToolEnded | None = None,
) -> tuple[Append, Emit]:
    call = working.slots[position].call
    duration_ms = ended.duration_ms if ended else None
    meta = ended.meta if ended else None
    body = ToolFinished(
        message_seq=working.message_seq,
        position=position,
        call_id=call.id,
        content=content,
        outcome=outcome,
        is_error=is_error,
        duration_ms=duration_ms,
        meta=meta,
    )
    told = events.ToolFinished(
        call_id=call.id,
        name=call.name,
        outcome=outcome,
        text="\n".join(block.text for block in content if isinstance(block, Text)),
        is_error=is_error,
        duration_ms=duration_ms,
        meta=meta,
    )
    return Append((body,)), Emit(told)


def _decision(
    working: Working, decided: CallDecided, decision: Literal["allowed", "denied"]
) -> tuple[Approval, ...]:
    return (
        Approval(
            message_seq=working.message_seq,
            position=decided.position,
            decision=decision,
            by=decided.by,
            remember=decided.remember,
            pattern=decided.pattern,
        ),
    )


def _is(working: Working, position: int, status: SlotStatus) -> bool:
    return position < len(working.slots) and working.slots[position].status == status


def _is_parallel(state: State, slot: Slot) -> bool:
    return slot.call.name in state.rules.parallel


def _marked(working: Working, position: int, status: SlotStatus) -> Working:
    slots = working.slots
    changed = replace(slots[position], status=status)
    return replace(working, slots=(*slots[:position], changed, *slots[position + 1 :]))

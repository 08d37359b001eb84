"""Transitions of turns and steps (pure): how they begin and end."""

from dataclasses import replace
from typing import TypeAlias

from ..history.compact import SEVERITIES
from ..schema.blocks import Block, Text
from ..schema.events import (
    Body,
    InputQueued,
    InputTaken,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from .effects import Append, AskStopHook, Compact, Effect, Emit, EndTurn, Flush, Prepare
from .events import TurnEnded
from .inputs import InputArrived, StopHookSaid, TurnRequested
from .state import MAX_STOP_REQUESTS, NO_USAGE, Compacting, Ending, Idle, Preparing, Queued, State, Stopping

Move: TypeAlias = tuple[State, tuple[Effect, ...]]
"""What a transition comes to: the next state, and effects to perform in order."""


def begin_turn(state: State, requested: TurnRequested) -> Move:
    """A turn starts with everything that was queued, then the messages asked for."""
    turn = state.turn + 1
    bodies: list[Body] = [TurnStart(turn=turn)]
    for queued in state.queue:
        bodies += taken(queued)
    bodies += requested.messages
    state = replace(
        state,
        turn=turn,
        step=0,
        queue=(),
        ending=None,
        reminders=(),
        turn_began_ms=state.now_ms,
        turn_usage=NO_USAGE,
        text="",
        last_calls=(),
        repeats=0,
        stop_requests=0,
    )
    return begin_step(state, bodies)


def begin_step(state: State, bodies: list[Body] | None = None) -> Move:
    """The next step, unless the turn has to end first. ``bodies`` are logged before it."""
    bodies = list(bodies or [])
    if state.ending is None:
        state = replace(state, ending=_out_of_steps(state) or _spent(state))
    if state.ending is not None:
        state, effects = end_turn(state)
        return state, ((Append(tuple(bodies)), *effects) if bodies else effects)
    steers = [queued for queued in state.queue if queued.mode == "steer"]
    for queued in steers:
        bodies += taken(queued)
    step = state.step + 1
    bodies += [_reminder(state.turn, step, n, text) for n, text in enumerate(state.reminders)]
    bodies.append(StepStart(turn=state.turn, step=step))
    state = replace(
        state,
        step=step,
        attempt=0,
        retry=0,
        carried=state.carried if step == 1 else 0,
        rung=state.base_rung,
        refusal=None,
        lowered=0,
        compactions=0,
        step_failed_ms=None,
        reminders=(),
        queue=tuple(queued for queued in state.queue if queued.mode != "steer"),
    )
    state, effects = prepare(state)
    return state, (Append(tuple(bodies)), *effects)


def prepare(state: State) -> Move:
    """Ask for the request of the next attempt of the open step, while there is budget for it."""
    spent = _spent(state)
    if spent is not None:
        return close_step(state, spent)
    state = replace(state, phase=Preparing(), attempt=state.attempt + 1)
    wanted = Prepare(
        state.turn,
        state.step,
        state.attempt,
        state.rung,
        lowered=state.lowered,
        without=state.without,
        media=state.media,
    )
    return state, (wanted,)


def compact(state: State, phase: Compacting) -> Move:
    """Make room, more each time in this step, then prepare again."""
    severity = min(state.compactions, SEVERITIES - 1)
    effect = Compact("threshold" if phase.failure is None else "overflow", severity)
    return replace(state, phase=phase, compactions=state.compactions + 1), (effect,)


def next_step(state: State) -> Move:
    """Close the open step and go on with the next, or end."""
    state, effects = begin_step(state, [StepEnd(turn=state.turn, step=state.step)])
    return state, effects


def answer_given(state: State) -> Move:
    """The model said its last word: go on only if a person or a hook wants more."""
    if any(queued.mode == "steer" for queued in state.queue) and state.ending is None:
        return next_step(state)
    if state.ending is None and state.rules.stop_hook and state.stop_requests < MAX_STOP_REQUESTS:
        return replace(state, phase=Stopping()), (AskStopHook(state.text),)
    return close_step(state, Ending("completed"))


def stop_hook_said(state: State, said: StopHookSaid) -> Move:
    """Nothing more is wanted, more is wanted, or the answer is beyond repair."""
    if said.failed:
        return close_step(state, Ending("failed", detail=said.detail))
    if not said.messages:
        return close_step(state, Ending("completed", detail=said.detail))
    texts = tuple(_text(blocks) for blocks in said.messages)
    state = replace(state, reminders=state.reminders + texts, stop_requests=state.stop_requests + 1)
    return next_step(state)


def close_step(state: State, ending: Ending) -> Move:
    """End the open step and the turn. A reason that was there before wins: it came first."""
    state = replace(state, ending=state.ending or ending)
    step_end = Append((StepEnd(turn=state.turn, step=state.step),))
    state, effects = end_turn(state)
    return state, (step_end, *effects)


def end_turn(state: State) -> Move:
    """Close the turn durably. Every step and call is closed already."""
    ending = state.ending or Ending("completed")
    turn_end = TurnEnd(turn=state.turn, reason=ending.reason, failure=ending.failure, detail=ending.detail)
    told = TurnEnded(
        turn=state.turn,
        reason=ending.reason,
        text=state.text,
        usage=state.turn_usage,
        failure=ending.failure,
        detail=ending.detail,
    )
    state = replace(state, phase=Idle(), ending=None, carried=0)
    return state, (Append((turn_end,)), Flush(), Emit(told), EndTurn(ending.reason))


def input_arrived(state: State, arrived: InputArrived) -> Move:
    """Queue it durably: a crash before it is used must not lose it."""
    queued = Queued(arrived.id, arrived.content, arrived.mode)
    body = InputQueued(id=arrived.id, content=arrived.content, mode=arrived.mode)
    return replace(state, queue=(*state.queue, queued)), (Append((body,)), Flush())


def taken(queued: Queued) -> tuple[Body, ...]:
    """The queued input becomes the user message of the same id."""
    message = UserMessage(id=queued.id, content=queued.content, origin=queued.mode)
    return InputTaken(id=queued.id), message


def _out_of_steps(state: State) -> Ending | None:
    steps = state.rules.budget.steps
    if state.step < steps:
        return None
    return Ending("budget", detail=f"the turn took its {steps} steps; raise the limit or continue")


def _spent(state: State) -> Ending | None:
    budget = state.rules.budget
    spent = state.session_usage.context_tokens
    elapsed_s = (state.now_ms - state.turn_began_ms) / 1000
    if budget.tokens is not None and spent >= budget.tokens:
        return Ending("budget", detail=f"the session used {spent} tokens of {budget.tokens}; raise the limit")
    if budget.seconds is not None and elapsed_s >= budget.seconds:
        return Ending("budget", detail=f"the turn ran for {elapsed_s:.0f} s of {budget.seconds:.0f} s")
    if budget.cost_usd is not None and state.session_cost_usd >= budget.cost_usd:
        spent_usd, limit = state.session_cost_usd, budget.cost_usd
        return Ending("budget", detail=f"the session cost ${spent_usd:.4f} of ${limit:.4f}; raise the limit")
    return None


def _reminder(turn: int, step: int, number: int, text: str) -> UserMessage:
    # The id is made of the place: unique in its session, and the same log always comes of the same inputs.
    return UserMessage(id=f"t{turn}s{step}r{number}", content=(Text(text=text),), origin="runtime")


def _text(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))

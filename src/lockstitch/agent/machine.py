"""A turn as a pure state machine: ``advance(state, input, now_ms) -> (state, effects)``.

turn > step > attempt. A step is one answer of the model with all its calls answered; an attempt is one model
call. The machine decides everything and does nothing: no clock, no I/O, no ids of its own beyond the place a
message stands in. What it promises, whatever the inputs:

- intents (``AttemptStart``, ``ToolCallStarted``) are appended and flushed before the effect they announce;
- every call of a stored message gets exactly one ``ToolFinished``, and every turn one ``TurnEnd``;
- an input that fits no longer (an answer that comes after the turn was stopped) changes nothing.
"""

from dataclasses import replace
from typing import assert_never

from . import attempts, calls, turns
from .effects import Stop
from .inputs import (
    AttemptEnded,
    Broke,
    CallAsked,
    CallDecided,
    Cancelled,
    CompactionDone,
    ErrorHookSaid,
    Input,
    InputArrived,
    MessageStored,
    RequestReady,
    RequestUnfit,
    RetryDue,
    StopHookSaid,
    ToolEnded,
    TurnRequested,
)
from .state import (
    Calling,
    Compacting,
    Ending,
    Idle,
    Judging,
    Preparing,
    State,
    Stopping,
    Storing,
    Waiting,
    Working,
)
from .turns import Move


def advance(state: State, given: Input, *, now_ms: int = 0) -> Move:
    """What follows from ``given`` at ``now_ms``. Effects are to be performed in their order.

    A clock that goes backwards is held: no budget grows because the machine's clock was set.
    """
    state = replace(state, now_ms=max(state.now_ms, now_ms))
    match given, state.phase:
        case TurnRequested(), Idle():
            return turns.begin_turn(state, given)
        case InputArrived(), _:
            return turns.input_arrived(state, given)
        case ((Cancelled() | Broke()), _):
            return _stop(state, given)
        case RequestReady(), Preparing():
            return attempts.request_ready(state, given)
        case RequestUnfit(), Preparing():
            return attempts.request_unfit(state, given)
        case AttemptEnded(), Calling():
            return attempts.attempt_ended(state, given)
        case MessageStored(), Storing() as storing:
            return attempts.message_stored(state, storing, given)
        case RetryDue(), Waiting():
            return attempts.retry_due(state)
        case ErrorHookSaid(), Judging() as judging:
            return attempts.error_hook_said(state, judging, given)
        case CompactionDone(), Compacting() as compacting:
            return attempts.compaction_done(state, compacting, given)
        case StopHookSaid(), Stopping():
            return turns.stop_hook_said(state, given)
        case CallAsked(), Working() as working:
            return calls.call_asked(state, working, given)
        case CallDecided(), Working() as working:
            return calls.call_decided(state, working, given)
        case ToolEnded(), Working() as working:
            return calls.tool_ended(state, working, given)
        case _:
            return state, ()


def _stop(state: State, given: Cancelled | Broke) -> Move:
    """End the turn as soon as nothing is open. Of several reasons the first counts."""
    cancelled = isinstance(given, Cancelled)
    ending = state.ending or Ending("cancelled" if cancelled else "failed", detail=given.detail)
    stopped = replace(state, ending=ending)
    match state.phase:
        case Idle():
            return state, ()
        case Calling() | Compacting():
            return stopped, (Stop(),)
        case Storing():
            return stopped, ()
        case Working() as working:
            stopped, effects = calls.proceed(stopped, working)
            return stopped, (Stop(), *effects)
        case Preparing() | Judging() | Waiting() | Stopping():
            stopped, effects = turns.close_step(stopped, ending)
            return stopped, (Stop(), *effects)
        case _ as never:
            assert_never(never)

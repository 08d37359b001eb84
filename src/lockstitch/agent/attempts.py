"""Transitions of model calls (pure): attempts, retries, and the other ways to recover from a failure."""

from dataclasses import replace
from typing import Literal

from ..llm.retry import GiveUp, RetryAfter, after_failure
from ..schema.blocks import Block, Text, ToolCall
from ..schema.events import (
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Recovery,
    RetryScheduled,
    RetryStarted,
)
from ..schema.failures import Failure
from ..schema.usage import Usage
from . import calls, turns
from .carried import is_server_error
from .effects import Append, AskErrorHook, CallModel, Effect, Emit, Flush, StoreMessage, WaitRetry
from .events import AttemptDiscarded, Retrying
from .inputs import (
    AttemptEnded,
    CompactionDone,
    ErrorHookSaid,
    MessageStored,
    RequestReady,
    RequestUnfit,
)
from .recovery import MAX_LOWERED, disposition, next_rung, refused_tool
from .state import MAX_COMPACTIONS, Calling, Compacting, Ending, Judging, State, Storing, Waiting
from .turns import Move


def request_ready(state: State, ready: RequestReady) -> Move:
    """Intent before effect (P9): the attempt is durable before the request leaves."""
    if ready.crowded and state.rules.can_compact and state.compactions == 0:
        return turns.compact(replace(state, attempt=state.attempt - 1), Compacting(None))
    start = AttemptStart(
        turn=state.turn,
        step=state.step,
        attempt=state.attempt,
        rung=state.rung,
        input_estimate=ready.input_estimate,
    )
    told = tuple(Emit(event) for event in ready.events)
    return replace(state, phase=Calling(), learning=ready.learning), (
        Append((*ready.bodies, start)),
        Flush(),
        *told,
        CallModel(),
    )


def request_unfit(state: State, unfit: RequestUnfit) -> Move:
    """No request on this rung: climb, or report what was refused first."""
    state = replace(state, attempt=state.attempt - 1)
    return _climb(state, unfit.failure)


def attempt_ended(state: State, ended: AttemptEnded) -> Move:
    """One terminal finish (P2): store the message, or discard the attempt and decide how to go on."""
    state = _billed(state, ended.decoded.usage)
    match ended.decoded.finish.reason:
        case "stop" | "tool_calls" | "length" as reason:
            return _store(state, ended, reason)
        case "aborted" if state.ending is not None and _visible(ended.decoded.content):
            return _store(state, ended, "aborted")
        case "error" | "aborted":
            return _discard(state, ended)


def message_stored(state: State, storing: Storing, stored: MessageStored) -> Move:
    """Run the calls of the message, or end the turn with its text."""
    if storing.calls:
        return calls.begin_calls(state, stored.seq, storing.calls)
    if state.ending is not None:
        return turns.close_step(state, state.ending)
    if storing.finish == "length":
        detail = "the model reached its output limit"
        return turns.close_step(state, Ending("length", detail=detail))
    return turns.answer_given(state)


def retry_due(state: State) -> Move:
    """The wait is over."""
    body = RetryStarted(retry=state.retry)
    state, effects = turns.prepare(state)
    return state, (Append((body,)), *effects)


def error_hook_said(state: State, judging: Judging, said: ErrorHookSaid) -> Move:
    """A hook may overrule the policy."""
    failure = judging.failure
    match said.verdict:
        case "default":
            return _recover(state, failure, said.jitter)
        case "retry":
            return _retry(state, failure, said.jitter)
        case "compact":
            return _compact(state, failure)
        case "give_up":
            return _give_up(state, failure, "a hook gave up")


def compaction_done(state: State, compacting: Compacting, done: CompactionDone) -> Move:
    """Try again with the shorter history; if there is none, the overflow stands."""
    state = _billed(state, done.usage)
    if state.ending is not None:
        return turns.close_step(state, state.ending)
    if compacting.failure is not None and not done.applied:
        return _give_up(state, done.failure or compacting.failure, "the history could not be made shorter")
    # A new history deserves the plain form again: what was refused may be gone.
    media = state.media or done.applied
    return turns.prepare(replace(state, rung="normal", base_rung="normal", refusal=None, media=media))


def _store(
    state: State, ended: AttemptEnded, reason: Literal["stop", "tool_calls", "length", "aborted"]
) -> Move:
    decoded = ended.decoded
    body = AssistantMessage(
        id=f"t{state.turn}s{state.step}a{state.attempt}",
        content=decoded.content,
        finish=reason,
        provider=ended.provider,
        model=ended.model,
        usage=decoded.usage,
        notes=decoded.notes,
    )
    asked = tuple(block for block in decoded.content if isinstance(block, ToolCall))
    learned: tuple[Effect, ...] = ()
    if state.rung != state.base_rung or state.learning:
        # What was given up is remembered only now that it went through, never because it was tried.
        remembered = Recovery(
            rung=state.rung,
            anomalies=state.learning,
            provider=ended.provider,
            model=ended.model,
            succeeded=True,
        )
        learned = (Append((remembered,)),)
    state = replace(
        state,
        phase=Storing(asked, reason),
        text=_text(decoded.content),
        base_rung=state.rung,
        learning=(),
    )
    return state, (*learned, StoreMessage(body))


def _discard(state: State, ended: AttemptEnded) -> Move:
    decoded = ended.decoded
    failure = decoded.finish.failure
    assert failure is not None, "a finish of error or aborted carries its failure"
    body = AttemptFailed(failure=failure, usage=decoded.usage, notes=decoded.notes)
    told = AttemptDiscarded(attempt=state.attempt, failure=failure, usage=decoded.usage)
    effects: tuple[Effect, ...] = (Append((body,)), Emit(told))
    if state.step_failed_ms is None:
        state = replace(state, step_failed_ms=state.now_ms)
    if state.ending is not None:
        state, more = turns.close_step(state, state.ending)
    elif state.rules.error_hook:
        state, more = replace(state, phase=Judging(failure)), (AskErrorHook(failure),)
    else:
        state, more = _recover(state, failure, ended.jitter)
    return state, (*effects, *more)


def _recover(state: State, failure: Failure, jitter: float) -> Move:
    match disposition(failure):
        case "retry":
            return _retry(state, failure, jitter)
        case "drop_media" if state.media:
            return turns.prepare(replace(state, media=False, refusal=state.refusal or failure))
        case "ladder" | "drop_media":
            return _climb(state, failure)
        case "compact":
            return _compact(state, failure)
        case "lower_max_tokens" if state.lowered < MAX_LOWERED:
            return turns.prepare(replace(state, lowered=state.lowered + 1))
        case "drop_tool" if (name := refused_tool(failure, state.rules.tools, state.without)) is not None:
            return turns.prepare(replace(state, without=(*state.without, name)))
        case "drop_tool" | "lower_max_tokens" | "none":
            return _give_up(state, failure)


def _retry(state: State, failure: Failure, jitter: float) -> Move:
    failed_ms = state.now_ms if state.step_failed_ms is None else state.step_failed_ms
    retry = state.retry + 1
    decision = after_failure(
        state.rules.retry,
        failure,
        retry=state.carried + retry,
        elapsed_s=(state.now_ms - failed_ms) / 1000,
        jitter=jitter,
    )
    match decision:
        case GiveUp() if is_server_error(failure) and state.server_failures > 0:
            # The second turn in a row that dies of 5xx: some gateways answer so to a structure they dislike.
            return _climb(state, failure)
        case GiveUp(reason=reason):
            return _give_up(state, failure, reason)
        case RetryAfter(delay_s=delay_s):
            delay_ms = round(delay_s * 1000)
            body = RetryScheduled(retry=retry, code=failure.code, delay_ms=delay_ms)
            told = Retrying(retry=retry, code=failure.code, delay_ms=delay_ms)
            state = replace(state, phase=Waiting(), retry=retry)
            return state, (Append((body,)), Flush(), Emit(told), WaitRetry(delay_ms))


def _climb(state: State, failure: Failure) -> Move:
    """The next safer form of the request; at the end of the ladder the first refusal counts."""
    refusal = state.refusal or failure
    state = replace(state, refusal=refusal)
    rung = next_rung(state.rules.rungs, state.rung, failure)
    if rung is None:
        return _give_up(state, refusal)
    return turns.prepare(replace(state, rung=rung))


def _compact(state: State, failure: Failure) -> Move:
    if not state.rules.can_compact:
        return _give_up(state, failure)
    if state.compactions >= MAX_COMPACTIONS:
        return _give_up(state, failure, "the shortest form of the history is still refused as too long")
    return turns.compact(state, Compacting(failure))


def _give_up(state: State, failure: Failure, detail: str = "") -> Move:
    return turns.close_step(state, Ending("failed", failure=failure, detail=detail))


def _billed(state: State, usage: Usage | None) -> State:
    if usage is None:
        return state
    price = state.rules.price
    return replace(
        state,
        turn_usage=state.turn_usage + usage,
        session_usage=state.session_usage + usage,
        session_cost_usd=state.session_cost_usd + (price.of(usage) if price else 0.0),
    )


def _visible(content: tuple[Block, ...]) -> bool:
    return any(isinstance(block, Text) and block.text.strip() for block in content)


def _text(content: tuple[Block, ...]) -> str:
    return "".join(block.text for block in content if isinstance(block, Text))

"""The turn machine: a table of transitions, and a driver of faults that it must survive whatever happens."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.agent import effects as fx
from lockstitch.agent import events as told
from lockstitch.agent import inputs as got
from lockstitch.agent.calls import (
    DENIED_TEXT,
    NEEDS_APPROVAL_TEXT,
    NOT_STARTED_TEXT,
    invalid_text,
)
from lockstitch.agent.machine import advance
from lockstitch.agent.recovery import refused_tool
from lockstitch.agent.state import Budget, Idle, Price, Rules, State, Stuck, Working
from lockstitch.history.decode import Decoded
from lockstitch.schema import events as log
from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.schema.chunks import Finish
from lockstitch.schema.failures import failure
from lockstitch.schema.notes import Anomaly
from lockstitch.schema.usage import Usage
from lockstitch.session import gate

HELLO = log.UserMessage(id="u1", content=(Text("hello"),))
LS = ToolCall(id="c1", name="ls", arguments="{}")
CAT = ToolCall(id="c2", name="cat", arguments='{"path":"a"}')
RM = ToolCall(id="c3", name="rm", arguments='{"path":"a"}')
CUT = ToolCall(id="c4", name="cat", arguments='{"path', invalid="truncated")
RULES = Rules(free=frozenset({"ls", "cat"}))
PARALLEL = replace(RULES, parallel=frozenset({"ls", "cat"}))
USAGE = Usage(input_tokens=10, output_tokens=2)
STALLED = failure("STREAM_CLOSED", "the stream ended early")
REFUSED = failure("AUTH", "the key was refused", status=401)
STRUCTURE = failure("INVALID_STRUCTURE", "a result without its call", status=400)
OVERFLOW = failure("CONTEXT_WINDOW_EXCEEDED", "too long", status=400)
TOO_MUCH = failure("OUTPUT_LIMIT", "max_tokens is too large", status=400)
BAD_TOOL = failure(
    "INVALID_TOOL_SCHEMA", "refused", status=400, provider_message="Invalid schema for function 'cat'"
)
BROKEN_SERVER = failure("SERVER", "internal error", status=500)
ABORTED = failure("ABORTED", "cancelled")
NOW = 1_000


def answer(*blocks: Block, finish: str | None = None, usage: Usage | None = USAGE) -> got.AttemptEnded:
    """A model call that went well."""
    has_calls = any(isinstance(block, ToolCall) for block in blocks)
    reason = finish or ("tool_calls" if has_calls else "stop")
    decoded = Decoded(content=blocks, finish=Finish(reason=reason), usage=usage, notes=())  # type: ignore[arg-type]
    return got.AttemptEnded(decoded=decoded, jitter=0.0, provider="p", model="m")


def refused(why: object, *blocks: Block, usage: Usage | None = USAGE) -> got.AttemptEnded:
    """A model call that failed."""
    reason = "aborted" if why is ABORTED else "error"
    decoded = Decoded(content=blocks, finish=Finish(reason=reason, failure=why), usage=usage, notes=())  # type: ignore[arg-type]
    return got.AttemptEnded(decoded=decoded, jitter=0.0, provider="p", model="m")


def ended(position: int, text: str = "ok") -> got.ToolEnded:
    return got.ToolEnded(position=position, outcome="done", content=(Text(text),), is_error=False)


def play(rules: Rules, inputs: Sequence[got.Input]) -> tuple[State, tuple[fx.Effect, ...]]:
    """The state after all inputs and the effects of the last. Each input comes one second after the other."""
    state, effects = State(rules=rules, now_ms=NOW), ()
    for number, given_input in enumerate(inputs):
        state, effects = advance(state, given_input, now_ms=NOW + 1000 * number)
    return state, effects


START = got.TurnRequested((HELLO,))
READY = got.RequestReady(input_estimate=7)
CROWDED = replace(READY, crowded=True)
CALLED = (START, READY)


def started(position: int, call: ToolCall, seq: int = 5) -> log.ToolCallStarted:
    return log.ToolCallStarted(message_seq=seq, position=position, call_id=call.id, name=call.name)


def finished(
    position: int, call: ToolCall, outcome: log.ToolOutcome, text: str, *, error: bool = True, seq: int = 5
) -> tuple[fx.Effect, ...]:
    body = log.ToolFinished(
        message_seq=seq,
        position=position,
        call_id=call.id,
        content=(Text(text),),
        outcome=outcome,
        is_error=error,
    )
    event = told.ToolFinished(call_id=call.id, name=call.name, outcome=outcome, text=text, is_error=error)
    return fx.Append((body,)), fx.Emit(event)


def flushed(effects: tuple[fx.Effect, ...]) -> list[fx.Effect]:
    """The same, durable before it is told."""
    logged, told_of = effects
    return [logged, fx.Flush(), told_of]


def running(position: int, call: ToolCall) -> tuple[fx.Effect, ...]:
    event = told.ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments)
    return fx.Emit(event), fx.RunTool(position, call)


def turn_end(
    reason: log.TurnEndReason, *, step: int | None = 1, text: str = "", usage: Usage = USAGE, **more: object
) -> tuple[fx.Effect, ...]:
    """Everything a turn ends with: the step closed, the turn closed, durable, told."""
    close = (fx.Append((log.StepEnd(turn=1, step=step),)),) if step is not None else ()
    return (
        *close,
        fx.Append((log.TurnEnd(turn=1, reason=reason, **more),)),  # type: ignore[arg-type]
        fx.Flush(),
        fx.Emit(told.TurnEnded(turn=1, reason=reason, text=text, usage=usage, **more)),  # type: ignore[arg-type]
        fx.EndTurn(reason),
    )


def next_step(step: int, *between: log.Body) -> tuple[fx.Effect, ...]:
    return (
        fx.Append((log.StepEnd(turn=1, step=step - 1), *between, log.StepStart(turn=1, step=step))),
        fx.Prepare(1, step, 1, "normal"),
    )


def message(*blocks: Block, finish: str, attempt: int = 1) -> log.AssistantMessage:
    return log.AssistantMessage(
        id=f"t1s1a{attempt}",
        content=blocks,
        finish=finish,  # type: ignore[arg-type]
        provider="p",
        model="m",
        usage=USAGE,
    )


STORED = got.MessageStored(seq=5)
HI = answer(Text("hi"))
BOTH = (*CALLED, answer(LS, CAT), STORED)

TRANSITIONS: dict[str, tuple[Rules, Sequence[got.Input], tuple[fx.Effect, ...]]] = {
    "a turn opens with its message and asks for a request": (
        RULES,
        [START],
        (
            fx.Append((log.TurnStart(turn=1), HELLO, log.StepStart(turn=1, step=1))),
            fx.Prepare(1, 1, 1, "normal"),
        ),
    ),
    "the attempt is durable before the request leaves": (
        RULES,
        [START, READY],
        (
            fx.Append((log.AttemptStart(turn=1, step=1, attempt=1, input_estimate=7),)),
            fx.Flush(),
            fx.CallModel(),
        ),
    ),
    "a changed header and repairs are logged before the attempt and told": (
        RULES,
        [
            START,
            got.RequestReady(
                input_estimate=7,
                bodies=(log.Recovery(rung="normal", anomalies=(Anomaly("orphan_result_dropped"),)),),
                events=(told.Repaired("normal", (Anomaly("orphan_result_dropped"),)),),
            ),
        ],
        (
            fx.Append(
                (
                    log.Recovery(rung="normal", anomalies=(Anomaly("orphan_result_dropped"),)),
                    log.AttemptStart(turn=1, step=1, attempt=1, input_estimate=7),
                )
            ),
            fx.Flush(),
            fx.Emit(told.Repaired("normal", (Anomaly("orphan_result_dropped"),))),
            fx.CallModel(),
        ),
    ),
    "an answer is stored": (
        RULES,
        [*CALLED, HI],
        (fx.StoreMessage(message(Text("hi"), finish="stop")),),
    ),
    "an answer without calls ends the turn": (
        RULES,
        [*CALLED, HI, STORED],
        turn_end("completed", text="hi"),
    ),
    "an answer cut at the output limit ends the turn as such": (
        RULES,
        [*CALLED, answer(Text("hi"), finish="length"), STORED],
        turn_end("length", text="hi", detail="the model reached its output limit"),
    ),
    "a call's intent is durable before its tool runs": (
        RULES,
        [*CALLED, answer(LS), STORED],
        (fx.Append((started(0, LS),)), fx.Flush(), *running(0, LS)),
    ),
    "tools run one after the other unless they are declared safe": (
        RULES,
        BOTH,
        (fx.Append((started(0, LS),)), fx.Flush(), *running(0, LS)),
    ),
    "the second call starts when the first is answered": (
        RULES,
        [*BOTH, ended(0)],
        (
            *finished(0, LS, "done", "ok", error=False),
            fx.Append((started(1, CAT),)),
            fx.Flush(),
            *running(1, CAT),
        ),
    ),
    "tools declared safe start together, behind one flush": (
        PARALLEL,
        BOTH,
        (fx.Append((started(0, LS), started(1, CAT))), fx.Flush(), *running(0, LS), *running(1, CAT)),
    ),
    "a result is durable while a slow sibling still runs": (
        PARALLEL,
        [*BOTH, ended(1)],
        tuple(flushed(finished(1, CAT, "done", "ok", error=False))),
    ),
    "the last answer closes the step and asks for the next request": (
        PARALLEL,
        [*BOTH, ended(1), ended(0)],
        (*finished(0, LS, "done", "ok", error=False), *next_step(2)),
    ),
    "a second answer to the same call changes nothing": (
        PARALLEL,
        [*BOTH, ended(1), ended(1)],
        (),
    ),
    "a call with cut arguments is answered and never run": (
        RULES,
        [*CALLED, answer(CUT, finish="length"), STORED],
        (*finished(0, CUT, "invalid", invalid_text("truncated")), *next_step(2)),
    ),
    "complete calls before a cut one do run": (
        RULES,
        [*CALLED, answer(LS, CUT, finish="length"), STORED],
        (
            *finished(1, CUT, "invalid", invalid_text("truncated")),
            fx.Append((started(0, LS),)),
            fx.Flush(),
            *running(0, LS),
        ),
    ),
    "a call that needs a decision waits for it": (
        RULES,
        [*CALLED, answer(RM), STORED],
        (fx.Decide(0, RM),),
    ),
    "a question is durable before it is shown": (
        RULES,
        [*CALLED, answer(RM), STORED, got.CallAsked(0)],
        (
            fx.Append((log.Approval(message_seq=5, position=0, decision="asked"),)),
            fx.Flush(),
            fx.Emit(told.ApprovalNeeded(call_id="c3", name="rm", arguments='{"path":"a"}')),
        ),
    ),
    "an approval is logged with the intent": (
        RULES,
        [*CALLED, answer(RM), STORED, got.CallDecided(0, "allowed", by="--yes")],
        (
            fx.Append(
                (
                    log.Approval(message_seq=5, position=0, decision="allowed", by="--yes"),
                    started(0, RM),
                )
            ),
            fx.Flush(),
            *running(0, RM),
        ),
    ),
    "a denied call is answered and the model goes on": (
        RULES,
        [*CALLED, answer(RM), STORED, got.CallDecided(0, "denied", by="user", reason="not that file")],
        (
            fx.Append((log.Approval(message_seq=5, position=0, decision="denied", by="user"),)),
            *finished(0, RM, "denied", f"{DENIED_TEXT} not that file"),
            *next_step(2),
        ),
    ),
    "where nobody can approve, every call is answered and the turn ends": (
        RULES,
        [*CALLED, answer(RM, LS), STORED, got.CallDecided(0, "nobody")],
        (
            *finished(0, RM, "not_started", NEEDS_APPROVAL_TEXT),
            *finished(1, LS, "not_started", NOT_STARTED_TEXT),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("approval", step=None, detail="rm needs an approval and nobody was there to give it"),
        ),
    ),
    "a failed attempt is withdrawn, its tokens billed, and retried after a wait": (
        RULES,
        [*CALLED, refused(STALLED)],
        (
            fx.Append((log.AttemptFailed(failure=STALLED, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=STALLED, usage=USAGE)),
            fx.Append((log.RetryScheduled(retry=1, code="STREAM_CLOSED", delay_ms=500),)),
            fx.Flush(),
            fx.Emit(told.Retrying(retry=1, code="STREAM_CLOSED", delay_ms=500)),
            fx.WaitRetry(500),
        ),
    ),
    "a retry is an attempt of the same step": (
        RULES,
        [*CALLED, refused(STALLED), got.RetryDue()],
        (fx.Append((log.RetryStarted(retry=1),)), fx.Prepare(1, 1, 2, "normal")),
    ),
    "tokens of failed attempts count in the turn": (
        RULES,
        [*CALLED, refused(STALLED), got.RetryDue(), READY, HI, STORED],
        turn_end("completed", text="hi", usage=USAGE + USAGE),
    ),
    "a failure that no retry helps ends the turn with it": (
        RULES,
        [*CALLED, refused(REFUSED)],
        (
            fx.Append((log.AttemptFailed(failure=REFUSED, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=REFUSED, usage=USAGE)),
            *turn_end("failed", failure=REFUSED),
        ),
    ),
    "a structural refusal goes one rung down at once": (
        replace(RULES, rungs=("normal", "strict")),
        [*CALLED, refused(STRUCTURE)],
        (
            fx.Append((log.AttemptFailed(failure=STRUCTURE, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=STRUCTURE, usage=USAGE)),
            fx.Prepare(1, 1, 2, "strict"),
        ),
    ),
    "a request the validator objects to is never sent: the next rung is tried": (
        replace(RULES, rungs=("normal", "strict")),
        [START, got.RequestUnfit(STRUCTURE)],
        (fx.Prepare(1, 1, 1, "strict"),),
    ),
    "at the end of the ladder the first refusal is what the turn failed of": (
        replace(RULES, rungs=("normal", "strict")),
        [
            *CALLED,
            refused(STRUCTURE),
            READY,
            refused(failure("INVALID_STRUCTURE", "something else", status=400)),
        ],
        (
            fx.Append(
                (
                    log.AttemptFailed(
                        failure=failure("INVALID_STRUCTURE", "something else", status=400), usage=USAGE
                    ),
                )
            ),
            fx.Emit(
                told.AttemptDiscarded(
                    attempt=2,
                    failure=failure("INVALID_STRUCTURE", "something else", status=400),
                    usage=USAGE,
                )
            ),
            *turn_end("failed", failure=STRUCTURE, usage=USAGE + USAGE),
        ),
    ),
    "a rung is remembered when it went through": (
        replace(RULES, rungs=("normal", "strict")),
        [*CALLED, refused(STRUCTURE), READY, HI],
        (
            fx.Append((log.Recovery(rung="strict", provider="p", model="m", succeeded=True),)),
            fx.StoreMessage(message(Text("hi"), finish="stop", attempt=2)),
        ),
    ),
    "a full window is made room in": (
        replace(RULES, can_compact=True),
        [*CALLED, refused(OVERFLOW)],
        (
            fx.Append((log.AttemptFailed(failure=OVERFLOW, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=OVERFLOW, usage=USAGE)),
            fx.Compact("overflow"),
        ),
    ),
    "a history that is too long is made shorter before the request": (
        replace(RULES, can_compact=True),
        [START, replace(READY, crowded=True)],
        (fx.Compact("threshold"),),
    ),
    "a shorter history is sent even if it is still crowded": (
        replace(RULES, can_compact=True),
        [START, replace(READY, crowded=True), got.CompactionDone(applied=True), replace(READY, crowded=True)],
        (
            fx.Append((log.AttemptStart(turn=1, step=1, attempt=1, input_estimate=7),)),
            fx.Flush(),
            fx.CallModel(),
        ),
    ),
    "a window that is nearly full is made room in before the request": (
        replace(RULES, can_compact=True),
        [START, CROWDED],
        (fx.Compact("threshold"),),
    ),
    "a request that is still large after it is sent as it is": (
        replace(RULES, can_compact=True),
        [START, CROWDED, got.CompactionDone(applied=False), CROWDED],
        (
            fx.Append((log.AttemptStart(turn=1, step=1, attempt=1, input_estimate=7),)),
            fx.Flush(),
            fx.CallModel(),
        ),
    ),
    "each further refusal as too long gives up more": (
        replace(RULES, can_compact=True),
        [*CALLED, refused(OVERFLOW), got.CompactionDone(applied=True), READY, refused(OVERFLOW)],
        (
            fx.Append((log.AttemptFailed(failure=OVERFLOW, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=2, failure=OVERFLOW, usage=USAGE)),
            fx.Compact("overflow", severity=1),
        ),
    ),
    "the shortest form that is refused ends the turn": (
        replace(RULES, can_compact=True),
        [*CALLED, *[refused(OVERFLOW), got.CompactionDone(applied=True), READY] * 4, refused(OVERFLOW)],
        (
            fx.Append((log.AttemptFailed(failure=OVERFLOW, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=5, failure=OVERFLOW, usage=USAGE)),
            *turn_end(
                "failed",
                failure=OVERFLOW,
                detail="the shortest form of the history is still refused as too long",
                usage=USAGE + USAGE + USAGE + USAGE + USAGE,
            ),
        ),
    ),
    "what a compaction cost is the turn's": (
        replace(RULES, can_compact=True),
        [START, CROWDED, got.CompactionDone(applied=True, usage=USAGE), got.Cancelled("x")],
        (fx.Stop(), *turn_end("cancelled", detail="x", usage=USAGE)),
    ),
    "a window that cannot be made smaller ends the turn": (
        replace(RULES, can_compact=True),
        [*CALLED, refused(OVERFLOW), got.CompactionDone(applied=False)],
        turn_end("failed", failure=OVERFLOW, detail="the history could not be made shorter"),
    ),
    "a limit of output that is refused is halved": (
        RULES,
        [*CALLED, refused(TOO_MUCH)],
        (
            fx.Append((log.AttemptFailed(failure=TOO_MUCH, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=TOO_MUCH, usage=USAGE)),
            fx.Prepare(1, 1, 2, "normal", lowered=1),
        ),
    ),
    "a tool whose definition is refused is left out": (
        replace(RULES, tools=("ls", "cat", "rm")),
        [*CALLED, refused(BAD_TOOL)],
        (
            fx.Append((log.AttemptFailed(failure=BAD_TOOL, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=BAD_TOOL, usage=USAGE)),
            fx.Prepare(1, 1, 2, "normal", without=("cat",)),
        ),
    ),
    "a refusal of a tool that names none ends the turn": (
        RULES,
        [*CALLED, refused(BAD_TOOL)],
        (
            fx.Append((log.AttemptFailed(failure=BAD_TOOL, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=BAD_TOOL, usage=USAGE)),
            *turn_end("failed", failure=BAD_TOOL),
        ),
    ),
    "cancelled while the model answers, the call is stopped first": (
        RULES,
        [*CALLED, got.Cancelled()],
        (fx.Stop(),),
    ),
    "cancelled text that was visible is kept": (
        RULES,
        [*CALLED, got.Cancelled(), refused(ABORTED, Text("half"))],
        (fx.StoreMessage(message(Text("half"), finish="aborted")),),
    ),
    "a cancelled answer ends the turn as cancelled": (
        RULES,
        [*CALLED, got.Cancelled(), refused(ABORTED, Text("half")), STORED],
        turn_end("cancelled", text="half"),
    ),
    "cancelled before anything was visible, the attempt is only billed": (
        RULES,
        [*CALLED, got.Cancelled(), refused(ABORTED, Reasoning("hm"))],
        (
            fx.Append((log.AttemptFailed(failure=ABORTED, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=ABORTED, usage=USAGE)),
            *turn_end("cancelled"),
        ),
    ),
    "an answer that came together with the cancellation is kept, its calls are not run": (
        RULES,
        [*CALLED, got.Cancelled(), answer(LS), STORED],
        (
            *finished(0, LS, "not_started", NOT_STARTED_TEXT),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("cancelled", step=None),
        ),
    ),
    "cancelled among tools, what waits is answered at once and what runs is stopped": (
        RULES,
        [*BOTH, got.Cancelled()],
        (fx.Stop(), *finished(1, CAT, "not_started", NOT_STARTED_TEXT)),
    ),
    "the stopped tool's answer closes the turn": (
        RULES,
        [*BOTH, got.Cancelled(), replace(ended(0, "stopped"), outcome="cancelled", is_error=True)],
        (
            *finished(0, LS, "cancelled", "stopped"),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("cancelled", step=None),
        ),
    ),
    "cancelled in a wait, nothing waits any more": (
        RULES,
        [*CALLED, refused(STALLED), got.Cancelled()],
        (fx.Stop(), *turn_end("cancelled")),
    ),
    "a cancellation between turns means nothing": (RULES, [got.Cancelled()], ()),
    "an answer that comes too late means nothing": (
        RULES,
        [*CALLED, refused(STALLED), got.Cancelled(), got.RetryDue()],
        (),
    ),
    "a broken hook closes the turn as failed": (
        RULES,
        [START, got.Broke("the hook raised")],
        (fx.Stop(), *turn_end("failed", detail="the hook raised", usage=Usage())),
    ),
    "steering is durable when it arrives": (
        RULES,
        [*BOTH, got.InputArrived("q1", (Text("stop that"),), "steer")],
        (
            fx.Append((log.InputQueued(id="q1", content=(Text("stop that"),), mode="steer"),)),
            fx.Flush(),
        ),
    ),
    "steering reaches the model at the next step": (
        RULES,
        [
            *CALLED,
            answer(LS),
            STORED,
            got.InputArrived("q1", (Text("faster"),), "steer"),
            ended(0),
        ],
        (
            *finished(0, LS, "done", "ok", error=False),
            *next_step(
                2,
                log.InputTaken(id="q1"),
                log.UserMessage(id="q1", content=(Text("faster"),), origin="steer"),
            ),
        ),
    ),
    "steering that came with the last word makes one more step": (
        RULES,
        [*CALLED, got.InputArrived("q1", (Text("and?"),), "steer"), HI, STORED],
        next_step(
            2,
            log.InputTaken(id="q1"),
            log.UserMessage(id="q1", content=(Text("and?"),), origin="steer"),
        ),
    ),
    "a follow-up waits for the next turn": (
        RULES,
        [*CALLED, got.InputArrived("q1", (Text("then"),), "follow_up"), HI, STORED],
        turn_end("completed", text="hi"),
    ),
    "the next turn begins with what was queued": (
        RULES,
        [
            *CALLED,
            got.InputArrived("q1", (Text("then"),), "follow_up"),
            HI,
            STORED,
            got.TurnRequested(()),
        ],
        (
            fx.Append(
                (
                    log.TurnStart(turn=2),
                    log.InputTaken(id="q1"),
                    log.UserMessage(id="q1", content=(Text("then"),), origin="follow_up"),
                    log.StepStart(turn=2, step=1),
                )
            ),
            fx.Prepare(2, 1, 1, "normal"),
        ),
    ),
    "a turn ends when its steps are used up": (
        replace(RULES, budget=Budget(steps=1)),
        [*CALLED, answer(LS), STORED, ended(0)],
        (
            *finished(0, LS, "done", "ok", error=False),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("budget", step=None, detail="the turn took its 1 steps; raise the limit or continue"),
        ),
    ),
    "a token budget stops the next call, not the running one": (
        replace(RULES, budget=Budget(tokens=12)),
        [*CALLED, answer(LS), STORED, ended(0)],
        (
            *finished(0, LS, "done", "ok", error=False),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("budget", step=None, detail="the session used 12 tokens of 12; raise the limit"),
        ),
    ),
    "a money budget stops a retry too": (
        replace(RULES, budget=Budget(cost_usd=0.01), price=Price(input=1000, output=1000)),
        [*CALLED, refused(STALLED), got.RetryDue()],
        (
            fx.Append((log.RetryStarted(retry=1),)),
            *turn_end("budget", detail="the session cost $0.0120 of $0.0100; raise the limit"),
        ),
    ),
    "a time budget ends the turn": (
        replace(RULES, budget=Budget(seconds=3)),
        [*CALLED, answer(LS), STORED, ended(0)],
        (
            *finished(0, LS, "done", "ok", error=False),
            fx.Append((log.StepEnd(turn=1, step=1),)),
            *turn_end("budget", step=None, detail="the turn ran for 4 s of 3 s"),
        ),
    ),
    "a hook at the end may send the model back to work": (
        replace(RULES, stop_hook=True),
        [*CALLED, HI, STORED, got.StopHookSaid(((Text("run the tests"),),))],
        next_step(2, log.UserMessage(id="t1s2r0", content=(Text("run the tests"),), origin="runtime")),
    ),
    "a hook at the end may be content": (
        replace(RULES, stop_hook=True),
        [*CALLED, HI, STORED, got.StopHookSaid()],
        turn_end("completed", text="hi"),
    ),
    "a hook is asked about a failure": (
        replace(RULES, error_hook=True),
        [*CALLED, refused(REFUSED)],
        (
            fx.Append((log.AttemptFailed(failure=REFUSED, usage=USAGE),)),
            fx.Emit(told.AttemptDiscarded(attempt=1, failure=REFUSED, usage=USAGE)),
            fx.AskErrorHook(REFUSED),
        ),
    ),
    "a hook may give up what would be retried": (
        replace(RULES, error_hook=True),
        [*CALLED, refused(STALLED), got.ErrorHookSaid("give_up", 0.5)],
        turn_end("failed", failure=STALLED, detail="a hook gave up"),
    ),
}


@pytest.mark.parametrize(("rules", "inputs", "expected"), TRANSITIONS.values(), ids=TRANSITIONS.keys())
def test_transition(rules: Rules, inputs: Sequence[got.Input], expected: tuple[fx.Effect, ...]) -> None:
    _, effects = play(rules, inputs)
    assert effects == expected


def same_call(times: int) -> list[got.Input]:
    rounds: list[got.Input] = [START]
    for number in range(times):
        rounds += [READY, answer(LS), got.MessageStored(seq=number), ended(0)]
    return rounds


def test_the_same_call_again_and_again_is_pointed_out_then_stopped() -> None:
    rules = replace(RULES, stuck=Stuck(remind_at=(2,), stop_at=3))
    _, reminded = play(rules, same_call(2))
    assert isinstance(reminded[-2], fx.Append)
    reminder = reminded[-2].bodies[1]
    assert isinstance(reminder, log.UserMessage)
    assert (reminder.id, reminder.origin) == ("t1s3r0", "runtime")
    state, stopped = play(rules, same_call(3))
    assert state.phase == Idle()
    assert stopped[-1] == fx.EndTurn("failed")


def test_retries_end_and_the_last_failure_is_reported() -> None:
    inputs: list[got.Input] = [*CALLED, refused(STALLED)]
    for _ in range(5):
        inputs += [got.RetryDue(), READY, refused(STALLED)]
    state, effects = play(RULES, inputs)
    assert state.phase == Idle()
    assert effects[-1] == fx.EndTurn("failed")
    assert state.turn_usage.input_tokens == 60


SERVER_ERRORS = {
    "the first turn that dies of server errors ends": (0, fx.EndTurn("failed")),
    "the second in a row tries a safer form of the request": (1, fx.Prepare(1, 1, 7, "strict")),
}


@pytest.mark.parametrize(("before", "last"), SERVER_ERRORS.values(), ids=SERVER_ERRORS.keys())
def test_server_errors(before: int, last: fx.Effect) -> None:
    state = State(rules=RULES, server_failures=before)
    for given_input in (
        *CALLED,
        refused(BROKEN_SERVER),
        *[got.RetryDue(), READY, refused(BROKEN_SERVER)] * 5,
    ):
        state, effects = advance(state, given_input)
    assert effects[-1] == last


NAMED_TOOLS = {
    "by name": ("Invalid schema for function 'mcp__x__cat': bad", "mcp__x__cat"),
    "by name within another": ("tool cat-2 is bad", "cat-2"),
    "by number": ("tools.1.custom.input_schema: bad", "cat-2"),
    "by number in brackets": ("tools[0].function.parameters: bad", "cat"),
    "by a number that is too high": ("tools[9] is bad", None),
    "not at all": ("a schema is bad", None),
}


@pytest.mark.parametrize(("said", "name"), NAMED_TOOLS.values(), ids=NAMED_TOOLS.keys())
def test_the_refused_tool_is_named(said: str, name: str | None) -> None:
    why = failure("INVALID_TOOL_SCHEMA", "refused", provider_message=said)
    assert refused_tool(why, ("cat", "cat-2", "mcp__x__cat"), ()) == name


def test_retries_of_an_interrupted_step_count_on() -> None:
    state = State(rules=RULES, carried=4)
    for given_input in (START, READY, refused(STALLED), got.RetryDue(), READY, refused(STALLED)):
        state, effects = advance(state, given_input)
    assert effects[-1] == fx.EndTurn("failed")


def test_a_clock_set_back_ends_no_budget_early_and_none_late() -> None:
    state, _ = advance(State(rules=RULES, now_ms=5_000), START, now_ms=1_000)
    assert state.turn_began_ms == 5_000


# ---- whatever happens ----


class FaultyWorld:
    """Answers effects as a driver would, in any order and with any fault, behind the session log's gate."""

    def __init__(self, rules: Rules, choose: Callable[[int], int]) -> None:
        self.state = State(rules=rules)
        self.log = gate.LogState()
        self.choose = choose
        self.waiting: list[got.Input] = []
        self.unflushed = 0
        self.ends: list[str] = []
        self.answers: dict[tuple[int, int], int] = {}
        self.calls: set[tuple[int, int]] = set()
        self.queued = 0
        self.append(log.SessionStart(format=1, id="s"))

    def append(self, *bodies: log.Body) -> int:
        for body in bodies:
            assert gate.refusal(self.log, body) is None, (gate.refusal(self.log, body), body)
            seq = self.log.next_seq
            gate.advance(self.log, log.Event(seq=seq, time_ms=0, body=body))
            self.unflushed += 1
            if isinstance(body, log.ToolFinished):
                place = (body.message_seq, body.position)
                self.answers[place] = self.answers.get(place, 0) + 1
            if isinstance(body, log.AssistantMessage):
                asked = [block for block in body.content if isinstance(block, ToolCall)]
                self.calls |= {(seq, position) for position in range(len(asked))}
        return self.log.next_seq - 1

    def step(self, given_input: got.Input) -> None:
        self.state, effects = advance(self.state, given_input)
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Append(bodies=bodies):
                self.append(*bodies)
            case fx.StoreMessage(body=body):
                self.waiting.append(got.MessageStored(self.append(body)))
            case fx.Flush():
                self.unflushed = 0
            case fx.Prepare():
                self.waiting.append(self.pick([READY, READY, CROWDED, got.RequestUnfit(STRUCTURE)]))
            case fx.CallModel():
                assert self.unflushed == 0, "the intent of a model call must be durable"
                self.waiting.append(self.attempt())
            case fx.RunTool(position=position):
                assert self.unflushed == 0, "the intent of a tool must be durable"
                self.waiting.append(ended(position))
            case fx.WaitRetry():
                self.waiting.append(got.RetryDue())
            case fx.Decide(position=position):
                decisions: list[got.Input] = [
                    got.CallDecided(position, "allowed", by="user"),
                    got.CallDecided(position, "denied"),
                    got.CallDecided(position, "nobody"),
                ]
                if self.choose(2):
                    self.waiting.append(got.CallAsked(position))
                self.waiting.append(self.pick(decisions))
            case fx.AskErrorHook():
                verdicts = ("default", "retry", "compact", "give_up")
                self.waiting.append(got.ErrorHookSaid(verdicts[self.choose(4)], 0.1))  # type: ignore[arg-type]
            case fx.AskStopHook():
                more = ((Text("go on"),),) if self.choose(2) else ()
                self.waiting.append(got.StopHookSaid(more))
            case fx.Compact():
                self.waiting.append(got.CompactionDone(applied=bool(self.choose(2))))
            case fx.Stop():
                self.stop()
            case fx.EndTurn(reason=reason):
                assert self.unflushed == 0, "the end of a turn must be durable"
                self.ends.append(reason)
            case fx.Emit():
                pass

    def stop(self) -> None:
        """As the driver does: what runs ends soon, what is asked is forgotten."""
        kept: list[got.Input] = []
        for item in self.waiting:
            match item:
                case got.AttemptEnded() if self.choose(3):
                    kept.append(refused(ABORTED, *((Text("half"),) if self.choose(2) else ())))
                case got.ToolEnded(position=position) if self.choose(3):
                    kept.append(replace(ended(position), outcome="cancelled", is_error=True))
                case got.AttemptEnded() | got.ToolEnded() | got.MessageStored() | got.CompactionDone():
                    kept.append(item)
                case _:
                    if self.choose(2):  # it was on its way already
                        kept.append(item)
        self.waiting = kept

    def attempt(self) -> got.Input:
        usages = (USAGE, None)
        outcomes: list[got.Input] = [
            HI,
            answer(LS, CAT, RM),
            answer(Text("look"), LS),
            answer(RM, RM),
            answer(LS, CUT, finish="length"),
            answer(Text("cut"), finish="length", usage=usages[self.choose(2)]),
            *(refused(why) for why in (STALLED, REFUSED, STRUCTURE, OVERFLOW)),
        ]
        return self.pick(outcomes)

    def pick(self, options: Sequence[got.Input]) -> got.Input:
        return options[self.choose(len(options))]

    def disturb(self) -> None:
        match self.choose(40):
            case 0:
                self.step(got.Cancelled("user"))
            case 1:
                self.step(got.Broke("a hook raised"))
            case 2 | 3:
                self.queued += 1
                mode = "steer" if self.choose(2) else "follow_up"
                self.step(got.InputArrived(f"q{self.queued}", (Text("more"),), mode))  # type: ignore[arg-type]
            case 4:
                self.step(ended(self.choose(3)))
            case 5:
                self.step(got.RetryDue())
            case _:
                pass

    def turn(self, number: int) -> None:
        self.step(got.TurnRequested((log.UserMessage(id=f"u{number}", content=(Text("go"),)),)))
        for _ in range(3_000):
            if len(self.ends) == number:
                break
            self.disturb()
            if len(self.ends) == number:
                break
            assert self.waiting, f"the turn waits for nothing in {self.state.phase}"
            self.step(self.waiting.pop(self.choose(len(self.waiting))))
        self.waiting.clear()


RULE_BOOKS = [
    replace(RULES, budget=Budget(steps=2)),
    replace(PARALLEL, rungs=("normal", "strict", "flattened"), budget=Budget(steps=9)),
    replace(
        PARALLEL,
        error_hook=True,
        stop_hook=True,
        can_compact=True,
        budget=Budget(steps=8, tokens=400),
        stuck=Stuck(remind_at=(2,), stop_at=4),
    ),
]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), book=st.sampled_from(RULE_BOOKS))
def test_whatever_happens_every_call_is_answered_once_and_every_turn_closed(seed: int, book: Rules) -> None:
    source = random.Random(seed)
    world = FaultyWorld(book, source.randrange)
    for number in (1, 2, 3):
        world.turn(number)
        assert world.state.phase == Idle()
        assert not world.log.turn_open
        assert set(world.answers) == world.calls
        assert set(world.answers.values()) <= {1}
    assert len(world.ends) == 3


def test_the_world_of_faults_does_reach_every_end() -> None:
    ends: set[str] = set()
    for seed in range(120):
        world = FaultyWorld(RULE_BOOKS[seed % len(RULE_BOOKS)], random.Random(seed).randrange)
        for number in (1, 2, 3):
            world.turn(number)
        ends |= set(world.ends)
    assert ends == {"completed", "failed", "cancelled", "length", "approval", "budget"}


def test_every_input_has_a_transition() -> None:
    state, _ = play(RULES, BOTH)
    assert isinstance(state.phase, Working)
    used = {type(item) for _, inputs, _ in TRANSITIONS.values() for item in inputs}
    assert used == set(got.Input.__args__)  # type: ignore[attr-defined]

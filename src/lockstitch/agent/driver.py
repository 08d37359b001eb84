"""The driver: performs the turn machine's effects and tells the machine what came of them.

One driver runs one turn. Everything that takes time runs as a task of it and ends in one input; the inputs
are taken one by one, so the machine and the log see one order of events. When ``run`` returns, the turn is
closed in the log and no task of it is left, except a tool that did not stop when told to.
"""

import asyncio
import dataclasses
from collections.abc import Coroutine
from typing import Any, Final, assert_never

from ..history.decode import Decoded
from ..llm.endpoint import Endpoint
from ..schema.blocks import Block, Text, ToolCall
from ..schema.chunks import Finish
from ..schema.failures import failure
from ..schema.messages import Request
from ..tools.contract import ToolContext
from ..tools.run import Ran, run_call
from . import effects as fx
from . import events, hooks, tracing
from . import inputs as got
from .channel import Channel
from .machine import advance
from .media import stored
from .recovery import disposition
from .requests import Prepared
from .shown import Shown
from .state import State
from .world import World

CANCELLED_TEXT: Final = (
    "This call was cancelled while it ran; what it did until then may have had effects. "
    "Check before you repeat it."
)
STOP_S: Final = 3.0
"""From being told to stop to being left behind; tools have their own, shorter limit."""


class Driver:
    """Runs one turn from ``TurnRequested`` to ``EndTurn``."""

    def __init__(self, world: World, state: State, channel: Channel) -> None:
        self.state = state
        self.ending: fx.EndTurn | None = None
        self._world = world
        self._channel = channel
        self._inputs: asyncio.Queue[got.Input] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._tools: set[asyncio.Task[Ran]] = set()
        self._compacting: asyncio.Task[got.CompactionDone] | None = None
        self._stream: Any = None
        self._prepared: Prepared | None = None
        self._stopping = False
        self._broken: BaseException | None = None

    async def run(self, requested: got.TurnRequested) -> None:
        """The whole turn. Raises what a hook or an approver raised, once the turn is closed.

        Raises what the log raised (``StorageError``) with the turn left open; opening it again closes it.
        """
        self.tell(requested)
        try:
            while self.ending is None:
                given = await self._inputs.get()
                self.state, effects = advance(self.state, given, now_ms=self._world.clock_ms())
                for effect in effects:
                    await self._perform(effect)
        finally:
            await self._stop_everything()
        if self._broken is not None:
            raise self._broken

    def tell(self, given: got.Input) -> None:
        """Tell the machine; taken in order."""
        self._inputs.put_nowait(given)

    async def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Append(bodies=bodies):
                self._world.append(*bodies)
            case fx.StoreMessage(body=body):
                (event,) = self._world.append(body)
                self.tell(got.MessageStored(event.seq))
            case fx.Flush():
                await self._world.log.flush()
            case fx.Emit(event=event):
                await self._channel.send(event)
            case fx.Prepare():
                self._ask(self._prepare(effect))
            case fx.CallModel():
                self._start(self._call_model())
            case fx.WaitRetry(delay_ms=delay_ms):
                self._ask(self._wait(delay_ms / 1000))
            case fx.AskErrorHook(failure=why):
                self._ask(self._error_hook(why))
            case fx.AskStopHook(text=text):
                self._ask(self._stop_hook(text))
            case fx.Compact():
                self._begin_compaction(effect)
            case fx.Decide(position=position, call=call):
                self._ask(self._decide(position, call))
            case fx.RunTool(position=position, call=call):
                self._begin_tool(position, call)
            case fx.Stop():
                self._stop()
            case fx.EndTurn():
                self.ending = effect
            case _:
                assert_never(effect)

    # ---- the request and the model ----

    async def _prepare(self, wanted: fx.Prepare) -> None:
        world, rung = self._world, wanted.rung
        profile, model = world.requests.endpoint.profile, world.requests.endpoint.model
        world.requests.amend(
            world.carried.amendments(profile.name, model),
            lowered=wanted.lowered,
            without=wanted.without,
            media=wanted.media,
        )
        request, projected = await world.requests.request(world.context, rung)
        if world.hooks.before_request is not None:
            changed: Request | None = await hooks.ask(world.hooks.before_request, request)
            request = changed or request
        prepared = world.requests.prepare(world.context, world.carried, rung, request, projected)
        if isinstance(prepared, got.RequestUnfit):
            self.tell(prepared)
            return
        self._prepared = prepared
        self.tell(prepared.ready)

    async def _call_model(self) -> None:
        """Ends in one ``AttemptEnded``, also where something of ours breaks."""
        prepared, endpoint = self._prepared, self._world.requests.endpoint
        assert prepared is not None, "a model is called only with a prepared request"
        decoded: Decoded | None = None
        try:
            with tracing.attempt(
                self._world.context.session_id, endpoint.profile.name, endpoint.model
            ) as span:
                decoded = await self._streamed(prepared, endpoint)
                span.set(tracing.usage_attributes(decoded.usage))
                span.set({"gen_ai.response.finish_reasons": [decoded.finish.reason]})
                if decoded.finish.failure is not None:
                    span.failed(decoded.finish.failure.code)
        finally:
            self._stream = None
            self._judge(prepared, decoded or lost("the model call broke off inside of Lockstitch"))

    async def _streamed(self, prepared: Prepared, endpoint: Endpoint) -> Decoded:
        world = self._world
        window = endpoint.profile.context_window
        ratio = prepared.input_estimate / window if window else None
        shown = Shown(world)
        try:
            async with world.models.stream(
                endpoint, prepared.wire, input_estimate=prepared.input_estimate, context_ratio=ratio
            ) as stream:
                self._stream = stream
                if self._stopping:
                    stream.cancel()
                async for chunk in stream:
                    for event in self._channel.put_all(shown.take((chunk, *stream.ready()))):
                        await self._channel.send(event)
            result: Decoded = stream.result
            return result
        finally:
            shown.close()

    def _judge(self, prepared: Prepared, decoded: Decoded) -> None:
        requests, why = self._world.requests, decoded.finish.failure
        endpoint = requests.endpoint
        # First, because the machine waits for it, also when it stops: whatever breaks behind this only ends
        # the turn.
        self.tell(
            got.AttemptEnded(
                decoded=decoded,
                jitter=self._world.jitter(),
                provider=endpoint.profile.name,
                model=endpoint.model,
            )
        )
        if why is None:
            requests.settled()
        elif disposition(why) in ("ladder", "drop_media"):
            requests.refused(prepared.wire)

    async def _wait(self, delay_s: float) -> None:
        await self._world.sleep(delay_s)
        self.tell(got.RetryDue())

    async def _error_hook(self, why: Any) -> None:
        hook = self._world.hooks.on_request_error
        verdict: hooks.Verdict = "default" if hook is None else await hooks.ask(hook, why)
        self.tell(got.ErrorHookSaid(verdict, self._world.jitter()))

    async def _stop_hook(self, text: str) -> None:
        world = self._world
        if world.output_check is not None:
            said = await world.output_check(text)
            if said.messages or said.failed:
                self.tell(said)
                return
        hook = world.hooks.turn_stopping
        more = None if hook is None else await hooks.ask(hook, text)
        messages: tuple[tuple[Block, ...], ...] = ((Text(more),),) if more else ()
        self.tell(got.StopHookSaid(messages))

    def _begin_compaction(self, wanted: fx.Compact) -> None:
        compactor = self._world.compactor
        if compactor is None:
            self.tell(got.CompactionDone(applied=False))
            return
        task = asyncio.create_task(compactor.compact(wanted.trigger, wanted.severity, self._channel.send))

        def answer(done: asyncio.Task[got.CompactionDone]) -> None:
            self._compacting = None
            error = None if done.cancelled() else done.exception()
            if error is not None:
                self._break(error)
            lost_it = done.cancelled() or error is not None
            self.tell(got.CompactionDone(applied=False) if lost_it else done.result())

        self._compacting = task
        task.add_done_callback(answer)

    # ---- tools ----

    async def _decide(self, position: int, call: ToolCall) -> None:
        world = self._world
        if world.hooks.before_tool is not None:
            reason = await hooks.ask(world.hooks.before_tool, call)
            if reason:
                self.tell(got.CallDecided(position, "denied", by="hook", reason=reason))
                return
        tool = world.registry.get(call.name)
        if tool is None:  # its answer says so
            self.tell(got.CallDecided(position, "allowed", by="policy", logged=False))
            return
        found = world.approvals.decide(position, call, tool, world.carried.allowed)
        self.tell(found)
        if isinstance(found, got.CallAsked):
            self.tell(await world.approvals.put_to_person(call, found))

    def _begin_tool(self, position: int, call: ToolCall) -> None:
        task = asyncio.create_task(self._run_tool(call))

        def answer(done: asyncio.Task[Ran]) -> None:
            # Not in the task's own `finally`: one that is cancelled before it began never gets there.
            self._tools.discard(done)
            error = None if done.cancelled() else done.exception()
            if error is not None:
                self._break(error)
            self.tell(ended(position, None if done.cancelled() or error is not None else done.result()))

        self._tools.add(task)
        task.add_done_callback(answer)

    async def _run_tool(self, call: ToolCall) -> Ran:
        world = self._world
        with tracing.tool(world.context.session_id, call.name, call.id) as span:
            ran = await run_call(world.registry, call, self._tool_context(call))
            tracing.end_of_tool(span, ran)
        hook = world.hooks.after_tool
        if hook is not None:
            try:
                changed: Ran | None = await hooks.ask(hook, call, ran)
            except Exception as error:
                self._break(error)
                return ran
            ran = changed or ran
        return dataclasses.replace(ran, content=await stored(ran.content, world.log.blobs))

    def _tool_context(self, call: ToolCall) -> ToolContext:
        def progress(text: str) -> None:
            self._channel.offer(events.ToolProgress(call_id=call.id, text=text))

        make = self._world.tool_context
        assert make is not None, "a session gives its tools their surroundings"
        return make(call, progress)

    # ---- tasks ----

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ask(self, work: Coroutine[Any, Any, None]) -> None:
        self._asking.add(self._start(work))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._asking.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._break(error)

    def _break(self, error: BaseException) -> None:
        """A hook, an approver or a defect of ours: close the turn first, then pass it on."""
        if self._broken is None:
            self._broken = error
            self.tell(got.Broke(f"{type(error).__name__}: {error}"))

    def _stop(self) -> None:
        self._stopping = True
        if self._stream is not None:
            self._stream.cancel()
        for task in (*self._asking, *self._tools, *([self._compacting] if self._compacting else [])):
            task.cancel()

    async def _stop_everything(self) -> None:
        left: set[asyncio.Task[Any]] = {*self._tasks, *self._tools}
        if self._compacting is not None:
            left.add(self._compacting)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=STOP_S)


def ended(position: int, ran: Ran | None) -> got.ToolEnded:
    """The input for a tool that ended; None: it was cancelled."""
    if ran is None:
        return got.ToolEnded(position, "cancelled", (Text(CANCELLED_TEXT),), is_error=True)
    return got.ToolEnded(
        position, ran.outcome, ran.content, ran.is_error, duration_ms=ran.duration_ms, meta=ran.meta
    )


def lost(message: str) -> Decoded:
    """Stands for a model call that has no result of its own."""
    finish = Finish(reason="aborted", failure=failure("ABORTED", message))
    return Decoded(content=(), finish=finish, usage=None, notes=())

"""A session: one durable conversation that takes turns, one at a time."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from ..schema.blocks import Block, Text
from ..schema.errors import CallerError
from ..schema.events import Body, InputQueued, Title, UserMessage
from ..schema.messages import Message
from ..schema.usage import Usage
from ..session.closers import closers
from ..session.reports import OpenReport
from ..session.store import SessionLog
from . import effects as fx
from . import inputs as got
from . import rewriting, tracing
from .compaction import Compactor
from .driver import Driver
from .events import Compacted, UserEvent
from .given import content_of
from .media import stored
from .messages import Messages, ReadLog
from .result import Result, provider_error
from .resume import machine_state, waiting
from .state import Queued, Rules, State
from .structured import Output
from .toolset import Source, Toolset
from .turn import Running, Turn
from .world import World

T = TypeVar("T")

CONTINUE_TEXT: Final = "Continue where you left off."
"""What a turn begins with that nobody typed a prompt for; its origin is ``runtime``."""
TITLE_CHARS: Final = 80


@dataclass(slots=True)
class Parts:
    """What a session is made of; ``Agent.open`` puts them together."""

    log: SessionLog
    world: World
    rules: Rules
    tools: Toolset
    more_tools: Source | None
    """Of MCP servers."""
    cwd: Path
    read_log: ReadLog
    compactor: Compactor
    close: Callable[[], Any]
    """Gives back what the agent shares among its sessions."""


class Session:
    """Made by ``Agent.open``. Every turn is in the log before its ``TurnEnded`` is seen."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._running: Running | None = None
        self._turn_lock = asyncio.Lock()
        self._messages = Messages(parts.world, parts.read_log)
        self._closed = False

    # ---- what is known ----

    @property
    def id(self) -> str:
        return self._parts.log.id

    @property
    def report(self) -> OpenReport:
        """What opening the session found and mended."""
        return self._parts.log.report

    @property
    def messages(self) -> Sequence[Message]:
        """The live history, as faithful as the log. A view: do not change it."""
        return self._parts.world.context.messages

    def is_prompt(self, message: Message) -> bool:
        """Whether a person said this message of ``messages``: it is no summary and no word of the runtime."""
        return self._parts.world.context.is_prompt(message)

    @property
    def title(self) -> str:
        return self._parts.world.context.title

    @property
    def usage(self) -> Usage:
        """Of the whole session, failed attempts included."""
        return self._parts.world.context.usage

    @property
    def cost(self) -> float | None:
        """US dollars for ``usage`` at the current model's price; None where that is not known."""
        price = self._parts.rules.price
        return None if price is None else price.of(self.usage)

    @property
    def model(self) -> str:
        """Where requests go, as ``provider:model``."""
        endpoint = self._parts.world.requests.endpoint
        return f"{endpoint.profile.name}:{endpoint.model}"

    @property
    def context_window(self) -> int | None:
        """Tokens that the model takes, as far as is known or a refusal taught; None without either."""
        world = self._parts.world
        return world.requests.window(world.context)

    @property
    def context_tokens(self) -> int:
        """Tokens of the next prompt, as far as they can be told before it is sent."""
        return self._parts.world.requests.estimate(self._parts.world.context)

    @property
    def queued(self) -> tuple[str, ...]:
        """Text of the input that waits to be said to the model, in order."""
        return tuple("".join(b.text for b in item.content if isinstance(b, Text)) for item in self._waiting())

    @property
    def read_only(self) -> bool:
        return self._parts.log.read_only

    @property
    def cwd(self) -> Path:
        """The workspace of the tools."""
        return self._parts.cwd

    async def rename(self, title: str) -> None:
        """Give the session a title. Durable."""
        self._parts.world.append(Title(title=title))
        await self._parts.log.flush()

    @property
    def transcript(self) -> Messages:
        """Everything ever said, in pages and as a subscription."""
        return self._messages

    # ---- what was said before ----

    async def compact(
        self, focus: str | None = None, *, watch: Callable[[UserEvent], object] | None = None
    ) -> Compacted | None:
        """Replace older history by a summary now; None if there is nothing to gain.

        ``focus`` says what matters most; ``watch`` is told when a model is asked, and of retries. Raises
        CallerError while a turn runs, ProviderError if no summary could be had; the history is then as it
        was.
        """

        async def tell(event: UserEvent) -> None:
            if watch is not None:
                watch(event)

        async with self._between_turns():
            outcome = await self._parts.compactor.run("manual", focus=focus, tell=tell)
        if outcome.told is None and outcome.failure is not None:
            raise provider_error(outcome.failure, "the history is as it was")
        return outcome.told

    async def undo(self, turns: int = 1) -> int:
        """The last ``turns`` turns no longer count for the model; what tools did stays done.

        The number of the first undone turn. Durable. Raises CallerError if there are fewer, or a turn runs.
        """
        async with self._between_turns():
            return await rewriting.undo(self._parts.world, self._parts.read_log, turns)

    async def rewind(self, turn: int) -> None:
        """Go on as if ``turn`` had been the last, 0: as if nothing had been said. Raises as ``undo``."""
        async with self._between_turns():
            await rewriting.rewind(self._parts.world, self._parts.read_log, turn)

    async def clear(self) -> None:
        """The model starts afresh; pages still show everything. Raises CallerError while a turn runs."""
        async with self._between_turns():
            await rewriting.clear(self._parts.world)

    # ---- turns ----

    def send(self, prompt: str | Sequence[Block], *, output: type[T] | None = None) -> Turn[T]:
        """A turn that begins with ``prompt``. With ``output`` its last answer is a value of that type.

        Follow-ups that were queued run behind it, in the same ``Turn``. Raises CallerError for an empty
        prompt and, once it starts, for a second turn at the same time; SessionReadOnlyError at once.
        """
        content = content_of(prompt)
        return self._turn((content, "user"), output)

    def resume(self, *, output: type[T] | None = None) -> Turn[T]:
        """A turn that goes on where the last one stopped, however it stopped.

        Queued input begins it; without any, the runtime says "Continue where you left off." (origin
        ``runtime``). Raises CallerError, once it starts, if nothing was ever said in the session.
        """
        return self._turn(None, output)

    async def steer(self, text: str | Sequence[Block]) -> None:
        """Said to the model at the next step of the running turn, or first in the next turn. Durable."""
        await self._queue(content_of(text), "steer")

    async def follow_up(self, text: str | Sequence[Block]) -> None:
        """A turn of its own behind the running one. Durable."""
        await self._queue(content_of(text), "follow_up")

    def cancel(self, detail: str = "cancelled by the user") -> None:
        """End the running turn soon, with every call answered. Without one, nothing."""
        if self._running is not None:
            self._running.cancel(detail)

    async def close(self) -> None:
        """Cancel what runs, wait until it is closed, and give the session free."""
        if self._closed:
            return
        self._closed = True
        self._messages.close()
        running = self._running
        if running is not None and running.task is not None:
            running.leave("the session is being closed")
            await asyncio.shield(asyncio.wait({running.task}))
        try:
            await self._parts.log.close()
        finally:
            await self._parts.close()

    # ---- the work ----

    def _turn(self, said: tuple[tuple[Block, ...], str] | None, wanted: type[T] | None) -> Turn[T]:
        if self.read_only:
            self._parts.log.append()  # says why
        output = None if wanted is None else Output(wanted)

        async def begin(running: Running) -> None:
            await self._begin(running, said, output)

        def make_result(running: Running) -> Result[T]:
            return self._result(running, output)

        return Turn(begin, make_result=make_result)

    async def _begin(
        self, running: Running, said: tuple[tuple[Block, ...], str] | None, output: Output | None
    ) -> None:
        if self._closed:
            raise CallerError(f"session {self.id!r} is closed; open it again")
        previous = self._running
        if previous is not None and previous.cancelled is None:
            raise CallerError("a turn is running in this session; use steer() or follow_up(), or wait for it")
        async with self._turn_lock:
            self._running = running
            try:
                await self._run_turns(running, await self._request(said, output), output)
            finally:
                self._running = None

    async def _run_turns(self, running: Running, requested: got.TurnRequested, output: Output | None) -> None:
        world = self._parts.world
        world.output_check = None if output is None else output.check
        while True:
            driver = Driver(world, self._machine(), running.channel)
            header = world.requests.header
            with tracing.turn(self.id, header.provider, header.model) as span:
                await running.drive(driver, requested)
                span.set(tracing.usage_attributes(driver.state.turn_usage))
                tracing.end_of_turn(span, driver.ending)
            follows = any(item.mode == "follow_up" for item in self._waiting())
            if not follows or driver.ending != fx.EndTurn("completed") or running.cancelled is not None:
                return
            requested = got.TurnRequested(())

    @asynccontextmanager
    async def _between_turns(self) -> AsyncIterator[None]:
        if self._closed:
            raise CallerError(f"session {self.id!r} is closed; open it again")
        if self._running is not None and self._running.cancelled is None:
            raise CallerError("a turn is running in this session; wait for its end, or cancel it")
        async with self._turn_lock:
            self._mend()
            yield

    def _machine(self) -> State:
        """The machine between turns: always what the log says, whatever the last turn went through."""
        world = self._parts.world
        wants_stop_hook = world.output_check is not None or world.hooks.turn_stopping is not None
        parts = self._parts
        # An MCP server may have become ready since the last turn; within one the tools stay the same.
        world.registry = parts.tools.registry(parts.more_tools)
        world.requests.offer(world.registry)
        rules = replace(
            parts.tools.rules(parts.rules, world.registry),
            stop_hook=wants_stop_hook,
            can_compact=world.compactor is not None,
        )
        header = world.requests.header
        refused = world.carried.amendments(header.provider, header.model)
        return machine_state(
            rules,
            parts.log.state,
            world.context,
            world.carried,
            provider=header.provider,
            model=header.model,
            without=tuple(spec.name for spec in world.registry.specs() if refused.refuses(spec)),
        )

    def _waiting(self) -> tuple[Queued, ...]:
        return waiting(self._parts.log.state, self._parts.world.context)

    async def _request(
        self, said: tuple[tuple[Block, ...], str] | None, output: Output | None
    ) -> got.TurnRequested:
        self._mend()
        number = self._parts.log.state.turns + 1
        messages: list[UserMessage] = []
        if said is not None:
            content, origin = await stored(said[0], self._parts.log.blobs), said[1]
            messages.append(UserMessage(id=f"t{number}u", content=content, origin=origin))
            self._give_title(content)
        elif not self._waiting():
            if not self._parts.world.context.messages:
                raise CallerError(f"session {self.id!r} has nothing to continue; give it a prompt")
            messages.append(UserMessage(id=f"t{number}u", content=(Text(CONTINUE_TEXT),), origin="runtime"))
        if output is not None:
            messages.append(
                UserMessage(id=f"t{number}o", content=(Text(output.instructions),), origin="runtime")
            )
        return got.TurnRequested(tuple(messages))

    def _mend(self) -> None:
        """Close what a turn left open that broke off over a full disk or a defect of ours."""
        log = self._parts.log
        if not log.read_only and (log.state.turn_open or log.state.compaction is not None):
            left: list[Body] = closers(log.state)
            self._parts.world.append(*left)

    def _give_title(self, content: tuple[Block, ...]) -> None:
        if self.title:
            return
        text = " ".join(" ".join(b.text for b in content if isinstance(b, Text)).split())
        if text:
            title = text if len(text) <= TITLE_CHARS else text[: TITLE_CHARS - 1] + "…"
            self._parts.world.append(Title(title=title))

    async def _queue(self, content: tuple[Block, ...], mode: Literal["steer", "follow_up"]) -> None:
        content = await stored(content, self._parts.log.blobs)
        arrived = got.InputArrived(id=f"q{secrets.token_hex(6)}", content=content, mode=mode)
        running = self._running
        if running is not None and running.driver is not None:
            running.driver.tell(arrived)
            return
        world = self._parts.world
        world.append(InputQueued(id=arrived.id, content=content, mode=mode))
        await world.log.flush()

    def _result(self, running: Running, output: Output | None) -> Result[Any]:
        end, price = running.end, self._parts.rules.price
        assert end is not None, "a turn that was read to its end has told it"
        return Result(
            text=end.text,
            output=None if output is None else output.value,
            usage=end.usage,
            cost=None if price is None else price.of(end.usage),
            session_id=self.id,
            repairs=tuple(running.repairs),
            reason=end.reason,
            failure=end.failure,
            detail=end.detail,
            turn=end.turn,
        )

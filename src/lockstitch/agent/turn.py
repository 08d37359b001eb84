"""A turn as its caller holds it: an iterator of events that can be cancelled, awaited or left."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ..schema.notes import Anomaly
from . import inputs as got
from .channel import Channel
from .driver import Driver
from .events import Repaired, TextDelta, TurnEnded, UserEvent
from .result import Result
from .structured import Output

T = TypeVar("T")


@dataclass(slots=True)
class Running:
    """A turn under way. It refers to nobody who watches, so that a watcher who is gone can be noticed."""

    channel: Channel
    driver: Driver | None = None
    task: "asyncio.Task[None] | None" = None
    cancelled: str | None = None
    repairs: list[Anomaly] = field(default_factory=list)
    end: TurnEnded | None = None

    def cancel(self, detail: str) -> None:
        """Ask the turn to end; it does so with every call answered."""
        if self.cancelled is None:
            self.cancelled = detail
            if self.driver is not None:
                self.driver.tell(got.Cancelled(detail))

    def leave(self, detail: str) -> None:
        """Nobody reads any more."""
        self.channel.leave()
        self.cancel(detail)

    async def drive(self, driver: Driver, requested: got.TurnRequested) -> None:
        """Run one turn on this object's channel."""
        self.driver = driver
        if self.cancelled is not None:
            driver.tell(got.Cancelled(self.cancelled))
        try:
            await driver.run(requested)
        finally:
            self.driver = None


class Turn(Generic[T]):
    """``async for event in turn`` shows it as it happens; ``await turn.result()`` waits for its end.

    It starts with the first of the two. Leaving the ``async for`` early, or being cancelled in it, cancels
    the turn: its calls are answered and the session can go on.
    """

    def __init__(
        self,
        begin: Callable[[Running], Coroutine[Any, Any, None]],
        *,
        make_result: Callable[[Running], Result[T]],
        output: Output | None = None,
    ) -> None:
        self._begin = begin
        self._make_result = make_result
        self._output = output
        self._running: Running | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> UserEvent:
        """The next event. Behind the last, raises what a hook or the storage raised, if they did."""
        running = self._running or self._started()
        event = running.channel.take()
        if event is None:
            event = await self._next(running)
        if type(event) is not TextDelta:
            self._note(running, event)
        return event

    def ready(self) -> list[UserEvent]:
        """Take the events that need no waiting; ``async for`` goes on behind them. For who gives on a whole
        stream of them."""
        if self._running is None:
            return []
        taken = self._running.channel.take_all()
        for event in taken:
            if type(event) is not TextDelta:
                self._note(self._running, event)
        return taken

    async def _next(self, running: Running) -> UserEvent:
        try:
            event = await running.channel.next()
        except asyncio.CancelledError:
            await self._leave("the caller was cancelled")
            raise
        if event is None:
            self._over = True
            await self._ended(running)
            raise StopAsyncIteration
        return event

    async def result(self) -> Result[T]:
        """Read the turn to its end; what it came to. Raises as ``__anext__`` does, not for a failed turn."""
        async for _ in self:
            pass
        assert self._running is not None
        return self._make_result(self._running)

    def cancel(self, detail: str = "cancelled by the user") -> None:
        """End the turn soon; go on reading to see it end."""
        self._started().cancel(detail)

    async def aclose(self) -> None:
        """Cancel the turn if it has not ended, and wait until it is closed."""
        if self._running is not None and not self._over:
            await self._leave("the watcher left")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        running, loop = self._running, self._loop
        if running is None or self._over or loop is None or loop.is_closed():
            return
        # A `break` out of `async for` leaves nothing behind but this object's end.
        loop.call_soon_threadsafe(running.leave, "the watcher left")

    def _started(self) -> Running:
        if self._running is None:
            self._loop = asyncio.get_running_loop()
            self._running = Running(channel=Channel())
            self._running.task = self._loop.create_task(_closing(self._begin, self._running))
        return self._running

    async def _leave(self, detail: str) -> None:
        assert self._running is not None
        self._over = True
        self._running.leave(detail)
        task = self._running.task
        assert task is not None
        await asyncio.shield(asyncio.wait({task}))
        if not task.cancelled():
            task.exception()  # seen: whoever left does not want to hear of it

    async def _ended(self, running: Running) -> None:
        assert running.task is not None
        await asyncio.shield(running.task)

    def _note(self, running: Running, event: UserEvent) -> None:
        match event:
            case Repaired(anomalies=anomalies):
                running.repairs += anomalies
            case TurnEnded():
                running.end = event
            case _:
                pass


async def _closing(begin: Callable[[Running], Coroutine[Any, Any, None]], running: Running) -> None:
    try:
        await begin(running)
    finally:
        running.channel.end()

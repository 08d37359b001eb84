"""From the driver to whoever watches: a bounded queue of user events that either side may end."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from .events import UserEvent

MAX_WAITING: Final = 1024
"""Events that may lie unread before the turn waits for its watcher (P11)."""


class Channel:
    """One writer, one reader, one event loop."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._events: deque[UserEvent] = deque()
        self._max = max_waiting
        self._changed = asyncio.Event()
        self._left = False
        self._ended = False
        self.dropped = 0
        """Progress that nobody was quick enough to read."""

    async def send(self, event: UserEvent) -> None:
        """Hand it over; waits while the reader is far behind. Without a reader it is thrown away."""
        while not self.put(event):
            self._changed.clear()
            await self._changed.wait()

    def put(self, event: UserEvent) -> bool:
        """``send`` if it need not wait; False: it must."""
        if self._left:
            return True
        if len(self._events) >= self._max:
            return False
        self._events.append(event)
        if len(self._events) == 1:
            self._changed.set()
        return True

    def put_all(self, events: Sequence[UserEvent]) -> Sequence[UserEvent]:
        """``put`` for each; those there was no room for, which ``send`` has to wait with. Saves a coroutine
        for each event of a stream."""
        if self._left:
            return ()
        waiting = self._events
        room = self._max - len(waiting)
        if events and not waiting:
            self._changed.set()
        waiting.extend(events[:room])
        return events[room:]

    def offer(self, event: UserEvent) -> None:
        """Hand it over if there is room: for what may be missed."""
        if self._left or not self.put(event):
            self.dropped += 1

    def end(self) -> None:
        """The writer has nothing more."""
        self._ended = True
        self._changed.set()

    def leave(self) -> None:
        """The reader wants nothing more: what waits is dropped and the writer never waits again."""
        self._left = True
        self._events.clear()
        self._changed.set()

    async def next(self) -> UserEvent | None:
        """The next event in order; None behind the last."""
        while (event := self.take()) is None:
            if self._ended or self._left:
                return None
            self._changed.clear()
            await self._changed.wait()
        return event

    def take(self) -> UserEvent | None:
        """The next event if it is there: ``next`` without waiting."""
        if not self._events:
            return None
        event = self._events.popleft()
        if len(self._events) == self._max - 1:
            self._changed.set()
        return event

    def take_all(self) -> list[UserEvent]:
        """``take`` for all that are there."""
        taken = list(self._events)
        self._events.clear()
        if len(taken) >= self._max:
            self._changed.set()
        return taken

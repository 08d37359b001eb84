"""From the driver to whoever watches: a bounded queue of user events that either side may end."""

import asyncio
from collections import deque
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
        while len(self._events) >= self._max and not self._left:
            self._changed.clear()
            await self._changed.wait()
        if not self._left:
            self._events.append(event)
            self._changed.set()

    def offer(self, event: UserEvent) -> None:
        """Hand it over if there is room: for what may be missed."""
        if self._left or len(self._events) >= self._max:
            self.dropped += 1
            return
        self._events.append(event)
        self._changed.set()

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
        while not self._events:
            if self._ended or self._left:
                return None
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        if len(self._events) == self._max - 1:
            self._changed.set()
        return event

"""The conversation for people: pages of everything ever said, and a subscription that misses nothing.

What lies further back than memory holds is read from the log. Stores have no ranged reads, so such a page
costs one pass over the session's log, in bounded memory. What is said but not yet on disk is part of every
page, because the same fold made it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec

from ..history.context import Context
from ..history.transcript import Entry, EntryRole, Page, PageFold, Transcript
from ..schema.errors import StorageError
from ..schema.events import Event
from ..session.store import SessionLog, SessionStore

if TYPE_CHECKING:
    from .world import World

ReadLog: TypeAlias = Callable[[Callable[[Event], None]], Awaitable[None]]
"""Folds every stored event of the session, the unflushed ones flushed first."""
BATCH: Final = 200
"""Stored entries that a subscriber who lags behind is given at a time."""


class Messages:
    """The transcript of one open session."""

    def __init__(self, world: "World", read_log: ReadLog) -> None:
        self._world = world
        self._read_log = read_log
        self._changed: set[asyncio.Event] = set()
        self._closed = False
        world.watchers.add(self._notify)

    async def page(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        roles: Collection[EntryRole] | None = None,
    ) -> Page:
        """One page in the order of the conversation, its live end included.

        Without a cursor the latest entries; ``before`` and ``after`` take ``Page.older`` and ``Page.newer``.
        ``roles`` are filtered first, so a page is full while there is enough of them.
        """
        held = self._world.context.transcript
        fold = PageFold(before=before, after=after, limit=limit, roles=roles)
        fold.take_all(held)
        page = fold.page
        if held.forgotten < 0 or (after is not None and after >= held.forgotten):
            return page
        if after is None and len(page.entries) == fold.limit:
            return msgspec.structs.replace(page, older=page.entries[0].seq)
        fold = PageFold(before=before, after=after, limit=limit, roles=roles)
        await self._read_log(folding(fold).apply)
        fold.take_all(self._world.context.transcript)
        return fold.page

    async def subscribe(
        self, after: int = -1, *, roles: Collection[EntryRole] | None = None
    ) -> AsyncIterator[Entry]:
        """Every entry behind ``after``, stored ones first, then each as it is said; none twice, none missed.

        It holds nothing for a reader who is slow: what memory has let go is read from the log again. Ends
        when the session is closed and everything was given.
        """
        wanted = None if roles is None else frozenset(roles)
        changed = asyncio.Event()
        self._changed.add(changed)
        cursor = after
        try:
            while True:
                changed.clear()
                entries = self._world.context.transcript.since(cursor)
                if entries is None:
                    entries = list((await self.page(after=cursor, limit=BATCH)).entries)
                for entry in entries:
                    cursor = entry.seq
                    if wanted is None or entry.role in wanted:
                        yield entry
                if not entries:
                    if self._closed:
                        return
                    await changed.wait()
        finally:
            self._changed.discard(changed)

    def close(self) -> None:
        """Let subscribers come to their end."""
        self._closed = True
        self._world.watchers.discard(self._notify)
        self._notify()

    def _notify(self) -> None:
        for changed in self._changed:
            changed.set()


class _Sink:
    """Takes a transcript's entries for a page instead of holding them."""

    def __init__(self, page: PageFold) -> None:
        self.add = page.take


def folding(page: PageFold) -> Context:
    """A context whose transcript goes into ``page``: the reducer is the same for a page and the live tail."""
    return Context(transcript=cast(Transcript, _Sink(page)))


def log_reader(store: SessionStore, log: SessionLog) -> ReadLog:
    """Reads the log of an open session, beside its writer."""

    async def read(fold: Callable[[Event], None]) -> None:
        with contextlib.suppress(StorageError):  # a full disk: what it took is read, the rest is held
            await log.flush()
        reading = await store.open(log.id, create=False, read_only=True, fold=fold)
        await reading.close()

    return read

"""What every session store can do, and what an open session is: the interface that agents are written to."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from lockstitch.schema.errors import CallerError, SessionReadOnlyError, StorageError
from lockstitch.schema.events import Body, Event

from .blobs import Blobs
from .committer import WRITE_DELAY_S, Channel, Committer, Sink
from .intake import admit
from .log_reader import Fold
from .log_state import LogState
from .reports import CheckReport, Hits, Listing, OpenReport
from .saving import Saver


class SessionStore(Protocol):
    """Keeps sessions by id. Implementations pass ``lockstitch.testing.store_suite``."""

    async def open(
        self,
        session_id: str,
        *,
        create: bool = True,
        cwd: str = "",
        fold: Fold | None = None,
        strict: bool = False,
        read_only: bool = False,
    ) -> "SessionLog":
        """Open a session for its one writer, mended and closed so that it can go on.

        Every event of the log goes through ``fold`` in order, the closers of an interruption included; it is
        called in a worker thread, and never after this returns. A ``SavingFold`` may be restored to what it
        had saved after the first of them instead, and given only the others; it ends up the same.
        ``cwd`` is stored if the session is new.
        ``read_only`` takes no lock, writes nothing and adds no closers; it also shows a session that is open
        elsewhere. ``strict`` raises SessionCorruptionError instead of mending, and then nothing is written.

        Raises CallerError for an impossible id or, without ``create``, an unknown one; SessionBusyError;
        StorageError. A log that needs a newer version opens read-only, and the report says why.
        """
        ...

    async def list(self) -> Listing:
        """All sessions, the latest first. One that cannot be read is listed with its problem."""
        ...

    async def check(self, session_id: str) -> CheckReport:
        """What is damaged, and what opening would do. Never writes, and never waits for a writer."""
        ...

    async def close(self) -> None:
        """End the store's thread after everything that open sessions have taken is written."""
        ...


class SessionKeeper(SessionStore, Protocol):
    """A store whose sessions can be looked after from outside, as the ``sessions`` commands do.

    All raise StorageError, and CallerError for an impossible id; all but ``put_log``, ``restore`` and
    ``purge`` raise CallerError for an unknown session.
    """

    async def copy_log(self, session_id: str, take: Callable[[bytes], None]) -> None:
        """Give ``take`` the bytes of the log as they lie there, in pieces, in a worker thread."""
        ...

    async def put_log(self, session_id: str, log: Iterable[bytes], blobs: Iterable[bytes] = ()) -> None:
        """Make a session that holds these bytes, whatever they are: all of it, or nothing.

        Both are iterated in a worker thread. Raises CallerError if there is a session of that id.
        """
        ...

    async def rewrite_log(self, session_id: str, log: Iterable[bytes]) -> str:
        """Put these bytes in the place of the session's log, after a copy of it was made; where that lies.

        Raises SessionBusyError while the session is open.
        """
        ...

    async def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> Hits:
        """The best places where all ``words`` were said; ``cwd`` keeps to sessions of that folder and below.

        Raises StorageError if the index cannot be used.
        """
        ...

    async def remove(self, session_id: str) -> str:
        """Move the session to the trash; where it lies now. Raises SessionBusyError while it is open."""
        ...

    async def restore(self, session_id: str) -> None:
        """Take the session of that id that was removed last out of the trash. Raises CallerError."""
        ...

    async def purge(self) -> int:
        """Delete for good what is in the trash; how many sessions that were."""
        ...


class SessionLog:
    """An open session: take events with ``append``, make them durable with ``flush``."""

    def __init__(
        self,
        session_id: str,
        *,
        path: Path | None,
        state: LogState,
        report: OpenReport,
        blobs: Blobs,
        committer: Committer | None = None,
        sink: Sink | None = None,
        saver: Saver | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """``committer`` and ``sink`` are None for a read-only session; ``release`` gives its lock back.

        ``saver``: told of everything taken, and asked where a checkpoint is due: as a session closes, and
        between turns.
        """
        self.id = session_id
        self.path = path
        """The session's directory; None in a store that has none."""
        self.state = state
        self.report = report
        self.blobs = blobs
        """The session's large content; ``blobs.put`` waits for the disk, so call it in a thread."""
        self._committer = committer
        self._channel = None if sink is None else Channel(sink)
        self._saver = saver
        self._saving: asyncio.Future[None] | None = None
        self._release = release
        self._closed = False

    @property
    def read_only(self) -> bool:
        return self._channel is None

    def append(self, *bodies: Body, time_ms: int | None = None) -> tuple[Event, ...]:
        """Take events behind those before, all or none, and return them as a reader will see them.

        They are durable after the next ``flush``, and written within a twentieth of a second anyway. The
        caller folds the returned events into its own state. ``time_ms`` defaults to the clock.

        Raises GateError for an event that the log could not read back, before anything is taken;
        SessionReadOnlyError; StorageError if too much is waiting for the disk.
        """
        channel = self._writable()
        now = time.time_ns() // 1_000_000 if time_ms is None else time_ms
        if not isinstance(now, int) or not 0 <= now < 2**53:
            raise CallerError(f"time_ms is {now!r}, not Unix milliseconds")
        assert self._committer is not None
        self._committer.require_space(channel)
        admitted = admit(self.state, bodies, now)
        if self._saver is not None:
            self._saver.took(admitted.data)
        if self._committer.put(channel, admitted.data):
            self._write_later(self._committer)
        return admitted.events

    async def flush(self) -> None:
        """Everything taken so far is durable on return.

        Raises StorageError if the disk refused; nothing acknowledged is lost then, what was not stays taken,
        and the next flush tries again. A cancelled flush goes on without its caller.
        """
        await self._flush()
        if self._saver is not None and not self._closed and not self.state.turn_open:
            work = self._saver.due(self.state)
            if work is not None:
                self._saving = asyncio.get_running_loop().run_in_executor(None, work)

    async def _flush(self) -> None:
        if self._closed or self._channel is None or self._committer is None:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def answer(error: StorageError | None) -> None:
            # A loop that was closed meanwhile raises RuntimeError: then nobody waits there any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, error)

        if self._committer.sync(self._channel, answer):
            await future

    async def close(self) -> None:
        """Flush, and give the session free for other writers; also if flushing fails, which raises."""
        if self._closed:
            return
        save = None
        try:
            await self._flush()
            if self._saving is not None:
                await asyncio.shield(self._saving)
            save = None if self._saver is None else self._saver.due(self.state)
        finally:
            self._closed = True
            if self._channel is not None:
                await asyncio.shield(asyncio.to_thread(self._let_go, self._channel.sink, save))

    def abandon(self) -> None:
        """Give the session free at once, from any thread, without waiting for what was not flushed."""
        self._closed = True
        if self._channel is not None:
            self._let_go(self._channel.sink, None)

    def _let_go(self, sink: Sink, save: Callable[[], None] | None) -> None:
        """Save, close and release, the latter two whatever happens before: in a thread, for it may wait."""
        try:
            if save is not None:
                save()
            if self._saver is not None:
                self._saver.end()
        finally:
            try:
                sink.close()
            finally:
                if self._release is not None:
                    self._release()

    def _write_later(self, committer: Committer) -> None:
        """Also without a flush what was taken has to be in the file soon."""
        try:
            asyncio.get_running_loop().call_later(WRITE_DELAY_S, committer.write_taken)
        except RuntimeError:  # appended outside of a loop, which is allowed: there is no timer, so at once
            committer.write_taken()

    def _writable(self) -> Channel:
        if self._channel is None:
            reason = self.report.read_only or "it was opened read-only"
            raise SessionReadOnlyError(f"session {self.id!r} can only be read: {reason}")
        if self._closed:
            raise CallerError(f"session {self.id!r} is closed: open it again to append")
        return self._channel


def _settle(future: "asyncio.Future[None]", error: StorageError | None) -> None:
    """Tell a flush how it went, if it still waits. A failure stays with the log: the next flush tells it."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)

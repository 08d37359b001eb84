"""Group commit: one thread per store writes what its open logs have taken, in order, and answers who waits.

Taking an event only adds its bytes to a list. They are written soon after, so that they survive the end of
the process, and synced when somebody waits for it; all that wait at the same time share one write and one
sync.

Each wake-up of the thread costs two changes of thread and, while Python code runs, maybe a wait for the
interpreter; so only who waits wakes it, and a timer, which belongs to who takes.
"""

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from lockstitch.schema.errors import CallerError, StorageError

WRITE_DELAY_S: Final = 0.05
"""How long taken bytes may stay in this process before they are written without being asked for."""
PENDING_MAX_BYTES: Final = 256 * 1024 * 1024
"""Of one log: beyond it the disk has not kept up, and no more is taken."""

STOP_MAX_S: Final = 10.0
"""How long the end of the process waits for a disk that does not answer."""

Answer: TypeAlias = Callable[[StorageError | None], None]
"""Called once, in the committer's thread, when what was asked for is durable or failed. Must not block."""


class Sink(Protocol):
    """Where the lines of one log go."""

    def commit(self, data: bytes, *, sync: bool) -> None:
        """Append ``data``; with ``sync`` it and everything before it is durable on return.

        Raises StorageError; then nothing of ``data`` is in the log, and it may be offered again.
        """

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Work:
    """What one log wants committed now, and how it went."""

    sink: Sink
    data: bytes
    sync: bool
    error: StorageError | None = None


@dataclass(slots=True, eq=False)
class Channel:
    """One log's way to the committer. Guarded by the committer's lock."""

    sink: Sink
    pending: list[bytes] = field(default_factory=list)
    pending_bytes: int = 0
    unsynced: bool = False
    """Something was written that no sync has covered."""
    busy: bool = False
    """The thread is committing for this log."""
    waiters: list[Answer] = field(default_factory=list)
    failed: bool = False
    """The last commit failed: not tried again before someone asks, or adds something."""


def commit_each(batch: Sequence[Work]) -> None:
    """Commit the work of each log on its own, as files need it."""
    for work in batch:
        try:
            work.sink.commit(work.data, sync=work.sync)
        except StorageError as error:
            work.error = error


class _Queue:
    """What the thread and the committer share; it does not keep the committer alive."""

    def __init__(self, commit: Callable[[Sequence[Work]], None]) -> None:
        self.commit = commit
        self.condition = threading.Condition(threading.Lock())
        self.urgent: dict[Channel, None] = {}
        """What the thread takes next."""
        self.taken: dict[Channel, None] = {}
        """Channels with bytes that nobody asked to write yet."""
        self.timed_until_s = 0.0
        """Until when a timer can be expected that will ask."""
        self.unsynced: dict[Channel, None] = {}
        """Channels with bytes that were written and not synced: they are when the thread ends."""
        self.stopping = False
        self.forked = False
        """This process inherited the queue by a fork, and has no thread for it."""
        self.thread: threading.Thread | None = None


class Committer:
    """Starts its thread with the first write and ends it with ``close``, or with the process."""

    def __init__(self, commit: Callable[[Sequence[Work]], None] = commit_each) -> None:
        self._queue = _Queue(commit)
        self._finalizer = weakref.finalize(self, _stop, self._queue)
        _live.add(self)
        _watch_forks()

    def require_space(self, channel: Channel) -> None:
        """Raises StorageError if too much is waiting for more to be put, or if the committer has ended."""
        if self._queue.forked:
            raise CallerError("the session was opened before this process was forked: it is the parent's")
        if self._queue.stopping:
            raise StorageError("the store is closed: open the session again in a new one")
        if channel.pending_bytes > PENDING_MAX_BYTES:
            raise StorageError(
                f"{channel.pending_bytes} bytes wait to be written: the disk does not keep up. "
                "Nothing acknowledged is lost; flush before appending more"
            )

    def put(self, channel: Channel, data: bytes) -> bool:
        """Take bytes. True: the caller must see that ``write_taken`` is called in WRITE_DELAY_S."""
        queue = self._queue
        with queue.condition:
            channel.pending.append(data)
            channel.pending_bytes += len(data)
            channel.failed = False
            queue.taken[channel] = None
            now = time.monotonic()
            if now < queue.timed_until_s:
                return False
            # Twice the delay: a timer that is late by more was lost, with its loop.
            queue.timed_until_s = now + 2 * WRITE_DELAY_S
            return True

    def write_taken(self) -> None:
        """Have everything that was taken written now, without waiting for it."""
        queue = self._queue
        with queue.condition:
            queue.timed_until_s = 0.0
            queue.urgent |= {each: None for each in queue.taken if each.pending and not each.failed}
            queue.taken = {}
            if queue.urgent and not queue.stopping and not queue.forked:
                self._wake()

    def sync(self, channel: Channel, answer: Answer) -> bool:
        """Have ``answer`` called when all that was taken so far is durable; False: it is already.

        Raises StorageError if the committer has ended.
        """
        queue = self._queue
        with queue.condition:
            if not channel.pending and not channel.unsynced and not channel.busy:
                return False
            if queue.forked or queue.stopping:
                self.require_space(channel)
            channel.waiters.append(answer)
            queue.urgent[channel] = None
            self._wake()
            return True

    def close(self) -> None:
        """Write what was taken, as far as it can be, and end the thread."""
        self._finalizer()

    def disown(self) -> None:
        """Take nothing more, and end nothing: the thread is another process's."""
        self._finalizer.detach()
        queue = self._queue
        # The old lock may have been held at the moment of the fork, by a thread that is not here to let go.
        queue.condition = threading.Condition(threading.Lock())
        queue.forked, queue.thread = True, None

    def _wake(self) -> None:
        queue = self._queue
        if queue.thread is None:
            queue.thread = threading.Thread(target=_run, args=(queue,), name="lockstitch-log", daemon=True)
            queue.thread.start()
        queue.condition.notify()


_live: "weakref.WeakSet[Committer]" = weakref.WeakSet()


@functools.cache
def _watch_forks() -> None:
    """A child process has no writer thread, and its parent's sessions are not its own."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_disown_all)


def _disown_all() -> None:
    for committer in list(_live):
        committer.disown()


def _stop(queue: _Queue) -> None:
    with queue.condition:
        queue.stopping = True
        queue.urgent |= queue.unsynced
        queue.urgent |= {each: None for each in queue.taken if each.pending}
        queue.condition.notify()
        left = bool(queue.urgent)
    if queue.thread is None and left:
        _run(queue)  # nothing was ever written, so there is no thread yet to leave it to
    elif queue.thread is not None and queue.thread is not threading.current_thread():
        queue.thread.join(STOP_MAX_S)


def _run(queue: _Queue) -> None:
    while True:
        with queue.condition:
            while not queue.urgent and not queue.stopping:
                queue.condition.wait()
            channels, queue.urgent = list(queue.urgent), {}
            if not channels:
                return
            batch = [_begin(channel, stopping=queue.stopping) for channel in channels]
            waiters = [channel.waiters for channel in channels]
            for channel in channels:
                channel.waiters = []
                queue.taken.pop(channel, None)
        _commit(queue, batch)
        with queue.condition:
            for channel, work in zip(channels, batch, strict=True):
                _finish(queue, channel, work)
        for work, waiting in zip(batch, waiters, strict=True):
            for answer in waiting:
                answer(work.error)


def _begin(channel: Channel, *, stopping: bool) -> Work:
    data = b"".join(channel.pending)
    channel.pending, channel.pending_bytes = [], 0
    channel.busy = True
    return Work(channel.sink, data, sync=stopping or bool(channel.waiters))


def _commit(queue: _Queue, batch: Sequence[Work]) -> None:
    try:
        queue.commit(batch)
    except BaseException as error:
        # A defect of ours must not leave callers waiting for ever: they get it, and the thread goes on.
        for work in batch:
            work.error = StorageError(f"the log's writer failed unexpectedly: {error!r}; reopen the session")
            work.error.__cause__ = error


def _finish(queue: _Queue, channel: Channel, work: Work) -> None:
    channel.busy = False
    if work.error is None:
        channel.unsynced = not work.sync and (channel.unsynced or bool(work.data))
        if channel.unsynced:
            queue.unsynced[channel] = None
        else:
            queue.unsynced.pop(channel, None)
    else:
        channel.failed = True
        channel.unsynced = True
        if work.data:
            channel.pending.insert(0, work.data)
            channel.pending_bytes += len(work.data)

"""When an open session's checkpoint is written, and what a fold must offer to be saved in it."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, runtime_checkable

from lockstitch.schema.events import Event

from .checkpoint import Checkpoint, LogDigest
from .log_state import LogState

SAVE_AFTER_BYTES: Final = 256 * 1024
"""Of log behind the last checkpoint: less is read and folded in some milliseconds."""
SAVE_AFTER_SHARE: Final = 0.5
"""Of the size of the last checkpoint, likewise: so all of them together are at most three times the log, and
what an opening has to fold is bounded by what it has to restore."""


def due_after(size: int, after_bytes: int = SAVE_AFTER_BYTES) -> int:
    """How many bytes a log may grow behind a checkpoint of that size, before there is to be another."""
    return max(after_bytes, int(size * SAVE_AFTER_SHARE))


@runtime_checkable
class SavingFold(Protocol):
    """A fold whose state can be kept: ``open`` then need not fold again what it has folded before.

    Its owner gives it every event that is appended as well; while ``next_seq`` lags behind the log, nothing
    is saved.
    """

    version: str
    """What kind of state this is, and which code made it: other state is not given to ``restore``."""
    next_seq: int
    """One more than the number of the last event that it took; 0 before the first."""

    def __call__(self, event: Event) -> None: ...

    def save(self) -> Callable[[], bytes]:
        """Take the state as it is now, at little cost; what is returned encodes it, in another thread."""
        ...

    def restore(self, data: bytes | memoryview, next_seq: int) -> None:
        """Become what ``save`` was called on. Raises ValueError for what is no such state."""
        ...

    def reset(self) -> None:
        """Become as new, whatever a failed ``restore`` or events before it left."""
        ...


class Saver:
    """Knows the digest of everything that one open log has taken, and when to save what it amounts to.

    Used by the log's one thread; only the work that ``due`` returns is for another.
    """

    def __init__(
        self,
        fold: SavingFold,
        digest: LogDigest,
        write: Callable[[Checkpoint, str], int],
        *,
        after_bytes: int,
        saved: tuple[int, int] = (0, 0),
    ) -> None:
        """``saved``: how much of the log the last checkpoint covers, and its own size.

        ``write`` returns the size of what it wrote, and may raise OSError.
        """
        self._fold = fold
        self._digest = digest
        self._write = write
        self._after_bytes = after_bytes
        self._covered, self._size = saved
        self._lock = threading.Lock()
        self._underway = False
        self._ended = False

    def took(self, data: bytes) -> None:
        """The log has taken these lines. Whether they are written yet does not matter to a checkpoint."""
        self._digest.feed(data)

    def due(self, state: LogState) -> Callable[[], None] | None:
        """Save ``state`` and the fold's if enough was taken since the last time: the work for a thread."""
        length = self._digest.length
        if self._underway or length - self._covered < due_after(self._size, self._after_bytes):
            return None
        if state.defects or self._fold.next_seq != state.next_seq:
            return None
        self._covered = length  # also if it fails: the next try comes after as much again
        self._underway = True
        return partial(self._save, length, self._digest.value, state.snapshot(), self._fold.save())

    def end(self) -> None:
        """Wait for work that runs, and keep what has not begun from beginning."""
        with self._lock:
            self._ended = True

    def _save(self, length: int, digest: str, state: LogState, encode_fold: Callable[[], bytes]) -> None:
        with self._lock:
            try:
                if not self._ended:
                    self._size = self._written(Checkpoint(length, digest, state, encode_fold()))
            finally:
                self._underway = False

    def _written(self, checkpoint: Checkpoint) -> int:
        try:
            return self._write(checkpoint, self._fold.version)
        except OSError:
            # A full or failing disk costs the next opening some time, and nobody the turn or the close.
            return self._size

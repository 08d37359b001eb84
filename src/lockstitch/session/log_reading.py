"""Reading a whole log through a fold: from its checkpoint on where that fits, else from the beginning.

Every byte is read and checked either way. What lies before the checkpoint must be byte for byte what was once
scanned, judged and folded; what lies behind it is scanned, judged and folded now. Anything unusual in that
rest but a torn end (damage, a gap, a record that breaks the rules, a number from before) is left to a reading
of the whole, which alone sees all there is to judge it by.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .checkpoint import Checkpoint, LogDigest
from .checkpoint_file import read_checkpoint, write_checkpoint
from .file_calls import FileCalls
from .log_reader import Fold, FoldFailedError, LogReader
from .saving import Saver, SavingFold
from .scan import Damage


class LogBytes(NamedTuple):
    """A log that is to be read, as it is now."""

    size: int
    pieces: Callable[[int, int], Iterator[bytes]]
    """The bytes from one place to another, in pieces."""


class LogReading(NamedTuple):
    """A log that was read to its end."""

    reader: LogReader
    damage: list[Damage]
    """All of it, in order."""
    digest: LogDigest
    saved: tuple[int, int]
    """How much of the log its checkpoint covers, and the size of that; zeros if none was used."""


def read_whole(log: LogBytes, session_id: str, fold: Fold | None) -> LogReading:
    """Read a log from its beginning. Raises FoldFailedError."""
    reader, digest = LogReader(session_id, fold), LogDigest()
    return LogReading(reader, _feed(log.pieces(0, log.size), reader, digest), digest, (0, 0))


def read_behind_checkpoint(
    calls: FileCalls, directory: Path, log: LogBytes, session_id: str, fold: SavingFold
) -> LogReading | None:
    """The same from the session's checkpoint on; None if the whole has to be read, with ``fold`` as new."""
    found = read_checkpoint(calls, directory, fold.version, log.size)
    if found is None:
        return None
    checkpoint, file_size = found
    reading = read_behind(checkpoint, file_size, log, session_id, fold)
    if reading is None:
        fold.reset()
    return reading


def read_behind(
    checkpoint: Checkpoint, file_size: int, log: LogBytes, session_id: str, fold: SavingFold
) -> LogReading | None:
    """Read a log from ``checkpoint`` on; None if it does not fit, which leaves ``fold`` anyhow."""
    digest = LogDigest()
    for piece in log.pieces(0, checkpoint.length):
        digest.feed(piece)
    if digest.length != checkpoint.length or digest.value != checkpoint.digest:
        return None
    try:
        fold.restore(checkpoint.fold, checkpoint.state.next_seq)
    except ValueError:
        return None
    reader = LogReader(session_id, fold, state=checkpoint.state, offset=checkpoint.length)
    try:
        damage = _feed(log.pieces(checkpoint.length, log.size), reader, digest)
    except FoldFailedError:
        return None  # if the fold is at fault, it is so again with the whole log
    return LogReading(reader, damage, digest, (checkpoint.length, file_size)) if reader.is_sound else None


def saver_of(
    reading: LogReading, fold: Fold | None, calls: FileCalls, directory: Path, *, after_bytes: int
) -> Saver | None:
    """What saves checkpoints of a log that was read and is to be written on, once its torn end is cut off.

    None if the fold cannot be saved, or if a later opening could not go on from what it had saved.
    """
    reader, digest = reading.reader, reading.digest
    if not isinstance(fold, SavingFold) or not reader.is_sound:
        return None
    if digest.length != reader.scanner.end_offset or reader.scanner.unterminated:
        return None
    digest.cut()
    write = partial(write_checkpoint, calls, directory)
    return Saver(fold, digest, write, after_bytes=after_bytes, saved=reading.saved)


def _feed(pieces: Iterator[bytes], reader: LogReader, digest: LogDigest) -> list[Damage]:
    damage: list[Damage] = []
    for piece in pieces:
        damage += reader.feed(piece)
        digest.feed(piece)
    return damage + reader.end()

"""Files read whole and replaced in one step, keeping their mode, and only if nobody else changed them."""

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import Final

from .contract import ToolError
from .workspace import Place, refuse_special

EDIT_MAX_BYTES: Final = 32 * 1024 * 1024
_SERIAL = iter(range(2**63))


@dataclass(frozen=True, slots=True)
class Loaded:
    data: bytes
    mode: int
    """Permission bits."""
    stamp: tuple[int, int, int]
    """Inode, size and modification time when it was read."""


def load(place: Place, parent: int | None, *, missing_ok: bool) -> Loaded | None:
    """The file's bytes and what is needed to replace it; None if it is missing and may be.

    Raises ToolError if it is no regular file or too large, OSError as the system says.
    """
    name = _name(place, parent)
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if missing_ok:
            return None
        raise
    refuse_special(place, status)
    if status.st_size > EDIT_MAX_BYTES:
        raise ToolError(f"{place.shown} has {status.st_size:,} bytes; the limit is {EDIT_MAX_BYTES:,}.")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as file:
        data = file.read(EDIT_MAX_BYTES + 1)
        return Loaded(data, stat.S_IMODE(status.st_mode), _stamp(os.fstat(file.fileno())))


def save(place: Place, parent: int | None, data: bytes, *, expected: Loaded | None) -> None:
    """Puts a new file in the place of the old one, durable before it is visible.

    Raises ToolError if the file is not the one that was loaded any more. Hard links to the old file keep the
    old content; owner and mode are kept as far as the system permits.
    """
    temporary = f".lockstitch-{os.getpid()}-{next(_SERIAL)}.tmp"
    if parent is None:
        temporary = str(place.path.with_name(temporary))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, 0o666, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if expected is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), expected.mode)
            os.fsync(file.fileno())
        _refuse_changed(place, parent, expected)
        os.replace(temporary, _name(place, parent), src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):  # the first failure is the one to report
            os.unlink(temporary, dir_fd=parent)
        raise


def _refuse_changed(place: Place, parent: int | None, expected: Loaded | None) -> None:
    try:
        now = os.stat(_name(place, parent), dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if expected is None:
            return
        raise ToolError(
            f"{place.shown} was removed while it was being changed; nothing was written."
        ) from None
    if expected is None or _stamp(now) != expected.stamp:
        raise ToolError(
            f"{place.shown} was changed by someone else at the same time; nothing was written. Read it again."
        )


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _name(place: Place, parent: int | None) -> str:
    return place.name if parent is not None else str(place.path)

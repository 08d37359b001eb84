"""Which sessions a directory holds, and what is known of each without opening it."""

import os
from collections.abc import Iterator
from pathlib import Path

from lockstitch.schema.events import SessionStart
from lockstitch.wire.jsonl import BadRecordError, decode

from .file_calls import FileCalls, read_range
from .file_sink import LOG_NAME
from .names import session_id_of
from .reports import SessionInfo
from .scan import PIECE_BYTES

_HEAD_BYTES = 64 * 1024  # of a log, enough for its first record


def entry_names(root: Path) -> list[str]:
    """What may be sessions' directories, by one reading of ``root``. Raises OSError."""
    try:
        return [name for name in os.listdir(root) if name[0] != "."]  # noqa: PTH208  # half the time of iterdir
    except FileNotFoundError:
        return []


def session_names(root: Path) -> list[str]:
    """Names of the sessions' directories. Raises OSError."""
    return [name for name in entry_names(root) if (root / name).is_dir()]


def plain_info(root: Path, name: str) -> SessionInfo:
    """What the first record of a session's log says. Whatever is wrong with it stays with it."""
    directory = root / name
    session_id = session_id_of(name)
    try:
        status = (directory / LOG_NAME).stat()
        start, created_ms, problem = _first_record(_head(directory / LOG_NAME))
    except OSError as error:
        unread = f"its log cannot be read: {error.strerror or error}"
        return SessionInfo(id=session_id or name, path=str(directory), problem=unread)
    return SessionInfo(
        id=session_id or (start.id if start else name),
        path=str(directory),
        cwd=start.cwd if start else "",
        created_ms=created_ms,
        updated_ms=status.st_mtime_ns // 1_000_000,
        bytes=status.st_size,
        parent=start.parent if start else None,
        problem=problem,
    )


def log_from(calls: FileCalls, path: Path, offset: int) -> Iterator[bytes]:
    """The bytes of a log from an offset to its present end, in pieces. Raises OSError."""
    fd = calls.open(path, os.O_RDONLY)
    try:
        yield from read_range(calls, fd, offset, calls.size(fd), PIECE_BYTES)
    finally:
        calls.close(fd)


def _head(path: Path) -> bytes:
    calls = FileCalls()
    fd = calls.open(path, os.O_RDONLY)
    try:
        return calls.read(fd, _HEAD_BYTES, 0)
    finally:
        calls.close(fd)


def _first_record(head: bytes) -> tuple[SessionStart | None, int | None, str | None]:
    try:
        event = decode(head.split(b"\n", 1)[0])
    except BadRecordError as error:
        return None, None, f"its first record is damaged: {error}"
    if not isinstance(event.body, SessionStart):
        return None, event.time_ms, "its first record is missing"
    return event.body, event.time_ms, None

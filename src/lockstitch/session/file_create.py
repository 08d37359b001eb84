"""Making the directory of a session: whole and locked before it has its name."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import SessionBusyError

from .file_calls import FileCalls
from .lock import SessionLock, acquire

TEMPORARY_PREFIX: Final = ".new-"
"""Of a directory that is being made, or was when a process died; it is no session."""
UNFINISHED_S: Final = 60.0
"""Age from which such a directory whose lock nobody holds is one that was left behind."""


def create_directory(
    calls: FileCalls, directory: Path, session_id: str, fill: Callable[[Path], None]
) -> SessionLock | None:
    """Make a session's directory, filled by ``fill`` while it has another name, and durable on return.

    The lock of the new session is returned; None if the directory exists already, maybe since a moment ago.
    Raises OSError, and what ``fill`` raises; then nothing is left behind.
    """
    root = directory.parent
    calls.make_directory(root)
    temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=root))
    lock = None
    try:
        lock = acquire(temporary, session_id)
        fill(temporary)
        calls.sync_directory(temporary)
        calls.rename(temporary, directory)
        calls.sync_directory(root)
    except BaseException as error:
        if lock is not None:
            lock.close()
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and directory.is_dir():
            return None
        raise
    return lock


def remove_unfinished(root: Path) -> None:
    """Remove what processes that died left of directories they were making, which may be gigabytes."""
    for path in root.glob(f"{TEMPORARY_PREFIX}*"):
        try:
            if time.time() - path.stat().st_mtime < UNFINISHED_S:
                continue  # its maker may not have locked it yet
            lock = acquire(path, path.name)
        except (SessionBusyError, OSError):
            continue  # in use, or gone meanwhile
        shutil.rmtree(path, ignore_errors=True)
        lock.close()

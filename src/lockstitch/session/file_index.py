"""The index of a directory of sessions: kept up to date by who writes them, and by who lists them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from .file_calls import FileCalls
from .file_listing import entry_names, log_from, plain_info
from .file_sink import LOG_NAME
from .index import Facts, SessionIndex
from .listing import INDEX_NAME, list_sessions, refreshed, search_sessions
from .lock import owner
from .names import session_id_of
from .reports import Hits, Listing

CLOSE_READS_MAX_BYTES: Final = 1024 * 1024
"""Of a log for the index while a session closes; a longer reading is left to the next listing."""


class FileIndex:
    """All but ``search`` do what they can: an index that cannot be used costs speed, nothing else."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._index = SessionIndex(root / INDEX_NAME)

    def mark(self, name: str) -> None:
        """The session of that directory is about to be written."""
        try:
            self._index.mark(name)
        except (apsw.Error, OSError):
            return  # the index is made again, or is missed by nobody

    def catch_up(self, name: str) -> None:
        """The session of that directory was written and is free again."""
        try:
            known, source = self._index.known_of(name), FileSource(self._root, name)
            unread = source.state()[1] - (known.bytes if known is not None else 0)
            if unread <= CLOSE_READS_MAX_BYTES:
                refreshed(self._index, name, known, source)
        except (apsw.Error, OSError):
            return  # it stays marked, and the next listing reads it

    def forget(self, name: str) -> None:
        """Another log is in the place of that session's."""
        try:
            self._index.forget([name])
        except (apsw.Error, OSError):
            return

    def listing(self) -> Listing | None:
        """None if the index cannot be used."""
        present = dict.fromkeys(entry_names(self._root))
        try:
            return list_sessions(self._index, present, self._source) if present else []
        except (apsw.Error, OSError):
            return None

    def search(self, words: str, *, cwd: str | None, limit: int) -> Hits:
        """Raises StorageError."""
        present = dict.fromkeys(entry_names(self._root))
        if not present:
            return []
        return search_sessions(self._index, present, self._source, words=words, cwd=cwd, limit=limit)

    def close(self) -> None:
        self._index.close()

    def _source(self, name: str) -> "FileSource":
        return FileSource(self._root, name)


class FileSource:
    """See ``listing.Source``."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name

    def fresh(self) -> Facts:
        directory = self._root / self._name
        session_id = session_id_of(self._name)
        if session_id is None:  # a name that was shortened: its log says the id
            session_id = plain_info(self._root, self._name).id
        return Facts(session_id, str(directory))

    def exists(self) -> bool:
        return (self._root / self._name).is_dir()

    def state(self) -> tuple[str, int]:
        status = (self._root / self._name / LOG_NAME).stat()
        return str(status.st_ino), status.st_size

    def fingerprint(self) -> str:
        status = (self._root / self._name / LOG_NAME).stat()
        return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}"

    def read(self, offset: int) -> Iterator[bytes]:
        return log_from(FileCalls(), self._root / self._name / LOG_NAME, offset)

    def busy(self) -> bool:
        return owner(self._root / self._name) is not None

"""Which store a command or an agent works with: an option's, a variable's, or the usual directory."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import CallerError

from .home import sessions_root
from .store import SessionKeeper

STORE_VARIABLE: Final = "LOCKSTITCH_STORE"


def choose_store(spec: str | None, environ: Mapping[str, str]) -> SessionKeeper:
    """The store that ``spec`` names: ``files``, ``files:DIRECTORY``, ``sqlite:FILE``, ``memory``, or a path.

    A path is told by a separator before any colon, or by ``~`` or ``.`` at its beginning: a word alone may be
    a misspelled kind. None means the one in ``LOCKSTITCH_STORE``, and without it the directory of
    ``home.sessions_root``. Nothing is made or opened yet. Raises CallerError for a spec of no known form.
    """
    named = spec or environ.get(STORE_VARIABLE) or "files"
    if _is_path(named):
        from .file_store import FileStore

        return FileStore(Path(named).expanduser())
    kind, _, place = named.partition(":")
    match kind:
        case "files":
            from .file_store import FileStore

            return FileStore(Path(place).expanduser() if place else sessions_root(environ))
        case "sqlite" if place:
            from .sqlite_store import SqliteStore

            return SqliteStore(Path(place).expanduser())
        case "memory" if not place:
            from .memory_store import MemoryStore

            return MemoryStore()
        case _:
            raise CallerError(
                f"no store is called {named!r}: use files, files:DIRECTORY, sqlite:FILE or memory, or a path "
                "such as ./sessions"
            )


def _is_path(named: str) -> bool:
    if os.name == "nt" and named[1:3] in (":\\", ":/"):
        return True
    first = named.partition(":")[0]
    return named.startswith(("~", ".")) or any(sep in first for sep in (os.sep, os.altsep) if sep)

"""Which store a command or an agent works with: an option's, a variable's, or the usual directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lockstitch.schema.errors import CallerError

from .home import sessions_root
from .store import SessionKeeper

STORE_VARIABLE: Final = "LOCKSTITCH_STORE"


def choose_store(spec: str | None, environ: Mapping[str, str]) -> SessionKeeper:
    """The store that ``spec`` names: ``files``, ``files:DIRECTORY``, ``sqlite:FILE``, or ``memory``.

    None means the one in ``LOCKSTITCH_STORE``, and without it the directory of ``home.sessions_root``.
    Nothing is made or opened yet. Raises CallerError for a spec of no known form.
    """
    kind, _, place = (spec or environ.get(STORE_VARIABLE) or "files").partition(":")
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
                f"no store is called {spec!r}: use files, files:DIRECTORY, sqlite:FILE or memory"
            )

"""What an agent's sessions share while any of them is open: the store's writer and the HTTP connections."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from ..session.home import sessions_root
from ..session.store import SessionStore
from .driver import Models


class Shared:
    """Counts its users, and closes what it made itself when the last is gone. One event loop at a time."""

    def __init__(self, store: "SessionStore | Path | str | None", models: Models | None) -> None:
        self._given_store = store
        self._given_models = models
        self._store: SessionStore | None = None
        self._models: Models | None = None
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def take(self, environ: Mapping[str, str]) -> tuple[SessionStore, Models]:
        """The store and where model calls go, until ``give_back``."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to a loop. Those of a loop that has ended are gone with it.
            self._store, self._models, self._users, self._loop = None, None, 0, loop
        if self._store is None:
            self._store = _store(self._given_store, environ)
        if self._models is None:
            self._models = self._given_models or _runtime(environ)
        self._users += 1
        return self._store, self._models

    async def give_back(self) -> None:
        """One user fewer."""
        self._users -= 1
        if self._users > 0:
            return
        store, models = self._store, self._models
        self._store = self._models = None
        if models is not None and models is not self._given_models:
            await models.close()  # type: ignore[attr-defined]  # made by _runtime
        if store is not None and store is not self._given_store:
            await store.close()


def _runtime(environ: Mapping[str, str]) -> Models:
    from ..llm.runtime import ModelRuntime

    return ModelRuntime(environ=environ)


def _store(given: "SessionStore | Path | str | None", environ: Mapping[str, str]) -> SessionStore:
    from ..session.file_store import FileStore

    if given is None:
        return FileStore(sessions_root(environ))
    if isinstance(given, str | Path):
        return FileStore(Path(given))
    return given

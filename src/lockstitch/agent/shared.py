"""What an agent's sessions share while any of them is open: the store's writer, connections, MCP servers."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..session.choose import choose_store
from ..session.store import SessionStore
from .world import Models

if TYPE_CHECKING:
    from ..tools.mcp import McpServers, Server


class Taken(NamedTuple):
    """What a session works with."""

    store: SessionStore
    models: Models
    servers: "McpServers | None"


class Shared:
    """Counts its users, and closes what it made itself when the last is gone. One event loop at a time."""

    def __init__(
        self, store: "SessionStore | Path | str | None", models: Models | None, servers: "tuple[Server, ...]"
    ) -> None:
        self._given_store = store
        self._given_models = models
        self._server_specs = servers
        self._taken: Taken | None = None
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def take(self, environ: Mapping[str, str], workspace: Path) -> Taken:
        """Store, model calls and MCP servers, until ``give_back``. Servers start in the background."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to a loop. Those of a loop that has ended are gone with it.
            self._taken, self._users, self._loop = None, 0, loop
        if self._taken is None:
            store = _store(self._given_store, environ)
            self._taken = Taken(store, self._given_models or _runtime(environ), None)
            if self._server_specs:
                self._taken = self._taken._replace(servers=await _servers(self._server_specs, workspace))
        self._users += 1
        return self._taken

    async def give_back(self) -> None:
        """One user fewer."""
        self._users -= 1
        if self._users > 0 or self._taken is None:
            return
        store, models, servers = self._taken
        self._taken = None
        if servers is not None:
            await servers.close()
        if models is not self._given_models:
            await models.close()  # type: ignore[attr-defined]  # made by _runtime
        if store is not self._given_store:
            await store.close()


async def _servers(specs: "tuple[Server, ...]", workspace: Path) -> "McpServers":
    from ..tools.mcp import McpServers

    return await McpServers(specs, cwd=workspace).__aenter__()


def _runtime(environ: Mapping[str, str]) -> Models:
    from ..llm.runtime import ModelRuntime

    return ModelRuntime(environ=environ)


def _store(given: "SessionStore | Path | str | None", environ: Mapping[str, str]) -> SessionStore:
    if given is None or isinstance(given, str):
        return choose_store(given, environ)
    if isinstance(given, Path):
        from ..session.file_store import FileStore

        return FileStore(given)
    return given

"""What an agent's sessions share while any of them is open: the store's writer, connections, MCP servers."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Use:
    taken: Taken
    users: int = 0


class Shared:
    """Counts its users, and closes what it made itself when the last is gone.

    Connections belong to an event loop, so each loop has its own; several may run at once, in threads.
    """

    def __init__(
        self, store: "SessionStore | Path | str | None", models: Models | None, servers: "tuple[Server, ...]"
    ) -> None:
        self._given_store = store
        self._given_models = models
        self._server_specs = servers
        self._lock = threading.Lock()
        self._uses: dict[asyncio.AbstractEventLoop, _Use] = {}
        self._memory: SessionStore | None = None
        """A store that forgets what it holds when it goes lives as long as this."""

    async def take(self, environ: Mapping[str, str], workspace: Path) -> Taken:
        """Store, model calls and MCP servers, until ``give_back`` on the same loop.

        Servers start in the background. Raises CallerError, with nothing taken.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            # Of a loop that has ended before its sessions were closed nothing is left that could be closed.
            self._uses = {other: use for other, use in self._uses.items() if not other.is_closed()}
            use = self._uses.get(loop)
            if use is None:
                # Whole before anybody can see it: what is half made would be taken for all there is.
                use = _Use(self._made(environ, workspace))
                self._uses[loop] = use
            use.users += 1
        return use.taken

    async def give_back(self) -> None:
        """One user fewer."""
        loop = asyncio.get_running_loop()
        with self._lock:
            use = self._uses.get(loop)
            if use is None:
                return
            use.users -= 1
            if use.users > 0:
                return
            del self._uses[loop]
        store, models, servers = use.taken
        if servers is not None:
            await servers.close()
        if models is not self._given_models:
            await models.close()  # type: ignore[attr-defined]  # made by _runtime
        if store is not self._given_store and store is not self._memory:
            await store.close()

    def _made(self, environ: Mapping[str, str], workspace: Path) -> Taken:
        servers = _servers(self._server_specs, workspace) if self._server_specs else None
        store = self._memory or _store(self._given_store, environ)
        if _forgets(store) and store is not self._given_store:
            self._memory = store
        models = self._given_models or _runtime(environ)
        if servers is not None:
            servers.start()
        return Taken(store, models, servers)


def _servers(specs: "tuple[Server, ...]", workspace: Path) -> "McpServers":
    from ..tools.mcp import McpServers

    return McpServers(specs, cwd=workspace)


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


def _forgets(store: SessionStore) -> bool:
    from ..session.memory_store import MemoryStore

    return isinstance(store, MemoryStore)

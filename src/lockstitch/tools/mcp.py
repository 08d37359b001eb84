"""Tools of MCP servers, over standard input and output or streamable HTTP, by the official ``mcp`` package.

A server is never in the way: it connects in the background, and until it has, it simply has no tools. One
that fails, dies or hangs costs the calls that were made to it, each answered with an error, and is started
again at the next one. What it says about its tools is not trusted: names are put into a namespace,
descriptions cut, and tools with schemas that no provider would take are set aside (``Status.quarantined``).
Every one of its tools needs an approval, whatever the server says about itself.

The connection of each server lives in one task of its own from beginning to end, because the package's
contexts must be left by the task that entered them
(https://github.com/modelcontextprotocol/python-sdk/issues/577).
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from lockstitch.schema.errors import CallerError
from lockstitch.wire.strict_json import VALUES_MAX

from .contract import Tool, ToolContext, ToolError, ToolOutput
from .mcp_bodies import bound
from .mcp_sift import Sifting
from .mcp_tools import Quarantined, described, shown
from .process import supervised
from .text import clean

if TYPE_CHECKING:
    from mcp import Client

START_S: Final = 60.0
"""To connect and to list the tools; package runners download on their first start."""
CALL_S: Final = 600.0
"""Of one call, unless the server is configured otherwise."""
CLOSE_S: Final = 5.0
"""To end a server in order; then its connection is abandoned, and its process ends with the agent."""
RESTARTS_MAX: Final = 5
"""Of one server in its life; one that dies at every call is left alone."""
TOOLS_MAX: Final = 200
"""Of one server; a model could not choose among more."""
PAGES_MAX: Final = 50
REFRESH_PAUSE_S: Final = 1.0
"""From one list of tools to the next, for a server that says after each that it has changed."""
MESSAGE_MAX_BYTES: Final = 32 * 1024 * 1024
"""Of one message of a server, as of a line of a provider; it may hold some images. A process that writes
more, or more than a million objects and lists in one message, is ended; over HTTP its call fails."""
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,23}")


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started as a process, in the workspace unless ``cwd`` says otherwise."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the few variables every server gets (PATH, HOME and the like); secrets it needs go here."""
    cwd: Path | None = None
    call_s: float = CALL_S


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is spoken to over streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    call_s: float = CALL_S


Server: TypeAlias = StdioServer | HttpServer
State: TypeAlias = Literal["starting", "ready", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class Status:
    """How a server is, for people."""

    name: str
    state: State
    detail: str
    """Why it failed; else empty."""
    tools: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]


class McpServers:
    """The MCP servers of one agent: an async context manager that starts them all and waits for none."""

    def __init__(self, servers: Sequence[Server], *, cwd: Path) -> None:
        """Raises CallerError for bad or repeated names, and if the ``mcp`` package is not installed."""
        if servers and importlib.util.find_spec("mcp") is None:
            raise CallerError("MCP servers need the mcp package: pip install 'lockstitch[mcp]'")
        names = [server.name for server in servers]
        for name in names:
            if not _SERVER_NAME.fullmatch(name) or names.count(name) > 1:
                raise CallerError(
                    f"the MCP server name {name!r} is not usable: 1 to 24 of A-Z a-z 0-9 -, each name once"
                )
        self._links = [_Link(server, cwd) for server in servers]

    async def __aenter__(self) -> "McpServers":
        self.start()
        return self

    def start(self) -> None:
        """Start them all, in the running loop; ``close`` ends them."""
        # else Python prints what the package logs, foreign text and all, on the terminal of the agent
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        for link in self._links:
            link.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all servers, within CLOSE_S."""
        await asyncio.gather(*(link.close() for link in self._links))

    async def settled(self, timeout_s: float) -> None:
        """Waits until each server is ready or has failed, but not longer than that."""
        waits = [asyncio.ensure_future(link.settled.wait()) for link in self._links]
        if waits:
            await asyncio.wait(waits, timeout=timeout_s)
        for wait in waits:
            wait.cancel()

    def tools(self) -> list[Tool]:
        """The tools that are known now: in the order of the servers, each server's by name.

        Ask again before a turn: a server may have become ready, or have changed its tools. A server that died
        keeps its tools, so that the list, and with it a provider's prefix cache, does not change for that.
        """
        return [tool for link in self._links for tool in link.tools]

    def status(self) -> tuple[Status, ...]:
        return tuple(link.status() for link in self._links)


class _Link:
    """One server: the task that owns its connection, and the calls that borrow it."""

    def __init__(self, server: Server, cwd: Path) -> None:
        self.tools: tuple[Tool, ...] = ()
        self.settled = asyncio.Event()
        """Ready or failed since the last start."""
        self._server = server
        self._cwd = cwd
        self._quarantined: tuple[Quarantined, ...] = ()
        self._state: State = "starting"
        self._detail = ""
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._changed = asyncio.Event()
        self._starts = 0
        self._stderr: _Tail | None = None

    def start(self) -> None:
        self._state, self._detail = "starting", ""
        self._starts += 1
        self.settled, self._leave = asyncio.Event(), asyncio.Event()
        owner = self._own(self.settled, self._leave)
        self._owner = asyncio.create_task(owner, name=f"mcp {self._server.name}")

    async def close(self) -> None:
        self._state, self._client = "closed", None
        await self._end_owner()

    def status(self) -> Status:
        names = tuple(tool.name for tool in self.tools)
        return Status(self._server.name, self._state, self._detail, names, self._quarantined)

    # ---- the owner

    async def _own(self, settled: asyncio.Event, leave: asyncio.Event) -> None:
        """Connects, lists, and holds the connection until told to leave. Raises only CancelledError."""
        stderr = self._stderr = _Tail()
        try:
            with stderr:
                await self._hold(settled, leave, stderr)
        except Exception as error:  # whatever foreign code raises means: there is no server
            if asyncio.current_task() is self._owner and self._state != "closed":
                self._client, self._state = None, "failed"
                words = stderr.last_words()
                self._detail = f"{_told(error)}; its last words: {words}" if words else _told(error)
        finally:
            settled.set()

    async def _hold(self, settled: asyncio.Event, leave: asyncio.Event, stderr: "_Tail") -> None:
        from mcp import Client

        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(START_S):
                transport = Sifting(await self._transport(stack, stderr))
                client = await stack.enter_async_context(
                    Client(transport, message_handler=self._heard, cache=None)
                )
                await self._list(client, transport)
            if self._state == "closed":
                return
            self._client, self._state, self._detail = client, "ready", ""
            settled.set()
            await self._refresh_until(leave, client, transport)

    async def _transport(self, stack: contextlib.AsyncExitStack, stderr: "_Tail") -> Any:
        match self._server:
            case StdioServer(command=command, args=args, env=env, cwd=cwd):
                from mcp.client.stdio import StdioServerParameters, stdio_client

                program, *rest = supervised(
                    [command, *args], line_max_bytes=MESSAGE_MAX_BYTES, values_max=VALUES_MAX
                )
                parameters = StdioServerParameters(
                    command=program,
                    args=rest,
                    env=dict(env),
                    cwd=cwd or self._cwd,
                    encoding_error_handler="replace",
                )
                return stdio_client(parameters, errlog=stderr.file)
            case HttpServer(url=url, headers=headers):
                import httpx2
                from mcp.client.streamable_http import streamable_http_client

                # a server may hold a response open for as long as a call may take
                timeout = httpx2.Timeout(START_S, read=self._server.call_s)
                client = httpx2.AsyncClient(
                    headers=dict(headers), timeout=timeout, event_hooks={"response": [_bound]}
                )
                http = await stack.enter_async_context(client)
                return streamable_http_client(url, http_client=http)

    async def _list(self, client: "Client", transport: Sifting) -> None:
        listed: list[Any] = []
        transport.aside.clear()
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > TOOLS_MAX:
                break
        found, aside = described(listed, self._server.name, TOOLS_MAX)
        self._quarantined = (*transport.aside.values(), *aside)
        self.tools = tuple(
            Tool(spec, self._invoker(original), timeout_s=self._server.call_s + 5, needs="approval")
            for spec, original in found
        )

    async def _refresh_until(self, leave: asyncio.Event, client: "Client", transport: Sifting) -> None:
        leaving = asyncio.ensure_future(leave.wait())
        try:
            while not leave.is_set():
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({leaving, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if self._changed.is_set() and not leave.is_set():
                    self._changed.clear()
                    async with asyncio.timeout(START_S):
                        await self._list(client, transport)
                    await asyncio.wait({leaving}, timeout=REFRESH_PAUSE_S)
        finally:
            leaving.cancel()

    async def _heard(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._changed.set()

    # ---- calls

    def _invoker(self, original: "Any") -> Any:
        name, check = original

        async def invoke(arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
            check(arguments)
            return await self._call(name, arguments, context)

        return invoke

    async def _call(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        client = await self._connected()

        async def show(progress: float, total: float | None, message: str | None) -> None:
            of = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            context.progress(f"{of} {message or ''}".strip())

        try:
            result = await client.call_tool(
                name, dict(arguments), read_timeout_seconds=self._server.call_s, progress_callback=show
            )
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._lost(client)
                words = self._stderr.last_words() if self._stderr is not None else ""
                raise ToolError(
                    f"The MCP server {self._server.name} ended during the call; whether that had an effect is"
                    " not known." + (f" Its last words: {words}" if words else "")
                ) from error
            raise ToolError(f"The MCP server {self._server.name} refused: {error.message}") from error
        return shown(result)

    async def _connected(self) -> "Client":
        """The connection, made anew if it was lost. Raises ToolError if there is none."""
        if self._state == "failed" and self._starts <= RESTARTS_MAX:
            self.start()
        if self._state == "starting":
            await self.settled.wait()
        if self._client is None:
            why = self._detail or self._state
            raise ToolError(f"The MCP server {self._server.name} is not there ({why}). Go on without it.")
        return self._client

    def _lost(self, client: "Client") -> None:
        """The owner is let go but not waited for: the next start has its own."""
        if self._client is client:
            self._client, self._state, self._detail = None, "failed", "it ended"
            self._leave.set()

    async def _end_owner(self) -> None:
        """Lets the owner leave its contexts; one that does not manage is cancelled and left behind."""
        owner = self._owner
        if owner is None or owner.done():
            return
        self._leave.set()
        if self._state == "closed" and not self.settled.is_set():
            owner.cancel()  # it is still connecting and would not look
        await asyncio.wait({owner}, timeout=CLOSE_S)
        if not owner.done():
            owner.cancel()


class _Tail:
    """A file for a server's standard error, of which the end is kept."""

    KEPT: Final = 4_096

    def __init__(self) -> None:
        read, write = os.pipe()
        self.file = os.fdopen(write, "w")
        self._read = os.fdopen(read, "rb", buffering=0)
        self._kept = b""
        threading.Thread(target=self._drain, name="lockstitch-mcp-stderr", daemon=True).start()

    def __enter__(self) -> "_Tail":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def last_words(self) -> str:
        """Its last line so far; empty if there is none."""
        lines = clean(self._kept.decode("utf-8", "replace")).strip().split("\n")
        return lines[-1].strip()[:500]

    def _drain(self) -> None:
        with self._read:
            while data := self._read.read(self.KEPT):
                self._kept = (self._kept + data)[-self.KEPT :]


async def _bound(response: Any) -> None:
    await bound(response, MESSAGE_MAX_BYTES)


def _told(error: BaseException) -> str:
    """The innermost reason of an exception group, on one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"it was not ready within {START_S:g} s"
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""The mock gateway: a real HTTP server on loopback that plays a script, as badly as the script wants.

``async with Gateway(script) as gateway`` inside a loop; ``with running_gateway(script) as gateway`` from
plain code and pytest fixtures. The script's description, with every quirk, is docs/gateway.md.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from . import http1
from .player import GatewayError, Player
from .script import Source
from .sender import ClientLeftError, Sender
from .strict import Wording

__all__ = ["Gateway", "GatewayError", "running_gateway"]

HOST: Final = "127.0.0.1"
START_S: Final = 10.0
ACCEPT_TURNS: Final = 8
"""Of the loop, until a socket that it has accepted is a connection."""


class Gateway:
    """Plays ``script`` on a loopback port; an async context manager that leaves no task and no socket behind.

    ``strict``: the dialect whose invalid requests are refused with a 400, before an answer is used up.
    ``wording``: how a refusal reads; see docs/gateway.md. ``window``: tokens (four characters each) that a
    prompt may have; a longer one is refused as too long. ``port`` 0 takes a free one.
    Raises ScriptError or GatewayError, the latter also when the port is taken.
    """

    def __init__(
        self,
        script: Source,
        *,
        strict: str | None = None,
        wording: Wording = "provider",
        window: int | None = None,
        port: int = 0,
    ) -> None:
        self._player = Player(script, strict=strict, wording=wording, window=window)
        self._wanted_port = port
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.port = 0
        """Where it listens; 0 before it does."""

    @property
    def url(self) -> str:
        """The server's root, without a version path and without a slash at the end."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI-like client takes as its base URL."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was received so far, as ``GET /requests`` has it."""
        return self._player.requests

    @property
    def left(self) -> int:
        """Answers of the script that were not given yet."""
        return self._player.left

    async def __aenter__(self) -> Self:
        try:
            self._listener = socket.create_server((HOST, self._wanted_port))
        except (OSError, OverflowError) as error:
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            raise GatewayError(f"cannot listen on {HOST}:{self._wanted_port}: {reason}") from error
        self.port = self._listener.getsockname()[1]
        self._server = await asyncio.start_server(
            self._connected, sock=self._listener, limit=http1.MAX_HEAD_BYTES
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._stopping = True
        await self._stop_accepting()
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _stop_accepting(self) -> None:
        """A server that is closed with a socket half accepted loses that socket: first no more, then wait."""
        assert self._listener is not None
        with contextlib.suppress(NotImplementedError):  # a loop without readers, as on Windows
            asyncio.get_running_loop().remove_reader(self._listener)
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # asyncio does so only where a socket names its protocol, and those of `create_server` do not. Without
        # it each answer on a kept connection waits 40 ms for the client's delayed acknowledgement.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self._stopping:
                writer.transport.abort()
            else:
                await self._converse(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # the gateway stops: a connection held open must not delay it
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):  # it is closed either way
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender = Sender(reader, writer)
        keep = True
        while keep:
            try:
                request = await http1.read_request(reader, writer)
            except http1.BadRequestError as error:
                request = http1.HttpRequest("GET", "", "HTTP/1.1", [("connection", "close")])
                with contextlib.suppress(ClientLeftError):
                    await sender.send_document(request, error.status, {"error": {"message": str(error)}})
                return
            except ConnectionError:
                return  # reset between requests: nothing was asked
            if request is None:
                return
            keep = await self._answer(request, sender)

    async def _answer(self, request: http1.HttpRequest, sender: Sender) -> bool:
        path = request.target.partition("?")[0].rstrip("/")
        try:
            if request.method == "GET" and path == "/healthz":
                return await sender.send_document(request, 200, {"ok": True})
            if request.method == "GET" and path == "/requests":
                return await sender.send_document(request, 200, {"v": 1, "requests": self.requests})
            played = self._player.play(request)
            try:
                return await sender.send(request, played.status, played.body, played.answer)
            except ClientLeftError:
                played.entry["client_left"] = True
                return False
        except ClientLeftError:
            return False


@contextlib.contextmanager
def running_gateway(
    script: Source,
    *,
    strict: str | None = None,
    wording: Wording = "provider",
    window: int | None = None,
    port: int = 0,
) -> Iterator[Gateway]:
    """A Gateway on an event loop in a thread of its own, stopped when the block is left."""
    gateway = Gateway(script, strict=strict, wording=wording, window=window, port=port)
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready = threading.Event()
    failed: list[BaseException] = []

    async def serve() -> None:
        async with gateway:
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failed.append(error)  # raised in the caller's thread below
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=run, name="mock-gateway", daemon=True)
    thread.start()
    ready.wait(START_S)
    if failed:
        thread.join()
        raise failed[0]
    try:
        yield gateway
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself; `failed` says why
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    if failed:
        raise failed[0]

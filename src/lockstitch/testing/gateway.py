"""The mock gateway: a real HTTP server on loopback that plays a script, as badly as the script wants.

``async with Gateway(script) as gateway`` inside a loop; ``with running_gateway(script) as gateway`` from
plain code and pytest fixtures. The script's description, with every quirk, is docs/gateway.md.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

from ..schema.errors import CallerError
from . import delivery, http1, playback, routes, script
from .expectations import unmet
from .journal import Journal
from .prompt_cache import PromptCache
from .refusal import RefusedError
from .sender import ClientLeftError, Sender
from .strict import CHECKERS, WORDINGS, Wording, worded

HOST: Final = "127.0.0.1"
START_S: Final = 10.0


class GatewayError(CallerError):
    """The gateway cannot start; the text says why."""

    code = "GATEWAY"


class Gateway:
    """Plays ``script`` on a loopback port; an async context manager that leaves no task and no socket behind.

    ``strict``: the dialect whose invalid requests are refused with a 400, before an answer is used up.
    ``wording``: how a refusal reads; see docs/gateway.md. ``port`` 0 takes a free one.
    Raises ScriptError or GatewayError, the latter also when the port is taken.
    """

    def __init__(
        self,
        source: script.Source,
        *,
        strict: str | None = None,
        wording: Wording = "provider",
        port: int = 0,
    ) -> None:
        if wording not in WORDINGS:
            raise GatewayError(f'unknown wording "{wording}"; known: {", ".join(WORDINGS)}')
        if strict is not None and strict not in CHECKERS:
            raise GatewayError(f'no strict rules for "{strict}"; known: {", ".join(CHECKERS)}')
        self._script = script.load(source)
        self._strict = strict
        self._wording = wording
        self._wanted_port = port
        self._journal = Journal()
        self._cache = PromptCache()
        self._next = 0
        self._given = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
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
        return self._journal.entries()

    @property
    def left(self) -> int:
        """Answers of the script that were not given yet."""
        return max(0, len(self._script.answers) - self._next)

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._connected, HOST, self._wanted_port, limit=http1.MAX_HEAD_BYTES
            )
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise GatewayError(f"cannot listen on {HOST}:{self._wanted_port}: {reason}") from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
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
                return await sender.send_document(request, 200, {"format": 1, "requests": self.requests})
            entry = self._journal.add(request)
            try:
                return await self._play(request, path, entry, sender)
            except ClientLeftError:
                entry["client_left"] = True
                return False
        except ClientLeftError:
            return False

    async def _play(
        self, request: http1.HttpRequest, path: str, entry: dict[str, Any], sender: Sender
    ) -> bool:
        protocol = routes.protocol_of(path) if request.method == "POST" else None
        if protocol is None:
            known = ", ".join(f"POST …{end}" for end in routes.PATHS)
            error = {"message": f"{request.method} {path}: not served; known: {known}, GET /requests"}
            return await self._refuse(request, entry, sender, 404, {"error": error})
        try:
            body = json.loads(request.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, Mapping):
            error = {"message": "We could not parse the JSON body of your request."}
            return await self._refuse(request, entry, sender, 400, protocol.error(error, 400))
        if self._strict == protocol.dialect and (refusal := CHECKERS[self._strict](body, path)) is not None:
            entry["refused"] = {"rule": refusal.rule, "message": refusal.message}
            return await self._refuse_as(refusal, protocol, request, entry, sender)
        asked = routes.asked(protocol, request.target, body)
        position, answer = self._take()
        entry["answer"] = position
        if answer is None:
            message = f"the script has {len(self._script.answers)} answers, all given, and no `then`"
            return await self._refuse(
                request, entry, sender, 500, protocol.error({"message": f"gateway: {message}"}, 500)
            )
        if (missing := unmet(answer.expect, request)) is not None:
            message = f"gateway: the request is not as answers[{position}] expects: {missing}"
            return await self._refuse(request, entry, sender, 500, protocol.error({"message": message}, 500))
        status = playback.status_of(answer)
        entry["status"] = status
        share = self._cache.count(protocol.dialect, asked.model, body) if status == 200 else None
        if share is not None:
            entry["cache"] = share.journaled()
        return await sender.send(request, status, playback.body_of(answer, asked, self._given, share), answer)

    async def _refuse(
        self, request: http1.HttpRequest, entry: dict[str, Any], sender: Sender, status: int, value: Any
    ) -> bool:
        entry["status"] = status
        entry["note"] = value["error"]["message"]
        return await sender.send_document(request, status, value)

    async def _refuse_as(
        self,
        refusal: RefusedError,
        protocol: routes.Protocol,
        request: http1.HttpRequest,
        entry: dict[str, Any],
        sender: Sender,
    ) -> bool:
        said = worded(refusal, self._wording)
        if said.error is not None:
            return await self._refuse(
                request, entry, sender, said.status, protocol.error(said.error, said.status)
            )
        entry["status"] = said.status
        empty = delivery.Body([], delivery.JSON, streamed=False)
        return await sender.send(request, said.status, empty, script.Answer())

    def _take(self) -> tuple[int | None, script.Answer | None]:
        """The next answer and its position in the script (None: it is ``then``)."""
        position = self._next
        self._given += 1
        if position < len(self._script.answers):
            self._next += 1
            return position, self._script.answers[position]
        return None, self._script.then


@contextlib.contextmanager
def running_gateway(
    source: script.Source, *, strict: str | None = None, wording: Wording = "provider", port: int = 0
) -> Iterator[Gateway]:
    """A Gateway on an event loop in a thread of its own, stopped when the block is left."""
    gateway = Gateway(source, strict=strict, wording=wording, port=port)
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

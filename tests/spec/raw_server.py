"""A server that misbehaves in bytes: each connection is handed to a script of writes, waits and endings."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from lockstitch.llm.credentials import Secret
from lockstitch.llm.endpoint import Endpoint
from lockstitch.llm.runtime import ModelRuntime, ModelStream
from lockstitch.providers.catalog import profile
from lockstitch.providers.wire_request import WireRequest
from lockstitch.schema.chunks import Chunk

KEY = "sk-live-9f8e7d6c5b4a/+=&%"
WIRE = WireRequest(dialect="openai-chat", path="/chat/completions", body={"model": "m", "stream": True})
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req-7\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"


def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def text(words: str) -> bytes:
    return event({"content": words})


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = text("Hello") + text(" you") + event({}, "stop") + USAGE + DONE


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def refusal(status: int, body: bytes, **headers: str) -> bytes:
    head = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status} Refused\r\n{lines}\r\n".encode() + body


class Peer:
    """One connection of the server, after its request was read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.request = b""
        self.gone = asyncio.Event()
        """The client closed the connection."""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        try:
            await self.writer.drain()
        except ConnectionError:
            self.gone.set()

    def reset(self) -> None:
        """Close with RST: what a crashed server or a middlebox does."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()

    async def watch(self) -> None:
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self.gone.set()


Script = Callable[[Peer], Awaitable[None]]


class RawServer:
    def __init__(self, script: Script) -> None:
        self._script = script
        self.peers: list[Peer] = []
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        watching: asyncio.Task[None] | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(
                (
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            peer.request = head + await reader.readexactly(size)
            watching = asyncio.create_task(peer.watch())
            await self._script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            peer.gone.set()
        finally:
            writer.close()
            if watching is not None:
                await watching


@asynccontextmanager
async def serving(script: Script | bytes):
    """A server that answers every request by ``script``, or with these bytes and an orderly close."""

    async def plain(peer: Peer) -> None:
        assert isinstance(script, bytes)
        await peer.send(script)

    server = RawServer(plain if isinstance(script, bytes) else script)
    listening = await asyncio.start_server(server._serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    async with listening:
        yield server
        listening.close()


def endpoint(url: str, name: str = "generic") -> Endpoint:
    return Endpoint(profile=profile(name), model="m", base_url=url, key=Secret(KEY))


async def collect(stream: ModelStream) -> list[Chunk]:
    async with stream as chunks:
        return [chunk async for chunk in chunks]


async def answered(script: Script | bytes, *, input_estimate: int = 50, **limits: Any) -> ModelStream:
    """The stream of one call to a server with this script, read to its end."""
    async with serving(script) as server, ModelRuntime(**limits) as runtime:
        stream = runtime.stream(endpoint(server.url), WIRE, input_estimate=input_estimate)
        chunks = await collect(stream)
        assert chunks[-1] == stream.result.finish
        return stream

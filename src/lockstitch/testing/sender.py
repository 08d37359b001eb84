"""Sends one answer as its script wants it: in time, in pieces, cut or held open."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Final

from . import delivery, playback
from .http1 import HttpRequest, chunk, head_of_response
from .script import Answer

WRITE_BYTES: Final = 64 << 10
TICK_S: Final = 0.02
"""How soon a wait notices that the client has left."""


class ClientLeftError(Exception):
    """The client closed the connection before the answer was complete."""


class Sender:
    """One connection's way out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._chunked = False

    async def send(self, request: HttpRequest, status: int, body: delivery.Body, answer: Answer) -> bool:
        """Send the answer; False if the connection must be closed behind it. Raises ClientLeftError."""
        old = request.version == "HTTP/1.0"
        self._chunked = body.streamed and not old
        cutting = playback.cut_size(body, answer) is not None
        keep = request.keep_alive and not (old or cutting or answer.hang)
        if answer.delay_ms and not answer.keepalive_ms:
            await self._wait(answer.delay_ms / 1000)
        await self._write(head_of_response(status, self._headers(body, answer, keep=keep)))
        if answer.delay_ms and answer.keepalive_ms:
            await self._wait(answer.delay_ms / 1000, answer)
        async for data in self._pieces(body, answer):
            await self._write(chunk(data) if self._chunked else data)
        if answer.hang:
            await self._wait(answer.hang, answer)
        if cutting and "clean_cut" not in answer.quirk_set:
            if "reset" in answer.quirk_set:
                self._reset()
            return False
        if self._chunked:
            await self._write(chunk(b""))
        return keep

    async def send_document(self, request: HttpRequest, status: int, value: object) -> bool:
        """Send JSON with nothing scripted about it."""
        return await self.send(request, status, delivery.document(value), Answer())

    def _headers(self, body: delivery.Body, answer: Answer, *, keep: bool) -> list[tuple[str, str]]:
        given = {name.lower() for name in answer.headers}
        made = [("Content-Type", answer.content_type or body.content_type), *body.headers.items()]
        if self._chunked:
            made.append(("Transfer-Encoding", "chunked"))
        elif not body.streamed and "clean_cut" not in answer.quirk_set:
            made.append(("Content-Length", str(sum(map(len, body.parts)))))
        made.append(("Connection", "keep-alive" if keep else "close"))
        return [pair for pair in made if pair[0].lower() not in given] + list(answer.headers.items())

    async def _pieces(self, body: delivery.Body, answer: Answer) -> AsyncIterator[bytes]:
        """The body as the client's reads will see it, as far as it is sent at all."""
        for i, part in enumerate(playback.parts_of(body, answer)):
            if i and answer.event_delay_ms:
                await self._wait(answer.event_delay_ms / 1000, answer)
            step = answer.split or WRITE_BYTES
            for at in range(0, len(part), step):
                yield part[at : at + step]

    async def _write(self, data: bytes) -> None:
        if self._gone():
            raise ClientLeftError
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientLeftError from error

    async def _wait(self, seconds: float, answer: Answer | None = None) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        end = now + seconds
        comment_every = answer.keepalive_ms / 1000 if answer else 0.0
        next_comment = now + comment_every
        while (now := loop.time()) < end:
            if self._gone():
                raise ClientLeftError
            if answer and comment_every and now >= next_comment:
                comment = delivery.keepalive(answer.quirk_set)
                await self._write(chunk(comment) if self._chunked else comment)
                next_comment += comment_every
            await asyncio.sleep(min(TICK_S, end - now, comment_every or TICK_S))

    def _gone(self) -> bool:
        return self._writer.is_closing() or self._reader.at_eof()

    def _reset(self) -> None:
        """Close with a reset: what is not yet delivered is lost, as when a proxy dies."""
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

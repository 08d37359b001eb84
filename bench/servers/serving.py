"""A small HTTP/1.1 server for benchmarks: loopback only, bounded, and gone when whoever started it is."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

LIFETIME_S = 3600
"""A server ends by itself after this long, whatever happened to its parent."""
REQUEST_MAX = 64 << 20
"""Bytes of one request body."""

Answer = Callable[[str, bytes, asyncio.StreamWriter], Awaitable[bool]]
"""Takes the path and the body of a request, writes a whole response, says whether to keep the connection."""


def run(answer: Answer) -> None:
    """Serves on a free port of 127.0.0.1, prints that port, ends when stdin closes or after LIFETIME_S."""
    asyncio.run(_serve(answer))


async def _serve(answer: Answer) -> None:
    ended = asyncio.Event()

    def parent_spoke() -> None:
        if not os.read(0, 4096):
            ended.set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) and await answer(*request, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or this server is to end while it is answering
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=REQUEST_MAX)
    print(server.sockets[0].getsockname()[1], flush=True)
    asyncio.get_running_loop().add_reader(0, parent_spoke)
    try:
        await asyncio.wait_for(ended.wait(), LIFETIME_S)
    except TimeoutError:
        print("bench server: lifetime is over", file=sys.stderr)
    server.close()


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    """Path and body; None at an orderly end or for a request that is not ours to understand."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    length = 0
    for field in fields:
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    parts = first.split(b" ")
    if len(parts) != 3 or length > REQUEST_MAX:
        return None
    return parts[1].decode("latin-1"), await reader.readexactly(length)

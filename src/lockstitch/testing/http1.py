"""As much HTTP/1.1 as a mock gateway needs, on plain streams: servers that can misbehave byte by byte.

No HTTP library is used here on purpose: they refuse to send what a broken gateway sends.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

MAX_HEAD_BYTES: Final = 64 << 10
MAX_BODY_BYTES: Final = 128 << 20


class BadRequestError(Exception):
    """What came is not a request this server can answer; the connection is of no further use."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class HttpRequest:
    method: str
    target: str
    """Path and query as sent."""
    version: str
    headers: list[tuple[str, str]]
    """In order, names as sent."""
    body: bytes = b""

    def header(self, name: str) -> str:
        """The last value of ``name``; empty if it was not sent."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name), "")

    @property
    def keep_alive(self) -> bool:
        tokens = self.header("connection").lower()
        return "keep-alive" in tokens if self.version == "HTTP/1.0" else "close" not in tokens


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest | None:
    """The next request of a connection; None where the client has ended it. Raises BadRequestError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequestError(400, "the request ends within its headers") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequestError(431, f"headers larger than {MAX_HEAD_BYTES} bytes") from error
    request = _head(head)
    if request.header("expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        request.body = await _body(request, reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BadRequestError(400, "the request ends within its body") from error
    return request


def head_of_response(status: int, headers: list[tuple[str, str]]) -> bytes:
    """Status line and headers, ready to be sent."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty ``data`` ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(head: bytes) -> HttpRequest:
    first, *rest = head.decode("latin-1").lstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequestError(400, f"not an HTTP/1.1 request line: {first[:80]!r}")
    headers: list[tuple[str, str]] = []
    for line in filter(None, rest):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise BadRequestError(400, f"not a header: {line[:80]!r}")
        headers.append((name.strip(), value.strip()))
    return HttpRequest(parts[0], parts[1], parts[2], headers)


async def _body(request: HttpRequest, reader: asyncio.StreamReader) -> bytes:
    if "chunked" in request.header("transfer-encoding").lower():
        return await _chunked(reader)
    length = request.header("content-length") or "0"
    if not length.isascii() or not length.isdigit():
        raise BadRequestError(400, f"not a content length: {length[:40]!r}")
    if int(length) > MAX_BODY_BYTES:
        raise BadRequestError(413, f"body larger than {MAX_BODY_BYTES >> 20} MiB")
    return await reader.readexactly(int(length))


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError as error:
            raise BadRequestError(400, f"not a chunk size: {line[:40]!r}") from error
        total += size
        if size < 0 or total > MAX_BODY_BYTES:
            raise BadRequestError(413, f"body larger than {MAX_BODY_BYTES >> 20} MiB")
        if size == 0:
            while (await reader.readuntil(b"\r\n")) != b"\r\n":
                pass
            return b"".join(parts)
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)

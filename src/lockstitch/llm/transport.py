"""HTTP for model calls: one client session, answers as raw bytes, nothing retried and nothing redirected.

The client library is imported on first use; ``import lockstitch`` stays light. Bodies come compressed or
not as they are (the decoder tells gzip by its first bytes), cookies are not kept, and a redirect is an
answer like any other, so that a key never follows it to another host.
"""

import asyncio
import io
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .. import __version__
from .proxies import proxy_for

if TYPE_CHECKING:
    import aiohttp

READ_BUFFER_BYTES: Final = 64 * 1024
"""Per stream; beyond twice as much the server is made to wait. With 256 KiB an event cost a seventh more:
what a read becomes then no longer fits a cache."""
ERROR_BODY_BYTES: Final = 1024 * 1024
"""As much of an error's body is read."""
LARGE_BODY_BYTES: Final = 256 * 1024
"""From here on a request is written in pieces, so that other streams go on meanwhile (and the client does not
warn, which it does from 1 MiB)."""
CONNECTIONS: Final = 4096
"""At once, over all hosts. Waiting for a free one counts as connecting: too few fail streams by time-out."""
KEEPALIVE_S: Final = 30.0
"""Idle connections are kept so long; a step of an agent seldom thinks longer, and servers close them soon
after."""
LINGER_S: Final = 1.0
"""After the protocol's own end the last bytes of the body get so long, or the connection is given up."""


class Answer:
    """The head of one response, and its body as reads."""

    __slots__ = ("_lingering", "_response", "headers", "status")

    def __init__(self, response: "aiohttp.ClientResponse", lingering: "set[aiohttp.ClientResponse]") -> None:
        self._response = response
        self._lingering = lingering
        self.status: int = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        """Names in lower case; of repeated ones the last."""

    def buffered(self) -> bytes:
        """Bytes that have arrived and were not read yet, also those before an error; empty if there are
        none."""
        # The client's own reads raise a connection's error before they hand out what had arrived, and so
        # would lose the end of every answer whose server closes without the last chunk. A test pins these
        # names.
        content = self._response.content
        return content._read_nowait(-1) if getattr(content, "_buffer", None) else b""

    def ended(self) -> bool:
        return self._response.content.is_eof()

    async def read(self) -> bytes:
        """At least one byte, or none at the end of the body. Raises what the client raises."""
        return await self._response.content.readany()

    def close(self) -> None:
        """Drop the connection, whatever is in flight; a pending read ends with an error."""
        self._lingering.discard(self._response)
        self._response.close()

    def linger(self) -> None:
        """Keep the connection for the next request if the body's end arrives soon, else drop it."""
        if self._response.closed or self._response.content.exception() is not None:
            self.close()
        else:
            self._lingering.add(self._response)
            asyncio.get_running_loop().call_later(LINGER_S, self.close)


class Transport:
    """One client session. Belongs to the event loop that first used it."""

    def __init__(self, *, connect_s: float) -> None:
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None
        self._lingering: set[aiohttp.ClientResponse] = set()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send one request and wait for the head of its answer. Raises what the client raises."""
        proxy = proxy_for(url)
        response = await self._open().post(
            url,
            data=body if len(body) < LARGE_BODY_BYTES else io.BytesIO(body),
            headers={**_HEADERS, **headers},
            allow_redirects=False,
            proxy=proxy.url if proxy else None,
            proxy_headers=proxy.headers if proxy else None,
        )
        return Answer(response, self._lingering)

    async def close(self) -> None:
        """Close every connection."""
        while self._lingering:
            self._lingering.pop().close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> "aiohttp.ClientSession":
        if self._session is None or self._session.closed:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEPALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=READ_BUFFER_BYTES,
                # the runtime's own watchdog bounds everything behind the connection
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_s),
            )
        return self._session


_HEADERS: Final[Mapping[str, str]] = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",  # compressing a stream makes gateways hold back what is small
    "User-Agent": f"lockstitch/{__version__}",
}


def inflated(body: bytes) -> bytes:
    """An error body as plain bytes, at most ERROR_BODY_BYTES: gateways compress it without being asked."""
    if body[:2] != b"\x1f\x8b":
        return body[:ERROR_BODY_BYTES]
    try:
        return zlib.decompressobj(wbits=31).decompress(body, ERROR_BODY_BYTES)
    except zlib.error:  # cut or no gzip after all: classified by its status
        return b""

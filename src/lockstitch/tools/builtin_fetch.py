"""``fetch``: one page over HTTP, bounded in size, time and redirects, never from inside the user's network.

The address is checked after the name was resolved, and the connection goes to the address that was checked,
so that a name which resolves differently the second time (DNS rebinding) gains nothing. Redirects are
followed by hand, each checked like the first, and only within one host: another host is another decision, and
its address is returned. Behind a proxy the proxy resolves, and what it reaches is its decision.
"""

import asyncio
import base64
import codecs
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

from lockstitch.schema.blocks import Base64Source, Image, Text

from .contract import Tool, ToolContext, ToolError, ToolOutput
from .functions import tool
from .page_text import page_text
from .public_addresses import Reach, reachable
from .worker import in_thread

if TYPE_CHECKING:
    import aiohttp

BODY_MAX_BYTES: Final = 5 * 1024 * 1024
"""Of one page, unpacked; what comes after is not read."""
IMAGE_MAX_BYTES: Final = 3_750_000
REDIRECTS_MAX: Final = 5
TOTAL_S: Final = 60.0
CONNECT_S: Final = 10.0
_URL_MAX: Final = 8_192
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:]+(?:[0-9.]+)?")
_OF_PAGES: Final = re.compile(r"utf-(8|16|32)|ascii|iso8859|cp\d|koi8|mac-|gb|big5|euc|shift|iso2022|hz|tis")
"""Python's names of the encodings that browsers know. It has others; punycode takes hours for 5 MiB.
Source: https://developer.mozilla.org/en-US/docs/Web/API/Encoding_API/Encodings (read 2026-12-01)."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {
    "User-Agent": "lockstitch (+https://pypi.org/project/lockstitch/)",
    "Accept": "text/html, text/plain, text/markdown, application/json;q=0.9, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_TEXT_TYPES: Final = (
    "json",
    "xml",
    "javascript",
    "yaml",
    "toml",
    "x-sh",
    "sql",
    "csv",
    "x-www-form-urlencoded",
)


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    status: int
    media_type: str
    charset: str
    body: bytes
    cut: bool


def fetch_tool(allowed: Sequence[str] = ()) -> Tool:
    """The tool. ``allowed`` names hosts, addresses and networks it may reach although they are not public.

    Raises CallerError for an entry that is none of these.
    """
    reach = Reach.of(allowed)

    async def fetch(
        url: Annotated[str, "Address of the page, with http:// or https://."], *, context: ToolContext
    ) -> ToolOutput:
        """Fetch one page from the web and return its text. HTML is reduced to headings, text and links.

        Only public addresses can be fetched. A redirect to another host is not followed but returned.
        """
        try:
            async with asyncio.timeout(TOTAL_S):
                page = await _get(url, reach, context.environ)
                return await in_thread(lambda: _output(page), name="fetch")
        except TimeoutError as error:
            raise ToolError(f"{url} did not answer completely within {TOTAL_S:g} s.") from error

    return tool(name="fetch", needs="approval", parallel=True, timeout_s=TOTAL_S + 5)(fetch)


async def _get(url: str, reach: Reach, environ: Mapping[str, str]) -> _Page:
    import aiohttp

    first = _parsed(url)
    current = first
    for _ in range(REDIRECTS_MAX + 1):
        addresses = await _checked(current, reach, environ)
        try:
            async with _client(addresses) as client:
                answer = await _answer(client, current, environ)
        except aiohttp.ClientError as error:
            raise ToolError(
                f"{current.geturl()} could not be fetched: {type(error).__name__}: {error}"
            ) from error
        if isinstance(answer, _Page):
            return answer
        target = _parsed(answer, base=current.geturl())
        if target.hostname != first.hostname or (current.scheme == "https" and target.scheme == "http"):
            raise ToolError(
                f"{url} redirects to {target.geturl()}, on another host or without encryption. Fetch that"
                " address if it is what you want."
            )
        current = target
    raise ToolError(f"{url} redirects more than {REDIRECTS_MAX} times.")


def _parsed(url: str, *, base: str = "") -> SplitResult:
    try:
        parts = urlsplit(urljoin(base, url.strip()))
        port = parts.port
    except ValueError as error:
        raise ToolError(f"The address {url[:200]!r} cannot be read: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or len(url) > _URL_MAX:
        raise ToolError(f"The address {url[:200]!r} is not a complete http:// or https:// address.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("Addresses with a user name or password in them are not fetched.")
    host = _plain_host(parts.hostname)
    netloc = host if port is None else f"{host}:{port}"
    return parts._replace(netloc=netloc, fragment="")


def _plain_host(host: str) -> str:
    """The host in characters that every parser reads alike: the one checked is the one connected to."""
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise ToolError(f"The host {host[:100]!r} cannot be read: {error}.") from error
    if ":" in host and _IPV6.fullmatch(host):
        return f"[{host}]"
    if not _HOST.fullmatch(host):
        raise ToolError(f"The host {host[:100]!r} has characters that no host has.")
    return host


async def _checked(url: SplitResult, reach: Reach, environ: Mapping[str, str]) -> list[str]:
    """The addresses to connect to; none where a proxy will find them."""
    assert url.hostname is not None  # _parsed has seen to it
    port = url.port or (443 if url.scheme == "https" else 80)
    behind_proxy = _proxy(url, environ) is not None
    try:
        addresses = await reachable(url.hostname, port, reach)
    except ToolError as error:
        if behind_proxy and isinstance(error.__cause__, OSError):
            return []  # names of the outside need not resolve on the inside
        raise
    return [] if behind_proxy else addresses


def _client(addresses: list[str]) -> "aiohttp.ClientSession":
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Pinned(AbstractResolver):
        """Answers with the addresses that were checked, whatever the name resolves to by now."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST,
                )
                for address in addresses
            ]

        async def close(self) -> None:
            return None

    connector = aiohttp.TCPConnector(
        resolver=Pinned() if addresses else None, use_dns_cache=False, force_close=True
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S),
    )


async def _answer(
    client: "aiohttp.ClientSession", url: SplitResult, environ: Mapping[str, str]
) -> "_Page | str":
    """The page, or where it has moved to."""
    proxy = _proxy(url, environ)
    async with client.get(url.geturl(), allow_redirects=False, proxy=proxy) as response:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            return location
        body = bytearray()
        async for data in response.content.iter_chunked(65_536):
            body += data
            if len(body) > BODY_MAX_BYTES:
                break
        return _Page(
            url=url.geturl(),
            status=response.status,
            media_type=response.content_type.lower(),
            charset=response.charset or "utf-8",
            body=bytes(body[:BODY_MAX_BYTES]),
            cut=len(body) > BODY_MAX_BYTES,
        )


def _proxy(url: SplitResult, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for the address, as curl and others read it."""
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in environ.items()
        if value and name.lower().endswith("_proxy")
    }
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if proxy is None or proxy_bypass_environment(url.hostname or "", proxies):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _output(page: _Page) -> ToolOutput:
    failed = page.status >= 400
    meta: dict[str, Any] = {"url": page.url, "status": page.status, "bytes": len(page.body)}
    head = f"{page.url} answered {page.status}, {page.media_type}"
    if page.media_type.startswith("image/") and not failed:
        if page.cut or len(page.body) > IMAGE_MAX_BYTES:
            raise ToolError(f"{page.url} is an image of more than {IMAGE_MAX_BYTES:,} bytes.")
        image = Image(page.media_type, Base64Source(base64.b64encode(page.body).decode()))
        return ToolOutput((Text(head), image), meta=meta)
    if not _is_text(page):
        raise ToolError(f"{head}: that is not text, and {len(page.body):,} bytes of it cannot be shown.")
    text = page.body.decode(_encoding(page.charset), "replace")
    if page.media_type in ("text/html", "application/xhtml+xml"):
        text = page_text(text)
    rest = f"\n[only the first {BODY_MAX_BYTES:,} bytes were read]" if page.cut else ""
    return ToolOutput((Text(f"{head}\n\n{text}{rest}"),), is_error=failed, meta=meta)


def _encoding(charset: str) -> str:
    """Python's name of an encoding that pages have; UTF-8 for every other."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _OF_PAGES.match(name) else "utf-8"


def _is_text(page: _Page) -> bool:
    if page.media_type.startswith("text/") or any(name in page.media_type for name in _TEXT_TYPES):
        return True
    return page.media_type in ("", "application/octet-stream") and b"\0" not in page.body[:8192]

"""Failures of the network as values: every exception of the HTTP client is translated here, once."""

import asyncio
import ssl
from typing import Final

import aiohttp

from ..schema.failures import Failure, FailureCode, failure

Rule = tuple[type[BaseException], FailureCode, str, str]

RULES: Final[tuple[Rule, ...]] = (
    (
        aiohttp.ConnectionTimeoutError,
        "TIMEOUT",
        "connect",
        "no connection in time; check address and network",
    ),
    (aiohttp.ServerTimeoutError, "TIMEOUT", "idle", "the server was silent too long; send the request again"),
    (asyncio.TimeoutError, "TIMEOUT", "idle", "the server was silent too long; send the request again"),
    (aiohttp.ClientHttpProxyError, "TRANSPORT", "proxy", "the proxy refused; check the proxy variables"),
    (
        aiohttp.ClientProxyConnectionError,
        "TRANSPORT",
        "proxy",
        "no connection to the proxy; check its address",
    ),
    (
        aiohttp.ClientConnectorDNSError,
        "TRANSPORT",
        "dns",
        "the host name does not resolve; check the base URL",
    ),
    (
        aiohttp.ClientConnectorCertificateError,
        "TRANSPORT",
        "tls",
        "the server's certificate was refused; check the host name, or the certificates of a proxy between",
    ),
    (aiohttp.ClientSSLError, "TRANSPORT", "tls", "no secure connection; check whether the port speaks TLS"),
    (ssl.SSLError, "TRANSPORT", "tls", "the secure connection broke; send the request again"),
    (aiohttp.ClientConnectorError, "TRANSPORT", "connect", "no connection; check that the server runs there"),
    (aiohttp.InvalidURL, "TRANSPORT", "url", "the address cannot be used; check the base URL"),
    (aiohttp.ServerDisconnectedError, "TRANSPORT", "disconnected", "closed without an answer; send it again"),
    (aiohttp.ClientPayloadError, "STREAM_CLOSED", "cut", "the answer was cut; send the request again"),
    (
        aiohttp.ClientResponseError,
        "TRANSPORT",
        "malformed_http",
        "the answer is not HTTP; check the base URL",
    ),
    (aiohttp.ClientConnectionError, "TRANSPORT", "reset", "the connection broke; send the request again"),
    (aiohttp.ClientError, "TRANSPORT", "http", "the HTTP exchange failed; send the request again"),
    (OSError, "TRANSPORT", "os", "the connection failed; send the request again"),
)
"""The first class that fits decides, so narrower ones stand above wider ones."""


def translate(error: BaseException, where: str) -> Failure:
    """The failure behind an exception of the transport; ``where`` names the host, never a key."""
    detail = _detail(error)
    for kind, code, subkind, advice in RULES:
        if isinstance(error, kind):
            if code == "STREAM_CLOSED" and _malformed(error):
                return failure(
                    "TRANSPORT",
                    f"{where}: bad HTTP framing ({detail}); send it again",
                    subkind="malformed_http",
                )
            return failure(code, f"{where}: {advice.replace(';', f' ({detail});', 1)}", subkind=subkind)
    # a bug in the client or in us must not end the caller's turn as an exception
    return failure("TRANSPORT", f"{where}: {detail}; send the request again", subkind="unexpected")


def _malformed(error: BaseException) -> bool:
    """Whether the framing itself was wrong, rather than cut off."""
    return "not enough data" not in f"{error} {error.__cause__}".lower()


def _detail(error: BaseException) -> str:
    """Class and text in one line. The operating system's own words where there are any."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(error)
    line = " ".join(text.split())[:300]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__

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

UNEXPECTED: Final[Rule] = (
    Exception,
    "TRANSPORT",
    "unexpected",
    "the HTTP client failed; send the request again",
)
"""A bug in the client or in us: not even that may end the caller's turn as an exception."""
RESET: Final[Rule] = (
    aiohttp.ClientPayloadError,
    "TRANSPORT",
    "reset",
    "the connection was reset in the middle of an answer; send the request again",
)
BAD_FRAMING: Final[Rule] = (
    aiohttp.ClientPayloadError,
    "TRANSPORT",
    "malformed_http",
    "bad HTTP framing; send the request again",
)


def translate(error: BaseException, where: str) -> Failure:
    """The failure behind an exception of the transport; ``where`` names provider and host, never a key."""
    _, code, subkind, advice = _rule(error)
    what, _, next_step = advice.partition("; ")
    return failure(code, f"{where}: {what} ({_detail(error)}); {next_step}", subkind=subkind)


def _rule(error: BaseException) -> Rule:
    found = next((rule for rule in RULES if isinstance(error, rule[0])), UNEXPECTED)
    if found[2] != "cut":
        return found
    # the client has one class for an early end, a reset and bad framing
    text = f"{error} {error.__cause__}".lower()
    if "reset" in text:
        return RESET
    return found if "not enough data" in text else BAD_FRAMING


def _detail(error: BaseException) -> str:
    """The class and, where there are some, the operating system's own words."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = str(error) if type(error).__module__.partition(".")[0] != "aiohttp" else ""
    if isinstance(error, aiohttp.ClientResponseError):
        text = (
            f"{error.status} {error.message}"
            if isinstance(error, aiohttp.ClientHttpProxyError)
            else error.message
        )
    if isinstance(inner, OSError) and inner.strerror:
        text = inner.strerror
    line = " ".join(text.split())[:200]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__

"""Which proxy a request goes through, from the usual environment variables.

Done here because the HTTP client's own reading of the environment also reads ``.netrc``, and refuses every
request that has an Authorization header if it finds an entry for the host or a default one
(https://github.com/aio-libs/aiohttp/pull/7131, https://github.com/pimutils/vdirsyncer/issues/1138; read
2026-11-30).
"""

import base64
import ipaddress
import urllib.request
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit


class Proxy(NamedTuple):
    url: str
    """Without credentials."""
    headers: dict[str, str]
    """Proxy-Authorization, if the variable held user and password."""


def proxy_for(url: str) -> Proxy | None:
    """The proxy for this address by ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, or None.

    Loopback is never proxied: a model server on this machine is meant to be reached directly.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_loopback(host):
        return None
    known = urllib.request.getproxies()
    found = known.get(parts.scheme) or known.get("all")
    if not found or urllib.request.proxy_bypass(parts.netloc):
        return None
    proxy = urlsplit(found if "//" in found else f"http://{found}")
    if proxy.username is None:
        return Proxy(urlunsplit(proxy), {})
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    bare = proxy._replace(netloc=proxy.netloc.rpartition("@")[2])
    return Proxy(urlunsplit(bare), {"Proxy-Authorization": "Basic " + base64.b64encode(login).decode()})


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False

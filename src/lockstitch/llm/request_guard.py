"""The switch that forbids real requests: for test suites that must never reach a provider, nor its bill."""

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final
from urllib.parse import urlsplit

from ..schema.errors import LockstitchError

VARIABLE: Final = "LOCKSTITCH_NO_REQUESTS"
"""Set to anything but ``0`` or nothing, it forbids real requests in the whole process."""

_forbidden = 0


class RealRequestError(LockstitchError):
    """A model call was about to leave this machine although that is forbidden; nothing was sent."""

    code: ClassVar[str] = "REAL_REQUEST"


@contextmanager
def no_real_requests() -> Iterator[None]:
    """Within the block a model call to anything but this machine raises RealRequestError. May be nested."""
    global _forbidden  # noqa: PLW0603  # one switch for the process is the point
    _forbidden += 1
    try:
        yield
    finally:
        _forbidden -= 1


def check(url: str) -> None:
    """Raises RealRequestError if requests to ``url`` are forbidden now."""
    if not _forbidden and os.environ.get(VARIABLE, "0") in ("", "0"):
        return
    host = urlsplit(url).hostname or ""
    if not _is_loopback(host):
        raise RealRequestError(
            f"a model call to {host} was stopped: real requests are forbidden here; use ScriptedModel, a "
            f"Cassette or the mock gateway, or unset {VARIABLE}"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

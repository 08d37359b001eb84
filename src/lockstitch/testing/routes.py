"""The protocols a gateway speaks: their paths, what their requests ask for, and who renders their answers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import chat_wire
from .reply import Reply


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol as the gateway needs it."""

    dialect: str
    named_events: bool
    """An ``event:`` line goes before the data."""
    events: Callable[[Reply], list[Any]]
    document: Callable[[Reply], Any]
    error: Callable[[Mapping[str, Any], int], Any]
    default_error: Mapping[str, Any]
    """The error of ``error_in_stream`` where the script names none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request asks for."""

    protocol: Protocol
    stream: bool
    usage: bool
    model: str


CHAT: Final = Protocol(
    dialect="openai-chat",
    named_events=False,
    events=chat_wire.events,
    document=chat_wire.document,
    error=chat_wire.error,
    default_error={
        "message": "The server had an error while processing your request. Sorry about that!",
        "type": "server_error",
        "code": "internal_error",
    },
)

PATHS: Final = ("POST /v1/chat/completions", "GET /requests", "GET /healthz")


def protocol_of(path: str) -> Protocol | None:
    """The protocol served at ``path``, which may lack its version."""
    if path.rstrip("/").endswith("/chat/completions"):
        return CHAT
    return None


def asked(protocol: Protocol, path: str, body: Mapping[str, Any]) -> Asked:
    """What the request with this JSON body asks for."""
    options = body.get("stream_options")
    return Asked(
        protocol=protocol,
        stream=body.get("stream") is True,
        usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        model=str(body.get("model") or "scripted"),
    )


def tokens(chars: int) -> int:
    """A count that is the same on every run: four characters a token."""
    return math.ceil(chars / 4)

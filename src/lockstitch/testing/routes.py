"""The protocols a gateway speaks: their paths, what their requests ask for, and who renders their answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import anthropic_wire, chat_wire, gemini_wire, responses_wire
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
    """The body of a refusal."""
    stream_error: Callable[[Mapping[str, Any], int], Any]
    default_error: Mapping[str, Any]
    """The error of ``error_in_stream`` where the script names none."""
    id_prefix: str | None = "call_"
    """Of calls without an id in the script; None: they have none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request asks for."""

    protocol: Protocol
    stream: bool
    usage: bool
    model: str
    as_array: bool = False
    """Gemini without ``alt=sse``: the stream is one JSON array."""


_SERVER_ERROR: Final = {
    "message": "The server had an error while processing your request. Sorry about that!",
    "type": "server_error",
    "code": "internal_error",
}
CHAT: Final = Protocol(
    dialect="openai-chat",
    named_events=False,
    events=chat_wire.events,
    document=chat_wire.document,
    error=chat_wire.error,
    stream_error=chat_wire.error,
    default_error=_SERVER_ERROR,
)
ANTHROPIC: Final = Protocol(
    dialect="anthropic-messages",
    named_events=True,
    events=anthropic_wire.events,
    document=anthropic_wire.document,
    error=anthropic_wire.error,
    stream_error=anthropic_wire.error,
    default_error={"type": "overloaded_error", "message": "Overloaded"},
    id_prefix="toolu_",
)
RESPONSES: Final = Protocol(
    dialect="openai-responses",
    named_events=True,
    events=responses_wire.events,
    document=responses_wire.document,
    error=responses_wire.error,
    stream_error=responses_wire.stream_error,
    default_error={"code": "server_error", "message": _SERVER_ERROR["message"]},
)
GEMINI: Final = Protocol(
    dialect="gemini",
    named_events=False,
    events=gemini_wire.events,
    document=gemini_wire.document,
    error=gemini_wire.error,
    stream_error=gemini_wire.error,
    default_error={
        "code": 503,
        "message": "The model is overloaded. Please try again later.",
        "status": "UNAVAILABLE",
    },
    id_prefix=None,
)

PATHS: Final[Mapping[str, Protocol]] = {
    "/chat/completions": CHAT,
    "/messages": ANTHROPIC,
    "/responses": RESPONSES,
    ":streamGenerateContent": GEMINI,
    ":generateContent": GEMINI,
}
"""How the path of a request ends, whatever stands before it."""


def protocol_of(path: str) -> Protocol | None:
    """The protocol served at ``path``, which has no query."""
    return next((protocol for end, protocol in PATHS.items() if path.endswith(end)), None)


def asked(protocol: Protocol, target: str, body: Mapping[str, Any]) -> Asked:
    """What the request to this path and query, with this JSON body, asks for."""
    path, _, query = target.partition("?")
    if protocol is GEMINI:
        model, _, verb = path.rpartition("/")[2].partition(":")
        stream = verb.startswith("stream")
        return Asked(protocol, stream, True, model or "scripted", stream and "alt=sse" not in query)
    options = body.get("stream_options")
    wants_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    return Asked(
        protocol=protocol,
        stream=body.get("stream") is True,
        usage=wants_usage or protocol is not CHAT,
        model=str(body.get("model") or "scripted"),
    )

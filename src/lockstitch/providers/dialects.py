"""Which modules translate which dialect. Protocol modules are imported when they are first used."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..schema.errors import CallerError
from ..schema.messages import Request
from ..schema.notes import Violation
from ..schema.profiles import Profile
from .translator import Mint, Translator
from .wire_request import WireRequest

if TYPE_CHECKING:
    from .request_writer import RequestWriter


class Dialect(NamedTuple):
    """Where a protocol's functions are, as ``module:name`` in this package."""

    stream: str
    request: str
    rules: str
    writer: str = "whole_writer:WholeWriter"


DIALECTS: Final[Mapping[str, Dialect]] = {
    "openai-chat": Dialect(
        stream="openai_chat_stream:OpenAiChatStream",
        request="openai_chat_request:encode",
        rules="openai_chat_rules:violations",
        writer="openai_chat_writer:ChatWriter",
    ),
    "anthropic-messages": Dialect(
        stream="anthropic_stream:AnthropicStream",
        request="anthropic_request:encode",
        rules="anthropic_rules:violations",
        writer="anthropic_writer:AnthropicWriter",
    ),
    "openai-responses": Dialect(
        stream="responses_stream:ResponsesStream",
        request="responses_request:encode",
        rules="responses_rules:violations",
        writer="responses_writer:ResponsesWriter",
    ),
    "gemini": Dialect(
        stream="gemini_stream:GeminiStream",
        request="gemini_request:encode",
        rules="gemini_rules:violations",
        writer="gemini_writer:GeminiWriter",
    ),
}


def translator(
    dialect: str, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None
) -> Translator:
    """A stream translator for one response; ``tools`` are the names offered in the request."""
    make: Callable[..., Translator] = _load(dialect, "stream")
    return make(profile, tools, mint)


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request in the format of the profile's protocol."""
    encoder: Callable[[Request, Profile], WireRequest] = _load(profile.protocol, "request")
    return encoder(request, profile)


def violations(body: Mapping[str, Any], dialect: str, profile: Profile) -> list[Violation]:
    """Rules of the protocol that a request body breaks, in the order of the body."""
    check: Callable[[Mapping[str, Any], Profile], list[Violation]] = _load(dialect, "rules")
    return check(body, profile)


def writer(profile: Profile) -> "RequestWriter":
    """A writer for the requests of one session, which costs only what is new in each."""
    make: Callable[[Profile], RequestWriter] = _load(profile.protocol, "writer")
    return make(profile)


def _load(dialect: str, role: str) -> Any:
    known = DIALECTS.get(dialect)
    if known is None:
        raise CallerError(f"unknown dialect {dialect!r}; known: {', '.join(DIALECTS)}")
    module, _, name = getattr(known, role).partition(":")
    try:
        return getattr(importlib.import_module(f".{module}", __package__), name)
    except ModuleNotFoundError as error:
        raise CallerError(f"dialect {dialect!r} cannot do this yet: {error}") from error

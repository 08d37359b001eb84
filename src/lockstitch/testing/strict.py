"""Refusals of a strict gateway: which checker belongs to a dialect, and how a refusal may read.

The checkers are a second reading of the providers' rules, for tests only: they share no code with the package
``providers``, so that a mistake in its rules is met by a refusal here. Like the providers, a checker reports
the first thing it meets and stops.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from . import strict_anthropic, strict_chat, strict_gemini, strict_responses
from .refusal import RefusedError

Wording: TypeAlias = Literal["provider", "opaque", "bodyless", "server-error"]

WORDINGS: Final[Mapping[Wording, str]] = {
    "provider": "status and text as the provider has them",
    "opaque": "a 400 in words that name nothing",
    "bodyless": "a 400 without a body",
    "server-error": "a 500 in words that name nothing, as gateways do that fail to pass the reason on",
}

OPAQUE: Final = {"message": "Request declined (ref 7f3a).", "type": "upstream_error", "code": "E1047"}
SERVER_ERROR: Final = {"message": "Internal Server Error", "type": "server_error", "code": None}

Checker: TypeAlias = Callable[[Mapping[str, Any], str], RefusedError | None]
"""Body and path of a request to the reason why it is refused, None if it is not."""

CHECKERS: Final[Mapping[str, Checker]] = {
    "openai-chat": strict_chat.check,
    "anthropic-messages": strict_anthropic.check,
    "openai-responses": strict_responses.check,
    "gemini": strict_gemini.check,
}


@dataclass(frozen=True, slots=True)
class Worded:
    """A refusal ready to be sent; ``error`` None: without a body."""

    status: int
    error: Mapping[str, Any] | None
    """What the protocol's error object is made from."""


def worded(refusal: RefusedError, wording: Wording) -> Worded:
    """``refusal`` as the gateway was told to put it."""
    if wording == "opaque":
        return Worded(400, OPAQUE)
    if wording == "bodyless":
        return Worded(400, None)
    if wording == "server-error":
        return Worded(500, SERVER_ERROR)
    return Worded(refusal.status, refusal.error)

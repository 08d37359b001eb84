"""The context window of a mock model: longer requests are refused in the words of their provider."""

from collections.abc import Mapping
from typing import Any, Final

from .prompt_cache import CHARS_PER_TOKEN, segments
from .refusal import RefusedError

MESSAGES: Final[Mapping[str, str]] = {
    "openai-chat": "This model's maximum context length is {window} tokens. However, your messages resulted "
    "in {tokens} tokens. Please reduce the length of the messages.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and "
    "try again.",
    "anthropic-messages": "prompt is too long: {tokens} tokens > {window} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
}
"""As the providers word it; the second names no number, which some do not."""

_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai-chat": {"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"},
    "openai-responses": {
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    },
    "anthropic-messages": {"type": "invalid_request_error"},
    "gemini": {"status": "INVALID_ARGUMENT"},
}


def prompt_tokens(dialect: str, body: Mapping[str, Any]) -> int:
    """Tokens of a request's prompt: four characters each, as all usage that the gateway makes up."""
    return -(-sum(len(part.text) for part in segments(dialect, body)) // CHARS_PER_TOKEN)


def overflow(dialect: str, body: Mapping[str, Any], window: int) -> RefusedError | None:
    """The refusal of a request with more than ``window`` tokens; None if it fits."""
    tokens = prompt_tokens(dialect, body)
    if tokens <= window:
        return None
    message = MESSAGES[dialect].format(window=window, tokens=tokens)
    return RefusedError("context_window", message, fields=_FIELDS[dialect])

"""An answer in another protocol than was asked for: told by names that only that protocol has.

People choose a protocol by the model's prefix and a server by its base URL, and many servers speak several
protocols at addresses that are much alike. Such an answer is no better the next time, so it is not retried.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..schema.failures import Failure, failure
from .catalog import DEFAULT_PROFILES

_ANTHROPIC: Final = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)


def protocol_of(value: Mapping[str, Any], event: str = "") -> str | None:
    """The protocol whose event, or whole answer, an object certainly is; None if it may be anything."""
    kind = value.get("type") or event
    name = kind if isinstance(kind, str) else ""
    object_name = value.get("object")
    if name in _ANTHROPIC or (name == "message" and "stop_reason" in value):
        return "anthropic-messages"
    if name.startswith("response.") or object_name == "response":
        return "openai-responses"
    if object_name in ("chat.completion.chunk", "chat.completion") and "choices" in value:
        return "openai-chat"
    if isinstance(value.get("candidates"), list) and ("usageMetadata" in value or "modelVersion" in value):
        return "gemini"
    return None


def not_read(asked: str, spoken: str | None) -> Failure:
    """A JSON answer that is none of the protocol that was asked for."""
    if spoken is not None and spoken != asked:
        return wrong_protocol(asked, spoken)
    return failure("NOT_AN_API", f"the answer is JSON but nothing of {asked}; check the base URL")


def wrong_protocol(asked: str, spoken: str) -> Failure:
    """The address answers, but not in the protocol that was asked for."""
    return failure(
        "NOT_AN_API",
        f"the address speaks {spoken}, not {asked}; name the model as {DEFAULT_PROFILES[spoken]}:MODEL, or "
        "correct the base URL",
        subkind="wrong_protocol",
    )

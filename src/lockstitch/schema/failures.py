"""Failures of a model call as values: a stable code to route on, and text for people."""

from typing import Final, Literal, TypeAlias

import msgspec

FailureCode: TypeAlias = Literal[
    "EMPTY_RESPONSE",
    "MALFORMED_TOOL_CALL",
    "MALFORMED_RESPONSE",
    "STREAM_CLOSED",
    "RATE_LIMIT",
    "OVERLOADED",
    "SERVER",
    "TIMEOUT",
    "TRANSPORT",
    "CONTEXT_WINDOW_EXCEEDED",
    "REQUEST_TOO_LARGE",
    "UNSUPPORTED_CONTENT",
    "OUTPUT_LIMIT",
    "INVALID_STRUCTURE",
    "INVALID_TOOL_SCHEMA",
    "INVALID_REQUEST",
    "AUTH",
    "QUOTA",
    "MODEL_NOT_FOUND",
    "CONTENT_FILTER",
    "NOT_AN_API",
    "MISSING_CREDENTIAL",
    "ABORTED",
    "UNKNOWN",
]

Recovery: TypeAlias = Literal[
    "none", "retry", "compact", "ladder", "drop_media", "drop_tool", "lower_max_tokens"
]

RETRYABLE: Final[frozenset[FailureCode]] = frozenset(
    {
        "EMPTY_RESPONSE",
        "MALFORMED_TOOL_CALL",
        "MALFORMED_RESPONSE",
        "STREAM_CLOSED",
        "RATE_LIMIT",
        "OVERLOADED",
        "SERVER",
        "TIMEOUT",
        "TRANSPORT",
    }
)
"""The default retryable set; a policy may narrow or widen it."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a model call failed. Route on ``code``; everything else is for people and retry policy."""

    code: FailureCode
    message: str
    """One line: what happened, where, and what to do next. Key values are masked."""
    retryable: bool
    status: int | None = None
    """HTTP status; None if the failure did not come with one."""
    retry_after_s: float | None = None
    """What the provider asked for, in seconds from its answer."""
    request_id: str | None = None
    provider_code: str | None = None
    """The provider's own code or type, verbatim."""
    provider_message: str | None = None
    """The provider's own text, verbatim but masked and cut to 2,000 characters."""
    subkind: str | None = None
    """A finer cause for reports, e.g. ``clean_eof`` for STREAM_CLOSED."""


def failure(code: FailureCode, message: str, **details: object) -> Failure:
    """A Failure whose ``retryable`` is the code's default; ``details`` are Failure's other fields."""
    fields: dict[str, object] = {"code": code, "message": message, "retryable": code in RETRYABLE, **details}
    return msgspec.convert(fields, Failure)

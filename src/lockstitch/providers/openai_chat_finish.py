"""Finish labels of openai-chat and its dialects."""

from typing import Final

from ..schema.failures import Failure, FailureCode, failure
from .response import Reason

_REASONS: Final[dict[str, Reason]] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "completed": "stop",
    "finished": "stop",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
}
"""Labels in lower case; ``model_length`` is Mistral's, the ``eos`` ones are of text generation servers."""

_FAILURES: Final[dict[str, tuple[FailureCode, str]]] = {
    "content_filter": (
        "CONTENT_FILTER",
        "the provider's content filter ended the answer; change the request",
    ),
    "sensitive": ("CONTENT_FILTER", "the provider's content filter ended the answer; change the request"),
    "safety": ("CONTENT_FILTER", "the provider's content filter ended the answer; change the request"),
    "recitation": ("CONTENT_FILTER", "the provider's recitation filter ended the answer; change the request"),
    "prohibited_content": (
        "CONTENT_FILTER",
        "the provider's content filter ended the answer; change the request",
    ),
    "blocklist": ("CONTENT_FILTER", "the provider's content filter ended the answer; change the request"),
    "spii": ("CONTENT_FILTER", "the provider's content filter ended the answer; change the request"),
    "model_context_window_exceeded": (
        "CONTEXT_WINDOW_EXCEEDED",
        "the conversation no longer fits the model's window; compact it",
    ),
    "malformed_function_call": (
        "MALFORMED_TOOL_CALL",
        "the model wrote a tool call that cannot be read; try again",
    ),
    "unexpected_tool_call": ("MALFORMED_TOOL_CALL", "the model called a tool it was not offered; try again"),
    "insufficient_system_resource": ("OVERLOADED", "the provider ran out of resources; try again later"),
    "error": ("SERVER", "the provider ended the answer with an error it did not explain; try again"),
    "network_error": ("SERVER", "the provider lost its own backend; try again"),
    "abort": ("SERVER", "the provider aborted the answer; try again"),
    "aborted": ("SERVER", "the provider aborted the answer; try again"),
}
"""``sensitive`` and ``network_error`` are Zhipu's, ``insufficient_system_resource`` DeepSeek's, ``abort``
vLLM's and
SGLang's, ``error`` OpenRouter's; the gemini words come through its chat endpoint."""


def reason_of(label: str) -> Reason | Failure | None:
    """What a finish label means; None if it is not known (then it is an end like ``stop``)."""
    whole = label.strip().lower()
    name, _, cause = whole.partition(":")  # Google's chat endpoint writes a filter's name before the cause
    for word in (whole, cause.strip(), name):
        if word in _FAILURES:
            code, text = _FAILURES[word]
            return failure(code, text, provider_code=label)
    return _REASONS.get(whole)


def says_nothing(label: str) -> bool:
    """Labels of gateways that fill the field in every chunk."""
    return label.strip().lower() in ("", "null", "none")

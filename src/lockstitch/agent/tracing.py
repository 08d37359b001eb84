"""Spans by OpenTelemetry's conventions for generative AI, where the program traces at all.

Nothing is imported for it: spans are made only in a program that has loaded ``opentelemetry.trace`` itself.
Names and attributes are those of the conventions' development version; contents (prompts, arguments,
results) are never recorded. A turn is ``invoke_agent``, an attempt ``chat``, a tool run ``execute_tool``.

Source: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md,
gen-ai-agent-spans.md and execute-tool.md beside it (read 2026-11-30).
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from ..schema.usage import Usage
from ..tools.run import Ran
from .effects import EndTurn


class Spanned(Protocol):
    """What the runtime does to a span."""

    def set(self, attributes: Mapping[str, Any]) -> None: ...

    def failed(self, kind: str, message: str = "") -> None: ...


class _NoSpan:
    def set(self, attributes: Mapping[str, Any]) -> None:
        pass

    def failed(self, kind: str, message: str = "") -> None:
        pass


class _Span:
    """An OpenTelemetry span."""

    def __init__(self, span: Any, api: Any) -> None:
        self._span = span
        self._api = api

    def set(self, attributes: Mapping[str, Any]) -> None:
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def failed(self, kind: str, message: str = "") -> None:
        self.set({"error.type": kind})
        self._span.set_status(self._api.Status(self._api.StatusCode.ERROR, message or None))


_NONE = _NoSpan()


@contextmanager
def turn(session_id: str, provider: str, model: str) -> Iterator[Spanned]:
    """One turn of an agent in this process."""
    attributes = _common("invoke_agent", session_id, provider, model)
    with _span("invoke_agent", "INTERNAL", attributes) as span:
        yield span


@contextmanager
def attempt(session_id: str, provider: str, model: str) -> Iterator[Spanned]:
    """One model call."""
    attributes = {**_common("chat", session_id, provider, model), "gen_ai.request.stream": True}
    with _span(f"chat {model}", "CLIENT", attributes) as span:
        yield span


@contextmanager
def tool(session_id: str, name: str, call_id: str) -> Iterator[Spanned]:
    """One run of a tool."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": session_id,
    }
    with _span(f"execute_tool {name}", "INTERNAL", attributes) as span:
        yield span


def usage_attributes(usage: Usage | None) -> dict[str, Any]:
    """Token counts; the conventions count cached tokens within the input."""
    if usage is None:
        return {}
    prompt = usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return {
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def end_of_turn(span: Spanned, ending: EndTurn | None) -> None:
    """How the turn ended; everything but a completed one is an error of that name."""
    if ending is None:
        span.failed("interrupted")
    elif ending.reason != "completed":
        span.failed(ending.reason)


def end_of_tool(span: Spanned, ran: Ran) -> None:
    """A tool's own failure counts as one."""
    if ran.is_error:
        span.failed(ran.outcome)


def _common(operation: str, session_id: str, provider: str, model: str) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.conversation.id": session_id,
    }


@contextmanager
def _span(name: str, kind: Literal["INTERNAL", "CLIENT"], attributes: Mapping[str, Any]) -> Iterator[Spanned]:
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        yield _NONE
        return
    tracer = api.get_tracer("lockstitch")
    with tracer.start_as_current_span(
        name, kind=api.SpanKind[kind], attributes=attributes, record_exception=False
    ) as span:
        yield _Span(span, api)

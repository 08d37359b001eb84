"""Messages of a history, and a request to a model in no provider's format."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from .blocks import Block

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of a history. Any role may hold any block: the projection puts them where they belong."""

    role: Role
    content: tuple[Block, ...]
    seq: int | None = None
    """Sequence number of the event it came from; None outside a log."""
    answers: tuple[int, int] | None = None
    """For a tool result of a log: (seq of the assistant message, position of the call among its calls)."""
    requests: int | None = None
    """How many requests the log had begun before this message; None outside a log. Where two messages differ,
    a request was sent between them, and what it held must not change any more."""
    provider: str | None = None
    """Profile that generated an assistant message; decides whether reasoning and replay data go back."""
    model: str | None = None
    extra: Mapping[str, Any] | None = None
    """Fields of the wire message that have no place here (a speaker's name), given back as they came."""


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as the model is told about it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sampling and limits. None: the profile's or the provider's default."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str | None = None
    """``auto``, ``none``, ``required``, or the name of one tool."""
    reasoning_effort: str | None = None
    """``off``, ``low``, ``medium``, ``high``; what a provider lacks is left out with a note."""
    response_schema: Mapping[str, Any] | None = None
    """JSON Schema for structured output, where the protocol has it."""
    extra: Mapping[str, Any] | None = None
    """Fields put into the request body as they are."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One model call, projected but not yet encoded for a protocol."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    options: Options = Options()

"""Requests of the ``openai-chat`` protocol (``POST /chat/completions``), for every profile that speaks it.

The encoder is total and mends nothing: what has no place in this protocol is written for the validator to
name. Options that a profile lists as unsupported are left out with a note, because a refused option would
cost a whole turn.

Source: openai-python 3.57.0 (openai/types/chat/completion_create_params.py), and per profile what
``catalog.toml`` names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from ..schema.blocks import (
    Base64Source,
    BlobSource,
    Block,
    Image,
    ImageSource,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    UrlSource,
)
from ..schema.messages import Message, Options, Request, ToolSpec
from ..schema.profiles import Profile
from .openai_chat_replay import DETAILS, EXTRA_CONTENT
from .options import supported
from .wire_request import WireRequest

DIALECT: Final = "openai-chat"
PATH: Final = "/chat/completions"

_NAMED_CHOICES: Final = frozenset({"auto", "none", "required"})


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request as a streaming chat completion.

    Expects projected messages. Fields of ``options.extra`` win over all but ``messages`` and ``stream``.
    """
    options, notes = supported(request.options, profile)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": encode_messages(request.messages, profile, system=request.system),
        "stream": True,
    }
    if profile.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    body.update(_sampling(options, profile))
    body.update(profile.body or {})
    for key, value in (options.extra or {}).items():
        if key not in ("messages", "stream"):
            body[key] = value
    names = tuple(spec.name for spec in request.tools)
    return WireRequest(dialect=DIALECT, path=PATH, body=body, tools=names, notes=notes)


def encode_messages(
    messages: Iterable[Message], profile: Profile, *, system: str = ""
) -> list[dict[str, Any]]:
    """Wire messages in order; ``system`` becomes the first one if it is not empty."""
    wire: list[dict[str, Any]] = []
    if system:
        wire.append({"role": "system", "content": system})
    for message in messages:
        wire.extend(encode_message(message, profile))
    return wire


def encode_message(message: Message, profile: Profile) -> list[dict[str, Any]]:
    """One message as wire messages: each result is one of its own, in front of the rest."""
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    reasoning: list[Reasoning] = []
    rest: list[Block] = []
    for block in message.content:
        if type(block) is ToolResult:
            results.append(_tool_message(block, message))
        elif type(block) is ToolCall:
            calls.append(_call(block))
        elif type(block) is Reasoning and message.role == "assistant":
            reasoning.append(block)
        else:
            rest.append(block)
    if results and not (calls or reasoning or rest):
        return results
    only_calls = calls and not rest and message.role == "assistant"
    wire: dict[str, Any] = {"role": message.role, "content": None if only_calls else _content(rest)}
    if reasoning:
        wire.update(_thought(reasoning, profile))
    if calls:
        wire["tool_calls"] = calls
    results.append({**message.extra, **wire} if message.extra else wire)
    return results


def _sampling(options: Options, profile: Profile) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    max_tokens = options.max_tokens if options.max_tokens is not None else profile.default_max_tokens
    if max_tokens is not None:
        fields[profile.max_tokens_field] = max_tokens
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if options.top_p is not None:
        fields["top_p"] = options.top_p
    if options.stop:
        fields["stop"] = list(options.stop)
    if options.response_schema is not None:
        schema = {"name": "output", "schema": options.response_schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if options.reasoning_effort is not None:
        fields.update(_effort(options.reasoning_effort, profile))
    return fields


def _effort(effort: str, profile: Profile) -> dict[str, Any]:
    """The reasoning effort as the provider has it: a level, or where there are none a switch."""
    on = effort != "off"
    thinking = {"type": "enabled" if on else "disabled"}
    match profile.effort:
        case "reasoning_effort":
            return {"reasoning_effort": effort if on else "none"}
        case "thinking":
            return {"thinking": thinking}
        case "thinking_and_effort":
            return {"thinking": thinking, **({"reasoning_effort": effort} if on else {})}
        case "enable_thinking":
            return {"enable_thinking": on}
        case "reasoning":
            return {"reasoning": {"effort": effort} if on else {"enabled": False}}
        case "chat_template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case _:
            assert_never(profile.effort)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> object:
    return choice if choice in _NAMED_CHOICES else {"type": "function", "function": {"name": choice}}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    wire = {"id": call.id, "type": "function", "function": function}
    given = call.replay.data.get(EXTRA_CONTENT) if call.replay is not None else None
    if given is not None:
        wire[EXTRA_CONTENT] = given
    return {**call.extra, **wire} if call.extra else wire


def _thought(reasoning: Sequence[Reasoning], profile: Profile) -> dict[str, Any]:
    """The field that holds reasoning: as the provider sent it if that is known, else as text."""
    details = [entry for block in reasoning for entry in _details(block)]
    if details:
        return {DETAILS: details}
    return {profile.reasoning_field: "".join(block.text for block in reasoning)}


def _details(block: Reasoning) -> list[Any]:
    """The entries that the provider sent with its reasoning, and wants instead of the text."""
    given = block.replay.data.get(DETAILS) if block.replay is not None else None
    return given if isinstance(given, list) else []


def _tool_message(result: ToolResult, message: Message) -> dict[str, Any]:
    wire = {"role": "tool", "tool_call_id": result.call_id, "content": _content(result.content)}
    if message.extra or result.extra:
        return {**(message.extra or {}), **(result.extra or {}), **wire}
    return wire


def _content(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    """A string where there is only text (every gateway takes one), else parts in order."""
    if len(blocks) == 1:
        only = blocks[0]
        if type(only) is Text and not only.extra:
            return only.text
    if all(isinstance(block, Text) and not block.extra for block in blocks):
        return "\n".join(block.text for block in blocks if isinstance(block, Text))
    return [_part(block) for block in blocks if not isinstance(block, ToolCall)]


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {**(block.extra or {}), "type": "text", "text": block.text}
        case Image():
            url = {**(block.extra or {}), "url": _image_url(block.media_type, block.source)}
            return {"type": "image_url", "image_url": url}
        case Opaque() if block.protocol == DIALECT and isinstance(block.value, Mapping):
            return dict(block.value)
        case Opaque() | Reasoning() | ToolCall() | ToolResult():
            # Has no place here: written as it is, for the validator to name.
            return dict(msgspec.to_builtins(block))
        case _:
            assert_never(block)


def _image_url(media_type: str, source: ImageSource) -> str:
    match source:
        case Base64Source():
            return f"data:{media_type};base64,{source.data}"
        case UrlSource():
            return source.url
        case BlobSource():
            return f"blob:{source.sha256}"  # Blobs are loaded before encoding; the validator names this one.
        case _:
            assert_never(source)

"""Requests of the ``openai-responses`` protocol (``POST /responses``), stateless: nothing is stored.

The encoder is total and mends nothing: what has no place in this protocol is written for the validator to
name. With ``store`` false no item may refer to a stored one, so reasoning goes back encrypted and calls go
back by their call id alone.

Sources: openai-python 3.57.0 (openai/types/responses/response_create_params.py, response_includable.py: the
encrypted reasoning of requests that store nothing); DeepSeek's stateless form of it, with reasoning items
in the input, https://api-docs.deepseek.com/zh-cn/api/create-response/ (read 2026-11-30).
"""

import re
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
from ..schema.notes import Note
from ..schema.profiles import Profile
from .options import supported
from .parsed import ITEM
from .wire_request import WireRequest

DIALECT: Final = "openai-responses"
PATH: Final = "/responses"
ENCRYPTED: Final = "reasoning.encrypted_content"

_NO_REASONING: Final = re.compile(r"gpt-[34]|chatgpt")
"""Models that refuse ``include`` of encrypted reasoning ("not supported with this model")."""
_CONTENT_PARTS: Final = frozenset({"input_file", "input_audio", "refusal"})
"""Foreign blocks that are parts of a message; every other one is an item of its own."""


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request as a streaming, unstored response.

    Fields of ``options.extra`` win over all but ``input``, ``stream`` and ``store``.
    """
    return assemble(request, profile, encode_messages(request.messages, profile))


def assemble(request: Request, profile: Profile, items: Sequence[Any]) -> WireRequest:
    """A request around wire items, in any form that is JSON."""
    options, left_out = supported(request.options, profile)
    notes = list(left_out)
    body: dict[str, Any] = {
        "model": request.model,
        "input": items,
        "stream": True,
        "store": False,
    }
    if request.system:
        body["instructions"] = request.system
    if not _NO_REASONING.match(request.model):
        body["include"] = [ENCRYPTED]
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    body.update(_sampling(options, profile))
    if options.stop:
        notes.append(Note(kind="option_left_out", detail=f"{DIALECT} has no stop sequences"))
    for key, value in (options.extra or {}).items():
        if key not in ("input", "stream", "store"):
            body[key] = value
    names = tuple(spec.name for spec in request.tools)
    return WireRequest(dialect=DIALECT, path=PATH, body=body, tools=names, notes=tuple(notes))


def encode_messages(messages: Iterable[Message], profile: Profile) -> list[dict[str, Any]]:
    """Wire items in order."""
    items: list[dict[str, Any]] = []
    for message in messages:
        items.extend(encode_message(message, profile))
    return items


def encode_message(message: Message, profile: Profile) -> list[dict[str, Any]]:
    """One message as items: each call, result, reasoning and foreign block is one; the rest are messages."""
    items: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    fields: Mapping[str, Any] = {}
    said = "output_text" if message.role == "assistant" else "input_text"
    for block in message.content:
        item = _item(block)
        begins = block.extra is not None and ITEM in block.extra
        if parts and (item is not None or begins):
            items.append(_message(message, parts, fields))
            parts, fields = [], {}
        if item is not None:
            items.append(item)
            continue
        if begins:
            fields = (block.extra or {})[ITEM]
        parts.append(_part(block, said))
    if parts or not items:
        items.append(_message(message, parts, fields))
    return _with_repeated_reasoning(items) if profile.repeats_reasoning else items


def _item(block: Block) -> dict[str, Any] | None:
    """The block as an item; None if it is a part of a message."""
    match block:
        case Text():
            return None
        case ToolCall():
            wire = {"type": "function_call", "call_id": block.id, "name": block.name}
            return {**_own(block), **wire, "arguments": block.arguments or "{}"}
        case ToolResult():
            wire = {"type": "function_call_output", "call_id": block.call_id}
            return {**_own(block), **wire, "output": _output(block.content)}
        case Reasoning():
            return {**_own(block), **_reasoning(block)}
        case Opaque() if block.protocol == DIALECT and isinstance(block.value, Mapping):
            return None if str(block.value.get("type")) in _CONTENT_PARTS else dict(block.value)
        case Image() | Opaque():
            return None
        case _:
            assert_never(block)


def _own(block: Block) -> Mapping[str, Any]:
    """Fields to give back, but for another protocol's cache mark: "Unknown parameter" is a refusal here."""
    if not block.extra:
        return {}
    return {key: value for key, value in block.extra.items() if key != "cache_control"}


def _message(message: Message, parts: list[dict[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    role = "user" if message.role == "tool" else message.role
    content: object = parts
    if role != "assistant" and len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        content = parts[0]["text"]
    return {**(message.extra or {}), **fields, "type": "message", "role": role, "content": content}


def _part(block: Block, said: str) -> dict[str, Any]:
    extra = _own(block)
    match block:
        case Text():
            return {**extra, "type": said, "text": block.text}
        case Image():
            url = _image_url(block.media_type, block.source)
            return {"detail": "auto", **extra, "type": "input_image", "image_url": url}
        case Opaque() if block.protocol == DIALECT and isinstance(block.value, Mapping):
            return dict(block.value)
        case Opaque() | Reasoning() | ToolCall() | ToolResult():
            return dict(msgspec.to_builtins(block))
        case _:
            assert_never(block)


def _reasoning(block: Reasoning) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "reasoning", "summary": []}
    if block.redacted:
        wire["encrypted_content"] = block.redacted
        if block.text:
            wire["summary"] = [{"type": "summary_text", "text": block.text}]
    elif block.text:
        wire["content"] = [{"type": "reasoning_text", "text": block.text}]
    return wire


def _with_repeated_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each call with the turn's reasoning before it, which DeepSeek demands of parallel calls."""
    out: list[dict[str, Any]] = []
    reasoning: list[dict[str, Any]] = []
    for item in items:
        if item["type"] == "reasoning":
            if not (out and out[-1]["type"] == "reasoning"):
                reasoning = []
            reasoning = [*reasoning, item]
        elif item["type"] == "function_call" and reasoning and out[-1]["type"] == "function_call":
            out.extend(reasoning)
        out.append(item)
    return out


def _output(content: Sequence[Text | Image]) -> str | list[dict[str, Any]]:
    if all(isinstance(part, Text) and not part.extra for part in content):
        return "\n".join(part.text for part in content if isinstance(part, Text))
    return [_part(part, "input_text") for part in content]


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


def _tool(spec: ToolSpec) -> dict[str, Any]:
    wire = {"type": "function", "name": spec.name, "description": spec.description}
    # Without "strict" the API assumes true, and refuses every schema that has an optional property.
    return {**wire, "parameters": spec.parameters, "strict": False}


def _tool_choice(choice: str) -> object:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "name": choice}


def _sampling(options: Options, profile: Profile) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    max_tokens = options.max_tokens if options.max_tokens is not None else profile.default_max_tokens
    if max_tokens is not None:
        fields["max_output_tokens"] = max_tokens
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if options.top_p is not None:
        fields["top_p"] = options.top_p
    if options.reasoning_effort is not None:
        effort = "none" if options.reasoning_effort == "off" else options.reasoning_effort
        fields["reasoning"] = {"effort": effort}
    if options.response_schema is not None:
        schema = {"type": "json_schema", "name": "output", "schema": options.response_schema}
        fields["text"] = {"format": {**schema, "strict": False}}
    return fields

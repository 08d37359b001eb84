"""Reading a plain ``anthropic-messages`` request, from any agent and in any state."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..schema.blocks import Base64Source, Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message, Options, Role, ToolSpec
from ..schema.notes import Anomaly
from .parsed import (
    Element,
    OptionReader,
    Target,
    image_from_url,
    json_text,
    mapping,
    objects,
    omitted,
    stop_of,
    text_of,
    without,
)

DIALECT: Final = "anthropic-messages"
LIST_FIELD: Final = "messages"

_ROLES: Final[Mapping[str, Role]] = {"assistant": "assistant", "system": "system", "tool": "tool"}
_CHOICES: Final[Mapping[str, str]] = {"any": "required", "auto": "auto", "none": "none"}


def read_elements(elements: Sequence[Any], target: Target) -> list[Element]:
    """Each wire message as one of ours."""
    return [_element(element, target) for element in elements]


def read_options(body: Mapping[str, Any]) -> tuple[str, tuple[ToolSpec, ...], Options, set[str]]:
    """System prompt, tools and options of a request, and the names of the fields that were read."""
    system = body.get("system")
    if not isinstance(system, str):
        system = "\n\n".join(text_of(block.get("text")) for block in objects(system))
    tools = tuple(
        ToolSpec(
            name=text_of(tool.get("name")),
            description=text_of(tool.get("description")),
            parameters=mapping(tool.get("input_schema")) or {"type": "object", "properties": {}},
        )
        for tool in objects(body.get("tools"))
    )
    reader = OptionReader()
    for field in ("max_tokens", "temperature", "top_p"):
        reader.take(field, field, body.get(field))
    reader.take("stop_sequences", "stop", stop_of(body.get("stop_sequences")))
    choice = mapping(body.get("tool_choice"))
    kind = text_of(choice.get("type"))
    named = choice.get("name") if kind == "tool" else _CHOICES.get(kind)
    reader.take("tool_choice", "tool_choice", named)
    output = mapping(body.get("output_config"))
    reader.take("output_config", "response_schema", mapping(output.get("format")).get("schema"))
    reader.take("output_config", "reasoning_effort", output.get("effort"))
    read = {"model", LIST_FIELD, "system", "tools", "stream", *reader.used}
    return system, tools, reader.options, read


def _element(wire: Any, target: Target) -> Element:
    if not isinstance(wire, Mapping):
        return Element(Message("user", (Text(text=text_of(wire)),)))
    role = _ROLES.get(text_of(wire.get("role")), "user")
    anomalies: list[Anomaly] = []
    content = wire.get("content")
    if isinstance(content, list | tuple):
        blocks = tuple(_block(block, anomalies) for block in content)
    elif content is None or (content == "" and role == "assistant"):
        blocks = ()
    else:
        blocks = (Text(text=text_of(content)),)
    model = target.model
    for block in objects(content):
        if block.get("type") in ("thinking", "redacted_thinking") and "model" in block:
            model = text_of(block["model"])
    if model == target.model:
        blocks = tuple(map(_unnamed, blocks))
    author = role == "assistant"
    return Element(
        Message(
            role,
            blocks,
            provider=target.profile.name if author else None,
            model=model if author else None,
            extra=without(wire, "role", "content"),
        ),
        tuple(anomalies),
    )


def _unnamed(block: Block) -> Block:
    """Reasoning without the name of its model, which is no field of this protocol."""
    if not isinstance(block, Reasoning) or "model" not in (block.extra or {}):
        return block
    return msgspec.structs.replace(block, extra=without(block.extra or {}, "model"))


def _block(wire: Any, anomalies: list[Anomaly]) -> Block:
    if not isinstance(wire, Mapping):
        return Text(text=text_of(wire))
    match wire.get("type"):
        case "text":
            return Text(text=text_of(wire.get("text")), extra=without(wire, "type", "text"))
        case "image":
            return _image(wire)
        case "thinking":
            return Reasoning(
                text=text_of(wire.get("thinking")),
                signature=text_of(wire.get("signature")) or None,
                extra=without(wire, "type", "thinking", "signature"),
            )
        case "redacted_thinking":
            extra = without(wire, "type", "data")
            return Reasoning(text="", redacted=text_of(wire.get("data")), extra=extra)
        case "tool_use":
            return _call(wire)
        case "tool_result":
            return _result(wire, anomalies)
        case _:
            return Opaque(protocol=DIALECT, value=dict(wire))


def _image(wire: Mapping[str, Any]) -> Block:
    source = mapping(wire.get("source"))
    extra = without(wire, "type", "source")
    match source.get("type"):
        case "base64":
            media_type, data = text_of(source.get("media_type")), text_of(source.get("data"))
            return Image(media_type=media_type, source=Base64Source(data), extra=extra)
        case "url":
            return image_from_url(text_of(source.get("url")), extra)
        case _:
            return Opaque(protocol=DIALECT, value=dict(wire))


def _call(wire: Mapping[str, Any]) -> ToolCall:
    call_id, name, arguments = wire.get("id"), wire.get("name"), wire.get("input")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=arguments if isinstance(arguments, str) else json_text(arguments or {}),
        extra=without(wire, "type", "id", "name", "input"),
    )


def _result(wire: Mapping[str, Any], anomalies: list[Anomaly]) -> ToolResult:
    content = wire.get("content")
    parts: list[Text | Image] = []
    for part in content if isinstance(content, list | tuple) else (content,) if content is not None else ():
        block = _block(part, anomalies)
        if isinstance(block, Text | Image):
            parts.append(block)
        else:
            notice, anomaly = omitted(mapping(part).get("type"))
            parts.append(notice)
            anomalies.append(anomaly)
    call_id = wire.get("tool_use_id")
    return ToolResult(
        call_id=call_id if isinstance(call_id, str) else "",
        content=tuple(parts),
        is_error=wire.get("is_error") is True,
        extra=without(wire, "type", "tool_use_id", "content", "is_error"),
    )

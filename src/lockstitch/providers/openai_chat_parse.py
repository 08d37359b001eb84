"""Reading a plain ``openai-chat`` request, from any agent and in any state.

Also read, because agents keep histories so: tool calls without their ``function`` wrapper, ``reasoning``
beside the content, Anthropic's blocks inside it, ``is_error`` on results, and the older ``function_call``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..schema.blocks import (
    Base64Source,
    BlobSource,
    Block,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ..schema.messages import Message, Options, Role, ToolSpec
from ..schema.notes import Anomaly
from .parsed import (
    Element,
    OptionReader,
    Target,
    image_from_url,
    items,
    mapping,
    objects,
    omitted,
    stop_of,
    text_of,
    without,
)

DIALECT: Final = "openai-chat"
LIST_FIELD: Final = "messages"

_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_READ: Final = ("role", "content", "tool_calls", "function_call", "tool_call_id", "is_error")


def read_elements(elements: Sequence[Any], target: Target) -> list[Element]:
    """Each wire message as one of ours."""
    return [_element(element, target) for element in elements]


def read_options(body: Mapping[str, Any]) -> tuple[str, tuple[ToolSpec, ...], Options, set[str]]:
    """System prompt, tools and options of a request, and the names of the fields that were read."""
    tools = tuple(_tool(tool) for tool in objects(body.get("tools")))
    reader = OptionReader()
    for field, option in _OPTION_FIELDS.items():
        reader.take(field, option, body.get(field))
    reader.take("stop", "stop", stop_of(body.get("stop")))
    choice = mapping(mapping(body.get("tool_choice")).get("function")).get("name", body.get("tool_choice"))
    reader.take("tool_choice", "tool_choice", "required" if choice == "any" else choice)
    schema = mapping(mapping(body.get("response_format")).get("json_schema")).get("schema")
    reader.take("response_format", "response_schema", schema)
    read = {"model", LIST_FIELD, "tools", "stream", "stream_options", *reader.used}
    return "", tools, reader.options, read


_OPTION_FIELDS: Final[Mapping[str, str]] = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "reasoning_effort": "reasoning_effort",
}


def _element(wire: Any, target: Target) -> Element:
    if not isinstance(wire, Mapping):
        return Element(Message("user", (Text(text=text_of(wire)),)))
    role = _ROLES.get(text_of(wire.get("role")), "user")
    blocks, model = _blocks(wire.get("content"), role)
    if model and model != target.model:
        # Written beside the signature, so that a validator sees what the signature alone does not tell.
        blocks = tuple(
            msgspec.structs.replace(block, extra={"model": model}) if isinstance(block, Reasoning) else block
            for block in blocks
        )
    anomalies: list[Anomaly] = []
    read = list(_READ)
    if role == "tool":
        blocks = (_result(wire, blocks, anomalies),)
        read.append("name")
    elif role == "assistant":
        reasoning, name = _reasoning(wire, target)
        calls = [_call(call) for call in items(wire.get("tool_calls"))]
        if isinstance(wire.get("function_call"), Mapping):
            calls.append(_call({"id": "", "function": wire["function_call"]}))
        blocks = (*reasoning, *blocks, *calls)
        read.append(name)
    elif wire.get("tool_calls"):
        blocks = (*blocks, *(_call(call) for call in items(wire["tool_calls"])))
    author = role == "assistant"
    return Element(
        Message(
            role,
            blocks,
            provider=target.profile.name if author else None,
            model=(model or target.model) if author else None,
            extra=without(wire, *read),
        ),
        tuple(anomalies),
    )


def _blocks(content: Any, role: Role) -> tuple[tuple[Block, ...], str]:
    """The content's blocks, and the model that a thinking block names as its author."""
    if content is None or (content == "" and role == "assistant"):
        return (), ""
    if not isinstance(content, list | tuple):
        return (Text(text=text_of(content)),), ""
    model = ""
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in ("thinking", "redacted_thinking"):
            model = text_of(part.get("model")) or model
    return tuple(_part(part) for part in content), model


def _part(part: Any) -> Block:
    if not isinstance(part, Mapping):
        return Text(text=text_of(part))
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return Text(text=text_of(part.get("text")), extra=without(part, "type", "text"))
        case "image_url":
            image = part.get("image_url")
            fields = image if isinstance(image, Mapping) else {"url": image}
            return image_from_url(text_of(fields.get("url")), without(fields, "url"))
        case "image":
            return _plain_image(part)
        case "thinking":
            text = text_of(part.get("thinking"))
            return Reasoning(text=text, signature=part.get("signature") or None)
        case "redacted_thinking":
            return Reasoning(text="", redacted=text_of(part.get("data")))
        case "tool_use":
            return _call(part)
        case "tool_result":
            content, _ = _blocks(part.get("content"), "tool")
            return _result({"tool_call_id": part.get("tool_use_id"), **part}, content, [])
        case _:
            return Opaque(protocol=DIALECT, value=dict(part))


def _plain_image(part: Mapping[str, Any]) -> Block:
    """An image outside of any provider's format: a type and its data, or only its size."""
    source = mapping(part.get("source"))
    media_type = text_of(part.get("mime") or part.get("media_type") or source.get("media_type"))
    data = part.get("data", source.get("data"))
    if isinstance(data, str):
        return Image(media_type=media_type, source=Base64Source(data))
    url = part.get("url", source.get("url"))
    if isinstance(url, str):
        return image_from_url(url)
    size = part.get("size_raw", part.get("size"))
    if isinstance(size, int):
        return Image(media_type=media_type, source=BlobSource("", size))
    return Opaque(protocol=DIALECT, value=dict(part))


def _reasoning(wire: Mapping[str, Any], target: Target) -> tuple[tuple[Block, ...], str]:
    """The reasoning beside the content and the name of the field it stood in."""
    for name in (target.profile.reasoning_field, *_REASONING_FIELDS):
        text = wire.get(name)
        if isinstance(text, str):
            return (Reasoning(text=text),), name
    return (), ""


def _call(wire: Any) -> ToolCall:
    if not isinstance(wire, Mapping):
        return ToolCall(id="", name="", arguments=text_of(wire))
    function = wire.get("function")
    fields = function if isinstance(function, Mapping) else wire
    name, arguments = fields.get("name"), fields.get("arguments", fields.get("input"))
    call_id = wire.get("id")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=text_of(arguments),
        extra=without(wire, "id", "type", "function", "name", "arguments", "input"),
    )


def _result(wire: Mapping[str, Any], blocks: Sequence[Block], anomalies: list[Anomaly]) -> ToolResult:
    content: list[Text | Image] = []
    for block in blocks:
        if isinstance(block, Text | Image):
            content.append(block)
            continue
        kind = block.value.get("type") if isinstance(block, Opaque) else type(block).__name__
        notice, anomaly = omitted(kind)
        content.append(notice)
        anomalies.append(anomaly)
    call_id = wire.get("tool_call_id")
    return ToolResult(
        call_id=call_id if isinstance(call_id, str) else "",
        content=tuple(content),
        is_error=wire.get("is_error") is True,
    )


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    function = mapping(tool.get("function")) or tool
    parameters = function.get("parameters")
    return ToolSpec(
        name=text_of(function.get("name")),
        description=text_of(function.get("description")),
        parameters=parameters if isinstance(parameters, Mapping) else {"type": "object", "properties": {}},
    )

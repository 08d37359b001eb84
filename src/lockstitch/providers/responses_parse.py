"""Reading a plain ``openai-responses`` request, from any agent and in any state.

Ids of items are kept beside our values (``extra``): call id and item id are two things, and only the first
one pairs a call with its output.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..schema.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message, Options, Role, ToolSpec
from ..schema.notes import Anomaly
from .parsed import (
    ITEM,
    Element,
    OptionReader,
    Target,
    image_from_url,
    mapping,
    objects,
    omitted,
    text_of,
    without,
)

DIALECT: Final = "openai-responses"
LIST_FIELD: Final = "input"

_ID_PREFIXES: Final[Mapping[str, str]] = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_ROLES: Final[Mapping[str, Role]] = {"assistant": "assistant", "system": "system", "developer": "system"}


def read_elements(elements: Sequence[Any], target: Target) -> list[Element]:
    """Each item as a message of its own; neighbouring ones of the model are one answer."""
    return [_element(element, target) for element in elements]


def read_options(body: Mapping[str, Any]) -> tuple[str, tuple[ToolSpec, ...], Options, set[str]]:
    """System prompt, tools and options of a request, and the names of the fields that were read."""
    tools = tuple(
        ToolSpec(
            name=text_of(tool.get("name")),
            description=text_of(tool.get("description")),
            parameters=mapping(tool.get("parameters")) or {"type": "object", "properties": {}},
        )
        for tool in objects(body.get("tools"))
        if tool.get("type", "function") == "function"
    )
    reader = OptionReader()
    reader.take("max_output_tokens", "max_tokens", body.get("max_output_tokens"))
    reader.take("temperature", "temperature", body.get("temperature"))
    reader.take("top_p", "top_p", body.get("top_p"))
    choice = body.get("tool_choice")
    reader.take("tool_choice", "tool_choice", mapping(choice).get("name", choice))
    effort = mapping(body.get("reasoning")).get("effort")
    reader.take("reasoning", "reasoning_effort", "off" if effort == "none" else effort)
    reader.take("text", "response_schema", mapping(mapping(body.get("text")).get("format")).get("schema"))
    read = {"model", LIST_FIELD, "instructions", "tools", "stream", "store", "include", *reader.used}
    return text_of(body.get("instructions")), tools, reader.options, read


def _element(wire: Any, target: Target) -> Element:
    if not isinstance(wire, Mapping):
        return Element(Message("user", (Text(text=text_of(wire)),)))
    anomalies: list[Anomaly] = []
    kind = wire.get("type", "message" if "role" in wire else None)
    wire = _without_bad_id(wire, kind, anomalies)
    role: Role = "assistant"
    blocks: tuple[Block, ...]
    extra: Mapping[str, Any] | None = None
    match kind:
        case "message":
            role = _ROLES.get(text_of(wire.get("role")), "user")
            blocks = _content(wire.get("content"), role)
            extra = without(wire, "type", "role", "content")
            if role == "assistant" and blocks:
                blocks, extra = (_begin_item(blocks[0], extra), *blocks[1:]), None
        case "function_call":
            blocks = (_call(wire),)
        case "function_call_output":
            role = "tool"
            blocks = (_result(wire, anomalies),)
        case "reasoning":
            blocks = (_reasoning(wire),)
        case _:
            blocks = (Opaque(protocol=DIALECT, value=dict(wire)),)
    author = role == "assistant"
    provider = target.profile.name if author else None
    message = Message(role, blocks, provider=provider, model=target.model if author else None, extra=extra)
    return Element(message, tuple(anomalies))


def _begin_item(block: Block, fields: Mapping[str, Any] | None) -> Block:
    """The first block of a message item, with the item's own fields: several items make one message."""
    return msgspec.structs.replace(block, extra={**(block.extra or {}), ITEM: fields or {}})


def _without_bad_id(wire: Mapping[str, Any], kind: Any, anomalies: list[Anomaly]) -> Mapping[str, Any]:
    """The item without an id that cannot be one of its kind."""
    prefix = _ID_PREFIXES.get(kind) if isinstance(kind, str) else None
    if prefix is None or wire.get("id") is None or str(wire["id"]).startswith(prefix):
        return wire
    anomalies.append(Anomaly("item_id_dropped", detail=f"an id of a {kind} begins with {prefix}"))
    return without(wire, "id") or {}


def _content(content: Any, role: Role) -> tuple[Block, ...]:
    if isinstance(content, list | tuple):
        return tuple(_part(part) for part in content)
    if content is None or (content == "" and role == "assistant"):
        return ()
    return (Text(text=text_of(content)),)


def _part(part: Any) -> Block:
    if not isinstance(part, Mapping):
        return Text(text=text_of(part))
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(text=text_of(part.get("text")), extra=without(part, "type", "text"))
        case "input_image" if isinstance(part.get("image_url"), str):
            return image_from_url(part["image_url"], without(part, "type", "image_url"))
        case _:
            return Opaque(protocol=DIALECT, value=dict(part))


def _call(wire: Mapping[str, Any]) -> ToolCall:
    call_id, name = wire.get("call_id"), wire.get("name")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
        arguments=text_of(wire.get("arguments")),
        extra=without(wire, "type", "call_id", "name", "arguments"),
    )


def _result(wire: Mapping[str, Any], anomalies: list[Anomaly]) -> ToolResult:
    content: list[Text | Image] = []
    for block in _content(wire.get("output"), "tool"):
        if isinstance(block, Text | Image):
            content.append(block)
            continue
        notice, anomaly = omitted(mapping(getattr(block, "value", None)).get("type"))
        content.append(notice)
        anomalies.append(anomaly)
    call_id = wire.get("call_id")
    return ToolResult(
        call_id=call_id if isinstance(call_id, str) else "",
        content=tuple(content),
        extra=without(wire, "type", "call_id", "output"),
    )


def _reasoning(wire: Mapping[str, Any]) -> Reasoning:
    texts = [text_of(part.get("text")) for part in objects(wire.get("summary"))]
    said = [text_of(part.get("text")) for part in objects(wire.get("content"))]
    return Reasoning(
        text="\n\n".join(text for text in (texts or said) if text),
        redacted=text_of(wire.get("encrypted_content")) or None,
        extra=without(wire, "type", "summary", "content", "encrypted_content"),
    )

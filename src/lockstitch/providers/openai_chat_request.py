"""Requests of the ``openai-chat`` protocol (``POST /chat/completions``), for every profile that speaks it.

The encoder is total and changes nothing: it writes what the projection left. Options that a profile lists as
unsupported are left out with a note, because a refused option would cost a whole turn.

Source: https://platform.openai.com/docs/api-reference/chat/create (read 2026-11-30), and per profile the
vendors' own references named in ``catalog.toml``.
"""

from collections.abc import Iterable
from typing import Any, Final, assert_never

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
from ..schema.errors import CallerError
from ..schema.messages import Message, Options, Request, ToolSpec
from ..schema.notes import Note
from ..schema.profiles import Profile
from .wire_request import WireRequest

DIALECT: Final = "openai-chat"
PATH: Final = "/chat/completions"

_NAMED_CHOICES: Final = frozenset({"auto", "none", "required"})


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request as a streaming chat completion.

    Expects projected messages: a block that has no place in its role raises ``CallerError``, which enters the
    ladder. Fields of ``options.extra`` win over everything but ``messages`` and ``stream``.
    """
    options, notes = _supported(request.options, profile)
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
            body["tool_choice"] = _tool_choice(options.tool_choice, profile)
    body.update(_sampling(options, profile))
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
    """One message as wire messages: one, or one for each result of a tool message."""
    match message.role:
        case "assistant":
            return [_assistant(message, profile)]
        case "tool":
            return [{**(message.extra or {}), **_tool_message(block)} for block in message.content]
        case "user" | "system":
            content = _content(message.content, message.role)
            return [{**(message.extra or {}), "role": message.role, "content": content}]
        case _:
            assert_never(message.role)


def _supported(options: Options, profile: Profile) -> tuple[Options, tuple[Note, ...]]:
    """Options without those the profile's provider refuses, and a note for each that was set."""
    defaults = Options()
    kept: dict[str, Any] = {}
    notes: list[Note] = []
    for name in Options.__struct_fields__:
        value = getattr(options, name)
        if name in profile.unsupported and value != getattr(defaults, name):
            notes.append(Note(kind="option_left_out", detail=f"{profile.name} does not take {name}"))
        else:
            kept[name] = value
    return Options(**kept), tuple(notes)


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
    """The provider's own switch for reasoning; OpenAI's spelling where none is known."""
    on = effort != "off"
    match profile.name:
        case "deepseek" | "moonshot" | "zhipu":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case "qwen":
            return {"enable_thinking": on}
        case "openrouter":
            return {"reasoning": {"effort": effort} if on else {"enabled": False}}
        case "vllm" | "sglang":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case _:
            return {"reasoning_effort": effort if on else "none"}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _tool_choice(choice: str, profile: Profile) -> object:
    if choice not in _NAMED_CHOICES:
        return {"type": "function", "function": {"name": choice}}
    # Mistral spells OpenAI's "required" as "any" (https://docs.mistral.ai/api, read 2026-11-30).
    return "any" if choice == "required" and profile.name == "mistral" else choice


def _assistant(message: Message, profile: Profile) -> dict[str, Any]:
    said: list[Block] = []
    reasoning: list[str] | None = None
    calls: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case Reasoning():
                reasoning = [*(reasoning or ()), block.text]
            case ToolCall():
                calls.append(_call(block))
            case _:
                said.append(block)
    wire: dict[str, Any] = {"role": "assistant", "content": _content(tuple(said), "assistant") or None}
    if reasoning is not None:
        wire[profile.reasoning_field] = "".join(reasoning)
    if calls:
        wire["tool_calls"] = calls
    elif wire["content"] is None:
        wire["content"] = ""
    return {**(message.extra or {}), **wire}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {**(call.extra or {}), "id": call.id, "type": "function", "function": function}


def _tool_message(block: Block) -> dict[str, Any]:
    if not isinstance(block, ToolResult):
        raise _misplaced(block, "tool")
    texts: list[str] = []
    for part in block.content:
        if not isinstance(part, Text):
            raise _misplaced(part, "tool")
        texts.append(part.text)
    return {"role": "tool", "tool_call_id": block.call_id, "content": "\n".join(texts)}


def _content(blocks: tuple[Block, ...], role: str) -> str | list[dict[str, Any]]:
    """A string where there is only text (every gateway takes one), else parts in order."""
    if all(isinstance(block, Text) and not block.extra for block in blocks):
        return "\n".join(block.text for block in blocks if isinstance(block, Text))
    parts: list[dict[str, Any]] = []
    for block in blocks:
        match block:
            case Text():
                parts.append({"type": "text", "text": block.text, **(block.extra or {})})
            case Image() if role == "user":
                url = _image_url(block.media_type, block.source)
                parts.append({"type": "image_url", "image_url": {"url": url, **(block.extra or {})}})
            case Opaque() if block.protocol == DIALECT:
                parts.append(dict(block.value))
            case _:
                raise _misplaced(block, role)
    return parts


def _image_url(media_type: str, source: ImageSource) -> str:
    match source:
        case Base64Source():
            return f"data:{media_type};base64,{source.data}"
        case UrlSource():
            return source.url
        case BlobSource():
            raise CallerError(
                f"image {source.sha256[:12]} was not loaded from the session's blobs before encoding; "
                "resolve blobs first or project without media"
            )
        case _:
            assert_never(source)


def _misplaced(block: object, role: str) -> CallerError:
    kind = type(block).__name__
    return CallerError(
        f"a {kind} block has no place in an {DIALECT} {role} message; project the messages first"
    )

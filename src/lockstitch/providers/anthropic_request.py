"""Requests of the ``anthropic-messages`` protocol (``POST /v1/messages``).

The encoder is total and mends nothing: what has no place in this protocol is written for the validator to
name. Cache marks stand on the tools, the system prompt and the last two messages: the API takes four, and a
mark on the message before last is what finds the prefix that the previous request wrote.

Sources: anthropic 2.14.0 (anthropic/types/message_create_params.py); read 2026-11-30:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching,
https://platform.claude.com/docs/zh-CN/build-with-claude/adaptive-thinking,
https://platform.claude.com/docs/en/build-with-claude/structured-outputs.
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
from ..wire import strict_json
from .options import supported
from .wire_request import WireRequest

DIALECT: Final = "anthropic-messages"
PATH: Final = "/v1/messages"
HEADERS: Final[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
CACHE_MARK: Final[Mapping[str, Any]] = {"type": "ephemeral"}
MARKED_MESSAGES: Final = 2
LAST_MESSAGES: Final = 3
"""Enough to see how the last answer begins: it is the last message or the one before the results."""
DEFAULT_MAX_TOKENS: Final = 8_192
"""The field is required; every model since Claude 3.5 allows this many."""

EFFORT_BUDGETS: Final[Mapping[str, int]] = {"low": 1_024, "medium": 4_096, "high": 16_384}
"""Thinking budgets for models before 4.6, which know no effort; 1,024 is the API's minimum."""

_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d)(?!\d))?")


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request as a streaming message. Leading system messages join the ``system`` parameter.

    Fields of ``options.extra`` win over all but ``messages`` and ``stream``.
    """
    system, messages = split_system(request.system, request.messages)
    wire_messages = encode_messages(messages, profile)
    return assemble(
        request, profile, system, wire_messages[:-MARKED_MESSAGES], wire_messages[-LAST_MESSAGES:]
    )


def assemble(
    request: Request,
    profile: Profile,
    system: Sequence[dict[str, Any]],
    first: Sequence[Any],
    last: Sequence[dict[str, Any]],
) -> WireRequest:
    """A request around wire messages: ``first`` are all but those to be marked, in any form that is JSON.

    ``last`` are the last ones as objects, ``LAST_MESSAGES`` of them if there are so many.
    """
    options, left_out = supported(request.options, profile)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": options.max_tokens or profile.default_max_tokens or DEFAULT_MAX_TOKENS,
        "messages": [*first, *map(marked, last[-MARKED_MESSAGES:])],
        "stream": True,
    }
    if system:
        body["system"] = [*system[:-1], {**system[-1], "cache_control": CACHE_MARK}]
    if request.tools:
        tools = [_tool(spec) for spec in request.tools]
        body["tools"] = [*tools[:-1], {**tools[-1], "cache_control": CACHE_MARK}]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    notes = [*left_out, *_sampling(options, request.model, last, body)]
    for key, value in (options.extra or {}).items():
        if key not in ("messages", "stream"):
            body[key] = value
    names = tuple(spec.name for spec in request.tools)
    return WireRequest(DIALECT, PATH, body, HEADERS, names, tuple(notes))


def split_system(system: str, messages: Sequence[Message]) -> tuple[list[dict[str, Any]], Sequence[Message]]:
    """The system prompt's blocks, with those of leading system messages, and the messages behind them."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": system}] if system else []
    count = 0
    for message in messages:
        if message.role != "system":
            break
        blocks.extend(_block(block, keep_marks=False) for block in message.content)
        count += 1
    return blocks, messages[count:]


def encode_messages(
    messages: Iterable[Message], profile: Profile, *, keep_marks: bool = False
) -> list[dict[str, Any]]:
    """Wire messages in order, without cache marks unless ``keep_marks`` says that those they came with stay.

    Messages of the role ``tool``, which only an unprojected request has, become user messages together with
    a user message behind them, as this protocol wants it.
    """
    wire: list[dict[str, Any]] = []
    after_results = False
    for message in messages:
        encoded = encode_message(message, profile, keep_marks=keep_marks)
        if after_results and message.role in ("tool", "user"):
            wire[-1] = {**wire[-1], "content": [*_list(wire[-1]), *_list(encoded)]}
        else:
            wire.append(encoded)
        after_results = message.role == "tool"
    return wire


def encode_message(message: Message, profile: Profile, *, keep_marks: bool = False) -> dict[str, Any]:
    """One message as one wire message; plain text alone as a string."""
    role = "user" if message.role == "tool" else message.role
    only = message.content[0] if len(message.content) == 1 else None
    content: object
    if isinstance(only, Text) and not _extra(only, keep_marks):
        content = only.text
    else:
        content = [_block(block, keep_marks=keep_marks) for block in message.content]
    return {**(message.extra or {}), "role": role, "content": content}


def marked(wire: dict[str, Any]) -> dict[str, Any]:
    """The wire message with a cache mark on its last block that can carry one; thinking cannot."""
    content = _list(wire)
    for position in range(len(content) - 1, -1, -1):
        if content[position].get("type") not in ("thinking", "redacted_thinking"):
            content[position] = {**content[position], "cache_control": CACHE_MARK}
            return {**wire, "content": content}
    return wire


def _list(wire: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = wire["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _extra(block: Block, keep_marks: bool) -> Mapping[str, Any]:
    extra = block.extra or {}
    if keep_marks or "cache_control" not in extra:
        return extra
    return {key: value for key, value in extra.items() if key != "cache_control"}


def _block(block: Block, *, keep_marks: bool) -> dict[str, Any]:
    extra = _extra(block, keep_marks)
    match block:
        case Text():
            return {**extra, "type": "text", "text": block.text}
        case ToolCall():
            wire = {"type": "tool_use", "id": block.id, "name": block.name}
            return {**extra, **wire, "input": _input(block.arguments)}
        case ToolResult():
            return {**extra, **_result(block, keep_marks)}
        case Reasoning():
            if block.redacted and not block.signature:
                return {**extra, "type": "redacted_thinking", "data": block.redacted}
            signature = {} if block.signature is None else {"signature": block.signature}
            return {**extra, "type": "thinking", "thinking": block.text, **signature}
        case Image():
            return {**extra, "type": "image", "source": _source(block.media_type, block.source)}
        case Opaque() if block.protocol == DIALECT and isinstance(block.value, Mapping):
            return {key: value for key, value in block.value.items() if keep_marks or key != "cache_control"}
        case Opaque():
            return dict(msgspec.to_builtins(block))
        case _:
            assert_never(block)


def _input(text: str) -> object:
    """The arguments as an object; text that is none is kept, for the validator to name."""
    if not text or text == "{}":
        return {}
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _lenient(text)


def _lenient(text: str) -> object:
    """Text with lone surrogates, which the validator is to see as they are; or no JSON at all."""
    try:
        return strict_json.lenient(text)
    except strict_json.InvalidJson:
        return text


def _result(result: ToolResult, keep_marks: bool) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
    only = result.content[0] if len(result.content) == 1 else None
    if isinstance(only, Text) and not _extra(only, keep_marks):
        wire["content"] = only.text
    elif result.content:
        wire["content"] = [_block(part, keep_marks=keep_marks) for part in result.content]
    if result.is_error:
        wire["is_error"] = True
    return wire


def _source(media_type: str, source: ImageSource) -> dict[str, Any]:
    match source:
        case Base64Source():
            return {"type": "base64", "media_type": media_type, "data": source.data}
        case UrlSource():
            return {"type": "url", "url": source.url}
        case BlobSource():
            return {
                "type": "blob",
                "sha256": source.sha256,
            }  # Loaded before encoding; the validator names it.
        case _:
            assert_never(source)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case _:
            return {"type": "tool", "name": choice}


def _sampling(
    options: Options, model: str, messages: Sequence[Mapping[str, Any]], body: dict[str, Any]
) -> list[Note]:
    """Put sampling, output format and thinking into ``body``; a note for each option that was left out."""
    notes: list[Note] = []
    stop = [text for text in options.stop if text.strip()]  # The API refuses whitespace-only sequences.
    if stop:
        body["stop_sequences"] = stop
    if options.response_schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": options.response_schema}}
    thinking = False
    if options.reasoning_effort is not None:
        thinking = _think(options.reasoning_effort, model, messages, body, notes)
    for name in ("temperature", "top_p"):
        value = getattr(options, name)
        if value is None:
            continue
        if thinking:
            notes.append(Note(kind="option_left_out", detail=f"{name} cannot be set beside thinking"))
        else:
            body[name] = value
    return notes


def _think(
    effort: str, model: str, messages: Sequence[Mapping[str, Any]], body: dict[str, Any], notes: list[Note]
) -> bool:
    """Switch thinking on in ``body`` as the model knows it; whether it is on."""
    if effort == "off":
        return False
    if adaptive(model):
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}
        return True
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        notes.append(Note(kind="option_left_out", detail="reasoning_effort: a tool choice forbids thinking"))
        return False
    if not thinking_may_start(messages):
        detail = "reasoning_effort: the turn's last answer does not start with thinking"
        notes.append(Note(kind="option_left_out", detail=detail))
        return False
    budget = EFFORT_BUDGETS.get(effort, EFFORT_BUDGETS["medium"])
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    body["max_tokens"] = max(body["max_tokens"], budget + EFFORT_BUDGETS["low"])
    return True


def adaptive(model: str) -> bool:
    """Whether the model takes adaptive thinking with an effort: 4.6 and later; older ones take a budget."""
    found = _VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6)


def thinking_may_start(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether thinking with a budget may be on: the last answer of an open tool exchange starts with it."""
    for message in reversed(messages):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message.get("role") == "user":
            if not any(block.get("type") == "tool_result" for block in blocks):
                return True
        elif message.get("role") == "assistant":
            first = blocks[0].get("type") if blocks else "text"
            return first in ("thinking", "redacted_thinking")
    return True

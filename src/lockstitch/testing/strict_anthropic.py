"""Refuses what ``anthropic-messages`` refuses, in its words: Anthropic's, and where it is stricter, Bedrock's.

Wordings from public reports: https://github.com/anthropics/claude-code/issues/8484 (unexpected result),
https://github.com/anomalyco/opencode/issues/27594 (missing result),
https://github.com/anthropics/claude-code/issues/59812 and .../23369 (empty text),
https://github.com/lbjlaq/Antigravity-Manager/issues/139 (thinking order),
https://github.com/jikig-ai/soleur/issues/3250 (prefill),
https://github.com/anthropics/claude-code/issues/2104 (image size). Shapes from the types of the official
``anthropic`` package 2.14.0.
"""
# ruff: noqa: E501 - wordings of providers are quoted whole

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .refusal import RefusedError, word

ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
CACHE_MARKS_MAX: Final = 4
IMAGE_BASE64_MAX: Final = 5 << 20
BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset({"text", "image", "document", "tool_result", "search_result"}),
    "assistant": frozenset(
        {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"}
    ),
}


def check(body: Mapping[str, Any], path: str) -> RefusedError | None:
    """The first reason why the request would be refused; None if it would not."""
    try:
        _request(body)
    except RefusedError as refusal:
        return refusal
    except RecursionError:
        return _bad("nesting", "The request body is not valid JSON: recursion limit exceeded")
    return None


def _request(body: Mapping[str, Any]) -> None:
    for key in ("model", "max_tokens", "messages"):
        if body.get(key) is None:
            raise _bad("missing", f"{key}: Field required")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise _bad("max_tokens", "max_tokens: Input should be greater than or equal to 1")
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise _bad("messages_empty", "messages: at least one message is required")
    _unicode(body)
    _tools(body)
    _system(body.get("system"))
    _marks(body)
    thinking = isinstance(body.get("thinking"), Mapping) and body["thinking"].get("type") == "enabled"
    _conversation(messages, thinking=thinking)


def _conversation(messages: list[Any], *, thinking: bool) -> None:
    owed: list[str] = []
    seen: set[str] = set()
    before = ""
    for i, message in enumerate(messages):
        role = str(message.get("role")) if isinstance(message, Mapping) else ""
        if role not in BLOCKS:
            raise _bad("role", f"messages.{i}.role: Input should be 'user' or 'assistant'")
        if i == 0 and role != "user":
            raise _bad("first_role", 'messages: first message must use the "user" role')
        if role == before:
            # Bedrock's; Anthropic's own API merges neighbours
            raise _bad("role_order", 'messages: roles must alternate between "user" and "assistant"')
        before = role
        blocks = _blocks(message.get("content"), role, i)
        _results(blocks, owed, i)
        owed = _uses(blocks, seen, i)
        if role == "assistant":
            _thinking(blocks, i)
    last = len(messages) - 1
    if owed:
        raise _missing(owed, last)
    if before == "assistant":
        text = "This model does not support assistant message prefill. The conversation must end with a user message."
        raise _bad("prefill", text)
    if thinking:
        _thinking_kept(messages)


def _blocks(content: Any, role: str, i: int) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        if not content.strip():
            raise _empty_message(role, i) if not content else _blank_text()
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise _bad("content", f"messages.{i}.content: Input should be a valid list")
    if not content:
        raise _empty_message(role, i)
    for j, block in enumerate(content):
        kind = word(block.get("type")) if isinstance(block, Mapping) else None
        place = f"messages.{i}.content.{j}"
        if kind not in BLOCKS[role]:
            allowed = ", ".join(f"'{name}'" for name in sorted(BLOCKS[role]))
            raise _bad(
                "block",
                f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {allowed}",
            )
        if kind == "text":
            _text(block, place)
        elif kind == "image":
            _image(block, place)
    return content


def _empty_message(role: str, i: int) -> RefusedError:
    if role == "assistant":
        return _bad(
            "content_empty",
            f"messages.{i}: all messages must have non-empty content except for the optional final assistant message",
        )
    return _bad("content_empty", f"messages.{i}: user messages must have non-empty content")


def _blank_text() -> RefusedError:
    return _bad("text_blank", "messages: text content blocks must contain non-whitespace text")


def _text(block: Mapping[str, Any], place: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise _bad("text", f"{place}.text: Input should be a valid string")
    if not text and block.get("cache_control"):
        # https://github.com/anthropics/claude-code/issues/59294
        raise _bad("text_empty", f"{place}.text: cache_control cannot be set for empty text blocks")
    if not text:
        raise _bad("text_empty", "messages: text content blocks must be non-empty")
    if not text.strip():
        raise _blank_text()


def _image(block: Mapping[str, Any], place: str) -> None:
    source = block.get("source")
    kind = word(source.get("type")) if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or kind not in {"base64", "url", "file"}:
        raise _bad("image", f"{place}.image.source: Field required")
    if kind == "base64":
        if word(source.get("media_type")) not in {"image/jpeg", "image/png", "image/gif", "image/webp"}:
            raise _bad(
                "image",
                f"{place}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
            )
        size = len(str(source.get("data", "")))
        if size > IMAGE_BASE64_MAX:
            text = f"image exceeds 5 MB maximum: {size} bytes > {IMAGE_BASE64_MAX} bytes"
            raise _bad("image_size", f"{place}.image.source.base64: {text}")
        if size == 0:
            raise _bad("image", f"{place}.image.source.base64.data: Image cannot be empty")


def _results(blocks: list[Mapping[str, Any]], owed: list[str], i: int) -> None:
    """The results at the start of a message must answer the message before, each call once."""
    open_calls = dict.fromkeys(owed)
    others = False
    for j, block in enumerate(blocks):
        if block["type"] != "tool_result":
            others = True
            continue
        call_id = block.get("tool_use_id")
        place = f"messages.{i}.content.{j}"
        if not isinstance(call_id, str):
            raise _bad("result_id", f"{place}.tool_result.tool_use_id: Field required")
        if call_id in owed and call_id not in open_calls:
            text = f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call_id}"
            raise _bad("result_duplicate", text)
        if call_id not in open_calls:
            text = (
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message."
            )
            raise _bad("result_orphan", text)
        if others:
            raise _missing(list(open_calls), i - 1)
        _result_content(block.get("content"), place)
        del open_calls[call_id]
    if open_calls:
        raise _missing(list(open_calls), i - 1)


def _result_content(content: Any, place: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise _bad("result_content", f"{place}.tool_result.content: Input should be a valid list")
    for j, block in enumerate(content):
        kind = word(block.get("type")) if isinstance(block, Mapping) else None
        if kind not in {"text", "image", "document", "search_result"}:
            raise _bad(
                "result_content",
                f"{place}.tool_result.content.{j}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
            )
        if kind == "text":
            _text(block, f"{place}.tool_result.content.{j}")
        if kind == "image":
            _image(block, f"{place}.tool_result.content.{j}")


def _missing(owed: list[str], i: int) -> RefusedError:
    text = (
        f"messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(owed)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return _bad("call_unanswered", text)


def _uses(blocks: list[Mapping[str, Any]], seen: set[str], i: int) -> list[str]:
    ids: list[str] = []
    for j, block in enumerate(blocks):
        if block["type"] != "tool_use":
            continue
        place = f"messages.{i}.content.{j}.tool_use"
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not ID.match(call_id):
            raise _bad("call_id", f"{place}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(name, str) or not name:
            raise _bad("call_name", f"{place}.name: String should have at least 1 character")
        if not TOOL_NAME.match(name):
            raise _bad("call_name", f"{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), Mapping):
            raise _bad("input", f"{place}.input: Input should be a valid dictionary")
        if call_id in seen:
            raise _bad("call_duplicate", "messages: `tool_use` ids must be unique")
        seen.add(call_id)
        ids.append(call_id)
    return ids


def _thinking(blocks: list[Mapping[str, Any]], i: int) -> None:
    for j, block in enumerate(blocks):
        signature = block.get("signature")
        if block["type"] == "thinking" and not (isinstance(signature, str) and signature):
            raise _bad("signature", f"messages.{i}.content.{j}: Invalid `signature` in `thinking` block")
        if block["type"] == "redacted_thinking" and not block.get("data"):
            raise _bad("signature", f"messages.{i}.content.{j}: Invalid `data` in `redacted_thinking` block")
    if blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
        text = f"messages.{i}: The final block in an assistant message cannot be `thinking`."
        raise _bad("thinking_last", text)


def _thinking_kept(messages: list[Any]) -> None:
    """With thinking on, the tool exchange the request continues must start with its thinking."""
    i = len(messages) - 1
    start = None
    while i > 0 and any(
        isinstance(block, Mapping) and block.get("type") == "tool_result"
        for block in (messages[i]["content"] if isinstance(messages[i]["content"], list) else [])
    ):
        start = i - 1
        i -= 2
    if start is None:
        return
    content = messages[start]["content"]
    kind = content[0]["type"] if isinstance(content, list) else "text"
    if kind not in {"thinking", "redacted_thinking"}:
        text = (
            f"messages.{start}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )
        raise _bad("thinking_missing", text)


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise _bad("system", "system: Input should be a valid list")
    for i, block in enumerate(system):
        if not isinstance(block, Mapping) or block.get("type") != "text":
            raise _bad("system", f"system.{i}.type: Input should be 'text'")
        if not str(block.get("text") or "").strip():
            raise _bad("text_empty", "system: text content blocks must be non-empty")


def _tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise _bad("tools", "tools: Input should be a valid list")
    names: set[str] = set()
    for i, tool in enumerate(tools or []):
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not TOOL_NAME.match(name):
            raise _bad(
                "tool_name", f"tools.{i}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
        if name in names:
            raise _bad("tool_duplicate", "tools: Tool names must be unique.")
        names.add(name)
        schema = tool.get("input_schema")
        if tool.get("type") in (None, "custom") and not (
            isinstance(schema, Mapping) and schema.get("type") == "object"
        ):
            raise _bad("tool_schema", f"tools.{i}.custom.input_schema.type: Input should be 'object'")
    if not names and _has_calls(body):
        # Bedrock: https://github.com/NousResearch/hermes-agent/issues/55092 has others of its kind
        text = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        raise _bad("tools_missing", text)
    if not names and body.get("tool_choice") is not None:
        raise _bad("tool_choice", "tool_choice: tools must be defined when tool_choice is given")


def _has_calls(body: Mapping[str, Any]) -> bool:
    contents = [m.get("content") for m in body["messages"] if isinstance(m, Mapping)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return any(isinstance(b, Mapping) and b.get("type") in {"tool_use", "tool_result"} for b in blocks)


def _marks(body: Mapping[str, Any]) -> None:
    marks = json.dumps(body).count('"cache_control":')
    if marks > CACHE_MARKS_MAX:
        text = f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        raise _bad("cache_marks", text)


def _unicode(body: Mapping[str, Any]) -> None:
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # https://github.com/anthropics/claude-code/issues/69927
        place = f"line 1 column {error.start + 1} (char {error.start})"
        reason = f"The request body is not valid JSON: no low surrogate in string: {place}"
        raise _bad("surrogate", reason) from error


def _bad(rule: str, message: str) -> RefusedError:
    return RefusedError(rule, message, fields={"type": "invalid_request_error"})

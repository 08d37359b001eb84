"""Refuses what ``openai-chat`` providers refuse, in their words: the strictest of those known, for each rule.

Wordings: OpenAI's unless a rule names another provider, from public reports (read 2026-10-08).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .refusal import RefusedError, word

ROLES: Final = ("system", "developer", "user", "assistant", "tool")
ID_MAX: Final = 40  # https://github.com/vercel/ai/issues/5171
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
ID: Final = re.compile(r"[a-zA-Z0-9_.:|-]+\Z")
PARTS: Final = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""An escaped NUL in JSON text, not an escaped backslash before ``u0000``."""


def check(body: Mapping[str, Any], path: str) -> RefusedError | None:
    """The first reason why the request would be refused; None if it would not."""
    try:
        _request(body)
    except RefusedError as refusal:
        return refusal
    except RecursionError:
        return _bad("nesting", "We could not parse the JSON body of your request.", None)
    return None


def _request(body: Mapping[str, Any]) -> None:
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise RefusedError("no_model", "you must provide a model parameter")
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise _bad("messages_missing", "Missing required parameter: 'messages'.", "messages")
    if not messages:
        text = (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array"
        )
        raise _bad("messages_empty", f"{text} instead.", "messages", "empty_array")
    _unicode(body)
    _tools(body)
    _messages(messages)


def _messages(messages: list[Any]) -> None:
    owed: dict[str, None] = {}  # in the order of the calls
    answered: set[str] = set()
    seen: set[str] = set()
    has_prompt = False
    for i, message in enumerate(messages):
        place = f"messages[{i}]"
        role = word(message.get("role")) if isinstance(message, Mapping) else ""
        if role not in ROLES:
            allowed = ", ".join(f"'{name}'" for name in ("system", "assistant", "user", "function", "tool"))
            text = f"Invalid value: {role!r}. Supported values are: {allowed}, and 'developer'."
            raise _bad("role", text, f"{place}.role", "invalid_value")
        if role == "tool":
            _result(message, owed, answered, i)
        else:
            if owed:
                raise _unanswered(owed, i - 1)
            answered = set()
        _content(message, role, i)
        has_prompt |= role in {"user", "tool"}
        if role == "assistant":
            owed = dict.fromkeys(_calls(message, i, seen))
    if owed:
        raise _unanswered(owed, len(messages) - 1)
    if not has_prompt:
        # vLLM's and others' templates need one: https://github.com/vllm-project/vllm/issues/6862
        raise _bad("no_prompt", "No user query found in messages.", "messages")


def _unanswered(owed: Mapping[str, None], last: int) -> RefusedError:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: "
    )
    return _bad("call_unanswered", text + ", ".join(owed), f"messages.[{last}].role")


def _result(message: Mapping[str, Any], owed: dict[str, None], answered: set[str], i: int) -> None:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str):
        text = f"Missing required parameter: 'messages[{i}].tool_call_id'."
        raise _bad("result_id", text, f"messages[{i}].tool_call_id", "missing_required_parameter")
    if call_id in answered:
        text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}' in messages."
        raise _bad("result_duplicate", text, f"messages.[{i}].tool_call_id")
    if call_id not in owed:
        # "preceeding" is how the provider spells it
        text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        raise _bad("result_orphan", f"Invalid parameter: {text}", f"messages.[{i}].role")
    del owed[call_id]
    answered.add(call_id)


def _calls(message: Mapping[str, Any], i: int, seen: set[str]) -> list[str]:
    calls = message.get("tool_calls")
    if calls is None:
        return []
    place = f"messages[{i}].tool_calls"
    if not isinstance(calls, list) or not calls:
        text = (
            f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array"
        )
        raise _bad("calls_empty", f"{text} instead.", place, "empty_array")
    return [_call(call, f"{place}[{j}]", seen) for j, call in enumerate(calls)]


def _call(call: Any, place: str, seen: set[str]) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or call.get("type") != "function":
        text = f"Missing required parameter: '{place}.type'."
        raise _bad("call_shape", text, f"{place}.type", "missing_required_parameter")
    name = function.get("name")
    if not isinstance(name, str) or not NAME.match(name):
        rest = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        where = f"{place}.function.name"
        raise _bad("call_name", f"Invalid '{where}': {rest}", where, "invalid_value")
    _arguments(function.get("arguments"), name, f"{place}.function.arguments")
    call_id = call.get("id")
    _id(call_id, f"{place}.id")
    if call_id in seen:
        # https://github.com/NousResearch/hermes-agent/issues/55092 has the same refusal from another provider
        text = f"Invalid '{place}.id': Duplicate value for tool call id '{call_id}'."
        raise _bad("call_duplicate", text, f"{place}.id", "invalid_value")
    seen.add(call_id)
    return str(call_id)


def _id(call_id: Any, where: str) -> None:
    if not isinstance(call_id, str) or not call_id:
        text = f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got"
        raise _bad("call_id_empty", f"{text} an empty string instead.", where, "empty_string")
    if len(call_id) > ID_MAX:
        text = (
            f"Invalid '{where}': string too long. Expected a string with maximum length {ID_MAX}, "
            f"but got a string with length {len(call_id)} instead."
        )
        raise _bad("call_id_long", text, where, "string_above_max_length")
    if not ID.match(call_id):
        text = f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_.:|-]+$'."
        raise _bad("call_id_pattern", text, where, "invalid_value")


def _arguments(arguments: Any, name: str, where: str) -> None:
    # Fireworks: https://github.com/charmbracelet/crush/issues/3153; vLLM and sglang fail in their templates
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        text = (
            f"Invalid tool call in messages: tool_calls[].function.arguments for function '{name}' must be a "
            "JSON object string (or an object), got invalid JSON."
        )
        raise _bad("arguments", text, where)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _content(message: Mapping[str, Any], role: str, i: int) -> None:
    content = message.get("content")
    where = f"messages[{i}].content"
    if role != "assistant" and message.get("tool_calls"):
        text = f"Additional properties are not allowed ('tool_calls' was unexpected) - 'messages.{i}'"
        raise _bad("calls_misplaced", text, where)
    if role == "assistant" and not message.get("tool_calls") and _blank(content):
        # DeepSeek: https://github.com/MoonshotAI/kimi-code/issues/1404
        raise _bad("assistant_empty", "Invalid assistant message: content or tool_calls must be set", None)
    if content is None and role == "assistant":
        return
    if isinstance(content, list):
        _parts(content, role, i)
    elif not isinstance(content, str):
        kind = "null" if content is None else type(content).__name__
        raise _bad("content", f"Invalid value for 'content': expected a string, got {kind}.", where)
    if role != "assistant" and _blank(content):
        # Moonshot
        text = f"Invalid request: message at position {i} with role '{role}' must not be empty"
        raise _bad("content_empty", text, None)


def _parts(parts: list[Any], role: str, i: int) -> None:
    for j, part in enumerate(parts):
        kind = word(part.get("type")) if isinstance(part, Mapping) else None
        if kind not in PARTS[role]:
            allowed = ", ".join(f"'{name}'" for name in sorted(PARTS[role]))
            text = f"Invalid value: '{kind}'. Supported values are: {allowed}."
            raise _bad("part", text, f"messages[{i}].content[{j}].type", "invalid_value")
        if kind == "text" and _blank(part.get("text")):
            text = "messages: text content blocks must be non-empty"  # of gateways that pass on to anthropic
            raise _bad("part_empty", text, f"messages[{i}].content[{j}].text")


def _blank(content: Any) -> bool:
    if isinstance(content, str):
        return not content.strip()
    if isinstance(content, list):
        return all(isinstance(part, Mapping) and _blank(part.get("text", "x")) for part in content)
    return content is None


def _unicode(body: Mapping[str, Any]) -> None:
    text = json.dumps(body, ensure_ascii=False)
    if NUL.search(text):
        raise _bad("nul", "unsupported Unicode escape sequence: \\u0000 cannot be converted to text.", None)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # https://github.com/anthropics/claude-code/issues/69927
        place = f"line 1 column {error.start + 1} (char {error.start})"
        reason = f"The request body is not valid JSON: no low surrogate in string: {place}"
        raise _bad("surrogate", reason, None) from error


def _tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools")
    if tools is None:
        if body.get("tool_choice") not in (None, "none", "auto"):
            text = (
                "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
            )
            raise _bad("tool_choice", text, "tool_choice")
        return
    if not isinstance(tools, list) or not tools:
        text = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array"
        raise _bad("tools_empty", f"{text} instead.", "tools", "empty_array")
    names: set[str] = set()
    for i, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not NAME.match(name):
            where = f"tools[{i}].function.name"
            rest = "string does not match pattern. Expected a string that matches the pattern"
            raise _bad("tool_name", f"Invalid '{where}': {rest} '^[a-zA-Z0-9_-]+$'.", where, "invalid_value")
        if name in names:
            raise _bad("tool_duplicate", f"Tool names must be unique: '{name}' occurs twice.", "tools")
        names.add(name)
        _schema(function, name, i)


def _schema(function: Any, name: str, i: int) -> None:
    parameters = function.get("parameters")
    kind = parameters.get("type") if isinstance(parameters, Mapping) else None
    if parameters is not None and kind != "object":
        # https://github.com/vercel/ai/issues/7005
        text = f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
        where = f"tools[{i}].function.parameters"
        raise _bad("tool_schema", f"{text}got 'type: \"{kind}\"'.", where, "invalid_function_parameters")


def _bad(rule: str, message: str, param: str | None, code: str | None = None) -> RefusedError:
    fields = {"type": "invalid_request_error", "param": param, "code": code}
    return RefusedError(rule, message, fields=fields)

"""Refuses what ``openai-responses`` providers refuse, in their words: OpenAI's and, if stricter, gateways'.

Wordings from public reports: https://github.com/earendil-works/pi/issues/812 (output without call),
https://github.com/fish2lab/DSCodex/issues/9 (call without output), https://github.com/pipecat-ai/pipecat/pull/5023
and https://github.com/fitchmultz/pi-cursor-sdk/pull/237 (ids), https://github.com/continuedev/continue/issues/8933
(reasoning alone). Shapes from the types of the official ``openai`` package 3.57.0.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .refusal import RefusedError, word

ID_MAX: Final = 64
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
PREFIXES: Final[Mapping[str, str]] = {"function_call": "fc", "reasoning": "rs", "message": "msg"}
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
}
CALLS: Final = ("function_call", "function_call_output", "reasoning")
"""Items that may stand between a call and its output."""


KEYS: Final[Mapping[str, frozenset[str]]] = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase"}),
    "function_call": frozenset(
        {"type", "call_id", "name", "arguments", "id", "status", "caller", "namespace"}
    ),
    "function_call_output": frozenset({"type", "call_id", "output", "id", "status", "caller"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "input_text": frozenset({"type", "text", "prompt_cache_breakpoint"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
}
"""What an item or part may have; of those not named here anything."""
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
        raise _bad("no_model", "you must provide a model parameter", None)
    _unicode(body)
    _tools(body)
    items = body.get("input")
    if isinstance(items, str) and items.strip():
        return
    if not isinstance(items, list) or not items:
        text = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided."
        raise _bad("input_empty", f"Missing required parameter: {text}", "input")
    _items(items)


class _Open:
    """Calls that still need their output, and what was seen so far."""

    def __init__(self) -> None:
        self.owed: dict[str, None] = {}
        self.answered: set[str] = set()
        self.item_ids: set[str] = set()


def _items(items: list[Any]) -> None:
    state = _Open()
    prompts = 0
    for i, item in enumerate(items):
        kind = word(item.get("type", "message")) if isinstance(item, Mapping) else None
        if state.owed and kind not in CALLS:
            raise _unanswered(state)
        _known(item, kind, f"input[{i}]")
        _item_id(item, kind, i, state)
        match kind:
            case "message":
                prompts += _message(item, i)
            case "function_call":
                _call(item, i, state)
            case "function_call_output":
                _output(item, i, state)
                prompts += 1
            case "reasoning":
                _reasoning(items, i)
            case "item_reference" | "compaction":
                pass
            case _:
                text = f"Invalid value: '{kind}'. Supported values are: 'message', 'function_call', "
                rest = "'function_call_output', 'reasoning' and 'item_reference'."
                raise _bad("item", text + rest, f"input[{i}].type", "invalid_value")
    if state.owed:
        raise _unanswered(state)
    if not prompts:
        raise _bad("no_prompt", "No user query found in messages.", "input")


def _known(value: Any, kind: str | None, where: str) -> None:
    allowed = KEYS.get(kind or "")
    if allowed is None:
        return
    for key in value:
        if key not in allowed:
            at = f"{where}.{key}"
            raise _bad("unknown_parameter", f"Unknown parameter: '{at}'.", at, "unknown_parameter")


def _unanswered(state: _Open) -> RefusedError:
    call_id = next(iter(state.owed))
    return _bad("call_unanswered", f"No tool output found for function call {call_id}.", "input")


def _item_id(item: Any, kind: str | None, i: int, state: _Open) -> None:
    item_id = item.get("id") if isinstance(item, Mapping) else None
    prefix = PREFIXES.get(kind or "")
    if item_id is None or prefix is None:
        return
    where = f"input[{i}].id"
    if not isinstance(item_id, str) or not item_id.startswith(prefix):
        text = f"Invalid '{where}': '{item_id}'. Expected an ID that begins with '{prefix}'."
        raise _bad("item_id", text, where, "invalid_value")
    if len(item_id) > ID_MAX:
        raise _too_long("item_id", where, item_id)
    if item_id in state.item_ids:
        text = (
            f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
        )
        raise _bad("item_duplicate", text, "input")
    state.item_ids.add(item_id)


def _message(item: Mapping[str, Any], i: int) -> int:
    """Check one message; how many prompts it is."""
    role = str(item.get("role"))
    if role not in PARTS:
        text = (
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        )
        raise _bad("role", text, f"input[{i}].role", "invalid_value")
    content = item.get("content")
    where = f"input[{i}].content"
    if isinstance(content, str):
        content = [{"type": PARTS[role][0], "text": content}]
    if not isinstance(content, list):
        text = f"Invalid type for '{where}': expected one of an array of objects or string, but got "
        raise _bad("content", f"{text}{_kind(content)} instead.", where, "invalid_type")
    if not content:
        raise _bad("content_empty", f"Invalid '{where}': empty array.", where, "empty_array")
    for j, part in enumerate(content):
        _part(part, role, f"{where}[{j}]")
    return role == "user"


def _part(part: Any, role: str, where: str) -> None:
    kind = word(part.get("type")) if isinstance(part, Mapping) else None
    if kind not in PARTS[role]:
        allowed = " and ".join(f"'{name}'" for name in PARTS[role])
        text = f"Invalid value: '{kind}'. Supported values are: {allowed}."
        raise _bad("part", text, where, "invalid_value")
    _known(part, kind, where)
    key = "refusal" if kind == "refusal" else "text"
    if kind in {"input_text", "output_text", "refusal"} and not str(part.get(key) or "").strip():
        raise _bad("text_empty", "messages: text content blocks must be non-empty", f"{where}.{key}")
    if kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
        text = f"Missing required parameter: '{where}.image_url'."
        raise _bad("image", text, f"{where}.image_url", "missing_required_parameter")


def _call(item: Mapping[str, Any], i: int, state: _Open) -> None:
    call_id = _call_id(item.get("call_id"), i)
    if call_id in state.owed or call_id in state.answered:
        raise _bad("call_duplicate", f"Duplicate function call found with call_id {call_id}.", "input")
    name = item.get("name")
    if not isinstance(name, str) or not NAME.match(name):
        where = f"input[{i}].name"
        text = (
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
        )
        raise _bad("call_name", f"{text}'^[a-zA-Z0-9_-]+$'.", where, "invalid_value")
    _arguments(item.get("arguments"), i)
    state.owed[call_id] = None


def _call_id(call_id: Any, i: int) -> str:
    where = f"input[{i}].call_id"
    if call_id is None:
        text = f"Missing required parameter: '{where}'."
        raise _bad("call_id", text, where, "missing_required_parameter")
    if not isinstance(call_id, str) or not call_id:
        text = f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got"
        raise _bad("call_id", f"{text} an empty string instead.", where, "empty_string")
    if len(call_id) > ID_MAX:
        raise _too_long("call_id", where, call_id)
    return call_id


def _too_long(rule: str, where: str, value: str) -> RefusedError:
    text = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {ID_MAX}, "
        f"but got a string with length {len(value)} instead."
    )
    return _bad(rule, text, where, "string_above_max_length")


def _arguments(arguments: Any, i: int) -> None:
    where = f"input[{i}].arguments"
    if not isinstance(arguments, str):
        text = f"Invalid type for '{where}': expected a string, but got {_kind(arguments)} instead."
        raise _bad("arguments", text, where, "invalid_type")
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        # of gateways that pass on to a chat provider: https://github.com/charmbracelet/crush/issues/3153
        raise _bad("arguments", f"Invalid '{where}': must be a JSON object string, got invalid JSON.", where)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _output(item: Mapping[str, Any], i: int, state: _Open) -> None:
    call_id = _call_id(item.get("call_id"), i)
    if call_id in state.answered:
        raise _bad(
            "result_duplicate", f"Duplicate function call output found with call_id {call_id}.", "input"
        )
    if call_id not in state.owed:
        text = f"No tool call found for function call output with call_id {call_id}."
        raise _bad("result_orphan", text, "input")
    output = item.get("output")
    where = f"input[{i}].output"
    if isinstance(output, list):
        for j, part in enumerate(output):
            _part(part, "user", f"{where}[{j}]")
    elif not isinstance(output, str):
        text = f"Invalid type for '{where}': expected one of a string or array of objects, but got "
        raise _bad("output", f"{text}{_kind(output)} instead.", where, "invalid_type")
    del state.owed[call_id]
    state.answered.add(call_id)


def _reasoning(items: list[Any], i: int) -> None:
    item = items[i]
    if not isinstance(item.get("summary"), list):
        text = f"Missing required parameter: 'input[{i}].summary'."
        raise _bad("reasoning", text, f"input[{i}].summary", "missing_required_parameter")
    following = items[i + 1] if i + 1 < len(items) else None
    kind = word(following.get("type", "message")) if isinstance(following, Mapping) else None
    own = kind in {"function_call", "reasoning"} or (
        kind == "message" and isinstance(following, Mapping) and following.get("role") == "assistant"
    )
    if not own:
        text = (
            f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        )
        raise _bad("reasoning_alone", text, "input")


def _tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        text = "Invalid type for 'tools': expected an array of objects, but got "
        raise _bad("tools", f"{text}{_kind(tools)} instead.", "tools", "invalid_type")
    names: set[str] = set()
    for i, tool in enumerate(tools or []):
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            continue  # a tool of the provider's own
        name = tool.get("name")
        where = f"tools[{i}].name"
        if not isinstance(name, str) or not name:
            text = f"Missing required parameter: '{where}'."
            raise _bad("tool_name", text, where, "missing_required_parameter")
        if not NAME.match(name):
            rest = "string does not match pattern. Expected a string that matches the pattern"
            raise _bad("tool_name", f"Invalid '{where}': {rest} '^[a-zA-Z0-9_-]+$'.", where, "invalid_value")
        if name in names:
            raise _bad("tool_duplicate", f"Tool names must be unique: '{name}' occurs twice.", "tools")
        names.add(name)
        parameters = tool.get("parameters")
        kind = parameters.get("type") if isinstance(parameters, Mapping) else None
        if parameters is not None and kind != "object":
            text = (
                f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
            )
            at = f"tools[{i}].parameters"
            raise _bad("tool_schema", f"{text}got 'type: \"{kind}\"'.", at, "invalid_function_parameters")
    if not body.get("tools") and body.get("tool_choice") not in (None, "none", "auto"):
        text = "Tool choice is only allowed when 'tools' are specified."
        raise _bad("tool_choice", text, "tool_choice")


def _unicode(body: Mapping[str, Any]) -> None:
    text = json.dumps(body, ensure_ascii=False)
    if NUL.search(text):
        raise _bad("nul", "unsupported Unicode escape sequence: \\u0000 cannot be converted to text.", None)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = f"line 1 column {error.start + 1} (char {error.start})"
        reason = f"The request body is not valid JSON: no low surrogate in string: {place}"
        raise _bad("surrogate", reason, None) from error


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer"}
    return "null" if value is None else names.get(type(value), "a number")


def _bad(rule: str, message: str, param: str | None, code: str | None = None) -> RefusedError:
    return RefusedError(rule, message, fields={"type": "invalid_request_error", "param": param, "code": code})

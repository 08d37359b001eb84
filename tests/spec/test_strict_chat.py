"""Requests that a strict gateway refuses as openai-chat providers do, and those that it lets pass."""
# ruff: noqa: E501 - wordings of providers are quoted whole

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from gateway_client import ask, post_bytes

from lockstitch.testing.gateway import Gateway, running_gateway


def chat(*messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def calls(*ids: Any, **function: Any) -> dict[str, Any]:
    fields = {"name": "add", "arguments": "{}", **function}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": i, "type": "function", "function": fields} for i in ids],
    }


def result(call_id: Any, content: Any = "3") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(name: Any = "add", parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


ACCEPTED: dict[str, dict[str, Any]] = {
    "a prompt": chat(user()),
    "calls and results in any order": chat(user(), calls("a", "b"), result("b"), result("a"), user()),
    "an unfinished exchange answered at the end": chat(user(), calls("a"), result("a")),
    "a system prompt and parts": chat(
        {"role": "system", "content": "s"},
        user([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
    ),
    "text beside calls": chat(user(), {**calls("a"), "content": "so"}, result("a")),
    "tools": chat(user(), tools=[tool()], tool_choice="auto"),
}

ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
OWED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no model": ({"messages": [user()]}, "no_model", "you must provide a model parameter"),
    "no messages": ({"model": "m"}, "messages_missing", "Missing required parameter: 'messages'."),
    "empty messages": (
        chat(),
        "messages_empty",
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ),
    "a result without a call": (chat(user(), result("a")), "result_orphan", ORPHAN),
    "a result behind another prompt": (
        chat(user(), calls("a"), result("a"), user(), result("a")),
        "result_orphan",
        ORPHAN,
    ),
    "a call without a result, at the end": (
        chat(user(), calls("a", "b"), result("a")),
        "call_unanswered",
        OWED + "b",
    ),
    "a call without a result, in the middle": (
        chat(user(), calls("a", "b"), user()),
        "call_unanswered",
        OWED + "a, b",
    ),
    "two results for one call": (
        chat(user(), calls("a"), result("a"), result("a")),
        "result_duplicate",
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a' in messages.",
    ),
    "a result without an id": (
        chat(user(), calls("a"), {"role": "tool", "content": "3"}),
        "result_id",
        "Missing required parameter: 'messages[2].tool_call_id'.",
    ),
    "an id used twice": (
        chat(user(), calls("a"), result("a"), calls("a"), result("a")),
        "call_duplicate",
        "Invalid 'messages[3].tool_calls[0].id': Duplicate value for tool call id 'a'.",
    ),
    "an empty id": (
        chat(user(), calls(""), result("")),
        "call_id_empty",
        "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an "
        "empty string instead.",
    ),
    "an id that is too long": (
        chat(user(), calls("a" * 41), result("a" * 41)),
        "call_id_long",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got "
        "a string with length 41 instead.",
    ),
    "an id with a space": (
        chat(user(), calls("a b"), result("a b")),
        "call_id_pattern",
        "Invalid 'messages[1].tool_calls[0].id': string does not match pattern '^[a-zA-Z0-9_.:|-]+$'.",
    ),
    "a call without a name": (
        chat(user(), calls("a", name=""), result("a")),
        "call_name",
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that "
        "matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ),
    "arguments that are cut": (
        chat(user(), calls("a", arguments='{"a'), result("a")),
        "arguments",
        "Invalid tool call in messages: tool_calls[].function.arguments for function 'add' must be a JSON object "
        "string (or an object), got invalid JSON.",
    ),
    "arguments that are NaN": (
        chat(user(), calls("a", arguments='{"a":NaN}'), result("a")),
        "arguments",
        "Invalid tool call in messages: tool_calls[].function.arguments for function 'add' must be a JSON object "
        "string (or an object), got invalid JSON.",
    ),
    "no calls in a list of them": (
        chat(user(), {"role": "assistant", "content": "x", "tool_calls": []}),
        "calls_empty",
        "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead.",
    ),
    "a call that is none": (
        chat(user(), {"role": "assistant", "tool_calls": [{"id": "a"}]}),
        "call_shape",
        "Missing required parameter: 'messages[1].tool_calls[0].type'.",
    ),
    "calls of a user": (
        chat({**user(), "tool_calls": [1]}),
        "calls_misplaced",
        "Additional properties are not allowed ('tool_calls' was unexpected) - 'messages.0'",
    ),
    "an unknown role": (
        chat(user(), {"role": "robot", "content": "x"}),
        "role",
        "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "
        "'developer'.",
    ),
    "an assistant that says nothing": (
        chat(user(), {"role": "assistant", "content": " "}),
        "assistant_empty",
        "Invalid assistant message: content or tool_calls must be set",
    ),
    "a blank prompt": (
        chat(user("\n")),
        "content_empty",
        "Invalid request: message at position 0 with role 'user' must not be empty",
    ),
    "a prompt without parts": (
        chat(user([])),
        "content_empty",
        "Invalid request: message at position 0 with role 'user' must not be empty",
    ),
    "a blank part": (
        chat(user([{"type": "text", "text": "x"}, {"type": "text", "text": ""}])),
        "part_empty",
        "messages: text content blocks must be non-empty",
    ),
    "content that is null": (
        chat(user(), calls("a"), result("a", None)),
        "content",
        "Invalid value for 'content': expected a string, got null.",
    ),
    "an unknown part": (
        chat(user([{"type": "tool_result"}])),
        "part",
        "Invalid value: 'tool_result'. Supported values are: 'file', 'image_url', 'input_audio', 'text'.",
    ),
    "only a system prompt": (
        chat({"role": "system", "content": "s"}),
        "no_prompt",
        "No user query found in messages.",
    ),
    "a NUL": (
        chat(user("a\0b")),
        "nul",
        "unsupported Unicode escape sequence: \\u0000 cannot be converted to text.",
    ),
    "a lone surrogate": (
        chat(user("\ud83d")),
        "surrogate",
        "The request body is not valid JSON: no low surrogate in string: line 1 column 58 (char 57)",
    ),
    "a choice without tools": (
        chat(user(), tool_choice="required"),
        "tool_choice",
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    "no tools in a list of them": (
        chat(user(), tools=[]),
        "tools_empty",
        "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ),
    "a tool name with a space": (
        chat(user(), tools=[tool("a b")]),
        "tool_name",
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the "
        "pattern '^[a-zA-Z0-9_-]+$'.",
    ),
    "a tool twice": (
        chat(user(), tools=[tool(), tool()]),
        "tool_duplicate",
        "Tool names must be unique: 'add' occurs twice.",
    ),
    "a schema that is no object's": (
        chat(user(), tools=[tool(parameters={"type": "string"})]),
        "tool_schema",
        "Invalid schema for function 'add': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
    ),
}


@pytest.fixture(scope="module")
def strict() -> Iterator[Gateway]:
    with running_gateway({"then": "fine"}, strict="openai-chat") as gateway:
        yield gateway


@pytest.mark.parametrize("name", ACCEPTED)
def test_strict_accepts(name: str, strict: Gateway) -> None:
    reply = ask(strict, post_bytes(ACCEPTED[name]))
    assert (reply.status, reply.body) == (200, reply.body)


@pytest.mark.parametrize("name", REFUSED)
def test_strict_refuses_in_the_providers_words(name: str, strict: Gateway) -> None:
    body, rule, message = REFUSED[name]
    reply = ask(strict, post_bytes(body))
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["message"], error["type"]) == (400, message, "invalid_request_error")
    assert strict.requests[-1]["refused"] == {"rule": rule, "message": message}


WORDINGS: dict[str, tuple[int, bytes]] = {
    "opaque": (
        400,
        b'{"error":{"message":"Request declined (ref 7f3a).","type":"upstream_error","param":null,"code":"E1047"}}',
    ),
    "bodyless": (400, b""),
    "server-error": (
        500,
        b'{"error":{"message":"Internal Server Error","type":"server_error","param":null,"code":null}}',
    ),
}


@pytest.mark.parametrize("name", WORDINGS)
def test_a_refusal_in_other_words_uses_up_no_answer(name: Any) -> None:
    with running_gateway(["fine"], strict="openai-chat", wording=name) as gateway:
        reply = ask(gateway, post_bytes(chat(user(), result("a"))))
        assert (reply.status, reply.body) == WORDINGS[name]
        assert gateway.requests[0]["refused"]["rule"] == "result_orphan"
        assert ask(gateway).status == 200

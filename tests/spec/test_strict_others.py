"""Requests that a strict gateway refuses as the providers of the other three protocols do."""
# ruff: noqa: E501 - wordings of providers are quoted whole

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from gateway_client import ask, post_bytes

from lockstitch import lint, repair
from lockstitch.schema.errors import CallerError
from lockstitch.testing.gateway import running_gateway
from lockstitch.testing.strict import CHECKERS

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
}


def refused(dialect: str, body: Mapping[str, Any]) -> tuple[str, str] | None:
    refusal = CHECKERS[dialect](body, PATHS[dialect])
    return None if refusal is None else (refusal.rule, refusal.message.strip())


# --- anthropic-messages


def claude(*messages: Any, **more: Any) -> dict[str, Any]:
    tools = [{"name": "add", "input_schema": {"type": "object"}}]
    return {"model": "m", "max_tokens": 9, "messages": list(messages), "tools": tools, **more}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) if content else "hi"}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def use(call_id: Any = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "add", "input": {}, **more}


def result(call_id: Any = "t1", content: Any = "3") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MARK = {"cache_control": {"type": "ephemeral"}}
ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}}

A_ACCEPTED: dict[str, dict[str, Any]] = {
    "a prompt": claude(user()),
    "calls and results, then more of the user": claude(
        user(), assistant(text("so"), use("a"), use("b")), user(result("b"), result("a"), text("go on"))
    ),
    "thinking on, with its block": claude(user(), assistant(THOUGHT, use()), user(result()), **ON),
    "thinking on, in a new turn": claude(
        user(), assistant(use()), user(result()), assistant(text("3")), user(), **ON
    ),
    "four marks": claude(user(*[text("x", **MARK)] * 4)),
    "a result without content": claude(user(), assistant(use()), user(result(content=None))),
}
OWED = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a "
    "corresponding `tool_result` block in the next message."
)
DEEP: Any = []
for _ in range(3000):
    DEEP = [DEEP]

A_REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "tools that are no list": (claude(user(), tools=True), "tools", "tools: Input should be a valid list"),
    "nested without end": (
        claude(user(), assistant(use(input={"a": DEEP})), user(result())),
        "nesting",
        "The request body is not valid JSON: recursion limit exceeded",
    ),
    "no limit": ({"model": "m", "messages": [user()]}, "missing", "max_tokens: Field required"),
    "a limit of none": (
        claude(user(), max_tokens=0),
        "max_tokens",
        "max_tokens: Input should be greater than or equal to 1",
    ),
    "no messages": (claude(), "messages_empty", "messages: at least one message is required"),
    "a system message in the middle": (
        claude(user(), {"role": "system", "content": "x"}),
        "role",
        "messages.1.role: Input should be 'user' or 'assistant'",
    ),
    "an assistant first": (
        claude(assistant(text("x")), user()),
        "first_role",
        'messages: first message must use the "user" role',
    ),
    "two users in a row": (
        claude(user(), user()),
        "role_order",
        'messages: roles must alternate between "user" and "assistant"',
    ),
    "an assistant last": (
        claude(user(), assistant(text("I"))),
        "prefill",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "a call without a result at the end": (
        claude(user(), assistant(use())),
        "call_unanswered",
        "messages.1: " + OWED.format("t1"),
    ),
    "a call without a result in the middle": (
        claude(user(), assistant(use("a"), use("b")), user(result("a"))),
        "call_unanswered",
        "messages.1: " + OWED.format("b"),
    ),
    "a result behind text": (
        claude(user(), assistant(use()), user(text("wait"), result())),
        "call_unanswered",
        "messages.1: " + OWED.format("t1"),
    ),
    "a result without a call": (
        claude(user(), assistant(text("x")), user(result("t9"))),
        "result_orphan",
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t9. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message.",
    ),
    "two results for one call": (
        claude(user(), assistant(use()), user(result(), result())),
        "result_duplicate",
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1",
    ),
    "an id used twice": (
        claude(user(), assistant(use()), user(result()), assistant(use()), user(result())),
        "call_duplicate",
        "messages: `tool_use` ids must be unique",
    ),
    "an id with a colon": (
        claude(user(), assistant(use("Bash:1")), user(result("Bash:1"))),
        "call_id",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "a call without a name": (
        claude(user(), assistant(use(name="")), user(result())),
        "call_name",
        "messages.1.content.0.tool_use.name: String should have at least 1 character",
    ),
    "input that is text": (
        claude(user(), assistant(use(input="{}")), user(result())),
        "input",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "empty text": (
        claude(user(text(""))),
        "text_empty",
        "messages: text content blocks must be non-empty",
    ),
    "blank text": (
        claude(user(text(" \n"))),
        "text_blank",
        "messages: text content blocks must contain non-whitespace text",
    ),
    "a mark on empty text": (
        claude(user(text("x"), text("", **MARK))),
        "text_empty",
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "empty text in a result": (
        claude(user(), assistant(use()), user(result(content=[text("")]))),
        "text_empty",
        "messages: text content blocks must be non-empty",
    ),
    "no content": (
        claude({"role": "user", "content": []}),
        "content_empty",
        "messages.0: user messages must have non-empty content",
    ),
    "no content of an assistant": (
        claude(user(), assistant(), user()),
        "content_empty",
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "five marks": (
        claude(user(*[text("x", **MARK)] * 5)),
        "cache_marks",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "thinking without a signature": (
        claude(user(), assistant({**THOUGHT, "signature": ""}, text("x")), user()),
        "signature",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "thinking on, and a tool exchange that lost it": (
        claude(user(), assistant(use()), user(result()), **ON),
        "thinking_missing",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
        "and `tool_result` blocks).",
    ),
    "thinking last": (
        claude(user(), assistant(THOUGHT), user()),
        "thinking_last",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "an image that is too large": (
        claude(
            user(
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "A" * (5 * 1024 * 1024 + 4),
                    },
                }
            )
        ),
        "image_size",
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
    ),
    "calls, and no tools": (
        {**claude(user(), assistant(use()), user(result())), "tools": []},
        "tools_missing",
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    ),
    "a choice without tools": (
        {**claude(user(), tool_choice={"type": "any"}), "tools": []},
        "tool_choice",
        "tool_choice: tools must be defined when tool_choice is given",
    ),
    "a tool name with a space": (
        claude(user(), tools=[{"name": "a b", "input_schema": {"type": "object"}}]),
        "tool_name",
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "text that is none": (
        claude(user({"type": "text"})),
        "text",
        "messages.0.content.0.text: Input should be a valid string",
    ),
    "content that is none": (
        claude({"role": "user", "content": None}),
        "content",
        "messages.0.content: Input should be a valid list",
    ),
    "a call of a user": (
        claude(user(use())),
        "block",
        "messages.0.content.0: Input tag 'tool_use' found using 'type' does not match any of the expected tags: "
        "'document', 'image', 'search_result', 'text', 'tool_result'",
    ),
    "a call within a result": (
        claude(user(), assistant(use()), user(result(content=[use()]))),
        "result_content",
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' does not match any of the "
        "expected tags",
    ),
    "a result without an id": (
        claude(user(), assistant(use()), user(result(None))),
        "result_id",
        "messages.2.content.0.tool_result.tool_use_id: Field required",
    ),
    "an image without a source": (
        claude(user({"type": "image"})),
        "image",
        "messages.0.content.0.image.source: Field required",
    ),
    "an image in the system prompt": (
        claude(user(), system=[{"type": "image"}]),
        "system",
        "system.0.type: Input should be 'text'",
    ),
    "a tool twice": (
        claude(user(), tools=[{"name": "a", "input_schema": {"type": "object"}}] * 2),
        "tool_duplicate",
        "tools: Tool names must be unique.",
    ),
    "a schema that is no object's": (
        claude(user(), tools=[{"name": "a", "input_schema": {"type": "string"}}]),
        "tool_schema",
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "a lone surrogate": (
        claude(user(text("\ud83d"))),
        "surrogate",
        "The request body is not valid JSON: no low surrogate in string: line 1 column 101 (char 100)",
    ),
}

# --- openai-responses


def responses(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **more}


def call(call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}", **more}


def output(call_id: Any = "c1", value: Any = "3") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
HI = {"role": "user", "content": "hi"}
R_ACCEPTED: dict[str, dict[str, Any]] = {
    "a string": {"model": "m", "input": "hi"},
    "calls and outputs in any order": responses(HI, call("a"), call("b"), output("b"), output("a")),
    "reasoning before a call": responses(HI, REASONING, call(id="fc_1"), output()),
    "reasoning before a message": responses(
        HI,
        REASONING,
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "content": [{"type": "output_text", "text": "x"}],
        },
        HI,
    ),
    "output as parts": responses(HI, call(), output(value=[{"type": "input_text", "text": "3"}])),
}
R_REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "tools that are no list": (
        responses(HI, tools=5),
        "tools",
        "Invalid type for 'tools': expected an array of objects, but got an integer instead.",
    ),
    "nested without end": (
        responses(HI, tools=[{"type": "function", "name": "a", "parameters": {"type": "object", "x": DEEP}}]),
        "nesting",
        "We could not parse the JSON body of your request.",
    ),
    "no input": (
        responses(),
        "input_empty",
        "Missing required parameter: One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided.",
    ),
    "no model": ({"input": "hi"}, "no_model", "you must provide a model parameter"),
    "another protocol's cache mark": (
        responses({"role": "user", "content": [{"type": "input_text", "text": "x", **MARK}]}),
        "unknown_parameter",
        "Unknown parameter: 'input[0].content[0].cache_control'.",
    ),
    "content that is null": (
        responses({"role": "user", "content": None}),
        "content",
        "Invalid type for 'input[0].content': expected one of an array of objects or string, but got null instead.",
    ),
    "no parts": (
        responses({"role": "user", "content": []}),
        "content_empty",
        "Invalid 'input[0].content': empty array.",
    ),
    "an image without a source": (
        responses({"role": "user", "content": [{"type": "input_image"}]}),
        "image",
        "Missing required parameter: 'input[0].content[0].image_url'.",
    ),
    "reasoning without a summary": (
        responses(HI, {"type": "reasoning", "id": "rs_1"}, call(), output()),
        "reasoning",
        "Missing required parameter: 'input[1].summary'.",
    ),
    "a choice without tools": (
        responses(HI, tool_choice="required"),
        "tool_choice",
        "Tool choice is only allowed when 'tools' are specified.",
    ),
    "a tool twice": (
        responses(HI, tools=[{"type": "function", "name": "add"}] * 2),
        "tool_duplicate",
        "Tool names must be unique: 'add' occurs twice.",
    ),
    "a lone surrogate": (
        responses({"role": "user", "content": "\ud83d"}),
        "surrogate",
        "The request body is not valid JSON: no low surrogate in string: line 1 column 55 (char 54)",
    ),
    "an output without a call": (
        responses(HI, output()),
        "result_orphan",
        "No tool call found for function call output with call_id c1.",
    ),
    "a call without an output": (
        responses(HI, call()),
        "call_unanswered",
        "No tool output found for function call c1.",
    ),
    "a prompt between a call and its output": (
        responses(HI, call(), HI, output()),
        "call_unanswered",
        "No tool output found for function call c1.",
    ),
    "two outputs": (
        responses(HI, call(), output(), output()),
        "result_duplicate",
        "Duplicate function call output found with call_id c1.",
    ),
    "a call twice": (
        responses(HI, call(), output(), call(), output()),
        "call_duplicate",
        "Duplicate function call found with call_id c1.",
    ),
    "an empty id": (
        responses(HI, call(""), output("")),
        "call_id",
        "Invalid 'input[1].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.",
    ),
    "an id that is too long": (
        responses(HI, call("c" * 65), output("c" * 65)),
        "call_id",
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    ),
    "an item id of another kind": (
        responses(HI, call(id="call_1"), output()),
        "item_id",
        "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
    ),
    "an item id twice": (
        responses(HI, call("a", id="fc_1"), call("b", id="fc_1"), output("a"), output("b")),
        "item_duplicate",
        "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
    ),
    "a call without a name": (
        responses(HI, call(name=""), output()),
        "call_name",
        "Invalid 'input[1].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ),
    "arguments as an object": (
        responses(HI, call(arguments={}), output()),
        "arguments",
        "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
    ),
    "arguments that are cut": (
        responses(HI, call(arguments="{"), output()),
        "arguments",
        "Invalid 'input[1].arguments': must be a JSON object string, got invalid JSON.",
    ),
    "output that is null": (
        responses(HI, call(), output(value=None)),
        "output",
        "Invalid type for 'input[2].output': expected one of a string or array of objects, but got null instead.",
    ),
    "reasoning alone": (
        responses(HI, REASONING, HI),
        "reasoning_alone",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "input text of an assistant": (
        responses(HI, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "part",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    "blank text": (
        responses({"role": "user", "content": " "}),
        "text_empty",
        "messages: text content blocks must be non-empty",
    ),
    "an unknown role": (
        responses({"role": "tool", "content": "x"}),
        "role",
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    ),
    "an unknown item": (
        responses(HI, {"type": "tool_result"}),
        "item",
        "Invalid value: 'tool_result'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning' and 'item_reference'.",
    ),
    "no prompt": (
        responses({"role": "system", "content": "x"}),
        "no_prompt",
        "No user query found in messages.",
    ),
    "a tool in chat's shape": (
        responses(HI, tools=[{"type": "function", "function": {"name": "add"}}]),
        "tool_name",
        "Missing required parameter: 'tools[0].name'.",
    ),
    "a schema that is no object's": (
        responses(HI, tools=[{"type": "function", "name": "add", "parameters": {"type": "string"}}]),
        "tool_schema",
        "Invalid schema for function 'add': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
    ),
    "a NUL": (
        responses({"role": "user", "content": "a\0"}),
        "nul",
        "unsupported Unicode escape sequence: \\u0000 cannot be converted to text.",
    ),
}

# --- gemini


def gemini(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"contents": list(contents), **more}


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def fcall(name: str = "add", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}}, "thoughtSignature": "c2ln", **more}


def fresult(name: str = "add", response: Any = None) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": 3} if response is None else response}}


ASK = content("user", {"text": "hi"})
G_ACCEPTED: dict[str, dict[str, Any]] = {
    "a prompt": gemini(ASK),
    "calls and responses": gemini(
        ASK, content("model", fcall(), fcall()), content("user", fresult(), fresult())
    ),
    "text beside the responses": gemini(
        ASK, content("model", {"text": "so"}, fcall()), content("user", fresult(), {"text": "go on"})
    ),
    "an unsigned call of an earlier turn": gemini(
        ASK,
        content("model", {"functionCall": {"name": "add", "args": {}}}),
        content("user", fresult()),
        content("model", {"text": "3"}),
        ASK,
    ),
    "any schema where any is allowed": gemini(
        ASK,
        tools=[
            {
                "functionDeclarations": [
                    {
                        "name": "a",
                        "parametersJsonSchema": {"type": "object", "additionalProperties": False},
                    }
                ]
            }
        ],
    ),
}
COUNT = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
PLACE = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
G_REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "tools that are no list": (
        gemini(ASK, tools="read"),
        "tools",
        "Invalid value at 'tools' (type.googleapis.com/google.ai.generativelanguage.v1beta.Tool)",
    ),
    "a tool that is no object": (
        gemini(ASK, tools=["read"]),
        "tools",
        "Invalid value at 'tools[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Tool)",
    ),
    "properties that are none": (
        gemini(ASK, tools=[{"functionDeclarations": [{"name": "a", "parameters": {"properties": 5}}]}]),
        "tool_schema",
        "Invalid value at 'tools[0].function_declarations[0].parameters.properties' "
        "(type.googleapis.com/google.ai.generativelanguage.v1beta.Schema.PropertiesEntry)",
    ),
    "nested without end": (
        gemini(content("user", {"text": "x", "partMetadata": DEEP})),
        "nesting",
        "Invalid JSON payload received. Message too deep.",
    ),
    "no contents": (
        gemini(),
        "contents_empty",
        "* GenerateContentRequest.contents: contents is not specified",
    ),
    "an unknown name": (
        gemini(ASK, messages=[]),
        "unknown_name",
        'Invalid JSON payload received. Unknown name "messages": Cannot find field.',
    ),
    "a role of another protocol": (
        gemini(content("assistant", {"text": "x"})),
        "role",
        "Please use a valid role: user, model.",
    ),
    "no parts": (
        gemini(content("user")),
        "parts_empty",
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
    ),
    "a part without data": (
        gemini(content("user", {})),
        "part_empty",
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field",
    ),
    "two kinds of data in one part": (
        gemini(content("user", {"text": "x", "inlineData": {}})),
        "part",
        "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'",
    ),
    "blank text": (
        gemini(content("user", {"text": " "})),
        "text_empty",
        "Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.",
    ),
    "a call first": (gemini(content("model", fcall()), content("user", fresult())), "call_place", PLACE),
    "a call behind the model's own turn": (
        gemini(ASK, content("model", {"text": "x"}), content("model", fcall()), content("user", fresult())),
        "call_place",
        PLACE,
    ),
    "fewer responses than calls": (
        gemini(ASK, content("model", fcall(), fcall()), content("user", fresult())),
        "call_unanswered",
        COUNT,
    ),
    "responses to another call": (
        gemini(ASK, content("model", fcall()), content("user", fresult("sub"))),
        "call_unanswered",
        COUNT,
    ),
    "a call without a response": (gemini(ASK, content("model", fcall()), ASK), "call_unanswered", COUNT),
    "a response without a call": (
        gemini(ASK, content("model", {"text": "x"}), content("user", fresult())),
        "result_orphan",
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    "the model last": (
        gemini(ASK, content("model", {"text": "x"})),
        "last_role",
        "Please ensure that multiturn requests ends with a user role or a function response.",
    ),
    "a call without a name": (
        gemini(ASK, content("model", fcall("")), content("user", fresult(""))),
        "name",
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.",
    ),
    "args that are text": (
        gemini(ASK, content("model", {"functionCall": {"name": "a", "args": "{"}}), ASK),
        "args",
        "Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), \"{\"",
    ),
    "a response that is text": (
        gemini(ASK, content("model", fcall()), content("user", fresult(response="3"))),
        "response",
        "Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct), \"3\"",
    ),
    "a call of this turn without its signature": (
        gemini(
            ASK, content("model", {"functionCall": {"name": "add", "args": {}}}), content("user", fresult())
        ),
        "signature",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
        "and missing thought_signature may lead to degraded model performance.",
    ),
    "a schema with a word it does not know": (
        gemini(
            ASK,
            tools=[
                {
                    "functionDeclarations": [
                        {
                            "name": "a",
                            "parameters": {
                                "type": "object",
                                "properties": {"x": {"type": "object", "additionalProperties": False}},
                            },
                        }
                    ]
                }
            ],
        ),
        "unknown_name",
        "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters.properties['x']': Cannot find field.",
    ),
    "text that is a number": (
        gemini(content("user", {"text": 3})),
        "text",
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 3",
    ),
    "an image without a type": (
        gemini(content("user", {"inlineData": {"data": "AAAA"}})),
        "image",
        "* GenerateContentRequest.contents[0].parts[0].inline_data: mime_type and data must be set.",
    ),
    "the model first": (
        gemini(content("model", {"text": "x"}), ASK),
        "first_role",
        "Please ensure that multiturn requests start with a user role.",
    ),
    "a tool twice": (
        gemini(ASK, tools=[{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}]),
        "tool_duplicate",
        "Duplicate function declaration found: a",
    ),
    "a schema that is none": (
        gemini(ASK, tools=[{"functionDeclarations": [{"name": "a", "parameters": "x"}]}]),
        "tool_schema",
        "Invalid value at 'tools[0].function_declarations[0].parameters' "
        "(type.googleapis.com/google.ai.generativelanguage.v1beta.Schema)",
    ),
    "a lone surrogate": (
        gemini(content("user", {"text": "\ud83d"})),
        "surrogate",
        "Invalid JSON payload received. Invalid UTF-16 surrogate pair.",
    ),
    "a tool whose name starts with a digit": (
        gemini(ASK, tools=[{"functionDeclarations": [{"name": "1st"}]}]),
        "tool_name",
        "* GenerateContentRequest.tools[0].function_declarations[0].name: [FIELD_INVALID] Invalid function name. Must start "
        "with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or "
        "dashes (-), with a maximum length of 64.",
    ),
}

ACCEPTED = {"anthropic-messages": A_ACCEPTED, "openai-responses": R_ACCEPTED, "gemini": G_ACCEPTED}
REFUSED = {"anthropic-messages": A_REFUSED, "openai-responses": R_REFUSED, "gemini": G_REFUSED}


@pytest.mark.parametrize(("dialect", "name"), [(d, name) for d, cases in ACCEPTED.items() for name in cases])
def test_strict_accepts(dialect: str, name: str) -> None:
    assert refused(dialect, ACCEPTED[dialect][name]) is None


@pytest.mark.parametrize(("dialect", "name"), [(d, name) for d, cases in REFUSED.items() for name in cases])
def test_strict_refuses_in_the_providers_words(dialect: str, name: str) -> None:
    body, rule, message = REFUSED[dialect][name]
    assert refused(dialect, body) == (rule, message)


@pytest.mark.parametrize("dialect", REFUSED)
def test_every_rule_has_a_case(dialect: str) -> None:
    module = sys.modules[CHECKERS[dialect].__module__]
    rules = re.findall(r'(?:_bad|RefusedError)\(\s*"(\w+)"', inspect.getsource(module))
    assert set(rules) <= {rule for _, rule, _ in REFUSED[dialect].values()}


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, float("nan"), "", "x", "user", "\ud800", [], [1], [None], [[]], [{}]),
    *({}, {"a": 1}, {"type": []}, {"type": {}}, {"role": []}, {"text": 5}, {"text": []}, DEEP),
)


def with_oddities(value: Any) -> Iterator[Any]:
    """The value with each of its parts, itself included, missing or replaced by each of ODD."""
    yield from ODD
    if isinstance(value, dict):
        for key, part in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            yield from ({**value, key: odd} for odd in with_oddities(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], odd, *value[at + 1 :]] for odd in with_oddities(part))


WHOLE: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [text("hi"), {"type": "image_url", "image_url": {"url": "u"}}]},
            {
                "role": "assistant",
                "content": "x",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": [text("3")]},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
        "tool_choice": "auto",
        "stream_options": {"include_usage": True},
    },
    "anthropic-messages": claude(
        user(
            text("hi"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "a"}},
        ),
        assistant(THOUGHT, use()),
        user(result(content=[text("3", **MARK)])),
        system=[text("s")],
        tool_choice={"type": "auto"},
        **ON,
    ),
    "openai-responses": {
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "output_text", "text": "x"}],
            },
            {"type": "function_call", "call_id": "c", "id": "fc_1", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "3"}]},
        ],
        "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}}],
        "tool_choice": "auto",
    },
    "gemini": gemini(
        content("user", {"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
        content("model", {"functionCall": {"name": "add", "args": {}}, "thoughtSignature": "s"}),
        content("user", {"functionResponse": {"name": "add", "response": {}}}),
        systemInstruction={"parts": [{"text": "s"}]},
        tools=[
            {
                "functionDeclarations": [
                    {"name": "add", "parameters": {"properties": {"a": {}}, "items": {}, "anyOf": [{}]}}
                ]
            }
        ],
    ),
}


@pytest.mark.parametrize("dialect", WHOLE)
def test_no_shape_of_a_request_breaks_a_checker(dialect: str) -> None:
    assert refused(dialect, WHOLE[dialect]) is None
    bodies = [body for body in with_oddities(WHOLE[dialect]) if isinstance(body, dict)]
    assert sum(refused(dialect, body) is not None for body in bodies) > len(bodies) / 2


@pytest.mark.parametrize("dialect", PATHS)
def test_a_request_nested_without_end_is_no_json(dialect: str) -> None:
    body = b'{"model":"m","messages":' + b"[" * 900 + b"]" * 900 + b"}"
    with running_gateway(["ok"], window=100) as gateway:
        assert ask(gateway, post_bytes(body, PATHS[dialect])).status == 400


FORMS: dict[str, tuple[Any, Any]] = {
    "anthropic-messages": (claude(), {"type": "error", "error": {"type": "invalid_request_error"}}),
    "openai-responses": (
        responses(HI, output()),
        {"error": {"type": "invalid_request_error", "param": "input", "code": None}},
    ),
    "gemini": (gemini(), {"error": {"code": 400, "status": "INVALID_ARGUMENT"}}),
}


@pytest.mark.parametrize("dialect", FORMS)
def test_a_refusal_has_the_protocols_form_over_http(dialect: str) -> None:
    body, form = FORMS[dialect]
    with running_gateway(["ok"], strict=dialect) as gateway:
        reply = ask(gateway, post_bytes(body, PATHS[dialect]))
        told = json.loads(reply.body)
        assert (reply.status, told["error"].pop("message")) == (
            400,
            gateway.requests[0]["refused"]["message"],
        )
        assert (told, gateway.left) == (form, 1)


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize(
    ("wording", "status", "text"),
    [("opaque", 400, "ref 7f3a"), ("bodyless", 400, ""), ("server-error", 500, "Internal Server Error")],
)
def test_other_wordings_hold_in_every_protocol(dialect: str, wording: Any, status: int, text: str) -> None:
    body, _ = FORMS[dialect]
    with running_gateway(["ok"], strict=dialect, wording=wording) as gateway:
        reply = ask(gateway, post_bytes(body, PATHS[dialect]))
    assert reply.status == status
    assert text in reply.body.decode()
    assert bool(reply.body) == bool(text)


@pytest.mark.parametrize("dialect", PATHS)
def test_only_the_strict_dialect_is_checked(dialect: str) -> None:
    other = next(name for name in PATHS if name != dialect)
    with running_gateway(["ok"], strict=other) as gateway:
        assert ask(gateway, post_bytes({}, PATHS[dialect])).status == 200


@pytest.mark.parametrize("dialect", WHOLE)
def test_no_shape_of_a_request_breaks_lint_and_repair(dialect: str) -> None:
    """Here because the odd requests are here: what the checkers take, the functions for users take too."""
    for body in with_oddities(WHOLE[dialect]):
        if isinstance(body, dict):
            lint(body, dialect)
            with suppress(CallerError):  # what holds no conversation at all is the caller's mistake
                repair(body, dialect)

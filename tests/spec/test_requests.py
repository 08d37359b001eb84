"""What is sent: whole requests of the protocols beside chat, and every option of each."""

from typing import Any

import pytest
from histories import assistant, call, png, result, system, tool_result, user

from lockstitch.history.repair import target_profile
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile, with_overrides
from lockstitch.providers.wire_request import WireRequest
from lockstitch.schema.blocks import (
    BlobSource,
    Image,
    Opaque,
    Reasoning,
    Replay,
    Text,
    ToolCall,
    UrlSource,
)
from lockstitch.schema.messages import Message, Options, Request, ToolSpec

SCHEMA = {"type": "object", "properties": {"p": {"type": "string"}}}
READ = ToolSpec("read", "Read a file.", SCHEMA)
NOW = ToolSpec("now", "Tell the time.", {"type": "object"})
MARK = {"cache_control": {"type": "ephemeral"}}
HISTORY = (
    user("q", png()),
    assistant("hm", call("a", arguments='{"p":"x"}'), call("b")),
    Message("tool", (tool_result("a", "ra"), tool_result("b", "rb", is_error=True))),
)


def request(
    *messages: Message, model: str = "m", tools: tuple[ToolSpec, ...] = (), **options: Any
) -> Request:
    return Request(model, messages or HISTORY, "be kind", tools, Options(**options))


def encode(name: str, given: Request) -> WireRequest:
    return dialects.encode(given, profile(name))


def test_a_whole_anthropic_request() -> None:
    wire = encode("anthropic", request(tools=(READ, NOW)))
    assert wire.path == "/v1/messages"
    assert wire.headers == {"anthropic-version": "2023-06-01"}
    assert wire.tools == ("read", "now")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    assert wire.body == {
        "model": "m",
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "be kind", **MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "q"}, image]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "hm"},
                    {"type": "tool_use", "id": "a", "name": "read", "input": {"p": "x"}},
                    {"type": "tool_use", "id": "b", "name": "read", "input": {}, **MARK},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "ra"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "rb", "is_error": True, **MARK},
                ],
            },
        ],
        "tools": [
            {"name": "read", "description": "Read a file.", "input_schema": SCHEMA},
            {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}, **MARK},
        ],
        "stream": True,
    }


def test_a_whole_responses_request() -> None:
    wire = encode("openai-responses", request(tools=(READ,)))
    assert wire.path == "/responses"
    assert wire.body == {
        "model": "m",
        "instructions": "be kind",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "q"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
                ],
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"p":"x"}'},
            {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "ra"},
            {"type": "function_call_output", "call_id": "b", "output": "rb"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Read a file.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_a_whole_gemini_request() -> None:
    wire = encode("gemini", request(model="gemini-2.5-pro", tools=(READ, NOW)))
    assert wire.path == "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert wire.body == {
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "q"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "hm"},
                    {"functionCall": {"id": "a", "name": "read", "args": {"p": "x"}}},
                    {"functionCall": {"id": "b", "name": "read", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "a", "name": "read", "response": {"output": "ra"}}},
                    {"functionResponse": {"id": "b", "name": "read", "response": {"error": "rb"}}},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Read a file.", "parametersJsonSchema": SCHEMA},
                    {"name": "now", "description": "Tell the time."},
                ]
            }
        ],
    }


Q = (user("q"),)
ANTHROPIC = {"model", "messages", "stream", "system", "tools"}
RESPONSES = {"model", "input", "stream", "store", "include", "instructions", "tools"}
GEMINI = {"contents", "systemInstruction", "tools"}
THINKING_16K = {"type": "enabled", "budget_tokens": 16_384}

OPTIONS: dict[str, tuple[str, set[str], str, dict[str, Any], dict[str, Any], int]] = {
    # name: profile, fields left aside, model, options, what they become, number of notes
    "anthropic: sampling": (
        "anthropic", ANTHROPIC, "m",
        {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ("a", " ")},
        {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["a"]}, 0,
    ),
    "anthropic: a schema": (
        "anthropic", ANTHROPIC, "m", {"response_schema": SCHEMA},
        {"max_tokens": 8192, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, 0,
    ),
    "anthropic: a choice": (
        "anthropic", ANTHROPIC, "m", {"tool_choice": "required"},
        {"max_tokens": 8192, "tool_choice": {"type": "any"}}, 0,
    ),
    "anthropic: no choice": (
        "anthropic", ANTHROPIC, "m", {"tool_choice": "none"},
        {"max_tokens": 8192, "tool_choice": {"type": "none"}}, 0,
    ),
    "anthropic: the choice of one": (
        "anthropic", ANTHROPIC, "m", {"tool_choice": "read"},
        {"max_tokens": 8192, "tool_choice": {"type": "tool", "name": "read"}}, 0,
    ),
    "anthropic: effort, where models know a budget": (
        "anthropic", ANTHROPIC, "claude-opus-4-5", {"reasoning_effort": "high"},
        {"max_tokens": 17_408, "thinking": THINKING_16K}, 0,
    ),
    "anthropic: effort, where dates look like versions": (
        "anthropic", ANTHROPIC, "claude-3-7-sonnet-20250219", {"reasoning_effort": "low"},
        {"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 1024}}, 0,
    ),
    "anthropic: effort, where models know one": (
        "anthropic", ANTHROPIC, "claude-opus-4-6", {"reasoning_effort": "high", "temperature": 1.0},
        {"max_tokens": 8192, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, 1,
    ),
    "anthropic: effort beside a schema": (
        "anthropic", ANTHROPIC, "claude-sonnet-5", {"reasoning_effort": "low", "response_schema": SCHEMA},
        {"max_tokens": 8192, "thinking": {"type": "adaptive"},
         "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"}}, 0,
    ),
    "anthropic: effort off": (
        "anthropic", ANTHROPIC, "claude-opus-4-6", {"reasoning_effort": "off"}, {"max_tokens": 8192}, 0,
    ),
    "anthropic: no thinking beside a choice": (
        "anthropic", ANTHROPIC, "claude-opus-4-5", {"reasoning_effort": "high", "tool_choice": "read"},
        {"max_tokens": 8192, "tool_choice": {"type": "tool", "name": "read"}}, 1,
    ),
    "responses: sampling": (
        "openai-responses", RESPONSES, "m",
        {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ("a",)},
        {"max_output_tokens": 9, "temperature": 0.5, "top_p": 0.9}, 1,
    ),
    "responses: effort": (
        "openai-responses", RESPONSES, "m", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}, 0,
    ),
    "responses: effort off": (
        "openai-responses", RESPONSES, "m", {"reasoning_effort": "off"}, {"reasoning": {"effort": "none"}}, 0,
    ),
    "responses: a schema": (
        "openai-responses", RESPONSES, "m", {"response_schema": SCHEMA},
        {"text": {"format": {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": False}}}, 0,
    ),
    "responses: a choice": (
        "openai-responses", RESPONSES, "m", {"tool_choice": "required"}, {"tool_choice": "required"}, 0,
    ),
    "responses: the choice of one": (
        "openai-responses", RESPONSES, "m", {"tool_choice": "read"},
        {"tool_choice": {"type": "function", "name": "read"}}, 0,
    ),
    "gemini: sampling": (
        "gemini", GEMINI, "gemini-2.5-pro",
        {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ("a", "b", "c", "d", "e", "f")},
        {"generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "topP": 0.9,
                              "stopSequences": ["a", "b", "c", "d", "e"]}}, 1,
    ),
    "gemini: effort, where models know a budget": (
        "gemini", GEMINI, "gemini-2.5-pro", {"reasoning_effort": "low"},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": True}}}, 0,
    ),
    "gemini: effort off": (
        "gemini", GEMINI, "gemini-2.5-flash", {"reasoning_effort": "off"},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, 0,
    ),
    "gemini: effort, where models know levels": (
        "gemini", GEMINI, "gemini-3-pro", {"reasoning_effort": "medium"},
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}}, 0,
    ),
    "gemini: a schema": (
        "gemini", GEMINI, "gemini-2.5-pro", {"response_schema": SCHEMA},
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}}, 0,
    ),
    "gemini: a choice": (
        "gemini", GEMINI, "gemini-2.5-pro", {"tool_choice": "required"},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, 0,
    ),
    "gemini: no choice": (
        "gemini", GEMINI, "gemini-2.5-pro", {"tool_choice": "none"},
        {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}, 0,
    ),
    "gemini: the choice of one": (
        "gemini", GEMINI, "gemini-2.5-pro", {"tool_choice": "read"},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}}}, 0,
    ),
    "anthropic: fields as they are": (
        "anthropic", ANTHROPIC, "m", {"extra": {"max_tokens": 5, "metadata": {}, "messages": []}},
        {"max_tokens": 5, "metadata": {}}, 0,
    ),
    "responses: fields as they are": (
        "openai-responses", RESPONSES, "m", {"extra": {"store": True, "metadata": {}}}, {"metadata": {}}, 0,
    ),
    "gemini: fields as they are": (
        "gemini", GEMINI, "gemini-2.5-pro", {"extra": {"safetySettings": [], "contents": []}},
        {"safetySettings": []}, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_options_become_these_fields(case: str) -> None:
    name, aside, model, options, expected, notes = OPTIONS[case]
    wire = encode(name, request(*Q, model=model, tools=(READ,), **options))
    assert {key: value for key, value in wire.body.items() if key not in aside} == expected
    assert len(wire.notes) == notes


def test_an_option_that_a_profile_lacks_is_left_out_with_a_note() -> None:
    target = with_overrides(profile("anthropic"), unsupported=("temperature", "stop"))
    wire = dialects.encode(request(*Q, temperature=0.5, stop=("a",), top_p=0.1), target)
    assert "temperature" not in wire.body
    assert "stop_sequences" not in wire.body
    assert wire.body["top_p"] == 0.1
    assert [note.detail for note in wire.notes] == [
        "anthropic does not take temperature",
        "anthropic does not take stop",
    ]


def test_leading_system_messages_join_the_system_prompt() -> None:
    messages = (system("1"), system("2"), user("q"))
    anthropic = encode("anthropic", request(*messages)).body["system"]
    assert [block["text"] for block in anthropic] == ["be kind", "1", "2"]
    gemini = encode("gemini", request(*messages)).body["systemInstruction"]
    assert gemini == {"parts": [{"text": "be kind"}, {"text": "1"}, {"text": "2"}]}


def test_models_without_reasoning_are_not_asked_for_it() -> None:
    assert "include" not in encode("openai-responses", request(*Q, model="gpt-4.1")).body


def test_a_mark_stands_on_the_last_block_that_can_carry_one() -> None:
    thought = Reasoning(text="hm", signature="s")
    messages = encode("anthropic", request(user("q"), assistant("x", thought), user("r"))).body["messages"]
    assert messages[0] == {"role": "user", "content": "q"}
    assert messages[1]["content"] == [
        {"type": "text", "text": "x", **MARK},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
    ]
    assert messages[2]["content"] == [{"type": "text", "text": "r", **MARK}]


def test_marks_of_a_history_give_way_to_our_own() -> None:
    marked = Text(text="q", extra={**MARK, "citations": []})
    messages = encode("anthropic", request(Message("user", (marked,)), assistant("x"), user("r"))).body[
        "messages"
    ]
    assert messages[0]["content"] == [{"citations": [], "type": "text", "text": "q"}]


def test_reasoning_in_each_protocols_form() -> None:
    sealed = Reasoning(text="sum", redacted="enc")
    signed = Reasoning(text="hm", signature="s")
    plain = Reasoning(text="hm")
    answer = assistant(sealed, "x")
    assert encode("openai-responses", request(user("q"), answer, user("r"))).body["input"][1] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "sum"}],
        "encrypted_content": "enc",
    }
    redacted = encode("anthropic", request(user("q"), answer, user("r"))).body["messages"][1]["content"][0]
    assert redacted == {"type": "redacted_thinking", "data": "enc"}
    gemini = encode("gemini", request(user("q"), assistant(signed, plain, "x"), user("r"))).body["contents"][
        1
    ]
    assert gemini["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "s"},
        {"text": "hm", "thought": True},
        {"text": "x"},
    ]


def test_gemini_3_gets_a_signature_for_the_first_call_of_a_step() -> None:
    own = ToolCall(
        id="b", name="read", arguments="{}", replay=Replay("gemini", "m", {"thought_signature": "s"})
    )
    unsigned = encode(
        "gemini", request(user("q"), assistant(call("a"), call("c")), result("a"), model="gemini-3-pro")
    )
    signed = encode(
        "gemini", request(user("q"), assistant(own, call("c")), result("b"), model="gemini-3-pro")
    )
    older = encode("gemini", request(user("q"), assistant(call("a")), result("a"), model="gemini-2.5-pro"))
    signatures = [
        [part.get("thoughtSignature") for part in wire.body["contents"][1]["parts"]]
        for wire in (unsigned, signed, older)
    ]
    assert signatures == [["skip_thought_signature_validator", None], ["s", None], [None]]


def test_deepseeks_responses_repeat_the_reasoning_before_each_call() -> None:
    target = target_profile("openai-responses", "deepseek")
    thoughts = (Reasoning(text="1"), Reasoning(text="2"))
    given = request(user("q"), assistant(*thoughts, "x", call("a"), call("b")), result("a"), result("b"))
    items = dialects.encode(given, target).body["input"]
    assert [item["type"].removeprefix("function_") for item in items] == [
        *("message", "reasoning", "reasoning", "message", "call"),
        *("reasoning", "reasoning", "call", "call_output", "call_output"),
    ]
    assert [item["content"][0]["text"] for item in items[5:7]] == ["1", "2"]


ODD = (
    Message("user", (Opaque("nowhere", 7), Image(media_type="image/png", source=BlobSource("ab", 3)))),
    Message("user", (Image(media_type="image/png", source=UrlSource("https://example.com/a.png")),)),
    assistant(ToolCall(id="a", name="read", arguments="{"), Opaque("nowhere", {"x": 1})),
    Message("tool", (Text(text="loose"),)),
    Message("system", (Reasoning(text="hm"),)),
)


@pytest.mark.parametrize("name", ["generic", "anthropic", "openai-responses", "gemini"])
def test_what_has_no_place_is_written_for_the_validator_to_name(name: str) -> None:
    wire = encode(name, request(*ODD))
    wire.encoded()
    assert dialects.violations(wire.body, wire.dialect, profile(name))

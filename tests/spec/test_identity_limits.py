"""Words that a provider writes where short ones are due: ids, names, labels, the model. Each has a limit, so
that no message, failure or note carries megabytes; text, reasoning and arguments have that of the response.
"""

import json
from typing import Any

import msgspec
import pytest
from chat_streams import body, call, delta, end, ending_of, notes_of

from lockstitch.history.decode import Decoded, decode
from lockstitch.history.project import project
from lockstitch.providers.call_slots import ID_MAX, NAME_MAX, is_signed
from lockstitch.providers.catalog import profile
from lockstitch.providers.dialects import encode, violations
from lockstitch.schema.blocks import Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message, Options, Request

HUGE = "x" * 2_000_000
SIGNED = "call_4f__thought__" + "A9z/+=" * 10_000
"""LiteLLM's id of a call of Gemini: with the signature of the thought behind it."""


def calls_in(decoded: Decoded) -> list[ToolCall]:
    return [block for block in decoded.content if isinstance(block, ToolCall)]


def anthropic(id: str, name: str) -> list[Any]:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


def responses(id: str, name: str) -> list[Any]:
    item = {"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": "{}"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return [done, {"type": "response.completed", "response": {"status": "completed", "output": [item]}}]


def gemini(id: str, name: str) -> list[Any]:
    part = {"functionCall": {"id": id, "name": name, "args": {}}}
    return [{"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}]


def chat(id: str, name: str) -> list[Any]:
    return [call(0, id, name, "{}"), *end("tool_calls")]


PROTOCOLS = {
    "openai-chat": chat,
    "anthropic-messages": anthropic,
    "openai-responses": responses,
    "gemini": gemini,
}


@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_an_id_with_a_signature_in_it_is_kept_whole(dialect: str) -> None:
    decoded = decode(body(PROTOCOLS[dialect](SIGNED, "ls")), dialect)
    assert [(one.id, one.name) for one in calls_in(decoded)] == [(SIGNED, "ls")]
    assert len(SIGNED) < ID_MAX


@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_an_id_of_megabytes_does_not_count(dialect: str) -> None:
    decoded = decode(body(PROTOCOLS[dialect](HUGE, "ls")), dialect)
    assert notes_of(decoded)["identity_too_long"] >= 1
    assert [(one.id, one.name) for one in calls_in(decoded)] == [("call_1", "ls")]
    assert len(msgspec.json.encode(decoded.to_json())) < 2000


def test_where_a_missing_id_is_refused_one_of_megabytes_is_too() -> None:
    decoded = decode(body(chat(HUGE, "ls")), "openai-chat", profile="deepseek")
    assert ending_of(decoded) == "MALFORMED_TOOL_CALL"


@pytest.mark.parametrize("dialect", PROTOCOLS)
@pytest.mark.parametrize("size", [NAME_MAX + 1, 2_000_000])
def test_a_name_that_no_tool_can_have_is_none(dialect: str, size: int) -> None:
    decoded = decode(body(PROTOCOLS[dialect]("c", HUGE[:size])), dialect)
    assert ending_of(decoded) == "MALFORMED_TOOL_CALL"
    assert len(msgspec.json.encode(decoded.to_json())) < 2000


def test_a_name_in_markup_has_the_same_limit() -> None:
    text = f'<tool_call>{{"name":"{HUGE}","arguments":{{}}}}</tool_call>'
    decoded = decode(body([delta(text), *end()]), "openai-chat", profile="vllm")
    assert ending_of(decoded) == "MALFORMED_TOOL_CALL"
    assert len(msgspec.json.encode(decoded.to_json())) < 2000


FAILING: dict[str, tuple[str, list[Any]]] = {
    "a label with a cause": ("openai-chat", [delta("", finish=f"content_filter: {HUGE}")]),
    "an error's texts": ("openai-chat", [{"error": {"message": HUGE, "code": HUGE, "type": HUGE}}]),
    "a reason why a prompt was blocked": ("gemini", [{"promptFeedback": {"blockReason": HUGE}}]),
    "a message behind a label": (
        "gemini",
        [{"candidates": [{"finishReason": "SAFETY", "finishMessage": HUGE}]}],
    ),
    "a call without a name": ("openai-chat", [call(0, HUGE[:ID_MAX], "", "{}"), *end("tool_calls")]),
    "a reason why a response is incomplete": (
        "openai-responses",
        [
            {
                "type": "response.incomplete",
                "response": {"status": "incomplete", "incomplete_details": {"reason": HUGE}},
            }
        ],
    ),
    "a type of event": ("anthropic-messages", [{"type": HUGE}, {"type": "error", "error": {"type": HUGE}}]),
    "a frame that is no JSON": ("openai-chat", [HUGE]),
    "a part of an unknown type": ("openai-chat", [delta([{"type": HUGE}]), *end()]),
    "usage that is none": ("openai-chat", [delta("", usage={"prompt_tokens": HUGE})]),
}


@pytest.mark.parametrize("name", FAILING)
def test_no_failure_and_no_note_carries_megabytes(name: str) -> None:
    dialect, events = FAILING[name]
    decoded = decode(body(events), dialect)
    assert decoded.content == ()
    assert len(msgspec.json.encode(decoded.to_json())) < 8000


def test_the_name_of_a_model_beside_many_blocks_is_short() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "index": 0}]
    chunks = [{**delta(reasoning_details=details), "model": HUGE}, {**delta("ok"), "model": HUGE}, *end()]
    decoded = decode(body(chunks), "openai-chat")
    assert len(msgspec.json.encode(decoded.content)) < 2000
    events = [{"type": "message_start", "message": {"model": HUGE}}, *anthropic("c", "ls")]
    assert len(json.dumps(decode(body(events), "anthropic-messages").to_json())) < 2000


def conversation(call_id: str) -> list[Message]:
    return [
        Message("user", (Text("Go."),)),
        Message("assistant", (ToolCall(call_id, "ls", "{}"),), provider="generic", model="m"),
        Message("tool", (ToolResult(call_id, (Text("x"),)),)),
    ]


WHOLE_IDS: dict[str, tuple[str, str, bool]] = {
    "any gateway may be LiteLLM": ("generic", "normal", True),
    "after a refusal ids are short": ("generic", "strict", False),
    "a provider with a limit of its own has none of it": ("openai", "normal", False),
    "nor has one with another protocol": ("anthropic", "normal", False),
}


@pytest.mark.parametrize("case", WHOLE_IDS)
def test_an_id_with_a_signature_goes_back_whole_where_it_may_be_looked_for(case: str) -> None:
    name, rung, whole = WHOLE_IDS[case]
    target = profile(name)
    projected = project(conversation(SIGNED), target, model="m", rung=rung)
    asked, answered = [
        block.id if isinstance(block, ToolCall) else block.call_id
        for message in projected.messages
        for block in message.content
        if isinstance(block, ToolCall | ToolResult)
    ]
    assert asked == answered
    assert (asked == SIGNED) is whole
    wire = encode(Request("m", projected.messages, "", (), Options()), target)
    assert violations(wire.body, wire.dialect, target) == []


def test_a_profile_of_ones_own_gets_them_back_in_responses_too() -> None:
    """LiteLLM signs the ids of both protocols: https://github.com/BerriAI/litellm/issues/37849."""
    target = msgspec.structs.replace(profile("openai-responses"), signed_ids=True)
    projected = project(conversation(SIGNED), target, model="m", rung="normal")
    wire = encode(Request("m", projected.messages, "", (), Options()), target)
    assert [item["call_id"] for item in wire.body["input"][1:]] == [SIGNED, SIGNED]
    assert violations(wire.body, wire.dialect, target) == []


def test_a_long_id_without_a_signature_is_still_too_long() -> None:
    (found,) = violations(
        encode(Request("m", tuple(conversation("x" * 65)), "", (), Options()), profile("generic")).body,
        "openai-chat",
        profile("generic"),
    )
    assert found.rule == "call_id_invalid"
    for odd in (f"a b{SIGNED}", "call__thought__", SIGNED + "x" * ID_MAX):
        assert not is_signed(odd)

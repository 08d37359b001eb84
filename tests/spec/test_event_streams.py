"""Streams of the event-typed protocols: recorded cases, further shapes of the same kinds, every split."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lockstitch.history.decode import Decoded, decode
from lockstitch.schema.blocks import Base64Source, Image, Opaque, Reasoning, Replay, Text, ToolCall
from lockstitch.schema.usage import Usage

PROTOCOLS = ("anthropic-messages", "openai-responses", "gemini")
RECORDED = Path(__file__).parent.parent / "recorded" / "cases" / "wire.jsonl"
CASES = {
    case["id"]: case
    for case in map(json.loads, RECORDED.read_text().splitlines())
    if case["input"]["protocol"] in PROTOCOLS
}
CODES = {
    "empty_response": {"EMPTY_RESPONSE"},
    "stream_truncated": {"STREAM_CLOSED"},
    "malformed_model_output": {"MALFORMED_TOOL_CALL", "MALFORMED_RESPONSE"},
    "overloaded": {"OVERLOADED"},
    "protocol_error": {"MALFORMED_RESPONSE", "NOT_AN_API"},
}


def body_of(events: Iterable[Any]) -> bytes:
    out = b""
    for event in events:
        if isinstance(event, dict) and "type" in event:
            out += f"event: {event['type']}\n".encode()
        out += b"data: " + (b"[DONE]" if event == "[DONE]" else json.dumps(event).encode()) + b"\n\n"
    return out


def case_body(case: dict[str, Any]) -> bytes:
    given = case["input"]
    if "raw_b64" in given:
        return b"".join(base64.b64decode(piece) for piece in given["raw_b64"])
    return body_of(given["events"])


def as_recorded(decoded: Decoded) -> dict[str, Any]:
    """What a recorded case says of an outcome."""
    calls = [
        {"id": block.id, "name": block.name, "arguments": json.loads(block.arguments or "{}")}
        if block.invalid is None
        else {"id": block.id, "name": block.name, "arguments": None, "invalid": True}
        for block in decoded.content
        if isinstance(block, ToolCall)
    ]
    said: dict[str, Any] = {
        "content": "".join(block.text for block in decoded.content if isinstance(block, Text)),
        "tool_calls": calls,
    }
    if reasoning := "".join(block.text for block in decoded.content if isinstance(block, Reasoning)):
        said["reasoning"] = reasoning
    return said


def expected_message(expected: dict[str, Any], got: dict[str, Any]) -> dict[str, Any]:
    message = expected["message"] or {"content": "", "tool_calls": []}
    wanted = {key: value for key, value in message.items() if key != "role"}
    if wanted["content"].endswith("..."):
        wanted["content"] = got["content"] if got["content"].startswith(wanted["content"][:-3]) else wanted
    for call, found in zip(wanted["tool_calls"], got["tool_calls"], strict=False):
        if call["id"] == "<synthetic>" and found["id"]:
            call["id"] = found["id"]
    return wanted


def agrees(expected: dict[str, Any], decoded: Decoded) -> bool:
    got = as_recorded(decoded)
    failure = decoded.finish.failure
    error = expected["error"]
    usage = expected.get("usage", {})
    have = decoded.usage or Usage()
    counts = {
        "input": have.input_tokens,
        "output": have.output_tokens,
        "cache_read": have.cache_read_tokens,
        "cache_write": have.cache_write_tokens,
        "context_total": have.context_tokens,
    }
    return (
        got == expected_message(expected, got)
        and decoded.finish.reason == expected["finish"]
        and (failure is None) == (error is None)
        and (
            failure is None
            or (failure.code in CODES[error["class"]] and failure.retryable is error["retryable"])
        )
        and all(counts[key] == value for key, value in usage.items())
    )


@pytest.mark.parametrize("name", CASES)
def test_recorded_case(name: str) -> None:
    case = CASES[name]
    protocol, tools = case["input"]["protocol"], case["input"].get("tools", ())
    body = case_body(case)
    whole = decode(body, protocol, tools=tools)
    one_byte = decode([body[i : i + 1] for i in range(len(body))], protocol, tools=tools)
    assert one_byte == whole
    options = case["expected"].get("one_of", [case["expected"]])
    assert any(agrees(option, whole) for option in options), whole


def start(index: int | None, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int | None, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": piece}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ending(reason: str) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


ANTHROPIC: dict[str, tuple[list[Any], tuple[Any, ...], str, str | None]] = {
    "thinking keeps its signature and stays before the answer": (
        [
            start(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="Hm"),
            delta(0, type="thinking_delta", thinking="m."),
            delta(0, type="signature_delta", signature="sig"),
            stop(0),
            start(1, type="text", text=""),
            delta(1, type="text_delta", text="Yes"),
            stop(1),
            *ending("end_turn"),
        ],
        (Reasoning(text="Hmm.", signature="sig"), Text(text="Yes")),
        "stop",
        None,
    ),
    "redacted thinking is kept as it came": (
        [
            start(0, type="redacted_thinking", data="AAA="),
            stop(0),
            start(1, type="text", text="ok"),
            stop(1),
            *ending("end_turn"),
        ],
        (Reasoning(text="", redacted="AAA="), Text(text="ok")),
        "stop",
        None,
    ),
    "input given whole at the start of a block counts if no delta comes": (
        [start(0, type="tool_use", id="t", name="ls", input={"path": "."}), stop(0), *ending("tool_use")],
        (ToolCall(id="t", name="ls", arguments='{"path":"."}'),),
        "tool_calls",
        None,
    ),
    "input given whole and again as deltas counts once": (
        [
            start(0, type="tool_use", id="t", name="ls", input={"path": "."}),
            delta(0, type="input_json_delta", partial_json='{"path":"."}'),
            stop(0),
            *ending("tool_use"),
        ],
        (ToolCall(id="t", name="ls", arguments='{"path":"."}'),),
        "tool_calls",
        None,
    ),
    "blocks that share index zero stay apart, also without arguments": (
        [
            start(0, type="text", text="a"),
            stop(0),
            start(0, type="tool_use", id="t1", name="now", input={}),
            stop(0),
            start(0, type="tool_use", id="t2", name="now", input={}),
            stop(0),
            *ending("tool_use"),
        ],
        (
            Text(text="a"),
            ToolCall(id="t1", name="now", arguments=""),
            ToolCall(id="t2", name="now", arguments=""),
        ),
        "tool_calls",
        None,
    ),
    "a block that starts twice under one id is one call": (
        [
            start(0, type="tool_use", id="t1", name="ls", input={}),
            stop(0),
            start(1, type="tool_use", id="t1", name="ls", input={}),
            delta(1, type="input_json_delta", partial_json='{"a":1}'),
            stop(1),
            *ending("tool_use"),
        ],
        (ToolCall(id="t1", name="ls", arguments='{"a":1}'),),
        "tool_calls",
        None,
    ),
    "interleaved blocks are told apart by their index": (
        [
            start(0, type="tool_use", id="t1", name="a", input={}),
            start(1, type="tool_use", id="t2", name="b", input={}),
            delta(1, type="input_json_delta", partial_json='{"y":'),
            delta(0, type="input_json_delta", partial_json='{"x":'),
            delta(1, type="input_json_delta", partial_json="2}"),
            delta(0, type="input_json_delta", partial_json="1}"),
            stop(0),
            stop(1),
            *ending("tool_use"),
        ],
        (ToolCall(id="t1", name="a", arguments='{"x":1}'), ToolCall(id="t2", name="b", arguments='{"y":2}')),
        "tool_calls",
        None,
    ),
    "a call that never gets a name is refused": (
        [start(0, type="tool_use", id="t1", name=None, input={}), stop(0), *ending("tool_use")],
        (),
        "error",
        "MALFORMED_TOOL_CALL",
    ),
    "deltas without a start are kept": (
        [delta(0, type="text_delta", text="Hi"), *ending("end_turn")],
        (Text(text="Hi"),),
        "stop",
        None,
    ),
    "deltas without a type are told by their field": (
        [start(0, type="text", text=""), delta(0, text="Hi"), stop(0), *ending("end_turn")],
        (Text(text="Hi"),),
        "stop",
        None,
    ),
    "input that may belong to either of two open calls runs neither": (
        [
            start(0, type="tool_use", id="t1", name="a", input={}),
            start(1, type="tool_use", id="t2", name="b", input={}),
            delta(None, type="input_json_delta", partial_json='{"x":1}'),
            stop(0),
            stop(1),
            *ending("tool_use"),
        ],
        (
            ToolCall(id="t1", name="a", arguments="", invalid="not_told_apart"),
            ToolCall(id="t2", name="b", arguments='{"x":1}', invalid="not_told_apart"),
        ),
        "tool_calls",
        None,
    ),
    "a call behind two that were not told apart is not run either": (
        [
            start(0, type="tool_use", id="t1", name="a", input={}),
            start(1, type="tool_use", id="t2", name="b", input={}),
            delta(None, type="input_json_delta", partial_json="{"),
            start(2, type="tool_use", id="t3", name="c", input={}),
            delta(None, type="input_json_delta", partial_json='{"x":1'),
            delta(2, type="input_json_delta", partial_json="}"),
            *ending("tool_use"),
        ],
        (
            ToolCall(id="t1", name="a", arguments="", invalid="not_told_apart"),
            ToolCall(id="t2", name="b", arguments="{", invalid="not_told_apart"),
            ToolCall(id="t3", name="c", arguments='{"x":1}', invalid="not_told_apart"),
        ),
        "tool_calls",
        None,
    ),
    "calls one behind the other need no index and no stop": (
        [
            start(None, type="tool_use", id="t1", name="a", input={}),
            delta(None, type="input_json_delta", partial_json='{"x":'),
            delta(None, type="input_json_delta", partial_json="1}"),
            start(None, type="tool_use", id="t2", name="b", input={"y": 2}),
            start(None, type="tool_use", id="t3", name="c", input={}),
            delta(None, type="input_json_delta", partial_json='{"z":3}'),
            *ending("tool_use"),
        ],
        (
            ToolCall(id="t1", name="a", arguments='{"x":1}'),
            ToolCall(id="t2", name="b", arguments='{"y":2}'),
            ToolCall(id="t3", name="c", arguments='{"z":3}'),
        ),
        "tool_calls",
        None,
    ),
    "text without an index goes on in the last block, whatever calls are open": (
        [
            start(0, type="tool_use", id="t1", name="a", input={}),
            start(1, type="tool_use", id="t2", name="b", input={}),
            delta(0, type="input_json_delta", partial_json="{}"),
            delta(1, type="input_json_delta", partial_json="{}"),
            delta(None, type="text_delta", text="Hi"),
            *ending("tool_use"),
        ],
        (
            ToolCall(id="t1", name="a", arguments="{}"),
            ToolCall(id="t2", name="b", arguments="{}"),
            Text(text="Hi"),
        ),
        "tool_calls",
        None,
    ),
    "a server-side tool is kept for its own protocol and counts as an answer": (
        [
            start(0, type="server_tool_use", id="s", name="web_search", input={}),
            delta(0, type="input_json_delta", partial_json='{"query":'),
            delta(0, type="input_json_delta", partial_json='"x"}'),
            stop(0),
            *ending("pause_turn"),
        ],
        (
            Opaque(
                protocol="anthropic-messages",
                value={"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
            ),
        ),
        "stop",
        None,
    ),
    "citations stay with their text": (
        [
            start(0, type="text", text=""),
            delta(0, type="text_delta", text="so"),
            delta(0, type="citations_delta", citation={"cited_text": "s"}),
            stop(0),
            *ending("end_turn"),
        ],
        (Text(text="so", extra={"citations": [{"cited_text": "s"}]}),),
        "stop",
        None,
    ),
    "a refusal is the provider's filter": ([*ending("refusal")], (), "error", "CONTENT_FILTER"),
    "a full window is told apart from a finished answer": (
        [*ending("model_context_window_exceeded")],
        (),
        "error",
        "CONTEXT_WINDOW_EXCEEDED",
    ),
    "thinking alone is no answer": (
        [start(0, type="thinking", thinking="Hm"), stop(0), *ending("end_turn")],
        (Reasoning(text="Hm"),),
        "error",
        "EMPTY_RESPONSE",
    ),
    "a stop reason is enough, if the body then ends": (
        [start(0, type="text", text="ok"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}],
        (Text(text="ok"),),
        "stop",
        None,
    ),
    "null instead of every object is survived": (
        [
            {"type": "message_start", "message": None},
            {"type": "content_block_start", "index": None, "content_block": None},
            {"type": "content_block_delta", "index": 0, "delta": None},
            {"type": "message_delta", "delta": None, "usage": None},
            start(1, type="text", text="ok"),
            *ending("end_turn"),
        ],
        (Text(text="ok"),),
        "stop",
        None,
    ),
    "an OpenAI sentinel ends the stream too": (
        [start(0, type="text", text="ok"), "[DONE]"],
        (Text(text="ok"),),
        "stop",
        None,
    ),
    "content that came with message_start counts if no block follows": (
        [
            {"type": "message_start", "message": {"content": [{"type": "text", "text": "all"}]}},
            *ending("end_turn"),
        ],
        (Text(text="all"),),
        "stop",
        None,
    ),
}


def item_added(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def item_done(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def completed(*output: dict[str, Any], **response: Any) -> dict[str, Any]:
    return {
        "type": "response.completed",
        "response": {"status": "completed", "output": list(output), **response},
    }


def fc(id: str = "fc_1", call_id: str = "c1", name: str = "ls", arguments: str = "") -> dict[str, Any]:
    return {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments}


def call_of(id: str, name: str, arguments: str, item: str) -> ToolCall:
    replay = Replay(provider="openai-responses", model="", data={"item_id": item})
    return ToolCall(id=id, name=name, arguments=arguments, replay=replay)


RESPONSES: dict[str, tuple[list[Any], tuple[Any, ...], str, str | None]] = {
    "parallel calls whose deltas interleave are told apart by their item": (
        [
            item_added(0, **fc("fc_1", "c1", "a")),
            item_added(1, **fc("fc_2", "c2", "b")),
            {"type": "response.function_call_arguments.delta", "item_id": "fc_2", "delta": '{"y":'},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"x":1}'},
            {"type": "response.function_call_arguments.delta", "item_id": "fc_2", "delta": "2}"},
            completed(),
        ],
        (call_of("c1", "a", '{"x":1}', "fc_1"), call_of("c2", "b", '{"y":2}', "fc_2")),
        "tool_calls",
        None,
    ),
    "arguments that may belong to either of two open calls run neither": (
        [
            item_added(0, **fc("fc_1", "c1", "a")),
            item_added(1, **fc("fc_2", "c2", "b")),
            {"type": "response.function_call_arguments.delta", "delta": '{"x":1}'},
            completed(),
        ],
        (
            replace(call_of("c1", "a", "", "fc_1"), invalid="not_told_apart"),
            replace(call_of("c2", "b", '{"x":1}', "fc_2"), invalid="not_told_apart"),
        ),
        "tool_calls",
        None,
    ),
    "whole arguments that may belong to either of two open calls run neither": (
        [
            item_added(0, **fc("fc_1", "c1", "a")),
            item_added(1, **fc("fc_2", "c2", "b")),
            {"type": "response.function_call_arguments.done", "arguments": '{"x":1}'},
            completed(),
        ],
        (
            replace(call_of("c1", "a", "", "fc_1"), invalid="not_told_apart"),
            replace(call_of("c2", "b", '{"x":1}', "fc_2"), invalid="not_told_apart"),
        ),
        "tool_calls",
        None,
    ),
    "arguments of calls one behind the other need neither item nor index": (
        [
            item_added(0, **fc("fc_1", "c1", "a")),
            {"type": "response.function_call_arguments.delta", "delta": '{"x":'},
            {"type": "response.function_call_arguments.delta", "delta": "1}"},
            item_added(1, **fc("fc_2", "c2", "b")),
            {"type": "response.function_call_arguments.delta", "delta": '{"y":2}'},
            completed(),
        ],
        (call_of("c1", "a", '{"x":1}', "fc_1"), call_of("c2", "b", '{"y":2}', "fc_2")),
        "tool_calls",
        None,
    ),
    "an item whose id changes from event to event is found by its index": (
        [
            item_added(0, **fc("x1", "c1", "ls")),
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "x2",
                "output_index": 0,
                "delta": '{"a":',
            },
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "x3",
                "output_index": 0,
                "delta": "1}",
            },
            item_done(0, **fc("x4", "c1", "ls", '{"a":1}')),
            completed(fc("x5", "c1", "ls", '{"a":1}')),
        ],
        (call_of("c1", "ls", '{"a":1}', "x5"),),
        "tool_calls",
        None,
    ),
    "items that share index zero stay apart by their id": (
        [
            item_added(0, **fc("fc_1", "c1", "now")),
            item_done(0, **fc("fc_1", "c1", "now", "{}")),
            item_added(0, **fc("fc_2", "c2", "now")),
            item_done(0, **fc("fc_2", "c2", "now", "{}")),
            completed(),
        ],
        (call_of("c1", "now", "{}", "fc_1"), call_of("c2", "now", "{}", "fc_2")),
        "tool_calls",
        None,
    ),
    "a call that comes only with the final snapshot is added": (
        [completed(fc("fc_1", "c1", "ls", "{}"))],
        (call_of("c1", "ls", "{}", "fc_1"),),
        "tool_calls",
        None,
    ),
    "text that comes only with the final snapshot is added once": (
        [
            {"type": "response.output_text.delta", "delta": "Hel"},
            completed({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hello"}]}),
        ],
        (Text(text="Hello"),),
        "stop",
        None,
    ),
    "blank identity at the end erases nothing": (
        [
            item_added(0, **fc("fc_1", "c1", "ls")),
            item_done(0, type="function_call", id="", call_id="", name="", arguments="{}"),
            completed(
                {"type": "function_call", "id": None, "call_id": None, "name": None, "arguments": None}
            ),
        ],
        (call_of("c1", "ls", "{}", "fc_1"),),
        "tool_calls",
        None,
    ),
    "reasoning keeps its item id and encrypted content": (
        [
            item_added(0, type="reasoning", id="rs_1", summary=[]),
            {
                "type": "response.reasoning_summary_text.delta",
                "item_id": "rs_1",
                "summary_index": 0,
                "delta": "one",
            },
            {
                "type": "response.reasoning_summary_text.delta",
                "item_id": "rs_1",
                "summary_index": 1,
                "delta": "two",
            },
            item_done(
                0,
                type="reasoning",
                id="rs_1",
                summary=[{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
                encrypted_content="enc",
            ),
            {"type": "response.output_text.delta", "item_id": "m", "output_index": 1, "delta": "ok"},
            completed(model="gpt"),
        ],
        (
            Reasoning(
                text="one\n\ntwo",
                redacted="enc",
                replay=Replay(
                    provider="openai-responses", model="", data={"item_id": "rs_1", "summary_parts": 2}
                ),
            ),
            Text(text="ok"),
        ),
        "stop",
        None,
    ),
    "a refusal is shown as the text it is": (
        [{"type": "response.refusal.delta", "item_id": "m", "delta": "I cannot"}, completed()],
        (Text(text="I cannot"),),
        "stop",
        None,
    ),
    "a server-side tool is kept for its own protocol": (
        [item_done(0, type="web_search_call", id="ws", status="completed"), completed()],
        (
            Opaque(
                protocol="openai-responses",
                value={"type": "web_search_call", "id": "ws", "status": "completed"},
            ),
        ),
        "stop",
        None,
    ),
    "a failed response keeps the provider's own code": (
        [
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "rate_limit_exceeded", "message": "Rate limit reached"},
                },
            }
        ],
        (),
        "error",
        "RATE_LIMIT",
    ),
    "an error event ends the stream": (
        [
            {"type": "response.output_text.delta", "delta": "Hal"},
            {"type": "error", "code": "server_error", "message": "The server had an error", "param": None},
        ],
        (Text(text="Hal"),),
        "error",
        "SERVER",
    ),
    "a response cut by the filter is no answer": (
        [
            {
                "type": "response.incomplete",
                "response": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            }
        ],
        (),
        "error",
        "CONTENT_FILTER",
    ),
    "completed with nothing is empty": ([completed()], (), "error", "EMPTY_RESPONSE"),
    "a body that ends without a terminal event is cut": (
        [{"type": "response.output_text.delta", "delta": "Half"}],
        (Text(text="Half"),),
        "error",
        "STREAM_CLOSED",
    ),
    "null instead of every object is survived": (
        [
            {"type": "response.created", "response": None},
            {"type": "response.output_item.added", "output_index": None, "item": None},
            {"type": "response.output_text.delta", "item_id": None, "output_index": None, "delta": None},
            {"type": "response.output_text.delta", "item_id": None, "output_index": None, "delta": "ok"},
            {"type": "response.completed", "response": None},
        ],
        (Text(text="ok"),),
        "stop",
        None,
    ),
}


def frame(*parts: dict[str, Any], finish: str | None = None, **top: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **top}


def signed(signature: str) -> Replay:
    return Replay(provider="gemini", model="g", data={"thought_signature": signature})


GEMINI: dict[str, tuple[list[Any], tuple[Any, ...], str, str | None]] = {
    "thoughts are reasoning, and signatures stay with their part": (
        [
            frame({"text": "Let me", "thought": True}, modelVersion="g"),
            frame({"text": " see", "thought": True}),
            frame({"functionCall": {"id": "c", "name": "ls", "args": {"p": 1}}, "thoughtSignature": "S"}),
            frame(finish="STOP"),
        ],
        (
            Reasoning(text="Let me see"),
            ToolCall(id="c", name="ls", arguments='{"p":1}', replay=signed("S")),
        ),
        "tool_calls",
        None,
    ),
    "a signature in a part of its own belongs to the text before it": (
        [
            frame({"text": "Hi"}, modelVersion="g"),
            frame({"text": "", "thoughtSignature": "S"}, finish="STOP"),
        ],
        (Text(text="Hi", replay=signed("S")),),
        "stop",
        None,
    ),
    "two calls of one name without ids get one each": (
        [
            frame({"functionCall": {"name": "ls", "args": {}}}, {"functionCall": {"name": "ls", "args": {}}}),
            frame(finish="STOP"),
        ],
        (ToolCall(id="call_1", name="ls", arguments="{}"), ToolCall(id="call_2", name="ls", arguments="{}")),
        "tool_calls",
        None,
    ),
    "a call sent twice under one id counts once": (
        [
            frame({"functionCall": {"id": "c", "name": "ls", "args": {"a": 1}}}),
            frame({"functionCall": {"id": "c", "name": "ls", "args": {"a": 1}}}, finish="STOP"),
        ],
        (ToolCall(id="c", name="ls", arguments='{"a":1}'),),
        "tool_calls",
        None,
    ),
    "pieces of a call that another one interrupts within a string are cut": (
        [
            frame(
                {
                    "functionCall": {
                        "name": "a",
                        "partialArgs": [
                            {"jsonPath": "$.p", "stringValue": "rm -rf /tm", "willContinue": True}
                        ],
                        "willContinue": True,
                    }
                }
            ),
            frame({"functionCall": {"name": "b", "args": {"x": 1}}}, finish="STOP"),
        ],
        (
            ToolCall(id="call_1", name="a", arguments='{"p":"rm -rf /tm"', invalid="not_json"),
            ToolCall(id="call_2", name="b", arguments='{"x":1}'),
        ),
        "tool_calls",
        None,
    ),
    "an image is an answer": (
        [frame({"inlineData": {"mimeType": "image/png", "data": "iVBO"}}, finish="STOP")],
        (Image(media_type="image/png", source=Base64Source("iVBO")),),
        "stop",
        None,
    ),
    "code run by the provider is kept for its own protocol": (
        [frame({"executableCode": {"language": "PYTHON", "code": "1"}}, {"text": "1"}, finish="STOP")],
        (
            Opaque(protocol="gemini", value={"executableCode": {"language": "PYTHON", "code": "1"}}),
            Text(text="1"),
        ),
        "stop",
        None,
    ),
    "a blocked prompt is the filter's doing": (
        [{"promptFeedback": {"blockReason": "SAFETY"}}],
        (),
        "error",
        "CONTENT_FILTER",
    ),
    "safety ends an answer as the filter": (
        [frame({"text": "a"}, finish="SAFETY")],
        (Text(text="a"),),
        "error",
        "CONTENT_FILTER",
    ),
    "a malformed call can be tried again": (
        [frame(finish="MALFORMED_FUNCTION_CALL")],
        (),
        "error",
        "MALFORMED_TOOL_CALL",
    ),
    "an error object keeps its own kind": (
        [{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}],
        (),
        "error",
        "OVERLOADED",
    ),
    "a body without a finish reason is cut": (
        [frame({"text": "Half"})],
        (Text(text="Half"),),
        "error",
        "STREAM_CLOSED",
    ),
    "an unknown finish reason does not lose the answer": (
        [frame({"text": "ok"}, finish="OTHER")],
        (Text(text="ok"),),
        "stop",
        None,
    ),
    "responses wrapped once more are read": (
        [{"response": frame({"text": "ok"}, finish="STOP")}],
        (Text(text="ok"),),
        "stop",
        None,
    ),
    "null instead of every object is survived": (
        [
            {"candidates": None},
            {"candidates": [None, {"content": None}, {"content": {"parts": None}}], "usageMetadata": None},
            frame({"text": None}, {"functionCall": None}, {}, {"text": "ok"}, finish="STOP"),
        ],
        (Text(text="ok"),),
        "stop",
        None,
    ),
}
TABLES = {"anthropic-messages": ANTHROPIC, "openai-responses": RESPONSES, "gemini": GEMINI}
ROWS = [
    pytest.param(protocol, *row, id=f"{protocol}: {name}")
    for protocol, table in TABLES.items()
    for name, row in table.items()
]


@pytest.mark.parametrize(("protocol", "events", "content", "reason", "code"), ROWS)
def test_stream(
    protocol: str, events: list[Any], content: tuple[Any, ...], reason: str, code: str | None
) -> None:
    body = body_of(events)
    decoded = decode(body, protocol)
    failure = decoded.finish.failure
    assert (decoded.content, decoded.finish.reason, failure.code if failure else None) == (
        content,
        reason,
        code,
    )
    assert decode([body[i : i + 1] for i in range(len(body))], protocol) == decoded


DOCUMENTS: dict[str, tuple[str, Any, tuple[Any, ...], str, Usage | None]] = {
    "anthropic-messages": (
        "anthropic-messages",
        {
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"},
                {"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5},
        },
        (
            Reasoning(text="Hm", signature="s"),
            Text(text="ok"),
            ToolCall(id="t", name="ls", arguments='{"a":1}'),
        ),
        "tool_calls",
        Usage(input_tokens=3, output_tokens=4, cache_read_tokens=5),
    ),
    "openai-responses": (
        "openai-responses",
        {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "ok"}]},
                fc("fc_1", "c1", "ls", "{}"),
            ],
            "usage": {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 2},
            },
        },
        (Text(text="ok"), call_of("c1", "ls", "{}", "fc_1")),
        "tool_calls",
        Usage(input_tokens=5, output_tokens=7, cache_read_tokens=4, reasoning_tokens=2),
    ),
    "gemini, a list of responses as sent without alt=sse": (
        "gemini",
        [
            frame({"text": "o"}),
            frame(
                {"text": "k"},
                finish="STOP",
                usageMetadata={
                    "promptTokenCount": 9,
                    "cachedContentTokenCount": 4,
                    "candidatesTokenCount": 2,
                    "thoughtsTokenCount": 3,
                },
            ),
        ],
        (Text(text="ok"),),
        "stop",
        Usage(input_tokens=5, output_tokens=5, cache_read_tokens=4, reasoning_tokens=3),
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_json_body_where_a_stream_was_asked_for(name: str) -> None:
    protocol, value, content, reason, usage = DOCUMENTS[name]
    decoded = decode(json.dumps(value), protocol)
    assert (decoded.content, decoded.finish.reason, decoded.usage) == (content, reason, usage)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "c1", "ls", "{}", '{"a":1}', "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "index",
                    "delta",
                    "id",
                    "name",
                    "input",
                    "text",
                    "item",
                    "item_id",
                    "output_index",
                    "call_id",
                    "arguments",
                    "response",
                    "output",
                    "content",
                    "parts",
                    "functionCall",
                    "args",
                    "candidates",
                    "finishReason",
                    "usage",
                    "error",
                    "status",
                    "stop_reason",
                    "content_block",
                    "message",
                    "thinking",
                    "part",
                    "summary",
                    "content_index",
                    "partial_json",
                    "partialArgs",
                    "willContinue",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
        "ping",
    ]
)
EVENTS = st.lists(
    st.builds(lambda kind, rest: {**(rest if isinstance(rest, dict) else {}), "type": kind}, TYPES, JSON)
    | JSON,
    max_size=8,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=150, deadline=None)
@given(events=EVENTS, size=st.integers(1, 40))
def test_any_events_in_any_split_end_in_one_finish(protocol: str, events: list[Any], size: int) -> None:
    body = body_of(events)
    whole = decode(body, protocol)
    assert decode([body[i : i + size] for i in range(0, len(body), size)], protocol) == whole
    for block in whole.content:
        if isinstance(block, ToolCall):
            assert block.id and block.name
    ids = [block.id for block in whole.content if isinstance(block, ToolCall)]
    assert all(ids)
    if whole.finish.reason in ("error", "aborted"):
        assert not ids

"""The mock gateway in the three protocols beside openai-chat: whole streams, documents, quirks, refusals."""

import json
from typing import Any

import pytest
from gateway_client import answer, ask, post_bytes

from lockstitch.testing.gateway import running_gateway

SPEC = {
    "reasoning": "hm",
    "signature": "c2ln",
    "text": "Hi",
    "tool_calls": [
        {"id": "c1", "name": "add", "arguments": {"a": 1}},
        {"id": "c2", "name": "sub", "arguments": {}},
    ],
    "chunk_chars": 4,
    "usage": {"input_tokens": 9, "output_tokens": 8, "cache_read_tokens": 3, "reasoning_tokens": 2},
}
PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
DOCUMENT_PATHS = {**PATHS, "gemini": "/v1beta/models/m:generateContent"}
ASK = {"model": "m", "stream": True}


def streamed(dialect: str, *quirks: str, **more: Any) -> list[Any]:
    reply = answer({**SPEC, **more, "quirks": list(quirks)}, post_bytes(ASK, PATHS[dialect]))
    assert (reply.status, reply.complete) == (200, True)
    return reply.payloads()


def document(dialect: str, *quirks: str) -> Any:
    request = post_bytes({"model": "m"}, DOCUMENT_PATHS[dialect])
    return json.loads(answer({**SPEC, "quirks": list(quirks)}, request).body)


# --- anthropic-messages

A_USAGE = {
    "input_tokens": 9,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 3,
    "output_tokens": 8,
    "output_tokens_details": {"thinking_tokens": 2},
}
A_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {**A_USAGE, "output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}},
}


def a_start(index: int | None, **block: Any) -> dict[str, Any]:
    at = {} if index is None else {"index": index}
    return {"type": "content_block_start", **at, "content_block": block}


def a_delta(index: int | None, kind: str, **delta: Any) -> dict[str, Any]:
    at = {} if index is None else {"index": index}
    return {"type": "content_block_delta", **at, "delta": {"type": kind, **delta}}


def a_stop(index: int | None) -> dict[str, Any]:
    return {"type": "content_block_stop", **({} if index is None else {"index": index})}


def a_json(index: int | None, piece: Any, **more: Any) -> dict[str, Any]:
    return a_delta(index, "input_json_delta", partial_json=piece, **more)


def a_tool(index: int | None, given: Any = None, **identity: Any) -> dict[str, Any]:
    return a_start(index, type="tool_use", **identity, input={} if given is None else given)


def a_end(stop: str | None, usage: Any = A_USAGE) -> list[Any]:
    delta = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
    return [{**delta, "usage": usage}, {"type": "message_stop"}]


A_HEAD = [
    {"type": "message_start", "message": A_MESSAGE},
    a_start(0, type="thinking", thinking="", signature=""),
    {"type": "ping"},
    a_delta(0, "thinking_delta", thinking="hm"),
    a_delta(0, "signature_delta", signature="c2ln"),
    a_stop(0),
    a_start(1, type="text", text=""),
    a_delta(1, "text_delta", text="Hi"),
    a_stop(1),
]
A_ONE = [a_json(2, '{"a"'), a_json(2, ":1}"), a_stop(2)]
A_TWO = [a_json(3, "{}"), a_stop(3)]
A_CALLS = [a_tool(2, id="c1", name="add"), *A_ONE, a_tool(3, id="c2", name="sub"), *A_TWO]


def a_continued(one: dict[str, Any], two: dict[str, Any] | None = None) -> list[Any]:
    two = one if two is None else two
    return [
        a_tool(2, id="c1", name="add"),
        a_json(2, '{"a"', **one),
        a_json(2, ":1}", **one),
        a_stop(2),
        a_tool(3, id="c2", name="sub"),
        a_json(3, "{}", **two),
        a_stop(3),
    ]


def a_indexed(one: int | None, two: int | None) -> list[Any]:
    return [
        a_tool(one, id="c1", name="add"),
        a_json(one, '{"a"'),
        a_json(one, ":1}"),
        a_stop(one),
        a_tool(two, id="c2", name="sub"),
        a_json(two, "{}"),
        a_stop(two),
    ]


A_QUIRKS: dict[str, list[Any]] = {
    "": A_CALLS,
    "empty_continuation_ids": a_continued({"id": "", "name": ""}),
    "null_continuation_ids": a_continued({"id": None, "name": None}),
    "repeated_identity": a_continued({"id": "c1", "name": "add"}, {"id": "c2", "name": "sub"}),
    "string_null_name": a_continued({"name": "null"}),
    "no_ids": [a_tool(2, name="add"), *A_ONE, a_tool(3, name="sub"), *A_TWO],
    "no_name": [a_tool(2, id="c1"), *A_ONE, a_tool(3, id="c2"), *A_TWO],
    "late_id": [
        a_tool(2, name="add"),
        a_json(2, '{"a"'),
        a_json(2, ":1}", id="c1"),
        a_stop(2),
        a_tool(3, name="sub"),
        a_json(3, "{}", id="c2"),
        a_stop(3),
    ],
    "split_name": [
        a_tool(2, id="c1", name="a"),
        a_json(2, "", name="dd"),
        *A_ONE,
        a_tool(3, id="c2", name="s"),
        a_json(3, "", name="ub"),
        *A_TWO,
    ],
    "same_index": a_indexed(2, 2),
    "no_index": a_indexed(None, None),
    "interleaved": [
        a_tool(2, id="c1", name="add"),
        a_tool(3, id="c2", name="sub"),
        a_json(2, '{"a"'),
        a_json(3, "{}"),
        a_json(2, ":1}"),
        a_stop(3),
        a_stop(2),
    ],
    "whole_call_one_chunk": [
        a_tool(2, id="c1", name="add"),
        a_json(2, '{"a":1}'),
        a_stop(2),
        a_tool(3, id="c2", name="sub"),
        *A_TWO,
    ],
    "arguments_as_object": [
        a_tool(2, {"a": 1}, id="c1", name="add"),
        a_stop(2),
        a_tool(3, {}, id="c2", name="sub"),
        a_stop(3),
    ],
    "null_arguments": [
        a_start(2, type="tool_use", id="c1", name="add", input=None),
        *A_ONE,
        a_start(3, type="tool_use", id="c2", name="sub", input=None),
        *A_TWO,
    ],
    "cut_arguments": [*A_CALLS[:5], a_json(3, "{"), a_stop(3)],
}


@pytest.mark.parametrize("name", A_QUIRKS)
def test_anthropic_calls(name: str) -> None:
    assert streamed("anthropic-messages", *filter(None, [name])) == [
        *A_HEAD,
        *A_QUIRKS[name],
        *a_end("tool_use"),
    ]


A_ENDINGS: dict[str, list[Any]] = {
    "no_done": a_end("tool_use")[:1],
    "no_finish_reason": a_end(None),
    "stop_with_calls": a_end("end_turn"),
    "finish_other": a_end("unknown"),
}


@pytest.mark.parametrize("name", A_ENDINGS)
def test_anthropic_endings(name: str) -> None:
    assert streamed("anthropic-messages", name) == [*A_HEAD, *A_CALLS, *A_ENDINGS[name]]


def test_anthropic_one_based_index_counts_every_block() -> None:
    events = streamed("anthropic-messages", "one_based_index")
    assert [e["index"] for e in events if e["type"] == "content_block_start"] == [1, 2, 3, 4]


def test_anthropic_usage_every_chunk_is_a_message_delta_behind_each_delta() -> None:
    events = streamed("anthropic-messages", "usage_every_chunk")
    counts = [e["usage"]["output_tokens"] for e in events if e["type"] == "message_delta"]
    assert counts == [1, 2, 3, 4, 5, 6, 8]


def test_anthropic_without_usage() -> None:
    events = streamed("anthropic-messages", "no_usage")
    assert [e for e in events if "usage" in e or "usage" in e.get("message", {})] == []


def test_an_event_line_names_the_type() -> None:
    body = answer({"text": "Hi"}, post_bytes(ASK, "/v1/messages")).body
    assert body.startswith(b'event: message_start\ndata: {"type":"message_start",')


def test_anthropic_document() -> None:
    assert document("anthropic-messages") == {
        **A_MESSAGE,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "sub", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": A_USAGE,
    }


# --- openai-responses

R_USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 8,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 20,
}
R_REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2ln"}
R_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
R_TEXT = {"type": "output_text", "text": "Hi", "annotations": []}
R_SUMMARY = {"type": "summary_text", "text": "hm"}


def r_response(status: Any, output: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        **more,
    }


def r_call(position: int, arguments: Any = "", status: str = "completed", **identity: Any) -> dict[str, Any]:
    made = {"id": f"fc_1_{position}", "type": "function_call", **identity}
    return {**made, "arguments": arguments, "status": status}


def r_added(index: Any, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", **r_at(index), "item": item}


def r_done(index: Any, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", **r_at(index), "item": item}


def r_at(index: Any) -> dict[str, Any]:
    return {} if index is None else {"output_index": index}


def r_delta(index: Any, item_id: Any, piece: Any, **more: Any) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "item_id": item_id, **r_at(index), **more, "delta": piece}


def r_arguments(index: Any, item_id: Any, whole: Any) -> dict[str, Any]:
    kind = "response.function_call_arguments.done"
    return {"type": kind, "item_id": item_id, **r_at(index), "arguments": whole}


R_HEAD = [
    {"type": "response.created", "response": r_response("in_progress", [])},
    {"type": "response.in_progress", "response": r_response("in_progress", [])},
    r_added(0, R_REASONING),
    *(
        {"item_id": "rs_1", "output_index": 0, "summary_index": 0, **event}
        for event in (
            {"type": "response.reasoning_summary_part.added", "part": {**R_SUMMARY, "text": ""}},
            {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
            {"type": "response.reasoning_summary_text.done", "text": "hm"},
            {"type": "response.reasoning_summary_part.done", "part": R_SUMMARY},
        )
    ),
    r_done(0, {**R_REASONING, "summary": [R_SUMMARY]}),
    r_added(1, R_MESSAGE),
    *(
        {"item_id": "msg_1", "output_index": 1, "content_index": 0, **event}
        for event in (
            {"type": "response.content_part.added", "part": {**R_TEXT, "text": ""}},
            {"type": "response.output_text.delta", "delta": "Hi", "logprobs": []},
            {"type": "response.output_text.done", "text": "Hi", "logprobs": []},
            {"type": "response.content_part.done", "part": R_TEXT},
        )
    ),
    r_done(1, {**R_MESSAGE, "status": "completed", "content": [R_TEXT]}),
]
R_OUTPUT = [
    {**R_REASONING, "summary": [R_SUMMARY]},
    {**R_MESSAGE, "status": "completed", "content": [R_TEXT]},
]
R_C1 = {"call_id": "c1", "name": "add"}
R_C2 = {"call_id": "c2", "name": "sub"}


def r_calls(
    added: tuple[dict[str, Any], dict[str, Any]] = (R_C1, R_C2),
    done: tuple[dict[str, Any], dict[str, Any]] = (R_C1, R_C2),
    indices: tuple[Any, Any] = (2, 3),
    item_ids: tuple[Any, Any] = ("fc_1_0", "fc_1_1"),
    more: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
) -> list[Any]:
    one, two = indices
    return [
        r_added(one, r_call(0, "", "in_progress", **added[0])),
        r_delta(one, item_ids[0], '{"a"', **more[0]),
        r_delta(one, item_ids[0], ":1}", **more[0]),
        r_arguments(one, item_ids[0], '{"a":1}'),
        r_done(one, r_call(0, '{"a":1}', **done[0])),
        r_added(two, r_call(1, "", "in_progress", **added[1])),
        r_delta(two, item_ids[1], "{}", **more[1]),
        r_arguments(two, item_ids[1], "{}"),
        r_done(two, r_call(1, "{}", **done[1])),
    ]


EMPTY = {"call_id": "", "name": ""}
NULLS = {"call_id": None, "name": None}
R_PLAIN = r_calls()
R_QUIRKS: dict[str, list[Any]] = {
    "": R_PLAIN,
    "empty_continuation_ids": r_calls(done=(EMPTY, EMPTY), item_ids=("", "")),
    "null_continuation_ids": r_calls(done=(NULLS, NULLS), item_ids=(None, None)),
    "repeated_identity": r_calls(more=(R_C1, R_C2)),
    "string_null_name": r_calls(done=({**R_C1, "name": "null"}, {**R_C2, "name": "null"})),
    "no_ids": r_calls(*[({"name": "add"}, {"name": "sub"})] * 2),
    "no_name": r_calls(*[({"call_id": "c1"}, {"call_id": "c2"})] * 2),
    "late_id": r_calls(added=({"name": "add"}, {"name": "sub"})),
    "late_name": r_calls(added=({"call_id": "c1"}, {"call_id": "c2"})),
    "same_index": r_calls(indices=(2, 2)),
    "no_index": r_calls(indices=(None, None)),
    "interleaved": [R_PLAIN[i] for i in (0, 5, 1, 6, 2, 7, 8, 3, 4)],
    "whole_call_one_chunk": [R_PLAIN[4], R_PLAIN[8]],
    "arguments_as_object": [
        r_added(2, r_call(0, {"a": 1}, "in_progress", **R_C1)),
        r_arguments(2, "fc_1_0", {"a": 1}),
        r_done(2, r_call(0, {"a": 1}, **R_C1)),
        r_added(3, r_call(1, {}, "in_progress", **R_C2)),
        r_arguments(3, "fc_1_1", {}),
        r_done(3, r_call(1, {}, **R_C2)),
    ],
    "cut_arguments": [
        *R_PLAIN[:6],
        r_delta(3, "fc_1_1", "{"),
        r_arguments(3, "fc_1_1", "{"),
        r_done(3, r_call(1, "{", **R_C2)),
    ],
}


@pytest.mark.parametrize("name", R_QUIRKS)
def test_responses_calls(name: str) -> None:
    events = streamed("openai-responses", *filter(None, [name]))
    assert [event.pop("sequence_number") for event in events] == list(range(len(events)))
    calls = R_QUIRKS[name]
    items = sorted((e["item"] for e in calls if e["type"].endswith("item.done")), key=lambda item: item["id"])
    last = r_response("completed", [*R_OUTPUT, *items], usage=R_USAGE)
    assert events == [*R_HEAD, *calls, {"type": "response.completed", "response": last}]


R_ENDINGS = {
    "": ("response.completed", "completed", None),
    "no_done": ("response.output_item.done", None, None),
    "no_finish_reason": ("response.completed", None, None),
    "finish_other": ("response.completed", "unknown", None),
    "stop_with_calls": ("response.completed", "completed", None),
}


@pytest.mark.parametrize("name", R_ENDINGS)
def test_responses_endings(name: str) -> None:
    last = streamed("openai-responses", *filter(None, [name]))[-1]
    response = last.get("response", {})
    assert (last["type"], response.get("status"), response.get("incomplete_details")) == R_ENDINGS[name]


def test_a_response_that_is_cut_short_says_so() -> None:
    last = streamed("openai-responses", finish="length")[-1]
    response = last["response"]
    assert (last["type"], response["status"], response["incomplete_details"]) == (
        "response.incomplete",
        "incomplete",
        {"reason": "max_output_tokens"},
    )


def test_responses_usage_every_chunk() -> None:
    events = streamed("openai-responses", "usage_every_chunk")
    usages = [e["response"]["usage"] for e in events if "response" in e]
    assert [usage and usage["output_tokens"] for usage in usages] == [None, None, 1, 2, 4, 5, 6, 8]


def test_responses_reasoning_under_another_event() -> None:
    events = streamed("openai-responses", "reasoning_field:reasoning_text")
    assert [e["type"] for e in events if "text.d" in e["type"]][:2] == [
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
    ]


# --- gemini

G_USAGE = {
    "promptTokenCount": 12,
    "candidatesTokenCount": 6,
    "totalTokenCount": 20,
    "cachedContentTokenCount": 3,
    "thoughtsTokenCount": 2,
}


def g_chunk(*parts: dict[str, Any], usage: Any = None, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    made = {"candidates": [candidate], "modelVersion": "m", "responseId": "resp_1"}
    return {**made, "usageMetadata": usage} if usage else made


def g_call(args: Any, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {**fields, "args": args}}


SIGNED = {"thoughtSignature": "c2ln"}
G_HEAD = [g_chunk({"text": "hm", "thought": True}), g_chunk({"text": "Hi"})]
G_ONE = {**g_call({"a": 1}, id="c1", name="add"), **SIGNED}
G_TWO = g_call({}, id="c2", name="sub")
G_END = g_chunk({"text": ""}, finishReason="STOP", usage=G_USAGE)
G_PLAIN = [*G_HEAD, g_chunk(G_ONE), g_chunk(G_TWO), G_END]


def g_calls(one: dict[str, Any], two: dict[str, Any]) -> list[Any]:
    return [*G_HEAD, g_chunk({**one, **SIGNED}), g_chunk(two), G_END]


G_QUIRKS: dict[str, list[Any]] = {
    "": G_PLAIN,
    "empty_continuation_ids": G_PLAIN,
    "repeated_identity": G_PLAIN,
    "string_null_name": G_PLAIN,
    "split_name": G_PLAIN,
    "interleaved": G_PLAIN,
    "no_done": G_PLAIN,
    "stop_with_calls": G_PLAIN,
    "arguments_as_object": G_PLAIN,
    "no_ids": g_calls(g_call({"a": 1}, name="add"), g_call({}, name="sub")),
    "null_ids": g_calls(g_call({"a": 1}, id=None, name="add"), g_call({}, id=None, name="sub")),
    "no_name": g_calls(g_call({"a": 1}, id="c1"), g_call({}, id="c2")),
    "null_name": g_calls(g_call({"a": 1}, id="c1", name=None), g_call({}, id="c2", name=None)),
    "null_arguments": g_calls(g_call(None, id="c1", name="add"), g_call(None, id="c2", name="sub")),
    "cut_arguments": [*G_PLAIN[:3], g_chunk(g_call("{", id="c2", name="sub")), G_END],
    "whole_call_one_chunk": [*G_HEAD, g_chunk(G_ONE, G_TWO, finishReason="STOP", usage=G_USAGE)],
    "no_finish_reason": [*G_PLAIN[:4], g_chunk({"text": ""}, usage=G_USAGE)],
    "finish_other": [*G_PLAIN[:4], g_chunk({"text": ""}, finishReason="UNKNOWN_REASON", usage=G_USAGE)],
    "no_usage": [*G_PLAIN[:4], g_chunk({"text": ""}, finishReason="STOP")],
}


@pytest.mark.parametrize("name", G_QUIRKS)
def test_gemini_chunks(name: str) -> None:
    assert streamed("gemini", *filter(None, [name])) == G_QUIRKS[name]


def test_a_gemini_call_has_an_id_only_if_the_script_gives_one() -> None:
    spec = {"tool_calls": [{"name": "add"}]}
    reply = answer(spec, post_bytes({}, DOCUMENT_PATHS["gemini"]))
    assert json.loads(reply.body)["candidates"][0]["content"]["parts"] == [g_call({}, name="add")]


def test_a_gemini_answer_without_calls_is_signed_at_its_end() -> None:
    chunks = streamed("gemini", tool_calls=[])
    assert chunks[-1] == g_chunk({"text": "", **SIGNED}, finishReason="STOP", usage=G_USAGE)


def test_gemini_without_sse_streams_an_array() -> None:
    reply = answer(SPEC, post_bytes({}, "/v1beta/models/m:streamGenerateContent"))
    assert (reply.headers["content-type"], reply.complete) == ("application/json", True)
    assert json.loads(reply.body) == G_PLAIN


def test_gemini_document() -> None:
    assert document("gemini") == g_chunk(
        {"text": "hm", "thought": True},
        {"text": "Hi"},
        G_ONE,
        G_TWO,
        finishReason="STOP",
        usage=G_USAGE,
    )


# --- all of them

FINISHES: dict[str, dict[str, Any]] = {
    "anthropic-messages": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "refusal",
        "pause_turn": "pause_turn",
    },
    "openai-responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "length": "incomplete",
        "content_filter": "incomplete",
    },
    "gemini": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "MALFORMED_FUNCTION_CALL": "MALFORMED_FUNCTION_CALL",
    },
}


@pytest.mark.parametrize("dialect", FINISHES)
def test_finish_reasons_have_the_protocols_spelling(dialect: str) -> None:
    found = {}
    for finish in FINISHES[dialect]:
        reply = answer({"text": "Hi", "finish": finish}, post_bytes({"model": "m"}, DOCUMENT_PATHS[dialect]))
        body = json.loads(reply.body)
        found[finish] = (
            body["candidates"][0]["finishReason"]
            if dialect == "gemini"
            else body.get("stop_reason") or body.get("status")
        )
    assert found == FINISHES[dialect]


ERRORS: dict[str, Any] = {
    "anthropic-messages": {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "slow down"},
    },
    "openai-responses": {
        "error": {
            "message": "slow down",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    },
    "gemini": {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}},
}


@pytest.mark.parametrize("dialect", ERRORS)
def test_a_refusal_has_the_protocols_form(dialect: str) -> None:
    reply = answer({"error": "slow down", "status": 429}, post_bytes(ASK, PATHS[dialect]))
    assert (reply.status, json.loads(reply.body)) == (429, ERRORS[dialect])


STREAM_ERRORS: dict[str, Any] = {
    "anthropic-messages": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "openai-responses": {
        "type": "error",
        "code": "server_error",
        "message": "The server had an error while processing your request. Sorry about that!",
        "param": None,
        "sequence_number": 0,
    },
    "gemini": {
        "error": {
            "code": 503,
            "message": "The model is overloaded. Please try again later.",
            "status": "UNAVAILABLE",
        }
    },
}


@pytest.mark.parametrize("dialect", STREAM_ERRORS)
def test_an_error_in_the_stream_ends_it_half_way(dialect: str) -> None:
    events = streamed(dialect, "error_in_stream")
    whole = streamed(dialect)
    assert events == [*whole[: len(whole) // 2], STREAM_ERRORS[dialect]]


@pytest.mark.parametrize("dialect", STREAM_ERRORS)
def test_an_error_as_a_json_line_is_no_event(dialect: str) -> None:
    reply = answer({**SPEC, "quirks": ["error_as_json_line"]}, post_bytes(ASK, PATHS[dialect]))
    line = reply.body.rstrip(b"\n").rpartition(b"\n")[2]
    assert json.loads(line) == STREAM_ERRORS[dialect]


# --- the cached share


def share(path: str, *bodies: Any) -> list[list[int]]:
    """What ``/requests`` says of each: tokens of the prompt, read from a cache, written to one."""
    with running_gateway({"then": "ok"}) as gateway:
        for body in bodies:
            ask(gateway, post_bytes(body, path))
        caches = [entry["cache"] for entry in gateway.requests]
    return [[cache[key] for key in ("prompt", "read", "write")] for cache in caches]


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def turn(*texts: str) -> list[dict[str, Any]]:
    return [said(role, text) for role, text in zip(["user", "assistant"] * len(texts), texts, strict=False)]


MARK = {"cache_control": {"type": "ephemeral"}}
CACHES: dict[str, tuple[str, list[Any], list[list[int]]]] = {
    "a prompt that grows is read up to where it grew": (
        "/v1/chat/completions",
        [{"model": "m", "messages": turn("aaaa")}, {"model": "m", "messages": turn("aaaa", "bbbb")}],
        [[8, 0, 0], [18, 8, 0]],
    ),
    "another model shares nothing": (
        "/v1/chat/completions",
        [{"model": name, "messages": turn("aaaa")} for name in ("m", "n")],
        [[8, 0, 0], [8, 0, 0]],
    ),
    "a change at the front loses everything behind it": (
        "/v1/chat/completions",
        [
            {"model": "m", "messages": [said("system", "it is 9 am"), *turn("aaaa")]},
            {"model": "m", "messages": [said("system", "it is 10 am"), *turn("aaaa")]},
        ],
        [[18, 0, 0], [19, 0, 0]],
    ),
    "responses and its instructions": (
        "/v1/responses",
        [
            {"model": "m", "instructions": "be brief", "input": turn("aaaa")},
            {"model": "m", "instructions": "be brief", "input": turn("aaaa", "bbbb")},
        ],
        [[11, 0, 0], [20, 11, 0]],
    ),
    "gemini and its model in the path": (
        "/v1beta/models/m:generateContent",
        [
            {"contents": [{"role": "user", "parts": [{"text": "aaaa"}]}]},
            {
                "contents": [
                    {"role": "user", "parts": [{"text": "aaaa"}]},
                    {"role": "model", "parts": [{"text": "bbbb"}]},
                ]
            },
        ],
        [[11, 0, 0], [21, 11, 0]],
    ),
    "anthropic without marks caches nothing": (
        "/v1/messages",
        [{"model": "m", "messages": turn("aaaa")}] * 2,
        [[9, 0, 0], [9, 0, 0]],
    ),
    "anthropic with a mark that moves to the new end": (
        "/v1/messages",
        [
            {
                "model": "m",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "aaaa", **MARK}]}],
            },
            {
                "model": "m",
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "aaaa"}]},
                    {"role": "assistant", "content": [{"type": "text", "text": "bbbb", **MARK}]},
                    {"role": "user", "content": "cccc"},
                ],
            },
        ],
        [[9, 0, 9], [26, 9, 9]],
    ),
    "anthropic with one mark for the whole request": (
        "/v1/messages",
        [{"model": "m", **MARK, "messages": turn("aaaa")}] * 2,
        [[9, 0, 9], [9, 9, 0]],
    ),
}


@pytest.mark.parametrize("name", CACHES)
def test_the_cached_share_of_each_request(name: str) -> None:
    path, bodies, expected = CACHES[name]
    assert share(path, *bodies) == expected


def test_a_prefix_more_than_twenty_blocks_before_a_mark_is_not_found() -> None:
    def body(blocks: int) -> dict[str, Any]:
        content = [{"type": "text", "text": "x"} for _ in range(blocks)]
        content[-1] |= MARK  # type: ignore[operator]
        return {"model": "m", "messages": [{"role": "user", "content": content}]}

    assert [read > 0 for _, read, _ in share("/v1/messages", body(1), body(21))] == [False, True]
    assert [read > 0 for _, read, _ in share("/v1/messages", body(1), body(22))] == [False, False]


def test_the_share_is_in_the_usage_of_an_answer_whose_script_gives_none() -> None:
    with running_gateway({"then": "ok"}) as gateway:
        body = {"model": "m", "input": "x" * 400}
        usages = [json.loads(ask(gateway, post_bytes(body, "/v1/responses")).body)["usage"] for _ in range(2)]
        assert [entry["cache"]["share"] for entry in gateway.requests] == [0.0, 1.0]
    assert [usage["input_tokens_details"]["cached_tokens"] for usage in usages] == [0, 101]
    assert [usage["input_tokens"] for usage in usages] == [101, 101]

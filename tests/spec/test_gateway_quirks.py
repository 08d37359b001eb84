"""What each quirk of the mock gateway makes of an openai-chat answer, byte for byte."""

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from gateway_client import ASK, answer, post_bytes

from lockstitch.testing import quirks

CALLS = {
    "text": "Hi",
    "tool_calls": [
        {"id": "c1", "name": "add", "arguments": {"a": 1}},
        {"id": "c2", "name": "sub", "arguments": {}},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 7},
    "chunk_chars": 4,
}
ROLE = {"role": "assistant", "content": ""}
TEXT = {"content": "Hi"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}


def call(index: Any, arguments: Any, *, first: bool = False, **identity: Any) -> list[Any]:
    """One delta as the wire has it; ``id`` and ``name`` are there only if given."""
    made: dict[str, Any] = {} if index is None else {"index": index}
    if "id" in identity:
        made["id"] = identity["id"]
    if first:
        made["type"] = "function"
    name = {"name": identity["name"]} if "name" in identity else {}
    return [{**made, "function": {**name, "arguments": arguments}}]


def first(index: Any, call_id: str, name: str, arguments: Any = "") -> list[Any]:
    return call(index, arguments, first=True, id=call_id, name=name)


def stream(*calls: Any, end: Any = ([{}, "tool_calls"], USAGE, "[DONE]")) -> list[Any]:
    return [ROLE, TEXT, *calls, *end]


PLAIN = stream(
    first(0, "c1", "add"),
    call(0, '{"a"'),
    call(0, ":1}"),
    first(1, "c2", "sub"),
    call(1, "{}"),
)


def continued(**identity: Any) -> list[Any]:
    return stream(
        first(0, "c1", "add"),
        call(0, '{"a"', **identity),
        call(0, ":1}", **identity),
        first(1, "c2", "sub"),
        call(1, "{}", **identity),
    )


def without(key: str, **every: Any) -> list[Any]:
    """``key`` missing from every delta, or as ``every`` has it."""
    other = {"id": ("c1", "c2"), "name": ("add", "sub")}["name" if key == "id" else "id"]
    kept = "name" if key == "id" else "id"
    return stream(
        call(0, "", first=True, **{kept: other[0]}, **every),
        call(0, '{"a"', **every),
        call(0, ":1}", **every),
        call(1, "", first=True, **{kept: other[1]}, **every),
        call(1, "{}", **every),
    )


def indexed(one: Any, two: Any) -> list[Any]:
    return stream(
        first(one, "c1", "add"),
        call(one, '{"a"'),
        call(one, ":1}"),
        first(two, "c2", "sub"),
        call(two, "{}"),
    )


ERROR = {
    "error": {
        "message": "The server had an error while processing your request. Sorry about that!",
        "type": "server_error",
        "param": None,
        "code": "internal_error",
    }
}
HALF = [ROLE, TEXT, first(0, "c1", "add"), call(0, '{"a"'), call(0, ":1}")]

CHAT_QUIRKS: dict[str, list[Any]] = {
    "empty_continuation_ids": continued(id="", name=""),
    "null_continuation_ids": continued(id=None, name=None),
    "string_null_name": continued(name="null"),
    "repeated_identity": stream(
        first(0, "c1", "add"),
        call(0, '{"a"', id="c1", name="add"),
        call(0, ":1}", id="c1", name="add"),
        first(1, "c2", "sub"),
        call(1, "{}", id="c2", name="sub"),
    ),
    "no_ids": without("id"),
    "null_ids": without("id", id=None),
    "no_name": without("name"),
    "null_name": without("name", name=None),
    "late_id": stream(
        call(0, "", first=True, name="add"),
        call(0, '{"a"'),
        call(0, ":1}", id="c1"),
        call(1, "", first=True, name="sub"),
        call(1, "{}", id="c2"),
    ),
    "late_name": stream(
        call(0, "", first=True, id="c1"),
        call(0, '{"a"'),
        call(0, ":1}", name="add"),
        call(1, "", first=True, id="c2"),
        call(1, "{}", name="sub"),
    ),
    "split_name": stream(
        first(0, "c1", "a"),
        call(0, "", name="dd"),
        call(0, '{"a"'),
        call(0, ":1}"),
        first(1, "c2", "s"),
        call(1, "", name="ub"),
        call(1, "{}"),
    ),
    "same_index": indexed(0, 0),
    "no_index": indexed(None, None),
    "one_based_index": indexed(1, 2),
    "interleaved": stream(
        first(0, "c1", "add"),
        first(1, "c2", "sub"),
        call(0, '{"a"'),
        call(1, "{}"),
        call(0, ":1}"),
    ),
    "whole_call_one_chunk": stream(
        [[*first(0, "c1", "add", '{"a":1}'), *first(1, "c2", "sub", "{}")], "tool_calls"],
        end=(USAGE, "[DONE]"),
    ),
    "arguments_as_object": stream(first(0, "c1", "add", {"a": 1}), first(1, "c2", "sub", {})),
    "null_arguments": stream(
        first(0, "c1", "add", None),
        call(0, '{"a"'),
        call(0, ":1}"),
        first(1, "c2", "sub", None),
        call(1, "{}"),
    ),
    "cut_arguments": [*PLAIN[:6], call(1, "{"), *PLAIN[7:]],
    "no_done": PLAIN[:-1],
    "no_finish_reason": [*PLAIN[:-3], USAGE, "[DONE]"],
    "stop_with_calls": stream(*PLAIN[2:-3], end=([{}, "stop"], USAGE, "[DONE]")),
    "finish_other": stream(*PLAIN[2:-3], end=([{}, "unknown"], USAGE, "[DONE]")),
    "error_in_stream": [*HALF, ERROR],
    "two_answers": PLAIN + PLAIN,
    "no_usage": [*PLAIN[:-2], "[DONE]"],
    "keepalives": PLAIN,
    "crlf": PLAIN,
    "lone_cr": PLAIN,
    "no_space": PLAIN,
    "no_last_blank_line": PLAIN,
    "multi_line_data": PLAIN,
    "wrong_content_type": PLAIN,
}


@pytest.mark.parametrize("name", CHAT_QUIRKS)
def test_a_quirk_changes_the_stream_as_it_says(name: str) -> None:
    reply = answer({**CALLS, "quirks": [name]})
    assert reply.deltas() == CHAT_QUIRKS[name]
    assert reply.complete


def test_without_a_quirk_the_stream_is_well_formed() -> None:
    reply = answer(CALLS)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert reply.deltas() == PLAIN
    ids = {event["id"] for event in reply.payloads() if event != "[DONE]"}
    assert ids == {"chatcmpl-1"}


def test_usage_every_chunk_is_a_running_total_that_ends_in_the_usage() -> None:
    totals = [d[-1] for d in answer({**CALLS, "quirks": ["usage_every_chunk"]}).deltas()[:-1]]
    assert [total["completion_tokens"] for total in totals] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert totals[-1] == USAGE


THINK = {"reasoning": "hm so", "text": "Hi", "chunk_chars": 6, "usage": {}}
TAIL = [[{}, "stop"], {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "[DONE]"]
REASONING_QUIRKS = {
    "by default it has DeepSeek's field": ([], [{"reasoning_content": "hm so", "content": None}, TEXT]),
    "reasoning_field names another": (
        ["reasoning_field:thinking"],
        [{"thinking": "hm so", "content": None}, TEXT],
    ),
    "reasoning_in_both repeats it as text": (
        ["reasoning_in_both"],
        [{"reasoning_content": "hm so", "content": "hm so"}, TEXT],
    ),
    "think_tags writes it into the text, in pieces that cut the tags": (
        ["think_tags"],
        [{"content": "<think"}, {"content": ">hm so"}, {"content": "</thin"}, {"content": "k>\nHi"}],
    ),
}


@pytest.mark.parametrize("name", REASONING_QUIRKS)
def test_reasoning(name: str) -> None:
    names, deltas = REASONING_QUIRKS[name]
    assert answer({**THINK, "quirks": names}).deltas() == [ROLE, *deltas, *TAIL]


SHORT = {"events": [{"x": 1}, "[DONE]"]}
PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
    b"<body><center><h1>502 Bad Gateway</h1></center></body></html>\n"
)
BYTES: dict[str, tuple[dict[str, Any], bytes]] = {
    "events are sent as they are": (SHORT, b'data: {"x":1}\n\ndata: [DONE]\n\n'),
    "a null event is a literal null": ({"events": [None]}, b"data: null\n\n"),
    "a string event is not quoted": ({"events": ["{cut"]}, b"data: {cut\n\n"),
    "characters are sent as such": ({"events": [{"x": "é\U0001f600"}]}, 'data: {"x":"é😀"}\n\n'.encode()),
    "a lone surrogate is sent as an escape": (
        {"events": [{"x": "\ud83d"}]},
        b'data: {"x":"\\ud83d"}\n\n',
    ),
    "keepalives": ({**SHORT, "quirks": ["keepalives"]}, b': keepalive\n\ndata: {"x":1}\n\n'),
    "crlf": ({**SHORT, "quirks": ["crlf"]}, b'data: {"x":1}\r\n\r\ndata: [DONE]\r\n\r\n'),
    "lone_cr": ({**SHORT, "quirks": ["lone_cr"]}, b'data: {"x":1}\r\rdata: [DONE]\r\r'),
    "bom": ({**SHORT, "quirks": ["bom"]}, b'\xef\xbb\xbfdata: {"x":1}\n\ndata: [DONE]\n\n'),
    "no_space": ({**SHORT, "quirks": ["no_space"]}, b'data:{"x":1}\n\ndata:[DONE]\n\n'),
    "no_last_blank_line": (
        {**SHORT, "quirks": ["no_last_blank_line"]},
        b'data: {"x":1}\n\ndata: [DONE]\n',
    ),
    "multi_line_data": (
        {**SHORT, "quirks": ["multi_line_data"]},
        b'data: {\ndata:  "x": 1\ndata: }\n\ndata: [DONE]\n\n',
    ),
    "null_frames": (
        {**SHORT, "quirks": ["null_frames"]},
        b'data: null\n\ndata: {"x":1}\n\ndata: null\n\ndata: [DONE]\n\n',
    ),
    "html": ({**SHORT, "quirks": ["html"]}, PAGE),
    "empty_body": ({**SHORT, "quirks": ["empty_body"]}, b""),
    "raw text": ({"raw": "data: x\n\n"}, b"data: x\n\n"),
    "raw base64, joined": ({"raw_b64": ["ZGF0", "YTogeA=="]}, b"data: x"),
    "error_as_json_line": (
        {"text": "", "quirks": ["error_as_json_line"], "error": {"message": "no", "code": 500}},
        b'{"error":{"message":"no","type":"server_error","param":null,"code":500}}\n\n',
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_the_bytes_of_a_body(name: str) -> None:
    spec, expected = BYTES[name]
    body = answer(spec).body
    assert body[-len(expected) :] == expected if name == "error_as_json_line" else body.startswith(expected)
    if name not in {"keepalives", "error_as_json_line"}:
        assert body == expected


def test_gzip_says_so_and_can_be_read_event_by_event() -> None:
    reply = answer({**SHORT, "quirks": ["gzip"], "event_delay_ms": 1})
    assert reply.headers["content-encoding"] == "gzip"
    unzip = zlib.decompressobj(wbits=31)
    assert [unzip.decompress(part) for part in reply.writes[:2]] == [
        b'data: {"x":1}\n\n',
        b"data: [DONE]\n\n",
    ]


def test_gzip_unmarked_does_not_say_so() -> None:
    reply = answer({**SHORT, "quirks": ["gzip_unmarked"]})
    assert "content-encoding" not in reply.headers
    assert gzip.decompress(reply.body) == b'data: {"x":1}\n\ndata: [DONE]\n\n'


CONTENT_TYPES = {
    "events": ({"text": "a"}, True, "text/event-stream; charset=utf-8"),
    "events called JSON": ({"text": "a", "quirks": ["wrong_content_type"]}, True, "application/json"),
    "a document": ({"text": "a"}, False, "application/json"),
    "a document called events": (
        {"text": "a", "quirks": ["wrong_content_type"]},
        False,
        "text/event-stream; charset=utf-8",
    ),
    "a document where a stream was asked for": ({"text": "a", "stream": False}, True, "application/json"),
    "the same by a quirk": ({"text": "a", "quirks": ["json_body"]}, True, "application/json"),
    "a stream where a document was asked for": (
        {"text": "a", "stream": True},
        False,
        "text/event-stream; charset=utf-8",
    ),
    "what the script says": ({"text": "a", "content_type": "text/plain"}, True, "text/plain"),
    "a page": ({"text": "a", "quirks": ["html"]}, True, "text/html; charset=utf-8"),
    "a page called events": (
        {"text": "a", "quirks": ["html", "wrong_content_type"]},
        True,
        "text/event-stream; charset=utf-8",
    ),
}


@pytest.mark.parametrize("name", CONTENT_TYPES)
def test_content_types(name: str) -> None:
    spec, streaming, expected = CONTENT_TYPES[name]
    assert answer(spec, post_bytes({**ASK, "stream": streaming})).headers["content-type"] == expected


def test_a_document_holds_the_whole_answer() -> None:
    reply = answer({**CALLS, "reasoning": "hm"}, post_bytes({**ASK, "stream": False}))
    assert json.loads(reply.body) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
                        {"id": "c2", "type": "function", "function": {"name": "sub", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }


DOCUMENT_QUIRKS: dict[str, list[dict[str, Any]]] = {
    "no_ids": [{"type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    "null_name": [{"id": "c1", "type": "function", "function": {"name": None, "arguments": '{"a":1}'}}],
    "late_id": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    "split_name": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    "arguments_as_object": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    ],
}


@pytest.mark.parametrize("name", DOCUMENT_QUIRKS)
def test_quirks_of_identity_hold_in_a_document_too(name: str) -> None:
    spec = {**CALLS, "tool_calls": CALLS["tool_calls"][:1], "quirks": [name]}  # type: ignore[index]
    reply = answer(spec, post_bytes({**ASK, "stream": False}))
    assert json.loads(reply.body)["choices"][0]["message"]["tool_calls"] == DOCUMENT_QUIRKS[name]


USAGES = {
    "is counted from the request and the answer if it is asked for": ({"text": "12345678"}, ASK, (True, 2)),
    "is left out if it is not": ({"text": "a"}, {**ASK, "stream_options": None}, None),
    "in the script is reported in any case": (
        {"text": "a", "usage": {"output_tokens": 5}},
        {**ASK, "stream_options": None},
        (False, 5),
    ),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage(name: str) -> None:
    spec, body, expected = USAGES[name]
    usages = [p["usage"] for p in answer(spec, post_bytes(body)).payloads()[:-1] if "usage" in p]
    found = [(usage["prompt_tokens"] > 0, usage["completion_tokens"]) for usage in usages]
    assert found == ([] if expected is None else [expected])


def test_cached_and_reasoning_tokens_are_parts_of_the_totals() -> None:
    usage = {"input_tokens": 1, "cache_read_tokens": 10, "output_tokens": 5, "reasoning_tokens": 4}
    assert answer({"text": "a", "usage": usage}).deltas()[-2] == {
        "prompt_tokens": 11,
        "completion_tokens": 5,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }


def test_every_quirk_is_tested_here_and_told_about() -> None:
    elsewhere = {
        "usage_every_chunk", "error_as_json_line", "null_frames", "bom", "html", "empty_body",
        "gzip", "gzip_unmarked", "json_body", "cut_after_half", "clean_cut", "reset", "think_tags",
        "reasoning_in_both",
    }  # fmt: skip
    assert set(quirks.QUIRKS) == set(CHAT_QUIRKS) | elsewhere
    assert set(quirks.PARAMETRIC) == {"reasoning_field"}
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`[^|]*)\|", page))))
    assert set(quirks.QUIRKS) <= told

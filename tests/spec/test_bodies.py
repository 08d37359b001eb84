"""What a body is: told by its first bytes, whatever its content type; and limits on all of it."""

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from chat_streams import DONE, body, call, calls_of, delta, end, ending_of, entry, frame, notes_of, text_of

from lockstitch.history import answer_size
from lockstitch.history import decode as decode_module
from lockstitch.history.decode import Decoded, Decoder, decode
from lockstitch.providers.classify import recovery_of
from lockstitch.providers.response_blocks import BLOCKS_MAX
from lockstitch.schema.blocks import ToolCall
from lockstitch.schema.chunks import Finish, TextDelta
from lockstitch.schema.errors import CallerError
from lockstitch.wire import jsonl

STREAM = body([delta("ok"), *end("stop")])
COMPLETION = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
JSON = json.dumps(COMPLETION).encode()
MENDED = {"json_instead_of_stream": 1}


def document(**changes: Any) -> bytes:
    return json.dumps({**COMPLETION, **changes}).encode()


BODIES: dict[str, tuple[bytes, str, str, dict[str, int]]] = {
    "a stream": (STREAM, "stop", "ok", {}),
    "a stream behind blank lines and a BOM": (b"\xef\xbb\xbf\n\n" + STREAM, "stop", "ok", {}),
    "a stream behind a comment": (b": hi\n\n" + STREAM, "stop", "ok", {}),
    "a stream behind a field nobody wants": (b"retry: 3\n\n" + STREAM, "stop", "ok", {}),
    "a stream behind text": (b"warming up\n" + STREAM, "stop", "ok", {}),
    "a stream behind JSON": (b'{"warming": "up"}\n' + STREAM, "stop", "ok", {}),
    "a stream without blank lines": (
        b"\n".join(frame(event).strip() for event in [delta("o"), delta("k"), *end("stop")]),
        "stop",
        "ok",
        {"events_without_blank_line": 1},
    ),
    "several objects in one event": (
        b"data: "
        + b" ".join(json.dumps(one).encode() for one in [delta("o"), delta("k")])
        + b"\n\n"
        + body(end("stop")),
        "stop",
        "ok",
        {"several_objects_in_frame": 1},
    ),
    "a prefix written twice": (
        b"data: data: " + json.dumps(delta("ok")).encode() + b"\n\ndata: data: [DONE]\n\n",
        "stop",
        "ok",
        {"doubled_data_prefix": 2},
    ),
    "a sentinel in quotes": (body([delta("ok"), '"[DONE]"']), "stop", "ok", {}),
    "a stream cut inside a frame": (body([delta("ok")]) + b'data: {"choi', "STREAM_CLOSED", "ok", {}),
    "a stream cut inside its first frame": (b'data: {"choi', "STREAM_CLOSED", "", {}),
    "a stream cut inside its sentinel": (
        body([delta("ok"), delta(finish="stop")]) + b"data: [DO",
        "stop",
        "ok",
        {"missing_done": 1},
    ),
    "a stream cut inside the second line of a frame": (
        body([delta("ok")]) + b'data: {"choices":\ndata: [{"del',
        "STREAM_CLOSED",
        "ok",
        {},
    ),
    "a broken frame whose line ends": (
        body([delta("ok")]) + b'data: {"choi\n',
        "MALFORMED_RESPONSE",
        "ok",
        {"frame_not_json": 1},
    ),
    "a stream without blank lines, cut inside a frame": (
        b"\n".join(frame(event).strip() for event in [delta("o"), delta("k"), delta("!")])[:-9],
        "STREAM_CLOSED",
        "ok",
        {"events_without_blank_line": 1},
    ),
    "one JSON document": (JSON, "stop", "ok", MENDED),
    "one JSON document, indented, behind a BOM": (
        b"\xef\xbb\xbf\n" + json.dumps(COMPLETION, indent=2).encode(),
        "stop",
        "ok",
        MENDED,
    ),
    "a JSON document in an event stream": (frame(COMPLETION), "stop", "ok", {"missing_done": 1}),
    "a JSON document without a finish reason": (
        document(choices=[{"message": {"content": "ok"}}]),
        "stop",
        "ok",
        MENDED,
    ),
    "a JSON document cut by the output limit": (
        document(choices=[{"message": {"content": "ok"}, "finish_reason": "length"}]),
        "length",
        "ok",
        MENDED,
    ),
    "a JSON document without a choice": (document(choices=[]), "EMPTY_RESPONSE", "", MENDED),
    "a JSON document with an error": (b'{"error":{"message":"x","code":500}}', "SERVER", "", MENDED),
    "a JSON document that is a detail": (b'{"detail":"Not Found"}', "SERVER", "", MENDED),
    "a JSON document of something else": (b'{"status":"ok"}', "NOT_AN_API", "", MENDED),
    "a JSON list of chunks": (
        json.dumps([delta("o"), delta("k"), delta(finish="stop")]).encode(),
        "stop",
        "ok",
        MENDED,
    ),
    "a JSON list of nothing": (b"[]", "NOT_AN_API", "", MENDED),
    "a JSON document that is cut": (JSON[:-20], "STREAM_CLOSED", "", {}),
    "JSON lines": (
        b"\n".join(json.dumps(one).encode() for one in [delta("o"), delta("k"), delta(finish="stop")]),
        "stop",
        "ok",
        {"json_lines": 1, "missing_done": 1},
    ),
    "a page": (b"<html><title> Sign\n in </title>", "NOT_AN_API", "", {}),
    "a page behind white space": (b" \r\n\t<!doctype html>", "NOT_AN_API", "", {}),
    "XML": (b"<?xml version='1.0'?><Error/>", "NOT_AN_API", "", {}),
    "plain text": (b"upstream connect error", "NOT_AN_API", "", {}),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00", "NOT_AN_API", "", {}),
    "nothing": (b"", "EMPTY_RESPONSE", "", {}),
    "white space": (b" \n\r\n ", "EMPTY_RESPONSE", "", {}),
    "a BOM": (b"\xef\xbb\xbf", "EMPTY_RESPONSE", "", {}),
    "keepalives": (b": ping\n\n: ping\n\n", "EMPTY_RESPONSE", "", {}),
    "events without data": (b"event: ping\n\ndata:\n\n", "EMPTY_RESPONSE", "", {}),
    "a keepalive and a JSON error": (b': ping\n\n{"error":{"message":"x","code":500}}\n', "SERVER", "", {}),
    "one character of a field name": (b"d", "NOT_AN_API", "", {}),
    "a gzip stream": (gzip.compress(STREAM), "stop", "ok", {}),
    "a gzip document": (gzip.compress(JSON), "stop", "ok", MENDED),
    "a gzip page": (gzip.compress(b"<html>"), "NOT_AN_API", "", {}),
    "gzip in several members, padded": (
        gzip.compress(STREAM[:40]) + gzip.compress(STREAM[40:]) + b"\0\0",
        "stop",
        "ok",
        {},
    ),
    "gzip of nothing": (gzip.compress(b""), "EMPTY_RESPONSE", "", {}),
    "gzip cut behind the sentinel": (gzip.compress(STREAM)[:-4], "stop", "ok", {}),
    "gzip damaged at its start": (b"\x1f\x8bnot gzip", "MALFORMED_RESPONSE", "", {}),
    "the first byte of gzip": (b"\x1f", "NOT_AN_API", "", {}),
    "gzip in gzip": (gzip.compress(gzip.compress(STREAM)), "NOT_AN_API", "", {}),
}


@pytest.mark.parametrize("size", [1, 7, 1 << 20], ids=["by bytes", "by sevens", "whole"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str, size: int) -> None:
    data, ending, text, notes = BODIES[name]
    result = decode([data[at : at + size] for at in range(0, len(data), size)], "openai-chat")
    assert (ending_of(result), text_of(result), notes_of(result)) == (ending, text, notes)


def test_gzip_that_is_cut_before_the_end_is_a_cut_stream() -> None:
    noise = "".join(random.Random(1).choices("abcdefghij", k=20_000))
    result = decode(gzip.compress(body([delta(noise), *end("stop")]))[:4000], "openai-chat")
    assert ending_of(result) in ("STREAM_CLOSED", "MALFORMED_RESPONSE")
    assert notes_of(result)["gzip_truncated"] == 1


def test_a_page_is_named_by_its_title_and_not_quoted() -> None:
    failure = decode(b"<html><title> Sign\n in </title><body>secret", "openai-chat").finish.failure
    assert failure is not None
    assert "'Sign in'" in failure.message
    assert "secret" not in failure.message


def test_a_document_with_everything() -> None:
    message = {
        "content": "ok",
        "reasoning": "hm",
        "tool_calls": [entry(..., "a", "ls", '{"p":1}'), entry(..., "b", "ls", {"p": 2})],
    }
    result = decode(document(choices=[{"message": message, "finish_reason": "stop"}]), "openai-chat")
    assert ending_of(result) == "tool_calls"
    assert calls_of(result) == [("a", "ls", '{"p":1}'), ("b", "ls", '{"p":2}')]


REFUSED: dict[str, tuple[int, bytes, str]] = {
    "an error object": (429, b'{"error":{"message":"Rate limit reached"}}', "RATE_LIMIT"),
    "no body": (500, b"", "SERVER"),
    "a page": (502, b"<html><title>Bad gateway</title></html>", "SERVER"),
    "a stream with an error": (401, frame({"error": {"message": "bad key"}}), "AUTH"),
    "a whole answer under an error status": (500, STREAM, "SERVER"),
    "gzip": (401, gzip.compress(b'{"error":{"message":"bad key"}}'), "AUTH"),
    "more than is read": (500, b"x" * 3_000_000, "SERVER"),
}


@pytest.mark.parametrize("size", [97, 1 << 30], ids=["in pieces", "whole"])
@pytest.mark.parametrize("name", REFUSED)
def test_an_error_status_is_classified(name: str, size: int) -> None:
    status, data, code = REFUSED[name]
    reads = [data[at : at + size] for at in range(0, len(data), size)]
    result = decode(reads, "openai-chat", status=status)
    assert ending_of(result) == code
    assert result.finish.failure is not None and result.finish.failure.status == status


def test_headers_tell_when_to_come_back() -> None:
    decoder = Decoder("openai-chat", status=429, headers={"Retry-After": "7", "x-request-id": "r1"})
    decoder.feed(b"{}")
    decoder.end()
    failure = decoder.result.finish.failure
    assert failure is not None
    assert (failure.retry_after_s, failure.request_id) == (7.0, "r1")


def test_an_error_status_says_more_than_the_connection_that_broke_after_it() -> None:
    from lockstitch.schema.failures import failure

    decoder = Decoder("openai-chat", status=401)
    decoder.feed(b'{"error":{"mess')
    decoder.fail(failure("TRANSPORT", "reset"))
    assert ending_of(decoder.result) == "AUTH"


def limited(data: bytes, **limits: int) -> Decoded:
    decoder = Decoder("openai-chat", **limits)
    for at in range(0, len(data), 1000):
        decoder.feed(data[at : at + 1000])
    decoder.end()
    return decoder.result


LARGE = body([delta("a" * 50)] * 200)
LIMITS: dict[str, tuple[bytes, dict[str, int]]] = {
    "a stream": (LARGE, {"response_max": 5000}),
    "a line": (body([delta("a"), delta("b" * 5000)]), {"line_max": 4000}),
    "a document": (document(x="a" * 5000), {"response_max": 4000}),
    "white space": (b" " * 5000, {"response_max": 4000}),
    "a gzip bomb": (gzip.compress(body([delta("a" * 1000)] * 20_000)), {"response_max": 1_000_000}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_end_the_response(name: str) -> None:
    data, limits = LIMITS[name]
    result = limited(data, **limits)
    assert ending_of(result) == "OUTPUT_LIMIT"
    assert result.finish.failure is not None and "larger than" in result.finish.failure.message
    # The same request would bring as much again.
    assert (result.finish.failure.retryable, recovery_of(result.finish.failure)) == (False, "none")


def test_a_gzip_bomb_is_not_inflated_past_the_limit() -> None:
    decoder = Decoder("openai-chat", response_max=2_000_000)
    decoder.feed(gzip.compress(b"data: " + b"a" * 30_000_000))
    assert ending_of(decoder.result) == "OUTPUT_LIMIT"


def test_a_bomb_behind_an_error_status_is_judged_by_its_status() -> None:
    decoder = Decoder("openai-chat", status=503)
    decoder.feed(gzip.compress(b'{"error":' + b" " * 30_000_000))
    assert ending_of(decoder.result) == "SERVER"


def chat_calls(count: int) -> list[Any]:
    return [*(call(number, f"c{number}", "ls", "{}") for number in range(count)), *end("tool_calls")]


def anthropic_blocks(count: int) -> list[Any]:
    start = {"type": "content_block_start", "content_block": {"type": "text", "text": "a"}}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return [*({**start, "index": number} for number in range(count)), stop, {"type": "message_stop"}]


def responses_items(count: int) -> list[Any]:
    done = {"type": "response.output_item.done", "item": {"type": "function_call", "name": "ls"}}
    items = ({**done, "output_index": number} for number in range(count))
    return [*items, {"type": "response.completed", "response": {"status": "completed"}}]


def gemini_calls(count: int) -> list[Any]:
    parts = [{"functionCall": {"name": "ls", "args": {}}} for _ in range(count)]
    return [{"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}]


def marked_calls(count: int) -> list[Any]:
    return [delta('<tool_call>{"name":"ls","arguments":{}}</tool_call>' * count), *end()]


MANY: dict[str, tuple[str, Callable[[int], list[Any]], str | None]] = {
    "calls of chat": ("openai-chat", chat_calls, None),
    "calls as markup": ("openai-chat", marked_calls, "vllm"),
    "blocks of anthropic": ("anthropic-messages", anthropic_blocks, None),
    "items of responses": ("openai-responses", responses_items, None),
    "calls of gemini": ("gemini", gemini_calls, None),
}


@pytest.mark.parametrize("name", MANY)
def test_blocks_beyond_their_limit_end_the_response(name: str) -> None:
    dialect, events, profile = MANY[name]
    assert ending_of(decode(body(events(BLOCKS_MAX)), dialect, profile=profile)) in ("stop", "tool_calls")
    decoder = Decoder(dialect, profile=profile)
    chunks = decoder.feed(body(events(BLOCKS_MAX + 5))) + decoder.end()
    failure = decoder.result.finish.failure
    assert failure is not None and "10,000 blocks" in failure.message
    assert (failure.code, failure.retryable, recovery_of(failure)) == ("OUTPUT_LIMIT", False, "none")
    assert not any(isinstance(block, ToolCall) for block in decoder.result.content)
    assert [type(chunk) for chunk in chunks].count(Finish) == 1 and type(chunks[-1]) is Finish


def raw_controls(count: int) -> bytes:
    """Bytes that are one each in the body, and six in JSON."""
    return b'data: {"choices":[{"delta":{"content":"' + b"\x01" * count + b'"}}]}\n\n' + body(end("stop"))


def many_controls(count: int) -> bytes:
    """The same in many deltas, none of which is large."""
    frame = b'data: {"choices":[{"delta":{"content":"' + b"\x01" * 1_000 + b'"}}]}\n\n'
    return frame * (count // 1_000) + body(end("stop"))


def numbers(count: int) -> bytes:
    args = b",".join([b"1e15"] * count)
    call = b'{"functionCall":{"name":"ls","args":{"p":[' + args + b"]}}}"
    return b'data: {"candidates":[{"content":{"parts":[' + call + b']},"finishReason":"STOP"}]}\n\n'


SWELLING: dict[str, tuple[str, bytes, str]] = {
    "control characters in text": ("openai-chat", raw_controls(200_000), "OUTPUT_LIMIT"),
    "numbers in arguments": ("gemini", numbers(70_000), "OUTPUT_LIMIT"),
    "what is not too large": ("gemini", numbers(40_000), "tool_calls"),
}


@pytest.mark.parametrize("name", SWELLING)
@pytest.mark.parametrize("size", [997, 1 << 30], ids=["in pieces", "whole"])
def test_an_answer_that_no_record_would_hold_is_none(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (answer_size, decode_module):
        monkeypatch.setattr(module, "ANSWER_MAX", 1_000_000)
        monkeypatch.setattr(module, "LARGE_BYTES", 100_000)
    dialect, data, ending = SWELLING[name]
    result = decode([data[at : at + size] for at in range(0, len(data), size)], dialect)
    assert ending_of(result) == ending
    assert (result.content == ()) is (ending == "OUTPUT_LIMIT")
    assert len(msgspec.json.encode(result)) <= 1_001_000


@pytest.mark.parametrize("size", [997, 1 << 30], ids=["in pieces", "whole"])
@pytest.mark.parametrize("ends", [True, False], ids=["to its end", "cut"])
def test_deltas_that_no_record_would_hold_together_end_the_answer(
    size: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (answer_size, decode_module):
        monkeypatch.setattr(module, "ANSWER_MAX", 1_000_000)
        monkeypatch.setattr(module, "LARGE_BYTES", 50_000)
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}\n\n'
    data = usage + many_controls(300_000)
    data = data if ends else data.removesuffix(body(end("stop")))
    decoder = Decoder("openai-chat")
    chunks = [chunk for at in range(0, len(data), size) for chunk in decoder.feed(data[at : at + size])]
    chunks += decoder.end()
    assert ending_of(decoder.result) == "OUTPUT_LIMIT"
    assert decoder.result.usage is not None and decoder.result.usage.input_tokens == 7
    shown = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert len(msgspec.json.encode(shown)) <= 1_000_000
    assert len(msgspec.json.encode(decoder.result)) <= 1_001_000


def test_a_record_holds_the_largest_answer_and_its_envelope() -> None:
    assert answer_size.ANSWER_MAX <= jsonl.RECORD_MAX_BYTES - 4 * 1024 * 1024
    assert answer_size.LARGE_BYTES * 12 <= answer_size.ANSWER_MAX  # what swells most: six bytes, kept twice


class TestArguments:
    def test_the_body_may_be_text_or_any_bytes(self) -> None:
        for data in (STREAM.decode(), bytearray(STREAM), memoryview(STREAM), iter([STREAM])):
            assert text_of(decode(data, "openai-chat")) == "ok"

    def test_an_unknown_dialect_is_the_callers_fault(self) -> None:
        with pytest.raises(CallerError, match="known: openai-chat"):
            decode(b"", "openai")

    def test_an_unknown_profile_is_the_callers_fault(self) -> None:
        with pytest.raises(CallerError, match="known: generic"):
            decode(b"", "openai-chat", profile="nobody")

    def test_the_result_before_the_end_is_the_callers_fault(self) -> None:
        with pytest.raises(CallerError, match="has not ended"):
            _ = Decoder("openai-chat").result

    def test_a_mint_makes_the_ids_that_did_not_come(self) -> None:
        given = iter(["a", "", "a", "b"])
        data = body([call(0, ..., "ls", "{}"), call(1, ..., "ls", "{}"), *end()])
        assert [one[0] for one in calls_of(decode(data, "openai-chat", mint=lambda: next(given)))] == [
            "a",
            "b",
        ]

    def test_a_mint_that_repeats_itself_does_not_hang(self) -> None:
        data = body([call(0, ..., "ls", "{}"), call(1, ..., "ls", "{}"), *end()])
        assert [one[0] for one in calls_of(decode(data, "openai-chat", mint=lambda: "a"))] == ["a", "call_1"]

    def test_data_frames_are_counted_and_keepalives_not(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(b": ping\n\n" + body([delta("a"), delta("b"), DONE]))
        assert decoder.data_frames == 3

"""How an openai-chat answer ends: finish reasons, errors in the stream, cuts, usage."""

from typing import Any

import pytest
from chat_streams import DONE, body, call, calls_of, delta, end, ending_of, notes_of, text_of

from lockstitch.history.decode import Decoded, Decoder, decode
from lockstitch.schema.chunks import Chunk, Finish, UsageChunk
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage

CALL = call(0, "c1", "ls", "{}")
NO_DONE = {"missing_done": 1}


def decoded(*events: Any, profile: str = "generic") -> Decoded:
    return decode(body(events), "openai-chat", profile=profile)


def kinds(chunks: list[Chunk]) -> list[str]:
    return [type(chunk).__name__ for chunk in chunks]


ENDINGS: dict[str, tuple[list[Any], str, dict[str, int]]] = {
    "a finish reason and the sentinel": ([delta("a"), *end("stop")], "stop", {}),
    "the sentinel alone is an end": ([delta("a"), DONE], "stop", {}),
    "a finish reason alone is an end, and noted": ([delta("a"), delta(finish="stop")], "stop", NO_DONE),
    "neither is a cut": ([delta("a")], "STREAM_CLOSED", {}),
    "a usage chunk is no end": (
        [delta("a"), {"choices": [], "usage": {"prompt_tokens": 1}}],
        "STREAM_CLOSED",
        {},
    ),
    "a cut inside a call": ([CALL], "STREAM_CLOSED", {}),
    "an empty finish reason is none": (
        [delta("a", finish=""), delta("b", finish="null")],
        "STREAM_CLOSED",
        {},
    ),
    "a finish reason of another type is none": (
        [delta("a", finish=1), delta(finish=["stop"])],
        "STREAM_CLOSED",
        {},
    ),
    "an unknown label is an end": ([delta("a"), *end("weird")], "stop", {"unknown_finish_reason": 1}),
    "an unknown label with calls": ([CALL, *end("weird")], "tool_calls", {"unknown_finish_reason": 1}),
    "stop with calls": ([CALL, *end("stop")], "tool_calls", {}),
    "the sentinel alone with calls": ([CALL, DONE], "tool_calls", {}),
    "function_call with calls": ([CALL, *end("function_call")], "tool_calls", {}),
    "labels of other protocols": ([delta("a"), *end("end_turn")], "stop", {}),
    "labels in capitals": ([delta("a"), *end("MAX_TOKENS")], "length", {}),
    "tool_calls without a call, though with text": ([delta("a"), *end("tool_calls")], "EMPTY_RESPONSE", {}),
    "stop with nothing": ([*end("stop")], "EMPTY_RESPONSE", {}),
    "the sentinel alone with nothing": ([DONE], "EMPTY_RESPONSE", {}),
    "stop with white space": ([delta(" \n\u200b"), *end("stop")], "EMPTY_RESPONSE", {}),
    "stop with reasoning alone": ([delta(reasoning="hm"), *end("stop")], "EMPTY_RESPONSE", {}),
    "stop with an unclosed think block": ([delta("<think>hm"), *end("stop")], "EMPTY_RESPONSE", {}),
    "an unknown label with nothing": ([*end("weird")], "EMPTY_RESPONSE", {"unknown_finish_reason": 1}),
    "length with nothing is a cut answer, not an empty one": ([*end("length")], "length", {}),
    "length with reasoning alone": ([delta(reasoning="hm"), *end("length")], "length", {}),
    "content_filter": ([delta("a"), *end("content_filter")], "CONTENT_FILTER", {}),
    "content_filter with nothing is no empty answer": ([*end("content_filter")], "CONTENT_FILTER", {}),
    "content_filter with a nameless call": ([call(0, "a"), *end("content_filter")], "CONTENT_FILTER", {}),
    "the window exceeded": (
        [delta("a"), *end("model_context_window_exceeded")],
        "CONTEXT_WINDOW_EXCEEDED",
        {},
    ),
    "a gemini label through a chat gateway": ([*end("MALFORMED_FUNCTION_CALL")], "MALFORMED_TOOL_CALL", {}),
    "deepseek out of resources": ([delta("a"), *end("insufficient_system_resource")], "OVERLOADED", {}),
    "an unexplained error label": ([delta("a"), *end("error")], "SERVER", {}),
    "two finish reasons: a cut outweighs an end": (
        [delta("a"), delta(finish="length"), *end("stop")],
        "length",
        {},
    ),
    "two finish reasons: a cut outweighs tool_calls": (
        [CALL, delta(finish="tool_calls"), *end("length")],
        "length",
        {},
    ),
    "two finish reasons: a filter outweighs an end": (
        [delta("a"), delta(finish="stop"), *end("content_filter")],
        "CONTENT_FILTER",
        {},
    ),
    "finish reasons of two choices": (
        [
            {"choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1, "finish_reason": "tool_calls"}]},
            CALL,
            DONE,
        ],
        "tool_calls",
        {},
    ),
    "content behind the finish reason counts": ([delta(finish="stop"), delta("a"), DONE], "stop", {}),
    "what follows the sentinel does not": (
        [delta("a"), DONE, delta("b"), {"error": {"message": "x"}}],
        "stop",
        {},
    ),
    "the sentinel with white space around it": ([delta("a"), b" [DONE] "], "stop", {}),
    "frames that are no objects are noted": (
        [delta("a"), "null", "[]", "3", '"x"', "true", DONE],
        "stop",
        {"frame_not_object": 5},
    ),
    "a frame that is not JSON is noted if the end came": (
        [delta("a"), '{"choices":[{"del', *end("stop")],
        "stop",
        {"frame_not_json": 1},
    ),
    "a frame that is not JSON without an end": (
        [delta("a"), '{"choices":[{"del'],
        "MALFORMED_RESPONSE",
        {"frame_not_json": 1},
    ),
    "log probabilities of NaN do not cost the frame": (
        ['{"choices":[{"delta":{"content":"a"},"logprobs":NaN}]}', *end("stop")],
        "stop",
        {"number_not_kept": 1},
    ),
    "half a surrogate pair is replaced": (
        ['{"choices":[{"delta":{"content":"a\\ud83d"}}]}', *end("stop")],
        "stop",
        {"lone_surrogate": 1},
    ),
    "invalid UTF-8 is replaced": (
        [b'{"choices":[{"delta":{"content":"a\xff"}}]}', *end("stop")],
        "stop",
        {"invalid_utf8": 1},
    ),
    "deep nesting where nothing is wanted": (
        ['{"choices":[{"delta":{"content":"a"}}],"x":' + "[" * 99 + "]" * 99 + "}", *end("stop")],
        "stop",
        {},
    ),
    "nesting beyond the limit is no JSON": (
        ['{"choices":[{"delta":{"content":"a"}}],"x":' + "[" * 100 + "]" * 100 + "}"],
        "MALFORMED_RESPONSE",
        {"frame_not_json": 1},
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_endings(name: str) -> None:
    events, ending, notes = ENDINGS[name]
    result = decoded(*events)
    assert (ending_of(result), notes_of(result)) == (ending, notes)
    if result.finish.failure is not None:
        assert calls_of(result) == []


ERRORS: dict[str, tuple[list[Any], str]] = {
    "an object": (
        [{"error": {"message": "The server is overloaded", "type": "overloaded_error"}}],
        "OVERLOADED",
    ),
    "a string": ([{"error": "Rate limit reached, slow down"}], "RATE_LIMIT"),
    "a numeric code": ([{"error": {"message": "x", "code": 500}}], "SERVER"),
    "a code in a string": ([{"error": {"message": "x", "code": "429"}}], "RATE_LIMIT"),
    "beside choices and a finish reason": (
        [{**delta("b", finish="stop"), "error": {"message": "x", "code": 502}}],
        "SERVER",
    ),
    "after a finish reason": ([delta(finish="stop"), {"error": {"message": "x", "code": 500}}], "SERVER"),
    "before the sentinel": ([{"error": {"message": "x", "code": 500}}, DONE], "SERVER"),
    "the first of two": (
        [{"error": {"message": "x", "code": 500}}, {"error": {"message": "x", "code": 429}}],
        "SERVER",
    ),
    "an overflow": (
        [{"error": {"message": "maximum context length is 100 tokens", "code": "context_length_exceeded"}}],
        "CONTEXT_WINDOW_EXCEEDED",
    ),
    "an object that calls itself an error": (
        [{"object": "error", "message": "model overloaded", "code": 503, "type": "x"}],
        "OVERLOADED",
    ),
    "a code and a message alone": (
        [{"code": "Throttling.RateQuota", "message": "x", "request_id": "r"}],
        "RATE_LIMIT",
    ),
    "minimax's base_resp": ([{"base_resp": {"status_code": 1002, "status_msg": "x"}}], "RATE_LIMIT"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_in_the_stream(name: str) -> None:
    events, code = ERRORS[name]
    result = decoded(delta("a"), *events)
    assert (ending_of(result), text_of(result)) == (code, "a")


@pytest.mark.parametrize("nothing", [None, "", {}, [], False], ids=repr)
def test_an_error_field_that_says_nothing_is_none(nothing: Any) -> None:
    result = decoded({**delta("a"), "error": nothing}, {**delta(finish="stop"), "error": nothing}, DONE)
    assert (ending_of(result), text_of(result)) == ("stop", "a")


def test_a_base_resp_of_zero_is_none() -> None:
    fine = {"status_code": 0, "status_msg": ""}
    assert ending_of(decoded({**delta("a", finish="stop"), "base_resp": fine}, DONE)) == "stop"


@pytest.mark.parametrize(
    "data", [b'{"message":"x","code":500}', b"upstream overloaded"], ids=["JSON", "text"]
)
def test_an_event_named_error_is_one(data: bytes) -> None:
    result = decode(body([delta("a")]) + b"event: error\ndata: " + data + b"\n\n", "openai-chat")
    assert ending_of(result) in ("SERVER", "OVERLOADED")


STRAYS: dict[str, tuple[bytes, str]] = {
    "a JSON error": (b'{"error":{"message":"x","code":500}}', "SERVER"),
    "a JSON error over several lines": (b'{\n "error": {\n  "message": "x", "code": 500\n }\n}', "SERVER"),
    "a JSON error behind a word": (b'ERROR {"error":{"message":"x","code":500}}', "SERVER"),
    "text without JSON": (b"read ECONNRESET", "STREAM_CLOSED"),
    "JSON without an error": (b'{"ok":true}', "STREAM_CLOSED"),
}


@pytest.mark.parametrize("name", STRAYS)
def test_text_outside_of_frames_is_searched_if_no_end_came(name: str) -> None:
    stray, code = STRAYS[name]
    assert ending_of(decode(body([delta("a")]) + stray + b"\n", "openai-chat")) == code
    assert (
        ending_of(decode(body([delta("a"), delta(finish="stop")]) + stray + b"\n", "openai-chat")) == "stop"
    )


def test_the_words_outside_of_frames_are_in_the_message_of_a_cut() -> None:
    result = decode(body([delta("a")]) + b"read ECONNRESET\n", "openai-chat")
    assert result.finish.failure is not None
    assert "read ECONNRESET" in result.finish.failure.message
    assert result.finish.failure.subkind == "clean_eof"


USAGES: dict[str, tuple[list[Any], Usage | None]] = {
    "none": ([None], None),
    "the last object counts": (
        [{"prompt_tokens": 5, "completion_tokens": 1}, {"prompt_tokens": 5, "completion_tokens": 9}],
        Usage(5, 9),
    ),
    "null after an object changes nothing": (
        [{"prompt_tokens": 5, "completion_tokens": 1}, None],
        Usage(5, 1),
    ),
    "an object of nulls changes nothing": (
        [{"prompt_tokens": 5, "completion_tokens": 1}, {"prompt_tokens": None, "completion_tokens": None}],
        Usage(5, 1),
    ),
    "cache hits are a part of the prompt": (
        [{"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}],
        Usage(6, 1, cache_read_tokens=4),
    ),
    "deepseek's cache hits": (
        [
            {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "prompt_cache_hit_tokens": 4,
                "prompt_cache_miss_tokens": 6,
            }
        ],
        Usage(6, 1, cache_read_tokens=4),
    ),
    "moonshot's cache hits": (
        [{"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 4}],
        Usage(6, 1, cache_read_tokens=4),
    ),
    "more hits than prompt do not go below zero": (
        [{"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}],
        Usage(0, 1, cache_read_tokens=4),
    ),
    "cache writes are a part of the prompt": (
        [{"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}}],
        Usage(1, 0, cache_read_tokens=4, cache_write_tokens=5),
    ),
    "reasoning is a part of the output": (
        [{"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}}],
        Usage(1, 9, reasoning_tokens=8),
    ),
    "nested nulls": (
        [
            {
                "prompt_tokens": 1,
                "completion_tokens": 9,
                "prompt_tokens_details": None,
                "completion_tokens_details": [],
            }
        ],
        Usage(1, 9),
    ),
    "whole floats and digits in strings are counts": (
        [{"prompt_tokens": 12.0, "completion_tokens": "7"}],
        Usage(12, 7),
    ),
    "negative, broken and boolean counts are none": (
        [{"prompt_tokens": -1, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": True}}],
        Usage(0, 7),
    ),
    "an object without a count is none": ([{"prompt_tokens": "many", "total_tokens": 3}], None),
    "a list is none": ([[1, 2]], None),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage(name: str) -> None:
    usages, wanted = USAGES[name]
    events = [{**delta("a"), "usage": usage} for usage in usages]
    assert decoded(*events, *end("stop")).usage == wanted


def test_usage_may_be_in_the_choice_or_in_groqs_own_field() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 1}
    in_choice = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counts}]}
    assert decoded(delta("a"), in_choice, DONE).usage == Usage(5, 1)
    assert decoded(delta("a"), {**delta(finish="stop"), "x_groq": {"usage": counts}}, DONE).usage == Usage(
        5, 1
    )


def test_usage_is_reported_once_and_directly_before_the_finish() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 1}
    decoder = Decoder("openai-chat")
    chunks = decoder.feed(body([delta("a", usage=counts), CALL, *end("tool_calls")])) + decoder.end()
    assert kinds(chunks)[-2:] == ["UsageChunk", "Finish"]
    assert kinds(chunks).count("UsageChunk") == 1


BROKEN = failure("TRANSPORT", "connection reset")
LATE = failure("ABORTED", "the caller stopped")


class TestAnswersThatBreak:
    def test_a_broken_connection_keeps_usage_and_text(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([delta("a", usage={"prompt_tokens": 5, "completion_tokens": 1}), CALL]))
        assert decoder.fail(BROKEN) == [UsageChunk(Usage(5, 1)), Finish("error", BROKEN)]
        assert text_of(decoder.result) == "a"
        assert calls_of(decoder.result) == []

    def test_the_providers_own_error_wins_over_the_break(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([{"error": {"message": "x", "code": 500}}]))
        decoder.fail(BROKEN)
        assert ending_of(decoder.result) == "SERVER"

    def test_a_break_behind_the_finish_reason_is_only_noted(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([CALL, delta(finish="tool_calls")]))
        decoder.fail(BROKEN)
        assert (ending_of(decoder.result), notes_of(decoder.result)) == (
            "tool_calls",
            {"broken_after_finish": 1},
        )

    def test_a_sentinel_whose_blank_line_was_lost_counts(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([delta("a")]) + b"data: [DONE]\n")
        decoder.fail(BROKEN)
        assert ending_of(decoder.result) == "stop"

    def test_half_a_frame_at_the_break_is_not_held_against_the_gateway(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([delta("a")]) + b'data: {"choi')
        decoder.fail(BROKEN)
        assert (ending_of(decoder.result), notes_of(decoder.result)) == ("TRANSPORT", {})

    def test_a_caller_that_stops_gets_aborted_whatever_came(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.feed(body([delta("a <thi"), delta(finish="stop")]))
        decoder.fail(LATE, aborted=True)
        assert (decoder.result.finish, text_of(decoder.result)) == (Finish("aborted", LATE), "a <thi")

    def test_text_that_was_held_back_is_kept(self) -> None:
        decoder = Decoder("openai-chat", profile="qwen")
        decoder.feed(body([delta("a\n<tool_ca")]))
        decoder.fail(BROKEN)
        assert text_of(decoder.result) == "a\n<tool_ca"

    @pytest.mark.parametrize(("aborted", "code"), [(False, "TRANSPORT"), (True, "ABORTED")])
    def test_a_text_may_stand_for_the_failure(self, aborted: bool, code: str) -> None:
        decoder = Decoder("openai-chat")
        decoder.fail("connection reset", aborted=aborted)
        cause = decoder.result.finish.failure
        assert cause is not None and (cause.code, cause.message) == (code, "connection reset")

    def test_nothing_follows_the_finish(self) -> None:
        decoder = Decoder("openai-chat")
        decoder.fail(BROKEN)
        assert decoder.feed(body([delta("a")])) == []
        assert decoder.fail(LATE, aborted=True) == []
        assert decoder.end() == []
        assert decoder.result.finish == Finish("error", BROKEN)


def test_reading_may_stop_at_the_sentinel() -> None:
    decoder = Decoder("openai-chat")
    decoder.feed(body([delta("a"), delta(finish="stop")]))
    assert not decoder.terminal
    assert kinds(decoder.feed(body([DONE]))) == ["BlockEnd", "Finish"]
    assert decoder.terminal

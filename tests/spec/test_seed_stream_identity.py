"""The tests that the seed documents list, by their names there.

From "Streamed tool-call identity survives empty continuation deltas": what its ``translate.spec`` covers, and
the default retryable set that its ``retry-policy.spec`` pins. The profile is ``deepseek``, whose translator
it is about.
"""

from typing import Any

import pytest
from chat_streams import DONE, body, call, calls_of, delta, end, ending_of, entry, notes_of, text_of

from lockstitch.history.decode import Decoded, Decoder, decode
from lockstitch.schema.chunks import BlockEnd, Chunk, Finish, UsageChunk
from lockstitch.schema.failures import RETRYABLE
from lockstitch.schema.usage import Usage

USAGE = {"prompt_tokens": 12, "completion_tokens": 7, "prompt_cache_hit_tokens": 2}
BILLED = Usage(input_tokens=10, output_tokens=7, cache_read_tokens=2)
UNUSABLE: dict[str, Any] = {
    "undefined": ...,
    "null": None,
    "an empty string": "",
    "a number": 7,
    "zero": 0,
    "a boolean": True,
    "a list": ["call_2"],
    "an object": {"id": "call_2"},
}


def decoded(*events: Any) -> Decoded:
    return decode(body(events), "openai-chat", profile="deepseek", tools=("glob", "read"))


def chunks(*events: Any) -> list[Chunk]:
    decoder = Decoder("openai-chat", profile="deepseek", tools=("glob", "read"))
    return decoder.feed(body(events)) + decoder.end()


class TestTranslateSpec:
    def test_empty_continuation_deltas_keep_the_identity(self) -> None:
        result = decoded(
            call(0, "call_1", "glob", ""), call(0, "", "", '{"a":'), call(0, "", "", "1}"), *end("tool_calls")
        )
        assert calls_of(result) == [("call_1", "glob", '{"a":1}')]
        assert ending_of(result) == "tool_calls"

    def test_null_continuation_deltas_keep_the_identity(self) -> None:
        result = decoded(
            call(0, "call_1", "glob", None),
            call(0, None, None, "{}"),
            call(0, None, None, None),
            *end("stop"),
        )
        assert calls_of(result) == [("call_1", "glob", "{}")]

    @pytest.mark.parametrize("kind", UNUSABLE)
    def test_only_a_non_empty_string_is_an_identity(self, kind: str) -> None:
        value = UNUSABLE[kind]
        result = decoded(call(0, "call_1", "glob", "{"), call(0, value, value, "}"), *end("tool_calls"))
        assert calls_of(result) == [("call_1", "glob", "{}")]

    @pytest.mark.parametrize("kind", UNUSABLE)
    def test_an_identity_that_comes_after_unusable_values_counts(self, kind: str) -> None:
        value = UNUSABLE[kind]
        result = decoded(call(0, value, value, ""), call(0, "call_1", "glob", "{}"), *end("tool_calls"))
        assert calls_of(result) == [("call_1", "glob", "{}")]

    def test_repeated_identical_identity_is_not_concatenated(self) -> None:
        result = decoded(
            call(0, "call_1", "glob", ""),
            call(0, "call_1", "glob", "{"),
            call(0, "call_1", "glob", "}"),
            *end("tool_calls"),
        )
        assert calls_of(result) == [("call_1", "glob", "{}")]
        assert notes_of(result) == {}

    def test_parallel_calls_hold_separate_identities_under_empty_continuations(self) -> None:
        result = decoded(
            delta(tool_calls=[entry(0, "call_1", "glob", ""), entry(1, "call_2", "read", "")]),
            call(1, "", "", '{"b":'),
            call(0, "", "", '{"a":'),
            delta(tool_calls=[entry(0, None, None, "1}"), entry(1, "", "", "2}")]),
            *end("tool_calls"),
        )
        assert calls_of(result) == [("call_1", "glob", '{"a":1}'), ("call_2", "read", '{"b":2}')]

    @pytest.mark.parametrize("missing", ["id", "name", "both"])
    @pytest.mark.parametrize("reason", ["tool_calls", "stop", "length", None])
    def test_a_call_whose_id_or_name_never_arrives_is_refused(self, missing: str, reason: Any) -> None:
        id = "" if missing in ("id", "both") else "call_1"
        name = "" if missing in ("name", "both") else "glob"
        result = decoded(call(0, id, name, "{}"), call(0, id, name, ""), *end(reason))
        assert ending_of(result) == "MALFORMED_TOOL_CALL"
        assert result.finish.failure is not None and result.finish.failure.retryable
        assert result.content == ()

    def test_usage_is_reported_before_the_failure(self) -> None:
        found = chunks(
            delta("I will look."),
            call(0, "", "glob", "{}"),
            delta(finish="tool_calls"),
            {"choices": [], "usage": USAGE},
            DONE,
        )
        usage, finish = found[-2:]
        assert usage == UsageChunk(BILLED)
        assert isinstance(finish, Finish) and finish.failure is not None
        assert finish.failure.code == "MALFORMED_TOOL_CALL"

    def test_no_block_end_precedes_the_failure_not_even_of_the_text(self) -> None:
        found = chunks(
            delta("I will look."),
            call(0, "call_1", "glob", "{}"),
            call(1, "call_2", "", "{}"),
            *end("tool_calls"),
        )
        assert not any(isinstance(chunk, BlockEnd) for chunk in found)
        assert isinstance(found[-1], Finish)

    def test_the_text_before_a_refusal_is_kept_and_no_call(self) -> None:
        result = decoded(
            delta("I will look."), call(0, "call_1", "glob", "{}"), call(1, "call_2", "", "{}"), *end()
        )
        assert text_of(result) == "I will look."
        assert calls_of(result) == []

    def test_formerly_lenient_a_wire_without_any_id_refuses(self) -> None:
        result = decoded(call(0, ..., "glob", "{}"), *end("tool_calls"))
        assert ending_of(result) == "MALFORMED_TOOL_CALL"

    def test_formerly_lenient_a_wire_without_any_name_refuses(self) -> None:
        result = decoded(call(0, "call_1", ..., "{}"), *end("tool_calls"))
        assert ending_of(result) == "MALFORMED_TOOL_CALL"

    def test_a_first_delta_without_id_is_not_refused_if_the_id_comes_later(self) -> None:
        result = decoded(call(0, ..., "glob", "{"), call(0, "call_1", ..., "}"), *end("tool_calls"))
        assert calls_of(result) == [("call_1", "glob", "{}")]

    def test_an_empty_response_is_refused_beside_it_usage_first(self) -> None:
        found = chunks(delta("", usage=USAGE), *end("stop"))
        assert [type(chunk).__name__ for chunk in found] == ["UsageChunk", "Finish"]
        assert isinstance(found[-1], Finish) and found[-1].failure is not None
        assert found[-1].failure.code == "EMPTY_RESPONSE"

    def test_the_refusal_does_not_override_an_error_the_provider_reported(self) -> None:
        result = decoded(call(0, "", "glob", "{}"), *end("content_filter"))
        assert ending_of(result) == "CONTENT_FILTER"


class TestRetryPolicySpec:
    def test_the_default_retryable_set(self) -> None:
        assert sorted(RETRYABLE) == [
            "EMPTY_RESPONSE",
            "MALFORMED_RESPONSE",
            "MALFORMED_TOOL_CALL",
            "OVERLOADED",
            "RATE_LIMIT",
            "SERVER",
            "STREAM_CLOSED",
            "TIMEOUT",
            "TRANSPORT",
        ]

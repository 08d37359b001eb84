"""The model runtime over real HTTP in all four protocols: answers, refusals, errors within, and cuts."""

import asyncio
import json
from typing import Any

import pytest

from lockstitch.history.decode import Decoded
from lockstitch.llm.credentials import Secret
from lockstitch.llm.endpoint import Endpoint
from lockstitch.llm.runtime import ModelRuntime
from lockstitch.providers.catalog import profile
from lockstitch.providers.dialects import encode
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.messages import Message, Request, ToolSpec
from lockstitch.testing.gateway import Gateway

PROFILES = ("generic", "anthropic", "openai-responses", "gemini")
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
KEY = "sk-test-1234567890"


async def call(answers: Any, name: str, *, limits: dict[str, float] | None = None, **options: Any) -> Decoded:
    """One call of the model behind a gateway with this script."""
    async with Gateway(answers) as gateway, ModelRuntime(**(limits or {})) as runtime:
        found = profile(name)
        base_url = gateway.url if found.protocol in ("anthropic-messages", "gemini") else gateway.base_url
        if found.protocol == "gemini" and found.base_url is not None:
            base_url += "/" + found.base_url.rpartition("/")[2]
        request = Request(model="m", messages=(Message("user", (Text("1 + 2?"),)),), tools=(ADD,))
        endpoint = Endpoint(found, "m", base_url, Secret(KEY))
        stream = runtime.stream(endpoint, encode(request, found), **options)
        async with stream as chunks:
            [chunk async for chunk in chunks]
        assert KEY not in str(gateway.requests)
        return stream.result


ANSWER = {"text": "Let me add that.", "tool_calls": [{"name": "add", "arguments": {"a": 1}, "id": "call_1"}]}


@pytest.mark.parametrize("name", PROFILES)
async def test_a_whole_answer(name: str) -> None:
    result = await call([{**ANSWER, "usage": {"input_tokens": 9, "output_tokens": 4}}], name)
    assert result.finish.failure is None
    assert result.finish.reason == "tool_calls"
    texts = [block.text for block in result.content if isinstance(block, Text)]
    calls = [(block.name, block.arguments) for block in result.content if isinstance(block, ToolCall)]
    assert (texts, [(called, json.loads(arguments)) for called, arguments in calls]) == (
        ["Let me add that."],
        [("add", {"a": 1})],
    )
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.estimated) == (9, 4, False)


REFUSALS = {
    "a full window": (
        {"message": "prompt is too long: 9 tokens > 8 maximum"},
        400,
        {},
        "CONTEXT_WINDOW_EXCEEDED",
    ),
    "a limit": ({"message": "slow down"}, 429, {"Retry-After": "7"}, "RATE_LIMIT"),
    "no money": ({"message": "x", "code": "insufficient_quota"}, 429, {}, "QUOTA"),
    "no key": ({"message": "x"}, 401, {}, "AUTH"),
    "a crowd": ({"message": "Overloaded"}, 529, {}, "OVERLOADED"),
    "a fault": ({"message": "x"}, 500, {}, "SERVER"),
    "a broken history": (
        {"message": "Unexpected role 'tool' after role 'user'"},
        400,
        {},
        "INVALID_STRUCTURE",
    ),
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("error", "status", "headers", "code"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal(
    name: str, error: dict[str, str], status: int, headers: dict[str, str], code: str
) -> None:
    result = await call([{"error": error, "status": status, "headers": headers}], name, input_estimate=50)
    found = result.finish.failure
    assert found is not None
    assert (found.code, found.status) == (code, status)
    assert found.retry_after_s == (7.0 if headers else None)
    assert (result.content, result.usage) == ((), None)


def frame(name: str, **error: Any) -> dict[str, Any]:
    """An error in the middle of a stream, as each protocol sends one."""
    match profile(name).protocol:
        case "openai-responses":
            return {
                "type": "error",
                "code": error.get("code"),
                "message": error["message"],
                "sequence_number": 3,
            }
        case "anthropic-messages":
            return {"type": "error", "error": {"type": error.get("code"), "message": error["message"]}}
        case _:
            return {"error": error}


MESSAGE = {"id": "m", "role": "assistant", "content": []}
DELTA = {"output_index": 0, "content_index": 0, "item_id": "m", "delta": "Half"}
STARTS: dict[str, list[dict[str, Any]]] = {
    "generic": [{"choices": [{"index": 0, "delta": {"content": "Half"}, "finish_reason": None}]}],
    "anthropic": [
        {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", **MESSAGE}},
        {"type": "response.output_text.delta", **DELTA},
    ],
    "gemini": [{"candidates": [{"content": {"role": "model", "parts": [{"text": "Half"}]}}]}],
}
WITHIN = {
    "a crowd": ({"code": "overloaded_error", "message": "Overloaded"}, "OVERLOADED"),
    "a full window": ({"code": "context_length_exceeded", "message": "too long"}, "CONTEXT_WINDOW_EXCEEDED"),
    "a limit": ({"code": "rate_limit_error", "message": "x"}, "RATE_LIMIT"),
    "no money": ({"code": "insufficient_quota", "message": "x"}, "QUOTA"),
    "a fault": ({"code": "server_error", "message": "x"}, "SERVER"),
    "a filter": ({"code": "content_filter", "message": "x"}, "CONTENT_FILTER"),
    "a broken history": (
        {"code": "invalid_request_error", "message": "roles must alternate"},
        "INVALID_STRUCTURE",
    ),
    "something unknown": ({"code": "whatever", "message": "x"}, "SERVER"),
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("error", "code"), WITHIN.values(), ids=WITHIN)
async def test_an_error_within_an_accepted_stream(name: str, error: dict[str, str], code: str) -> None:
    result = await call([{"events": [*STARTS[name], frame(name, **error)]}], name)
    assert result.finish.failure is not None
    assert (result.finish.reason, result.finish.failure.code) == ("error", code)
    assert result.content == (Text("Half"),)


async def test_a_failed_response_of_the_responses_protocol_reports_its_error() -> None:
    failed = {
        "type": "response.failed",
        "response": {
            "id": "r",
            "status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "try again in 3s"},
        },
    }
    result = await call([{"events": [*STARTS["openai-responses"], failed]}], "openai-responses")
    assert result.finish.failure is not None
    assert (result.finish.failure.code, result.finish.failure.retry_after_s) == ("RATE_LIMIT", 3.0)


CUTS = {
    "a cut": {"quirks": ["cut_after_half"]},
    "a reset": {"quirks": ["cut_after_half", "reset"]},
    "a proper end of HTTP": {"quirks": ["cut_after_half", "clean_cut"]},
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
async def test_a_cut_is_worth_a_retry_and_is_billed_by_estimate(name: str, cut: dict[str, Any]) -> None:
    long = {"text": "word " * 200, "chunk_chars": 5, **cut}
    result = await call([long], name, input_estimate=50)
    found = result.finish.failure
    assert found is not None
    assert found.retryable
    assert found.code in {"STREAM_CLOSED", "TRANSPORT", "MALFORMED_RESPONSE"}
    if found.code != "MALFORMED_RESPONSE":
        assert result.usage is not None
        assert result.usage.estimated
        assert result.usage.output_tokens > 30


@pytest.mark.parametrize("name", PROFILES)
async def test_a_hanging_answer_times_out(name: str) -> None:
    async with asyncio.timeout(5):
        hang = {"events": STARTS[name], "hang": 30}
        result = await call([hang], name, limits={"idle_s": 0.1}, input_estimate=50)
    assert result.finish.failure is not None
    assert (result.finish.failure.code, result.finish.failure.subkind) == ("TIMEOUT", "idle")
    assert result.content == (Text("Half"),)


async def test_many_streams_at_once_do_not_disturb_each_other() -> None:
    answers = {"answers": [], "then": {"text": "word " * 50, "chunk_chars": 5, "event_delay_ms": 1}}
    async with Gateway(answers) as gateway, ModelRuntime() as runtime:
        found = profile("generic")
        wire = encode(Request(model="m", messages=(Message("user", (Text("go"),)),)), found)

        async def one() -> str:
            async with runtime.stream(Endpoint(found, "m", gateway.base_url), wire) as chunks:
                [chunk async for chunk in chunks]
            [text] = chunks.result.content
            assert isinstance(text, Text)
            return text.text

        assert set(await asyncio.gather(*(one() for _ in range(40)))) == {"word " * 50}

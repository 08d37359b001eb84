"""The scripted model earns its trust: the same script over HTTP and without it comes to the same ending."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from lockstitch import Agent, tool
from lockstitch.history.decode import Decoded
from lockstitch.llm.endpoint import Endpoint, resolve
from lockstitch.llm.runtime import ModelRuntime
from lockstitch.providers.wire_request import WireRequest
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.testing.gateway import Gateway
from lockstitch.testing.scripted_model import ScriptedModel

ASK = WireRequest(
    dialect="openai-chat",
    path="/chat/completions",
    body={
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    headers={},
    tools=("add",),
    notes=(),
)

Opened = tuple[ModelRuntime, Endpoint, Any]


@asynccontextmanager
async def over_http(script: Any, **settings: Any) -> AsyncIterator[Opened]:
    async with Gateway(script, **settings) as gateway, ModelRuntime() as runtime:
        yield runtime, resolve("m", base_url=gateway.base_url, environ={}), gateway


@asynccontextmanager
async def without(script: Any, **settings: Any) -> AsyncIterator[Opened]:
    model = ScriptedModel(script, **settings)
    yield model, model.endpoint, model
    await model.close()


WAYS: dict[str, Callable[..., AbstractAsyncContextManager[Opened]]] = {
    "over HTTP": over_http,
    "scripted": without,
}


async def ended(runtime: ModelRuntime, endpoint: Endpoint) -> Decoded:
    async with runtime.stream(endpoint, ASK) as stream:
        async for _ in stream:
            pass
    return stream.result


def short(decoded: Decoded) -> tuple[Any, ...]:
    texts = tuple(b.text if isinstance(b, Text) else b for b in decoded.content)
    failure = decoded.finish.failure
    told = None if failure is None else (failure.code, failure.status, failure.retry_after_s)
    used = None if decoded.usage is None else (decoded.usage.input_tokens, decoded.usage.output_tokens)
    return texts, decoded.finish.reason, told, used


USAGE = {"input_tokens": 9, "output_tokens": 5}
CALL = ToolCall(id="c1", name="add", arguments='{"a":1}')
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "text": ({"text": "Hello.", "usage": USAGE}, (("Hello.",), "stop", None, (9, 5))),
    "text in small reads": (
        {"text": "héllo 😀", "usage": USAGE, "event_delay_ms": 1, "chunk_chars": 1},
        (("héllo 😀",), "stop", None, (9, 5)),
    ),
    "a call whose identity is blanked": (
        {
            "tool_calls": [{"id": "c1", "name": "add", "arguments": {"a": 1}}],
            "chunk_chars": 2,
            "usage": USAGE,
            "quirks": ["empty_continuation_ids"],
        },
        ((CALL,), "tool_calls", None, (9, 5)),
    ),
    "a call without a name": (
        {"tool_calls": [{"id": "c1", "name": "add"}], "usage": USAGE, "quirks": ["no_name"]},
        ((), "error", ("MALFORMED_TOOL_CALL", None, None), (9, 5)),
    ),
    "a refusal with a time": (
        {"error": {"message": "Rate limit reached"}, "status": 429, "headers": {"Retry-After": "7"}},
        ((), "error", ("RATE_LIMIT", 429, 7.0), None),
    ),
    "a compressed answer": (
        {"text": "Hello.", "usage": USAGE, "quirks": ["gzip"]},
        (("Hello.",), "stop", None, (9, 5)),
    ),
    "a document": ({"text": "Hello.", "usage": USAGE, "stream": False}, (("Hello.",), "stop", None, (9, 5))),
    "a page": ({"text": "x", "quirks": ["html"]}, ((), "error", ("NOT_AN_API", None, None), None)),
    "no body": ({"text": "x", "quirks": ["empty_body"]}, ((), "error", ("EMPTY_RESPONSE", None, None), None)),
    "a script that is used up": ([], ((), "error", ("SERVER", 500, None), None)),
    "a request that is not as expected": (
        {"text": "x", "expect": {"contains": "bye"}},
        ((), "error", ("SERVER", 500, None), None),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
async def test_a_script_comes_to_the_same_ending(way: str, name: str) -> None:
    spec, expected = CASES[name]
    async with WAYS[way](spec if isinstance(spec, list) else [spec]) as (runtime, endpoint, _):
        assert short(await ended(runtime, endpoint)) == expected


CUTS = {
    "cut": ({}, "STREAM_CLOSED", "cut"),
    "cut cleanly": ({"quirks": ["clean_cut"]}, "STREAM_CLOSED", "clean_eof"),
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_cut_answer_keeps_its_text_and_says_how_it_was_cut(way: str, name: str) -> None:
    more, code, subkind = CUTS[name]
    two = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hello", " there")]
    size = len(json.dumps(two[0], separators=(",", ":"))) + len("data: \n\n")
    async with WAYS[way]([{"events": two, "cut_after": size, **more}]) as (runtime, endpoint, _):
        decoded = await ended(runtime, endpoint)
    failure = decoded.finish.failure
    assert failure is not None
    assert (failure.code, failure.subkind) == (code, subkind)
    assert decoded.content == (Text(text="Hello"),)
    assert decoded.usage is not None
    assert decoded.usage.estimated


@pytest.mark.parametrize("way", WAYS)
async def test_a_hang_can_be_cancelled(way: str) -> None:
    async with WAYS[way]([{"text": "Hello.", "cut_after": 350, "hang": 600}]) as (runtime, endpoint, source):
        async with runtime.stream(endpoint, ASK) as stream:
            async for chunk in stream:
                if type(chunk).__name__ == "TextDelta":
                    asyncio.get_running_loop().call_soon(stream.cancel)
        assert stream.result.finish.reason == "aborted"
        for _ in range(50):
            if source.requests[0].get("client_left"):
                break
            await asyncio.sleep(0.02)
        assert source.requests[0]["client_left"] is True


@pytest.mark.parametrize("way", WAYS)
async def test_the_journal_has_what_was_sent(way: str) -> None:
    async with WAYS[way](["a"]) as (runtime, endpoint, source):
        await ended(runtime, endpoint)
        entry = source.requests[0]
    assert {key: entry[key] for key in ("n", "method", "path", "body", "status", "answer")} == {
        "n": 1,
        "method": "POST",
        "path": "/v1/chat/completions",
        "body": dict(ASK.body),
        "status": 200,
        "answer": 0,
    }


@pytest.mark.parametrize("way", WAYS)
async def test_strict_refuses_before_an_answer_is_used_up(way: str) -> None:
    settings = {"strict": "openai-chat", "wording": "opaque"}
    bad = WireRequest(
        dialect=ASK.dialect,
        path=ASK.path,
        body={"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]},
        headers={},
        tools=(),
        notes=(),
    )
    async with WAYS[way](["a"], **settings) as (runtime, endpoint, source):
        async with runtime.stream(endpoint, bad) as stream:
            async for _ in stream:
                pass
        failure = stream.result.finish.failure
        assert (failure and failure.status, source.left) == (400, 1)
        assert source.requests[0]["refused"]["rule"] == "result_orphan"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_an_agent_takes_a_scripted_model(tmp_path: Any) -> None:
    model = ScriptedModel(
        [{"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, "It is 3."],
        strict="openai-chat",
    )
    result = await Agent(model, tools=[add], store=tmp_path).run("What is 1 + 2?")
    assert (result.text, result.reason, model.left) == ("It is 3.", "completed", 0)
    assert model.requests[1]["body"]["messages"][-1]["content"] == "3"
    assert model.requests[1]["cache"]["read"] == model.requests[0]["cache"]["prompt"]

"""An answer in another protocol than was asked for is named as what it is, and not asked for again."""

import json
from typing import Any

import pytest

from lockstitch.history.decode import Decoder, decode
from lockstitch.providers.dialects import DIALECTS
from lockstitch.schema.blocks import Text
from lockstitch.schema.failures import failure


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


MESSAGE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 1}
STREAMS = {
    "openai-chat": sse(chunk(role="assistant", content=""), chunk(content="Hi"), chunk("stop"))
    + b"data: [DONE]\n\n",
    "anthropic-messages": sse(
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ),
    "openai-responses": sse(
        {"type": "response.created", "response": {"object": "response", "status": "in_progress"}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Hi"},
        {"type": "response.completed", "response": {"status": "completed", "output": [MESSAGE]}},
    ),
    "gemini": sse(
        {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}], "usageMetadata": USAGE},
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": USAGE},
    ),
}
DOCUMENTS: dict[str, Any] = {
    "openai-chat": {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
    },
    "anthropic-messages": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
    },
    "openai-responses": {"object": "response", "status": "completed", "output": [MESSAGE]},
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": USAGE,
    },
}
BODIES = {
    "a stream": STREAMS,
    "a JSON answer": {name: json.dumps(value).encode() for name, value in DOCUMENTS.items()},
}
NAMES = {
    "openai-chat": "generic:MODEL",
    "anthropic-messages": "anthropic:MODEL",
    "openai-responses": "openai-responses:MODEL",
    "gemini": "gemini:MODEL",
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("asked", DIALECTS)
def test_each_protocol_where_each_was_asked_for(asked: str, spoken: str, kind: str) -> None:
    body = BODIES[kind][spoken]
    decoded = decode(body, asked)
    assert decode([bytes([byte]) for byte in body], asked) == decoded
    if asked == spoken:
        assert [block.text for block in decoded.content if isinstance(block, Text)] == ["Hi"]
        return
    found = decoded.finish.failure
    assert found is not None
    assert (found.code, found.subkind, found.retryable) == ("NOT_AN_API", "wrong_protocol", False)
    assert f"speaks {spoken}, not {asked}" in found.message
    assert NAMES[spoken] in found.message
    assert decoded.content == ()


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("asked", DIALECTS)
def test_a_connection_that_breaks_does_not_hide_it(asked: str, spoken: str) -> None:
    if asked == spoken:
        return
    decoder = Decoder(asked)
    decoder.feed(STREAMS[spoken][:-20])
    decoder.fail(failure("TRANSPORT", "reset"))
    found = decoder.result.finish.failure
    assert found is not None and found.code == "NOT_AN_API"


MIXED = {
    "an answer behind an event of another protocol": (
        "openai-chat",
        sse({"type": "response.created", "response": {}}) + STREAMS["openai-chat"],
        None,
    ),
    "an empty answer behind an event of another protocol": (
        "openai-chat",
        sse({"type": "message_start", "message": {}}, chunk("stop")),
        "EMPTY_RESPONSE",
    ),
    "an error of another protocol": (
        "openai-chat",
        sse({"type": "message_start", "message": {}})
        + sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "OVERLOADED",
    ),
    "a reason of its own beside another's chunks": (
        "anthropic-messages",
        sse(chunk(content="Hi"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
        + sse({"type": "message_stop"}),
        "EMPTY_RESPONSE",
    ),
    "events that nobody has": ("anthropic-messages", sse({"type": "status"}, {"a": 1}), "STREAM_CLOSED"),
    "choices that say of no object that they are one": (
        "gemini",
        sse({"choices": [{"delta": {"content": "Hi"}}]}),
        "STREAM_CLOSED",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_not_certain_is_left_as_it_is(name: str) -> None:
    asked, body, code = MIXED[name]
    found = decode(body, asked).finish.failure
    assert (found.code if found else None) == code

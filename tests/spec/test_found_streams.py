"""Bodies that hostile testing got further with than they should: what is nothing is no answer, and no body is
worth more work than its size."""

import gzip
import json
import zlib
from typing import Any

import pytest

from lockstitch.history.decode import Decoder, decode
from lockstitch.llm.billing import with_estimate
from lockstitch.schema.blocks import Base64Source, Image, Opaque, Text
from lockstitch.wire import body_kind


def events(*values: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def item(value: Any) -> bytes:
    done = {"type": "response.output_item.done", "output_index": 0, "item": value}
    return events(done, {"type": "response.completed", "response": {"status": "completed", "output": []}})


def block(value: Any) -> bytes:
    return events(
        {"type": "message_start", "message": {"role": "assistant"}},
        {"type": "content_block_start", "index": 0, "content_block": value},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def part(value: Any) -> bytes:
    return events({"candidates": [{"content": {"parts": [value]}, "finishReason": "STOP"}]})


NOTHING = {
    "an item that is no object": ("openai-responses", item(5)),
    "an item without a type": ("openai-responses", item({"id": "x"})),
    "an item with an empty type": ("openai-responses", item({"type": ""})),
    "an item whose type is a number": ("openai-responses", item({"type": 5})),
    "a block without a type": ("anthropic-messages", block({"id": "x"})),
    "a block with an empty type": ("anthropic-messages", block({"type": ""})),
    "a block whose type is a number": ("anthropic-messages", block({"type": 5})),
    "a part whose text is a number": ("gemini", part({"text": 5})),
    "a part with a call that is none": ("gemini", part({"functionCall": "read"})),
    "a part with an image without data": ("gemini", part({"inlineData": {}})),
    "a part with a number": ("gemini", part({"foo": 1})),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_says_nothing_is_no_answer(name: str) -> None:
    dialect, body = NOTHING[name]
    decoded = decode(body, dialect)
    assert decoded.finish.failure is not None
    assert (decoded.content, decoded.finish.failure.code) == ((), "EMPTY_RESPONSE")
    assert [note.kind for note in decoded.notes] == ["unknown_block"]


KEPT = {
    "an item of a type nobody knows": ("openai-responses", item({"type": "new"}), {"type": "new"}),
    "a block of a type nobody knows": ("anthropic-messages", block({"type": "new"}), {"type": "new"}),
    "a part with an object nobody knows": ("gemini", part({"new": {"a": 1}}), {"new": {"a": 1}}),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_new_is_kept(name: str) -> None:
    dialect, body, value = KEPT[name]
    assert decode(body, dialect).content == (Opaque(protocol=dialect, value=value),)


class CountingInflater:
    """zlib, counting the bytes it is given."""

    error = zlib.error
    given = 0

    def __init__(self, stream: "zlib._Decompress") -> None:
        self._stream = stream

    @classmethod
    def decompressobj(cls, wbits: int) -> "CountingInflater":
        return cls(zlib.decompressobj(wbits))

    def copy(self) -> "CountingInflater":
        return CountingInflater(self._stream.copy())

    def decompress(self, data: bytes, length: int = 0) -> bytes:
        CountingInflater.given += len(data)
        return self._stream.decompress(data, length)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def test_many_small_gzip_members_cost_the_same_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_kind, "zlib", CountingInflater)
    member = gzip.compress(b": hello\n\n", mtime=0)
    given = []
    for count in (1_000, 4_000):
        CountingInflater.given = 0
        assert b"".join(body_kind.Gunzip().feed(member * count)) == b": hello\n\n" * count
        given.append(CountingInflater.given / count)
    assert given[1] <= given[0] * 1.2


CUT_BY_US: dict[str, tuple[dict[str, Any], list[bytes], int]] = {
    "an answer over the limit": ({"response_max": 2_000}, [b"x" * 1_900, b"x" * 200], 700),
    "a line over the limit": ({"line_max": 500}, [b"x" * 100, b"x" * 500], 25),
}


@pytest.mark.parametrize("name", CUT_BY_US)
def test_what_was_written_before_we_stopped_reading_is_counted(name: str) -> None:
    limits, texts, at_least = CUT_BY_US[name]
    decoder = Decoder("openai-chat", **limits)
    for text in texts:
        decoder.feed(events({"choices": [{"delta": {"content": text.decode()}}]}))
    decoder.end()
    found = with_estimate(decoder.result, accepted=True, began=True, input_estimate=9, argument_chars=0)
    assert found is not None
    assert (found.input_tokens, found.estimated) == (9, True)
    assert found.output_tokens >= at_least


PICTURE = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("name", ["in a delta of its own", "beside text", "in a message"])
def test_an_image_in_a_chat_answer_is_kept_and_is_an_answer(name: str) -> None:
    images = [{"type": "image_url", "image_url": {"url": PICTURE}}]
    said = {"content": "Here." if name == "beside text" else "", "images": images}
    choice = {"index": 0, "message" if name == "in a message" else "delta": said, "finish_reason": "stop"}
    body = (
        json.dumps({"choices": [choice]}).encode()
        if name == "in a message"
        else events({"choices": [choice]})
    )
    decoded = decode(body, "openai-chat", profile="openrouter")
    picture = Image(media_type="image/png", source=Base64Source("iVBORw0KGgo="))
    text = (Text("Here."),) if name == "beside text" else ()
    assert (decoded.finish.failure, decoded.content) == (None, (*text, picture))


def test_an_entry_without_an_image_is_noted() -> None:
    images = [
        {"image_url": 5},
        {"image_url": {"url": "ftp://x"}},
        {"image_url": {"url": "data:image/png;base64,"}},
    ]
    decoded = decode(events({"choices": [{"delta": {"content": "a", "images": images}}]}), "openai-chat")
    assert [(note.kind, note.count) for note in decoded.notes] == [("unknown_content_part", 3)]


def test_input_of_a_providers_tool_that_was_cut_is_left_out() -> None:
    tool = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"query": "wea'}
    decoded = decode(
        events(
            {"type": "content_block_start", "index": 0, "content_block": tool},
            {"type": "content_block_delta", "index": 0, "delta": piece},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_stop"},
        ),
        "anthropic-messages",
    )
    assert decoded.content == (Opaque(protocol="anthropic-messages", value=tool),)
    assert [note.kind for note in decoded.notes] == ["invalid_arguments"]


def test_a_whole_answer_of_anthropic_may_be_a_plain_text() -> None:
    body = json.dumps({"type": "message", "content": "hi", "stop_reason": "end_turn"}).encode()
    assert decode(body, "anthropic-messages").content == (Text("hi"),)

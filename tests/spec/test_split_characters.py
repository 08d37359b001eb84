"""Characters that a gateway cut in two: the halves of a UTF-16 pair are put together, in every protocol and
over any split, and a half that stays alone is one U+FFFD with a note.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from chat_streams import call, delta, end, reasoning_of, text_of
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.history.decode import Decoded, Decoder, decode
from lockstitch.schema.blocks import Opaque, Reasoning, Text, ToolCall
from lockstitch.schema.chunks import BlockStart, ReasoningDelta, TextDelta
from lockstitch.wire import strict_json

Events = list[Any]
Field = Callable[[Sequence[str]], Events]


def sse(events: Sequence[Any]) -> bytes:
    frames = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return b"".join(f"data: {frame}\n\n".encode("utf-8", "replace") for frame in frames)


# ---- one field of each protocol in pieces ---------------------------------------------------------


def chat_text(pieces: Sequence[str]) -> Events:
    return [*map(delta, pieces), *end()]


def chat_parts(pieces: Sequence[str]) -> Events:
    return [*(delta([{"type": "text", "text": piece}]) for piece in pieces), *end()]


def chat_refusal(pieces: Sequence[str]) -> Events:
    return [*(delta(refusal=piece) for piece in pieces), *end()]


def chat_reasoning(pieces: Sequence[str]) -> Events:
    return [*(delta(reasoning_content=piece) for piece in pieces), delta("ok"), *end()]


def chat_think_tags(pieces: Sequence[str]) -> Events:
    return [delta("<think>"), *map(delta, pieces), delta("</think>ok"), *end()]


def chat_arguments(pieces: Sequence[str]) -> Events:
    return [
        call(0, "c", "ls", '{"p":"'),
        *(call(0, "", "", piece) for piece in pieces),
        call(0, "", "", '"}'),
        *end("tool_calls"),
    ]


def anthropic(kind: str, block: Any, deltas: Sequence[Any], reason: str = "end_turn") -> Events:
    ok = {"type": "text", "text": "ok"}
    return [
        {"type": "message_start", "message": {"role": "assistant"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": kind, **block}},
        *({"type": "content_block_delta", "index": 0, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": 0},
        *([{"type": "content_block_start", "index": 1, "content_block": ok}] if kind == "thinking" else []),
        {"type": "message_delta", "delta": {"stop_reason": reason}},
        {"type": "message_stop"},
    ]


def anthropic_text(pieces: Sequence[str]) -> Events:
    return anthropic("text", {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces])


def anthropic_thinking(pieces: Sequence[str]) -> Events:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    return anthropic("thinking", {"thinking": ""}, deltas)


def anthropic_arguments(pieces: Sequence[str]) -> Events:
    parts = ['{"p":"', *pieces, '"}']
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return anthropic("tool_use", {"id": "c", "name": "ls", "input": {}}, deltas, "tool_use")


def anthropic_server_tool(pieces: Sequence[str]) -> Events:
    parts = ['{"p":"', *pieces, '"}']
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return anthropic("server_tool_use", {"id": "c", "name": "ls", "input": {}}, deltas)


def responses(kind: str, pieces: Sequence[str], item: dict[str, Any], output: Sequence[Any] = ()) -> Events:
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "i", **item}},
        *({"type": kind, "item_id": "i", "output_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.completed", "response": {"status": "completed", "output": list(output)}},
    ]


def responses_text(pieces: Sequence[str]) -> Events:
    return responses("response.output_text.delta", pieces, {"type": "message"})


def responses_text_given_again(pieces: Sequence[str]) -> Events:
    whole = strict_json.well_formed("".join(pieces))
    content = [{"type": "output_text", "text": whole}]
    item = {"type": "message", "id": "i", "content": content}
    return responses("response.output_text.delta", pieces, {"type": "message"}, [item])


def responses_text_completed(pieces: Sequence[str]) -> Events:
    """Only the first piece streams; the rest is in the final snapshot."""
    whole = strict_json.well_formed("".join(pieces))
    item = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": whole}]}
    return responses("response.output_text.delta", pieces[:1], {"type": "message"}, [item])


def responses_reasoning(pieces: Sequence[str]) -> Events:
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "ok"}]}
    kind = "response.reasoning_summary_text.delta"
    return responses(kind, pieces, {"type": "reasoning"}, [{"type": "reasoning", "id": "i"}, message])


def responses_arguments(pieces: Sequence[str]) -> Events:
    parts = ['{"p":"', *pieces, '"}']
    item = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": ""}
    done = {**item, "id": "i", "arguments": strict_json.well_formed("".join(parts))}
    return responses("response.function_call_arguments.delta", parts, item, [done])


def gemini(parts: Sequence[Any]) -> Events:
    said = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    return [*said, {"candidates": [{"finishReason": "STOP"}]}]


def gemini_text(pieces: Sequence[str]) -> Events:
    return gemini([{"text": piece} for piece in pieces])


def gemini_thought(pieces: Sequence[str]) -> Events:
    return gemini([*({"text": piece, "thought": True} for piece in pieces), {"text": "ok"}])


def gemini_partial_arguments(pieces: Sequence[str]) -> Events:
    partial = [{"jsonPath": "$.p", "stringValue": piece, "willContinue": True} for piece in pieces]
    calls = [{"partialArgs": [one], "willContinue": True} for one in partial]
    return gemini(
        [
            {"functionCall": one}
            for one in ({"id": "c", "name": "ls", "willContinue": True}, *calls, {"willContinue": False})
        ]
    )


FIELDS: dict[str, tuple[str, Field]] = {
    "chat: content": ("openai-chat", chat_text),
    "chat: content in parts": ("openai-chat", chat_parts),
    "chat: refusal": ("openai-chat", chat_refusal),
    "chat: reasoning": ("openai-chat", chat_reasoning),
    "chat: reasoning between tags": ("openai-chat", chat_think_tags),
    "chat: arguments": ("openai-chat", chat_arguments),
    "anthropic: text": ("anthropic-messages", anthropic_text),
    "anthropic: thinking": ("anthropic-messages", anthropic_thinking),
    "anthropic: arguments": ("anthropic-messages", anthropic_arguments),
    "anthropic: input of a server's tool": ("anthropic-messages", anthropic_server_tool),
    "responses: text": ("openai-responses", responses_text),
    "responses: text given again whole": ("openai-responses", responses_text_given_again),
    "responses: text completed by the snapshot": ("openai-responses", responses_text_completed),
    "responses: reasoning": ("openai-responses", responses_reasoning),
    "responses: arguments given again whole": ("openai-responses", responses_arguments),
    "gemini: text": ("gemini", gemini_text),
    "gemini: thought": ("gemini", gemini_thought),
    "gemini: arguments in pieces": ("gemini", gemini_partial_arguments),
}


def said_in(decoded: Decoded) -> str:
    """What the field says that is under test: every answer holds it, and at most an "ok" beside it."""
    for block in decoded.content:
        if isinstance(block, ToolCall):
            assert block.invalid is None
            return str(strict_json.arguments(block.arguments)["p"])
        if isinstance(block, Reasoning):
            return block.text
        if isinstance(block, Opaque):
            return str(block.value["input"]["p"])
    return text_of(decoded)


def both_ways(body: bytes, dialect: str) -> Decoded:
    whole = decode(body, dialect)
    assert decode([bytes([byte]) for byte in body], dialect) == whole
    return whole


@pytest.mark.parametrize("field", FIELDS)
def test_halves_in_neighbouring_deltas_are_one_character(field: str) -> None:
    dialect, events = FIELDS[field]
    decoded = both_ways(sse(events(["a\ud83d", "\ude00b"])), dialect)
    assert said_in(decoded) == "a😀b"
    assert "lone_surrogate" not in {note.kind for note in decoded.notes}


@pytest.mark.parametrize("field", FIELDS)
def test_a_half_alone_is_one_replacement(field: str) -> None:
    dialect, events = FIELDS[field]
    decoded = both_ways(sse(events(["a\ud83d", "b\ude00"])), dialect)
    assert said_in(decoded) in (
        "a\ufffdb\ufffd",
        "a\ufffd",
    )  # completed by the snapshot: differs, so its piece


@pytest.mark.parametrize("field", FIELDS)
def test_a_half_at_the_end_is_one_replacement(field: str) -> None:
    dialect, events = FIELDS[field]
    decoded = both_ways(sse(events(["a", "b\ud83d"])), dialect)
    assert said_in(decoded) == "ab\ufffd"


@pytest.mark.parametrize("field", FIELDS)
def test_an_answer_of_one_character_in_two_halves_is_an_answer(field: str) -> None:
    dialect, events = FIELDS[field]
    decoded = both_ways(sse(events(["\ud83d", "\ude00"])), dialect)
    assert (said_in(decoded), decoded.finish.failure) == ("😀", None)


texts = st.text(st.sampled_from('a"\\😀🧵é\n<'), min_size=1, max_size=12)


@given(texts, st.data())
def test_any_text_cut_anywhere_comes_out_as_it_was(text: str, data: st.DataObject) -> None:
    units = text.encode("utf-16-le")
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(units) // 2 - 1)))))
    edges = [0, *(2 * cut for cut in cuts), len(units)]
    pieces = [units[begin:stop].decode("utf-16-le", "surrogatepass") for begin, stop in pairwise(edges)]
    for name, (dialect, events) in FIELDS.items():
        inner = ("arguments" in name and "gemini" not in name) or "server" in name
        said = [json.dumps(piece, ensure_ascii=False)[1:-1] for piece in pieces] if inner else pieces
        if name == "responses: text completed by the snapshot" and len(pieces) == 1:
            continue
        decoded = decode(sse(events([piece for piece in said if piece])), dialect)
        if decoded.finish.failure is None:
            assert said_in(decoded) == text, name
        else:
            assert text.isspace(), name


# ---- what stands between the halves, and where else halves may be -----------------------------------


def notes_of(decoded: Decoded) -> dict[str, int]:
    return {note.kind: note.count for note in decoded.notes}


def test_halves_of_interleaved_calls_find_each_other() -> None:
    events = [
        call(0, "a", "ls", '{"p":"\ud83d'),
        call(1, "b", "ls", '{"p":"\ud83e'),
        delta(reasoning_content="hm"),
        call(0, "", "", '\ude00"}'),
        call(1, "", "", '\uddf5"}'),
        *end("tool_calls"),
    ]
    decoded = both_ways(sse(events), "openai-chat")
    calls = [block.arguments for block in decoded.content if isinstance(block, ToolCall)]
    assert calls == ['{"p":"😀"}', '{"p":"🧵"}']
    assert notes_of(decoded) == {"split_character": 2}


def test_a_half_before_an_error_is_kept_as_a_replacement() -> None:
    events = [delta("a\ud83d"), {"error": {"message": "overloaded", "code": 503}}]
    decoded = both_ways(sse(events), "openai-chat")
    assert (text_of(decoded), decoded.finish.reason) == ("a\ufffd", "error")
    assert notes_of(decoded) == {"lone_surrogate": 1}


FOLLOWED: dict[str, tuple[str, Events]] = {
    "reasoning, then text": (
        "openai-chat",
        [delta(reasoning_content="a\ud83d"), delta("b"), delta("c"), *end()],
    ),
    "text, then a call": (
        "openai-chat",
        [delta("a\ud83d"), call(0, "c", "ls", "{"), call(0, "", "", "}"), *end("tool_calls")],
    ),
    "one text block, then another": (
        "anthropic-messages",
        [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a\ud83d"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
    ),
    "one part of a message, then another": (
        "openai-responses",
        [
            {"type": "response.output_text.delta", "item_id": "m", "content_index": 0, "delta": "a\ud83d"},
            {"type": "response.output_text.delta", "item_id": "m", "content_index": 1, "delta": "b"},
            {"type": "response.completed", "response": {"status": "completed"}},
        ],
    ),
    "a thought, then the answer": ("gemini", gemini([{"text": "a\ud83d", "thought": True}, {"text": "b"}])),
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_half_that_stays_alone_is_shown_before_the_next_block(name: str, size: int) -> None:
    dialect, events = FOLLOWED[name]
    decoder, body = Decoder(dialect), sse(events)
    chunks = [chunk for at in range(0, len(body), size) for chunk in decoder.feed(body[at : at + size])]
    chunks += decoder.end()
    started = [chunk.index for chunk in chunks if isinstance(chunk, BlockStart | TextDelta | ReasoningDelta)]
    assert started == sorted(started)
    first = [
        chunk.text for chunk in chunks if isinstance(chunk, TextDelta | ReasoningDelta) and chunk.index == 0
    ]
    assert "".join(first) == "a\ufffd"
    assert {note.kind: note.count for note in decoder.notes} == {"lone_surrogate": 1}


def test_ordinary_deltas_between_halves_are_not_in_the_way_of_other_blocks() -> None:
    events = [
        delta(reasoning_content="r\ud83d"),
        delta("t\ud83d"),
        delta("\ude00"),
        delta(reasoning_content="\ude00"),
        *end(),
    ]
    decoded = both_ways(sse(events), "openai-chat")
    assert (reasoning_of(decoded), text_of(decoded)) == ("r😀", "t😀")


def test_halves_in_markup_are_one_character() -> None:
    pieces = ['<tool_call>{"name":"ls","arguments":{"p":"\ud83d', '\ude00"}}</tool_call>']
    decoded = decode(sse([*map(delta, pieces), *end()]), "openai-chat", profile="vllm", tools=["ls"])
    assert said_in(decoded) == "😀"


def test_arguments_given_as_an_object_hold_no_halves() -> None:
    decoded = both_ways(sse([call(0, "a", "ls", {"p": "x\ud83d"}), *end("tool_calls")]), "openai-chat")
    assert said_in(decoded) == "x\ufffd"
    assert notes_of(decoded) == {}  # nothing of the stream was left to note: it was encoded again


def test_ids_and_names_hold_no_halves() -> None:
    decoded = both_ways(sse([call(0, "a\ud83d", "l\ud83d", "{}"), *end("tool_calls")]), "openai-chat")
    assert decoded.content == (ToolCall("a\ufffd", "l\ufffd", "{}"),)
    assert notes_of(decoded) == {"lone_surrogate": 2}


def test_what_goes_back_beside_a_block_holds_no_halves() -> None:
    details = [{"type": "reasoning.text", "text": "\ud83d", "index": 0}]
    more = [{"type": "reasoning.text", "text": "\ude00", "signature": "s\ud83d", "index": 0}]
    events = [delta(reasoning_details=details), delta("ok", reasoning_details=more), *end()]
    decoded = both_ways(sse(events), "openai-chat")
    (reasoning, text) = decoded.content
    assert isinstance(reasoning, Reasoning) and reasoning.replay is not None and isinstance(text, Text)
    assert reasoning.text == "😀"
    assert reasoning.replay.data["reasoning_details"] == [
        {"type": "reasoning.text", "text": "😀", "signature": "s\ufffd", "index": 0}
    ]


def test_characters_whose_halves_were_encoded_apart_are_put_together() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a\xed\xa0\xbd\xed\xb8\x80b"}}]}\n\ndata: [DONE]\n\n'
    decoded = both_ways(body, "openai-chat")
    assert (text_of(decoded), notes_of(decoded)) == ("a😀b", {"invalid_utf8": 1})


def test_answers_in_one_array_may_share_a_character() -> None:
    said = [{"candidates": [{"content": {"parts": [{"text": half}]}}]} for half in ("a\ud83d", "\ude00")]
    body = json.dumps([*said, {"candidates": [{"finishReason": "STOP"}]}]).encode()
    assert text_of(both_ways(body, "gemini")) == "a😀"


def with_a_half(value: Any) -> Iterator[Any]:
    """The value once for each of its strings and keys, which gets a half at its end."""
    if isinstance(value, str):
        yield f"{value}\ud83d"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield {**value, f"{key}\ud83d": item}
            yield from ({**value, key: broken} for broken in with_a_half(item))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], broken, *value[at + 1 :]] for broken in with_a_half(item))


@pytest.mark.parametrize("field", FIELDS)
def test_a_half_in_any_string_of_a_stream_leaves_none_in_the_answer(field: str) -> None:
    dialect, events = FIELDS[field]
    streams = list(with_a_half(events(["a", "b"])))
    assert len(streams) > 10
    for stream in streams:
        json.dumps(decode(sse(stream), dialect).to_json(), ensure_ascii=False).encode()

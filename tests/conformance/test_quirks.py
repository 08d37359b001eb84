"""Every quirk in every protocol, decoded: Lockstitch does what docs/gateway.md says a client must do.

An expected outcome is the content, the finish and the failure's code. ``SAME`` is the well-formed answer's:
the quirk was survived without a trace in the answer (a note may tell of it).
"""

from dataclasses import dataclass
from typing import Any

import pytest

from lockstitch.history.decode import Decoded, decode
from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.testing import playback, quirks, routes, script

PROTOCOLS = {p.dialect: p for p in (routes.CHAT, routes.ANTHROPIC, routes.RESPONSES, routes.GEMINI)}
ANSWER = {
    "reasoning": "hm so",
    "text": "Hi there",
    "tool_calls": [
        {"id": "c1", "name": "add", "arguments": {"a": 1}},
        {"id": "c2", "name": "sub", "arguments": {}},
    ],
    "chunk_chars": 4,
    "usage": {"input_tokens": 9, "output_tokens": 8},
}


@dataclass(frozen=True)
class Outcome:
    reasoning: str = "hm so"
    text: str = "Hi there"
    calls: tuple[tuple[str, str, str], ...] = (("c1", "add", '{"a":1}'), ("c2", "sub", "{}"))
    reason: str = "tool_calls"
    code: str | None = None


def failed(code: str, text: str = "Hi there", reasoning: str = "hm so") -> Outcome:
    return Outcome(reasoning, text, (), "error", code)


def with_calls(*calls: tuple[str, str, str]) -> Outcome:
    return Outcome(calls=calls)


SAME = Outcome()
MINTED = with_calls(("call_1", "add", '{"a":1}'), ("call_2", "sub", "{}"))
NAMELESS = failed("MALFORMED_TOOL_CALL")
EVERYWHERE: dict[str, Outcome] = {
    "empty_continuation_ids": SAME,
    "null_continuation_ids": SAME,
    "repeated_identity": SAME,
    "string_null_name": SAME,
    "no_ids": MINTED,
    "null_ids": MINTED,
    "no_name": NAMELESS,
    "null_name": NAMELESS,
    "late_id": SAME,
    "late_name": SAME,
    "split_name": SAME,
    "same_index": SAME,
    "no_index": SAME,
    "one_based_index": SAME,
    "interleaved": SAME,
    "whole_call_one_chunk": SAME,
    "arguments_as_object": SAME,
    "null_arguments": SAME,
    "cut_arguments": with_calls(("c1", "add", '{"a":1}'), ("c2", "sub", "not_json")),
    "no_done": SAME,
    "no_finish_reason": SAME,
    "stop_with_calls": SAME,
    "finish_other": SAME,
    "error_in_stream": failed("SERVER"),
    "error_as_json_line": failed("SERVER"),
    "cut_after_half": failed("STREAM_CLOSED"),  # the last frame was cut, which is no fault of the frame
    "two_answers": SAME,
    "html": failed("NOT_AN_API", "", ""),
    "empty_body": failed("EMPTY_RESPONSE", "", ""),
    "keepalives": SAME,
    "crlf": SAME,
    "lone_cr": SAME,
    "bom": SAME,
    "no_space": SAME,
    "no_last_blank_line": SAME,
    "multi_line_data": SAME,
    "null_frames": SAME,
    "gzip": SAME,
    "gzip_unmarked": SAME,
    "wrong_content_type": SAME,
    "json_body": SAME,
    "usage_every_chunk": SAME,
    "no_usage": SAME,
    "think_tags": SAME,
    "reasoning_in_both": SAME,
}
NOT_BYTES = {"clean_cut", "reset"}
"""They say how a connection ends, which no decoder sees: tests/spec/test_llm_runtime.py has them."""

EXCEPTIONS: dict[tuple[str, str], Outcome] = {
    # identity behind a block's start has no place in this protocol; what stands there is not read
    ("anthropic-messages", "late_id"): MINTED,
    ("anthropic-messages", "late_name"): NAMELESS,
    ("anthropic-messages", "split_name"): with_calls(("c1", "a", '{"a":1}'), ("c2", "s", "{}")),
    ("openai-responses", "no_done"): failed("STREAM_CLOSED"),
    ("gemini", "no_finish_reason"): failed("STREAM_CLOSED"),
    ("gemini", "null_arguments"): with_calls(("c1", "add", "{}"), ("c2", "sub", "{}")),
    ("anthropic-messages", "error_in_stream"): failed("OVERLOADED"),
    ("anthropic-messages", "error_as_json_line"): failed("OVERLOADED"),
    ("anthropic-messages", "cut_after_half"): failed("STREAM_CLOSED", "Hi t"),
    ("gemini", "error_in_stream"): failed("OVERLOADED", "Hi t"),
    ("gemini", "error_as_json_line"): failed("OVERLOADED", "Hi t"),
}


def played(dialect: str, *names: str) -> bytes:
    """The body of the answer, with these quirks."""
    answer = script.parse([{**ANSWER, "quirks": list(names)}]).answers[0]
    asked = routes.Asked(PROTOCOLS[dialect], stream=True, usage=True, model="m")
    return b"".join(playback.parts_of(playback.body_of(answer, asked, 1, None), answer))


def outcome(decoded: Decoded) -> Outcome:
    def texts(kind: type[Text] | type[Reasoning]) -> str:
        return "".join(block.text for block in decoded.content if isinstance(block, kind))

    failure = decoded.finish.failure
    return Outcome(
        reasoning=texts(Reasoning),
        text=texts(Text),
        calls=tuple(call_of(block) for block in decoded.content if isinstance(block, ToolCall)),
        reason=decoded.finish.reason,
        code=failure.code if failure else None,
    )


def call_of(block: Block) -> tuple[str, str, str]:
    assert isinstance(block, ToolCall)
    return block.id, block.name, block.invalid or block.arguments or "{}"


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_a_quirk_is_survived_or_reported(dialect: str, name: str) -> None:
    decoded = decode(played(dialect, name), dialect, tools=["add", "sub"])
    assert outcome(decoded) == EXCEPTIONS.get((dialect, name), EVERYWHERE[name])


@pytest.mark.parametrize("name", ["", *EVERYWHERE])
@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_reads_of_one_byte_come_to_the_same(dialect: str, name: str) -> None:
    body = played(dialect, *filter(None, [name]))
    single = decode((body[i : i + 1] for i in range(len(body))), dialect, tools=["add", "sub"])
    assert single == decode(body, dialect, tools=["add", "sub"])


PAIRS = [
    ("empty_continuation_ids", "crlf"),
    ("null_continuation_ids", "interleaved"),
    ("no_index", "repeated_identity"),
    ("one_based_index", "stop_with_calls"),
    ("same_index", "string_null_name"),
    ("gzip_unmarked", "bom"),
    ("keepalives", "lone_cr"),
    ("no_last_blank_line", "usage_every_chunk"),
    ("finish_other", "null_frames"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_quirks_combine(dialect: str, pair: tuple[str, str]) -> None:
    assert outcome(decode(played(dialect, *pair), dialect, tools=["add", "sub"])) == SAME


def test_every_quirk_is_here() -> None:
    assert set(EVERYWHERE) | NOT_BYTES == set(quirks.QUIRKS)


def usage_of(dialect: str, *names: str) -> Any:
    usage = decode(played(dialect, *names), dialect).usage
    return None if usage is None else (usage.input_tokens, usage.output_tokens)


@pytest.mark.parametrize("dialect", PROTOCOLS)
def test_usage_is_a_running_total_and_never_invented(dialect: str) -> None:
    assert [usage_of(dialect, *names) for names in ((), ("usage_every_chunk",), ("no_usage",))] == [
        (9, 8),
        (9, 8),
        None,
    ]

"""What a chat provider sent beside reasoning and calls goes back to it, and to nobody else."""

from typing import Any

import pytest
from chat_streams import body, delta, end, entry, reasoning_of

from lockstitch.history.decode import Decoded, decode
from lockstitch.history.project import project
from lockstitch.providers.catalog import profile
from lockstitch.providers.dialects import encode, violations
from lockstitch.schema.blocks import Reasoning, Replay, Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message, Request

SIGNATURE = {"google": {"thought_signature": "c2ln"}}


def said(*deltas: dict[str, Any], name: str = "openrouter") -> Decoded:
    return decode(
        body([{**one, "model": "m1"} for one in deltas] + end("tool_calls")), "openai-chat", profile=name
    )


def details(*entries: Any) -> dict[str, Any]:
    return delta(reasoning_details=list(entries))


CALLED = delta(tool_calls=[entry(0, "c1", "ls", "{}")])
DETAILS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "pieces of one entry are joined": (
        [
            details({"type": "reasoning.text", "text": "a", "index": 0, "format": "f"}),
            details({"type": "reasoning.text", "text": "b", "index": 0}, None),
            details({"type": "reasoning.text", "signature": "s", "index": 0}),
        ],
        [{"type": "reasoning.text", "index": 0, "format": "f", "signature": "s", "text": "ab"}],
    ),
    "another index is another entry": (
        [
            details(
                {"type": "reasoning.text", "text": "a", "index": 0},
                {"type": "reasoning.text", "text": "b", "index": 1},
            )
        ],
        [
            {"type": "reasoning.text", "index": 0, "text": "a"},
            {"type": "reasoning.text", "index": 1, "text": "b"},
        ],
    ),
    "another type is another entry": (
        [
            details({"type": "reasoning.summary", "summary": "a"}),
            details({"type": "reasoning.encrypted", "data": "x"}),
        ],
        [{"type": "reasoning.summary", "summary": "a"}, {"type": "reasoning.encrypted", "data": "x"}],
    ),
    "encrypted entries are whole": (
        [
            details({"type": "reasoning.encrypted", "data": "x"}),
            details({"type": "reasoning.encrypted", "data": "y"}),
        ],
        [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.encrypted", "data": "y"}],
    ),
}


@pytest.mark.parametrize("name", DETAILS)
def test_reasoning_details_are_kept_whole(name: str) -> None:
    deltas, entries = DETAILS[name]
    result = said(*deltas, CALLED)
    reasoning = result.content[0]
    assert isinstance(reasoning, Reasoning)
    assert reasoning.replay == Replay("openrouter", "m1", {"reasoning_details": entries})


def test_their_text_is_the_reasoning_if_it_comes_nowhere_else() -> None:
    entry_a = {"type": "reasoning.text", "text": "a"}
    assert reasoning_of(said(details(entry_a), details(entry_a), CALLED)) == "aa"
    assert reasoning_of(said({**delta(reasoning="a", reasoning_details=[entry_a])}, CALLED)) == "a"


def test_a_message_in_one_piece_has_them_too() -> None:
    message = {
        "reasoning_details": [{"type": "reasoning.text", "text": "a"}],
        "tool_calls": [entry(0, "c1", "ls", "{}")],
    }
    result = decode(body([{"choices": [{"message": message, "finish_reason": "stop"}]}]), "openai-chat")
    assert reasoning_of(result) == "a"


def test_they_go_back_in_place_of_the_text() -> None:
    result = said(details({"type": "reasoning.text", "text": "a", "index": 0}), CALLED)
    assert requested(result, "openrouter")[1] == {
        "role": "assistant",
        "content": None,
        "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
    }


def test_the_signature_of_a_call_goes_back_with_it() -> None:
    signed = {**entry(0, "c1", "ls", "{}"), "extra_content": SIGNATURE}
    result = said(delta(tool_calls=[signed]), name="generic")
    call = result.content[0]
    assert isinstance(call, ToolCall)
    assert call.replay == Replay("generic", "m1", {"extra_content": SIGNATURE})
    assert requested(result, "generic")[1]["tool_calls"][0]["extra_content"] == SIGNATURE


def test_neither_goes_to_another_provider() -> None:
    signed = {**entry(0, "c1", "ls", "{}"), "extra_content": SIGNATURE}
    result = said(details({"type": "reasoning.text", "text": "a"}), delta(tool_calls=[signed]))
    assistant = requested(result, "openrouter", to="deepseek")[1]
    assert "reasoning_details" not in assistant
    assert "extra_content" not in assistant["tool_calls"][0]


def requested(result: Decoded, wrote: str, to: str | None = None) -> list[dict[str, Any]]:
    """The wire messages of the next request, after the call was answered."""
    target = profile(to or wrote)
    history = [
        Message("user", (Text("hi"),)),
        Message("assistant", result.content, provider=wrote, model="m1"),
        Message("tool", (ToolResult("c1", (Text("done"),)),)),
    ]
    projected = project(history, target, model="m1")
    wire = encode(Request("m1", tuple(projected.messages)), target)
    assert violations(wire.body, "openai-chat", target) == []
    return list(wire.body["messages"])

"""Each thing that openai-responses says comes in several forms: pieces, whole at the end of its part, of its
item, and of the response. Gateways leave out any of them; whichever come, everything is there once.

Sources, read 2026-12-01: https://github.com/anomalyco/opencode/pull/44595 (reasoning only in its ``.done``
events), https://github.com/langchain-ai/langchain/pull/37379 (only in the item),
https://github.com/sixb-ai/sixb/pull/584 (reasoning in ``content_part.done``),
https://github.com/Sophomoresty/gemini-web2api/pull/57 (text only in ``output_text.done``),
https://github.com/vllm-project/vllm/pull/31761 (part numbers that count on through the response).
"""

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.history.decode import Decoded, decode
from lockstitch.schema.blocks import Reasoning, Text, ToolCall

PART_FORMS = ("deltas", "text done", "part done")
FORMS = (*PART_FORMS, "item done", "snapshot")
SETS = [chosen for size in range(1, len(FORMS) + 1) for chosen in combinations(FORMS, size)]
KINDS = {
    "output_text": ("message", "content", "content_index", "response.output_text", "response.content_part"),
    "refusal": ("message", "content", "content_index", "response.refusal", "response.content_part"),
    "summary_text": (
        *("reasoning", "summary", "summary_index"),
        *("response.reasoning_summary_text", "response.reasoning_summary_part"),
    ),
    "reasoning_text": (
        *("reasoning", "content", "content_index"),
        *("response.reasoning_text", "response.content_part"),
    ),
}
"""Item, its field, the number's name, the events of a text and those of a part."""


def part_of(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "refusal" if kind == "refusal" else "text": text}


def item_of(kind: str, texts: Sequence[str]) -> dict[str, Any]:
    type_, name, *_ = KINDS[kind]
    return {"id": "i", "type": type_, "summary": [], name: [part_of(kind, text) for text in texts]}


def part_events(kind: str, number: int, text: str, forms: Sequence[str]) -> list[dict[str, Any]]:
    _, _, index, says, parts = KINDS[kind]
    where = {"item_id": "i", "output_index": 0, index: number}
    half = len(text) // 2
    events: list[dict[str, Any]] = []
    if "deltas" in forms:
        events += [{"type": f"{says}.delta", **where, "delta": piece} for piece in (text[:half], text[half:])]
    if "text done" in forms:
        events.append({**where, **part_of(kind, text), "type": f"{says}.done"})
    if "part done" in forms:
        events.append({"type": f"{parts}.done", **where, "part": part_of(kind, text)})
    return events


def response(*events: dict[str, Any], output: Sequence[dict[str, Any]] = ()) -> bytes:
    end = {"type": "response.completed", "response": {"status": "completed", "output": list(output)}}
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (*events, end))


def said(decoded: Decoded) -> list[str]:
    """The texts of an answer, those of a reasoning block apart."""
    out: list[str] = []
    for block in decoded.content:
        if isinstance(block, Reasoning):
            out += block.text.split("\n\n")
        elif isinstance(block, Text):
            out.append(block.text)
    return out


def both_ways(body: bytes) -> Decoded:
    whole = decode(body, "openai-responses")
    assert decode([bytes([byte]) for byte in body], "openai-responses") == whole
    return whole


@pytest.mark.parametrize("forms", SETS, ids=" and ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_whole_and_once_whichever_forms_come(kind: str, forms: tuple[str, ...]) -> None:
    texts = ["one", "one more"]
    events = [event for number, text in enumerate(texts) for event in part_events(kind, number, text, forms)]
    if "item done" in forms:
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item_of(kind, texts)})
    decoded = both_ways(response(*events, output=[item_of(kind, texts)] if "snapshot" in forms else []))
    assert (said(decoded), decoded.notes) == (texts, ())


@given(
    kind=st.sampled_from(list(KINDS)),
    forms=st.lists(st.sets(st.sampled_from(PART_FORMS)), min_size=1, max_size=4),
    snapshot=st.booleans(),
    first=st.integers(0, 3),
    step=st.sampled_from([1, 2]),
)
def test_parts_that_come_in_forms_of_their_own_are_completed_by_the_item(
    kind: str, forms: list[set[str]], snapshot: bool, first: int, step: int
) -> None:
    """Also if they are numbered from anywhere: an item gives its parts without numbers."""
    texts = [f"text {number}" for number in range(len(forms))]
    events = [
        event
        for number, (text, some) in enumerate(zip(texts, forms, strict=True))
        for event in part_events(kind, first + step * number, text, sorted(some))
    ]
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item_of(kind, texts)})
    decoded = decode(response(*events, output=[item_of(kind, texts)] if snapshot else []), "openai-responses")
    assert (sorted(said(decoded)), decoded.notes) == (texts, ())


CALL_FORMS = ("deltas", "arguments done", "item done", "snapshot")


@pytest.mark.parametrize(
    "forms",
    [chosen for size in range(1, 5) for chosen in combinations(CALL_FORMS, size)],
    ids=" and ".join,
)
def test_arguments_are_whole_and_once_whichever_forms_come(forms: tuple[str, ...]) -> None:
    events: list[dict[str, Any]] = []
    output = []
    for index, (id, text) in enumerate([("a", '{"p":1}'), ("b", '{"p":12}')]):
        call = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "ls"}
        where = {"item_id": f"fc_{id}", "output_index": index}
        arguments = "response.function_call_arguments"
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**call, "arguments": ""}}
        )
        if "deltas" in forms:
            events += [
                {"type": f"{arguments}.delta", **where, "delta": piece} for piece in (text[:3], text[3:])
            ]
        if "arguments done" in forms:
            events.append({"type": f"{arguments}.done", **where, "arguments": text})
        if "item done" in forms:
            done = {"type": "response.output_item.done", "output_index": index}
            events.append({**done, "item": {**call, "arguments": text}})
        output.append({**call, "arguments": text})
    decoded = both_ways(response(*events, output=output if "snapshot" in forms else []))
    calls = [(call.id, call.arguments) for call in decoded.content if isinstance(call, ToolCall)]
    assert (calls, decoded.notes) == ([("a", '{"p":1}'), ("b", '{"p":12}')], ())


def delta(number: int, text: str, kind: str = "output_text") -> dict[str, Any]:
    return {**part_events(kind, number, text * 2, ["deltas"])[0]}


def done(number: int, text: str, kind: str = "output_text") -> dict[str, Any]:
    return part_events(kind, number, text, ["text done"])[0]


def item_done(*texts: str, kind: str = "output_text") -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": item_of(kind, texts)}


ODD: dict[str, tuple[list[dict[str, Any]], list[str], list[str]]] = {
    "a part that ends under another number": ([delta(1, "Hel"), done(0, "Hello")], ["Hello"], []),
    "a part that ends under another number, twice": (
        [delta(4, "Hel"), done(5, "Hello"), part_events("output_text", 5, "Hello", ["part done"])[0]],
        ["Hello"],
        [],
    ),
    "a second part that begins like the first, which has ended": (
        [delta(0, "Hi"), done(0, "Hi"), done(1, "Hi there"), item_done("Hi", "Hi there")],
        ["Hi", "Hi there"],
        [],
    ),
    "a tail that only the item has": ([delta(7, "Hel"), item_done("Hello")], ["Hello"], []),
    "an item that says something else": ([delta(3, "Hi"), item_done("Hello")], ["Hi"], ["text_differs"]),
    "an end that says something else": ([delta(0, "Hi"), done(0, "Hello")], ["Hi"], ["text_differs"]),
    "an end that says less": ([delta(0, "Hello"), done(0, "Hel")], ["Hello"], ["text_differs"]),
    "an end and an item that say nothing": ([delta(0, "Hi"), done(0, ""), item_done("")], ["Hi"], []),
    "an item whose first part never streamed": (
        [delta(1, "two"), item_done("one", "two")],
        ["two", "one"],
        [],
    ),
    "a summary whose first part is completed behind the second": (
        [
            delta(0, "on", "summary_text"),
            delta(1, "two", "summary_text"),
            item_done("one", "two", kind="summary_text"),
        ],
        ["on", "two", "e"],
        [],
    ),
    "a summary with the reasoning it sums up": (
        [
            done(0, "short", "summary_text"),
            done(0, "at length", "reasoning_text"),
            item_done("at length", kind="reasoning_text"),
        ],
        ["short"],
        [],
    ),
    "an empty summary with the reasoning": (
        [
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {**item_of("reasoning_text", ["hm"]), "summary": [part_of("summary_text", "")]},
            }
        ],
        ["hm"],
        [],
    ),
    "a message whose content is a text": (
        [
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {"type": "message", "id": "i", "content": "Hi"},
            }
        ],
        ["Hi"],
        [],
    ),
    "a message whose content was streamed and is a text in the end": (
        [
            delta(0, "H"),
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {"type": "message", "id": "i", "content": ["Hi"]},
            },
        ],
        ["Hi"],
        [],
    ),
    "reasoning whose summary is a list of texts": (
        [
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {"type": "reasoning", "id": "i", "summary": ["one", "two"]},
            }
        ],
        ["one", "two"],
        [],
    ),
    "reasoning that ends in an event of vLLM": (
        [
            {
                "type": "response.reasoning_part.done",
                "item_id": "i",
                "output_index": 0,
                "content_index": 4,
                "part": part_of("reasoning_text", "hm"),
            }
        ],
        ["hm"],
        [],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_numbers_and_ends(name: str) -> None:
    events, texts, notes = ODD[name]
    decoded = both_ways(response(*events))
    assert (said(decoded), [note.kind for note in decoded.notes]) == (texts, notes)

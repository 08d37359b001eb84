"""Assembling chunks of any producer, and the grammar that ours obey."""

import pytest

from lockstitch.history.assemble import Assembler, Grammar, GrammarError
from lockstitch.schema.blocks import Opaque, Reasoning, Text, ToolCall
from lockstitch.schema.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage

CUT = failure("STREAM_CLOSED", "cut")
CALL = ToolCall("c1", "ls", "{}")


def assembled(*chunks: Chunk) -> Assembler:
    """Both ways to add, which must not differ."""
    one, all_at_once = Assembler(), Assembler()
    for chunk in chunks:
        one.add(chunk)
    all_at_once.add_all(chunks)
    assert (one.blocks(), one.ignored, one.finish) == (
        all_at_once.blocks(),
        all_at_once.ignored,
        all_at_once.finish,
    )
    return one


BLOCKS: dict[str, tuple[list[Chunk], list[object], int]] = {
    "the first end of a block is authoritative": (
        [BlockStart(0, "text"), TextDelta(0, "a"), BlockEnd(0, Text("b")), BlockEnd(0, Text("c"))],
        [Text("b")],
        1,
    ),
    "stragglers are ignored and counted": (
        [BlockEnd(0, Text("b")), TextDelta(0, "a"), ToolCallDelta(0, "{}", id="x", name="y")],
        [Text("b")],
        2,
    ),
    "a repeated start changes nothing": (
        [BlockStart(0, "text"), BlockStart(0, "reasoning"), TextDelta(0, "a")],
        [Text("a")],
        1,
    ),
    "deltas alone assemble too": (
        [
            TextDelta(0, "a"),
            ReasoningDelta(1, "r"),
            TextDelta(0, "b"),
            ToolCallDelta(2, "{", id="c1", name="ls"),
            ToolCallDelta(2, "}"),
        ],
        [Text("ab"), Reasoning("r"), CALL],
        0,
    ),
    "the order is that of first sight": ([TextDelta(5, "a"), TextDelta(2, "b")], [Text("a"), Text("b")], 0),
    "a delta of another kind is ignored": ([TextDelta(0, "a"), ReasoningDelta(0, "r")], [Text("a")], 1),
    "a call without a name is no block": ([ToolCallDelta(0, "{}", id="c1")], [], 0),
    "a call without an id is no block": ([ToolCallDelta(0, "{}", name="ls")], [], 0),
    "identity is never overwritten": (
        [ToolCallDelta(0, "", id="c1", name="ls"), ToolCallDelta(0, "{}", id="c2", name="rm")],
        [CALL],
        0,
    ),
    "what follows the finish is ignored": (
        [TextDelta(0, "a"), Finish("stop"), TextDelta(0, "b"), Finish("length")],
        [Text("a")],
        2,
    ),
    "under length the last call is truncated": (
        [
            ToolCallDelta(0, "{}", id="c1", name="ls"),
            ToolCallDelta(1, "{", id="c2", name="ls"),
            Finish("length"),
        ],
        [CALL, ToolCall("c2", "ls", "{", invalid="truncated")],
        0,
    ),
    "under length a call that a later block follows is complete": (
        [ToolCallDelta(0, "{}", id="c1", name="ls"), TextDelta(1, "a"), Finish("length")],
        [CALL, Text("a")],
        0,
    ),
    "under length a call that was ended is what its end says": (
        [BlockEnd(0, CALL), Finish("length")],
        [CALL],
        0,
    ),
    "an opaque block comes whole": ([BlockEnd(0, Opaque("x", {"a": 1}))], [Opaque("x", {"a": 1})], 0),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    chunks, blocks, ignored = BLOCKS[name]
    result = assembled(*chunks)
    assert list(result.blocks()) == blocks
    assert result.ignored == ignored


def test_an_interrupted_stream_keeps_what_a_person_saw() -> None:
    result = assembled(
        TextDelta(0, "a"),
        ToolCallDelta(1, "{}", id="c1", name="ls"),
        ReasoningDelta(2, "r"),
        TextDelta(3, " \n"),
        UsageChunk(Usage(1, 2)),
        Finish("error", CUT),
    )
    assert result.interrupted() == (Text("a"), Reasoning("r"))
    assert result.usage == Usage(1, 2)


def test_a_stream_without_a_finish_has_none() -> None:
    assert assembled(TextDelta(0, "a")).finish is None


VALID: dict[str, list[Chunk]] = {
    "blocks side by side": [
        BlockStart(0, "text"),
        BlockStart(1, "tool_call"),
        TextDelta(0, "a"),
        ToolCallDelta(1, "{}"),
        BlockEnd(0, Text("a")),
        BlockEnd(1, CALL),
        UsageChunk(Usage()),
        Finish("tool_calls"),
    ],
    "an error may leave blocks open": [BlockStart(0, "text"), Finish("error", CUT)],
    "so may an abort": [BlockStart(0, "reasoning"), Finish("aborted", CUT)],
}
INVALID: dict[str, list[Chunk]] = {
    "an index out of order": [BlockStart(1, "text")],
    "an index opened twice": [BlockStart(0, "text"), BlockStart(0, "text")],
    "a delta without a block": [TextDelta(0, "a")],
    "a delta of another kind": [BlockStart(0, "text"), ReasoningDelta(0, "a")],
    "a call delta in a text": [BlockStart(0, "text"), ToolCallDelta(0, "{}")],
    "a delta after the end": [BlockStart(0, "text"), BlockEnd(0, Text("a")), TextDelta(0, "b")],
    "an end without a block": [BlockEnd(0, Text("a"))],
    "an end of another kind": [BlockStart(0, "text"), BlockEnd(0, CALL)],
    "a second usage": [UsageChunk(Usage()), UsageChunk(Usage())],
    "anything after the finish": [Finish("stop"), TextDelta(0, "a")],
    "a second finish": [Finish("stop"), Finish("stop")],
    "open blocks at a good end": [BlockStart(0, "text"), Finish("stop")],
    "an error without a failure": [Finish("error")],
    "a failure without an error": [Finish("stop", CUT)],
}


def check(chunks: list[Chunk], *, at_once: bool) -> None:
    grammar = Grammar()
    if at_once:
        grammar.check_all(chunks)
    else:
        for chunk in chunks:
            grammar.check(chunk)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("name", VALID)
def test_the_grammar_allows(name: str, at_once: bool) -> None:
    check(VALID[name], at_once=at_once)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("name", INVALID)
def test_the_grammar_forbids(name: str, at_once: bool) -> None:
    check(INVALID[name][:-1], at_once=at_once)
    with pytest.raises(GrammarError):
        check(INVALID[name], at_once=at_once)

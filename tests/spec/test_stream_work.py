"""Decoding is linear in the length of a stream: work is counted, not timed.

Counted are calls of functions and, since one call may copy much, the characters that each text operation of
ours could touch: the pieces given out, and what the argument scanner looked at.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from chat_streams import body, call, calls_of, delta, end, entry, text_of
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.history.decode import Decoder
from lockstitch.providers.call_slots import Call, CallDelta, CallSlots
from lockstitch.providers.markup import MarkupFilter
from lockstitch.providers.markup_calls import read_calls
from lockstitch.providers.think_tags import ThinkTags
from lockstitch.wire.json_scan import ObjectScan
from lockstitch.wire.pieces import PIECES_MAX

FEW, MANY = 300, 1200
LINEAR = 1.05
"""Work per piece of the long stream over that of the short one; set-up makes it fall, nothing may make it
rise.
"""


def texts(count: int) -> list[Any]:
    return [delta(f"word{number} ") for number in range(count)]


def one_call(count: int) -> list[Any]:
    return [
        call(0, "a", "ls", '{"p":"'),
        *[call(0, "", "", "abc") for _ in range(count)],
        call(0, "", "", '"}'),
    ]


def parallel(count: int) -> list[Any]:
    opened = [call(number, f"c{number}", "ls", '{"p":"') for number in range(64)]
    return opened + [call(number % 64, "", "", "abc") for number in range(count)]


def names_again(count: int) -> list[Any]:
    """Each delta makes the decoder ask whether the arguments are whole: a name, no id, and a brace."""
    return [call(0, ..., "ls", '{"p":"'), *[call(0, ..., "ls", "{abc") for _ in range(count)]]


def ids_that_change(count: int) -> list[Any]:
    return [call(0, "a", "ls", '{"p":"'), *[call(0, f"b{number}", "ls", "abc") for number in range(count)]]


def many_calls(count: int) -> list[Any]:
    return [call(0, f"c{number}", "ls", "{}") for number in range(count)]


def many_calls_in_one_delta(count: int) -> list[Any]:
    return [delta(tool_calls=[entry(..., ..., "ls", "{}") for _ in range(count)])]


def held_back(count: int) -> list[Any]:
    return [delta("\n<tool_c") for _ in range(count)]


def in_code(count: int) -> list[Any]:
    return [delta("`<tool_call>` <b\n") for _ in range(count)]


def thinking(count: int) -> list[Any]:
    return [delta("<think>"), *[delta("a </thin") for _ in range(count)]]


def odd_frames(count: int) -> list[Any]:
    return [delta(["a"], refusal="b") for _ in range(count)]


SHAPES = (
    *(texts, one_call, parallel, names_again, ids_that_change, many_calls, many_calls_in_one_delta),
    *(held_back, in_code, thinking, odd_frames),
)


def counted(work: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def decode_in_reads(data: bytes) -> Decoder:
    decoder = Decoder("openai-chat", profile="vllm", tools=("ls",))
    for at in range(0, len(data), 700):
        decoder.feed(data[at : at + 700])
    decoder.end()
    return decoder


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__.replace("_", " "))
def test_a_longer_stream_costs_no_more_for_each_event(shape: Callable[[int], list[Any]]) -> None:
    streams = [body([*shape(count), *end("stop")]) for count in (FEW, MANY)]
    few, many = (counted(lambda data=data: decode_in_reads(data)) for data in streams)
    assert many / MANY <= few / FEW * LINEAR


def test_ten_megabytes_of_arguments_in_a_hundred_thousand_deltas() -> None:
    decoder = Decoder("openai-chat")
    decoder.feed(body([call(0, "a", "ls", '{"p":"')]))
    many = body([call(0, "", "", "x" * 100)] * 1000)
    for _ in range(100):
        decoder.feed(many)
    decoder.feed(body([call(0, "", "", '"}'), *end("tool_calls")]))
    assert [(id, len(arguments)) for id, _, arguments in calls_of(decoder.result)] == [("a", 10_000_008)]


def side_by_side(count: int) -> list[Any]:
    """Two calls and a text, all three in each delta."""
    first = [delta("a ", tool_calls=[entry(0, "a", "ls", '{"p":"'), entry(1, "b", "ls", '{"p":"')])]
    both = delta("word ", tool_calls=[entry(0, "", "", "some "), entry(1, "", "", "more ")])
    return first + [both] * count


@pytest.mark.parametrize(
    "shape",
    [texts, one_call, parallel, names_again, side_by_side, thinking],
    ids=lambda shape: shape.__name__.replace("_", " "),
)
def test_a_long_answer_is_held_in_few_pieces(shape: Callable[[int], list[Any]]) -> None:
    decoder = Decoder("openai-chat", profile="vllm", tools=("ls",))
    stream = body(shape(20_000))
    before = sys.getallocatedblocks()
    for at in range(0, len(stream), 4_096):
        decoder.feed(stream[at : at + 4_096])
    assert sys.getallocatedblocks() - before < 8_000, "one for each piece would be 20,000"


@given(
    st.lists(st.tuples(st.sampled_from(['{"p":', '"a"', "}", " {", "x" * 9]), st.booleans()), max_size=200)
)
def test_what_arguments_are_does_not_depend_on_when_they_are_asked_for(asked: list[tuple[str, bool]]) -> None:
    found, said = Call(0), ""
    for piece, ask in asked:
        found.parts.append(piece)
        said += piece
        found.shown_parts += 1
        if ask:
            scan = ObjectScan()
            scan.feed(said)
            assert found.complete == scan.complete
        found.settle()
        assert len(found.parts) < PIECES_MAX
    assert found.arguments == said


def test_arguments_are_scanned_once_however_often_they_are_asked_for() -> None:
    slots = CallSlots(("ls",))
    total = 0
    for number in range(1000):
        piece = '{"p":"' if number == 0 else "{abc"
        found, _ = slots.route(CallDelta(0, None, "ls", piece), 0)
        found.parts.append(piece)
        total += len(piece)
    assert found.scan is not None
    assert total - len(piece) <= found.scan.scanned <= total


def test_what_think_tags_and_markup_hold_back_is_bounded() -> None:
    tags, markup = ThinkTags(), MarkupFilter(("hermes",))
    for _ in range(20_000):
        tags.feed(" ")
        markup.feed("\n")
    assert len(tags._held) <= 4096
    assert len(markup._held) <= 512


def test_markup_without_ends_is_read_in_one_pass() -> None:
    """A pattern with a lazy middle would look from each beginning to the end of the text."""
    for family, begin, beginning in (
        ("dsml", "<｜DSML｜function_calls>", '<｜DSML｜invoke name="ls">'),
        ("hermes", "<tool_call>", "<function=ls>"),
        ("minimax", "<minimax:tool_call>", '<invoke name="ls">'),
        ("kimi", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    ):
        markup = MarkupFilter((family,))
        end_mark = (
            begin.replace("<", "</", 1).replace("section_begin", "section_end").replace("</|tool", "<|tool")
        )
        markup.feed(begin + beginning * 20_000 + end_mark)
        assert [read_calls(section) for section in markup.sections] == [None]


def test_text_that_was_held_back_comes_out_whole() -> None:
    decoder = decode_in_reads(body([*held_back(50), *end("stop")]))
    assert text_of(decoder.result) == "\n<tool_c" * 50

"""What holds for every stream: any bytes, any split, any order of parallel calls."""

import gzip
import json
from itertools import pairwise
from typing import Any

from chat_streams import DONE, body, call, calls_of, delta, ending_of
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lockstitch.history.assemble import Assembler, Grammar
from lockstitch.history.decode import Decoded, Decoder, decode
from lockstitch.providers.catalog import profile
from lockstitch.providers.openai_chat_stream import OpenAiChatStream
from lockstitch.schema.chunks import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta

PROFILES = st.sampled_from(["generic", "deepseek", "moonshot", "qwen", "vllm"])
TOOLS = ("ls", "read", "read_file")

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", " ", "0", "ls", "read", "_file", "a", "b", "stop", "{}", '{"p":', "1}", "null"]),
    st.just([]),
    st.just({}),
    st.just(["a"]),
)
pieces = st.sampled_from(
    [
        *(
            "a",
            " ",
            "\n",
            "<",
            "<think>",
            "</think>",
            "</thi",
            "nk>",
            "`",
            "```\n",
            "~~~",
            "<tool_call>",
            "</tool_call>",
        ),
        *(
            '{"name":"ls","arguments":{}}',
            "<｜DSML｜",
            "tool_calls>",
            "<|tool_call_begin|>",
            "functions.ls:0 {}",
        ),
        *("<|tool_call_end|>", "é😀", "\ud83d", "\u2028"),
    ]
)


def maybe(likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, sometimes anything."""
    return st.one_of(likely, likely, likely, junk)


entries = st.fixed_dictionaries(
    {},
    optional={
        "index": maybe(st.integers(0, 2)),
        "id": maybe(st.sampled_from(["a", "b", "c", ""])),
        "function": maybe(
            st.fixed_dictionaries(
                {},
                optional={
                    "name": maybe(st.sampled_from([*TOOLS, "_file", ""])),
                    "arguments": maybe(st.sampled_from(["", "{", "}", "{}", '{"p":1}', '"}"'])),
                },
            )
        ),
        "name": junk,
        "arguments": junk,
    },
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": maybe(pieces),
        "reasoning_content": maybe(pieces),
        "reasoning": maybe(pieces),
        "thinking": junk,
        "tool_calls": maybe(st.lists(maybe(entries), max_size=3)),
        "function_call": maybe(entries),
        "refusal": junk,
    },
)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": maybe(st.integers(0, 1)),
        "delta": maybe(deltas),
        "finish_reason": maybe(
            st.sampled_from([None, None, "stop", "tool_calls", "length", "content_filter", "x"])
        ),
        "message": maybe(deltas),
        "text": junk,
    },
)
counts = st.one_of(st.none(), st.integers(-1, 9), st.floats(0, 3), st.just("5"), st.just({}))
usages = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": counts,
        "completion_tokens": counts,
        "prompt_tokens_details": st.one_of(junk, st.fixed_dictionaries({"cached_tokens": counts})),
    },
)
chat_chunks = st.fixed_dictionaries(
    {},
    optional={
        "choices": maybe(st.lists(maybe(choices), max_size=2)),
        "usage": maybe(usages),
        "error": st.one_of(st.none(), st.just("boom"), st.just({"message": "m", "code": 500}), junk),
    },
)


@st.composite
def tidy_chunks(draw: st.DrawFn) -> dict[str, Any]:
    """A chunk as it should be, but for at most one field that is odd."""
    said = draw(
        st.one_of(
            st.fixed_dictionaries({"content": pieces}),
            st.fixed_dictionaries({"reasoning": pieces}),
            st.fixed_dictionaries({"content": st.none(), "tool_calls": st.lists(tidy_entries, max_size=2)}),
        )
    )
    reason = draw(st.sampled_from([None, None, None, "stop", "tool_calls", "length"]))
    choice = {"index": 0, "delta": said, "finish_reason": reason}
    chunk = {
        "choices": [choice],
        "usage": draw(st.sampled_from([None, {"prompt_tokens": 3, "completion_tokens": 1}])),
    }
    entry = next(iter(said.get("tool_calls", [])), {"function": {}})
    places = {"chunk": chunk, "choice": choice, "delta": said, "entry": entry, "function": entry["function"]}
    if draw(st.booleans()):
        place, name, telling = draw(st.sampled_from(ODD_FIELDS))
        places[place][name] = draw(st.one_of(st.just(telling), junk))
    return chunk


tidy_entries = st.fixed_dictionaries(
    {
        "index": st.integers(0, 1),
        "id": st.sampled_from(["a", "b", ""]),
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from([*TOOLS, "_file", ""]),
                "arguments": st.sampled_from(["", "{", "}", "{}"]),
            }
        ),
    }
)
COUNTS = {"prompt_tokens": 7, "completion_tokens": 7}
ODD_FIELDS = (
    ("chunk", "error", {"message": "m", "code": 500}),
    ("chunk", "base_resp", {"status_code": 1002, "status_msg": "m"}),
    ("chunk", "x_groq", {"usage": COUNTS}),
    ("chunk", "usage", COUNTS),
    ("chunk", "choices", None),
    ("choice", "index", 1),
    ("choice", "delta", None),
    ("choice", "finish_reason", ""),
    ("choice", "message", {"content": "m"}),
    ("choice", "text", "t"),
    ("choice", "usage", COUNTS),
    ("delta", "content", [{"type": "text", "text": "c"}]),
    ("delta", "reasoning_content", "r"),
    ("delta", "reasoning_text", "r"),
    ("delta", "thinking", "r"),
    ("delta", "tool_calls", [None]),
    ("delta", "function_call", {"name": "ls", "arguments": "{}"}),
    ("delta", "refusal", "no"),
    ("delta", "reasoning_details", [{"type": "reasoning.text", "text": "d"}]),
    ("entry", "index", None),
    ("entry", "id", None),
    ("entry", "function", None),
    ("entry", "name", "read"),
    ("entry", "arguments", "{}"),
    ("entry", "extra_content", {"google": {"thought_signature": "s"}}),
    ("function", "name", None),
    ("function", "arguments", {"p": 1}),
)
"""Where a chunk may be odd, and a value there that changes what it says."""
events = st.one_of(chat_chunks, tidy_chunks(), tidy_chunks(), tidy_chunks(), st.just(DONE), junk)


def encoded(event: Any) -> bytes:
    return event.encode("utf-8", "replace") if isinstance(event, str) else json.dumps(event).encode()


bodies = st.one_of(
    st.binary(max_size=200),
    st.lists(events, max_size=8).map(lambda found: body([encoded(event) for event in found])),
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            events.map(encoded),
            st.sampled_from(
                [
                    b"\n",
                    b"\r",
                    b"\r\n",
                    b"data:",
                    b"data: ",
                    b": c\n",
                    b"event: error\n",
                    b"\xef\xbb\xbf",
                    b"<",
                    b"{",
                    b"[",
                ]
            ),
        ),
        max_size=14,
    ).map(b"".join),
)
compressed = st.one_of(
    bodies,
    bodies,
    bodies.map(gzip.compress),
    bodies.map(lambda data: gzip.compress(data)[: len(data) // 2 + 12]),
)


def run(reads: list[bytes], name: str = "generic", status: int = 200) -> tuple[list[Chunk], Decoded]:
    decoder = Decoder("openai-chat", profile=name, tools=TOOLS, status=status)
    chunks: list[Chunk] = []
    for read in reads:
        chunks += decoder.feed(read)
    chunks += decoder.end()
    assert decoder.feed(b"data: x\n\n") == [] and decoder.end() == []
    return chunks, decoder.result


def spoken(chunks: list[Chunk]) -> dict[tuple[str, int], str]:
    """Deltas put together, by kind and block; ids and names of calls with them."""
    said: dict[tuple[str, int], str] = {}
    for chunk in chunks:
        if isinstance(chunk, TextDelta | ReasoningDelta):
            key = (type(chunk).__name__, chunk.index)
            said[key] = said.get(key, "") + chunk.text
        elif isinstance(chunk, ToolCallDelta):
            key = ("call", chunk.index)
            said[key] = said.get(key, "") + chunk.arguments
            if chunk.name is not None:
                said["name", chunk.index] = said.get(("name", chunk.index), "") + chunk.name
            if chunk.id is not None:
                said["id", chunk.index] = said.get(("id", chunk.index), "") + chunk.id
    return said


@given(compressed, PROFILES, st.sampled_from([200, 204, 301, 400, 429, 500]))
@settings(max_examples=150, deadline=None)
@example(b"\x1f\x8b\x08", "generic", 200)
@example(b'data: {"choices":[{"delta":{"tool_calls":[{"index":1e400}]}}]}\n\n', "generic", 200)
def test_any_bytes_end_in_exactly_one_finish(data: bytes, name: str, status: int) -> None:
    chunks, result = run([data], name, status)
    assert [type(chunk) for chunk in chunks].count(Finish) == 1
    assert chunks[-1] == result.finish
    grammar, assembler = Grammar(), Assembler()
    for chunk in chunks:
        grammar.check(chunk)
        assembler.add(chunk)
    assert assembler.ignored == 0
    json.dumps(result.to_json()).encode()
    assert all(
        block.id and block.name for block in result.content if block.__struct_config__.tag == "tool_call"
    )


@given(compressed, PROFILES, st.lists(st.integers(0, 400), max_size=6))
@settings(max_examples=150, deadline=None)
def test_every_split_gives_the_same(data: bytes, name: str, cuts: list[int]) -> None:
    whole, result = run([data], name)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for reads in (
        [data[at : at + 1] for at in range(len(data))],
        [data[a:b] for a, b in pairwise(bounds)],
    ):
        chunks, again = run(reads, name)
        assert again == result
        assert spoken(chunks) == spoken(whole)


@given(compressed, PROFILES, st.integers(0, 400), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_body_that_breaks_anywhere_ends_in_one_finish(
    data: bytes, name: str, at: int, aborted: bool
) -> None:
    from lockstitch.schema.failures import failure

    decoder = Decoder("openai-chat", profile=name)
    chunks = decoder.feed(data[:at]) + decoder.fail(failure("TRANSPORT", "reset"), aborted=aborted)
    assert [type(chunk) for chunk in chunks].count(Finish) == 1
    assert chunks[-1] == decoder.result.finish


@given(
    st.one_of(
        tidy_chunks().map(lambda one: [encoded(one), b"[DONE]"]),
        st.lists(st.one_of(events.map(encoded), st.binary(max_size=30)), max_size=8),
    ),
    PROFILES,
)
@settings(max_examples=200, deadline=None)
def test_typed_and_untyped_frames_give_the_same(frames: list[bytes], name: str) -> None:
    outcomes = []
    for typed in (True, False):
        translator = OpenAiChatStream(profile(name), TOOLS, typed=typed)
        chunks = [chunk for data in frames if data for chunk in translator.frame(data, "")]
        outcomes.append((chunks + translator.end(b""), translator.notes))
    assert outcomes[0] == outcomes[1]


@st.composite
def parallel_calls(draw: st.DrawFn) -> tuple[list[tuple[str, str, list[str]]], list[int]]:
    """Calls as (id, name, pieces of the arguments), and an interleaving of their deltas."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        text = json.dumps({"p": draw(st.text(max_size=6)), "n": number})
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        bounds = [0, *cuts, len(text)]
        parts = [text[a:b] for a, b in pairwise(bounds)]
        found.append((f"id{number}", draw(st.sampled_from(TOOLS)), parts))
    order = [number for number, one in enumerate(found) for _ in one[2]]
    return found, draw(st.permutations(order))


@given(parallel_calls(), st.sampled_from(["by index", "by id", "both", "one slot"]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_interleaving_of_parallel_calls_assembles_the_same(
    given_calls: tuple[list[tuple[str, str, list[str]]], list[int]], keyed: str, blank: bool
) -> None:
    calls, order = given_calls
    # In one slot a call of the same name is a repeat before the first one's arguments are whole: the rules.
    assume(keyed != "one slot" or len({name for _, name, _ in calls}) == len(calls))
    sent = [0] * len(calls)
    stream: list[Any] = []
    for number in order:
        id, name, parts = calls[number]
        first = sent[number] == 0
        index = {"by index": number, "both": number, "by id": ..., "one slot": 0}[keyed]
        said = id if first or keyed != "by index" else (None if blank else "")
        stream.append(call(index, said, name if first else (None if blank else ""), parts[sent[number]]))
        sent[number] += 1
    result = decode(body([*stream, delta(finish="tool_calls"), DONE]), "openai-chat", tools=TOOLS)
    wanted = sorted((id, name, "".join(parts)) for id, name, parts in calls)
    assert ending_of(result) == "tool_calls"
    assert sorted(calls_of(result)) == wanted

"""Strict JSON, arguments of calls, well-formed text, and when an object in pieces is complete."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.wire.body_kind import sniff
from lockstitch.wire.json_scan import ObjectScan
from lockstitch.wire.strict_json import InvalidJson, arguments, depth, parse, well_formed
from lockstitch.wire.visible import is_visible

GOOD = {
    "an object": ('{"a": [1, 2.5, "é", null, true]}', {"a": [1, 2.5, "é", None, True]}),
    "bytes": (b'{"a":1}', {"a": 1}),
    "half a surrogate pair becomes U+FFFD": ('{"a\\ud800": "\\udc00b"}', {"a\ufffd": "\ufffdb"}),
    "a whole pair is a character": ('"\\ud83d\\ude00"', "😀"),
    "an integer of any size": ("1" * 40, int("1" * 40)),
    "the last of repeated keys": ('{"a":1,"a":2}', {"a": 2}),
    "nesting at the limit": ("[" * 100 + "]" * 100, json.loads("[" * 100 + "]" * 100)),
    "brackets in strings do not nest": ('"' + "[" * 500 + '"', "[" * 500),
}
BAD = {
    "nothing": "",
    "a cut object": '{"a":1',
    "two values": "{}{}",
    "NaN": '{"a":NaN}',
    "Infinity": "[Infinity]",
    "single quotes": "{'a':1}",
    "a trailing comma": "[1,]",
    "a raw line end in a string": '"a\nb"',
    "nesting beyond the limit": "[" * 101 + "]" * 101,
    "nesting that would end the stack": "[" * 100_000,
    "an integer that would take for ever": "1" * 10_000,
    "bytes that are not UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_json(name: str) -> None:
    text, value = GOOD[name]
    assert parse(text) == value


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_json(name: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        parse(BAD[name])
    assert caught.value.kind == "not_json"
    assert caught.value.reason


@pytest.mark.parametrize("text", ["", "  \n", "null", " null "], ids=repr)
def test_what_counts_as_no_arguments(text: str) -> None:
    assert arguments(text) == {}


@pytest.mark.parametrize("text", ["[]", "1", '"{}"', "true"], ids=repr)
def test_arguments_are_an_object(text: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        arguments(text)
    assert caught.value.kind == "not_an_object"


def test_well_formed_text_is_the_same_object() -> None:
    text = "é😀"
    assert well_formed(text) is text
    assert well_formed("a\ud83db\ude00") == "a\ufffdb\ufffd"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def height(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(height, inner), default=0)


@given(values)
def test_depth_is_that_of_the_value(value: object) -> None:
    assert depth(json.dumps(value)) == height(value)


@given(
    st.dictionaries(st.text(), values, max_size=3),
    st.lists(st.integers(0, 60), max_size=5),
    st.sampled_from(["", " \n"]),
)
def test_an_object_in_pieces_is_complete_exactly_at_its_end(
    value: dict[str, object], cuts: list[int], space: str
) -> None:
    text = space + json.dumps(value)
    bounds = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    scan = ObjectScan()
    for start, stop in pairwise(bounds):
        assert not scan.complete
        scan.feed(text[start:stop])
    assert scan.complete
    scan.feed("\n ")
    assert scan.complete
    scan.feed("x")
    assert not scan.complete


@pytest.mark.parametrize(
    "text", ["", " ", "[]", "[{}]", "1{}", '"{}"', "{", '{"a":"}', '{"a":"\\"}', "{}{", "{}}", "null"]
)
def test_what_is_no_complete_object(text: str) -> None:
    scan = ObjectScan()
    scan.feed(text)
    assert not scan.complete


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("", False),
        (" \n\t\u3000", False),
        ("\u200b\ufeff\u2060", False),
        ("\x00\x1b", False),
        ("a", True),
        ("　。", True),
    ],
)
def test_visible_text(text: str, visible: bool) -> None:
    assert is_visible(text) is visible


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", None),
        (b" \n", None),
        (b"\xef\xbb", None),
        (b"\x1f", None),
        (b"dat", None),
        (b"data:", "sse"),
        (b":", "sse"),
        (b"\xef\xbb\xbf\nevent: x", "sse"),
        (b" {", "json"),
        (b"[", "json"),
        (b"<", "page"),
        (b"\x1f\x8b", "gzip"),
        (b"hello", "text"),
        (b"\x1fa", "text"),
    ],
)
def test_bodies_are_told_by_their_first_bytes(head: bytes, kind: str | None) -> None:
    assert sniff(head) == kind

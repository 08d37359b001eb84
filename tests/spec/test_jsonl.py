"""Record lines: what is encoded is decoded, and nothing else is."""

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.schema.events import (
    KINDS,
    NOT_NEEDED,
    Body,
    Event,
    NoteEvent,
    SessionStart,
    Title,
    TurnStart,
    Unknown,
)
from lockstitch.testing.session_samples import every_kind
from lockstitch.wire import jsonl
from lockstitch.wire.jsonl import SEARCH_FACTOR, BadRecordError, decode, decode_intact, encode, records_within


def sealed(text: str) -> bytes:
    """A line with the right checksum, whatever it says."""
    line = text.encode()
    return line + b',"crc":"%08x"}' % zlib.crc32(line)


def test_the_envelope_is_in_its_documented_order() -> None:
    assert (
        encode(3, 9, TurnStart(1))
        == sealed('{"seq":3,"time_ms":9,"kind":"turn_start","data":{"turn":1}') + b"\n"
    )
    assert encode(3, 9, Title("ü")) == (
        sealed('{"seq":3,"time_ms":9,"kind":"title","needed":false,"data":{"title":"ü"}') + b"\n"
    )


@pytest.mark.parametrize("body", [SessionStart(1, "s"), *every_kind()], ids=lambda body: type(body).__name__)
def test_every_kind_comes_back(body: Body) -> None:
    kind = next(kind for kind, form in KINDS.items() if form is type(body))
    assert decode(encode(7, 8, body)[:-1]) == Event(7, 8, body, kind not in NOT_NEEDED)


QUIET = encode(0, 0, Title("b"))
SHOUTED = QUIET[:-11] + QUIET[-11:-3].upper() + b'"}'
assert QUIET[:-1] != SHOUTED
ENDLESS = "[" * 9999 + "]" * 9999

BAD = {
    "nothing": b"",
    "no JSON": b"hello",
    "no checksum": b'{"seq":0,"time_ms":0,"kind":"clear","data":{}}',
    "a wrong checksum": b'{"seq":0,"time_ms":0,"kind":"clear","data":{},"crc":"00000000"}',
    "a checksum in capitals": SHOUTED,
    "a checksum that is not last": encode(0, 0, TurnStart(1))[:-2] + b" }",
    "JSON that is cut": sealed('{"seq":0,"time_ms":0,"kind":"clear","data":{'),
    "a negative number": sealed('{"seq":-1,"time_ms":0,"kind":"clear","data":{}'),
    "a number that is none": sealed('{"seq":"0","time_ms":0,"kind":"clear","data":{}'),
    "a number beyond every reader": sealed('{"seq":9007199254740992,"time_ms":0,"kind":"clear","data":{}'),
    "no number": sealed('{"time_ms":0,"kind":"clear","data":{}'),
    "no kind": sealed('{"seq":0,"time_ms":0,"data":{}'),
    "no data for a kind that has some": sealed('{"seq":0,"time_ms":0,"kind":"turn_start"'),
    "data of another kind": sealed('{"seq":0,"time_ms":0,"kind":"turn_start","data":{"title":"x"}'),
    "a value outside of its list": sealed(
        '{"seq":0,"time_ms":0,"kind":"turn_end","data":{"turn":1,"reason":"x"}'
    ),
    "bytes that are no UTF-8": encode(0, 0, Title("é"))[:-1].replace(b"\xc3\xa9", b"\xc3\xc3"),
    "nesting without end": sealed(
        '{"seq":0,"time_ms":0,"kind":"note","data":{"name":"x","data":' + ENDLESS + "}"
    ),
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_not_a_record(line: bytes) -> None:
    with pytest.raises(BadRecordError):
        decode(line)


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_bad_line_among_others_keeps_them_from_being_taken_at_once(line: bytes) -> None:
    good = encode(0, 0, TurnStart(1))
    assert decode_intact(good + good) == ([decode(good[:-1])] * 2, (int(good[-11:-3], 16),) * 2)
    assert decode_intact(good + line + b"\n" + good) is None


@given(st.lists(st.sampled_from(every_kind()), max_size=8), st.data())
def test_lines_taken_at_once_are_what_they_are_one_by_one(bodies: list[Body], data: st.DataObject) -> None:
    lines = bytearray(b"".join(encode(seq, 7, body) for seq, body in enumerate(bodies)))
    if lines and data.draw(st.booleans()):
        lines[data.draw(st.integers(0, len(lines) - 1))] ^= data.draw(st.integers(1, 255))
    taken = decode_intact(bytes(lines))
    try:
        singly = [decode(line) for line in bytes(lines).split(b"\n")[:-1]]
    except BadRecordError:
        singly = None
    assert (None if taken is None else taken[0]) in (singly, None)
    assert taken is not None or singly is None or bytes(lines[-1:]) != b"\n"


KEPT = {
    "an unknown kind is needed unless it says otherwise": (
        '{"seq":1,"time_ms":2,"kind":"later","data":{"a":[1]}',
        Event(1, 2, Unknown("later", b'{"a":[1]}'), True),
    ),
    "an unknown kind that nobody needs": (
        '{"seq":1,"time_ms":2,"kind":"later","needed":false,"data":null',
        Event(1, 2, Unknown("later", b"null"), False),
    ),
    "an unknown kind without data": (
        '{"seq":1,"time_ms":2,"kind":"later"',
        Event(1, 2, Unknown("later", b"null"), True),
    ),
    "a known kind with a new member": (
        '{"seq":1,"time_ms":2,"kind":"turn_start","data":{"turn":3,"mood":"good"}',
        Event(1, 2, TurnStart(3), True),
    ),
    "a new member of the envelope": (
        '{"seq":1,"time_ms":2,"kind":"turn_start","host":"x","data":{"turn":3}',
        Event(1, 2, TurnStart(3), True),
    ),
    "a known kind that says it is not needed": (
        '{"seq":1,"time_ms":2,"kind":"turn_start","needed":false,"data":{"turn":3}',
        Event(1, 2, TurnStart(3), False),
    ),
}


@pytest.mark.parametrize(("text", "event"), KEPT.values(), ids=KEPT)
def test_what_a_newer_writer_wrote(text: str, event: Event) -> None:
    assert decode(sealed(text)) == event


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
)


@given(VALUES)
def test_no_value_holds_the_start_or_the_end_of_a_record_but_as_structure(value: Any) -> None:
    line = encode(0, 0, NoteEvent('{"seq":1,"crc":"00000000"}', {"text": value}))[:-1]
    assert records_within(line) == [(0, len(line))]


def test_a_line_made_to_be_searched_for_ever_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"seq":' * 2_000 + b',"crc":"00000000"}' * 2_000
    read = 0

    def counted(data: bytes) -> int:
        nonlocal read
        read += len(data)
        return zlib.crc32(data)

    monkeypatch.setattr(jsonl, "_crc32", counted)
    assert records_within(line) == []
    assert read <= SEARCH_FACTOR * len(line)

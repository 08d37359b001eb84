"""Framing of event streams: every row is decoded whole, byte by byte, and cut in two at every byte."""

import pytest

from lockstitch.wire.sse import STRAYS_MAX, Frame, FrameTooLarge, SseDecoder

CASES: dict[str, tuple[bytes, list[tuple[bytes, str]]]] = {
    "LF ends lines": (b"data: a\n\ndata: b\n\n", [(b"a", ""), (b"b", "")]),
    "CRLF ends lines": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", ""), (b"b", "")]),
    "CR ends lines": (b"data: a\r\rdata: b\r\r", [(b"a", ""), (b"b", "")]),
    "line ends may be mixed": (
        b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r",
        [(b"a", ""), (b"b", ""), (b"c", "")],
    ),
    "U+2028 ends no line": ("data: a\u2028b\u0085c\n\n".encode(), [("a\u2028b\u0085c".encode(), "")]),
    "vertical tab and form feed end no line": (b"data: a\x0bb\x0cc\n\n", [(b"a\x0bb\x0cc", "")]),
    "several data lines are joined": (b"data: a\ndata:\ndata: b\n\n", [(b"a\n\nb", "")]),
    "one space behind the colon is not data": (b"data:a\n\ndata:  b\n\n", [(b"a", ""), (b" b", "")]),
    "the event field is kept": (b"event: e\ndata: a\n\ndata: b\n\n", [(b"a", "e"), (b"b", "")]),
    "the event field may follow the data": (b"data: a\nevent:e\n\n", [(b"a", "e")]),
    "an event without data is none": (b"event: e\nid: 1\nretry: 5\n\ndata: a\n\n", [(b"a", "")]),
    "an empty data line is none": (b"data:\n\ndata\n\ndata: a\n\n", [(b"a", "")]),
    "comments are none": (b": ping\n\n:\n\ndata: a\n: x\ndata: b\n\n", [(b"a\nb", "")]),
    "the last event needs no blank line": (b"data: a\n", [(b"a", "")]),
    "the last line needs no end": (b"data: a", [(b"a", "")]),
    "a BOM may come first": (b"\xef\xbb\xbfdata: a\n\n", [(b"a", "")]),
    "a BOM later is data": (b"data: \xef\xbb\xbfa\n\n\xef\xbb\xbfdata: b\n\n", [(b"\xef\xbb\xbfa", "")]),
    "a field of another name is none": (b"dat: a\ndatax: b\nData: c\n\n", []),
    "an empty body": (b"", []),
    "half a BOM": (b"\xef\xbb", []),
    "blank lines alone": (b"\n\r\n\r\r", []),
    "a character of several bytes": ("data: 你😀\n\n".encode(), [("你😀".encode(), "")]),
}


def frames(reads: list[bytes]) -> list[Frame]:
    decoder = SseDecoder()
    return [frame for read in reads for frame in decoder.feed(read)] + decoder.end()


@pytest.mark.parametrize("name", CASES)
def test_frames_are_the_same_for_every_split(name: str) -> None:
    body, expected = CASES[name]
    wanted = [Frame(*one) for one in expected]
    assert frames([body]) == wanted
    assert frames([body[at : at + 1] for at in range(len(body))]) == wanted
    for cut in range(len(body) + 1):
        assert frames([body[:cut], b"", body[cut:]]) == wanted


def test_comments_are_counted_as_keepalives() -> None:
    decoder = SseDecoder()
    decoder.feed(b": a\n\n: b\n\ndata: c\n\n:")
    decoder.end()
    assert decoder.comments == 3


def test_text_outside_of_frames_is_kept_up_to_a_limit() -> None:
    decoder = SseDecoder()
    decoder.feed(b'{"error": 1}\nread ECONNRESET\n' + b"x" * STRAYS_MAX + b"\n")
    assert decoder.strays.startswith(b'{"error": 1}\nread ECONNRESET\nxxx')
    assert len(decoder.strays) <= STRAYS_MAX


LIMITS = {
    "a line": (b"data: a\n\ndata: 0123456789\n\n", {"line_max": 15}),
    "a line that never ends": (b"data: a\n\ndata: 0123456789", {"line_max": 15}),
    "the response": (b"data: a\n\ndata: 0123456789\n\n", {"response_max": 15}),
}


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_raises_with_the_frames_before_it(name: str, size: int) -> None:
    body, limits = LIMITS[name]
    decoder = SseDecoder(**limits)
    found = []
    with pytest.raises(FrameTooLarge) as caught:
        for at in range(0, len(body), size):
            found += decoder.feed(body[at : at + size])
    assert found + caught.value.frames == [Frame(b"a", "")]


def test_what_is_just_within_the_limits_passes() -> None:
    body = b"data: 0123456789\n\n"
    decoder = SseDecoder(line_max=16, response_max=len(body))
    assert decoder.feed(body) == [Frame(b"0123456789", "")]

"""From bytes to events and damage, in any split."""

import tracemalloc
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.schema.events import NoteEvent, SessionStart, Title
from lockstitch.session import scan
from lockstitch.session.scan import Damage, Scanner
from lockstitch.wire.jsonl import encode

LINES = [encode(0, 7, SessionStart(1, "s")), *(encode(seq, 7, Title(f"title {seq}")) for seq in range(1, 6))]
WHOLE = b"".join(LINES)


# A record that holds another one as a value, as a tool that reads session logs could put into its meta.
def carrier(seq: int, quoted: bytes) -> bytes:
    line = encode(seq, 7, NoteEvent("x")).replace(b'"x"', b'"x","data":{"n":' + quoted.rstrip(b"\n") + b"}")
    line = line[: line.rindex(b',"crc"')]
    return line + b',"crc":"%08x"}\n' % zlib.crc32(line)


# name: bytes, numbers read, damage as (offset, length, torn)
CASES: dict[str, tuple[bytes, list[int], list[tuple[int, int, bool]]]] = {
    "a whole log": (WHOLE, [0, 1, 2, 3, 4, 5], []),
    "nothing": (b"", [], []),
    "a missing last newline": (WHOLE[:-1], [0, 1, 2, 3, 4, 5], []),
    "a torn record": (WHOLE[:-7], [0, 1, 2, 3, 4], [(len(WHOLE) - len(LINES[5]), len(LINES[5]) - 7, True)]),
    "a torn record without a record before": (LINES[0][:9], [], [(0, 9, True)]),
    "a torn character": (LINES[0] + b'{"seq":1,"\xc3', [0], [(len(LINES[0]), 11, True)]),
    "a line of another program": (LINES[0] + b"hello\n" + LINES[1], [0, 1], [(len(LINES[0]), 5, False)]),
    "a number that is missing": (LINES[0] + LINES[2], [0, 2], [(len(LINES[0]), 0, False)]),
    "a beginning that is missing": (LINES[2] + LINES[3], [2, 3], [(0, 0, False)]),
    "a missing number behind damage is the damage": (
        LINES[0] + b"X" + LINES[1][1:] + LINES[2],
        [0, 2],
        [(len(LINES[0]), len(LINES[1]) - 1, False)],
    ),
    "records in one line": (WHOLE.replace(b"\n", b"") + b"\n", [0, 1, 2, 3, 4, 5], []),
    "records in one line without an end": (WHOLE.replace(b"\n", b""), [0, 1, 2, 3, 4, 5], []),
    "a record behind garbage": (b"\0\0\0" + LINES[0], [0], [(0, 3, False)]),
    "garbage behind a record": (LINES[0][:-1] + b"??\n" + LINES[1], [0, 1], [(len(LINES[0]) - 1, 2, False)]),
    "garbage between records": (
        LINES[0][:-1] + b"?" + LINES[1],
        [0, 1],
        [(len(LINES[0]) - 1, 1, False)],
    ),
    "garbage behind the last record, without a newline": (
        LINES[0][:-1] + b"??",
        [0],
        [(len(LINES[0]) - 1, 2, True)],
    ),
    "a torn record with a whole one glued to it": (
        LINES[0] + LINES[1][:15] + LINES[1],
        [0, 1],
        [(len(LINES[0]), 15, False)],
    ),
    "a record again": (
        LINES[0] + LINES[1] + LINES[1] + LINES[2],
        [0, 1, 2],
        [(len(LINES[0] + LINES[1]), len(LINES[1]) - 1, False)],
    ),
    "a record's number with other content is kept": (
        LINES[0] + LINES[1] + encode(1, 8, Title("other")) + LINES[2],
        [0, 1, 1, 2],
        [],
    ),
    "a number out of reach": (
        LINES[0] + encode(2**50, 7, Title("x")) + LINES[1],
        [0, 1],
        [(len(LINES[0]), len(encode(2**50, 7, Title("x"))) - 1, False)],
    ),
    "other line ends, blanks, a mark": (
        b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b" \r\n\n"),
        [0, 1, 2, 3, 4, 5],
        [],
    ),
    "a hole of zeros over many records": (
        LINES[0] + LINES[1][:5] + b"\0" * 500 + LINES[4] + LINES[5],
        [0, 4, 5],
        [(len(LINES[0]), 505, False)],
    ),
    "a newline that became a comma": (
        LINES[0][:-1] + b"," + LINES[1],
        [0, 1],
        [(len(LINES[0]) - 1, 1, False)],
    ),
}


def scanned(data: bytes, *cuts: int) -> tuple[list[int], list[tuple[int, int, bool]], Scanner]:
    scanner = Scanner()
    items = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        items += scanner.feed(data[start:end])
    items += scanner.end()
    damage = [(item.offset, item.length, item.torn) for item in items if isinstance(item, Damage)]
    return [item.seq for item in items if not isinstance(item, Damage)], damage, scanner


@pytest.mark.parametrize(("data", "numbers", "damage"), CASES.values(), ids=CASES)
def test_scan(data: bytes, numbers: list[int], damage: list[tuple[int, int, bool]]) -> None:
    assert scanned(data)[:2] == (numbers, damage)
    assert scanned(data, *range(1, len(data)))[:2] == (numbers, damage), "in single bytes"


@pytest.mark.parametrize("data", [case[0] for case in CASES.values()], ids=CASES)
def test_the_next_record_can_be_appended_at_the_end_that_is_reported(data: bytes) -> None:
    numbers, damage, scanner = scanned(data)
    assert scanner.end_offset is not None
    whole = data[: scanner.end_offset] + (b"\n" if scanner.unterminated else b"")
    following = encode(max(numbers, default=-1) + 1, 9, Title("next"))
    again, still, _ = scanned(whole + following)
    assert again == [*numbers, max(numbers, default=-1) + 1]
    assert still == [place for place in damage if not place[2]]


@pytest.mark.parametrize("number", [1, 4, 1000], ids=["an earlier one", "the last one", "another session's"])
def test_a_record_quoted_in_a_damaged_one_does_not_become_an_event(number: int) -> None:
    quoted = encode(number, 7, Title("quoted"))
    whole = b"".join(LINES[:5]) + carrier(5, quoted) + encode(6, 7, Title("t"))
    assert scanned(whole)[:2] == ([0, 1, 2, 3, 4, 5, 6], [])
    damaged = whole.replace(b'"x"', b'"X"')
    assert scanned(damaged)[0] == [0, 1, 2, 3, 4, 6]
    assert scanned(damaged[: damaged.index(b'{"seq":6')])[0] == [0, 1, 2, 3, 4]


def test_a_line_beyond_the_limit_is_damage_and_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "RECORD_MAX_BYTES", 100_000)
    scanner = Scanner()
    items = scanner.feed(LINES[0])
    tracemalloc.start()
    for _ in range(200):
        items += scanner.feed(b"x" * 50_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    items += scanner.feed(b"\n" + LINES[1])
    assert peak < 1_000_000
    damage = [item for item in items if isinstance(item, Damage)]
    assert [(place.offset, place.length) for place in damage] == [(len(LINES[0]), 10_000_000)]
    assert [item.seq for item in items if not isinstance(item, Damage)] == [0, 1]


@given(st.data())
def test_any_damage_in_any_split_gives_the_same_items_and_loses_no_intact_line(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    start = data.draw(st.integers(0, len(WHOLE) - 1))
    end = data.draw(st.integers(start, min(start + 40, len(WHOLE))))
    damaged[start:end] = data.draw(st.binary(max_size=60))
    cuts = data.draw(st.lists(st.integers(0, len(damaged)), max_size=5))
    numbers, damage, _ = scanned(bytes(damaged))
    assert scanned(bytes(damaged), *cuts)[:2] == (numbers, damage)
    offset = 0
    for seq, line in enumerate(LINES):
        untouched = offset + len(line) - 1 <= start or offset >= end
        assert seq in numbers or not untouched
        offset += len(line)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_scanner_raise(data: bytes) -> None:
    scanned(data)
    scanned(WHOLE + data)


def test_the_format_page_names_every_kind_and_every_field() -> None:
    from lockstitch.schema.events import KINDS

    page = (Path(__file__).parents[2] / "docs" / "formats" / "session-log.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for kind, body in KINDS.items():
        missing = [name for name in body.__struct_fields__ if f"`{name}" not in rows.get(kind, "")]
        assert not missing, (kind, missing)

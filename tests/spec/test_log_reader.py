"""The reader of logs writes the gate's calls out, to be fast: it must judge and fold as the gate does."""

import zlib
from typing import Any

from event_logs import logs
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_logs import sound_logs
from test_any_log import BODIES

from lockstitch.schema.events import Body, Event, SessionStart
from lockstitch.session.gate import advance, refusal
from lockstitch.session.log_reader import LogReader
from lockstitch.session.log_state import LogState
from lockstitch.session.scan import Damage, Scanner
from lockstitch.wire.jsonl import encode


def judged(data: bytes) -> tuple[LogState, list[Event]]:
    """What the gate's own functions make of a log, event by event."""
    state, events = LogState(), []
    scanner = Scanner()
    for item in [*scanner.feed(data), *scanner.end()]:
        if isinstance(item, Damage):
            continue
        if item.seq < state.next_seq:
            problem: str | None = f"record {state.next_seq - 1} came before it"
        else:
            problem = refusal(state, item.body)
            if problem is not None and state.start is None:
                state.start = SessionStart(1, "s")
                problem = refusal(state, item.body)
        event = item if problem is None else Event(item.seq, item.time_ms, item.body, item.needed, problem)
        advance(state, event)
        events.append(event)
    if state.start is None:
        state.start = SessionStart(1, "s")
    return state, events


def read(data: bytes, piece_bytes: int) -> tuple[LogState, list[Event]]:
    events: list[Event] = []
    reader = LogReader("s", events.append)
    for at in range(0, len(data), piece_bytes):
        reader.feed(data[at : at + piece_bytes])
    reader.end()
    assert [defect.seq for defect in reader.defects] == [event.seq for event in events if event.defect][:100]
    return reader.state, events


STARTS = st.sampled_from([[], [SessionStart(1, "s")], [SessionStart(2, "s")], [SessionStart(1, "")]])
UNKNOWN = b'{"seq":%d,"time_ms":5,"kind":"later","needed":%s,"data":{}'


def record(seq: int, body: Body | bytes) -> bytes:
    if isinstance(body, bytes):
        line = body.replace(b"%d", b"%d" % seq)
        return b'%s,"crc":"%08x"}\n' % (line, zlib.crc32(line))
    return encode(seq, 1_000 + 3 * seq, body)


@given(
    start=STARTS,
    bodies=st.one_of(logs(), st.lists(BODIES, max_size=40), sound_logs()),
    moved=st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 3)), max_size=3),
    later=st.sampled_from([b"", b"true", b"false"]),
    piece_bytes=st.sampled_from([50, 1000, 1 << 16]),
)
@settings(deadline=None, max_examples=400)
def test_what_is_read_is_judged_and_folded_as_the_gate_does(
    start: list[Body], bodies: list[Any], moved: list[tuple[int, int]], later: bytes, piece_bytes: int
) -> None:
    """Numbers that come again, gaps, kinds of a newer version and late starts are among them."""
    everything: list[Any] = [*start, *bodies]
    if later:
        everything.insert(len(everything) // 2, UNKNOWN.replace(b"%s", later))
    numbers = list(range(len(everything)))
    for at, by in moved:
        if at < len(numbers):
            numbers[at] = max(numbers[at] + by, 0)
    data = b"".join(map(record, numbers, everything))
    assert read(data, piece_bytes) == judged(data)

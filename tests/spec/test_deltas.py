"""What was shown, on its way into the log: few records, and none too large."""

import pytest

from lockstitch.agent.deltas import EVERY_BYTES, RECORD_MAX_CHARS, Coalescer
from lockstitch.schema.events import AssistantDelta

SIZES = {
    "less than is worth a record": (10, []),
    "enough for one": (EVERY_BYTES, [EVERY_BYTES]),
    "as much as a record may hold": (RECORD_MAX_CHARS, [RECORD_MAX_CHARS]),
    "one character more": (RECORD_MAX_CHARS + 1, [RECORD_MAX_CHARS]),
    "several records in one read": (
        3 * RECORD_MAX_CHARS + EVERY_BYTES,
        [RECORD_MAX_CHARS] * 3 + [EVERY_BYTES],
    ),
}


@pytest.mark.parametrize(("chars", "due"), SIZES.values(), ids=SIZES)
def test_one_text_becomes_records_of_bounded_size(chars: int, due: list[int]) -> None:
    text = "ab" * (chars // 2) + "c" * (chars % 2)
    deltas = Coalescer()
    found = deltas.add(0, "text", text)
    assert [len(delta.text) for delta in found] == due
    assert "".join(delta.text for delta in (*found, *deltas.flush())) == text


def test_neighbours_of_one_block_are_one_record_and_another_block_begins_anew() -> None:
    deltas = Coalescer()
    assert deltas.add(0, "reasoning", "a") + deltas.add(0, "reasoning", "b") == ()
    assert deltas.add(1, "text", "c") == (AssistantDelta(0, "reasoning", "ab"),)
    assert deltas.flush() == (AssistantDelta(1, "text", "c"),)
    assert deltas.flush() == ()

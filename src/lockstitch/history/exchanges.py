"""Exchanges: where a history may be cut without parting a call from its result.

By identity, never by counting: a result says which call of which message it answers. An orphan or a call that
nobody answered therefore forbids no cut, and a history full of them can still be compacted.
"""

from collections.abc import Sequence

from ..schema.blocks import ToolCall, ToolResult
from ..schema.messages import Message


def cuts(messages: Sequence[Message]) -> list[int]:
    """Positions before which the history may be cut, ascending, 0 and the end included. Linear."""
    by_seq = {message.seq: place for place, message in enumerate(messages) if message.seq is not None}
    by_id: dict[str, int] = {}
    change = [0] * (len(messages) + 2)
    for place, message in enumerate(messages):
        for block in message.content:
            if isinstance(block, ToolCall):
                by_id[block.id] = place
            elif isinstance(block, ToolResult):
                start = _call_place(message, block, by_seq, by_id)
                if start is not None and start < place:
                    change[start + 1] += 1  # from behind the call up to the result itself
                    change[place + 1] -= 1
    found: list[int] = []
    spans = 0
    for place in range(len(messages) + 1):
        spans += change[place]
        if spans == 0:
            found.append(place)
    return found


def _call_place(
    message: Message, result: ToolResult, by_seq: dict[int, int], by_id: dict[str, int]
) -> int | None:
    if message.answers is not None:
        return by_seq.get(message.answers[0])
    return by_id.get(result.call_id)  # outside of a log: the latest call of this id

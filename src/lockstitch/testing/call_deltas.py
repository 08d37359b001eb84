"""Tool calls cut into deltas, with the quirks of identity, index and arguments: one for all protocols."""

from dataclasses import dataclass, field
from typing import Any

from .reply import Reply, ReplyCall


@dataclass(slots=True)
class CallDelta:
    """One delta of one call. A key missing from ``fields`` is missing on the wire; None is null there."""

    position: int
    """Of the call in its answer, from 0."""
    first: bool
    last: bool
    fields: dict[str, Any] = field(default_factory=dict)
    """Any of ``index``, ``id``, ``name``, ``arguments``."""


def deltas(reply: Reply, before: int = 0) -> list[CallDelta]:
    """The calls of ``reply`` in the order of the wire; their indices start at ``before``."""
    each = [_of_call(reply, position, call, before) for position, call in enumerate(reply.calls)]
    if "interleaved" not in reply.quirks:
        return [delta for one in each for delta in one]
    longest = max(map(len, each), default=0)
    return [one[turn] for turn in range(longest) for one in each if turn < len(one)]


def index_fields(quirks: frozenset[str], index: int) -> dict[str, Any]:
    """``index`` as it stands on the wire: a dict with it, or an empty one."""
    if "no_index" in quirks:
        return {}
    return {"index": index + 1 if "one_based_index" in quirks else index}


def _of_call(reply: Reply, position: int, call: ReplyCall, before: int) -> list[CallDelta]:
    pieces: list[Any] = _argument_pieces(reply, position, call)
    made: list[CallDelta] = []
    for i, piece in enumerate(pieces):
        delta = CallDelta(position, first=i == 0, last=i == len(pieces) - 1)
        delta.fields["arguments"] = piece
        delta.fields |= _identity(reply, call, delta)
        made.append(delta)
    if "split_name" in reply.quirks:
        made[0].fields["name"], rest = call.name[:1], call.name[1:]
        made[1:1] = [CallDelta(position, first=False, last=False, fields={"name": rest, "arguments": ""})]
    index = index_fields(reply.quirks, before + (0 if "same_index" in reply.quirks else position))
    for delta in made:
        delta.fields |= index
    return made


def _argument_pieces(reply: Reply, position: int, call: ReplyCall) -> list[Any]:
    """The opening piece and those behind it; the opening one is empty, as most providers have it."""
    quirks = reply.quirks
    text = call.arguments
    if "cut_arguments" in quirks and position == len(reply.calls) - 1:
        text = text[: max(1, len(text) // 2)]
    if "arguments_as_object" in quirks:
        return [call.parsed()]
    if "whole_call_one_chunk" in quirks:
        return [text]
    return [None if "null_arguments" in quirks else "", *reply.pieces(text)]


def _identity(reply: Reply, call: ReplyCall, delta: CallDelta) -> dict[str, Any]:
    quirks = reply.quirks
    fields: dict[str, Any] = {}
    if delta.first or "repeated_identity" in quirks:
        fields = {"id": call.id, "name": call.name}
    elif "empty_continuation_ids" in quirks:
        fields = {"id": "", "name": ""}
    elif "null_continuation_ids" in quirks:
        fields = {"id": None, "name": None}
    elif "string_null_name" in quirks:
        fields = {"name": "null"}
    for key, late in (("id", "late_id"), ("name", "late_name")):
        if late in quirks:
            fields.pop(key, None)
            if delta.last:
                fields[key] = getattr(call, key)
        if f"no_{key}" in quirks or f"no_{key}s" in quirks:
            fields.pop(key, None)
        if f"null_{key}" in quirks or f"null_{key}s" in quirks:
            fields[key] = None
    return fields

"""From the body of an event to its record line and back: what a log takes is what a reader will decode.

Constructors do not validate, and JSON cannot hold every Python value. So each body is encoded, decoded again
and judged in the form in which it will be read; callers go on with that form.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lockstitch.schema.errors import GateError
from lockstitch.schema.events import Body, Event, SessionStart
from lockstitch.wire.jsonl import KIND_OF, RECORD_MAX_BYTES, BadRecordError, decode, encode
from lockstitch.wire.strict_json import well_formed_value

from . import migration
from .gate import refusal
from .log_state import LogState, advance

DEPTH_MAX: Final = 128
"""Of JSON nesting in a record: 100 of a value that a decoder may yield, and what lies around it. Whether
deeper values can be read would depend on how deep the reader's stack is already."""

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_SURROGATES = re.compile("[\ud800-\udfff]")


class Admitted(NamedTuple):
    data: bytes
    """Record lines, in order."""
    events: tuple[Event, ...]
    """As a reader of those lines will see them."""


def admit(state: LogState, bodies: Sequence[Body], time_ms: int) -> Admitted:
    """Take ``bodies`` behind what ``state`` has seen, and advance it: all of them, or none.

    Lone surrogates in texts become U+FFFD, and values of no JSON type (infinity is one) inside of free
    mappings become text.
    Raises GateError, with ``state`` as it was, if a body is none, does not survive encoding and decoding, or
    is refused by the gate.
    """
    before = state.snapshot() if len(bodies) > 1 else None
    lines: list[bytes] = []
    events: list[Event] = []
    try:
        for body in bodies:
            line = _encode(state.next_seq, time_ms, body)
            event = _decode(line, body)
            if (problem := refusal(state, event.body)) is not None:
                raise _refused(body, problem)
            advance(state, event)
            lines.append(line)
            events.append(event)
    except GateError:
        if before is not None:
            state.restore(before)
        raise
    return Admitted(b"".join(lines), tuple(events))


def _encode(seq: int, time_ms: int, body: Body) -> bytes:
    if type(body) not in KIND_OF:
        raise _refused(body, "not an event body that this version writes")
    if type(body) is SessionStart and body.format != migration.CURRENT:
        raise _refused(body, f"this version writes format {migration.CURRENT}")
    try:
        try:
            line = encode(seq, time_ms, body)
        except (UnicodeEncodeError, TypeError):
            line = encode(seq, time_ms, _storable_body(body))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _refused(body, f"JSON cannot hold it: {error}") from error
    if len(line) > RECORD_MAX_BYTES:
        raise _refused(body, f"{len(line)} bytes are more than a record holds; put large content into a blob")
    if _depth(line) > DEPTH_MAX:
        raise _refused(body, f"its values are nested deeper than {DEPTH_MAX}")
    return line


def _decode(line: bytes, body: Body) -> Event:
    try:
        return decode(line[:-1])
    except BadRecordError as error:
        raise _refused(body, str(error)) from error


def _refused(body: object, problem: str) -> GateError:
    kinds: dict[Any, str] = dict(KIND_OF)
    kind = kinds.get(type(body), type(body).__name__)
    return GateError(
        f"{kind} refused: {problem}. Nothing was written; append what must come before it, or correct it"
    )


def _depth(line: bytes) -> int:
    """Depth of nesting of a valid JSON text, or anything up to the limit if it surely is not beyond."""
    if line.count(b"{") + line.count(b"[") <= DEPTH_MAX:
        return 0
    depth = deepest = 0
    for mark in _STRINGS.sub(b"", line):
        if mark in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in b"}]":
            depth -= 1
    return deepest


def _storable_body(body: Body) -> Body:
    """The same body without what JSON cannot hold: U+FFFD for a lone surrogate, text for foreign values.

    Only below a mapping or a list of no declared type is a foreign value (a path, say, in a tool's ``meta``)
    made a text; in a field of its own it is a mistake, and encoding refuses it.
    """
    stored: Body = _storable_struct(body)
    return stored


def _storable_struct(value: Any) -> Any:
    changed = {
        name: stored
        for name in value.__struct_fields__
        if (stored := _storable(field := getattr(value, name), declared=True)) is not field
    }
    return msgspec.structs.replace(value, **changed) if changed else value


def _storable(value: Any, *, declared: bool = False) -> Any:
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value) if _SURROGATES.search(value) else value
        case float() if not declared:
            return well_formed_value(value)
        case None | bool() | int() | float():
            return value
        case msgspec.Struct():
            return _storable_struct(value)
        case list() | tuple() | set() | frozenset():
            return [_storable(item) for item in value]
        case Mapping():
            return {_storable_key(key): _storable(item) for key, item in value.items()}
        case _:
            return value if declared else _storable(str(value))


def _storable_key(key: Any) -> Any:
    return _storable(key if isinstance(key, str | int | float) else str(key))

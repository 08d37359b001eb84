"""Record lines of a session log: one JSON object a line, closed by a checksum of its own bytes.

A line reads ``{"seq":N,"time_ms":N,"kind":K,"needed":false,"data":{...},"crc":"xxxxxxxx"}``. ``needed`` is
written only where it is false. ``crc`` is the CRC-32 (as of zlib, eight lower-case hex digits) of every
byte of the line before ``,"crc"``. Quotes inside of JSON text are always escaped, so neither the start of a
record nor its end can occur in a string; that makes it possible to search a damaged line for whole records.
"""

import re
import struct
import zlib
from binascii import unhexlify
from collections.abc import Callable
from typing import Annotated, Any, Final, Union

import msgspec

from lockstitch.schema.events import KINDS, NOT_NEEDED, Body, Event, Unknown

from .strict_json import VALUES_MAX, has_too_many_values, has_unkept_number

RECORD_MAX_BYTES: Final = 128 * 1024 * 1024
"""Of one line. Twice the largest response a decoder reads; larger content belongs into a blob."""

SEARCH_FACTOR: Final = 64
"""How often, at most, a damaged line is read over in search of records. Whole records take one reading."""

_INTEGER_MAX: Final = 2**53 - 1  # exact in every JSON reader
_TAIL_BYTES: Final = len(b',"crc":"00000000"}')
_crc32 = zlib.crc32
_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_TAIL_START: Final = b',"crc":"'
_HEAD = re.compile(rb'\{"seq":')

_Count = Annotated[int, msgspec.Meta(ge=0, le=_INTEGER_MAX)]


class BadRecordError(ValueError):
    """The bytes are no record that this version can decode; the text says why, in one line."""


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Of a kind that this version does not know."""

    seq: _Count
    time_ms: _Count
    kind: str
    needed: bool = True
    data: msgspec.Raw = msgspec.Raw(b"null")


# One type a kind, tagged by it, so that a line is decoded in a single pass: 1.3 times the cost of its data.
_ENVELOPES: Final = tuple(
    msgspec.defstruct(
        f"_{body.__name__}Record",
        [("seq", _Count), ("time_ms", _Count), ("needed", bool, True), ("data", body)],
        tag_field="kind",
        tag=kind,
        frozen=True,
        kw_only=True,
        gc=False,
    )
    for kind, body in KINDS.items()
)
_decoder: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(
    Union[_ENVELOPES]  # noqa: UP007  # a tuple made at run time has no | form
)
_unknown_decoder: Final = msgspec.json.Decoder(_Envelope)
_encoder: Final = msgspec.json.Encoder()

KIND_OF: Final[dict[type[Body], str]] = {body: kind for kind, body in KINDS.items()}
"""The envelope's ``kind`` of a body's type; ``Unknown`` is not in it, because it is never written."""

_MIDDLES: Final = {
    body: b',"kind":"%s"%s,"data":' % (kind.encode(), b',"needed":false' if kind in NOT_NEEDED else b"")
    for kind, body in KINDS.items()
}


def encode(seq: int, time_ms: int, body: Body) -> bytes:
    """The line of one record, newline included.

    Raises what msgspec raises for a value that JSON cannot hold (TypeError, UnicodeEncodeError for a lone
    surrogate, RecursionError), TypeError for infinity and NaN too, and KeyError for a type that is no body.
    Whether the line can be read back is for ``decode`` to say: constructors do not validate.
    """
    data = _encoder.encode(body)
    if b"null" in data and has_unkept_number(msgspec.to_builtins(body)):  # msgspec writes null for them
        raise TypeError("infinity and NaN are no numbers of JSON")
    line = b'{"seq":%d,"time_ms":%d%s%s' % (seq, time_ms, _MIDDLES[type(body)], data)
    return b'%s,"crc":"%08x"}\n' % (line, _crc32(line))


def decode(line: bytes, upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Event:
    """The event of one line, given without its newline.

    A kind that this version does not know becomes ``Unknown`` with its data as bytes. ``upgrade`` is given
    the record as decoded JSON, once its checksum is known to fit, and makes one of this version of it.
    Raises BadRecordError.
    """
    if line[-_TAIL_BYTES:] != b',"crc":"%08x"}' % _crc32(line[:-_TAIL_BYTES]):
        known = _TAIL.fullmatch(line[-_TAIL_BYTES:])
        raise BadRecordError("the checksum does not match" if known else "it does not end in a checksum")
    if has_too_many_values(line):
        raise BadRecordError(f"it holds more than {VALUES_MAX:,} values")
    if upgrade is not None:
        return _decode_upgraded(line, upgrade)
    try:
        record = _decoder.decode(line)
    except msgspec.ValidationError as error:
        return _decode_unknown(line, error)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRecordError(f"not a record: {error}") from error
    return Event(record.seq, record.time_ms, record.data, record.needed)


def decode_intact(lines: bytes) -> tuple[list[Event], tuple[int, ...]] | None:
    """The events and checksums of whole lines, each ended by a newline, if every one is an intact record.

    None for anything else, also for a kind that this version does not know: then ``decode`` must tell, line
    by line. Costs half of that, because decoding and comparing are calls for many lines at once.
    """
    if has_too_many_values(lines):
        return None
    split = lines.split(b"\n")
    split.pop()
    # 16 bytes of each line: `,"crc":"` and the digits. A line that is shorter or shifted spoils the whole.
    tails = b"".join([line[-_TAIL_BYTES:-2] for line in split])
    if len(tails) != 16 * len(split) or tails.count(_TAIL_START) != len(split):
        return None
    try:
        stored = struct.unpack(f">{len(split)}I", unhexlify(tails.replace(_TAIL_START, b"")))
        records = _decoder.decode_lines(lines)
    except (ValueError, struct.error, msgspec.MsgspecError, RecursionError):
        return None
    if len(records) != len(split) or tails != tails.lower():
        return None
    if list(stored) != [_crc32(line[:-_TAIL_BYTES]) for line in split]:
        return None
    return [Event(record.seq, record.time_ms, record.data, record.needed) for record in records], stored


def records_within(line: bytes) -> list[tuple[int, int]]:
    """Spans (start, end) of the whole records that a damaged line holds, by their checksums, in order.

    ``line[start:end]`` can be given to ``decode``, which may still refuse its content. The work is bounded by
    SEARCH_FACTOR times the line, so bytes made to be searched for ever are not; the search then ends early.
    """
    spans: list[tuple[int, int]] = []
    heads = [match.start() for match in _HEAD.finditer(line)]
    first = 0
    budget = SEARCH_FACTOR * len(line)
    for tail in _TAIL.finditer(line):
        crc = int(tail.group(1), 16)
        # The latest start that fits is not tried first: an object inside a record could be one, too.
        for index in range(first, len(heads)):
            if heads[index] >= tail.start():
                break
            budget -= tail.start() - heads[index]
            if budget < 0:
                return spans
            if _crc32(memoryview(line)[heads[index] : tail.start()]) == crc:
                spans.append((heads[index], tail.end()))
                while first < len(heads) and heads[first] < tail.end():
                    first += 1
                break
    return spans


def _decode_upgraded(line: bytes, upgrade: Callable[[dict[str, Any]], dict[str, Any]]) -> Event:
    try:
        envelope = msgspec.json.decode(line, type=dict[str, Any])
        envelope.pop("crc", None)
        text = msgspec.json.encode(upgrade(envelope))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadRecordError(f"not a record: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecordError(f"not a record of its format: {error!r}") from error
    try:
        record = _decoder.decode(text)
    except msgspec.ValidationError as error:
        return _decode_unknown(text, error)
    return Event(record.seq, record.time_ms, record.data, record.needed)


def _decode_unknown(line: bytes, error: msgspec.ValidationError) -> Event:
    try:
        record = _unknown_decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as other:
        raise BadRecordError(f"not a record: {other}") from other
    if record.kind in KINDS:
        raise BadRecordError(f"a {record.kind} record that does not fit its kind: {error}") from error
    return Event(record.seq, record.time_ms, Unknown(record.kind, bytes(record.data)), record.needed)

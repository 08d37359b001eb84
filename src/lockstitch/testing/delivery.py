"""From payloads to the bytes of a body, with every quirk below the level of a protocol."""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

HTML: Final = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
    b"<body><center><h1>502 Bad Gateway</h1></center></body></html>\n"
)
KEEPALIVE: Final = ": keepalive"
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Stray:
    """A line in a stream that belongs to no event."""

    text: str


@dataclass(slots=True)
class Body:
    """A body ready to be sent."""

    parts: list[bytes]
    """One for each event; a document has one."""
    content_type: str
    streamed: bool
    """Chunked transfer; a document states its length instead."""
    headers: dict[str, str] = field(default_factory=dict)


def event_stream(payloads: Iterable[Any], quirks: frozenset[str], *, named: bool) -> Body:
    """Server-sent events. ``named``: an ``event:`` line with the payload's type goes before its data."""
    lines = [_lines(payload, quirks, named=named) for payload in payloads]
    if "null_frames" in quirks:
        lines = [one for event in lines for one in (["data: null"], event)]
    if "keepalives" in quirks:
        lines = [one for event in lines for one in ([KEEPALIVE], event)]
    end = "\r\n" if "crlf" in quirks else "\r" if "lone_cr" in quirks else "\n"
    parts = [_encode(end.join([*event, "", ""])) for event in lines]
    if "no_last_blank_line" in quirks and parts:
        parts[-1] = parts[-1][: -len(end)]
    if "bom" in quirks:
        parts.insert(0, b"\xef\xbb\xbf")
    kind = JSON if "wrong_content_type" in quirks else EVENT_STREAM
    return _finished(Body(parts, kind, streamed=True), quirks)


def array_stream(payloads: list[Any], quirks: frozenset[str]) -> Body:
    """The stream as one JSON array that comes element by element."""
    texts = [payload.text if isinstance(payload, Stray) else compact(payload) for payload in payloads]
    parts = [_encode(("[" if i == 0 else ",\r\n") + text) for i, text in enumerate(texts)]
    kind = EVENT_STREAM if "wrong_content_type" in quirks else JSON
    return _finished(Body([*parts, b"]" if parts else b"[]"], kind, streamed=True), quirks)


def document(value: Any, quirks: frozenset[str] = frozenset()) -> Body:
    """One JSON document."""
    text = compact(value)
    if "bom" in quirks:
        text = "\ufeff" + text
    kind = EVENT_STREAM if "wrong_content_type" in quirks else JSON
    return _finished(Body([_encode(text)], kind, streamed=False), quirks)


def raw(parts: list[bytes], quirks: frozenset[str]) -> Body:
    """A body given byte for byte."""
    return _finished(Body(parts, EVENT_STREAM, streamed=True), quirks)


def keepalive(quirks: frozenset[str]) -> bytes:
    """A comment line of its own, for waits."""
    end = "\r\n" if "crlf" in quirks else "\r" if "lone_cr" in quirks else "\n"
    return f"{KEEPALIVE}{end}{end}".encode()


def cut(parts: list[bytes], size: int) -> list[bytes]:
    """The first ``size`` bytes of ``parts``."""
    kept: list[bytes] = []
    for part in parts:
        if size <= 0:
            break
        kept.append(part[:size])
        size -= len(part)
    return kept


def compact(value: Any) -> str:
    """JSON without spaces, in characters rather than escapes unless they cannot be sent."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(value, separators=(",", ":"))
    return text


def _lines(payload: Any, quirks: frozenset[str], *, named: bool) -> list[str]:
    if isinstance(payload, Stray):
        return [payload.text]
    colon = ":" if "no_space" in quirks else ": "
    text = payload if isinstance(payload, str) else compact(payload)
    if "multi_line_data" in quirks and not isinstance(payload, str):
        text = json.dumps(payload, indent=1)
    made = [f"data{colon}{line}" for line in text.split("\n")]
    if named and isinstance(payload, dict) and isinstance(payload.get("type"), str):
        made.insert(0, f"event{colon}{payload['type']}")
    return made


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _finished(body: Body, quirks: frozenset[str]) -> Body:
    if "html" in quirks:
        body = Body([HTML], "text/html; charset=utf-8", streamed=False)
        if "wrong_content_type" in quirks:
            body.content_type = EVENT_STREAM
    if "empty_body" in quirks:
        body.parts = []
    if "two_answers" in quirks:
        body.parts = body.parts * 2
    if quirks & {"gzip", "gzip_unmarked"}:
        body.parts = _gzip(body.parts)
        if "gzip" in quirks:
            body.headers["Content-Encoding"] = "gzip"
    return body


def _gzip(parts: list[bytes]) -> list[bytes]:
    """Each part flushed on its own, so that events can still be read one by one as they come."""
    squeeze = zlib.compressobj(wbits=31)
    made = [squeeze.compress(part) + squeeze.flush(zlib.Z_SYNC_FLUSH) for part in parts]
    return [*made, squeeze.flush()]

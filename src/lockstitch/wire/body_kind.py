"""What a body is, by its first bytes: content types lie, first bytes do not."""

import zlib
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

BodyKind: TypeAlias = Literal["sse", "json", "page", "gzip", "text"]
"""``page`` is HTML or XML; ``text`` is anything else, which may still turn out to be an event stream."""

_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_SSE_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_FIELD_MAX: Final = max(len(field) for field in _SSE_FIELDS)
_PIECE: Final = 1 << 20
"""Bytes that are inflated at once, so that a small body cannot fill the memory."""
_SLICE: Final = 8 << 10
"""Compressed bytes that are looked at together: each member copies what is behind it, so a large body of many
small members would be copied again and again."""


def sniff(head: bytes, *, ended: bool = False) -> BodyKind | None:
    """The kind of a body that begins with ``head``; None as long as more bytes could decide otherwise."""
    if _GZIP.startswith(head[:2]) and not ended and len(head) < 2:
        return None
    if head.startswith(_GZIP):
        return "gzip"
    if _BOM.startswith(head[:3]) and len(head) < 3 and not ended:
        return None
    begun = head.removeprefix(_BOM).lstrip()
    if not begun:
        return None
    if begun[:1] == b"<":
        return "page"
    if begun[:1] in (b"{", b"["):
        return "json"
    if begun.startswith(_SSE_FIELDS):
        return "sse"
    if len(begun) < _FIELD_MAX and not ended and any(field.startswith(begun) for field in _SSE_FIELDS):
        return None
    return "text"


class GunzipError(ValueError):
    """The body claims to be gzip and is not, or its checksum is wrong."""


class Gunzip:
    """Inflates a gzip body that comes in pieces, of one or several members."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    @property
    def complete(self) -> bool:
        """The last member came to its end."""
        return self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Plain bytes in bounded pieces. Raises GunzipError, after the pieces before the damage."""
        try:
            for at in range(0, len(data), _SLICE):
                yield from self._inflate(data[at : at + _SLICE])
        except zlib.error as error:
            raise GunzipError(str(error)) from error

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream.eof:
                if not data.startswith(_GZIP[:1]):
                    return  # padding behind the last member
                self._stream = zlib.decompressobj(wbits=31)
            before = self._stream.copy()
            try:
                piece = self._stream.decompress(data, _PIECE)
            except zlib.error:
                # A failing call gives nothing of what came before the damage, so go there in single bytes.
                yield from _up_to_damage(before, data)
                raise
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if piece:
                yield piece


def _up_to_damage(stream: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        try:
            piece = stream.decompress(data[at : at + 1])
        except zlib.error:
            return
        if piece:
            yield piece

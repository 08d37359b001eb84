"""How large an image is, from the beginning of its bytes; without decoding a pixel.

Sources: https://www.w3.org/TR/png-3/#11IHDR, https://www.w3.org/Graphics/GIF/spec-gif89a.txt (section 18),
https://developers.google.com/speed/webp/docs/riff_container, ITU-T T.81 section B.2.2 (all read 2026-11-30).
"""

import binascii
from typing import Final, NamedTuple

HEAD_BASE64_CHARS: Final = 64 * 1024
"""As much base64 as is decoded: a JPEG's frame header follows its thumbnails, which are smaller than this."""

_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of frame headers; the three others of the range are tables."""


class Size(NamedTuple):
    width: int
    height: int
    """Pixels."""


def size_of_base64(data: str) -> Size | None:
    """Width and height of an image in base64; None if its format or its header is not known."""
    head = data[:HEAD_BASE64_CHARS]
    try:
        return size_of(binascii.a2b_base64(head[: len(head) // 4 * 4]))
    except (binascii.Error, ValueError):
        return None


def size_of(head: bytes) -> Size | None:
    """Width and height of an image from its first bytes; None if its format or its header is not known."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return _size(head[16:20], head[20:24], "big")
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= 10:
        return _size(head[6:8], head[8:10], "little")
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    return None


def _size(width: bytes, height: bytes, order: str) -> Size:
    big = order == "big"
    first = int.from_bytes(width, "big" if big else "little")
    return Size(first, int.from_bytes(height, "big" if big else "little"))


def _jpeg(head: bytes) -> Size | None:
    place = 2
    while place + 9 <= len(head):
        if head[place] != 0xFF:
            return None
        marker = head[place + 1]
        if marker in _JPEG_FRAMES:
            return _size(head[place + 7 : place + 9], head[place + 5 : place + 7], "big")
        place += 2 + int.from_bytes(head[place + 2 : place + 4], "big")
    return None


def _webp(head: bytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        bare = _size(head[24:27], head[27:30], "little")
        return Size(bare.width + 1, bare.height + 1)
    if kind == b"VP8 " and len(head) >= 30:
        bare = _size(head[26:28], head[28:30], "little")
        return Size(bare.width & 0x3FFF, bare.height & 0x3FFF)
    if kind == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return None

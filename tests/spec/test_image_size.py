"""Sizes of images from the beginning of their bytes."""

import base64

import pytest

from lockstitch.wire.image_size import Size, size_of, size_of_base64


def png(width: int, height: int) -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR"
    return head + width.to_bytes(4, "big") + height.to_bytes(4, "big")


def jpeg(width: int, height: int, *, before: bytes = b"") -> bytes:
    frame = (
        b"\xff\xc0" + (17).to_bytes(2, "big") + b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    )
    return b"\xff\xd8" + before + frame + b"\x03"


def le(number: int, length: int = 2) -> bytes:
    return number.to_bytes(length, "little")


def webp(kind: bytes, data: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + data


AFTER = b"\xff\xe0\x00\x04ab\xff\xdb\x00\x03c"

SIZES = {
    "png": (png(2400, 1200), Size(2400, 1200)),
    "gif": (b"GIF89a" + le(300) + le(2), Size(300, 2)),
    "jpeg": (jpeg(640, 480), Size(640, 480)),
    "jpeg behind other segments": (jpeg(640, 480, before=AFTER), Size(640, 480)),
    "webp, extended": (webp(b"VP8X", bytes(4) + le(99, 3) + le(9, 3)), Size(100, 10)),
    "webp, lossy": (webp(b"VP8 ", bytes(6) + le(50) + le(60)), Size(50, 60)),
    "webp, lossless": (webp(b"VP8L", b"\x2f" + le(99 | 9 << 14, 4)), Size(100, 10)),
    "another format": (b"BM" + bytes(40), None),
    "a jpeg that is cut before its frame": (b"\xff\xd8\xff\xe0\x00\x10abc", None),
    "a jpeg that is none": (b"\xff\xd8" + bytes(20), None),
    "a png that is cut": (png(1, 1)[:20], None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize("case", SIZES)
def test_size_of_the_first_bytes(case: str) -> None:
    head, expected = SIZES[case]
    assert size_of(head) == expected


def test_any_cut_of_a_header_is_survived() -> None:
    for head, expected in SIZES.values():
        for end in range(len(head)):
            assert size_of(head[:end]) in (None, expected)


def test_base64_is_decoded_as_far_as_needed() -> None:
    whole = base64.b64encode(png(7, 8) + bytes(1000)).decode()
    assert size_of_base64(whole) == Size(7, 8)
    assert size_of_base64("not base64!") is None

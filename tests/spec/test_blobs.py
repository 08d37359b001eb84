"""Blobs: whole or not there, and never trusted unread."""

import base64
import errno
import os
from pathlib import Path

import pytest

from lockstitch.schema.blocks import Base64Source, Image, Text, ToolResult
from lockstitch.schema.errors import CallerError, StorageError
from lockstitch.schema.messages import Message
from lockstitch.session import blobs
from lockstitch.session.blobs import GONE_TEXT, BlobLostError, DirectoryBlobs, MemoryBlobs, with_media
from lockstitch.session.file_calls import FileCalls

DATA = b"picture" * 100


def test_the_file_is_private_and_named_for_its_bytes(tmp_path: Path) -> None:
    kept = DirectoryBlobs(tmp_path / "blobs")
    source = kept.put(DATA)
    path = Path(kept.place(source.sha256))
    assert path.read_bytes() == DATA and source.size == len(DATA)
    assert [entry.name for entry in (tmp_path / "blobs").iterdir()] == [source.sha256]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [DATA[:-1], DATA + b"x", b"", b"x" + DATA[1:]])
def test_bytes_that_changed_are_not_given_out_but_can_be_put_again(damage: bytes, tmp_path: Path) -> None:
    kept = DirectoryBlobs(tmp_path)
    source = kept.put(DATA)
    Path(kept.place(source.sha256)).write_bytes(damage)
    with pytest.raises(BlobLostError, match="another hash"):
        kept.get(source.sha256)
    assert kept.put(DATA) == source
    assert kept.get(source.sha256) == DATA


class Failing(FileCalls):
    def __init__(self, call: str) -> None:
        self.call = call

    def _meet(self, call: str) -> None:
        if call == self.call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self._meet("write")
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._meet("sync")

    def rename(self, source: Path, target: Path) -> None:
        self._meet("rename")
        super().rename(source, target)


@pytest.mark.parametrize("call", ["write", "sync", "rename"])
def test_a_disk_that_refuses_leaves_no_part_of_a_blob(call: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No space left"):
        DirectoryBlobs(tmp_path, Failing(call)).put(DATA)
    assert list(tmp_path.iterdir()) == []
    assert DirectoryBlobs(tmp_path).put(DATA).size == len(DATA)


def test_a_blob_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "BLOB_MAX_BYTES", 5)
    with pytest.raises(CallerError, match="at most 5 bytes"):
        MemoryBlobs().put(b"123456")


def test_a_request_gets_the_bytes_or_a_text_wherever_the_image_is(tmp_path: Path) -> None:
    kept = DirectoryBlobs(tmp_path)
    image = Image("image/png", kept.put(DATA), extra={"detail": "high"})
    gone = Image("image/png", blobs.source_of(b"never put"))
    plain = Message("user", (Text("x"),))
    messages = [
        plain,
        Message("user", (image, gone)),
        Message("tool", (ToolResult("a", (Text("r"), image, gone)),)),
    ]
    loaded = Image("image/png", Base64Source(base64.b64encode(DATA).decode()), extra={"detail": "high"})
    result = with_media(messages, kept)
    assert result[0] is plain
    assert result[1].content == (loaded, Text(GONE_TEXT))
    assert result[2].content == (ToolResult("a", (Text("r"), loaded, Text(GONE_TEXT))),)

"""Large content beside a log: named by the hash of its bytes, written whole or not at all, checked when read.

A blob is durable before a record may name it. A record whose blob is gone or damaged still counts: what it
showed becomes a text that says so, because a request with a broken image would be refused for ever.
"""

import base64
import errno
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from lockstitch.schema.blocks import Base64Source, BlobSource, Block, Image, Text, ToolResult
from lockstitch.schema.errors import CallerError, StorageError
from lockstitch.schema.messages import Message

from .file_calls import FileCalls, read_range, write_new_file
from .file_sink import refusal_of_disk
from .scan import PIECE_BYTES

BLOB_MAX_BYTES: Final = 256 * 1024 * 1024
BLOBS_NAME: Final = "blobs"
_NO_FILE: Final = (errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.EFBIG)
"""A folder, a pipe or a device, a link, more than a blob holds: trying again would not help."""
GONE_TEXT: Final = "[image omitted: its stored data is missing or damaged]"


class BlobLostError(StorageError):
    """A blob is not there, or its bytes are not the ones it is named for."""

    code = "BLOB_LOST"


class Blobs(Protocol):
    """One session's blobs. All methods may be called from any thread, and may wait for a disk."""

    def put(self, data: bytes) -> BlobSource:
        """Keep ``data``, durably on return; the same bytes are kept once.

        Raises CallerError beyond BLOB_MAX_BYTES, StorageError if the disk refuses.
        """
        ...

    def get(self, sha256: str) -> bytes:
        """The bytes of that hash, verified. Raises BlobLostError, StorageError."""
        ...

    def place(self, sha256: str) -> str:
        """Where a person finds the blob, for texts: a path, if the store has files."""
        ...

    def names(self) -> list[str]:
        """The hashes of all blobs, in order. Raises StorageError."""
        ...


class DirectoryBlobs:
    """Blobs as files of a directory, which is made with the first of them."""

    def __init__(self, directory: Path, calls: FileCalls | None = None) -> None:
        self._directory = directory
        self._calls = calls or FileCalls()

    def put(self, data: bytes) -> BlobSource:
        source = source_of(data)
        path = self._directory / source.sha256
        try:
            if not self._holds(path, data):
                self._calls.make_directory(self._directory)
                pieces = (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
                write_new_file(self._calls, path, pieces)
                self._calls.sync_directory(self._directory)
                self._calls.sync_directory(self._directory.parent)
        except OSError as error:
            raise refusal_of_disk(path, error) from error
        return source

    def get(self, sha256: str) -> bytes:
        path = self._directory / checked_name(sha256)
        try:
            data = self._read(path)
        except FileNotFoundError as error:
            raise lost(sha256, f"{path} does not exist") from error
        except OSError as error:
            if error.errno in _NO_FILE:
                raise lost(sha256, f"{path}: {error.strerror}") from error
            raise refusal_of_disk(path, error) from error
        return verified(data, sha256)

    def place(self, sha256: str) -> str:
        return str(self._directory / checked_name(sha256))

    def names(self) -> list[str]:
        try:
            found = [entry.name for entry in self._directory.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise refusal_of_disk(self._directory, error) from error
        return sorted(name for name in found if is_name(name))

    def _holds(self, path: Path, data: bytes) -> bool:
        """Whether the file is there and whole: another program may have cut it since."""
        try:
            return path.lstat().st_size == len(data) and self._read(path) == data
        except OSError as error:
            if error.errno in (errno.ENOENT, *_NO_FILE):
                return False
            raise

    def _read(self, path: Path) -> bytes:
        """Raises OSError, with one of ``_NO_FILE`` for what cannot be a blob's file at all."""
        fd = self._calls.open(path, os.O_RDONLY)
        try:
            size = self._calls.size(fd)
            if size > BLOB_MAX_BYTES:
                raise OSError(errno.EFBIG, f"{size} bytes are more than a blob holds", str(path))
            return b"".join(read_range(self._calls, fd, 0, size, max(size, 1)))
        finally:
            self._calls.close(fd)


class MemoryBlobs:
    """Blobs of a session in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> BlobSource:
        source = source_of(data)
        self._kept[source.sha256] = data
        return source

    def get(self, sha256: str) -> bytes:
        try:
            return self._kept[checked_name(sha256)]
        except KeyError as error:
            raise lost(sha256, "it is not in this process's memory") from error

    def place(self, sha256: str) -> str:
        return f"blob {checked_name(sha256)}"

    def names(self) -> list[str]:
        return sorted(self._kept)


def with_media(messages: Sequence[Message], blobs: Blobs) -> list[Message]:
    """The messages with the bytes of their images in place, as requests need them.

    An image whose blob is lost becomes the text GONE_TEXT. Messages without blobs are returned as they are.
    """
    return [_loaded(message, blobs) for message in messages]


def holds_blobs(message: Message) -> bool:
    """Whether bytes of the message lie in blobs."""
    return any(
        isinstance(part, Image) and isinstance(part.source, BlobSource)
        for block in message.content
        for part in (block.content if isinstance(block, ToolResult) else (block,))
    )


def source_of(data: bytes) -> BlobSource:
    """The name of bytes. Raises CallerError for more than a blob may hold."""
    if len(data) > BLOB_MAX_BYTES:
        raise CallerError(f"a blob holds at most {BLOB_MAX_BYTES} bytes, not {len(data)}: split it")
    return BlobSource(hashlib.sha256(data).hexdigest(), len(data))


def checked_name(sha256: str) -> str:
    """The hash, which may come out of a damaged or foreign log. Raises BlobLostError if it is none."""
    if not is_name(sha256):
        raise lost(sha256[:80], "that is no SHA-256 in hex digits")
    return sha256


def is_name(text: str) -> bool:
    """Whether a text is a hash in its one form."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def verified(data: bytes, sha256: str) -> bytes:
    """``data`` if it has that hash. Raises BlobLostError."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise lost(sha256, f"its {len(data)} bytes have another hash")
    return data


def lost(sha256: str, reason: str) -> BlobLostError:
    return BlobLostError(
        f"blob {sha256!r} cannot be read: {reason}; put the same file back, or go on without"
    )


def _loaded(message: Message, blobs: Blobs) -> Message:
    content = tuple(_loaded_block(block, blobs) for block in message.content)
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=content)


def _loaded_block(block: Block, blobs: Blobs) -> Block:
    match block:
        case Image(source=BlobSource(sha256=sha256)):
            return _loaded_image(block, sha256, blobs)
        case ToolResult(content=parts):
            loaded = tuple(
                _loaded_image(part, part.source.sha256, blobs)
                if isinstance(part, Image) and isinstance(part.source, BlobSource)
                else part
                for part in parts
            )
            changed = any(new is not old for new, old in zip(loaded, parts, strict=True))
            return msgspec.structs.replace(block, content=loaded) if changed else block
        case _:
            return block


def _loaded_image(image: Image, sha256: str, blobs: Blobs) -> Image | Text:
    try:
        data = blobs.get(sha256)
    except BlobLostError:
        return Text(GONE_TEXT)
    return msgspec.structs.replace(image, source=Base64Source(base64.b64encode(data).decode()))

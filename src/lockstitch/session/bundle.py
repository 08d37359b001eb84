"""A session as one file, to be sent or kept: a zip with the log, its blobs, and the hash of each.

The log is in it byte for byte, damage included. Members: ``log.jsonl``, ``blobs/<sha256>`` and, last,
``manifest.json``. Documented in docs/formats/session-bundle.md.
"""

import asyncio
import contextlib
import hashlib
import io
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Final

import msgspec

from lockstitch.schema.errors import CallerError, StorageError
from lockstitch.schema.events import SessionStart
from lockstitch.wire.jsonl import RECORD_MAX_BYTES, BadRecordError, decode, encode
from lockstitch.wire.strict_json import has_too_many_values

from .blobs import BLOB_MAX_BYTES, BlobLostError, Blobs
from .names import directory_name
from .scan import PIECE_BYTES
from .store import SessionKeeper

BUNDLE_FORMAT: Final = 1
UNPACKED_MAX_BYTES: Final = 4 * 1024**3
"""Of all members of a bundle that is imported, unless the caller says otherwise. A zip of 4 MB can hold as
much; a session of a thousand screenshots holds a quarter of it."""
MANIFEST_MAX_BYTES: Final = 16 * 1024 * 1024
"""It names some 80,000 blobs."""
DIRECTORY_MAX_BYTES: Final = 16 * 1024 * 1024
"""Of the table of contents of the zip, which is read as a whole."""
_LOG_MEMBER: Final = "log.jsonl"
_MANIFEST_MEMBER: Final = "manifest.json"
_SHOWN_CHARS: Final = 100
"""Of a text of the bundle, in a message."""


class Member(msgspec.Struct, frozen=True):
    name: str
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle holds. Unknown fields are ignored; a higher ``format`` is refused."""

    kind: str = "lockstitch-session"
    format: int = BUNDLE_FORMAT
    id: str
    members: tuple[Member, ...]
    lost_blobs: tuple[str, ...] = ()
    """Hashes of blobs that could not be read when the bundle was made."""


async def export_session(store: SessionKeeper, session_id: str, target: Path) -> Manifest:
    """Write a session to the file ``target``, which must not exist. The session may be open or damaged.

    The file is whole or not there. Raises CallerError, StorageError.
    """
    view = await store.open(session_id, read_only=True)
    writer = _Writer(target, session_id)
    try:
        await asyncio.to_thread(writer.open)
        await store.copy_log(session_id, writer.log_piece)
        manifest = await asyncio.to_thread(writer.finish, view.blobs)
    except OSError as error:
        raise StorageError(
            f"{target}: {error.strerror or error}; free space or name another place"
        ) from error
    finally:
        writer.close()
    return manifest


async def import_session(
    store: SessionKeeper, source: Path, *, new_id: str | None = None, max_bytes: int = UNPACKED_MAX_BYTES
) -> Manifest:
    """Make a session of a bundle, under its own id or ``new_id``, after every hash was checked.

    Raises CallerError for a file that is no bundle or is damaged, that holds more than ``max_bytes`` once it
    is unpacked, for an id that is taken, and for a format of a newer version; then nothing was made.
    """
    try:
        with await asyncio.to_thread(_file, source) as file, await asyncio.to_thread(_zip, file) as bundle:
            manifest = await asyncio.to_thread(_verified, bundle, source, max_bytes)
            session_id = manifest.id if new_id is None else new_id
            directory_name(session_id)
            await store.put_log(session_id, _log(bundle, manifest, session_id), _blobs(bundle, manifest))
    except FileNotFoundError as error:
        raise CallerError(f"{source} does not exist") from error
    except _NO_ZIP as error:
        raise CallerError(f"{source} is no session bundle, or is damaged: {error}") from error
    except OSError as error:
        raise CallerError(f"{source} cannot be read: {error.strerror or error}") from error
    return manifest if new_id is None else msgspec.structs.replace(manifest, id=new_id)


_NO_ZIP: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(struct.error, ValueError, OverflowError),
)
"""What zipfile raises for bytes that are no archive, or a damaged one."""


class _Writer:
    """Writes a bundle; its methods run one after the other, in any thread."""

    def __init__(self, target: Path, session_id: str) -> None:
        self._target = target
        self._temporary = target.with_name(f".lockstitch-{secrets.token_hex(8)}.tmp")
        self._id = session_id
        self._file: IO[bytes] | None = None
        self._zip: zipfile.ZipFile | None = None
        self._log: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._size = 0

    def open(self) -> None:
        if os.path.lexists(self._target):
            raise self._taken()
        fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(fd, "wb")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)
        self._log = self._zip.open(_LOG_MEMBER, "w", force_zip64=True)

    def log_piece(self, piece: bytes) -> None:
        assert self._log is not None
        self._log.write(piece)
        self._hash.update(piece)
        self._size += len(piece)

    def finish(self, blobs: Blobs) -> Manifest:
        assert self._log is not None and self._zip is not None and self._file is not None
        self._log.close()
        members = [Member(_LOG_MEMBER, self._size, self._hash.hexdigest())]
        gone = []
        for name in blobs.names():
            try:
                data = blobs.get(name)
            except BlobLostError:
                gone.append(name)
                continue
            self._zip.writestr(f"blobs/{name}", data)
            members.append(Member(f"blobs/{name}", len(data), name))
        manifest = Manifest(id=self._id, members=tuple(members), lost_blobs=tuple(gone))
        self._zip.writestr(_MANIFEST_MEMBER, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        self._zip.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        try:
            os.link(self._temporary, self._target)  # unlike a rename, it overwrites nothing
        except FileExistsError:
            raise self._taken() from None
        except OSError:  # a file system without links
            self._temporary.rename(self._target)
        return manifest

    def close(self) -> None:
        """Gives everything back; also what a full disk does not let end in order."""
        for part in (self._log, self._zip, self._file):
            if part is not None:
                with contextlib.suppress(OSError, ValueError):
                    part.close()
        if self._file is not None:
            self._temporary.unlink(missing_ok=True)

    def _taken(self) -> CallerError:
        return CallerError(f"{self._target} exists already: name another file")


class _Head(msgspec.Struct, frozen=True):
    """What every version of the manifest has."""

    kind: str = "lockstitch-session"
    format: int = BUNDLE_FORMAT


class _Bounded(io.FileIO):
    """A file that does not read more at once than a table of contents may have."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY_MAX_BYTES:
            raise zipfile.BadZipFile(f"its table of contents has more than {DIRECTORY_MAX_BYTES:,} bytes")
        return super().read(size) or b""


def _file(source: Path) -> _Bounded:
    if source.exists() and not source.is_file():  # a pipe would be waited for
        raise CallerError(f"{source} cannot be read: it is no file")
    return _Bounded(source)


def _zip(file: _Bounded) -> zipfile.ZipFile:
    bundle = zipfile.ZipFile(file)
    names = bundle.namelist()
    if len(set(names)) < len(names):
        raise zipfile.BadZipFile("it holds two members of one name")
    return bundle


def _verified(bundle: zipfile.ZipFile, source: Path, max_bytes: int) -> Manifest:
    """The manifest, after every member was read and compared with it. Raises CallerError."""
    manifest = _manifest(bundle, source)
    names = [member.name for member in manifest.members]
    if _LOG_MEMBER not in names:
        raise CallerError(f"{source} holds no log")
    if len(set(names)) < len(names):
        raise CallerError(f"{source} is no session bundle: its manifest names a member twice")
    total = sum(member.bytes for member in manifest.members)
    if total > max_bytes:
        raise CallerError(
            f"{source} unpacks to {total:,} bytes, and the limit is {max_bytes:,}: raise it if you trust it"
        )
    for member in manifest.members:
        _verify(bundle, member, source)
    return manifest


def _manifest(bundle: zipfile.ZipFile, source: Path) -> Manifest:
    try:
        info = bundle.getinfo(_MANIFEST_MEMBER)
        if info.file_size > MANIFEST_MAX_BYTES:
            raise CallerError(f"{source} is no session bundle: its manifest has {info.file_size:,} bytes")
        with _member(bundle, _MANIFEST_MEMBER) as stream:
            text = stream.read(MANIFEST_MAX_BYTES)
        if has_too_many_values(text):
            raise CallerError(f"{source} is no session bundle: its manifest holds too many values")
        head = msgspec.json.decode(text, type=_Head)
        if head.kind != "lockstitch-session":
            raise CallerError(f"{source} holds a {head.kind[:_SHOWN_CHARS]!r}, not a session")
        if head.format > BUNDLE_FORMAT:
            raise CallerError(f"{source} has format {head.format}; this version reads {BUNDLE_FORMAT}")
        return msgspec.json.decode(text, type=Manifest)
    except (KeyError, msgspec.DecodeError, RecursionError) as error:
        raise CallerError(f"{source} is no session bundle: {error}") from error


def _member(bundle: zipfile.ZipFile, name: str) -> IO[bytes]:
    """A member's bytes, in one of the two ways that a bundle is packed. Raises KeyError."""
    info = bundle.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name} is packed in a way that no bundle is")  # some take any memory
    return bundle.open(info)


def _verify(bundle: zipfile.ZipFile, member: Member, source: Path) -> None:
    if member.name not in (_LOG_MEMBER, f"blobs/{member.sha256}"):
        shown = member.name[:_SHOWN_CHARS]
        raise CallerError(f"{source} holds {shown!r}, which is no part of a session")
    if member.name != _LOG_MEMBER and member.bytes > BLOB_MAX_BYTES:
        raise CallerError(f"{source} holds a blob of {member.bytes} bytes; the limit is {BLOB_MAX_BYTES}")
    digest, size = hashlib.sha256(), 0
    try:
        with _member(bundle, member.name) as stream:
            while piece := stream.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                if size > member.bytes:
                    break
    except KeyError as error:
        raise CallerError(
            f"{source} lacks {member.name[:_SHOWN_CHARS]}, which its manifest names: fetch it again"
        ) from error
    if (size, digest.hexdigest()) != (member.bytes, member.sha256):
        raise CallerError(
            f"{source} is damaged: {member.name[:_SHOWN_CHARS]} is not what its manifest says; fetch it again"
        )


def _log(bundle: zipfile.ZipFile, manifest: Manifest, session_id: str) -> Iterator[bytes]:
    with _member(bundle, _LOG_MEMBER) as stream:
        first = stream.readline(RECORD_MAX_BYTES)
        yield first if session_id == manifest.id else _renamed(first, session_id)
        while piece := stream.read(PIECE_BYTES):
            yield piece


def _renamed(line: bytes, session_id: str) -> bytes:
    """The first record with another id; any other line as it is."""
    try:
        event = decode(line.rstrip(b"\n"))
    except BadRecordError:
        return line
    if not isinstance(event.body, SessionStart):
        return line
    return encode(event.seq, event.time_ms, msgspec.structs.replace(event.body, id=session_id))


def _blobs(bundle: zipfile.ZipFile, manifest: Manifest) -> Iterator[bytes]:
    for member in manifest.members:
        if member.name != _LOG_MEMBER:
            with _member(bundle, member.name) as stream:
                yield stream.read(BLOB_MAX_BYTES)

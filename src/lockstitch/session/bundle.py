"""A session as one file, to be sent or kept: a zip with the log, its blobs, and the hash of each.

The log is in it byte for byte, damage included. Members: ``log.jsonl``, ``blobs/<sha256>`` and, last,
``manifest.json``. Documented in docs/formats/session-bundle.md.
"""

import asyncio
import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from lockstitch.schema.errors import CallerError, StorageError
from lockstitch.schema.events import SessionStart
from lockstitch.wire.jsonl import RECORD_MAX_BYTES, BadRecordError, decode, encode

from .blobs import BLOB_MAX_BYTES, BlobLostError, Blobs
from .names import directory_name
from .scan import PIECE_BYTES
from .store import SessionKeeper

BUNDLE_FORMAT: Final = 1
_LOG_MEMBER: Final = "log.jsonl"
_MANIFEST_MEMBER: Final = "manifest.json"
_MANIFEST_MAX_BYTES: Final = 64 * 1024 * 1024


class Member(msgspec.Struct, frozen=True):
    name: str
    bytes: int
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


async def import_session(store: SessionKeeper, source: Path, *, new_id: str | None = None) -> Manifest:
    """Make a session of a bundle, under its own id or ``new_id``, after every hash was checked.

    Raises CallerError for a file that is no bundle or is damaged, for an id that is taken, and for a format
    of a newer version; then nothing was made.
    """
    try:
        with zipfile.ZipFile(source) as bundle:
            manifest = await asyncio.to_thread(_verified, bundle, source)
            session_id = manifest.id if new_id is None else new_id
            directory_name(session_id)
            await store.put_log(session_id, _log(bundle, manifest, session_id), _blobs(bundle, manifest))
    except FileNotFoundError as error:
        raise CallerError(f"{source} does not exist") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CallerError(f"{source} is no session bundle, or is damaged: {error}") from error
    except OSError as error:
        raise CallerError(f"{source} cannot be read: {error.strerror or error}") from error
    return manifest if new_id is None else msgspec.structs.replace(manifest, id=new_id)


class _Writer:
    """Writes a bundle; its methods run one after the other, in any thread."""

    def __init__(self, target: Path, session_id: str) -> None:
        self._target = target
        self._temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        self._id = session_id
        self._file: IO[bytes] | None = None
        self._zip: zipfile.ZipFile | None = None
        self._log: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._size = 0

    def open(self) -> None:
        if self._target.exists():
            raise CallerError(f"{self._target} exists already: name another file")
        fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
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
        self._temporary.rename(self._target)
        return manifest

    def close(self) -> None:
        if self._log is not None and not self._log.closed:
            self._log.close()
        if self._file is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)


def _verified(bundle: zipfile.ZipFile, source: Path) -> Manifest:
    """The manifest, after every member was read and compared with it. Raises CallerError."""
    try:
        info = bundle.getinfo(_MANIFEST_MEMBER)
        if info.file_size > _MANIFEST_MAX_BYTES:
            raise CallerError(f"{source} is no session bundle: its manifest has {info.file_size} bytes")
        manifest = msgspec.json.decode(bundle.read(info), type=Manifest)
    except (KeyError, msgspec.DecodeError) as error:
        raise CallerError(f"{source} is no session bundle: {error}") from error
    if manifest.kind != "lockstitch-session":
        raise CallerError(f"{source} holds a {manifest.kind!r}, not a session")
    if manifest.format > BUNDLE_FORMAT:
        raise CallerError(f"{source} has format {manifest.format}; this version reads {BUNDLE_FORMAT}")
    if not any(member.name == _LOG_MEMBER for member in manifest.members):
        raise CallerError(f"{source} holds no log")
    for member in manifest.members:
        _verify(bundle, member, source)
    return manifest


def _verify(bundle: zipfile.ZipFile, member: Member, source: Path) -> None:
    if member.name not in (_LOG_MEMBER, f"blobs/{member.sha256}"):
        raise CallerError(f"{source} holds {member.name!r}, which is no part of a session")
    if member.name != _LOG_MEMBER and member.bytes > BLOB_MAX_BYTES:
        raise CallerError(f"{source} holds a blob of {member.bytes} bytes; the limit is {BLOB_MAX_BYTES}")
    digest, size = hashlib.sha256(), 0
    try:
        with bundle.open(member.name) as stream:
            while piece := stream.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                if size > member.bytes:
                    break
    except KeyError as error:
        raise CallerError(
            f"{source} lacks {member.name}, which its manifest names: fetch it again"
        ) from error
    if (size, digest.hexdigest()) != (member.bytes, member.sha256):
        raise CallerError(f"{source} is damaged: {member.name} is not what the manifest says; fetch it again")


def _log(bundle: zipfile.ZipFile, manifest: Manifest, session_id: str) -> Iterator[bytes]:
    with bundle.open(_LOG_MEMBER) as stream:
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
            yield bundle.read(member.name)

"""Where a session's checkpoint lies: a file beside its log, made under the session's lock, deletable at will.

Its MAC is made with a key of the sessions' root, so that a checkpoint which came with a copied or received
session is not believed: its log is, record by record, and people can read that.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from .checkpoint import HEADER_MAX_BYTES, Checkpoint, decode, decode_header, encode
from .file_calls import FileCalls, read_range, write_all

CHECKPOINT_NAME: Final = "checkpoint.jsonl"
KEY_NAME: Final = ".checkpoint-key"
"""In the directory of all sessions. If it is lost, every checkpoint is made anew."""
_KEY_BYTES: Final = 32
_KEY_FILE_BYTES: Final = 2 * _KEY_BYTES + 1


def read_checkpoint(
    calls: FileCalls, directory: Path, fold_version: str, log_size: int
) -> tuple[Checkpoint, int] | None:
    """The checkpoint of a session and the size of its file; None if there is none that fits.

    One that is longer than the log is not looked at: what it claims cannot be there. Of one that was not made
    here no more is read than what tells that.
    """
    try:
        key = _read_key(calls, directory.parent)
        if key is None:
            return None
        fd = calls.open(directory / CHECKPOINT_NAME, os.O_RDONLY)
        try:
            return _read(calls, fd, fold_version, key, log_size)
        finally:
            calls.close(fd)
    except OSError:
        return None  # it is disposable: the log is read instead, and tells if the disk is what fails


def _read(
    calls: FileCalls, fd: int, fold_version: str, key: bytes, log_size: int
) -> tuple[Checkpoint, int] | None:
    size = calls.size(fd)
    if size > log_size:
        return None
    beginning = b"".join(read_range(calls, fd, 0, HEADER_MAX_BYTES, HEADER_MAX_BYTES))
    line, _, _ = beginning.partition(b"\n")
    header = decode_header(line, fold_version, key)
    start = len(line) + 1
    if header is None or header.bytes > log_size or start + header.state_bytes != size:
        return None
    checkpoint = decode(header, b"".join(read_range(calls, fd, start, size, header.state_bytes)))
    return None if checkpoint is None else (checkpoint, size)


def write_checkpoint(calls: FileCalls, directory: Path, checkpoint: Checkpoint, fold_version: str) -> int:
    """Put a checkpoint in the place of the one before, whole or not at all; how many bytes it has.

    It is not synced: what a power failure leaves of it fails its MAC. One that is longer than the log is not
    written. The caller holds the session's lock. Raises OSError.
    """
    key = _read_key(calls, directory.parent) or _make_key(calls, directory.parent)
    data = encode(checkpoint, fold_version, key)
    if len(data) <= checkpoint.length:
        _replace(calls, directory / CHECKPOINT_NAME, data)
    return len(data)


def remove_checkpoint(calls: FileCalls, directory: Path) -> None:
    """Also what a process left of one that it did not finish. Raises OSError."""
    for path in (directory / CHECKPOINT_NAME, _temporary(directory / CHECKPOINT_NAME)):
        _remove(calls, path)


def _read_key(calls: FileCalls, root: Path) -> bytes | None:
    try:
        text = _read_file(calls, root / KEY_NAME, _KEY_FILE_BYTES)
        key = None if text is None else bytes.fromhex(text.decode())
    except (OSError, ValueError):  # whatever lies there, another can be put in its place
        return None
    return key if key is not None and len(key) == _KEY_BYTES else None


def _make_key(calls: FileCalls, root: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    _replace(calls, root / KEY_NAME, key.hex().encode() + b"\n")
    return key


def _read_file(calls: FileCalls, path: Path, size_max: int) -> bytes | None:
    """None if it is larger."""
    fd = calls.open(path, os.O_RDONLY)
    try:
        size = calls.size(fd)
        return None if size > size_max else b"".join(read_range(calls, fd, 0, size, max(size, 1)))
    finally:
        calls.close(fd)


def _replace(calls: FileCalls, path: Path, data: bytes) -> None:
    """Raises OSError, and leaves what was there before and nothing else."""
    temporary = _temporary(path)
    _remove(calls, temporary)  # of a process that died
    # Never through a link that somebody laid there: a session may have come from elsewhere.
    fd = calls.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(calls, fd, data, 0)
        finally:
            calls.close(fd)
        calls.rename(temporary, path)
    except OSError:
        _remove(calls, temporary)  # on a full disk its place is what the log needs
        raise


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name.lstrip('.')}.tmp")


def _remove(calls: FileCalls, path: Path) -> None:
    try:
        calls.unlink(path)
    except FileNotFoundError:
        return

"""What people allowed for good, per workspace, in one small file of the user's own."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lockstitch.schema.errors import CallerError, StorageError

from .approval import Policy

FORMAT: Final = 1


class _Stored(msgspec.Struct, frozen=True):
    format: int = FORMAT
    workspaces: dict[str, tuple[str, ...]] = {}
    """Absolute path of the workspace, and the rules that allow."""


def load(file: Path, workspace: Path) -> Policy:
    """The rules that allow in a workspace; none if there is no file.

    Raises CallerError if the file cannot be read: guessing at permissions is worse than stopping.
    """
    return Policy(allow=_read(file).workspaces.get(_key(workspace), ())).checked()


def remember(file: Path, workspace: Path, rule: str) -> None:
    """Adds a rule that allows; several processes may do so at once. Raises CallerError, StorageError."""
    Policy(allow=(rule,)).checked()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(file.with_name(file.name + ".lock")):
            stored = _read(file)
            rules = dict.fromkeys((*stored.workspaces.get(_key(workspace), ()), rule))
            workspaces = {**stored.workspaces, _key(workspace): tuple(rules)}
            _replace(file, msgspec.json.format(msgspec.json.encode(_Stored(workspaces=workspaces))) + b"\n")
    except OSError as error:
        raise StorageError(f"the approval could not be stored in {file}: {error.strerror}") from error


def _read(file: Path) -> _Stored:
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=_Stored)
    except FileNotFoundError:
        return _Stored()
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise CallerError(
            f"the approvals in {file} cannot be read ({error}); mend or remove the file"
        ) from error
    if stored.format > FORMAT:
        raise CallerError(f"the approvals in {file} are of a newer Lockstitch (format {stored.format})")
    return stored


def _key(workspace: Path) -> str:
    return os.path.realpath(workspace)


@contextlib.contextmanager
def _locked(lock: Path) -> Iterator[None]:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with contextlib.suppress(ImportError):  # Windows: the last writer wins
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(file: Path, data: bytes) -> None:
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)

"""The workspace: where the built-in tools may look and write, whatever a path says.

A path is resolved, links and all, and must lie below a root. It is then walked again from the root's
descriptor, one component at a time and following no link, so that a component that is swapped for a link
meanwhile is refused and not followed. Where the platform has no ``dir_fd`` (Windows) the second walk is left
out.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .contract import ToolContext, ToolError

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_HAS_DIR_FD: Final = os.open in os.supports_dir_fd
_PATH_MAX: Final = 4096

_SECRET: Final = re.compile(
    r"\.env(?!\.(?:example|sample|template|dist)$)(?:\..+)?"
    r"|\.envrc|\.netrc|_netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|\.htpasswd"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|credentials(?:\.json)?|service[-_]account.*\.json|secrets?\.(?:json|ya?ml|toml)",
    re.IGNORECASE,
)
_SECRET_DIRECTORIES: Final = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube"})


@dataclass(frozen=True, slots=True)
class Place:
    """A path that was found to lie in the workspace."""

    root: Path
    """Resolved."""
    parts: tuple[str, ...]
    """From the root, without links; empty for the root itself."""
    shown: str
    """For messages: relative to the workspace where it can be."""

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.parts)

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else self.root.name


def locate(context: ToolContext, path: str, *, write: bool = False) -> Place:
    """The place a tool's path means; it need not exist.

    Relative paths start at the workspace. Reading may also go below ``context.read_roots``. Raises ToolError
    for a path outside, and for one that holds secrets or, when writing, lies in ``.git``.
    """
    if not path:
        raise ToolError("The path is empty.")
    if "\0" in path or len(path) > _PATH_MAX:
        raise ToolError("The path holds a NUL character or is too long.")
    given = Path(path)
    try:
        target = Path(os.path.realpath(context.cwd / given))
        roots = [context.cwd, *(() if write else context.read_roots)]
        for root in (Path(os.path.realpath(root)) for root in roots):
            if target == root or root in target.parents:
                place = Place(root, target.relative_to(root).parts, _shown(target, context.cwd))
                _check_protected(place, given, write=write)
                return place
    except (OSError, ValueError) as error:
        raise ToolError(f"{path}: the path cannot be resolved: {error}") from error
    linked = " (it leads there through a link)" if _inside_as_written(context.cwd, given) else ""
    raise ToolError(f"{path} is outside of the workspace {context.cwd}{linked}. Use a path inside it.")


def relative(cwd: Path, path: str) -> str:
    """Where a tool's path leads, links followed, from the workspace: what approval rules are about."""
    return os.path.relpath(os.path.realpath(cwd / path), os.path.realpath(cwd)).replace(os.sep, "/")


def is_secret(name: str) -> bool:
    """Whether a file of this name is kept from models: keys, credentials, ``.env``."""
    return _SECRET.fullmatch(name) is not None


@contextlib.contextmanager
def parent_of(place: Place, *, create: bool = False) -> Iterator[int | None]:
    """A descriptor of the directory a place is in, for ``dir_fd``; None where the platform has none.

    With ``create`` missing directories are made. Raises ToolError for a link where there was none before.
    """
    if not place.parts:
        raise ToolError("That is the workspace itself.")
    with directory(
        Place(place.root, place.parts[:-1], str(Path(place.shown).parent)), create=create
    ) as descriptor:
        yield descriptor


@contextlib.contextmanager
def directory(place: Place, *, create: bool = False) -> Iterator[int | None]:
    """A descriptor of the directory itself, reached without following a link."""
    if not _HAS_DIR_FD:
        if create:
            place.path.mkdir(parents=True, exist_ok=True)
        if Path(os.path.realpath(place.path)) != place.path:
            raise ToolError(f"{place.shown} became a link meanwhile; it is not followed.")
        yield None
        return
    descriptor = os.open(place.root, _DIRECTORY)
    try:
        for part in place.parts:
            below = _step(descriptor, part, place, create=create)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(place: Place) -> int:
    """A descriptor for reading a regular file. Raises ToolError for anything else, and never waits on it."""
    with parent_of(place) as parent:
        # non-blocking: a FIFO would wait for its writer
        flags = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        name = place.name if parent is not None else str(place.path)
        refuse_special(place, os.stat(name, dir_fd=parent, follow_symlinks=False))
        descriptor = os.open(name, flags, dir_fd=parent)
    try:
        refuse_special(place, os.fstat(descriptor))
    except ToolError:
        os.close(descriptor)
        raise
    return descriptor


def refuse_special(place: Place, status: os.stat_result) -> None:
    """Raises ToolError if it is a directory, device, FIFO or socket."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{place.shown} is a directory; use list.")
    kinds = {
        stat.S_ISFIFO: "a FIFO",
        stat.S_ISSOCK: "a socket",
        stat.S_ISLNK: "a link that leads nowhere",
    }
    kind = next((name for test, name in kinds.items() if test(status.st_mode)), "a device")
    raise ToolError(f"{place.shown} is {kind}, not a regular file.")


def explained(place: Place, error: OSError) -> ToolError:
    """The system's refusal in words that say what to do."""
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{place.shown} does not exist.{_neighbours(place)}")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{place.shown}: permission denied.")
        case errno.ENOTDIR:
            return ToolError(f"{place.shown}: a part of the path is a file, not a directory.")
        case errno.ELOOP:
            return ToolError(f"{place.shown} became a link meanwhile; it is not followed.")
        case errno.ENAMETOOLONG:
            return ToolError(f"{place.shown[:200]}...: the name is too long.")
        case _:
            return ToolError(f"{place.shown}: {error.strerror or error}.")


def _check_protected(place: Place, given: Path, *, write: bool) -> None:
    lowered = [part.lower() for part in (*place.parts, given.name)]
    if write and ".git" in lowered:
        raise ToolError(f"{place.shown} belongs to git; change it with git commands.")
    if is_secret(place.name) or is_secret(given.name) or _SECRET_DIRECTORIES.intersection(lowered):
        act = "written" if write else "read"
        raise ToolError(
            f"{place.shown} may hold secrets and is not {act} by tools. If it is needed, ask the user for it."
        )


def _step(descriptor: int, part: str, place: Place, *, create: bool) -> int:
    try:
        return os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=descriptor)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=descriptor)
    return os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=descriptor)


def _inside_as_written(cwd: Path, given: Path) -> bool:
    written = Path(os.path.normpath(cwd / given))
    return written == cwd or cwd in written.parents


def _shown(target: Path, cwd: Path) -> str:
    try:
        return str(target.relative_to(os.path.realpath(cwd)))
    except ValueError:
        return str(target)


def _neighbours(place: Place) -> str:
    """Names that were perhaps meant."""
    import difflib

    try:
        names = [entry.name for _, entry in zip(range(2000), os.scandir(place.path.parent), strict=False)]
    except OSError:
        return f" Neither does its directory {Path(place.shown).parent}."
    close = difflib.get_close_matches(place.name, names, n=3)
    return f" Did you mean {' or '.join(close)}?" if close else ""

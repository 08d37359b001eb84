"""Directory names of sessions: any id becomes one safe name, and a name gives its id back."""

import hashlib
import re
from typing import Final

from lockstitch.schema.errors import CallerError

ID_MAX_CHARS: Final = 4096
NAME_MAX_CHARS: Final = 200
"""Below the 255 bytes that file systems allow, so that a suffix still fits."""

_KEPT_CHARS: Final = 120  # of an id that is too long, for people who look at the directory
_UNSAFE = re.compile(rb"[^A-Za-z0-9_.-]")
_ESCAPE = re.compile(r"~([0-9a-f]{2})")


def directory_name(session_id: str) -> str:
    """The name of a session's directory: letters, digits and ``_-.`` stay, each other byte is ``~xx``.

    A leading dot is escaped, too, so that no name is hidden, ``.`` or ``..``. Of an id whose name would be
    too long the beginning is kept and a hash added behind ``~~``. Raises CallerError for what is no id.
    """
    if not isinstance(session_id, str) or not session_id:
        raise CallerError("a session's id is a text that is not empty; leave it out to get a new one")
    if len(session_id) > ID_MAX_CHARS:
        raise CallerError(f"a session's id has at most {ID_MAX_CHARS} characters, not {len(session_id)}")
    try:
        raw = session_id.encode()
    except UnicodeEncodeError as error:
        raise CallerError(f"the session's id {session_id!r} is not well-formed Unicode") from error
    name = _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], raw).decode()
    if name[0] == ".":
        name = f"~2e{name[1:]}"
    if len(name) > NAME_MAX_CHARS:
        name = f"{name[:_KEPT_CHARS]}~~{hashlib.sha256(raw).hexdigest()[:40]}"
    return name


def session_id_of(name: str) -> str | None:
    """The id behind a directory name; None for a shortened name, whose log says it, and for no such name."""
    if "~~" in name:
        return None
    pieces = _ESCAPE.split(name)
    raw = b"".join(
        piece.encode() if index % 2 == 0 else bytes.fromhex(piece) for index, piece in enumerate(pieces)
    )
    try:
        session_id = raw.decode()
        return session_id if directory_name(session_id) == name else None
    except (UnicodeDecodeError, CallerError):
        return None

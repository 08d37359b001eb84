"""AGENTS.md: what a project tells every agent that works in it, as a part of the system prompt.

The files from the repository's root down to the workspace, the nearest last, because it is the most
particular. The same files give the same bytes, so that a provider's prefix cache can hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..tools.text import clean

NAME: Final = "AGENTS.md"
FILE_MAX: Final = 32 * 1024
"""Bytes of one file that are used."""
TOTAL_MAX: Final = 64 * 1024
"""Bytes of all; the files nearest to the workspace go first."""
CUT: Final = "\n[the rest of this file was left out: it is too long]\n"


@dataclass(frozen=True, slots=True)
class ProjectText:
    """What was found."""

    text: str = ""
    """For the system prompt; empty if there is nothing."""
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()
    """What the user is to be told beside the files' names."""


def project_text(workspace: Path, *, home: Path | None = None) -> ProjectText:
    """The AGENTS.md files for work in a folder.

    They are searched up to the folder that holds ``.git``; without one, in the workspace alone. ``home`` and
    what lies above it are never searched for a repository.
    """
    root = _root(workspace, home)
    found: list[tuple[Path, str]] = []
    notices: list[str] = []
    left = TOTAL_MAX
    for folder in _folders(workspace, root):
        file = folder / NAME
        if not file.is_file():
            continue
        if not file.resolve().is_relative_to(root.resolve()):
            notices.append(f"{file} leads out of the project and was not read")
            continue
        text, cut = _text(file, min(FILE_MAX, left))
        if cut:
            notices.append(f"{file} is too long; its end was left out")
        left -= len(text.encode())
        if text.strip():
            found.append((file, text))
    found.reverse()
    parts = [f"## {file.relative_to(root).as_posix()}\n\n{text.strip()}\n" for file, text in found]
    head = "# What this project asks of agents\n\n"
    return ProjectText(
        text=head + "\n".join(parts) if parts else "",
        files=tuple(file for file, _ in found),
        notices=tuple(notices),
    )


def _root(workspace: Path, home: Path | None) -> Path:
    for folder in (workspace, *workspace.parents):
        if home is not None and folder == home:
            break
        if (folder / ".git").exists():
            return folder
    return workspace


def _folders(workspace: Path, root: Path) -> Iterator[Path]:
    """From the workspace up to the root."""
    for folder in (workspace, *workspace.parents):
        yield folder
        if folder == root:
            return


def _text(file: Path, limit: int) -> tuple[str, bool]:
    """The text, and whether it was cut. A file that cannot be read is as good as none."""
    try:
        with file.open("rb") as source:
            data = source.read(limit + 1)
    except OSError:
        return "", False
    if len(data) <= limit:
        return clean(data.decode(errors="replace")), False
    kept = data[:limit].decode(errors="ignore")
    return clean(kept.rpartition("\n")[0] or kept) + CUT, True

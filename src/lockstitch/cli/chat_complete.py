"""What Tab offers: commands, models, sessions' ids, and paths behind an @."""

from pathlib import Path
from typing import Final

from .chat_commands import COMMANDS
from .chat_talk import Talk

OFFERED: Final = 50
"""Paths at once."""


def candidates(before: str, talk: Talk) -> tuple[int, list[str]]:
    """Where the word under the cursor begins, and what it may become. ``before``: text up to the cursor."""
    start = max(before.rfind(" "), before.rfind("\n")) + 1
    word = before[start:]
    if start == 0 and word.startswith("/"):
        return 0, [f"/{name}" for name in COMMANDS if name.startswith(word[1:])]
    if before.startswith("/model ") and start == len("/model "):
        names = [f"{name}:" for name in talk.around.settings.profiles]
        own = [name for name in talk.around.settings.models if name.startswith(word)]
        return start, own or [name for name in names if name.startswith(word)]
    if word.startswith("@"):
        return start, [f"@{path}" for path in _paths(talk.around.workspace, word[1:])]
    return start, []


def _paths(workspace: Path, word: str) -> list[str]:
    folder, _, name = word.rpartition("/")
    place = workspace / folder if folder else workspace
    try:
        found = sorted(
            entry.name + ("/" if entry.is_dir() else "")
            for entry in place.iterdir()
            if entry.name.startswith(name) and entry.name.isprintable() and " " not in entry.name
        )
    except OSError:
        return []
    shown = [entry for entry in found if name or not entry.startswith(".")]
    return [f"{folder}/{entry}" if folder else entry for entry in shown[:OFFERED]]

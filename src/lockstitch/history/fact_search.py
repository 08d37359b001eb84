"""Reads from the messages that a compaction replaces what must not be lost: files touched, open tasks.

They are taken from tool calls and lists, not from a model's summary, so they survive a summary that forgot
them. What a compaction found is stored with it, and the next one begins from there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..schema.blocks import Text, ToolCall
from ..schema.messages import Message
from ..wire.strict_json import InvalidJson, arguments
from .facts import Facts

MAX_FILES: Final = 100
"""Paths of each list that are carried on; the latest stay."""
MAX_TASKS: Final = 50
MAX_FACT_CHARS: Final = 400
"""Of one path or task."""
MAX_ARGUMENT_CHARS: Final = 1_000_000
"""Arguments that are longer are not searched."""

PATH_FIELDS: Final = frozenset(
    {"path", "file", "file_path", "filepath", "filename", "file_name", "target_file", "notebook_path"}
)
"""Argument names that hold a path, in the built-in tools and in those of other agents."""
READING: Final = re.compile(r"read|view|cat|open|list|ls|glob|grep|search|find|stat|show|head", re.I)
"""Tools of such a name leave a file as it is."""
CHANGING: Final = re.compile(
    r"write|edit|create|patch|replace|insert|delete|move|rename|save|update|append", re.I
)
TASK_TOOLS: Final = re.compile(r"todo|task|plan", re.I)
TASK_TEXTS: Final = ("content", "text", "title", "task", "step", "description")
DONE: Final = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled", "skipped"})
OPEN_BOX: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[( |x|X)\]\s+(\S.*)$", re.M)
_NOTHING: Final = Facts()


def gather(messages: Iterable[Message], before: Facts = _NOTHING) -> Facts:
    """The facts after ``messages``, which follow what ``before`` was gathered from."""
    read: dict[str, None] = dict.fromkeys(before.files_read)
    changed: dict[str, None] = dict.fromkeys(before.files_changed)
    tasks = before.tasks
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolCall):
                given = _arguments(block)
                for path in _paths(given):
                    _touch(changed if _changes(block.name) else read, path)
                listed = _listed(given) if TASK_TOOLS.search(block.name) else None
                tasks = tasks if listed is None else listed
            elif isinstance(block, Text) and message.role in ("user", "assistant") and "[" in block.text:
                boxes = OPEN_BOX.findall(block.text)
                if boxes:  # The latest list is the state of things.
                    tasks = tuple(_short(text) for mark, text in boxes if mark == " ")
    for path in changed:
        read.pop(path, None)
    return Facts(tuple(read)[-MAX_FILES:], tuple(changed)[-MAX_FILES:], tasks[:MAX_TASKS])


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    if len(call.arguments) > MAX_ARGUMENT_CHARS:
        return {}
    try:
        return arguments(call.arguments)
    except InvalidJson:
        return {}


def _paths(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name.lower() in PATH_FIELDS and isinstance(value, str) and value.strip():
            yield _short(value)
        elif name.lower() in ("paths", "files") and isinstance(value, list):
            yield from (_short(item) for item in value if isinstance(item, str) and item.strip())


def _changes(tool: str) -> bool:
    if CHANGING.search(tool):
        return True
    return not READING.search(tool)  # Of an unknown tool the careful guess: it changed what it named.


def _touch(files: dict[str, None], path: str) -> None:
    files.pop(path, None)
    files[path] = None


def _listed(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Open items of a list of tasks; None where the arguments hold no such list."""
    for value in given.values():
        if isinstance(value, list) and any(_task(item) for item in value):
            return tuple(text for item in value if (text := _task(item)) and not _is_done(item))
    return None


def _task(item: Any) -> str:
    if isinstance(item, str):
        return _short(item)
    if isinstance(item, Mapping):
        return next((_short(item[key]) for key in TASK_TEXTS if isinstance(item.get(key), str)), "")
    return ""


def _is_done(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    return (
        str(item.get("status", "")).lower() in DONE
        or item.get("done") is True
        or item.get("completed") is True
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_FACT_CHARS else line[: MAX_FACT_CHARS - 1] + "…"

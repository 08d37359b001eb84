"""What of an event can be searched for, and how words of any script are found."""

import re
from typing import Final, Literal, TypeAlias

from lockstitch.schema.blocks import Block, Reasoning, Text, ToolCall
from lockstitch.schema.events import (
    AssistantMessage,
    Body,
    CompactionSummary,
    InputQueued,
    LegacyCompaction,
    Title,
    ToolFinished,
    UserMessage,
)

TextKind: TypeAlias = Literal["user", "assistant", "result", "summary", "title"]

TEXT_MAX_CHARS: Final = 20_000
"""Of one event; the head and the tail of longer ones, since a result's end says how it went."""
RESULT_MAX_CHARS: Final = 4_000
BREAK: Final = "\u200b"
"""Put between characters of scripts that are written without blanks, so that each is a word of its own."""

_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
_QUERY_PARTS = re.compile(r'"([^"]*)"?|(\S+)')


def searchable(body: Body) -> tuple[TextKind, str] | None:
    """Kind and text of an event that people may look for; None for all others."""
    match body:
        case UserMessage(content=content) | InputQueued(content=content):
            return "user", _cut(_text(content), TEXT_MAX_CHARS)
        case AssistantMessage(content=content):
            return "assistant", _cut(_text(content), TEXT_MAX_CHARS)
        case ToolFinished(content=content):
            return "result", _cut(_text(content), RESULT_MAX_CHARS)
        case CompactionSummary(content=content) | LegacyCompaction(content=content):
            return "summary", _cut(_text(content), TEXT_MAX_CHARS)
        case Title(title=title):
            return "title", title
        case _:
            return None


def spaced(text: str) -> str:
    """The text with a BREAK around each character of a script without blanks."""
    return _UNSPACED.sub(f"{BREAK}\\1{BREAK}", text) if not text.isascii() else text


def match_query(words: str) -> str:
    """What people type as an FTS5 query: all words must occur, the last may be a beginning.

    "Quoted words" must stand side by side. Nothing typed is taken for syntax. Empty: nothing to look for.
    """
    parts = []
    for quoted, word in _QUERY_PARTS.findall(words):
        text = spaced(quoted or word).replace('"', " ").replace("\0", " ")
        if any(character.isalnum() for character in text):
            parts.append((f'"{text}"', not quoted))
    if not parts:
        return ""
    last, may_go_on = parts[-1]
    return " ".join([*(text for text, _ in parts[:-1]), f"{last}*" if may_go_on else last])


def _text(content: tuple[Block, ...]) -> str:
    texts = []
    for block in content:
        match block:
            case Text(text=text) | Reasoning(text=text):
                texts.append(text)
            case ToolCall(name=name, arguments=arguments):
                texts.append(f"{name} {arguments}")
            case _:
                pass
    return "\n".join(texts)


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n…\n{text[-half:]}"

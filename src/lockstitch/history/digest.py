"""The last way out: the last prompts of the user, and a digest of the rest made without any model."""

from collections.abc import Iterable, Sequence
from typing import Final

from ..schema.blocks import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message

HEADING: Final = (
    "[This conversation could not be sent in full. What follows is a digest that was made without a model; "
    "texts are cut short.]"
)
PROMPTS: Final = "[The user's last messages, in full:]"
LINE_CHARS: Final = 300
"""Of one message."""
DIGEST_CHARS: Final = 12_000
"""Of the digest as a whole: about 4,000 tokens, which every model takes."""
PROMPT_COUNT: Final = 3
PROMPT_CHARS: Final = 20_000
"""Of the last prompts together; what is longer keeps head and tail."""


def digested(messages: Sequence[Message], prompts: Sequence[str]) -> list[Message]:
    """Leading system messages as they are, and one user message that holds everything else.

    ``messages`` are a request's, calls flattened to text; ``prompts`` what the user said, in order.
    """
    system = []
    for message in messages:
        if message.role != "system":
            break
        system.append(message)
    lines = digest(messages[len(system) :])
    last = "\n\n".join(prompts[-PROMPT_COUNT:])
    parts = [part for part in (HEADING if lines else "", lines, PROMPTS if last else "") if part]
    text = "\n".join([*parts, cut(last, PROMPT_CHARS)])
    return [*system, Message("user", (Text(text=text.strip() or HEADING),))]


def digest(messages: Iterable[Message], *, max_chars: int = DIGEST_CHARS) -> str:
    """The messages as lines, each cut short; of too many, the first and the last."""
    lines = [f"- {message.role}: {line}" for message in messages if (line := _line(message))]
    if sum(map(len, lines)) <= max_chars:
        return "\n".join(lines)
    head, tail = _fill(lines, max_chars // 3), _fill(lines[::-1], max_chars * 2 // 3)[::-1]
    between = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"- [{between} messages left out]", *tail])


def cut(text: str, max_chars: int) -> str:
    """Head and tail of a text, with a note of how much is missing between them."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def _fill(lines: Sequence[str], max_chars: int) -> list[str]:
    kept: list[str] = []
    room = max_chars
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return kept


def _line(message: Message) -> str:
    texts: list[str] = []
    for block in message.content:
        match block:
            case Text():
                texts.append(block.text)
            case ToolCall():
                texts.append(f"[called {block.name} with {block.arguments}]")
            case ToolResult():
                texts += [part.text for part in block.content if isinstance(part, Text)]
            case Image():
                texts.append("[image]")
            case Reasoning() | Opaque():
                pass
    line = " ".join(" ".join(texts).split())
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} […]"

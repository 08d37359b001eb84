"""A history as plain text: rendered for a summariser, in pieces of a size, or as a digest made by no model.

The digest is the exit that always exists: bounded, made from what is there, and plainly called what it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..schema.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message
from .shorten import cut
from .tokens import text_tokens

LINE_CHARS: Final = 300
"""Of one message in a digest."""
RENDERED_CHARS: Final = 6_000
"""Of one text in a rendered history; a piece may allow less."""
LEAST_CHARS: Final = 80
MARK_CHARS: Final = 40
"""Of the mark between head and tail."""
MAX_ROUNDS: Final = 3
"""How often a history is rendered anew, shorter, to fit its pieces: the cost stays linear."""


def render(message: Message, max_chars: int = RENDERED_CHARS) -> str:
    """One message as text, each of its parts at most ``max_chars`` long; empty if it has no text."""
    parts = [text for block in message.content if (text := _rendered(block, max_chars))]
    if not parts:
        return ""
    speaker = {"user": "User", "assistant": "Assistant", "tool": "", "system": "System"}[message.role]
    return "\n".join([f"{speaker}:" if speaker else "", *parts]).strip()


def pieces(messages: Iterable[Message], piece_tokens: int, max_pieces: int) -> list[str]:
    """The history as at most ``max_pieces`` texts of at most ``piece_tokens`` each, in order.

    Parts of messages are shortened as far as that takes; what then is still too much is left out in the
    middle, where it is missed least, and the text says so.
    """
    rendered = list(messages)
    max_chars = RENDERED_CHARS
    for _ in range(MAX_ROUNDS):
        made = list(_packed((render(message, max_chars) for message in rendered), piece_tokens))
        if len(made) <= max_pieces or max_chars <= LEAST_CHARS:
            break
        max_chars = max(LEAST_CHARS, max_chars * max_pieces // (2 * len(made)))
    if len(made) > max_pieces:
        first, last = max_pieces // 2, max_pieces - max_pieces // 2
        gap = f"[{len(made) - max_pieces} parts of the record are left out here]\n\n"
        made = [*made[:first], gap + made[-last], *made[len(made) - last + 1 :]]
    return made


def digest(messages: Sequence[Message], max_tokens: int) -> str:
    """What was said and done, a line each, the latest last; at most ``max_tokens``, and never empty.

    The first message keeps up to half of it: where a summary stands, it is the only word on what came before.
    """
    opening = ""
    rest = messages
    if messages and messages[0].role == "user":
        opening = bounded(render(messages[0], max_tokens * 4), max_tokens // 2)
        rest = messages[1:]
    left = max_tokens - text_tokens(opening) - 24
    lines: list[str] = []
    omitted = 0
    for place in range(len(rest) - 1, -1, -1):
        line = _line(rest[place])
        if not line:
            continue
        cost = text_tokens(line) + 1
        if cost > left:
            omitted = place + 1
            break
        left -= cost
        lines.append(line)
    gap = f"[{omitted} earlier messages are not listed]" if omitted else ""
    text = "\n".join(filter(None, [opening, gap, *reversed(lines)]))
    return bounded(text, max_tokens) or "[nothing of the earlier conversation can be shown as text]"


def bounded(text: str, max_tokens: int) -> str:
    """The text, or as much of its head and tail as ``max_tokens`` allow."""
    most = max(max_tokens, 1)
    chars = len(text)
    while (tokens := text_tokens(text)) > most:
        chars = min(chars * most // tokens, chars - 1)
        if chars < LEAST_CHARS:
            text = text[:chars]  # Too short for a tail and a mark.
        else:
            text = cut(text, (chars - MARK_CHARS) * 3 // 4, (chars - MARK_CHARS) // 4, "left out")
            chars = min(chars, len(text))
    return text


def _packed(texts: Iterable[str], piece_tokens: int) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for text in texts:
        if not text:
            continue
        cost = min(text_tokens(text) + 1, piece_tokens)
        if held and size + cost > piece_tokens:
            yield "\n\n".join(held)
            held, size = [], 0
        held.append(bounded(text, piece_tokens))
        size += cost
    if held:
        yield "\n\n".join(held)


def _rendered(block: Block, max_chars: int) -> str:
    match block:
        case Text(text=text):
            return _short(text.strip(), max_chars)
        case ToolCall(name=name, arguments=arguments):
            return f"[called {name} with {_short(arguments or '{}', max_chars)}]"
        case ToolResult(content=content, is_error=is_error):
            said = "\n".join(filter(None, (_rendered(part, max_chars) for part in content)))
            return f"[{'failed' if is_error else 'result'}: {said or 'no output'}]"
        case Image():
            return "[an image]"
        case Reasoning() | Opaque():
            return ""


def _line(message: Message) -> str:
    text = " ".join(render(message, LINE_CHARS).split())
    return f"- {_short(text, LINE_CHARS)}" if text else ""


def _short(text: str, max_chars: int) -> str:
    return cut(text, max_chars * 3 // 4, max_chars // 4, "left out")

"""What chat providers want back beside a message that their own model wrote.

- OpenRouter and MiniMax: ``reasoning_details``, a list whose entries stream in pieces and go back in order
  (https://openrouter.ai/docs/use-cases/reasoning-tokens, and MiniMax's
  https://platform.minimax.io/docs/api-reference/text-openai-api).
- Gemini behind a chat endpoint: ``extra_content`` on a tool call, with the signature of the thought behind
  it; a request that repeats the call without it is refused (https://github.com/noho/dayu-agent/issues/45).

Both pages and the report were read on 2026-11-30. Both fields are opaque here: kept as ``Replay`` data of
the block, and given back by ``openai_chat_request``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

DETAILS: Final = "reasoning_details"
EXTRA_CONTENT: Final = "extra_content"

_TEXT_KEYS: Final = ("text", "summary")
_ENTRIES_MAX: Final = 10_000


class ReasoningDetails:
    """Puts the entries of one response together: pieces of one entry follow each other under one type and
    index.
    """

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._texts: list[dict[str, list[str]]] = []
        """For each entry its texts in pieces, so that many pieces are joined once."""

    def add(self, details: Sequence[Any]) -> None:
        """Takes the entries of one delta; what is no object is left out."""
        for detail in details:
            if isinstance(detail, dict) and len(self._entries) < _ENTRIES_MAX:
                self._add(detail)

    def entries(self) -> list[dict[str, Any]]:
        """The whole entries, in order."""
        return [
            {**entry, **{key: "".join(pieces) for key, pieces in texts.items()}}
            for entry, texts in zip(self._entries, self._texts, strict=True)
        ]

    def _add(self, detail: Mapping[str, Any]) -> None:
        texts = {key: text for key in _TEXT_KEYS if isinstance(text := detail.get(key), str)}
        rest = {key: value for key, value in detail.items() if key not in texts}
        last = self._entries[-1] if self._entries else None
        if last is None or not _continues(last, rest):
            self._entries.append(rest)
            self._texts.append({key: [text] for key, text in texts.items()})
            return
        last.update({key: value for key, value in rest.items() if value is not None})
        for key, text in texts.items():
            self._texts[-1].setdefault(key, []).append(text)


def text_of(details: Sequence[Any]) -> str:
    """The readable part of one delta's entries, for servers that send it nowhere else."""
    return "".join(
        text
        for detail in details
        if isinstance(detail, dict)
        for key in _TEXT_KEYS
        if isinstance(text := detail.get(key), str)
    )


def _continues(entry: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Whether a piece belongs to the entry before it. Encrypted data comes whole, so a second is a second
    entry.
    """
    if entry.get("data") is not None and piece.get("data") is not None:
        return False
    same = ("type", "index", "id")
    return all(piece.get(key) is None or entry.get(key) in (None, piece[key]) for key in same)

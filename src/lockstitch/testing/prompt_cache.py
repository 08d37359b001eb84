"""The cached share of each request, as a provider would bill it: what of its prompt was seen before.

Prompts are compared in segments (each tool, each part of the system prompt, each block or message), in the
order in which providers hash them: tools, system, messages. ``anthropic-messages`` caches only up to its
``cache_control`` marks and finds an earlier prefix only near one; the other protocols cache every prefix by
themselves. No provider's smallest size is applied, so that short tests show what long sessions would.

Sources, read 2026-11-30: https://platform.claude.com/docs/en/build-with-claude/prompt-caching, and for OpenAI
https://github.com/openai/openai-cookbook (examples/Prompt_Caching_201.ipynb).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_PREFIXES: Final = 200_000
LOOKBACK: Final = 20  # blocks before a mark that are searched for an earlier prefix
CHARS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Share:
    """Tokens of one prompt, in disjoint parts."""

    fresh: int
    read: int
    write: int

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.write

    def journaled(self) -> dict[str, Any]:
        """For ``GET /requests``; ``share`` is what a cache saved, from 0 to 1."""
        share = round(self.read / self.total, 4) if self.total else 0.0
        return {"prompt": self.total, "read": self.read, "write": self.write, "share": share}


@dataclass(frozen=True, slots=True)
class Segment:
    text: str
    marked: bool
    """A cache mark ends here."""


class PromptCache:
    """Prefixes of the prompts so far, by protocol and model; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}

    def count(self, dialect: str, model: str, body: Mapping[str, Any]) -> Share:
        """What of this prompt a cache holds. Remembers it for the next ones."""
        parts = list(segments(dialect, body))
        digests, ends = _prefixes(f"{dialect} {model}", parts)
        everywhere = dialect != "anthropic-messages"
        marks = [i for i, part in enumerate(parts) if everywhere or part.marked]
        last = marks[-1] if marks else -1
        hit = self._hit(digests, marks, everywhere=everywhere)
        for i in marks:
            self._known[digests[i]] = None
        while len(self._known) > MAX_PREFIXES:
            del self._known[next(iter(self._known))]
        total = _tokens(ends[-1]) if ends else 0
        read = _tokens(ends[hit]) if hit >= 0 else 0
        kept = _tokens(ends[last]) if last >= 0 else 0
        write = 0 if everywhere else max(0, kept - read)
        return Share(fresh=total - read - write, read=read, write=write)

    def _hit(self, digests: list[bytes], marks: list[int], *, everywhere: bool) -> int:
        """Position of the last segment of the longest known prefix; -1 if none is known."""
        if everywhere:
            return next((i for i in reversed(marks) if digests[i] in self._known), -1)
        near = (i for mark in reversed(marks) for i in range(mark, max(-1, mark - LOOKBACK - 1), -1))
        return next((i for i in near if digests[i] in self._known), -1)


def segments(dialect: str, body: Mapping[str, Any]) -> Iterator[Segment]:
    """The prompt of a request in the order in which it is cached."""
    match dialect:
        case "anthropic-messages":
            yield from _anthropic(body)
        case "gemini":
            yield from _plain(body, ("tools", "systemInstruction", "contents"))
        case "openai-responses":
            yield from _plain(body, ("tools", "instructions", "input"))
        case _:
            yield from _plain(body, ("tools", "messages"))


def _plain(body: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[Segment]:
    for key in keys:
        value = body.get(key)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            yield Segment(_text(one), marked=False)


def _anthropic(body: Mapping[str, Any]) -> Iterator[Segment]:
    blocks: list[tuple[str, Any]] = [("tool", tool) for tool in _list(body.get("tools"))]
    blocks += [("system", block) for block in _list(body.get("system"))]
    for message in _list(body.get("messages")):
        if isinstance(message, Mapping):
            role = str(message.get("role"))
            blocks += [(role, block) for block in _list(message.get("content"))]
    for i, (place, block) in enumerate(blocks):
        by_itself = i == len(blocks) - 1 and body.get("cache_control") is not None
        marked = isinstance(block, Mapping) and block.get("cache_control") is not None
        bare = (
            {k: v for k, v in block.items() if k != "cache_control"} if isinstance(block, Mapping) else block
        )
        yield Segment(place + _text(bare), marked=marked or by_itself)


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):  # short for one block of text
        return [{"type": "text", "text": value}]
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _prefixes(start: str, parts: list[Segment]) -> tuple[list[bytes], list[int]]:
    """The digest of each prefix, and its length in characters."""
    running = hashlib.blake2b(start.encode(), digest_size=16)
    digests: list[bytes] = []
    ends: list[int] = []
    end = 0
    for part in parts:
        running.update(b"\0" + part.text.encode("utf-8", "surrogatepass"))
        end += len(part.text)
        digests.append(running.digest())
        ends.append(end)
    return digests, ends


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)

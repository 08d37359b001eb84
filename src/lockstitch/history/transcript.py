"""The transcript: everything ever said in a session, with marks where the model's view of it changed.

Entries are made by ``Context`` in the same fold that makes the live messages, one for each event that adds to
the conversation. They only ever grow at the end: a compaction, a clear or an undo is a mark behind what it
concerns, and nothing is taken back. ``Transcript`` holds the latest; older ones are paged from the log with
``PageFold``, so memory does not grow with the session.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from typing import Final, Literal, TypeAlias

import msgspec

from ..schema.blocks import Block, Reasoning, Text, ToolCall, ToolResult

MAX_ENTRIES: Final = 1_000
"""Entries that are held; and by size, because one may be a whole file."""
MAX_CHARS: Final = 4_000_000
OTHER_CHARS: Final = 1_000
"""What an image or a foreign block counts."""
PAGE_LIMIT: Final = 500
"""Entries of one page at most."""

MarkKind: TypeAlias = Literal["compaction", "legacy_compaction", "clear", "undo"]
EntryRole: TypeAlias = Literal["user", "assistant", "tool", "marker"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that was said, or a mark. Nothing about it ever changes."""

    seq: int
    """Number of its event: where a page begins or ends, stored, and never another's."""
    id: str
    """The message's own, as stored; of results and marks, which have none, their word and number."""
    time_ms: int
    role: EntryRole
    content: tuple[Block, ...] = ()
    """Of a compaction: its summary."""
    kind: MarkKind | None = None
    """Which mark; None for what was said."""
    turn: int = 0
    """Number of the turn it belongs to; 0 before the first."""
    origin: str = ""
    """Of user messages who said it, of answers how they ended, of results the tool's outcome."""
    answers: tuple[int, int] | None = None
    """Of a result: number of the entry with its call, and the call's position there."""
    to_turn: int = 0
    """Of an undo: the first turn that no longer counts."""


class Page(msgspec.Struct, frozen=True):
    """Entries in the order of the conversation, and where to go on."""

    entries: tuple[Entry, ...]
    older: int | None
    """Pass it as ``before`` for the page in front; None: there is nothing in front."""
    newer: int | None
    """Pass it as ``after`` for the page behind, also if that is still empty; None: the session is empty."""


class Transcript:
    """The latest entries, oldest first."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_chars: int = MAX_CHARS) -> None:
        self._entries: deque[tuple[Entry, int]] = deque()
        self._max_entries = max_entries
        self._max_chars = max_chars
        self._chars = 0
        self.count = 0
        """Entries ever, held or not."""
        self.forgotten = -1
        """Number of the latest entry that is no longer held; -1: all are."""

    def add(self, entry: Entry) -> None:
        """Take the next entry. The latest is always held, however large."""
        size = _chars(entry.content)
        self._entries.append((entry, size))
        self._chars += size
        self.count += 1
        while len(self._entries) > self._max_entries or (
            self._chars > self._max_chars and len(self._entries) > 1
        ):
            oldest, freed = self._entries.popleft()
            self._chars -= freed
            self.forgotten = oldest.seq

    def snapshot(self) -> "Transcript":
        """A copy that later entries do not change."""
        other = copy(self)
        other._entries = self._entries.copy()
        return other

    def restore(self, entries: Iterable[Entry], count: int, forgotten: int) -> None:
        """Become the transcript, of the same limits, that held ``entries`` after ``count`` were added."""
        for entry in entries:
            self.add(entry)
        self.count, self.forgotten = count, forgotten

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry, _ in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def latest(self) -> int:
        """Number of the last entry; -1 if there is none."""
        return self._entries[-1][0].seq if self._entries else -1

    def since(self, cursor: int, limit: int = PAGE_LIMIT) -> list[Entry] | None:
        """Up to ``limit`` entries behind ``cursor``, oldest first; None if some are no longer held."""
        if cursor < self.forgotten:
            return None
        found: deque[Entry] = deque(maxlen=limit)  # the oldest ones stay: filled from the right
        for entry, _ in reversed(self._entries):
            if entry.seq <= cursor:
                break
            found.appendleft(entry)
        return list(found)


class PageFold:
    """Finds one page among entries that come in order, holding no more than the page."""

    def __init__(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        roles: Collection[str] | None = None,
    ) -> None:
        """Roles are filtered before entries are counted, so a page is full while there is enough to show.

        With ``after`` the oldest entries behind it, else the latest (those before ``before``).
        """
        self._before = before
        self._after = after
        self.limit = max(1, min(limit, PAGE_LIMIT))
        self._roles = None if roles is None else frozenset(roles)
        self._found: deque[Entry] = deque()
        self._has_older = False
        self._latest: int | None = None

    def take(self, entry: Entry) -> None:
        """The next entry of the transcript."""
        if self._latest is not None and entry.seq <= self._latest:
            return  # seen: where the stored part and the live tail overlap
        self._latest = entry.seq
        if self._roles is not None and entry.role not in self._roles:
            return
        if self._after is not None and entry.seq <= self._after:
            self._has_older = True
            return
        if self._before is not None and entry.seq >= self._before:
            return
        if len(self._found) < self.limit:
            self._found.append(entry)
        elif self._after is None:
            self._found.popleft()
            self._found.append(entry)
            self._has_older = True

    def take_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.take(entry)

    @property
    def page(self) -> Page:
        """The page, once every entry was taken."""
        entries = tuple(self._found)
        if entries:
            return Page(entries, entries[0].seq if self._has_older else None, entries[-1].seq)
        if self._after is not None:
            return Page((), self._after + 1 if self._has_older else None, self._after)
        return Page((), None, self._latest)


def _chars(content: Iterable[Block]) -> int:
    """Roughly what it takes in memory. Asked for every message of a log that is opened."""
    total = 0
    for block in content:
        if type(block) is Text or type(block) is Reasoning:
            total += len(block.text)
        elif type(block) is ToolCall:
            total += len(block.arguments)
        elif type(block) is ToolResult:
            total += _chars(block.content)
        else:
            total += OTHER_CHARS
    return total

"""The index over all sessions of a store: what a listing shows, and the words that were said.

It is disposable. A session is marked while somebody writes it, and read again from where the index stopped
once it is not; so a crash costs nothing but that reading.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw
import msgspec

from lockstitch.schema.events import (
    AssistantMessage,
    AttemptFailed,
    CompactionEnd,
    CompactionSummary,
    Event,
    RequestHeader,
    SessionStart,
    Title,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.usage import Usage

from .index_database import IndexFile
from .index_text import BREAK, match_query, searchable, spaced
from .reports import SearchHit, SessionInfo
from .scan import Damage, Scanner

TITLE_CHARS: Final = 80
MARKS: Final = ("\ue000", "\ue001")
"""Around each word found, in a snippet. Private characters, so that no text is taken for them."""
_SNIPPET_WORDS: Final = 16
Ending: TypeAlias = bytes
ENDING_BYTES: Final = 32
"""Of a record its checksum is among them, which is of its time and content."""

Read = Callable[[int], Iterable[bytes]]
"""Gives the bytes of a log from an offset on, in pieces. May raise OSError, StorageError."""


_STORE: Final = """
INSERT INTO sessions (key, info, stamp, fingerprint, cwd, updated_ms, dirty)
VALUES (:key, :info, :stamp, :fingerprint, :cwd, :updated_ms, :dirty)
ON CONFLICT (key) DO UPDATE SET info = :info, stamp = :stamp, fingerprint = :fingerprint,
    cwd = :cwd, updated_ms = :updated_ms, dirty = :dirty
RETURNING number
"""
_FACTS_OF: Final = "SELECT facts FROM facts JOIN sessions ON number = session WHERE key = ?"


class Facts(msgspec.Struct, omit_defaults=True):
    """What the index knows of one session; it grows with its log."""

    id: str
    path: str = ""
    cwd: str = ""
    parent: str | None = None
    title: str = ""
    prompt: str = ""
    """First line of the first thing a user said."""
    created_ms: int | None = None
    updated_ms: int | None = None
    turns: int = 0
    records: int = 0
    damaged: int = 0
    """Places that are no records, and gaps."""
    torn: int = 0
    """Bytes of an unfinished record at its end, while nobody writes it."""
    bytes: int = 0
    """Up to where the log was read, in whole lines."""
    ending: Ending = b""
    """The last ENDING_BYTES of those: another log in its place does not have them there."""
    last_seq: int = -1
    format: int | None = None
    """Of the records at the end of the log."""
    identity: str = ""
    """Tells the log from another one that was put in its place."""
    fingerprint: str = ""
    """Of the log's file when it was read to its end while nobody wrote it; empty otherwise."""
    stamp: int | None = None
    """The store's own number for the state of the log, if it has one."""
    model: str = ""
    usage: dict[str, Usage] = {}
    """By ``provider:model``."""

    def info(self) -> SessionInfo:
        total = Usage()
        for usage in self.usage.values():
            total += usage
        return SessionInfo(
            id=self.id,
            path=self.path,
            cwd=self.cwd,
            created_ms=self.created_ms,
            updated_ms=self.updated_ms,
            bytes=self.bytes,
            title=self.title or self.prompt,
            parent=self.parent,
            turns=self.turns,
            usage=total,
            usage_by_model=dict(self.usage),
            problem=self._problem(),
        )

    def _problem(self) -> str | None:
        if self.records == 0:
            return "its log holds no whole record"
        if self.damaged:
            return f"{self.damaged} damaged places in its log"
        return "its log ends in an unfinished record" if self.torn else None


Known: TypeAlias = tuple[str, int, int | None, str]
"""What a listing has to know of one session: its key; not 0 if its log may have grown since it was read; its
stamp and fingerprint, see Facts. As rows come: ten thousand objects of our own would take as long again."""


class SessionIndex:
    """Sessions by ``key``, the name that the store gives them. All methods may be called from any thread.

    All raise apsw.Error and OSError if the index cannot be used; nothing but speed and search depends on it.
    """

    def __init__(self, path: Path) -> None:
        self._file = IndexFile(path)

    def mark(self, key: str) -> None:
        """From here on the session's log may grow."""
        self._file.run(lambda connection: _mark(connection, key), write=True)

    def known(self) -> list[Known]:
        """All sessions, the latest first."""
        query = "SELECT key, dirty, stamp, fingerprint FROM sessions ORDER BY updated_ms DESC, key"
        rows: list[Any] = self._file.run(lambda connection: connection.execute(query).fetchall())
        return rows

    def infos(self) -> list[SessionInfo]:
        """What a listing shows of all sessions, the latest first."""
        query = "SELECT info FROM sessions ORDER BY updated_ms DESC, key"
        # One by one: joined to one text, megabytes are copied and no cache holds them any more.
        return self._file.run(lambda connection: [_info(info) for (info,) in connection.execute(query)])

    def known_of(self, key: str) -> Facts | None:
        """What is known of one session."""

        def work(connection: apsw.Connection) -> Facts | None:
            facts = connection.execute(_FACTS_OF, (key,)).get
            return None if facts is None else _decoder.decode(facts)

        return self._file.run(work)

    def catch_up(self, key: str, facts: Facts, read: Read, *, size: int, dirty: bool) -> Facts | None:
        """Read what the log holds behind ``facts``, and know it from now on. ``facts`` is used up.

        ``size``: bytes of the log, as of before. ``dirty``: it may go on growing.
        None if the log does not have there what was read last: it is another one. Raises what ``read``
        raises. Either way nothing is changed then.
        """
        added = _Added(facts)
        pieces = iter(read(facts.bytes - len(facts.ending)))
        behind = _behind(pieces, facts.ending)
        if behind is None:
            return None
        for piece in chain((behind,), pieces):
            added.feed(piece)
        facts.torn = 0 if dirty else max(size - facts.bytes, 0)
        self._file.run(lambda connection: _store(connection, key, added, dirty=dirty), write=True)
        return facts

    def forget(self, keys: Iterable[str]) -> None:
        """These sessions are gone, or have to be read from their beginning."""
        gone = [(key,) for key in keys]
        if gone:
            query = "DELETE FROM sessions WHERE key = ?"
            self._file.run(lambda connection: connection.executemany(query, gone), write=True)

    def search(self, words: str, *, cwd: str | None = None, limit: int = 20) -> list[SearchHit]:
        """The best places where all ``words`` occur, with the words marked by MARKS.

        ``cwd`` keeps to sessions of that folder and below. See ``index_text.match_query`` for the words.
        """
        query = match_query(words)
        if not query or limit <= 0:
            return []
        return self._file.run(lambda connection: list(_hits(connection, query, cwd, limit)))

    def close(self) -> None:
        self._file.close()


_info: Final = msgspec.json.Decoder(SessionInfo).decode
_decoder: Final = msgspec.json.Decoder(Facts)
_encoder: Final = msgspec.json.Encoder()


class _Added:
    """What one reading adds to the facts and to the searchable texts.

    What follows the last newline is left for the next reading: it may be half of an append.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.texts: list[tuple[int, int, str, str]] = []
        self._start = facts.bytes
        self._ending = facts.ending
        self._scanner = Scanner(after=facts.last_seq, format_version=facts.format)

    def feed(self, piece: bytes) -> None:
        for item in self._scanner.feed(piece):
            if isinstance(item, Damage):
                self.facts.damaged += 1
            else:
                self._event(item)
        self.facts.bytes = self._start + self._scanner.offset
        end = piece.rfind(b"\n") + 1
        if end:
            self.facts.ending = (self._ending + piece[:end])[-ENDING_BYTES:]
            self._ending = b""
        self._ending = (self._ending + piece[end:])[-ENDING_BYTES:]

    def _event(self, event: Event) -> None:
        facts = self.facts
        facts.records += 1
        facts.last_seq = max(facts.last_seq, event.seq)
        facts.updated_ms = event.time_ms
        if facts.created_ms is None:
            facts.created_ms = event.time_ms
        match event.body:
            case SessionStart(format=format_version, cwd=cwd, parent=parent):
                facts.format, facts.cwd, facts.parent = format_version, cwd, parent
            case TurnStart(turn=turn):
                facts.turns = max(facts.turns, turn)
            case Title(title=title):
                facts.title = _line(title)
            case RequestHeader(provider=provider, model=model):
                facts.model = f"{provider}:{model}"
            case UserMessage(origin="user") if not facts.prompt:
                facts.prompt = _line((searchable(event.body) or ("", ""))[1])
            case AssistantMessage(usage=usage, provider=provider, model=model):
                self._count(usage, f"{provider}:{model}" if provider and model else facts.model)
            case AttemptFailed(usage=usage) | CompactionSummary(usage=usage) | CompactionEnd(usage=usage):
                self._count(usage, facts.model)
            case _:
                pass
        if (found := searchable(event.body)) is not None and found[1]:
            self.texts.append((event.seq, event.time_ms, *found))

    def _count(self, usage: Usage | None, model: str) -> None:
        if usage is not None:
            self.facts.usage[model] = self.facts.usage.get(model, Usage()) + usage


def _behind(pieces: Iterator[bytes], ending: bytes) -> bytes | None:
    """What of the first pieces, as many as it takes, is behind ``ending``; None if they begin otherwise."""
    held = b""
    while len(held) < len(ending) and (piece := next(pieces, b"")):
        held += piece
    return held[len(ending) :] if held.startswith(ending) else None


def _line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1] + "…"


def _mark(connection: apsw.Connection, key: str) -> None:
    connection.execute("UPDATE sessions SET dirty = 1 WHERE key = ?", (key,))


def _store(connection: apsw.Connection, key: str, added: _Added, *, dirty: bool) -> None:
    facts = added.facts
    row = {
        "key": key,
        "info": _encoder.encode(facts.info()),
        "stamp": facts.stamp,
        "fingerprint": facts.fingerprint,
        "cwd": facts.cwd,
        "updated_ms": facts.updated_ms or 0,
        "dirty": int(dirty),
    }
    number = connection.execute(_STORE, row).get
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (number, _encoder.encode(facts)))
    for seq, time_ms, kind, text in added.texts:
        place = (number, seq, time_ms, kind)
        connection.execute("INSERT INTO texts (session, seq, time_ms, kind) VALUES (?, ?, ?, ?)", place)
        word = (connection.last_insert_rowid(), spaced(text))
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", word)


def _hits(connection: apsw.Connection, query: str, cwd: str | None, limit: int) -> Iterator[SearchHit]:
    best = connection.execute(
        "SELECT words.rowid FROM words JOIN texts ON texts.number = words.rowid "
        "JOIN sessions ON sessions.number = texts.session "
        "WHERE words MATCH ?1 AND (?2 IS NULL OR cwd = ?2 OR substr(cwd, 1, length(?2) + 1) = ?2 || '/') "
        "ORDER BY words.rank, words.rowid DESC LIMIT ?3",
        (query, None if cwd is None else cwd.rstrip("/"), limit),
    ).fetchall()
    for (number,) in best:  # snippets are dear: only of these
        row = connection.execute(
            "SELECT facts, seq, time_ms, kind, snippet(words, 0, ?, ?, '…', ?) "
            "FROM words JOIN texts ON texts.number = words.rowid JOIN facts ON facts.session = texts.session "
            "WHERE words MATCH ? AND words.rowid = ?",
            (*MARKS, _SNIPPET_WORDS, query, number),
        ).fetchone()
        assert row is not None  # found a moment ago, in the same connection
        facts, seq, time_ms, kind, snippet = row
        known = _decoder.decode(facts)
        yield SearchHit(
            id=known.id,
            title=known.title or known.prompt,
            cwd=known.cwd,
            seq=seq,
            time_ms=time_ms,
            kind=kind,
            snippet=snippet.replace(f"{MARKS[1]}{BREAK}{MARKS[0]}", "").replace(BREAK, ""),
        )

"""Listing and searching a store by its index: only sessions that the index does not know are looked at."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import apsw

from lockstitch.schema.errors import StorageError

from .index import Facts, SessionIndex
from .reports import Hits, Listing, SessionInfo, latest_first

VERIFIED_MAX: Final = 200
"""Of the sessions that nobody wrote since they were indexed, only the latest are looked at for changes."""
INDEX_NAME: Final = ".index.sqlite"
"""In the directory of the sessions; it begins with a dot, so it is none."""


class Source(Protocol):
    """One session, as the index has to look at it."""

    def fresh(self) -> Facts:
        """What is known of it without reading its log."""
        ...

    def exists(self) -> bool:
        """Whether it is a session at all."""
        ...

    def state(self) -> tuple[str, int]:
        """What tells its log from another in its place, and the log's bytes. Raises OSError, StorageError."""
        ...

    def fingerprint(self) -> str:
        """Changes whenever the log does; empty where ``present`` says that already. Raises OSError."""
        ...

    def read(self, offset: int) -> Iterable[bytes]:
        """The log from there on, in pieces. Raises OSError, StorageError."""
        ...

    def busy(self) -> bool:
        """Whether a process writes it now."""
        ...


def list_sessions(
    index: SessionIndex,
    present: Mapping[str, int | None],
    source: Callable[[str], Source],
) -> Listing:
    """The sessions of a store, the latest first.

    ``present`` holds their keys, with a number that changes with each of their logs where the store has one.
    What the index does not know yet, or not any more, is read; what is gone is forgotten. Raises apsw.Error
    and OSError if the index cannot be used; a session that cannot be read is listed with its problem.
    """
    problems = bring_up_to_date(index, present, source)
    infos = index.infos()
    return latest_first([*infos, *problems]) if problems else infos


def bring_up_to_date(
    index: SessionIndex, present: Mapping[str, int | None], source: Callable[[str], Source]
) -> list[SessionInfo]:
    """Read what the index does not know; the lines of sessions that cannot be read. See ``list_sessions``."""
    known = index.known()
    index.forget([key for key, *_ in known if key not in present])
    unknown = dict(present)
    problems: list[SessionInfo] = []
    settled = 0
    for key, dirty, stamp, fingerprint in known:
        if key not in unknown:
            continue
        now = unknown.pop(key)
        if dirty or (now is not None and now != stamp):
            problems += _look(index, key, index.known_of(key), now, source(key))
        elif settled < VERIFIED_MAX:
            settled += 1
            problems += _verify(index, key, fingerprint, now, source(key))
    for key, now in unknown.items():
        problems += _look(index, key, None, now, source(key))
    return problems


def search_sessions(
    index: SessionIndex,
    present: Mapping[str, int | None],
    source: Callable[[str], Source],
    *,
    words: str,
    cwd: str | None,
    limit: int,
) -> Hits:
    """Places where all words occur, after the index was brought up to date. Raises StorageError."""
    try:
        bring_up_to_date(index, present, source)
        return index.search(words, cwd=cwd, limit=limit)
    except (apsw.Error, OSError) as error:
        raise StorageError(
            f"the index of the sessions cannot be used, so they cannot be searched: {error}. "
            "It can be deleted: it is made anew"
        ) from error


def refreshed(
    index: SessionIndex, key: str, known: Facts | None, source: Source, *, stamp: int | None = None
) -> Facts:
    """What is known of a session after its log was read on to its end.

    Raises apsw.Error if the index cannot be used; OSError, StorageError if the log cannot be read.
    """
    busy = source.busy()
    identity, size = source.state()

    def caught_up(facts: Facts) -> Facts | None:
        facts.identity, facts.stamp = identity, stamp
        facts.fingerprint = "" if busy else source.fingerprint()
        return index.catch_up(key, facts, source.read, size=size, dirty=busy)

    if known is not None:
        if size >= known.bytes and identity == known.identity and (found := caught_up(known)) is not None:
            return found
        index.forget([key])  # another log is in its place
    anew = caught_up(source.fresh())
    assert anew is not None  # nothing was read of it that would have to be there
    return anew


def _verify(
    index: SessionIndex, key: str, fingerprint: str, stamp: int | None, source: Source
) -> list[SessionInfo]:
    """One that should be as it was: damage on the disk is told when somebody looks at recent sessions."""
    try:
        if source.fingerprint() == fingerprint:
            return []
    except OSError:
        pass  # it is told below, where it is read
    index.forget([key])
    return _look(index, key, None, stamp, source)


def _look(
    index: SessionIndex, key: str, facts: Facts | None, stamp: int | None, source: Source
) -> list[SessionInfo]:
    """Read a session on; its line if it cannot be, nothing if it could or turns out to be no session."""
    if facts is None and not source.exists():
        return []
    try:
        refreshed(index, key, facts, source, stamp=stamp)
    except (OSError, StorageError) as error:
        index.forget([key])
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fresh = source.fresh()
        return [SessionInfo(id=fresh.id, path=fresh.path, problem=f"its log cannot be read: {reason}")]
    return []

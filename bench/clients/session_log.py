"""Reads and writes session logs, the parts of Lockstitch and the least that each must do; see worker.py.

An order is `{"events": N}` with what a contender needs besides. Logs are made before the measure, by
`long_logs`, in a folder that goes away with the process.
"""

import asyncio
import atexit
import functools
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import histories
import long_logs
import msgspec
import worker

if TYPE_CHECKING:
    from lockstitch.schema.events import Body
    from lockstitch.session.store import SessionLog

FOLDER = Path(tempfile.mkdtemp(prefix="bench-log-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


NEVER = 1 << 60
"""So much must be appended before a checkpoint is written: a measured opening leaves things as they are."""


@functools.cache
def _stored(options: tuple[tuple[str, Any], ...]) -> Path:
    return long_logs.make(FOLDER / os.urandom(4).hex(), dict(options))


def stored(order: Mapping[str, Any]) -> Path:
    """A folder of sessions that holds the one of the order, under the id "bench"."""
    return _stored(tuple(sorted(order.items())))


def decode_floor() -> worker.Contender:
    """The same bytes, read whole, split, and decoded with msgspec into the same types; nothing is checked."""
    from lockstitch.schema.events import KINDS

    records = tuple(
        msgspec.defstruct(
            f"Record_{kind}",
            [("seq", int), ("time_ms", int), ("data", body), ("needed", bool, True)],
            tag_field="kind",
            tag=kind,
        )
        for kind, body in KINDS.items()
    )
    union: Any = records[0]
    for record in records[1:]:
        union |= record
    decoder = msgspec.json.Decoder(union)

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        for line in (stored(order) / "bench" / "log.jsonl").read_bytes().split(b"\n"):
            if line:
                decoder.decode(line)
                seen += 1
        return seen

    return read


def open_session() -> worker.Contender:
    """Opening for writing, as an agent does: lock, scan, checksums, gate, and everything that it folds."""
    from lockstitch.agent.session_fold import SessionFold
    from lockstitch.session.file_store import FileStore

    async def read(order: Mapping[str, Any]) -> int:
        store = FileStore(stored(order), save_after_bytes=NEVER)
        log = await store.open("bench", create=False, fold=SessionFold())
        records = log.state.next_seq
        await log.close()
        await store.close()
        return records

    return read


def write_floor() -> worker.Contender:
    """The same lines, each written and made durable with fdatasync by the loop's default executor."""

    async def write(order: Mapping[str, Any]) -> int:
        lines = list(histories.lines(order["events"]))
        path = FOLDER / f"floor-{os.urandom(4).hex()}"
        loop = asyncio.get_running_loop()
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

        def durable(line: bytes) -> None:
            os.write(fd, line)
            os.fdatasync(fd)

        for line in lines:
            await loop.run_in_executor(None, durable, line)
        os.close(fd)
        return len(lines)

    return write


def _appender(flush_every: int) -> worker.Contender:
    from lockstitch.session.file_store import FileStore

    async def write(order: Mapping[str, Any]) -> int:
        store = FileStore(FOLDER / f"sessions-{os.urandom(4).hex()}")
        log = await store.open("bench", cwd="/home/user/project")
        source = histories.bodies()
        next(source)  # the store writes the session's start itself
        for number in range(1, order["events"]):
            log.append(next(source))
            if number % flush_every == 0:
                await log.flush()
        await log.flush()
        seen = log.state.next_seq
        await log.close()
        await store.close()
        return seen

    return write


def _sqlite_appender(sessions: int) -> worker.Contender:
    """The SQLite store: so many sessions append an event each, and all wait together for it.

    They stay open from one order to the next, so that opening them is not measured.
    """
    from lockstitch.session.sqlite_store import SqliteStore

    store = SqliteStore(FOLDER / f"sessions-{sessions}.db")
    logs: list[tuple[SessionLog, Iterator[Body]]] = []

    async def write(order: Mapping[str, Any]) -> int:
        for number in range(len(logs), sessions):
            logs.append((await store.open(f"s{number}"), itertools.islice(histories.bodies(), 1, None)))
        written = 0
        for _ in range(order["events"] // sessions):
            for log, source in logs:
                written += len(log.append(next(source)))
            await asyncio.gather(*(log.flush() for log, _ in logs))
        return written

    return write


if __name__ == "__main__":
    worker.main(
        {
            "decode": decode_floor,
            "open": open_session,
            "write + fdatasync": write_floor,
            "append, each flushed": functools.partial(_appender, 1),
            "append, flushed by the hundred": functools.partial(_appender, 100),
            "SQLite, each flushed": functools.partial(_sqlite_appender, 1),
            "SQLite, a hundred sessions together": functools.partial(_sqlite_appender, 100),
        }
    )

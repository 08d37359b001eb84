"""Lists and searches a folder of many sessions, and reads it all for comparison; see worker.py.

An order is `{"folder": PATH, "sessions": N, "repeat": N}`. The first contender that is run makes the folder.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import worker

from lockstitch.schema.blocks import Text
from lockstitch.schema.events import (
    AssistantMessage,
    AttemptStart,
    Body,
    RequestHeader,
    SessionStart,
    StepEnd,
    StepStart,
    Title,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.usage import Usage
from lockstitch.session.file_store import FileStore
from lockstitch.wire.jsonl import encode

TIME_MS = 1_760_000_000_000
TURNS = 5
RARE = 1_000
"""Every how many sessions hold the word that is searched for."""
WORD = "needle"


def library(order: Mapping[str, Any]) -> Path:
    """The folder of sessions, made if it is not there yet. Nothing is synced: this is not measured."""
    root = Path(order["folder"]) / "sessions"
    if not root.exists():
        root.mkdir(mode=0o700)
        for number in range(order["sessions"]):
            session = root / f"session-{number:05d}"
            session.mkdir(mode=0o700)
            lines = (encode(seq, TIME_MS + seq, body) for seq, body in enumerate(_bodies(number)))
            (session / "log.jsonl").write_bytes(b"".join(lines))
    return root


def _bodies(number: int) -> Iterator[Body]:
    yield SessionStart(1, f"session-{number:05d}", f"/home/user/project-{number % 50}")
    yield RequestHeader("generic", "m")
    yield Title(f"Work on part {number}")
    for turn in range(1, TURNS + 1):
        special = WORD if number % RARE == 0 and turn == TURNS else "thing"
        yield TurnStart(turn)
        yield UserMessage(f"u{turn}", (Text(text=f"Please look at {special} {turn} of part {number}."),))
        yield StepStart(turn, 1)
        yield AttemptStart(turn, 1, 1)
        answer = "It is done as far as this part goes, and the rest was left as it is. " * 4
        yield AssistantMessage(f"m{turn}", (Text(text=answer),), "stop", "generic", "m", Usage(900, 80))
        yield StepEnd(turn, 1)
        yield TurnEnd(turn, "completed")


def list_all() -> worker.Contender:
    async def work(order: Mapping[str, Any]) -> int:
        store = FileStore(library(order))
        seen = 0
        for _ in worker.repeats(order):
            seen = len(await store.list())
        await store.close()
        return seen

    return work


def search() -> worker.Contender:
    async def work(order: Mapping[str, Any]) -> int:
        store = FileStore(library(order))
        await store.list()
        seen = 0
        for _ in worker.repeats(order):
            seen = len(await store.search(WORD, limit=100))
        await store.close()
        return seen

    return work


def read_all() -> worker.Contender:
    """Every log is read and every line decoded, as a listing or a search without an index would have to."""

    async def work(order: Mapping[str, Any]) -> int:
        seen = 0
        for path in library(order).glob("*/log.jsonl"):
            for line in path.read_bytes().splitlines():
                record = json.loads(line)
                seen += record["kind"] == "session_start"
        return seen

    return work


if __name__ == "__main__":
    worker.main({"list": list_all, "search": search, "read": read_all})

"""Long sessions of every kind of move, killed with SIGKILL: a checkpoint shows nothing that the log does not.

    python tests/crash/long_sessions_killed.py --kills 200

A victim goes on with one session: turns with tools that fail, answers that break off, refusals that teach
something, steering, cancelling, undo, rewind, clear, compaction, another model. Whenever it was killed, or
has ended, forks look at what it left: one as it is, one without the checkpoint, one with an older one, and
one that makes checkpoints at every turn. All that can be seen, then and after some more moves, has to be the
same: what is shown and counted, what a model is sent, and the bytes of the log.
"""

import argparse
import asyncio
import itertools
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from turns_killed import in_fork

from lockstitch.agent import driver
from lockstitch.agent.api import Agent
from lockstitch.agent.session import Session
from lockstitch.agent.session_fold import SessionFold
from lockstitch.llm.retry import RetryPolicy
from lockstitch.providers.catalog import profiles
from lockstitch.schema.blocks import Block, Image, Text, UrlSource
from lockstitch.schema.errors import LockstitchError
from lockstitch.session import log_reading
from lockstitch.session.checkpoint_file import CHECKPOINT_NAME, write_checkpoint
from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_store import FileStore
from lockstitch.session.housekeeping import fork
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionKeeper
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.tools import run as tool_run
from lockstitch.tools.functions import Tool, tool

sys.path.insert(0, str(Path(__file__).parents[1] / "spec"))
from sound_logs import fold_values

PROFILES: Final = ("generic", "anthropic", "openai-responses", "gemini")
WORDS: Final = "größe 你好 \U0001f600 of the till \\ and more "
ANSWERS: Final[tuple[dict[str, Any], ...]] = (
    {"tool_calls": [{"name": "mark", "arguments": {"n": 3}}, {"name": "mark", "arguments": {"n": 40}}]},
    {
        "tool_calls": [
            {"name": "fail", "arguments": {}, "id": "x"},
            {"name": "none", "arguments": {}, "id": "x"},
        ]
    },
    {"tool_calls": [{"name": "mark", "arguments": '{"n": 1'}], "text": "wait", "reasoning": "hm " * 30},
    {"text": WORDS * 20, "chunk_chars": 9},
    {"text": WORDS, "usage": {"input_tokens": 2**40, "output_tokens": 9}, "event_delay_ms": 1},
    {"text": WORDS * 9, "reasoning": "hm " * 90},
    {"text": WORDS * 30, "cut_after": 300},
    {"text": WORDS, "finish": "length"},
    {"status": 500, "error": {"message": "broken"}},
    {
        "status": 400,
        "error": {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"},
    },
    {"status": 400, "error": {"message": "image input is not supported by this model"}},
    {"status": 400, "error": {"message": "messages: text content blocks must be non-empty"}},
)
MOVES: Final = (
    "undo",
    "undo far",
    "rewind",
    "clear",
    "compact",
    "steer",
    "rename",
    "resume",
    "send",
    "send",
    "send",
)


async def mark(n: int) -> str:
    """Do something."""
    await asyncio.sleep(0.0005)
    return f"marked {n} {WORDS * n}"


TOGETHER: Final = tool(parallel=True)(mark)
ALONE: Final = tool()(mark)


KILLS_OF_ONE: Final = 4
"""Kills before another session is begun: each look is as long as the session is."""


@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


class Place(NamedTuple):
    """Where a session lies, and how often it is saved."""

    folder: Path
    kind: str
    save_after_bytes: int

    def store(self, save_after_bytes: int | None = None) -> SessionKeeper:
        after = self.save_after_bytes if save_after_bytes is None else save_after_bytes
        if self.kind == "sqlite":
            return SqliteStore(self.folder / "s.db", durable=False, save_after_bytes=after)
        return FileStore(self.folder / "sessions", calls=Unsynced(), save_after_bytes=after)

    @property
    def checkpoint(self) -> Path:
        return self.folder / ("s.db-locks" if self.kind == "sqlite" else "sessions") / "s" / CHECKPOINT_NAME


class Unsynced(FileCalls):
    """What was written outlives a killed process anyway."""

    def sync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


def agent_of(store: SessionKeeper, chance: random.Random, mark: Tool) -> Agent:
    answers = {"answers": chance.choices(ANSWERS, k=40), "then": {"text": WORDS}}
    model = ScriptedModel(answers, profile=chance.choice(PROFILES), model=chance.choice(("one", "two")))
    tools = chance.sample((mark, fail), chance.randint(1, 2))
    return Agent(model, tools=tools, store=store, environ={}, retry=RetryPolicy(initial_delay_s=0.001))


async def move(session: Session, chance: random.Random, *, leave: bool) -> None:
    """One of the things that a session can be told to do; it may refuse. ``leave``: maybe in the middle."""
    match chance.choice(MOVES):
        case "undo":
            await session.undo()
        case "undo far":
            await session.undo(chance.randint(2, 12))
        case "rewind":
            await session.rewind(chance.randint(0, 60))
        case "clear":
            await session.clear()
        case "compact":
            await session.compact()
        case "steer":
            await session.steer(WORDS)
        case "rename":
            await session.rename(f"title {chance.random()}")
        case "resume":
            await session.resume().result()
        case _:
            await send(session, chance, leave=leave)


async def send(session: Session, chance: random.Random, *, leave: bool) -> None:
    said: list[Block] = [Text(text=f"{chance.random()} {WORDS * chance.randint(0, 20)}")]
    if chance.random() < 0.2:
        said.append(Image("image/png", UrlSource("https://example.com/a.png")))
    leave_at, steer_at = chance.randint(1, 200), chance.randint(1, 20)
    turn = session.send(said)
    number = 0
    async for _ in turn:
        number += 1
        if number == steer_at:
            await session.steer(WORDS)
        if leave and number == leave_at:
            turn.cancel()


# --- the victim --------------------------------------------------------------------------------------------


def live(place: Place, seed: int, kept: Path) -> None:
    """Go on with the session; each of its checkpoints is ``kept`` as well."""
    chance, numbers = random.Random(seed), itertools.count(time.time_ns())

    def write(*arguments: Any) -> int:
        size = write_checkpoint(*arguments)
        if place.checkpoint.exists():
            shutil.copy(place.checkpoint, kept / str(next(numbers)))
        return size

    log_reading.write_checkpoint = write  # in this process only

    async def go_on() -> None:
        store = place.store()
        for _ in range(3):
            async with agent_of(store, chance, TOGETHER).open("s") as session:
                for _ in range(9):
                    await tried(move(session, chance, leave=True))
        await store.close()

    asyncio.run(go_on())


async def tried(work: Any) -> str:
    try:
        await work
    except LockstitchError as error:
        return repr(error)
    return ""


# --- what can be seen --------------------------------------------------------------------------------------


def look(place: Place, seed: int, save_after_bytes: int, spoil: Callable[[], object], to: Path) -> None:
    """Write ``to`` everything that can be seen of the session, now and after some more moves."""
    spoil()
    hold_still(seed)
    restored: list[int] = []
    restore = SessionFold.restore

    def counted(self: SessionFold, data: bytes | memoryview, next_seq: int) -> None:
        restore(self, data, next_seq)
        restored.append(next_seq)

    SessionFold.restore = counted  # type: ignore[method-assign]  # in this process only
    found = asyncio.run(_look(place, random.Random(seed), save_after_bytes))
    to.write_text(f"{bool(restored)}\n" + "\n".join(found))


def hold_still(seed: int) -> None:
    """Time, chance and names are the same in each process that looks."""
    numbers = itertools.count()
    time.time_ns = lambda: 2_000_000_000_000_000_000
    random.random = random.Random(seed).random
    secrets.token_hex = lambda _bytes=None: f"{next(numbers):012x}"
    tool_run.time = SimpleNamespace(monotonic=lambda: 0.0)  # type: ignore[assignment]  # in this process only
    driver.EVERY_MS = 10**9  # type: ignore[misc]  # in this process only


async def _look(place: Place, chance: random.Random, save_after_bytes: int) -> list[str]:
    store = place.store(save_after_bytes)
    found = [repr(await store.list()), repr(await store.check("s"))]
    for _ in range(2):
        agent = agent_of(store, chance, ALONE)
        async with agent.open("s") as session:
            found.append(await shown(session))
            found.append(await tried(move(session, chance, leave=False)))
            found.append(await tried(send(session, chance, leave=False)))
            found.append(await shown(session))
        found.append(repr(agent._model.requests))  # type: ignore[union-attr]  # a scripted one has them
    await fork(store, "s", "forked")
    async with agent_of(store, chance, ALONE).open("forked") as session:
        found.append(await shown(session))
    pieces: list[bytes] = []
    await store.copy_log("s", pieces.append)
    found += [repr(b"".join(pieces)), repr(await store.list()), repr(await store.search("till"))]
    await store.close()
    return found


async def shown(session: Session) -> str:
    page = await session.transcript.page(limit=40)
    pages = [page]
    while page.older is not None and len(pages) < 5:
        page = await session.transcript.page(before=page.older, limit=40)
        pages.append(page)
    fold = fold_values(session._parts.world.fold)
    del fold["context"]["epoch"]  # counts foldings of the log, too
    values = (
        session.report,
        [(message, session.is_prompt(message)) for message in session.messages],
        (session.title, session.usage, session.context_tokens, session.context_window, session.queued),
        (session._parts.log.state, pages, fold),
    )
    return repr(in_order(values))


def in_order(value: Any) -> Any:
    """The same without sets, whose order tells how they were made."""
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    return [in_order(item) for item in value] if type(value) in (list, tuple) else value


# --- comparing ---------------------------------------------------------------------------------------------


def compare(place: Place, seed: int, kept: Path, work: Path) -> tuple[bool, str]:
    """Whether a checkpoint was used at all, and what was seen otherwise with one than without."""
    older = sorted(kept.iterdir())
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "without": (1 << 40, lambda: place.checkpoint.unlink(missing_ok=True)),
        "with": (1 << 40, lambda: None),
        "with more": (1, lambda: None),
    }
    if older:
        one = random.Random(seed).choice(older)
        ways["with an older one"] = (1 << 40, lambda: shutil.copy(one, place.checkpoint))
    before, seen, used = work / "before", work / "seen", False
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(place.folder, before)
    expected = ""
    problems = []
    for way, (after, spoil) in ways.items():
        status, problem = in_fork(lambda _, after=after, spoil=spoil: look(place, seed, after, spoil, seen))  # type: ignore[misc]  # bound now
        shutil.rmtree(place.folder)
        shutil.copytree(before, place.folder)
        if status:
            problems.append(f"{way}: {problem}")
            continue
        restored, _, found = seen.read_text().partition("\n")
        used = used or (way != "with more" and restored == "True")
        expected = expected or found
        if found != expected:
            pairs = enumerate(zip(found, expected, strict=False))
            at = next((at for at, (one, other) in pairs if one != other), min(len(found), len(expected)))
            around = slice(max(at - 80, 0), at + 80)
            problems.append(f"{way}: {found[around]!r} instead of {expected[around]!r}")
    return used, "\n".join(problems)


def another_session(work: Path, number: int, chance: random.Random) -> tuple[Path, Place]:
    kind = ("files", "sqlite")[number % 2]
    place = Place(work / f"place{number}", kind, chance.choice((1, 4096, 65536)))
    kept = work / f"kept{number}"
    place.folder.mkdir()
    kept.mkdir()
    return kept, place


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    profiles()  # read once, before the forks
    chance, used, failed = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for number in range(options.kills):
            if number % KILLS_OF_ONE == 0:
                kept, place = another_session(work, number // KILLS_OF_ONE, chance)
            lived, looked = chance.randrange(2**32), chance.randrange(2**32)
            victim = partial(live, place, lived, kept)
            status, problem = in_fork(
                lambda _, victim=victim: victim(), chance.choice((None, chance.random()))
            )  # type: ignore[misc]  # bound now
            if not os.WIFEXITED(status):
                problem = ""  # it was killed, and may have been in the middle of saying something
            if not problem and place.checkpoint.exists():
                was_used, problem = compare(place, looked, kept, work)
                used += was_used
            if problem:
                failed += 1
                print(f"kill {number} of seed {seed}: {problem}", flush=True)
    print(f"{options.kills} kills (seed {seed}), {used} looked at behind a checkpoint: {failed} failed")
    return 1 if failed or not used else 0


if __name__ == "__main__":
    sys.exit(main())

"""Real agent turns, killed with SIGKILL at every file call of their log and at random moments.

    python tests/crash/turns_killed.py --kills 2000

This process loads the package once and forks a victim per kill, which runs two turns with tools and tells,
through a pipe, what its log took, what was acknowledged and which tools ran. Another fork then opens the
session and checks: every acknowledged event is there, every intent is answered, nothing but an unfinished
record is damaged, a second opening changes nothing, and the next turn runs. A third of the victims are killed
a second time while they mend what the first kill left.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from lockstitch.agent.api import Agent
from lockstitch.agent.session_fold import SessionFold
from lockstitch.providers.catalog import profiles
from lockstitch.schema.events import Body, Event, ToolCallStarted, ToolFinished
from lockstitch.session.file_calls import FileCalls
from lockstitch.session.file_store import FileStore
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.session.store import SessionKeeper, SessionLog
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.tools.functions import tool
from lockstitch.wire.jsonl import encode

SCRIPT: Final = [
    {
        "reasoning": "let me see",
        "tool_calls": [{"name": "mark", "arguments": {"n": 1}}, {"name": "mark", "arguments": {"n": 2}}],
        "chunk_chars": 3,
    },
    {"text": "both are marked, and this is said in pieces", "chunk_chars": 5},
    {"tool_calls": [{"name": "mark", "arguments": {"n": 3}}]},
    {"text": "done"},
]
WAIT_S: Final = 30.0


@dataclass(frozen=True)
class Plan:
    """When to kill: at a file call, or after some seconds."""

    call: int = 0
    """Counted from 1; 0: not at a call."""
    moment: str = ""
    """``before``, ``half`` (of a write) or ``after``."""
    after_s: float | None = None
    store: str = "files"


class KillingCalls(FileCalls):
    """Kills this process at a call. Syncs are left out: what was written outlives a killed process anyway."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.count = 0

    def _die(self, moment: str) -> None:
        if self.count == self._plan.call and moment == self._plan.moment:
            die()

    def _around(self, work: Callable[[], Any]) -> Any:
        self.count += 1
        self._die("before")
        result = work()
        self._die("after")
        return result

    def open(self, path: Path, flags: int, mode: int = 0o600) -> int:
        result: int = self._around(lambda: super(KillingCalls, self).open(path, flags, mode))
        return result

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        def work() -> int:
            if self.count == self._plan.call and self._plan.moment == "half":
                super(KillingCalls, self).write(fd, data[: len(data) // 2], offset)
                die()
            return super(KillingCalls, self).write(fd, data, offset)

        result: int = self._around(work)
        return result

    def sync(self, fd: int) -> None:
        self._around(lambda: None)

    def truncate(self, fd: int, length: int) -> None:
        self._around(lambda: super(KillingCalls, self).truncate(fd, length))

    def make_directory(self, path: Path) -> None:
        self._around(lambda: super(KillingCalls, self).make_directory(path))

    def rename(self, source: Path, target: Path) -> None:
        self._around(lambda: super(KillingCalls, self).rename(source, target))

    def sync_directory(self, path: Path) -> None:
        self._around(lambda: None)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process went on")


# --- the victim --------------------------------------------------------------------------------------------


def run_victim(place: Path, plan: Plan, report: int) -> int:
    """Two turns in the session; returns how many file calls that took, if it lives."""
    calls = KillingCalls(plan)

    def tell(text: str) -> None:
        os.write(report, f"{text}\n".encode())

    @tool(parallel=True)
    async def mark(n: int) -> str:
        """Do something that can be seen."""
        tell(f"ran {n}")
        await asyncio.sleep(0.001)
        return f"marked {n}"

    async def turns() -> None:
        store = told(make_store(place, plan, calls), tell)
        agent = Agent(ScriptedModel(SCRIPT), tools=[mark], store=store)
        await agent.run("mark two", session="s")
        await agent.run("mark one more", session="s")
        await store.close()

    asyncio.run(turns())
    return calls.count


def make_store(place: Path, plan: Plan, calls: FileCalls) -> SessionKeeper:
    if plan.store == "sqlite":
        return SqliteStore(place / "s.db", durable=False)
    # Every turn is long enough for a checkpoint, so that its calls are among those to be killed at.
    return FileStore(place / "sessions", calls=calls, index=plan.after_s is not None, save_after_bytes=1)


def told(store: SessionKeeper, tell: Callable[[str], None]) -> SessionKeeper:
    """The same store, whose logs tell what they take and what they have acknowledged."""
    open_session = store.open

    async def opened(*arguments: Any, **options: Any) -> SessionLog:
        log = await open_session(*arguments, **options)
        append, flush = log.append, log.flush

        def told_append(*bodies: Body, time_ms: int | None = None) -> tuple[Event, ...]:
            events = append(*bodies, time_ms=time_ms)
            for event in events:
                tell(f"took {event.seq} {mark_of(event)}")
            return events

        async def told_flush() -> None:
            until = log.state.next_seq
            await flush()
            tell(f"acknowledged {until}")

        log.append, log.flush = told_append, told_flush  # type: ignore[method-assign]  # on this one object
        tell(f"opened {log.state.next_seq}")
        return log

    store.open = opened  # type: ignore[method-assign]  # on this one object
    return store


def mark_of(event: Event) -> int:
    return zlib.crc32(encode(event.seq, event.time_ms, event.body))


# --- the check ---------------------------------------------------------------------------------------------


def check(place: Path, plan: Plan, reports: list[str]) -> None:
    """Raises AssertionError if a promise was broken."""
    took: dict[int, int] = {}
    acknowledged, ran = 0, 0
    for line in reports:
        word, *rest = line.split()
        match word:
            case "took":
                took[int(rest[0])] = int(rest[1])
            case "acknowledged":
                acknowledged = max(acknowledged, int(rest[0]))
            case "opened":
                # What was not acknowledged may be gone; then the records that mend have its numbers.
                took = {seq: mark for seq, mark in took.items() if seq < acknowledged}
                acknowledged = max(acknowledged, int(rest[0]))
            case "ran":
                ran += 1
    asyncio.run(_check(place, plan, took, acknowledged, ran))


async def _check(place: Path, plan: Plan, took: dict[int, int], acknowledged: int, ran: int) -> None:
    store = make_store(place, plan, FileCalls())
    events: list[Event] = []
    log = await store.open("s", fold=events.append)
    found = log.report
    assert (found.set_aside, found.missing, found.defects) == (0, 0, 0), found
    assert [event.seq for event in events] == list(range(len(events)))
    assert len(events) >= acknowledged, (len(events), acknowledged)
    for event in events[:acknowledged]:
        assert took.get(event.seq, mark_of(event)) == mark_of(event), event
    started = [event.body for event in events if isinstance(event.body, ToolCallStarted)]
    answered = [event.body for event in events if isinstance(event.body, ToolFinished)]
    assert len(started) >= ran, "a tool ran without a durable intent"
    assert {(call.message_seq, call.position) for call in started} <= {
        (result.message_seq, result.position) for result in answered
    }
    assert (log.state.calls, log.state.open_attempt, log.state.turn_open) == ({}, None, False)
    await log.close()
    again: list[Event] = []
    await (await store.open("s", fold=again.append)).close()
    assert again == events, "a second opening changed the log"
    behind, whole = SessionFold(), SessionFold()
    for event in events:
        whole(event)
    await (await store.open("s", fold=behind)).close()
    assert behind.save()() == whole.save()(), "a checkpoint gave another session than the log"
    result = await Agent(ScriptedModel(["it goes on"]), store=store).run("and now?", session="s")
    assert result.text == "it goes on"
    assert (await store.check("s")).sound
    await store.close()


# --- forks -------------------------------------------------------------------------------------------------


def in_fork(work: Callable[[int], None], kill_after_s: float | None = None) -> tuple[int, str]:
    """Do ``work`` in a child that gets the writing end of a pipe; its wait status, and what it wrote."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        try:
            work(writing)
            code = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        written = pipe.read().decode()
    return os.waitpid(pid, 0)[1], written


def kill_one(plan: Plan, second: Plan | None, folder: Path) -> str | None:
    """Run, kill and check one victim; what went wrong, or None."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        reports: list[str] = []
        for each in filter(None, (plan, second)):
            status, told_text = in_fork(lambda pipe, each=each: run_victim(place, each, pipe), each.after_s)  # type: ignore[misc]  # bound now
            reports += [line for line in told_text.split("\n") if line]
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
                return f"{each}: the victim failed by itself:\n{told_text}"
        status, problem = in_fork(lambda _pipe: checked(place, plan, reports, _pipe))
        return None if status == 0 else f"{plan}, then {second}:\n{problem}"


def checked(place: Path, plan: Plan, reports: list[str], pipe: int) -> None:
    del pipe
    signal.alarm(int(WAIT_S))
    check(place, plan, reports)


def plans(kills: int, calls: int, took_s: float, chance: random.Random) -> list[tuple[Plan, Plan | None]]:
    """Every file call before, in the middle and after; the rest at random moments."""
    at_calls = [Plan(call, moment) for call in range(1, calls + 1) for moment in ("before", "half", "after")]
    chance.shuffle(at_calls)
    chosen: list[tuple[Plan, Plan | None]] = []
    for plan in at_calls[: kills * 2 // 3]:
        second = Plan(chance.randint(1, calls), chance.choice(("before", "half", "after")))
        chosen.append((plan, second if chance.random() < 1 / 3 else None))
    while len(chosen) < kills:
        store = "sqlite" if chance.random() < 1 / 4 else "files"
        first, second = (Plan(after_s=chance.uniform(0, took_s), store=store) for _ in range(2))
        chosen.append((first, second if chance.random() < 1 / 3 else None))
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    failed = 0
    profiles()  # read once, before the forks
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "measured"
        place.mkdir()
        started = time.monotonic()
        status, told_text = in_fork(
            lambda pipe: os.write(pipe, f"calls {run_victim(place, Plan(), pipe)}".encode()) and None
        )
        took_s = time.monotonic() - started
        if status != 0:
            print(told_text)
            return 1
        calls = int(told_text.rpartition(" ")[2])
        for number, (plan, second) in enumerate(plans(options.kills, calls, took_s, random.Random(seed))):
            problem = kill_one(plan, second, Path(name))
            if problem is not None:
                failed += 1
                print(f"kill {number} of seed {seed}: {problem}", flush=True)
    print(f"{options.kills} kills (seed {seed}, {calls} file calls in two turns): {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Many sessions in one process, each the turn of an agent with its log; see worker.py.

An order is `{"base_url": ..., "sessions": N}`, at once, or one after the other with `"in_turn": true`. With
`"watch": true` a run also tells the lag of the event loop (how late a timer of a few milliseconds fires)
while all sessions stream, and the memory of each: what the process takes beyond a process that has served
one session, whose `"first_url"` does not pace.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import worker

TICK_S = 0.005
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def agents() -> worker.Contender:
    from lockstitch import Agent

    folder = tempfile.TemporaryDirectory(prefix="bench-sessions-")
    before_kib = 0

    async def run(order: Mapping[str, Any]) -> int | Mapping[str, float]:
        nonlocal before_kib
        store = Path(folder.name)
        agent = Agent("generic:m", base_url=order["base_url"], store=store, environ={})
        if not before_kib and "first_url" in order:
            await Agent("generic:m", base_url=order["first_url"], store=store, environ={}).run("Go.")
            before_kib = _resident_kib()
        sessions, gauge, watched = order["sessions"], Gauge(), order.get("watch", False)
        started = 0

        async def one() -> int:
            nonlocal started
            seen = 0
            async for _ in agent.stream("Go."):
                if not seen:
                    started += 1
                    if started == sessions and watched:
                        gauge.start()
                seen += 1
            gauge.stop()
            return seen

        if order.get("in_turn", False):
            async with agent.open():  # keeps connections and the store's thread from one turn to the next
                return sum([await one() for _ in range(sessions)])
        seen = sum(await asyncio.gather(*(one() for _ in range(sessions))))
        if not watched:
            return seen
        if not gauge.peak_kib:
            raise RuntimeError("the first sessions ended before the last had begun: the machine is too busy")
        each = (gauge.peak_kib - before_kib) / sessions
        return {"seen": seen, "lag_p99_ms": gauge.lag_p99_ms, "kib_each": each}

    return run


class Gauge:
    """The lag of the event loop and the memory of the process, taken every few milliseconds."""

    def __init__(self) -> None:
        self.peak_kib = 0
        self._lags_ms: list[float] = []
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while True:
            due = time.perf_counter() + TICK_S
            await asyncio.sleep(TICK_S)
            self._lags_ms.append((time.perf_counter() - due) * 1e3)
            self.peak_kib = max(self.peak_kib, _resident_kib())

    @property
    def lag_p99_ms(self) -> float:
        return sorted(self._lags_ms)[int(len(self._lags_ms) * 0.99)]


def _resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_KIB


if __name__ == "__main__":
    worker.main({"agents": agents})

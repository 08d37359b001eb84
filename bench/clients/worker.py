"""The side of a benchmark that is measured: a process that runs one contender whenever it is told to.

Each line on stdin is one order, a JSON object for the contender; each is answered by one JSON line with the
CPU time it took in this process (all threads, user and system; servers are other processes and do not count).
The process ends when stdin does, so none outlives the benchmark.
"""

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TextIO

Contender = Callable[[Mapping[str, Any]], Awaitable[int | Mapping[str, float]]]
"""Does the work of one order and returns how many things it saw, as proof that it did; or several figures of
its own, "seen" among them."""

RUN_TIMEOUT_S = 900


def repeats(order: Mapping[str, Any]) -> range:
    """What is over in milliseconds is done several times in one run, over the same connection."""
    return range(order.get("repeat", 1))


def main(contenders: Mapping[str, Callable[[], Contender]]) -> None:
    """Runs the contender named on the command line. Its factory imports and sets up, unmeasured."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some libraries print; that must not land among the answers
    asyncio.run(_work(contenders[sys.argv[1]](), answers))


async def _work(contender: Contender, answers: TextIO) -> None:
    # Blocking reads are right here: nothing else may run in this process between two orders.
    for line in sys.stdin:
        order = json.loads(line)
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        async with asyncio.timeout(RUN_TIMEOUT_S):
            found = await contender(order)
        figures = {"seen": found} if isinstance(found, int) else dict(found)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        figures |= {"cpu_s": cpu, "wall_s": wall, "peak_kib": peak_kib}
        print(json.dumps(figures), file=answers, flush=True)

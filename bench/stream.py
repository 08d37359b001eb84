"""CPU per event of one long stream: Lockstitch, the least that any client must do, and other libraries."""

from paired import Contender, measure, ratio, server
from report import Goal, Report, cpu_rows

TEXTS = ARGUMENTS = 10_000
EVENTS = TEXTS + ARGUMENTS + 6
FAST_REPEATS = 20
"""Streams in one run of a client that reads one in milliseconds."""

CLIENTS = ("floor", "openai", "pydantic-ai")
SLOW_CLIENTS = ("langchain-openai", "litellm")


def run(rounds: int, everything: bool) -> Report:
    """`everything` adds the peers that need a quarter of a minute a run."""
    names = (*CLIENTS, *(SLOW_CLIENTS if everything else ()))
    with server("stream_server.py") as address:
        base_url = f"{address}/texts-{TEXTS}/arguments-{ARGUMENTS}/calls-1/v1"
        measured = measure([_contender(name, base_url) for name in names], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    goals: list[Goal] = [Goal("openai over the floor", "at least", 12, ratio(measured, "openai", "floor"))]
    method = f"A chat stream of {EVENTS:,} events over loopback HTTP, {rounds} rounds."
    return Report("Stream", method, columns, rows, goals)


def _contender(name: str, base_url: str) -> Contender:
    fast = name in ("floor", "lockstitch")
    repeat = FAST_REPEATS if fast else 1
    order = {"base_url": base_url, "repeat": repeat}
    units, environment = EVENTS * repeat, "project" if fast else "peers"
    return Contender(name, "stream.py", order, units, environment, seen_at_least=(EVENTS - 3) * repeat)

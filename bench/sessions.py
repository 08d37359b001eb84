"""A thousand streaming sessions in one process, beside a few."""

from paired import Contender, measure, ratio, server, spread
from report import Goal, Report, cpu_rows

EVENTS = 640
"""Of each stream: eighty writes at the pace of a model, forty seconds."""
FEW, MANY = 10, 1_000
"""One session alone takes too little CPU to be measured beside the loop's own."""


def run(rounds: int, everything: bool) -> Report:
    """At the pace of a model: what many sessions cost, keep in memory and hold up."""
    del everything
    with server("stream_server.py") as address:
        few, many = (_contender(address, number) for number in (FEW, MANY))
        measured = measure([few, many], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    figures = [run.figures for run in measured[many.title]]
    lag, memory = (spread([each[name] for each in figures]) for name in ("lag_p99_ms", "kib_each"))
    over = ratio(measured, many.title, few.title)
    goals = [
        Goal(f"CPU per event, {MANY:,} sessions over {FEW}", "at most", 1.5, over),
        Goal("memory of each", "at most", 150, memory, " KiB"),
        Goal("event loop lag, 99th percentile", "at most", 50, lag, " ms"),
    ]
    method = (
        f"Logged turns of an agent, {EVENTS} events each, sixteen a second in two writes, {rounds} rounds. "
        "Lag and memory are of the time when all of them stream; lag only counts on an idle machine."
    )
    return Report("Concurrent sessions", method, columns, rows, goals)


def run_flat_out(rounds: int, everything: bool) -> Report:
    """As fast as the server sends: what it costs that there are many at once, and not one after the other."""
    del everything
    with server("stream_server.py") as address:
        base_url = f"{address}/texts-{EVENTS}/arguments-0/calls-1/v1"
        titles = {f"{MANY:,} sessions, one after the other": True, f"{MANY:,} sessions at once": False}
        contenders = [
            Contender(
                "agents",
                "sessions.py",
                {"base_url": base_url, "sessions": MANY, "in_turn": in_turn},
                EVENTS * MANY,
                "project",
                title,
                EVENTS * MANY,
            )
            for title, in_turn in titles.items()
        ]
        measured = measure(contenders, rounds)
    columns, rows = cpu_rows(measured, "us per event")
    one, many = titles
    goals = [
        Goal("CPU per event, at once over one after the other", "at most", 1.5, ratio(measured, many, one))
    ]
    method = f"Logged turns of an agent, {EVENTS} events each, as fast as they come, {rounds} rounds."
    return Report("Concurrent sessions, flat out", method, columns, rows, goals)


def _contender(address: str, sessions: int) -> Contender:
    url = f"{address}/texts-{EVENTS}/arguments-0/calls-1"
    order: dict[str, object] = {"base_url": f"{url}-paced/v1", "sessions": sessions}
    if sessions == MANY:
        order |= {"watch": True, "first_url": f"{url}/v1"}
    units = EVENTS * sessions
    return Contender("agents", "sessions.py", order, units, "project", f"{sessions:,} sessions", sessions)

"""Listing and searching ten thousand sessions, beside reading their logs."""

import tempfile

from paired import Contender, Rounds, Spread, measure, spread
from report import Goal, Report

SESSIONS = 10_000
REPEAT = 5


def run(rounds: int, everything: bool) -> Report:
    """Wall time counts: it is what a person waits for."""
    del everything
    with tempfile.TemporaryDirectory(prefix="bench-listing-") as folder:
        order = {"folder": folder, "sessions": SESSIONS, "repeat": REPEAT}
        found = SESSIONS // 1_000
        contenders = [
            Contender("list", "session_listing.py", order, REPEAT, "project", "list", SESSIONS),
            Contender("search", "session_listing.py", order, REPEAT, "project", "search", found),
            Contender("read", "session_listing.py", order, 1, "project", "read all logs", SESSIONS),
        ]
        measured = measure(contenders, rounds)
    rows = []
    for title in measured:
        median, low, high = _ms(measured, title)
        peak = max(run.peak_mib for run in measured[title])
        rows.append([title, f"{median:.0f}", f"{low:.0f} to {high:.0f}", f"{peak:.0f}"])
    goals = [
        Goal("listing", "at most", 50, _ms(measured, "list"), " ms"),
        Goal("searching", "at most", 200, _ms(measured, "search"), " ms"),
        Goal("reading over listing", "at least", 20, _over(measured, "list")),
        Goal("reading over searching", "at least", 20, _over(measured, "search")),
    ]
    method = f"{SESSIONS:,} sessions of five turns, the index warm, wall time, {rounds} rounds."
    return Report("Listing sessions", method, ["way", "ms", "quartiles", "peak MiB"], rows, goals)


def _ms(measured: Rounds, title: str) -> Spread:
    return spread([run.wall_us / 1000 for run in measured[title]])


def _over(measured: Rounds, title: str) -> Spread:
    pairs = zip(measured["read all logs"], measured[title], strict=True)
    return spread([read.wall_us / run.wall_us for read, run in pairs])

"""What the session log costs: opening a long one, and making events durable."""

from collections.abc import Sequence

from paired import Contender, measure, ratio, spread
from report import Goal, Report, cpu_rows

OPENED = 100_000
WRITTEN = 1_000


def run_open(rounds: int, everything: bool) -> Report:
    """`everything` also opens a session ten times as long, whose memory must stay bounded."""
    sizes = (OPENED, 10 * OPENED) if everything else (OPENED,)
    contenders = [_contender("decode", OPENED, "msgspec decode alone")]
    contenders += [_contender("open", size, f"open {size:,} events") for size in sizes]
    measured = measure(contenders, rounds)
    columns, rows = cpu_rows(measured, "us per event")
    over = ratio(measured, f"open {OPENED:,} events", "msgspec decode alone")
    goals = [Goal("opening over msgspec decoding the same bytes", "at most", 2, over)]
    if everything:
        peaks = [max(run.peak_mib for run in measured[contender.title]) for contender in contenders[1:]]
        goals.append(
            Goal("peak memory of 1,000,000 events over 100,000", "at most", 2, spread([peaks[1] / peaks[0]]))
        )
    method = f"A log of {OPENED:,} events of an agent at work, read from a warm file cache, {rounds} rounds."
    return Report("Opening a session", method, columns, rows, goals)


def run_append(rounds: int, everything: bool) -> Report:
    """Wall time counts here: what a flush costs is mostly waiting for the disk."""
    del everything
    names = (
        "write + fdatasync",
        "append, each flushed",
        "append, flushed by the hundred",
        "SQLite, each flushed",
        "SQLite, a hundred sessions together",
    )
    measured = measure([_contender(name, WRITTEN) for name in names], rounds)
    wall = {name: [run.wall_us for run in measured[name]] for name in names}

    def wall_ratio(above: str, below: str) -> Sequence[float]:
        return [a / b for a, b in zip(wall[above], wall[below], strict=True)]

    rows = []
    for name in names:
        median, low, high = spread(wall[name])
        rows.append([name, f"{median:.1f}", f"{low:.1f} to {high:.1f}"])
    floor, single, grouped, sqlite_single, sqlite_grouped = names
    goals = [
        Goal("durable append over write + fdatasync", "at most", 1.5, spread(wall_ratio(single, floor))),
        Goal(
            "one hundred together over one hundred single",
            "at most",
            0.2,
            spread(wall_ratio(grouped, single)),
        ),
        Goal(
            "SQLite, one hundred sessions together over one hundred single",
            "at most",
            0.2,
            spread(wall_ratio(sqlite_grouped, sqlite_single)),
        ),
    ]
    method = f"{WRITTEN:,} events, wall time per event, {rounds} rounds."
    return Report("Durable append", method, ["way", "us per event", "quartiles"], rows, goals)


def _contender(name: str, events: int, label: str = "") -> Contender:
    order = {"events": events}
    return Contender(name, "session_log.py", order, events, "project", label, seen_at_least=events)

"""What the session log costs: opening a long one, and making events durable."""

from collections.abc import Sequence
from typing import Literal

from paired import Contender, measure, ratio, spread
from report import Goal, Report, cpu_rows

OPENED = 100_000
WRITTEN = 1_000


def run_open(rounds: int, everything: bool) -> Report:
    """`everything` also opens sessions ten times as long, whose memory must stay bounded."""
    floor = _opening("msgspec decode alone", client="decode")
    oldest = _opening("open, the oldest checkpoint", checkpoint="oldest")
    whole = _opening("open, no checkpoint: read whole")
    live_floor = _opening("never compacted: msgspec decode alone", client="decode", compacted=False)
    live = _opening("never compacted: open, the oldest checkpoint", checkpoint="oldest", compacted=False)
    long = _opening("1,000,000 events: open, the oldest checkpoint", 10 * OPENED, checkpoint="oldest")
    long_whole = _opening("1,000,000 events: open, read whole", 10 * OPENED)
    contenders = [floor, oldest, _opening("open, a checkpoint at the end", checkpoint="end"), whole]
    contenders += [live_floor, live, _opening("never compacted: open, read whole", compacted=False)]
    measured = measure([*contenders, *((long, long_whole) if everything else ())], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    over = "over msgspec decoding the same bytes"
    goals = [
        Goal(f"opening {over}", "at most", 2, ratio(measured, oldest.title, floor.title)),
        Goal(
            f"the same, never compacted, {over}", "at most", 2, ratio(measured, live.title, live_floor.title)
        ),
    ]
    for ten, one, how in ((long, oldest, "from a checkpoint"), (long_whole, whole, "read whole")):
        if everything:
            peaks = [max(run.peak_mib for run in measured[each.title]) for each in (ten, one)]
            what = f"peak memory of 1,000,000 events over 100,000, {how}"
            goals.append(Goal(what, "at most", 2, spread([peaks[0] / peaks[1]])))
    method = (
        f"A log of {OPENED:,} events of an agent at work, compacted as an agent would or with 22,000 "
        f"live messages, from a warm file cache, {rounds} rounds. Goals hold for the oldest checkpoint there "
        "can be: the next event would have another one written. A log is read whole when no checkpoint fits."
    )
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


def _opening(
    label: str,
    events: int = OPENED,
    *,
    client: str = "open",
    checkpoint: Literal["none", "end", "oldest"] = "none",
    compacted: bool = True,
) -> Contender:
    order = {"events": events, "checkpoint": checkpoint, "compacted": compacted}
    return Contender(client, "session_log.py", order, events, "project", label, seen_at_least=events)


def _contender(name: str, events: int, label: str = "") -> Contender:
    order = {"events": events}
    return Contender(name, "session_log.py", order, events, "project", label, seen_at_least=events)

"""CPU per event of one long stream: Lockstitch, the least that any client must do, and other libraries."""

from collections.abc import Sequence

from paired import Contender, Rounds, Spread, measure, ratio, server, spread
from report import Goal, Report, cpu_rows

TEXTS = ARGUMENTS = 10_000
EVENTS = TEXTS + ARGUMENTS + 6
FAST_REPEATS = 20
"""Streams in one run of a client that reads one in milliseconds."""

FAST = ("floor", "lockstitch", "lockstitch, logged", "lockstitch agent")
PEERS = ("openai", "pydantic-ai")
SLOW_PEERS = ("langchain-openai", "litellm")

LENGTHS = (2_000, 20_000, 200_000)
PARALLEL_CALLS = (8, 64)
WIDE_DELTAS = (10_000, 100_000)
"""Argument deltas of 100 characters: one megabyte and ten."""


def run(rounds: int, everything: bool) -> Report:
    """`everything` adds the peers that need seconds a run."""
    with server("stream_server.py") as address:
        base_url = f"{address}/texts-{TEXTS}/arguments-{ARGUMENTS}/calls-1/v1"
        names = ("floor", "lockstitch", *PEERS, *(SLOW_PEERS if everything else ()))
        measured = measure([_contender(name, base_url, EVENTS) for name in names], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    goals = [
        Goal("lockstitch over the floor", "at most", 2.5, ratio(measured, "lockstitch", "floor")),
        Goal("openai over lockstitch", "at least", 12, ratio(measured, "openai", "lockstitch")),
    ]
    if everything:
        goals.append(
            Goal("litellm over lockstitch", "at least", 50, ratio(measured, "litellm", "lockstitch"))
        )
    method = f"A chat stream of {EVENTS:,} events over loopback HTTP, {rounds} rounds."
    return Report("Stream", method, columns, rows, goals)


def run_logged(rounds: int, everything: bool) -> Report:
    """A text stream with its log on disk beside the stream alone, and a whole turn with its user events."""
    del everything
    texts = TEXTS + ARGUMENTS
    with server("stream_server.py") as address:
        base_url = f"{address}/texts-{texts}/arguments-0/calls-1/v1"
        measured = measure([_contender(name, base_url, texts) for name in FAST], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    logged = ratio(measured, "lockstitch, logged", "lockstitch")
    goals = [Goal("the logged stream over the stream alone", "at most", 1.3, logged)]
    method = (
        f"{texts:,} events of text through the model runtime, {rounds} rounds: alone; with what is shown "
        "going into a session's log on disk; and as a whole turn of the agent, with its user events."
    )
    return Report("Stream with the session log on", method, columns, rows, goals)


def run_flat(rounds: int, everything: bool) -> Report:
    """Whether an event costs the same in a long stream, among many calls, and in huge arguments."""
    del everything
    with server("stream_server.py") as address:
        lengths = [_sized(address, length, 1) for length in LENGTHS]
        more_calls = [_sized(address, LENGTHS[1], calls) for calls in PARALLEL_CALLS]
        wide = [_wide(address, deltas) for deltas in WIDE_DELTAS]
        measured = measure([*lengths, *more_calls, *wide], rounds)
    columns, rows = cpu_rows(measured, "us per event")
    parallel = [lengths[1], *more_calls]
    goals = [
        Goal("dearest over cheapest, 2,000 to 200,000 events", "at most", 1.2, _range(measured, lengths)),
        Goal("dearest over cheapest, 1 to 64 parallel calls", "at most", 1.2, _range(measured, parallel)),
        Goal(
            "10 MB of arguments over 1 MB, per delta",
            "at most",
            1.2,
            ratio(measured, wide[1].title, wide[0].title),
        ),
    ]
    method = f"CPU of the model runtime per event of streams of several shapes, {rounds} rounds."
    return Report("Flat cost", method, columns, rows, goals)


def _contender(name: str, base_url: str, events: int) -> Contender:
    repeat = FAST_REPEATS if name in FAST else 1
    return Contender(
        name,
        "stream.py",
        {"base_url": base_url, "repeat": repeat},
        events * repeat,
        "project" if name in FAST else "peers",
        # The agent groups nothing and shows no arguments, peers drop the sentinel: some events fewer.
        seen_at_least=(events - 6) * repeat,
    )


def _sized(address: str, events: int, calls: int) -> Contender:
    """A stream of so many events, half text and half arguments, that is read often enough to be measured."""
    texts, arguments = events // 2, events - events // 2
    base_url = f"{address}/texts-{texts}/arguments-{arguments}/calls-{calls}/v1"
    repeat = max(1, 400_000 // events)
    order = {"base_url": base_url, "repeat": repeat}
    label = f"{events:,} events, {calls} call{'s' if calls > 1 else ''}"
    return Contender("lockstitch", "stream.py", order, events * repeat, "project", label, events * repeat)


def _wide(address: str, deltas: int) -> Contender:
    base_url = f"{address}/texts-0/arguments-{deltas}/calls-1-wide/v1"
    repeat = max(1, 100_000 // deltas)
    order = {"base_url": base_url, "repeat": repeat}
    label = f"one argument of {deltas // 10_000} MB"
    return Contender("lockstitch", "stream.py", order, deltas * repeat, "project", label, deltas * repeat)


def _range(measured: Rounds, contenders: Sequence[Contender]) -> Spread:
    """The dearest of some contenders over the cheapest, formed in each round."""
    per_round = zip(*([run.cpu_us for run in measured[one.title]] for one in contenders), strict=True)
    return spread([max(costs) / min(costs) for costs in per_round])

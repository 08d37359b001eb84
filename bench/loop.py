"""CPU per step of a long tool loop, run by whole agents."""

from environment import Environment
from paired import Contender, measure, ratio, server
from report import Goal, Report, cpu_rows

OURS = "lockstitch"
PEERS = ("pydantic-ai", "openai-agents")
REPEATS = 3


def run(rounds: int, everything: bool) -> Report:
    """`everything` runs 500 steps, which takes peers minutes a round, instead of 100."""
    steps = 500 if everything else 100
    with server("loop_server.py") as address:
        measured = measure([_contender(name, address, steps) for name in (OURS, *PEERS)], rounds)
    columns, rows = cpu_rows(measured, "ms per step", 1e-3)
    goals = [Goal(f"{peer} over lockstitch", "at least", 25, ratio(measured, peer, OURS)) for peer in PEERS]
    method = f"Streamed answers, one tool call a step, {rounds} rounds. Lockstitch keeps its log on disk."
    return Report(f"Tool loop of {steps} steps", method, columns, rows, goals)


def run_growth(rounds: int, everything: bool) -> Report:
    """How the cost of a step grows with the history, beside the bytes of the requests."""
    del everything
    lengths = (50, 100, 200, 400)
    with server("loop_server.py") as address:
        measured = measure([_contender(OURS, address, steps, f"{steps} steps") for steps in lengths], rounds)
    columns, rows = cpu_rows(measured, "ms per step", 1e-3)
    last, first = f"{lengths[-1]} steps", f"{lengths[0]} steps"
    goals = [Goal(f"a step of {last} over one of {first}", "at most", 2, ratio(measured, last, first))]
    return Report(
        "Growth of a step", f"The same loop at several lengths, {rounds} rounds.", columns, rows, goals
    )


def _contender(name: str, address: str, steps: int, label: str = "") -> Contender:
    repeat = REPEATS if name == OURS else 1
    order = {"base_url": f"{address}/steps-{steps}/v1", "repeat": repeat}
    environment: Environment = "project" if name == OURS else "peers"
    return Contender(name, "loop.py", order, steps * repeat, environment, label, steps * repeat)

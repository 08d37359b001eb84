"""CPU per step of a long tool loop, run by whole agents."""

from paired import Contender, measure, server
from report import Report, cpu_rows

NAMES = ("pydantic-ai", "openai-agents")


def run(rounds: int, everything: bool) -> Report:
    """`everything` runs 500 steps, which takes minutes a round, instead of 100."""
    steps = 500 if everything else 100
    with server("loop_server.py") as address:
        order = {"base_url": f"{address}/steps-{steps}/v1", "steps": steps}
        contenders = [Contender(name, "loop.py", order, steps, seen_at_least=steps) for name in NAMES]
        measured = measure(contenders, rounds)
    columns, rows = cpu_rows(measured, "ms per step", 1e-3)
    return Report(
        f"Tool loop of {steps} steps", f"Streamed answers, one call a step, {rounds} rounds.", columns, rows
    )

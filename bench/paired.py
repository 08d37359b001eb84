"""Paired measurement: long-lived worker processes, run in turn, round after round.

Contenders of one round run within seconds of each other, so what else the machine does falls on all of them;
a ratio is formed in each round and its median reported, with the quartiles as spread.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from environment import BENCH, Environment, python_of

STOP_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    """As its client script knows it."""
    script: str
    """File in bench/clients."""
    order: Mapping[str, Any]
    units: int
    """Events or steps of one run: figures are per unit."""
    environment: Environment = "peers"
    label: str = ""
    """As the report calls it; its name if empty."""
    seen_at_least: int = 1
    """Fewer things seen than this is a failed run, not a fast one."""

    @property
    def title(self) -> str:
        return self.label or self.name


class Run(NamedTuple):
    cpu_us: float
    """Microseconds of client CPU per unit."""
    wall_us: float
    peak_mib: float
    figures: Mapping[str, float]
    """What the contender measured of itself."""


class Spread(NamedTuple):
    median: float
    low: float
    """First quartile."""
    high: float
    """Third quartile."""


Rounds = Mapping[str, Sequence[Run]]
"""By title, one Run a round, in the same order for all."""


def measure(contenders: Sequence[Contender], rounds: int) -> Rounds:
    """Runs every contender once unmeasured, then `rounds` times in turn.

    Raises SystemExit if one fails or sees too little; all workers have ended on return.
    """
    runs: dict[str, list[Run]] = {contender.title: [] for contender in contenders}
    with ExitStack() as stack:
        workers = [(contender, stack.enter_context(worker(contender))) for contender in contenders]
        for number in range(rounds + 1):
            shift = number % len(workers)  # so that no contender always follows the same one
            for contender, process in workers[shift:] + workers[:shift]:
                run = _one_run(contender, process)
                if number:
                    runs[contender.title].append(run)
            _progress(number, rounds, runs)
    return runs


def spread(values: Sequence[float]) -> Spread:
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def cpu_us(rounds: Rounds, title: str) -> Spread:
    return spread([run.cpu_us for run in rounds[title]])


def ratio(rounds: Rounds, numerator: str, denominator: str) -> Spread:
    """CPU of one contender over another's, formed in each round."""
    pairs = zip(rounds[numerator], rounds[denominator], strict=True)
    return spread([above.cpu_us / below.cpu_us for above, below in pairs])


@contextmanager
def worker(contender: Contender) -> Iterator[subprocess.Popen[str]]:
    with _child(
        [python_of(contender.environment), str(BENCH / "clients" / contender.script), contender.name]
    ) as child:
        yield child


@contextmanager
def server(script: str, *arguments: str) -> Iterator[str]:
    """A server of bench/servers in its own process; yields its address without a path."""
    with _child([sys.executable, str(BENCH / "servers" / script), *arguments]) as child:
        port = _line(child, script)
        yield f"http://127.0.0.1:{int(port)}"


@contextmanager
def _child(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        cast("Any", child.stdin).close()  # both kinds of child end when their stdin does
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        cast("Any", child.stdout).close()


def _one_run(contender: Contender, process: subprocess.Popen[str]) -> Run:
    stdin = cast("Any", process.stdin)
    stdin.write(json.dumps(dict(contender.order)) + "\n")
    stdin.flush()
    answer = json.loads(_line(process, contender.title))
    if answer["seen"] < contender.seen_at_least:
        raise SystemExit(f"bench: {contender.title} saw {answer['seen']} of {contender.seen_at_least}")
    per_unit = 1e6 / contender.units
    return Run(answer["cpu_s"] * per_unit, answer["wall_s"] * per_unit, answer["peak_kib"] / 1024, answer)


def _line(process: subprocess.Popen[str], title: str) -> str:
    line = cast("Any", process.stdout).readline()
    if not line:
        raise SystemExit(f"bench: {title} ended with {process.wait()}; its own words are above")
    return str(line)


def _progress(number: int, rounds: int, runs: Mapping[str, Sequence[Run]]) -> None:
    latest = "  ".join(f"{title} {done[-1].cpu_us:.1f}" for title, done in runs.items() if done)
    print(f"  round {number} of {rounds}: {latest or 'warm'}", file=sys.stderr)

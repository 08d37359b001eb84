"""What a benchmark found, as values; as text for a terminal and as a section of RESULTS.md."""

import datetime
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paired import Rounds, Spread, cpu_us


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    sense: Literal["at most", "at least"]
    limit: float
    measured: Spread
    unit: str = "x"

    @property
    def reached(self) -> bool:
        value = self.measured.median
        return value <= self.limit if self.sense == "at most" else value >= self.limit


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    method: str
    """One or two sentences: what was measured, how often."""
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    goals: Sequence[Goal] = ()


def cpu_rows(rounds: Rounds, unit: str, scale: float = 1.0) -> tuple[list[str], list[list[str]]]:
    """A table of CPU per unit, and of peak memory, one row a contender."""
    rows = []
    for title, runs in rounds.items():
        cpu = cpu_us(rounds, title)
        quartiles = f"{cpu.low * scale:.2f} to {cpu.high * scale:.2f}"
        rows.append(
            [title, f"{cpu.median * scale:.2f}", quartiles, f"{max(run.peak_mib for run in runs):.0f}"]
        )
    return ["client", unit, "quartiles", "peak MiB"], rows


def text(report: Report) -> str:
    """For a terminal, columns aligned."""
    table = [list(report.columns), *map(list, report.rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(report.columns))]
    lines = [f"== {report.title}", report.method, ""]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    lines += ["", *(_goal_line(goal) for goal in report.goals)]
    return "\n".join(lines).rstrip() + "\n"


def markdown(report: Report) -> str:
    """A section of RESULTS.md, dated."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [f"## {report.title}", "", f"{report.method} Measured {today} on {machine()}.", ""]
    lines += [_row(report.columns), _row(["---"] * len(report.columns)), *map(_row, report.rows), ""]
    if report.goals:
        lines += [_row(["goal", "limit", "measured", "quartiles", "reached"]), _row(["---"] * 5)]
        lines += [_row(_goal_cells(goal)) for goal in report.goals]
        lines.append("")
    return "\n".join(lines)


def machine() -> str:
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"


def merge(path: Path, sections: Mapping[str, str]) -> None:
    """Puts sections into RESULTS.md by title; those of benchmarks that did not run stay as they are."""
    old = path.read_text() if path.exists() else ""
    head, *parts = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    kept = {part.partition("\n")[0].removeprefix("## "): part for part in parts}
    kept.update(sections)
    path.write_text(
        (head.strip() or INTRODUCTION) + "\n\n" + "\n".join(part.strip() + "\n" for part in kept.values())
    )


INTRODUCTION = """\
# Results

Written by `./dev bench --write`. Ratios are formed within each round of one run and given as their median,
with quartiles; absolute figures belong to one machine on one day and compare only within their table. CPU
is that of the client process, all its threads, user and system; servers run in processes of their own. What
was tried to get here: [docs/performance.md](../docs/performance.md)."""


def _goal_line(goal: Goal) -> str:
    found = f"{goal.measured.median:.2f}{goal.unit} ({goal.measured.low:.2f} to {goal.measured.high:.2f})"
    mark = "ok  " if goal.reached else "MISS"
    return f"{mark}  {goal.what}: {found}, goal {goal.sense} {goal.limit:g}{goal.unit}"


def _goal_cells(goal: Goal) -> list[str]:
    low, median, high = goal.measured.low, goal.measured.median, goal.measured.high
    limit = f"{goal.sense} {goal.limit:g}{goal.unit}"
    return [
        goal.what,
        limit,
        f"{median:.2f}{goal.unit}",
        f"{low:.2f} to {high:.2f}",
        "yes" if goal.reached else "**no**",
    ]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

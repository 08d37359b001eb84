"""What starting costs: CPU and number of modules of a fresh interpreter that imports one library."""

import os
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from environment import Environment, python_of
from paired import Spread, spread
from report import Goal, Report

REPORT_MODULES = "lambda: print(len(sys.modules), file=sys.stderr)"
VERSION = "import sys; sys.argv = ['lockstitch', '--version']; from lockstitch.cli.main import main; main()"


class Start(NamedTuple):
    environment: Environment
    statement: str


STARTS: Mapping[str, Start] = {
    "bare Python": Start("project", "pass"),
    "import lockstitch": Start("project", "import lockstitch"),
    "lockstitch --version": Start("project", VERSION),
    "import openai": Start("peers", "import openai"),
    "import langchain_openai": Start("peers", "import langchain_openai"),
    "import pydantic_ai": Start("peers", "import pydantic_ai"),
    "import agents (openai-agents)": Start("peers", "import agents"),
    "import litellm": Start("peers", "import litellm"),
}
SLOW = ("import litellm",)


def run(rounds: int, everything: bool) -> Report:
    """`everything` adds what takes seconds to import."""
    names = [name for name in STARTS if everything or name not in SLOW]
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            milliseconds = _cpu_ms(STARTS[name])
            if number:  # the first round fills the file cache and writes byte code
                cpu[name].append(milliseconds)
    rows = []
    for name in names:
        median, low, high = spread(cpu[name])
        rows.append([name, f"{median:.0f}", f"{low:.0f} to {high:.0f}", str(_modules(STARTS[name]))])
    goals = [
        Goal(f"openai over {ours}", "at least", 8, _ratio(cpu, "import openai", ours))
        for ours in ("import lockstitch", "lockstitch --version")
    ]
    method = f"A fresh interpreter each time, byte code and file cache warm, {rounds} rounds."
    return Report("Import and start", method, ["start", "CPU ms", "quartiles", "modules"], rows, goals)


def _cpu_ms(start: Start) -> float:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    process = subprocess.Popen(
        [python_of(start.environment), "-c", start.statement], stdout=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {start.statement!r} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def _modules(start: Start) -> int:
    """How many modules are loaded at exit."""
    program = f"import atexit, sys; atexit.register({REPORT_MODULES}); {start.statement}"
    done = subprocess.run(
        [python_of(start.environment), "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    return int(done.stderr.split()[-1])


def _ratio(cpu: Mapping[str, list[float]], above: str, below: str) -> Spread:
    return spread([a / b for a, b in zip(cpu[above], cpu[below], strict=True)])

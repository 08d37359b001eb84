"""`./dev bench [NAME...]`: measures Lockstitch beside its peers and prints the ratios.

Without names everything runs, which takes about twenty minutes; `--quick` leaves out the slowest peers and
shortens the loop. `--write` puts what was measured into bench/RESULTS.md. Peers are installed into
.venv-bench on first use. Exits with 1 if a goal was missed.
"""

import argparse
import sys
from collections.abc import Callable, Mapping

import history
import imports
import log_size
import loop
import report
import session_listing
import session_log
import sessions
import stream
import wire_cases
from environment import BENCH

Benchmark = Callable[[int, bool], report.Report]

BENCHMARKS: Mapping[str, tuple[Benchmark, int]] = {
    "imports": (imports.run, 7),
    "stream": (stream.run, 5),
    "stream-logged": (stream.run_logged, 5),
    "flat": (stream.run_flat, 5),
    "loop": (loop.run, 3),
    "loop-growth": (loop.run_growth, 5),
    "sessions": (sessions.run, 2),
    "sessions-flat-out": (sessions.run_flat_out, 3),
    "request": (history.run, 5),
    "session-open": (session_log.run_open, 5),
    "log-size": (log_size.run, 1),
    "session-append": (session_log.run_append, 5),
    "session-listing": (session_listing.run, 5),
    "wire-cases": (wire_cases.run, 1),
}
"""By name: what runs, and in how many rounds by default."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description=str(__doc__).partition("\n")[2])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="without the slowest peers, with a shorter loop")
    parser.add_argument("--rounds", type=int, help="measured rounds of each benchmark")
    parser.add_argument("--write", action="store_true", help="update bench/RESULTS.md")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")

    print(report.machine())
    missed = 0
    for name in options.names or BENCHMARKS:
        print(f"bench: {name}", file=sys.stderr)
        run, rounds = BENCHMARKS[name]
        found = run(options.rounds or rounds, not options.quick)
        print("\n" + report.text(found), flush=True)
        missed += sum(not goal.reached for goal in found.goals)
        if options.write:
            report.merge(BENCH / "RESULTS.md", {found.title: report.markdown(found)})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

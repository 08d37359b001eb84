"""Scores client libraries on the recorded openai-chat streams, Lockstitch among them, all in one run.

usage: wire_cases.py [--cases FILE] [--matrix] [NAME...]

Each library reads each case over loopback HTTP, without retries. Lockstitch is told the case's profile and
the tools that were offered, which the others have no setting for; `lockstitch-untold` is not, and so shows
how much of the difference that makes: marked-up calls, refused ids, fragments of names. A case counts if the
text (outer blanks aside), the number and order of calls, their names, ids and parsed arguments are the
expected ones, or, where an error is expected, if the library reported any error. Arguments `null` count as
no arguments. Reasoning, usage and finish reasons are not scored, since not every library gives them.
`--matrix` prints who failed which case.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import report
from environment import BENCH, Environment, python_of
from paired import server

RECORDED = BENCH.parent / "tests" / "recorded" / "cases"
CASES = RECORDED / "wire.jsonl"
MORE_CASES = RECORDED / "wire_more.jsonl"
CLIENT_TIMEOUT_S = 600

CLIENTS: Mapping[str, Environment] = {
    "lockstitch": "project",
    "lockstitch-untold": "project",
    "openai": "peers",
    "pydantic-ai": "peers",
    "litellm": "peers",
    "langchain-openai": "peers",
    "openai-agents": "peers",
}
SYNTHETIC = "<synthetic>"
"""In an expected call: any non-empty id that no other call of the message has."""

Expected = Mapping[str, Any]
Found = Mapping[str, Any]
Failures = Mapping[str, Sequence[str]]
"""By client, the ids of the cases it got wrong."""


def run(rounds: int, everything: bool) -> report.Report:
    """One round is enough: nothing here is a matter of time."""
    del rounds, everything
    columns = []
    for path in (CASES, MORE_CASES):
        total = len(openai_chat_cases(path))
        columns.append(
            {name: f"{total - len(failed)} of {total}" for name, failed in score(path, list(CLIENTS)).items()}
        )
    rows = [[name, *(column[name] for column in columns)] for name in CLIENTS]
    method = (
        "Recorded openai-chat streams, each read over loopback HTTP by every library: those that users met, "
        "and further ones of the same kinds, written beside Lockstitch's rules (so they favour it)."
    )
    return report.Report("Wire cases", method, ["client", "field cases", "further cases"], rows)


def openai_chat_cases(path: Path) -> dict[str, Expected]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        cases = [json.loads(line) for line in lines]
    return {case["id"]: case["expected"] for case in cases if case["input"]["protocol"] == "openai-chat"}


def score(path: Path, names: Sequence[str]) -> Failures:
    expected = openai_chat_cases(path)
    failures = {}
    with server("case_server.py", str(path)) as address:
        for name in names:
            print(f"  cases: {name}", file=sys.stderr)
            found = _outcomes(name, address, path)
            failures[name] = [
                case for case, wanted in expected.items() if not is_expected(wanted, found.get(case))
            ]
    return failures


def is_expected(expected: Expected, found: Found | None) -> bool:
    if found is None:
        return False
    if "one_of" in expected:
        return any(is_expected(each, found) for each in expected["one_of"])
    if expected["error"] or found["error"]:
        return bool(expected["error"] and found["error"])
    message = expected["message"]
    wanted, calls = message["tool_calls"], found["calls"]
    ids = [call["id"] for call in calls]
    return (
        (message["content"] or "").strip() == found["text"].strip()
        and len(wanted) == len(calls)
        and len(set(ids)) == len(ids)
        and all(_is_expected_call(want, call) for want, call in zip(wanted, calls, strict=True))
    )


def _is_expected_call(expected: Expected, call: Found) -> bool:
    if not call["id"] or call["name"] != expected["name"]:
        return False
    if expected["id"] not in (SYNTHETIC, call["id"]):
        return False
    # A call with broken arguments only has to be kept; what a library makes of the text is its own affair.
    return bool(expected.get("invalid")) or _parsed(call["arguments"]) == expected["arguments"]


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        found = json.loads(arguments) if arguments.strip() else {}
        return {} if found is None else found
    except ValueError:
        return None


def _outcomes(name: str, address: str, path: Path) -> dict[str, Found]:
    command = [python_of(CLIENTS[name]), str(BENCH / "clients" / "cases.py"), name, address, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=CLIENT_TIMEOUT_S, check=True)
    return {found["id"]: found for found in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CLIENTS))
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--matrix", action="store_true", help="who failed which case")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CLIENTS):
        parser.error(f"no client named {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    failures = score(options.cases, options.names or list(CLIENTS))
    cases = openai_chat_cases(options.cases)
    for name, failed in failures.items():
        print(f"{name:18} {len(cases) - len(failed)} of {len(cases)}")
    if options.matrix:
        print()
        for case in cases:
            if failed_by := [name for name, failed in failures.items() if case in failed]:
                print(f"{case:48} failed by {', '.join(failed_by)}")


if __name__ == "__main__":
    main()

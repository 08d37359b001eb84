"""What it costs to make a request of a long history, the first time and at each further step."""

from paired import Contender, Spread, measure, spread
from report import Goal, Report

MESSAGES = 10_000
REPEATS = {"encode": 20, "first": 3, "further": 200}
LABELS = {
    "encode": "msgspec encoding alone",
    "first": "project, check and encode",
    "further": "the same after one more exchange",
}


def run(rounds: int, everything: bool) -> Report:
    del everything
    measured = measure([_contender(name) for name in REPEATS], rounds)

    def milliseconds(name: str) -> list[float]:
        return [run.figures["own_cpu_s"] * 1e3 / REPEATS[name] for run in measured[LABELS[name]]]

    def over(above: str, below: str) -> Spread:
        pairs = zip(milliseconds(above), milliseconds(below), strict=True)
        return spread([a / b for a, b in pairs])

    rows = []
    for name in REPEATS:
        median, low, high = spread(milliseconds(name))
        rows.append([LABELS[name], f"{median:.2f}", f"{low:.2f} to {high:.2f}"])
    goals = [
        Goal("project, check and encode over encoding alone", "at most", 3, over("first", "encode")),
        Goal("the first request over a further one", "at least", 50, over("first", "further")),
    ]
    method = f"A request of {MESSAGES:,} messages of an agent at work, {rounds} rounds."
    return Report("A request of a long history", method, ["what", "CPU ms", "quartiles"], rows, goals)


def _contender(name: str) -> Contender:
    order = {"messages": MESSAGES, "repeat": REPEATS[name]}
    return Contender(name, "history.py", order, REPEATS[name], "project", LABELS[name], MESSAGES)

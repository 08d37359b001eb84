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
LONG_LABELS = {
    "encode": "longer results: msgspec encoding alone",
    "first": "longer results: project, check and encode",
}


def run(rounds: int, everything: bool) -> Report:
    del everything
    labelled = [(name, label, False) for name, label in LABELS.items()]
    labelled += [(name, label, True) for name, label in LONG_LABELS.items()]
    measured = measure([_contender(*each) for each in labelled], rounds)
    repeats = {label: REPEATS[name] for name, label, _ in labelled}

    def milliseconds(label: str) -> list[float]:
        return [run.figures["own_cpu_s"] * 1e3 / repeats[label] for run in measured[label]]

    def over(above: str, below: str) -> Spread:
        pairs = zip(milliseconds(above), milliseconds(below), strict=True)
        return spread([a / b for a, b in pairs])

    rows = []
    for label in repeats:
        median, low, high = spread(milliseconds(label))
        rows.append([label, f"{median:.2f}", f"{low:.2f} to {high:.2f}"])
    above, below = LABELS["first"], LABELS["encode"]
    long_above, long_below = LONG_LABELS["first"], LONG_LABELS["encode"]
    goals = [
        Goal("project, check and encode over encoding alone", "at most", 3, over(above, below)),
        Goal("longer results: the same", "at most", 3, over(long_above, long_below)),
        Goal("the first request over a further one", "at least", 50, over(above, LABELS["further"])),
    ]
    method = (
        f"A request of {MESSAGES:,} messages of an agent at work, {rounds} rounds. Results have some 400 "
        "characters; longer ones are as long as one developer's agents were given in a week: "
        "`bench/clients/history.py`."
    )
    return Report("A request of a long history", method, ["what", "CPU ms", "quartiles"], rows, goals)


def _contender(name: str, label: str, long: bool) -> Contender:
    order = {"messages": MESSAGES, "repeat": REPEATS[name], "long": long}
    return Contender(name, "history.py", order, REPEATS[name], "project", label, MESSAGES)

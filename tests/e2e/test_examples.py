"""Every example runs as it is and prints what its reader expects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
    "one_answer.py": ["17 + 25 is 42."],
    "conversation.py": [
        "I look at the weather.",
        "[weather: Bern: 4 degrees, rain]",
        "Bern: 4 degrees and rain. So no picnic, and no boat either.",
        "(completed)",
        "You are welcome.",
        "(completed)",
    ],
    "approvals.py": [
        'may send_mail run with {"to":"ada","text":"Hello."}? yes, and do not ask again',
        "Two mails are out.",
    ],
    "structured_output.py": ["Invoice(number='7', total_cents=1250, lines=['bread', 'cheese'])"],
    "budget_and_hooks.py": ["about to run run_tests", "Done, and 12 tests pass. $0.05"],
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "LOCKSTITCH_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in PRINTED[name]:
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == []

"""500 agent turns killed with SIGKILL, before and after each file call of their log and at random moments.

`./dev crash` kills 2,000. What is checked is in ``turns_killed.py``.
"""

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 500
PROCESSES = 2
WAIT_S = 600.0
"""For a machine that has much else to do; alone it takes about a minute."""


@pytest.mark.slow
def test_no_kill_loses_what_was_acknowledged_or_leaves_a_session_that_cannot_go_on() -> None:
    script = Path(__file__).with_name("turns_killed.py")
    command = [sys.executable, str(script), "--kills", str(KILLS // PROCESSES)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(PROCESSES)
    ]
    outputs = [process.communicate(timeout=WAIT_S)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, "\n".join(outputs)
    assert all(": 0 failed" in output for output in outputs)

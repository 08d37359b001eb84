"""Some long sessions killed with SIGKILL: opened from a checkpoint they are what their log says.

`./dev crash` does not run it; `python tests/crash/long_sessions_killed.py --kills 200` looks longer.
"""

import subprocess
import sys
from pathlib import Path

KILLS = 6
WAIT_S = 600.0
"""For a machine that has much else to do; alone it takes about ten seconds."""


def test_a_checkpoint_shows_nothing_that_the_log_does_not() -> None:
    script = Path(__file__).with_name("long_sessions_killed.py")
    command = [sys.executable, str(script), "--kills", str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 failed" in done.stdout

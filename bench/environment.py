"""The two Python environments of a benchmark: the project's own, and one for the libraries beside it."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Literal

BENCH = Path(__file__).resolve().parent
PEERS_LIST = BENCH / "peers.txt"
PEERS_VENV = BENCH.parent / ".venv-bench"

INSTALL_TIMEOUT_S = 1800

Environment = Literal["project", "peers"]


def python_of(environment: Environment) -> str:
    """Path of the interpreter; the peers' environment is made or brought up to date first.

    Raises SystemExit with pip's own words if that fails.
    """
    if environment == "project":
        return sys.executable
    interpreter = PEERS_VENV / "bin" / "python"
    stamp = PEERS_VENV / ".installed"
    wanted = hashlib.sha256(PEERS_LIST.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"bench: installing {PEERS_LIST.name} into {PEERS_VENV.name}", file=sys.stderr)
        _pip(interpreter)
        stamp.write_text(wanted)
    return str(interpreter)


def _pip(interpreter: Path) -> None:
    if not interpreter.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS_VENV)], check=True, timeout=INSTALL_TIMEOUT_S)
    command = [str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "-r", str(PEERS_LIST)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=INSTALL_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"bench: the peers could not be installed:\n{done.stderr.strip()[-2000:]}")

"""The command ``wire gateway`` as a process: its one line of output, its end, its mistakes."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from lockstitch.cli.wire_gateway import gateway

CODE = "from lockstitch.cli.wire_gateway import gateway; gateway()"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text('["hello"]')
    return path


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_ends_on_a_signal(script: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", CODE, "--script", str(script)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        listening = json.loads(process.stdout.readline())
        assert listening["base_url"] == f"http://127.0.0.1:{listening['port']}/v1"
        with urllib.request.urlopen(f"{listening['url']}/healthz") as response:
            assert json.load(response) == {"ok": True}
        os.kill(process.pid, number)
        rest, notes = process.communicate(timeout=10)
    assert (process.returncode, rest) == (0, "")
    assert notes.endswith("gateway: stopped after 0 requests, 1 answers left\n")


MISTAKES = {
    "a missing script": ([], "no.json: cannot read the script: No such file or directory"),
    "a script that is not JSON": (["["], "bad.json:1:2: not JSON: Expecting value"),
    "a script with an unknown key": (
        ['[{"txt": "a"}]'],
        'bad.json: answers[0]: unknown key "txt"; allowed: chunk_chars, ',
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_bad_script_is_one_line_and_status_2(name: str, tmp_path: Path) -> None:
    content, message = MISTAKES[name]
    path = tmp_path / ("bad.json" if content else "no.json")
    if content:
        path.write_text(content[0])
    outcome = CliRunner().invoke(gateway, ["--script", str(path)])
    assert (outcome.exit_code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert message in outcome.stderr


def test_a_taken_port_is_one_line_and_status_2(script: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        outcome = CliRunner().invoke(gateway, ["--script", str(script), "--port", str(port)])
    assert (outcome.exit_code, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert f"cannot listen on 127.0.0.1:{port}: " in outcome.stderr


USAGE = {
    "no script": [],
    "an unknown dialect": ["--script", "x", "--strict", "morse"],
    "an unknown wording": ["--script", "x", "--wording", "rude"],
    "a port that is none": ["--script", "x", "--port", "70000"],
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_status_2(name: str) -> None:
    outcome = CliRunner().invoke(gateway, USAGE[name])
    assert (outcome.exit_code, outcome.stdout) == (2, "")

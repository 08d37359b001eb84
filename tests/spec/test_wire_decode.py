"""``lockstitch wire decode``: output, exit codes, and the words for people."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chat_streams import DONE, body, call, delta, end
from click.testing import CliRunner, Result

from lockstitch.cli.main import run
from lockstitch.cli.wire_decode import decode
from lockstitch.providers.note_kinds import NOTE_KINDS

ROOT = Path(__file__).parents[2]
STREAM = body(
    [
        delta("Hé"),
        call(0, "c1", "ls", "{}"),
        call(0, "c2", ..., ""),
        {**delta(finish="tool_calls"), "usage": {"prompt_tokens": 3, "completion_tokens": 0}},
        DONE,
    ]
)


def invoke(*arguments: str, data: bytes = b"") -> Result:
    return CliRunner().invoke(decode, ["--dialect", "openai-chat", *arguments], input=data)


def test_an_answer_is_one_json_object(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(STREAM)
    result = invoke(str(path))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "content": [
            {"type": "text", "text": "Hé"},
            {"type": "tool_call", "id": "c1", "name": "ls", "arguments": "{}"},
        ],
        "finish": {"reason": "tool_calls", "failure": None},
        "usage": {"input_tokens": 3, "output_tokens": 0},
        "notes": [{"kind": "identity_conflict"}],
    }
    assert result.stderr.splitlines() == [
        "identity_conflict: a later delta of a tool call carried another id or name; the first one was kept. "
        "Ask the gateway: repeat the id and name of a call unchanged, or leave them out after its first "
        "delta."
    ]


def test_a_failure_is_told_in_json_and_in_words() -> None:
    result = invoke("-", data=body([delta("Hi"), {"error": {"message": "boom", "code": 500}}]))
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["content"] == [{"type": "text", "text": "Hi"}]
    failure = said["finish"]["failure"]
    assert (failure["code"], failure["retryable"]) == ("SERVER", True)
    assert {"message", "status"} <= failure.keys()
    assert result.stderr.startswith("SERVER: ")
    assert result.stderr.endswith("(worth a retry)\n")


def test_an_invalid_call_says_why() -> None:
    result = invoke("-", data=body([call(0, "c1", "ls", '{"p'), *end("length")]))
    assert (result.exit_code, json.loads(result.stdout)["content"][0]["invalid"]) == (0, "truncated")


def test_chunks_are_printed_one_a_line_with_a_version() -> None:
    result = invoke("--chunks", "-", data=STREAM)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["type"] for line in lines] == [
        *("block_start", "text_delta", "block_start", "tool_call_delta"),
        *("block_end", "block_end", "usage", "finish"),
    ]
    assert {line["v"] for line in lines} == {1}
    assert lines[3] == {
        "v": 1,
        "type": "tool_call_delta",
        "index": 1,
        "arguments": "{}",
        "id": "c1",
        "name": "ls",
    }
    assert lines[-1] == {"v": 1, "type": "finish", "reason": "tool_calls", "failure": None}


def test_profile_tools_and_status_count() -> None:
    fragments = body([call(0, "c1", "get_", ""), call(0, "", "time", "{}"), *end("tool_calls")])
    named = invoke("--tools", "ls, get_time", "-", data=fragments)
    assert json.loads(named.stdout)["content"][0]["name"] == "get_time"
    refused = invoke("--profile", "deepseek", "-", data=body([call(0, "", "ls", "{}"), *end()]))
    assert json.loads(refused.stdout)["finish"]["failure"]["code"] == "MALFORMED_TOOL_CALL"
    denied = invoke("--status", "401", "--content-type", "application/json", "-", data=b"{}")
    assert json.loads(denied.stdout)["finish"]["failure"]["status"] == 401


WRONG = {
    "an unreadable file": ["--dialect", "openai-chat", "/nowhere/body"],
    "a folder": ["--dialect", "openai-chat", "/"],
    "an unknown dialect": ["--dialect", "smtp", "-"],
    "an unknown profile": ["--dialect", "openai-chat", "--profile", "nobody", "-"],
    "no dialect": ["-"],
    "no file": ["--dialect", "openai-chat"],
    "a status that is no number": ["--dialect", "openai-chat", "--status", "x", "-"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage_is_one_line_and_exit_code_2(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "decode", *WRONG[name]]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_the_command_reads_stdin_and_writes_utf8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lockstitch", "wire", "decode", "--dialect", "openai-chat", "-"],
        input=STREAM,
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert done.returncode == 0
    assert json.loads(done.stdout.decode("utf-8"))["content"][0]["text"] == "Hé"


DECODING = (
    *(
        "providers/*_stream.py",
        "providers/event_translator.py",
        "providers/response*.py",
        "providers/frames.py",
        "providers/split_characters.py",
    ),
    *("history/decode.py",),
)
"""Modules that note oddities of an answer; requests have anomalies instead."""


def test_every_kind_of_note_is_explained_and_documented() -> None:
    used = {
        kind
        for pattern in DECODING
        for path in (ROOT / "src/lockstitch").glob(pattern)
        for kind in re.findall(
            r'(?:\.note|notebook\.add)\(\s*"([a-z_0-9]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert used == NOTE_KINDS.keys()
    table = (ROOT / "docs/notes.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([a-z_0-9]+)` \| (.+) \| (.+) \|$", table, re.MULTILINE)
    assert documented == [(kind, one.meaning, one.ask) for kind, one in NOTE_KINDS.items()]

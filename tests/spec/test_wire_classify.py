"""The command ``wire classify``: one JSON object on stdout, or one line on stderr and exit 2."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from lockstitch.cli.main import run

BODY = b'{"error":{"message":"Rate limit reached. Please try again in 20s.","code":"rate_limit_exceeded"}}'


@pytest.fixture
def body(tmp_path: Path) -> str:
    path = tmp_path / "body.json"
    path.write_bytes(BODY)
    return str(path)


def classified(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["wire", "classify", *arguments]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("\n") == 1
    return json.loads(said.out)  # type: ignore[no-any-return]


def test_it_prints_code_recovery_and_delay(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = classified(capsys, "--status", "429", "--profile", "groq", body)
    assert found == {
        "code": "RATE_LIMIT",
        "retryable": True,
        "recovery": "retry",
        "retry_after_s": 20.0,
        "message": (
            'groq: rate limit reached (HTTP 429): "Rate limit reached. Please try again in 20s."; '
            "wait and send the request again"
        ),
    }
    assert list(found) == ["code", "retryable", "recovery", "retry_after_s", "message"]


def test_headers_repeat(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = classified(
        capsys, "--status", "429", "--header", "X-Request-Id: 1", "--header", "Retry-After: 3", body
    )
    assert found["retry_after_s"] == 3.0


def test_a_date_counts_from_now(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = classified(
        capsys, "--status", "503", "--header", "Retry-After: Wed, 21 Oct 2037 07:28:00 GMT", body
    )
    assert found["retry_after_s"] == 366 * 86400  # as long as any


def test_it_reads_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"prompt is too long")))
    assert classified(capsys, "--status", "400", "-")["recovery"] == "compact"


@pytest.mark.parametrize(("ratio", "code"), [("0.95", "CONTEXT_WINDOW_EXCEEDED"), ("0.2", "INVALID_REQUEST")])
def test_the_ratio_judges_an_empty_body(
    ratio: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert classified(capsys, "--status", "400", "--context-ratio", ratio, str(empty))["code"] == code


WRONG = {
    "a header without a colon": (["--status", "400", "--header", "Retry-After 3", "-"], "is no header"),
    "a header with a space in its name": (
        ["--status", "400", "--header", "Retry After: 3", "-"],
        "is no header",
    ),
    "no status": (["-"], "--status"),
    "a status that is none": (["--status", "99", "-"], "99"),
    "a file that is not there": (["--status", "400", "nowhere.json"], "cannot read nowhere.json"),
    "a folder": (["--status", "400", "/"], "cannot read /"),
    "an unknown profile": (["--status", "400", "--profile", "nobody", "-"], "unknown profile 'nobody'"),
    "an unknown dialect": (["--status", "400", "--dialect", "telnet", "-"], "telnet"),
    "a ratio below nothing": (["--status", "400", "--context-ratio", "-1", "-"], "-1"),
    "no file": (["--status", "400"], "FILE"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wire", "classify", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err

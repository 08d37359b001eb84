"""A process that dies while it asks for a summary: the old history is whole, and the next run compacts."""

from typing import Any

from cli_process import Cli, ended, reasons, script_of, wait_until

from lockstitch.testing.gateway import Gateway

OVERFLOW = {"error": {"message": "context length exceeded", "code": "context_length_exceeded"}, "status": 400}
SUMMARY = "Goal: the till. Done: the discount."
WORDS = "the till adds every item and takes the discount off " * 60


def begun(cli: Cli) -> bool:
    try:
        return bool(cli.kinds("s", "compaction_call"))
    except (OSError, ValueError):  # no log yet, or a record half written
        return False


def last_request(gateway: Gateway) -> str:
    body: Any = gateway.requests[-1]["body"]
    return str(body["messages"])


@script_of("One.", "Two.", OVERFLOW, {"text": SUMMARY, "delay_ms": 20_000}, *[SUMMARY] * 9)
def test_sigkill_while_a_summary_is_made(cli: Cli, gateway: Gateway) -> None:
    for prompt in ("first", "second"):
        assert cli.run("--session", "s", f"{prompt}: {WORDS}").code == 0
    process = cli.start(*cli.run_arguments("--session", "s", "--json", f"third: {WORDS}"))
    try:
        wait_until(lambda: begun(cli) and len(gateway.requests) == 4, "the question for a summary")
    finally:
        process.kill()
    ended(process)
    assert cli.kinds("s", "compaction_end") == []

    done = cli.run("--session", "s", "--json", "--continue")
    assert done.code == 0
    ends = cli.kinds("s", "compaction_end")
    assert [end["applied"] for end in ends] == [False, True]
    asked = cli.kinds("s", "compaction_call")[0]["input_estimate"]
    assert ends[0]["usage"] == {"input_tokens": asked, "estimated": True}
    assert [line["trigger"] for line in done.of("compacted")] == ["threshold"]
    assert reasons(cli, "s") == ["completed", "completed", "interrupted", "completed"]
    assert SUMMARY in last_request(gateway)
    assert "third: " in last_request(gateway)

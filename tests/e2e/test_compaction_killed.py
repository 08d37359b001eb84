"""A process that dies while it asks for a summary: the old history is whole, and the next run compacts."""

from typing import Any

from cli_process import Cli, ended, reasons, script_of, wait_until

from lockstitch.testing.gateway import Gateway

OVERFLOW = {"error": {"message": "context length exceeded", "code": "context_length_exceeded"}, "status": 400}
SUMMARY = "Goal: the till. Done: the discount."
WORDS = "the till adds every item and takes the discount off " * 60


def logged(cli: Cli, kind: str) -> bool:
    try:
        return bool(cli.kinds("s", kind))
    except (OSError, ValueError):  # no log yet, or a record half written
        return False


def last_request(gateway: Gateway) -> str:
    body: Any = gateway.requests[-1]["body"]
    return str(body["messages"])


@script_of("One.", "Two.", OVERFLOW, {"text": f"{SUMMARY} {WORDS}", "event_delay_ms": 100}, *[SUMMARY] * 9)
def test_what_a_summary_had_written_before_a_sigkill_is_billed(cli: Cli, gateway: Gateway) -> None:
    for prompt in ("first", "second"):
        assert cli.run("--session", "s", f"{prompt}: {WORDS}").code == 0
    process = cli.start(*cli.run_arguments("--session", "s", "--json", f"third: {WORDS}"))
    try:
        wait_until(lambda: logged(cli, "output_count"), "a record of what the summary has written")
    finally:
        process.kill()
    ended(process)
    written = cli.kinds("s", "output_count")[-1]["bytes"]
    assert written > 0
    assert cli.run("--session", "s", "--json", "--continue").code == 0
    asked = cli.kinds("s", "compaction_call")[0]["input_estimate"]
    assert cli.kinds("s", "compaction_end")[0]["usage"] == {
        "input_tokens": asked,
        "output_tokens": -(-written // 3),
        "estimated": True,
    }


LONG_CALL = {
    "tool_calls": [{"name": "write", "arguments": {"path": "a.txt", "content": WORDS}}],
    "event_delay_ms": 100,
}


@script_of(LONG_CALL, "Done.")
def test_arguments_that_were_written_before_a_sigkill_are_billed(cli: Cli, gateway: Gateway) -> None:
    process = cli.start(*cli.run_arguments("--session", "s", "--json", "write it"))
    try:
        wait_until(lambda: logged(cli, "output_count"), "a record of what was written")
    finally:
        process.kill()
    ended(process)
    written = cli.kinds("s", "output_count")[-1]["bytes"]
    assert written > 0
    assert cli.run("--session", "s", "--json", "--continue").code == 0
    (lost,) = cli.kinds("s", "attempt_failed")
    assert lost["usage"]["output_tokens"] == -(-written // 3)


@script_of("One.", "Two.", OVERFLOW, {"text": SUMMARY, "delay_ms": 20_000}, *[SUMMARY] * 9)
def test_sigkill_while_a_summary_is_made(cli: Cli, gateway: Gateway) -> None:
    for prompt in ("first", "second"):
        assert cli.run("--session", "s", f"{prompt}: {WORDS}").code == 0
    process = cli.start(*cli.run_arguments("--session", "s", "--json", f"third: {WORDS}"))
    try:
        wait_until(
            lambda: logged(cli, "compaction_call") and len(gateway.requests) == 4,
            "the question for a summary",
        )
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

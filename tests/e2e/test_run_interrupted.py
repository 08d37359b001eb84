"""``lockstitch run`` stopped in the middle: by Ctrl-C, SIGTERM, SIGKILL, or somebody else's lock."""

import signal
from collections.abc import Callable

from cli_process import WAIT_S, Cli, Ended, ended, outcomes, reasons, script_of, wait_until

from lockstitch.testing.gateway import Gateway


def shown(cli: Cli) -> bool:
    """Whether streamed text has reached the log."""
    try:
        return bool(cli.kinds("s", "assistant_delta"))
    except (OSError, ValueError):  # no log yet, or a record half written
        return False


def interrupt_when(cli: Cli, holds: Callable[[], bool], *arguments: str) -> Ended:
    process = cli.start(*cli.run_arguments(*arguments))
    try:
        wait_until(lambda: process.poll() is not None or holds(), "the point to interrupt at")
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        return ended(process)
    finally:
        process.kill()


@script_of(
    {"text": "Half of an answer", "hang": 30, "quirks": ["no_done", "no_finish_reason", "no_usage"]}, "Whole."
)
def test_ctrl_c_keeps_the_text_that_was_visible(cli: Cli, gateway: Gateway) -> None:
    done = interrupt_when(cli, lambda: shown(cli), "--session", "s", "--json", "Go.")
    assert (done.code, done.result["reason"]) == (130, "cancelled")
    (message,) = cli.kinds("s", "assistant_message")
    assert (message["finish"], message["content"][0]["text"]) == ("aborted", "Half of an answer")
    assert message["usage"]["estimated"] is True
    assert cli.run("--session", "s", "--continue").code == 0


SLOW = {
    "tool_calls": [
        {"name": "shell", "arguments": {"command": "touch alive; sleep 60"}},
        {"name": "list", "arguments": {"path": "."}},
    ]
}


@script_of(SLOW, "Good.")
def test_ctrl_c_in_a_tool_answers_every_call(cli: Cli) -> None:
    done = interrupt_when(cli, (cli.cwd / "alive").exists, "--session", "s", "--yes", "--json", "Go.")
    assert done.code == 130
    assert sorted(outcomes(cli, "s")) == ["cancelled", "not_started"]
    assert reasons(cli, "s") == ["cancelled"]
    assert cli.run("--session", "s", "--continue").code == 0


@script_of({"text": "Slow.", "delay_ms": 20_000})
def test_sigterm_is_an_interruption_too(cli: Cli, gateway: Gateway) -> None:
    process = cli.start(*cli.run_arguments("--session", "s", "Go."))
    wait_until(lambda: bool(gateway.requests), "the request")
    process.terminate()
    assert ended(process).code == 130
    assert reasons(cli, "s") == ["cancelled"]


@script_of({"text": "Half", "hang": 30, "quirks": ["no_done", "no_finish_reason"]}, "Whole.")
def test_after_sigkill_the_session_says_what_was_mended(cli: Cli, gateway: Gateway) -> None:
    process = cli.start(*cli.run_arguments("--session", "s", "Go."))
    wait_until(lambda: shown(cli), "the first text")
    process.kill()
    process.communicate(timeout=WAIT_S)
    done = cli.run("--session", "s", "--continue")
    assert (done.code, done.out) == (0, "Whole.\n")
    assert "mended: 1 interrupted model calls closed" in done.err
    said = [message["content"] for message in gateway.requests[1]["body"]["messages"][1:]]
    assert said == ["Go.", "Half", "Continue where you left off."]


@script_of({"text": "Slow.", "delay_ms": 20_000})
def test_a_second_writer_is_told_who_has_the_session(cli: Cli, gateway: Gateway) -> None:
    process = cli.start(*cli.run_arguments("--session", "s", "Go."))
    try:
        wait_until(lambda: bool(gateway.requests), "the request")
        second = cli.run("--session", "s", "Me too.")
        assert second.code == 2
        assert str(process.pid) in second.err
        assert len(second.err.splitlines()) == 1
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)

"""``lockstitch run`` as users run it: real processes, real HTTP, the real log on disk."""

import subprocess
import sys

import pytest
from cli_process import KEY, WAIT_S, Cli, call, outcomes, reasons, script_of

from lockstitch.testing.gateway import Gateway

NAMELESS = {"text": "never mind", **call("list", path="."), "quirks": ["no_name"]}
REFUSED = {"error": {"message": f"bad key {KEY}"}, "status": 401}


@script_of({"text": "Looking.", **call("list", path=".")}, "It is empty.")
def test_text_goes_to_stdout_and_everything_else_to_stderr(cli: Cli) -> None:
    done = cli.run("--session", "s", "What is here?")
    assert (done.code, done.out) == (0, "Looking.\nIt is empty.\n")
    assert done.err.splitlines() == ["session s", 'list {"path":"."}']


@script_of(NAMELESS, "Right.")
def test_a_pipe_never_gets_text_that_was_withdrawn(cli: Cli) -> None:
    done = cli.run("Go.")
    assert (done.code, done.out) == (0, "Right.\n")
    assert "MALFORMED_TOOL_CALL" in done.err


@script_of(NAMELESS, {**call("list", path=".")}, "Right.")
def test_json_lines_tell_the_whole_turn(cli: Cli) -> None:
    done = cli.run("--json", "--session", "s", "Go.")
    assert done.code == 0
    assert {line["v"] for line in done.lines} == {1}
    told = [line["type"] for line in done.lines if line["type"] != "text_delta"]
    assert told == [
        "session",
        "attempt_discarded",
        "retrying",
        "tool_started",
        "tool_finished",
        "turn_ended",
        "result",
    ]
    assert done.result["exit_code"] == 0
    assert done.result["text"] == "Right."
    discarded, turn_ended = done.of("attempt_discarded")[0], done.of("turn_ended")[0]
    assert discarded["usage"]["output_tokens"] > 0
    assert turn_ended["usage"] == done.result["usage"]


@script_of("One.", "Two.")
def test_a_session_is_a_conversation(cli: Cli, gateway: Gateway) -> None:
    cli.run("--session", "s", "first")
    cli.run("--session", "s", "second")
    sent = [message["content"] for message in gateway.requests[1]["body"]["messages"]]
    assert sent[1:] == ["first", "One.", "second"]


@script_of("One.", "Two.")
def test_a_session_remembers_its_model_and_address(cli: Cli) -> None:
    cli.run("--session", "s", "first")
    done = cli("run", "--session", "s", "--continue")
    assert (done.code, done.out) == (0, "Two.\n")


@script_of("Yes.")
def test_a_prompt_comes_from_stdin(cli: Cli, gateway: Gateway) -> None:
    done = cli.run("-", stdin="Is it\nso?\n")
    assert (done.code, done.out) == (0, "Yes.\n")
    assert gateway.requests[0]["body"]["messages"][-1]["content"] == "Is it\nso?\n"


@script_of("One.", "Two.")
def test_continue_after_a_completed_turn_says_so_to_the_model(cli: Cli, gateway: Gateway) -> None:
    cli.run("--session", "s", "first")
    cli.run("--session", "s", "--continue")
    assert gateway.requests[1]["body"]["messages"][-1]["content"] == "Continue where you left off."
    assert cli.kinds("s", "user_message")[-1]["origin"] == "runtime"


WRITES = {
    "write": call("write", path="a.txt", content="x"),
    "edit": call("edit", path="b.txt", old="old", new="new"),
    "shell": call("shell", command="touch a.txt"),
}


@pytest.mark.parametrize(
    "gateway",
    [[{**answer, "text": "I do it."}, "Done."] for answer in WRITES.values()],
    indirect=True,
    ids=WRITES.keys(),
)
def test_what_changes_things_does_not_run_without_yes(cli: Cli) -> None:
    (cli.cwd / "b.txt").write_text("old")
    done = cli.run("--session", "s", "Go.")
    assert done.code == 3
    assert "approval" in done.err
    assert [path.name for path in cli.cwd.iterdir()] == ["b.txt"]
    assert (cli.cwd / "b.txt").read_text() == "old"
    assert (outcomes(cli, "s"), reasons(cli, "s")) == (["not_started"], ["approval"])
    assert cli.run("--session", "s", "--yes", "--continue").code == 0


@script_of(call("write", path="a.txt", content="x"), "Done.")
def test_yes_is_in_the_log(cli: Cli) -> None:
    done = cli.run("--yes", "--session", "s", "Go.")
    assert (done.code, (cli.cwd / "a.txt").read_text()) == (0, "x")
    (approval,) = cli.kinds("s", "approval")
    assert (approval["decision"], approval["by"]) == ("allowed", "--yes")


@script_of({"text": "It is", "finish": "length"})
def test_an_answer_cut_at_the_output_limit_is_no_success(cli: Cli) -> None:
    done = cli.run("--json", "Go.")
    assert (done.code, done.result["reason"], done.result["text"]) == (1, "length", "It is")


BROKEN = {"error": {"message": "Something broke"}, "status": 500, "headers": {"Retry-After": "1"}}
"""One second is the shortest wait that is taken at its word."""


@script_of(*[BROKEN] * 12)
def test_a_provider_that_stays_away_is_exit_code_5(cli: Cli, gateway: Gateway) -> None:
    done = cli.run("--json", "--session", "s", "Go.")
    assert done.code == 5
    assert done.result["failure"]["code"] == "SERVER"
    assert len(gateway.requests) == len(cli.kinds("s", "attempt_start")) == len(done.of("retrying")) + 1
    assert reasons(cli, "s") == ["failed"]


@script_of(call("list", path="."), call("list", path="a"), "Done.")
def test_a_turn_that_uses_up_its_steps_is_exit_code_4_and_can_go_on(cli: Cli) -> None:
    done = cli.run("--json", "--session", "s", "--max-steps", "2", "Go.")
    assert (done.code, done.result["reason"]) == (4, "budget")
    assert cli.run("--session", "s", "--continue").out == "Done.\n"


@script_of("One.", "Two.")
def test_a_session_may_lie_in_an_sqlite_file(cli: Cli) -> None:
    store = f"sqlite:{cli.home / 'all.db'}"
    cli.run("--store", store, "--session", "s", "Go.")
    assert cli.run("--store", store, "--session", "s", "--continue").out == "Two.\n"
    assert not (cli.home / "sessions").exists()


@script_of(REFUSED)
def test_a_refused_key_is_not_retried(cli: Cli, gateway: Gateway) -> None:
    done = cli.run("--json", "Go.")
    assert (done.code, done.result["failure"]["code"], len(gateway.requests)) == (1, "AUTH", 1)


@script_of("Hello there.", "And on.")
def test_a_failed_turn_leaves_a_session_that_goes_on(cli: Cli) -> None:
    wrong = cli("run", "-m", "deepseek:x", "--base-url", "http://127.0.0.1:9/v1", "--session", "s", "--json")
    assert wrong.code == 2
    assert cli.run("--session", "s", "again").out == "Hello there.\n"


@script_of(REFUSED, NAMELESS, call("shell", command="env; echo $DEEPSEEK_API_KEY"), f"The key is {KEY}?")
def test_no_key_is_left_anywhere(cli: Cli, gateway: Gateway) -> None:
    first = cli.run("--json", "--session", "s", "Go.")
    second = cli.run("--yes", "--session", "s", "--continue")
    assert (first.code, second.code) == (1, 0)
    tool_said = cli.kinds("s", "tool_result")[0]["content"][0]["text"]
    assert KEY not in tool_said
    assert KEY not in first.out + first.err + second.err
    assert KEY not in repr(gateway.requests)
    for record in cli.log("s"):
        # What a model says is its own; everything else of the log is ours to keep clean.
        if record["kind"] not in ("assistant_message", "assistant_delta"):
            assert KEY not in str(record)


def test_output_to_a_closed_pipe_is_no_traceback(cli: Cli) -> None:
    process = subprocess.Popen(
        ["sh", "-c", '"$0" -m lockstitch --help | true', sys.executable],
        env=cli.environ(),
        stderr=subprocess.PIPE,
        text=True,
    )
    _, err = process.communicate(timeout=WAIT_S)
    assert err == ""


@script_of("Hello.")
def test_a_limit_on_money_that_cannot_be_kept_is_told(cli: Cli) -> None:
    (cli.home / "config.toml").parent.mkdir(exist_ok=True)
    (cli.home / "config.toml").write_text("[budget]\ncost_usd = 1.5\n")
    unknown = cli("run", "-m", "generic:local", "--base-url", cli.base_url, "Hi.")
    assert (unknown.code, unknown.out) == (0, "Hello.\n")
    assert "budget.cost_usd is not kept: the price of generic:local is not known" in unknown.err

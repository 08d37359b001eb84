"""``lockstitch chat`` in a pipe: one prompt or command a line, the same conversation without a terminal."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from cli_process import Cli, Ended, call, ended, outcomes, reasons, script_of, wait_until


def chat(cli: Cli, *lines: str, arguments: tuple[str, ...] = ("--session", "s")) -> Ended:
    """A whole conversation, typed beforehand."""
    to = ["-m", "deepseek:deepseek-chat", "--base-url", cli.base_url]
    return cli("chat", *to, *arguments, stdin="".join(f"{line}\n" for line in lines))


@script_of("Hello.", "And again.")
def test_each_line_is_a_prompt_and_waits_for_the_one_before(cli: Cli) -> None:
    done = chat(cli, "Hi.", "Once more.")
    assert (done.code, done.err) == (0, "")
    order = ["-- new session s", "> Hi.", "Hello.", "> Once more.", "And again.", "-- session s is kept"]
    places = [done.out.index(text) for text in order]
    assert places == sorted(places)
    assert reasons(cli, "s") == ["completed", "completed"]


@script_of(call("write", path="a", content="x"), "Fine.", call("write", path="b", content="x"), "Well.")
def test_a_question_is_answered_by_the_next_line_and_by_nobody_with_no(cli: Cli) -> None:
    done = chat(cli, "Write a.", "y", "Write b.")
    assert "? write a" in done.out
    assert outcomes(cli, "s") == ["done", "denied"]
    assert (cli.cwd / "a").exists()
    assert not (cli.cwd / "b").exists()


@script_of("One.", "Two.", "Three.")
def test_undo_clear_and_title(cli: Cli) -> None:
    done = chat(cli, "First.", "Second.", "/undo", "/title Sums", "Third.", "/clear", "/title")
    assert "turns from 2 on no longer count" in done.out
    assert "the model starts afresh" in done.out
    assert done.out.count("Sums") >= 2
    assert cli.kinds("s", "undo") == [{"to_turn": 2}]


@script_of("One.", "Two.")
def test_a_fork_goes_on_in_a_copy_and_the_list_shows_both(cli: Cli) -> None:
    done = chat(cli, "First.", "/fork t", "Second.", "/sessions", "/sessions s", "/cost")
    assert "forked from s" in done.out
    assert len(cli.kinds("s", "user_message")) == 1
    assert len(cli.kinds("t", "user_message")) == 2
    assert done.out.count("session s: First.") == 1
    assert "failed attempts included" in done.out


@script_of("One.", "Two.", "Three.")
def test_the_lines_behind_a_choice_of_session_are_said_in_it(cli: Cli) -> None:
    chat(cli, "First.")
    done = chat(cli, "1", "Second.", "Third.", arguments=("--pick",))
    assert done.code == 0, done.err
    assert "1  " in done.err and "First." in done.err
    assert len(cli.kinds("s", "user_message")) == 3


NO_CHOICES = {
    "a word": ("Second.", "a number from 1 to 1 from the first line, not 'Second.'"),
    "a number of no session": ("2", "a number from 1 to 1 from the first line, not '2'"),
    "an empty line": ("", "from the first line, not ''"),
    "a line without end": ("1" * 1_000, "from the first line, not '111"),
}


@pytest.mark.parametrize(("line", "said"), NO_CHOICES.values(), ids=NO_CHOICES)
@script_of("One.", "Two.")
def test_what_chooses_no_session_is_told_and_nothing_is_said_to_any(cli: Cli, line: str, said: str) -> None:
    chat(cli, "First.")
    done = chat(cli, line, "Second.", arguments=("--pick",))
    assert done.code == 2
    assert said in done.err
    assert len(cli.kinds("s", "user_message")) == 1


@script_of("One.", "A summary that nobody reads.")
def test_compact_says_what_it_came_to(cli: Cli) -> None:
    done = chat(cli, "First.", "/compact the sums")
    summed = "summarising older history" in done.out and "older history is now a summary" in done.out
    assert summed or "nothing to gain" in done.out


def test_a_mistake_is_a_line_and_the_conversation_goes_on(cli: Cli) -> None:
    done = chat(cli, "/sing", "/model nobody:x", "/sessions 99", "/why x", "/undo x", "/help")
    assert done.code == 0
    for said in (
        "no command /sing",
        "unknown provider 'nobody'",
        "no session number 99",
        "/why takes",
        "/undo takes",
    ):
        assert said in done.out, said
    assert "/exit" in done.out


@script_of("One.", "Two.")
def test_damage_on_disk_is_told_on_resume_in_chat_run_and_the_list(cli: Cli) -> None:
    chat(cli, "First.")
    log = cli.home / "sessions" / "s" / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[4:]]))
    listed = cli("sessions", "list")
    assert "[damaged: " in listed.out
    shown = chat(cli, "/why")
    assert "damaged places skipped" in shown.out
    assert "at byte " in shown.out
    run = cli.run("--session", "s", "Second.")
    assert "mended: " in run.err
    assert run.out.endswith(".\n")


@script_of("Hello.")
def test_continue_finds_the_latest_session_of_this_folder(cli: Cli) -> None:
    chat(cli, "Hi.", arguments=("--session", "here"))
    done = chat(cli, "/cost", arguments=("--continue",))
    assert "session here: Hi." in done.out
    elsewhere = cli.cwd.parent / "other"
    elsewhere.mkdir()
    refused = chat(cli, "x", arguments=("--continue", "--cwd", str(elsewhere)))
    assert (refused.code, refused.out) == (2, "")
    assert "no session has worked in" in refused.err


@script_of("Hello.")
def test_what_the_folder_says_is_told_and_reaches_the_model(cli: Cli) -> None:
    (cli.cwd / "AGENTS.md").write_text("Speak in rhymes.\n")
    (cli.cwd / "lockstitch.toml").write_text('base_url = "http://evil.example"\n')
    done = chat(cli, "Hi.")
    assert "instructions from AGENTS.md" in done.out
    assert "does not set base_url" in done.out
    header = cli.kinds("s", "request_header")[0]
    assert header["system"].endswith("Speak in rhymes.\n")


def test_config_show_says_where_each_value_comes_from(cli: Cli) -> None:
    cli.extra["LOCKSTITCH_MODEL"] = "openai:gpt"
    cli.home.mkdir(parents=True)
    (cli.home / "config.toml").write_text('model = "deepseek:x"\n[budget]\nsteps = 5\n')
    done = cli("config", "show", "--json")
    found = {line["key"]: (line["value"], line["origin"]) for line in map(json.loads, done.out.splitlines())}
    assert found == {
        "model": ("openai:gpt", "environment"),
        "budget.steps": (5, "user"),
        "agents_files": (True, "default"),
    }


def test_trust_is_given_and_taken_back(cli: Cli) -> None:
    (cli.cwd / "lockstitch.toml").write_text("[budget]\nsteps = 5\n")
    assert "not trusted" in cli("config", "show").err
    assert "trusted as it is now" in cli("config", "trust").err
    assert "budget.steps = 5" in cli("config", "show").out
    assert "no longer trusted" in cli("config", "trust", "--remove").err
    assert "budget.steps" not in cli("config", "show").out


def test_models_lists_providers_and_models_of_the_users_own(cli: Cli, tmp_path: Path) -> None:
    cli.home.mkdir(parents=True)
    (cli.home / "config.toml").write_text(
        '[profiles.mine]\nextends = "generic"\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[models."mine:small"]\ncontext_window = 8000\ninput = 1.0\noutput = 2.0\n'
    )
    assert "mine:small      8,000 tokens  $1 in, $2 out" in cli("models", "mine").out
    rows = [json.loads(line) for line in cli("models", "mine", "--json").out.splitlines()]
    assert [row["type"] for row in rows] == ["provider", "model"]
    assert rows[1]["usd_per_mtok"] == {"input": 1.0, "output": 2.0, "cache_read": None, "cache_write": None}


@script_of(call("shell", command="env"), "Seen.")
def test_a_tool_does_not_get_the_key_of_a_profile_of_the_users_own(cli: Cli) -> None:
    cli.home.mkdir(parents=True)
    (cli.home / "config.toml").write_text(
        '[profiles.mine]\nextends = "generic"\nkey_env = "MINE_AUTH"\nkey_required = true\n'
    )
    cli.extra |= {"MINE_AUTH": "sk-mine-0123456789abcdef", "HARMLESS": "seen"}
    done = cli(
        "run", "-m", "mine:small", "--base-url", cli.base_url, "--yes", "--session", "s", "--json", "Look."
    )
    answer = done.of("tool_finished")[0]["text"]
    assert "HARMLESS=seen" in answer
    assert "sk-mine" not in done.out
    assert cli.kinds("s", "request_header")[0]["provider"] == "mine"
    again = cli("run", "--session", "s", "--base-url", cli.base_url, "--yes", "On.")
    assert again.code == 0, again.err


@script_of("One.", "Two.", {"text": "Goal: the till.", "delay_ms": 300}, "Three.")
def test_a_line_behind_a_compaction_waits_for_it(cli: Cli) -> None:
    story = "a long story about a till that adds every item and takes the discount off " * 30
    done = chat(cli, story, story, "/compact", "And then?")
    assert (done.code, done.err) == (0, "")
    order = ["> /compact", "older history is now a summary", "> And then?", "Three.", "-- session s is kept"]
    places = [done.out.index(text) for text in order]
    assert places == sorted(places)


def in_log(cli: Cli) -> str:
    log = cli.home / "sessions" / "s" / "log.jsonl"
    return log.read_text() if log.exists() else ""


@script_of("One.", "Two.", {"text": "Never.", "delay_ms": 20_000})
def test_the_end_of_the_input_waits_for_a_compaction_that_is_stopped(cli: Cli) -> None:
    story = "a long story about a till that adds every item and takes the discount off " * 30
    to = ["-m", "deepseek:deepseek-chat", "--base-url", cli.base_url, "--session", "s"]
    process = cli.start("chat", *to, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(f"{story}\n{story}\n/compact\n")
    process.stdin.flush()
    wait_until(lambda: "compaction_call" in in_log(cli), "the question for a summary")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "compaction_end" in in_log(cli), "its end")
    done = ended(process)
    assert done.code == 0
    assert "stopped; nothing was changed" in done.out
    assert [end["applied"] for end in cli.kinds("s", "compaction_end")] == [False]

"""``lockstitch chat`` in a real terminal: a whole conversation, its accidents, and terminals of every kind.

Needs tmux. Where there is none the tests are skipped and say so; ``LOCKSTITCH_NEED_TMUX=1`` makes them fail.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_process import Cli, call, outcomes, reasons, script_of
from terminal import Terminal, python, require_tmux

SIZES = {"80 by 24": (80, 24), "200 by 50": (200, 50)}
COLOURS: dict[str, dict[str, str]] = {"in colour": {}, "without colour": {"NO_COLOR": "1"}}
SLOW: dict[str, Any] = {"chunk_chars": 4, "event_delay_ms": 40}

Chat = Callable[..., Terminal]


@pytest.fixture
def chat(cli: Cli, request: pytest.FixtureRequest) -> Iterator[Chat]:
    """Starts a chat in a terminal of its own."""
    require_tmux()
    started: list[Terminal] = []

    def start(
        *arguments: str, width: int = 80, height: int = 24, model: str = "deepseek:deepseek-chat", **more: str
    ) -> Terminal:
        environ = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **cli.environ(), **more}
        to = ["-m", model] if model else []
        command = python("-m", "lockstitch", "chat", *to, "--base-url", cli.base_url, *arguments)
        terminal = Terminal(command, cwd=cli.cwd, environ=environ, width=width, height=height)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.close()


@pytest.mark.parametrize("colour", COLOURS.values(), ids=COLOURS)
@pytest.mark.parametrize(("width", "height"), SIZES.values(), ids=SIZES)
@script_of(
    {"text": "I shall **write** it.", **call("write", path="a.txt", content="one\ntwo\n")},
    {"text": "# Done\n\nIt is `written`:\n\n- one\n- 漢字\n"},
)
def test_a_whole_turn_with_an_approval(
    cli: Cli, chat: Chat, width: int, height: int, colour: dict[str, str]
) -> None:
    terminal = chat("--session", "s", width=width, height=height, **colour)
    terminal.until("new session s", "deepseek-chat · ")
    terminal.line("Write a file.")
    asked = terminal.until("? write a.txt", "? + two", "allow? y: once")
    assert "> Write a file." in asked
    assert not (cli.cwd / "a.txt").exists()
    terminal.line("y")
    shown = terminal.until("allowed: write a.txt", "done, +2 -0", "+one", "• 漢字", " tokens in, ")
    assert "I shall write it." in shown, "Markdown is shown as it is meant"
    assert (cli.cwd / "a.txt").read_text() == "one\ntwo\n"
    coloured = "\x1b[32m" in terminal.all(styled=True)
    assert coloured == (colour == {})
    terminal.keys("C-d")
    assert terminal.until_ended() == 0
    assert "session s is kept" in terminal.screen()
    assert (outcomes(cli, "s"), reasons(cli, "s")) == (["done"], ["completed"])


@script_of({"text": "I shall.", **call("shell", command="echo no")}, "Then not.", "Well.")
def test_a_denial_reaches_the_model_with_its_reason(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Do it.")
    terminal.until("? $ echo no", "allow? y: once · n [why]: no · s: shell(echo *)")
    terminal.line("yes but later")
    terminal.until("queued: yes but later", "allow? y: once")
    terminal.line("no, it is late")
    terminal.until("denied: shell $ echo no", "Then not.")
    assert outcomes(cli, "s") == ["denied"]
    answer = cli.kinds("s", "tool_result")[0]["content"][0]["text"]
    assert answer.endswith("it is late")


@script_of({"text": "Looking.", **call("shell", command="sleep 0.4"), **SLOW}, {"text": "I saw your word."})
def test_a_line_typed_while_the_model_works_is_queued_and_said_at_the_next_step(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s", "--yes")
    terminal.until("new session s")
    terminal.line("Begin.")
    terminal.until("answering")
    terminal.line("And hurry.")
    terminal.until("queued: And hurry.")
    terminal.until("> And hurry.", "I saw your word.", " tokens in, ", gone=("queued:",))
    said = [
        (data.get("origin", "user"), data["content"][0]["text"]) for data in cli.kinds("s", "user_message")
    ]
    assert said == [("user", "Begin."), ("steer", "And hurry.")]


@script_of({"text": "A very long story. " * 40, **SLOW}, "On we go.")
def test_ctrl_c_stops_the_turn_and_a_second_one_leaves(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Tell.")
    terminal.until("A very long story.", "Ctrl-C stops")
    terminal.keys("C-c")
    terminal.until("turn cancelled", "A very long", gone=("Ctrl-C stops",))
    terminal.line("/continue")
    terminal.until("On we go.")
    terminal.keys("C-c")
    terminal.until("Ctrl-C again")
    terminal.keys("C-c")
    assert terminal.until_ended() == 0
    assert reasons(cli, "s") == ["cancelled", "completed"]


@script_of({**call("shell", command="sleep 60")}, "I am back.")
def test_after_sigkill_the_session_is_resumed_and_tells_what_was_mended(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s", "--yes")
    terminal.until("new session s")
    terminal.line("Wait a minute.")
    terminal.until("running shell")
    os.kill(terminal.process(), signal.SIGKILL)
    terminal.until("ENDED 137")
    again = chat("--continue", "--yes", model="")
    shown = again.until("session s: Wait a minute.", "was interrupted: 1 interrupted tool calls answered")
    assert "> Wait a minute." in shown, "what was said last"
    again.line("/why")
    assert "sessions repair" not in again.until("> /why", "the last turn was interrupted")
    again.line("/continue")
    again.until("I am back.")
    assert reasons(cli, "s") == ["interrupted", "completed"]


@script_of("Hello.", "Hello from the other.")
def test_the_model_changes_in_mid_session(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Hi.")
    terminal.until("Hello.", " tokens in, ")
    terminal.line("/model nobody:x")
    terminal.until("unknown provider 'nobody'")
    terminal.line("/model deepseek:deepseek-reasoner")
    terminal.until("deepseek:deepseek-reasoner · ")
    terminal.line("And you?")
    terminal.until("Hello from the other.")
    models = [data["model"] for data in cli.kinds("s", "request_header")]
    assert models == ["deepseek-chat", "deepseek-reasoner"]


@script_of(
    "An answer that is long enough to be wrapped at sixty columns, and so to be drawn anew. " * 2, "Yes."
)
def test_a_window_that_changes_its_size_is_drawn_anew(chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Go.")
    terminal.until("drawn anew.", " tokens in, ")
    for width, height in ((50, 20), (120, 40), (60, 24)):
        terminal.resize(width, height)
        terminal.until("> Go.", "tokens in, ", "deepseek:deepseek-chat · ")
    screen = terminal.screen()
    assert screen.count("tokens in, ") == 1, "no stale copies"
    assert [line for line in screen.splitlines() if line.startswith(">")] == ["> Go.", ">"]
    terminal.line("Still there?")
    terminal.until("Yes.")


@script_of("I read it all.")
def test_a_long_paste_is_one_prompt(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    text = "\n".join(f"line {number} of 漢字" for number in range(300))
    terminal.paste(text)
    terminal.until("line 299")
    terminal.keys("Enter")
    terminal.until("I read it all.")
    assert cli.kinds("s", "user_message")[0]["content"][0]["text"] == text


HOSTILE = "Hear: \x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \u202etxt.exe\r\n" + "x" * 30_000


@script_of({"text": HOSTILE, **call("shell", command="printf '\\033[2J\\033]0;owned\\007boo'")}, "Safe.")
def test_what_models_and_tools_say_does_not_steer_the_terminal(chat: Chat) -> None:
    terminal = chat("--session", "s", "--yes")
    terminal.until("new session s")
    terminal.line("Be evil.")
    terminal.until("Safe.", " tokens in, ")
    shown = terminal.all()
    assert "new session s" in shown, "nothing was wiped"
    assert "Hear: red" in shown
    assert "boo" in shown
    assert "\u202e" not in shown
    assert "\x1b[31m" not in terminal.all(styled=True)


@script_of({"text": "This will fail in the mid", "cut_after": 400, **SLOW}, {"text": "This went well."})
def test_a_failed_call_is_told_in_a_line_and_its_text_withdrawn(chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Go.")
    terminal.until("This went well.", " tokens in, ")
    shown = terminal.all()
    assert "the model call failed: " in shown
    assert "in the mid" not in shown
    terminal.line("/why")
    terminal.until("  code: ")


@script_of("Plain and simple.", "Twice.")
def test_a_dumb_terminal_gets_plain_lines(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s", TERM="dumb")
    terminal.until("-- new session s")
    terminal.line("Hi.")
    terminal.until("Plain and simple.", "tokens in, ")
    terminal.line("/cost")
    terminal.until("failed attempts included")
    terminal.keys("C-d")
    assert terminal.until_ended() == 0
    assert "\x1b" not in terminal.all(styled=True)


@script_of("Hello.")
def test_what_is_typed_can_be_recalled_and_completed(chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Hi there.")
    terminal.until("Hello.", " tokens in, ")
    terminal.keys("Up")
    terminal.until("> Hi there.\n")
    terminal.keys("C-c")
    terminal.keys("/he", "Tab")
    terminal.until("> /help")
    terminal.keys("Enter")
    terminal.until("Ctrl-D leaves.")


@script_of("Hello.")
def test_a_chat_that_cannot_begin_ends_with_one_line(cli: Cli, chat: Chat) -> None:
    cli.extra.clear()
    terminal = chat("--session", "s")
    assert terminal.until_ended() == 2
    assert "lockstitch: no API key for deepseek: set DEEPSEEK_API_KEY" in terminal.screen()
    assert not (cli.home / "sessions" / "s").exists()


@script_of({"text": "First of it.\n\n" + "A line of the story.\n\n" * 60, **SLOW, "chunk_chars": 40}, "Well.")
def test_an_answer_longer_than_the_screen_is_whole_in_the_scrollback(chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Tell.")
    terminal.until("answering")
    terminal.resize(70, 20)
    terminal.until(" tokens in, ")
    shown = terminal.all()
    assert shown.count("A line of the story.") >= 60
    assert "First of it." in shown
    terminal.line("And?")
    terminal.until("Well.")


@script_of(call("shell", command="echo one"), call("shell", command="echo two"), "Both.")
def test_what_is_allowed_for_the_session_is_not_asked_again(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    terminal.line("Say both.")
    terminal.until("allow? y: once · n [why]: no · s: shell(echo *) in this session")
    terminal.line("s")
    terminal.until("allowed, for this session", "Both.")
    assert outcomes(cli, "s") == ["done", "done"]


@script_of("One.", "Two.", "On.")
def test_a_session_is_picked_from_any_folder_and_goes_on_in_its_own(cli: Cli, chat: Chat) -> None:
    require_tmux()
    for name in ("first", "second"):
        folder = cli.cwd.parent / name
        folder.mkdir()
        assert cli.run("--session", name, "--cwd", str(folder), f"The {name} one.").code == 0
    terminal = chat("--pick", width=120)
    terminal.until("1  ", "The second one.", "2  ", "The first one.", "session number")
    terminal.line("2")
    terminal.until("session first: The first one.", "/first")
    terminal.line("Go on.")
    terminal.until("On.", " tokens in, ")
    assert len(cli.kinds("first", "user_message")) == 2


@script_of("Plain.")
def test_without_the_extra_chat_says_how_to_get_more_and_speaks_in_lines(
    cli: Cli, chat: Chat, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['prompt_toolkit'] = None\n")
    terminal = chat("--session", "s", PYTHONPATH=str(tmp_path))
    terminal.until("pip install 'lockstitch[cli]'", "-- new session s")
    terminal.line("Hi.")
    terminal.until("Plain.", "tokens in, ")
    terminal.keys("C-c")
    terminal.until("Ctrl-C again")
    terminal.keys("C-c")
    assert terminal.until_ended() == 0


STORY = "a long story about a till that adds every item and takes the discount off " * 30


@script_of(
    "One.",
    "Two.",
    {"text": "A summary nobody waits for.", "delay_ms": 20_000},
    {"error": {"message": "Something broke"}, "status": 500},
    {"text": "Goal: the till.", "delay_ms": 400},
    "Said later.",
)
def test_a_compaction_is_stopped_like_a_turn_and_what_is_typed_meanwhile_waits(cli: Cli, chat: Chat) -> None:
    terminal = chat("--session", "s")
    terminal.until("new session s")
    for answer in ("One.", "Two."):
        terminal.line(STORY)
        terminal.until(answer, "tokens in, ", gone=("Ctrl-C stops",))
    terminal.line("/compact")
    terminal.until("> /compact", "summarising older history ·", "Ctrl-C stops")
    terminal.keys("C-c")
    terminal.until("stopped; nothing was changed", gone=("Ctrl-C stops",))
    terminal.line("/compact")
    terminal.until("summary: retry 1 after SERVER")
    terminal.line("And then?")
    terminal.until("older history is now a summary", "Said later.")
    assert [end["applied"] for end in cli.kinds("s", "compaction_end")] == [False, True]
    assert [data.get("origin") for data in cli.kinds("s", "user_message")][2:] == ["steer"]


@script_of({"text": "Hello, **you**.", **SLOW})
def test_who_comes_back_sees_what_was_said_last(cli: Cli, chat: Chat) -> None:
    assert cli.run("--session", "s", "Hi there.").code == 0
    terminal = chat("--session", "s")
    shown = terminal.until("session s: Hi there.", "> Hi there.", "Hello, you.")
    assert shown.count("Hello, you.") == 1
    terminal.line("/model deepseek:deepseek-reasoner")
    terminal.until("deepseek-reasoner, in")
    assert terminal.all().count("Hello, you.") == 1, "the same session is not told again"
    terminal.keys("C-d")
    assert terminal.until_ended() == 0
    plain = chat("--session", "s", "--plain")
    plain.until("> Hi there.", "Hello, **you**.")

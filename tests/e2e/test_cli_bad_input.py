"""Whatever a person can get wrong: one clear line on stderr, exit code 2, nothing lost."""

import json
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_process import Cli

from lockstitch.schema.events import SessionStart
from lockstitch.wire.jsonl import encode

RUN = ("run", "-m", "deepseek:deepseek-chat", "--base-url", "http://127.0.0.1:9/v1")


def port_in_use(cli: Cli) -> list[str]:
    taken = socket.create_server(("127.0.0.1", 0))
    cli.open.append(taken)
    (cli.cwd / "s.json").write_text('["Hello."]')
    return ["wire", "gateway", "--script", "s.json", "--port", str(taken.getsockname()[1])]


def newer_log(cli: Cli) -> list[str]:
    folder = cli.home / "sessions" / "new"
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_bytes(encode(0, 0, SessionStart(format=99, id="new")))
    return [*RUN, "--session", "new", "Go on."]


def without_key(cli: Cli) -> list[str]:
    cli.extra.clear()
    return ["run", "-m", "deepseek:deepseek-chat", "Hello."]


def latin1_stdin(cli: Cli) -> list[str]:
    return [*RUN, "-"]


def unreadable_script(cli: Cli) -> list[str]:
    return ["wire", "gateway", "--script", "missing.json"]


def script_with_a_mistake(cli: Cli) -> list[str]:
    (cli.cwd / "s.json").write_text(json.dumps({"answers": [{"txt": "x"}]}))
    return ["wire", "gateway", "--script", "s.json"]


def unreadable_body(cli: Cli) -> list[str]:
    return ["wire", "decode", "--dialect", "openai-chat", "missing.txt"]


def mistaken_settings(cli: Cli) -> list[str]:
    (cli.cwd / "lockstitch.toml").write_text('modle = "x"\n')
    return ["config", "show"]


def latin1_settings(cli: Cli) -> list[str]:
    cli.home.mkdir()
    (cli.home / "config.toml").write_bytes(b'model = "\xe4"\n')
    return [*RUN, "Hi."]


def fixed(*arguments: str) -> Callable[[Cli], list[str]]:
    return lambda cli: list(arguments)


CASES: dict[str, tuple[Callable[[Cli], list[str]], str]] = {
    "an unknown command": (fixed("sing"), "sing"),
    "an unknown option": (fixed("run", "--loudly", "Hi."), "--loudly"),
    "nothing to do": (fixed("run"), "PROMPT"),
    "a prompt and --continue": (fixed(*RUN, "--session", "s", "--continue", "Hi."), "not both"),
    "--continue without a session": (fixed(*RUN, "--continue"), "--session"),
    "--continue of a session that is not there": (fixed(*RUN, "--session", "no", "--continue"), "'no'"),
    "an empty prompt": (fixed(*RUN, "  "), "empty"),
    "a prompt that is not UTF-8": (latin1_stdin, "UTF-8"),
    "an empty session id": (fixed(*RUN, "--session", "", "Hi."), "session"),
    "a session id that is too long": (fixed(*RUN, "--session", "x" * 5000, "Hi."), "session"),
    "no model": (fixed("run", "Hi."), "provider:model"),
    "a model without a provider": (fixed("run", "-m", "gpt", "Hi."), "provider:model"),
    "an unknown provider": (fixed("run", "-m", "nobody:x", "Hi."), "nobody"),
    "a missing key": (without_key, "DEEPSEEK_API_KEY"),
    "a bad base URL": (fixed("run", "-m", "x", "--base-url", "nonsense", "Hi."), "base URL"),
    "a workspace that is not there": (fixed(*RUN, "--cwd", "nowhere", "Hi."), "nowhere"),
    "an unreadable script": (unreadable_script, "missing.json"),
    "a script with a mistake in it": (script_with_a_mistake, "txt"),
    "a port that is in use": (port_in_use, "in use"),
    "a log of a newer format": (newer_log, "99"),
    "an unreadable body": (unreadable_body, "missing.txt"),
    "a configuration file with a mistake in it": (mistaken_settings, "unknown key modle"),
    "a user's file that is not UTF-8": (latin1_settings, "UTF-8"),
    "trust without a file to trust": (fixed("config", "trust"), "lockstitch.toml"),
    "settings of a folder that is not there": (fixed("config", "show", "--cwd", "nowhere"), "no such folder"),
    "the models of an unknown provider": (fixed("models", "nobody"), "nobody"),
    "the latest session of a folder that has none": (fixed("chat", "--continue"), "no session has worked"),
    "two ways to choose a session": (fixed("chat", "--continue", "--session", "s"), "exclude each other"),
    "a choice among no sessions": (fixed("chat", "--pick"), "no sessions yet"),
    "a chat without a model": (fixed("chat"), "provider:model"),
    "a store of no known kind": (fixed("sessions", "list", "--store", "cloud:x"), "cloud:x"),
    "showing a session that is not there": (fixed("sessions", "show", "no"), "no"),
    "checking a session that is not there": (fixed("sessions", "check", "no"), "no"),
}


@pytest.mark.parametrize(("arrange", "said"), CASES.values(), ids=CASES.keys())
def test_bad_input(arrange: Callable[[Cli], list[str]], said: str, tmp_path: Path) -> None:
    with ExitStack() as ends:
        cli = Cli(tmp_path)
        ends.callback(lambda: [held.close() for held in cli.open])
        arguments = arrange(cli)
        before = snapshot(cli.home)
        done = cli(*arguments, stdin=b"\xff\xfe not UTF-8" if arguments[-1] == "-" else None)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1, done.err
    assert done.err.startswith("lockstitch: ")
    assert said in done.err
    assert snapshot(cli.home) == before, "a command that was refused leaves nothing behind"


def snapshot(home: Path) -> dict[str, bytes]:
    """Every file but locks, which only say who looked last."""
    files = [path for path in home.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(home)): path.read_bytes() for path in files}

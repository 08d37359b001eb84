"""The documents are true: named tests exist, links lead somewhere, examples run."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import lockstitch
from lockstitch.cli.main import cli
from lockstitch.testing.gateway import running_gateway
from lockstitch.testing.scripted_model import ScriptedModel

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_test_named_in_the_mission_table_exists() -> None:
    named = re.findall(
        r"`((?:spec|e2e|crash|conformance)/\w+\.py)(?:::(\w+))?`", (ROOT / "docs/mission.md").read_text()
    )
    assert len(named) > 30
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / "tests" / file).exists()
        or (name and f"def {name}(" not in (ROOT / "tests" / file).read_text())
    ]
    assert missing == []


def test_every_module_named_in_the_mission_table_exists() -> None:
    named = re.findall(
        r"`((?:schema|wire|providers|history|session|llm|tools|agent)/\w+\.py)`",
        (ROOT / "docs/mission.md").read_text(),
    )
    assert [path for path in named if not (ROOT / "src/lockstitch" / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_opens_with_exactly_two_commands() -> None:
    assert blocks("README.md", "sh")[0].split("\n")[:-1] == ["./dev demo", "./dev test"]


def test_the_readmes_functions_run(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks("README.md", "python")[0], {})
    first, second = capsys.readouterr().out.splitlines()
    assert first == "(Text(text='Hello', extra=None, replay=None),) stop ()"
    assert second == "RATE_LIMIT retry 7.0"


def test_the_readmes_agent_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [{"tool_calls": [{"name": "add", "arguments": {"a": 17, "b": 25}}]}, {"text": "42."}]
    monkeypatch.setenv("LOCKSTITCH_HOME", str(tmp_path))
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-readme-0123456789")
    with running_gateway(script, strict="openai-chat") as gateway:
        real = lockstitch.Agent

        def here(*args: object, **options: object) -> object:
            return real(*args, base_url=gateway.base_url, **options)  # type: ignore[arg-type]  # only the address differs

        monkeypatch.setattr(lockstitch, "Agent", here)
        exec(blocks("README.md", "python")[1], {"__name__": "readme"})
        asked = [request["body"]["messages"][-1] for request in gateway.requests]
    assert capsys.readouterr().out.startswith("42. Usage(")
    assert asked[1]["content"] == "42"


def commands(group: click.Group, path: str = "lockstitch") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_every_command_and_option_is_in_the_manual() -> None:
    manual = (ROOT / "docs/cli.md").read_text()
    found = dict(commands(cli))
    assert len(found) > 7
    missing = [
        f"{path} {option}"
        for path, command in found.items()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option not in manual
    ]
    missing += [path for path in found if path.split()[-1] not in manual]
    assert missing == []


async def test_the_agent_guides_snippets_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order, as one program, with a scripted model for ``model``."""
    monkeypatch.setenv("LOCKSTITCH_HOME", str(tmp_path))
    script = [
        {"tool_calls": [{"name": "add", "arguments": {"a": 17, "b": 25}}]},
        "42.",
        "84.",
        '{"name": "Chongqing", "people": 32054159}',
    ]
    model = ScriptedModel(script, strict="openai-chat")
    space: dict[str, object] = {"model": model, "__name__": "guide"}
    for snippet in blocks("docs/agent.md", "python"):
        code = compile(snippet, "docs/agent.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        made = eval(code, space)
        if made is not None:
            await made
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("42. Usage(")
    assert printed[1:] == ["False What is 17 + 25? 4", "84.(completed)", "32054159"]
    assert model.left == 0

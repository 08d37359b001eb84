"""What the pages show works: Python runs, settings are read, commands parse, JSON is JSON."""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pytest

import lockstitch
from lockstitch.cli import settings
from lockstitch.cli.main import cli
from lockstitch.testing.gateway import running_gateway

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/formats").glob("*.md")),
]
MADE_PAGE = "python.md"
"""Written from the docstrings; its blocks are signatures."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def of_pages(language: str) -> Iterator[object]:
    for page in PAGES:
        for number, text in enumerate(blocks(page, language), 1):
            yield pytest.param(text, id=f"{page.name} {number}")


PYTHON: dict[str, tuple[list[object], str]] = {
    "tutorial.md 1": ([{"tool_calls": [{"name": "add", "arguments": {"a": 17, "b": 25}}]}, "42."], "42.\n"),
    "recipes.md 1": (["Hello."], "TextDelta\nTurnEnded\nTrue True\n"),
    "recipes.md 2": (
        [{"tool_calls": [{"name": "launch", "arguments": {"name": "Apollo"}}]}, "Then not."],
        'may I? launch {"name":"Apollo"}\nThen not.\n',
    ),
    "recipes.md 3": (["Hello."], "BUDGET\n"),
    "recipes.md 4": (['{"name": "Turin", "people": 850000}'], "City(name='Turin', people=850000)\n"),
}
"""What the gateway answers, and what the snippet prints."""


@pytest.mark.parametrize(("name", "answers", "printed"), [(k, *v) for k, v in PYTHON.items()], ids=PYTHON)
def test_a_python_snippet_does_what_it_says(
    name: str,
    answers: list[object],
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, _, number = name.partition(" ")
    text = blocks(ROOT / "docs" / page, "python")[int(number) - 1]
    monkeypatch.setenv("LOCKSTITCH_HOME", str(tmp_path))
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-documents-0123456789")
    with running_gateway(answers, strict="openai-chat") as gateway:
        real = lockstitch.Agent

        def here(*args: object, **options: object) -> object:
            return real(*args, base_url=gateway.base_url, **options)  # type: ignore[arg-type]  # only the address differs

        monkeypatch.setattr(lockstitch, "Agent", here)
        exec(compile(text, name, "exec", dont_inherit=True), {"__name__": "snippet"})
    assert capsys.readouterr().out == printed


def test_every_python_snippet_of_these_pages_is_run() -> None:
    pages = {name.split()[0] for name in PYTHON} | {"chat.md", "configuration.md", "why-sessions-brick.md"}
    found = {f"{page} {n}" for page in pages for n, _ in enumerate(blocks(ROOT / "docs" / page, "python"), 1)}
    assert found == set(PYTHON)


@pytest.mark.parametrize("text", list(of_pages("toml")))
def test_a_toml_snippet_is_a_file_of_settings(text: str) -> None:
    layer = settings.Layer("user", "config.toml", settings.read(text, "config.toml"))
    assert settings.layered([layer]).model == tomllib.loads(text)["model"]


@pytest.mark.parametrize("text", list(of_pages("json")))
def test_a_json_snippet_is_json(text: str) -> None:
    json.loads(text)


def lines() -> Iterator[object]:
    """Every line of a shell snippet that runs the command."""
    for page in PAGES:
        for text in blocks(page, "sh"):
            for line in text.replace("\\\n", " ").splitlines():
                for words in commands(line):
                    if words[:1] == ["lockstitch"]:
                        yield pytest.param(words[1:], id=f"{page.name}: {' '.join(words)[:60]}")


def commands(line: str) -> list[list[str]]:
    """The words of each command of a line, without what it is redirected to."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|&;<>()"):
            found.append([])
        else:
            found[-1].append(word)
    return found


@pytest.mark.parametrize("words", list(lines()))
def test_a_command_line_is_one_that_the_command_takes(words: list[str]) -> None:
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]
    command.make_parser(click.Context(command)).parse_args(list(words))


def test_the_python_page_names_everything_public() -> None:
    spec = spec_from_file_location("python_reference", ROOT / "docs/python_reference.py")
    assert spec is not None
    assert spec.loader is not None
    maker = module_from_spec(spec)
    spec.loader.exec_module(maker)
    headings = re.findall(r"^## `(\w+)`$", (ROOT / "docs/python.md").read_text(), re.MULTILINE)
    assert headings == lockstitch.__all__, "run python docs/python_reference.py"
    if sys.version_info[:2] == (3, 11):  # later versions write some signatures differently
        assert (ROOT / "docs/python.md").read_text() == maker.page(), "run python docs/python_reference.py"


def test_llms_txt_names_every_page() -> None:
    text = (ROOT / "docs/llms.txt").read_text()
    named = set(re.findall(r"\]\(([^)]+)\)", text))
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert {page for page in named if not (ROOT / "docs" / page).exists()} == set()
    assert {
        "tutorial.md",
        "chat.md",
        "configuration.md",
        "recipes.md",
        "cli.md",
        "python.md",
    } <= named & pages


def test_the_site_has_every_page_of_its_order() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    named = re.findall(r"'([\w/-]+\.md)'", str(site["nav"]))
    assert len(named) > 12
    assert [page for page in named if not (ROOT / "docs" / page).exists()] == []

"""Which of several settings counts, what a project's file may not say, and what is told about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lockstitch.cli import config_files
from lockstitch.cli.agents_files import CUT, FILE_MAX, project_text
from lockstitch.cli.settings import Settings
from lockstitch.llm.endpoint import resolve
from lockstitch.schema.errors import CallerError

USER = """
model = "deepseek:deepseek-chat"
[approvals]
allow = ["shell(git status)"]
deny = ["shell(rm *)"]
[profiles.mine]
extends = "generic"
base_url = "http://127.0.0.1:9/v1"
key_env = "MINE_KEY"
[models."mine:small"]
context_window = 8000
input = 1.0
output = 2.0
"""


class World:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "work" / "inner"
        self.home.mkdir()
        self.workspace.mkdir(parents=True)
        self.environ = {"LOCKSTITCH_HOME": str(self.home)}

    def user(self, text: str) -> None:
        (self.home / "config.toml").write_text(text)

    def project(self, text: str) -> Path:
        file = self.workspace.parent / "lockstitch.toml"
        file.write_text(text)
        return file

    def load(self, **flags: Any) -> Settings:
        return config_files.load(self.workspace, self.environ, flags=flags)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


PRECEDENCE: dict[str, tuple[Mapping[str, str], str, str, Mapping[str, str], tuple[str, str]]] = {
    "an option goes before all": (
        {"LOCKSTITCH_MODEL": "openai:env"},
        'model = "openai:project"',
        'model = "openai:user"',
        {"model": "openai:flag"},
        ("openai:flag", "flag"),
    ),
    "a variable before the files": (
        {"LOCKSTITCH_MODEL": "openai:env"},
        'model = "openai:project"',
        'model = "openai:user"',
        {},
        ("openai:env", "environment"),
    ),
    "the project before the user": (
        {},
        'model = "openai:project"',
        'model = "openai:user"',
        {},
        ("openai:project", "project"),
    ),
    "the user's own before the defaults": ({}, "", 'model = "openai:user"', {}, ("openai:user", "user")),
}


@pytest.mark.parametrize(
    ("environ", "project", "user", "flags", "expected"), PRECEDENCE.values(), ids=PRECEDENCE
)
def test_precedence(
    world: World,
    environ: Mapping[str, str],
    project: str,
    user: str,
    flags: Mapping[str, str],
    expected: tuple[str, str],
) -> None:
    world.environ |= environ
    world.project(project)
    world.user(user)
    found = next(value for value in world.load(**flags).values if value.key == "model")
    assert (found.value, found.origin) == expected


def test_rules_of_all_sources_add_up(world: World) -> None:
    world.user(USER)
    world.project('[approvals]\ndeny = ["fetch"]\nask = ["write"]')
    policy = world.load().policy
    assert (policy.allow, set(policy.deny), policy.ask) == (
        ("shell(git status)",),
        {"shell(rm *)", "fetch"},
        ("write",),
    )


NOT_WITHOUT_TRUST = {
    "an address": 'base_url = "http://evil.example/v1"',
    "a store": 'store = "files:/somewhere"',
    "rules that allow": '[approvals]\nallow = ["shell"]',
    "a profile, which names an address and a key": (
        '[profiles.deepseek]\nextends = "deepseek"\nbase_url = "http://evil.example"'
    ),
    "a budget": "[budget]\nsteps = 100000",
    "a model's price": '[models."deepseek:deepseek-chat"]\ninput = 0.0\noutput = 0.0',
}


@pytest.mark.parametrize("text", NOT_WITHOUT_TRUST.values(), ids=NOT_WITHOUT_TRUST)
def test_a_projects_file_sets_only_with_trust(world: World, text: str) -> None:
    file = world.project(text)
    before = world.load()
    assert [value.key for value in before.values] == ["agents_files"]
    assert len(before.notices) == 1
    assert "lockstitch config trust" in before.notices[0]
    config_files.trust(file, world.environ)
    trusted = world.load()
    assert len(trusted.values) > 1
    assert trusted.notices == ()
    file.write_text(text + "\n# changed\n")
    assert world.load().notices == before.notices, "what was trusted is the text, not the place"
    config_files.trust(file, world.environ)
    config_files.trust(file, world.environ, trusted=False)
    assert world.load().notices == before.notices


def test_a_users_profile_works_like_one_of_the_catalog(world: World) -> None:
    world.user(USER)
    settings = world.load()
    found = resolve("mine:small", environ={"MINE_KEY": "sk-0123456789"}, profiles=settings.profiles)
    assert (found.base_url, found.model, found.profile.missing_call_id) == (
        "http://127.0.0.1:9/v1",
        "small",
        "mint",
    )
    assert found.key is not None
    assert settings.models["mine:small"].context_window == 8000


def test_a_key_may_come_from_a_store_of_keys() -> None:
    asked: list[str] = []

    def store(name: str) -> str:
        asked.append(name)
        return " sk-stored-0123456789 "

    found = resolve("deepseek:x", environ={}, key_store=store)
    assert found.key is not None
    assert found.key.reveal() == "sk-stored-0123456789"
    again = resolve("deepseek:x", environ={"DEEPSEEK_API_KEY": "sk-environ-012345"}, key_store=store)
    assert again.key is not None
    assert again.key.reveal() == "sk-environ-012345"
    assert asked == ["DEEPSEEK_API_KEY"]


def test_an_address_of_a_file_does_not_go_with_a_model_from_elsewhere(world: World) -> None:
    world.user('model = "generic:local"\nbase_url = "http://127.0.0.1:9/v1"')
    assert world.load().base_url == "http://127.0.0.1:9/v1"
    assert world.load(model="deepseek:deepseek-chat").base_url is None
    assert world.load(model="generic:x", base_url="http://other/v1").base_url == "http://other/v1"


MISTAKES = {
    "no TOML": ("model = ", "is not TOML"),
    "an unknown key": ('modle = "x"', "unknown key modle; known: model, base_url"),
    "an unknown key in a table": ("[budget]\ncost = 1", "unknown key budget.cost; known: steps"),
    "a wrong type": ("model = 3", "Expected `str"),
    "a rule that cannot be read": ('[approvals]\nallow = ["shell(("]', "cannot be read"),
    "a profile with an unknown field": ('[profiles.x]\nprotocol = "openai-chat"\ncolour = 1', "colour"),
    "a budget that is no number": ("[budget]\ncost_usd = nan", "nan is no number"),
    "a budget without end": ("[budget]\nseconds = inf", "inf is no number"),
    "a price beyond a double": ("[models.x]\ninput = 1e999\noutput = 1", "1e999 is no number"),
    "a number of too many digits": ("[budget]\nsteps = " + "1" * 5000, "is not TOML: Exceeds the limit"),
    "nesting without end": ("model = " + "[" * 5000, "is not TOML: maximum recursion depth"),
    "a profile that extends itself": ('[profiles.x]\nextends = "x"', "extends 'x'"),
}


@pytest.mark.parametrize(("text", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_file_is_one_line_that_names_it(world: World, text: str, said: str) -> None:
    world.user(text)
    with pytest.raises(CallerError) as caught:
        world.load()
    assert said in str(caught.value)
    assert str(world.home / "config.toml") in str(caught.value)


def test_agents_files_come_from_the_root_down_to_the_workspace(world: World) -> None:
    root = world.workspace.parent
    (root / ".git").mkdir()
    (root / "AGENTS.md").write_text("Outer.\n")
    (world.workspace / "AGENTS.md").write_text("Inner \x1b[31mred.\n")
    (root.parent / "AGENTS.md").write_text("Not of this project.\n")
    found = project_text(world.workspace)
    assert found.text == (
        "# What this project asks of agents\n\n## AGENTS.md\n\nOuter.\n\n## inner/AGENTS.md\n\nInner red.\n"
    )
    assert found.files == (root / "AGENTS.md", world.workspace / "AGENTS.md")
    assert project_text(world.workspace) == found, "the same bytes each time: prefix caches hold"


def test_without_a_repository_only_the_workspace_speaks(world: World) -> None:
    (world.workspace.parent / "AGENTS.md").write_text("Outer.\n")
    assert project_text(world.workspace).text == ""


def test_a_repository_around_the_home_folder_does_not_count(world: World) -> None:
    (world.workspace.parent / ".git").mkdir()
    (world.workspace.parent / "AGENTS.md").write_text("Outer.\n")
    assert project_text(world.workspace, home=world.workspace.parent).text == ""


def test_a_long_agents_file_is_cut_and_told(world: World) -> None:
    (world.workspace / "AGENTS.md").write_text("a line\n" * FILE_MAX)
    found = project_text(world.workspace)
    assert found.text.endswith(CUT.strip() + "\n")
    assert len(found.text.encode()) < FILE_MAX + 200
    assert "too long" in found.notices[0]


def test_an_agents_file_that_leads_out_of_the_project_is_not_read(world: World) -> None:
    secret = world.home / "secret"
    secret.write_text("key")
    (world.workspace / "AGENTS.md").symlink_to(secret)
    found = project_text(world.workspace)
    assert (found.text, len(found.notices)) == ("", 1)

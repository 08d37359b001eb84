"""The catalog of profiles, and the table of dialects."""

import re
import tomllib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch import repair
from lockstitch.providers.catalog import (
    DEFAULT_PROFILES,
    profile,
    profiles,
    read_profiles,
    with_overrides,
)
from lockstitch.providers.dialects import DIALECTS, translator
from lockstitch.providers.markup import FAMILIES
from lockstitch.schema.errors import CallerError
from lockstitch.schema.profiles import Profile

NAMED = (
    *(
        "deepseek",
        "moonshot",
        "qwen",
        "dashscope",
        "vllm",
        "sglang",
        "ollama",
        "llama.cpp",
        "openrouter",
        "groq",
    ),
    *("mistral", "fireworks", "minimax", "zhipu", "azure", "openai", "generic"),
)


def test_every_promised_profile_speaks_chat() -> None:
    assert {name: profile(name).protocol for name in NAMED} == dict.fromkeys(NAMED, "openai-chat")


def test_every_dialect_has_a_plain_profile() -> None:
    assert {dialect: profile(name).protocol for dialect, name in DEFAULT_PROFILES.items()} == {
        dialect: dialect for dialect in DIALECTS
    }


@pytest.mark.parametrize("name", profiles())
def test_a_profile_is_consistent(name: str) -> None:
    one = profile(name)
    assert one.name == name
    assert set(one.markup_calls) <= set(FAMILIES)
    assert re.fullmatch(f"{one.id_pattern}+", "a1")
    assert one.id_exact is None or one.id_exact == one.id_max
    assert one.key_env is None or re.fullmatch(r"[A-Z][A-Z0-9_]+", one.key_env)
    assert one.base_url is None or re.fullmatch(r"https?://[^/]+(/.*[^/])?", one.base_url)


def test_generic_needs_no_key_and_makes_up_ids() -> None:
    generic = profile("generic")
    assert (generic.key_env, generic.key_required, generic.missing_call_id, generic.markup_calls) == (
        "LOCKSTITCH_API_KEY",
        False,
        "mint",
        (),
    )


def test_deepseek_refuses_calls_without_an_id() -> None:
    assert profile("deepseek").missing_call_id == "refuse"


def test_id_rules() -> None:
    rules = {
        name: (profile(name).id_max, profile(name).id_exact)
        for name in ("openai", "azure", "mistral", "vllm")
    }
    assert rules == {"openai": (40, None), "azure": (40, None), "mistral": (9, 9), "vllm": (64, None)}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CallerError, match="unknown profile 'nobody'; known: generic, deepseek"):
        profile("nobody")


def test_a_users_profile_extends_another() -> None:
    document = tomllib.loads(
        """
        [profiles.base]
        protocol = "openai-chat"
        markup_calls = ["kimi"]
        [profiles.mine]
        extends = "base"
        aliases = ["my"]
        base_url = "http://127.0.0.1:9/v1"
        """
    )
    found = read_profiles(document)
    assert list(found) == ["base", "mine", "my"]
    assert (found["my"].name, found["my"].markup_calls, found["my"].base_url) == (
        "my",
        ("kimi",),
        "http://127.0.0.1:9/v1",
    )


WRONG = {
    "an unknown field": '[profiles.x]\nprotocol = "openai-chat"\ncolour = 1',
    "a value of another type": '[profiles.x]\nprotocol = "openai-chat"\nid_max = "many"',
    "an unknown protocol": '[profiles.x]\nprotocol = "smtp"',
    "no protocol": "[profiles.x]",
    "a base that is not there": '[profiles.x]\nextends = "y"',
    "a base that is no name": "[profiles.x]\nextends = [1]",
    "no table": "[profiles]\nx = 5",
    "aliases that are no names": '[profiles.x]\nprotocol = "openai-chat"\naliases = [1]',
    "aliases that are one name": '[profiles.x]\nprotocol = "openai-chat"\naliases = "y"',
    "an id of no length": '[profiles.x]\nprotocol = "openai-chat"\nid_max = 0',
    "ids without end": '[profiles.x]\nprotocol = "openai-chat"\nid_exact = 99999999999',
    "a window of nothing": '[profiles.x]\nprotocol = "openai-chat"\ncontext_window = 0',
    "a class of characters that does not end": '[profiles.x]\nprotocol = "openai-chat"\nid_pattern = "["',
    "a class of characters in a wrong order": '[profiles.x]\nprotocol = "openai-chat"\nid_pattern = "[z-a]"',
    "a pattern that would take for ever": '[profiles.x]\nprotocol = "openai-chat"\nid_pattern = "(a+)+"',
}


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, float("nan"), "", "x", "[", "generic", "\ud800", [], [1], [[]]),
    *({}, {"a": 1}, datetime(2026, 1, 1, tzinfo=UTC)),
)


@given(
    st.dictionaries(
        st.sampled_from([*Profile.__struct_fields__, "extends", "aliases", "colour"]), st.sampled_from(ODD)
    ),
    st.sampled_from(["x", "", "\ud800"]),
)
def test_any_table_is_a_profile_that_works_or_a_mistake_of_its_author(
    table: dict[str, Any], name: str
) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    for document in ({"profiles": {name: {"protocol": "openai-chat", **table}}}, {"profiles": table}):
        try:
            found = read_profiles(document)
        except CallerError as error:
            str(error)
            continue
        for made in found.values():
            repair(request, made.protocol, source="openai-chat", profile=made)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_profile_names_itself(name: str) -> None:
    with pytest.raises(CallerError, match="profile 'x'"):
        read_profiles(tomllib.loads(WRONG[name]))


def test_limits_override_a_profile() -> None:
    changed = with_overrides(profile("openai"), vision=False, id_max=10)
    assert (changed.vision, changed.id_max, changed.name) == (False, 10, "openai")
    with pytest.raises(CallerError, match="profile 'openai'"):
        with_overrides(profile("openai"), id_max="long")


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(CallerError, match="unknown dialect 'smtp'; known: openai-chat"):
        translator("smtp", profile("generic"))

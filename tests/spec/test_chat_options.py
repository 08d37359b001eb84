"""Options of a chat request, in the spelling of each provider, which comes from the catalog alone."""

import tomllib
from typing import Any

import pytest

from lockstitch.providers.catalog import profile, read_profiles
from lockstitch.providers.openai_chat_request import encode
from lockstitch.schema.blocks import Text
from lockstitch.schema.messages import Message, Options, Request, ToolSpec
from lockstitch.schema.profiles import Profile

TOOLS = (ToolSpec("ls", "", {"type": "object"}),)
ALWAYS = {"model", "messages", "stream", "tools"}
USAGE = {"stream_options": {"include_usage": True}}
ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}


def fields(given: Profile, options: Options) -> tuple[dict[str, Any], list[str]]:
    """What options become in the body, and the notes."""
    wire = encode(Request("m", (Message("user", (Text("Hi"),)),), tools=TOOLS, options=options), given)
    left = {key: value for key, value in wire.body.items() if key not in ALWAYS}
    return left, [note.detail for note in wire.notes]


EFFORTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "generic": ({"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
    "openai": ({"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
    "deepseek": ({**ON, "reasoning_effort": "high"}, OFF),
    "moonshot": (ON, OFF),
    "kimi": (ON, OFF),
    "zhipu": (ON, OFF),
    "zai": (ON, OFF),
    "qwen": ({"enable_thinking": True}, {"enable_thinking": False}),
    "dashscope": ({"enable_thinking": True}, {"enable_thinking": False}),
    "openrouter": ({"reasoning": {"effort": "high"}}, {"reasoning": {"enabled": False}}),
    "vllm": (
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ),
}


@pytest.mark.parametrize("name", EFFORTS)
def test_reasoning_effort_in_the_providers_spelling_under_every_name_of_it(name: str) -> None:
    one = profile(name)
    usage = USAGE if one.stream_usage else {}
    found = tuple(fields(one, Options(reasoning_effort=effort))[0] for effort in ("high", "off"))
    assert found == tuple({**usage, **wanted} for wanted in EFFORTS[name])


OTHERS: dict[str, tuple[str, Options, dict[str, Any], list[str]]] = {
    "a limit under the older name": ("deepseek", Options(max_tokens=9), {**USAGE, "max_tokens": 9}, []),
    "a limit under the newer name": (
        "moonshot",
        Options(max_tokens=9),
        {**USAGE, "max_completion_tokens": 9},
        [],
    ),
    "no stream options where they are unknown": (
        "mistral",
        Options(tool_choice="required"),
        {"tool_choice": "required"},
        [],
    ),
    "what a provider does not take is left out with a note": (
        "zai",
        Options(tool_choice="required"),
        {},
        ["zai does not take tool_choice"],
    ),
    "fields that a provider always wants": ("minimax", Options(), {**USAGE, "reasoning_split": True}, []),
    "the caller's own fields win over them": (
        "minimax",
        Options(extra={"reasoning_split": False}),
        {**USAGE, "reasoning_split": False},
        [],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_options(name: str) -> None:
    provider, options, wanted, notes = OTHERS[name]
    assert fields(profile(provider), options) == (wanted, notes)


def test_a_profile_that_extends_another_speaks_like_it() -> None:
    document = """
        [profiles.base]
        protocol = "openai-chat"
        effort = "enable_thinking"
        [profiles.mine]
        extends = "base"
    """
    mine = read_profiles(tomllib.loads(document))["mine"]
    assert fields(mine, Options(reasoning_effort="low"))[0] == {**USAGE, "enable_thinking": True}


def test_zai_and_zhipu_are_two_addresses_of_one_api() -> None:
    zhipu, zai = profile("zhipu"), profile("zai")
    assert (zhipu.base_url, zhipu.key_env) == ("https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY")
    assert (zai.base_url, zai.key_env) == ("https://api.z.ai/api/paas/v4", "ZAI_API_KEY")

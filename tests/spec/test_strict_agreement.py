"""Two readings of the same rules: what Lockstitch sends the strict gateway takes, what that refuses is known.

The strict checkers and the validators share no code, so each is a test of the other.
"""

import json
from typing import Any

import pytest
from histories import any_messages, plausible_messages
from hypothesis import given, settings
from hypothesis import strategies as st
from test_strict_chat import ACCEPTED as CHAT_ACCEPTED
from test_strict_chat import REFUSED as CHAT_REFUSED
from test_strict_others import ACCEPTED, PATHS, REFUSED

from lockstitch.history.project import Intent, project
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile
from lockstitch.providers.classify import classify
from lockstitch.schema.messages import Message, Request, ToolSpec
from lockstitch.testing import routes
from lockstitch.testing.strict import CHECKERS

PROFILES = {
    "openai": ("openai-chat", "m"),
    "deepseek": ("openai-chat", "m"),
    "anthropic": ("anthropic-messages", "m"),
    "openai-responses": ("openai-responses", "m"),
    "gemini": ("gemini", "gemini-3-pro"),
}
PROTOCOLS = {p.dialect: p for p in (routes.CHAT, routes.ANTHROPIC, routes.RESPONSES, routes.GEMINI)}
TOOLS = (ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)


@pytest.mark.parametrize("name", PROFILES)
@settings(max_examples=60, deadline=None)
@given(
    messages=st.one_of(any_messages, plausible_messages),
    intent=st.sampled_from([Intent.REQUEST, Intent.SUMMARY]),
)
def test_any_history_goes_through(name: str, messages: list[Message], intent: Intent) -> None:
    dialect, model = PROFILES[name]
    target = profile(name)
    projected = project(messages, target, model=model, intent=intent)
    request = Request(model=model, messages=projected.messages, system="Be brief.", tools=TOOLS)
    wire = dialects.encode(request, target)
    refusal = CHECKERS[dialect](json.loads(wire.encoded()), PATHS[dialect])
    assert refusal is None, f"{refusal.rule}: {refusal.message}"


ALL_REFUSED = {"openai-chat": CHAT_REFUSED, **REFUSED}
ALL_ACCEPTED = {"openai-chat": CHAT_ACCEPTED, **ACCEPTED}
BY_DIALECT = {
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
}
NOT_OURS = {
    # of the request around the messages, which the encoder alone writes
    ("openai-chat", "no model"),
    ("openai-chat", "no tools in a list of them"),
    ("anthropic-messages", "no limit"),
    ("anthropic-messages", "a limit of none"),
    ("openai-responses", "no model"),
    ("gemini", "an unknown name"),
    ("gemini", "two kinds of data in one part"),
    ("gemini", "an image without a type"),
    # of one provider of several behind the protocol
    ("anthropic-messages", "calls, and no tools"),
    # the model decides, and a validator does not know it
    ("gemini", "a call of this turn without its signature"),
    # a schema with words it does not know goes into another field
    ("gemini", "a schema with a word it does not know"),
    # items that only a caller's own request can hold
    ("openai-responses", "reasoning without a summary"),
    ("openai-responses", "an item id twice"),
    ("openai-responses", "another protocol's cache mark"),
}
STRICTER: dict[tuple[str, str], str] = {
    ("openai-chat", "a system prompt and parts"): "an image without data",
    ("gemini", "text beside the responses"): "some versions of the API want responses alone",
}
"""What the validators refuse beyond the gateway, and why."""


def violations(dialect: str, body: Any) -> list[Any]:
    return dialects.violations(body, dialect, profile(BY_DIALECT[dialect]))


@pytest.mark.parametrize("dialect", ALL_REFUSED)
def test_what_the_gateway_refuses_the_validators_know(dialect: str) -> None:
    unknown = {
        (dialect, name)
        for name, (body, _, _) in ALL_REFUSED[dialect].items()
        if not violations(dialect, body)
    }
    assert unknown <= NOT_OURS


NO_WAY_OUT = {("anthropic-messages", "tool_choice"), ("gemini", "unknown_name")}
"""Options that the caller chose wrongly, fields that only a caller can add: another request is no help."""


@pytest.mark.parametrize("dialect", ALL_REFUSED)
def test_every_refusal_leads_to_a_recovery(dialect: str) -> None:
    stuck = set()
    for body, rule, _ in ALL_REFUSED[dialect].values():
        refusal = CHECKERS[dialect](body, PATHS[dialect])
        assert refusal is not None
        error = PROTOCOLS[dialect].error(refusal.error, refusal.status)
        if classify(refusal.status, {}, error, dialect=dialect).recovery in {"none", "retry", "compact"}:
            stuck.add((dialect, rule))
    assert stuck <= NO_WAY_OUT


@pytest.mark.parametrize("dialect", ALL_ACCEPTED)
def test_what_the_gateway_takes_the_validators_take(dialect: str) -> None:
    refused = {(dialect, name) for name, body in ALL_ACCEPTED[dialect].items() if violations(dialect, body)}
    assert refused <= set(STRICTER)

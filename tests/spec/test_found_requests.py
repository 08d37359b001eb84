"""Plain requests that hostile testing broke ``lint`` and ``repair`` with."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lockstitch import lint, repair
from lockstitch.history.nesting import CUT_DEPTH, shallow
from lockstitch.schema.errors import CallerError

DIALECTS = ("openai-chat", "anthropic-messages", "openai-responses", "gemini")
DEPTHS = (101, 900)


def deep(depth: int, *, lists: bool) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


PLACES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "a message's content": lambda value: {"messages": [{"role": "user", "content": value}]},
    "a part of a message": lambda value: {
        "messages": [{"role": "user", "content": [{"type": "x", "y": value}]}]
    },
    "a message": lambda value: {"messages": [value]},
    "a call's arguments": lambda value: {
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": value}]}
        ]
    },
    "an item": lambda value: {"input": [{"type": "reasoning", "summary": value}]},
    "a part of contents": lambda value: {"contents": [{"role": "model", "parts": [{"text": value}]}]},
    "a tool's schema": lambda value: {
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "a", "parameters": value}}],
    },
    "a field nobody knows": lambda value: {"messages": [{"role": "user", "content": "x"}], "new": value},
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_nested_too_deep_is_told_and_mended(dialect: str, place: str, depth: int) -> None:
    for lists in (True, False):
        request = {"model": "m", "max_tokens": 5, **PLACES[place](deep(depth, lists=lists))}
        before = json.dumps(request)
        lint(request, dialect)
        for source in (None, *DIALECTS):
            made = repair(request, dialect, source=source)
            assert lint(made.request, dialect) == []
            if "new" not in request or source is None:
                assert made.anomalies
        assert json.dumps(request) == before


def test_what_is_cut_is_named_by_its_field() -> None:
    request = {"a": deep(CUT_DEPTH - 2, lists=True), "b": deep(CUT_DEPTH - 1, lists=True)}
    cut = shallow(request, CUT_DEPTH)
    assert cut.cut == ("b",)
    assert cut.request["a"] is request["a"]
    assert json.dumps(cut.request["b"]) == json.dumps(request["b"]).replace("{}", "null")


@pytest.mark.parametrize("request_", [None, [], "x", 5], ids=["None", "a list", "a text", "a number"])
def test_what_is_no_request_is_the_callers_error(request_: Any) -> None:
    for check in (lint, repair):
        with pytest.raises(CallerError, match="a request is a mapping"):
            check(request_, "openai-chat")


def test_a_limit_that_cannot_be_encoded_is_the_callers_error() -> None:
    with pytest.raises(CallerError):
        lint({}, "openai-chat", vision="\ud800")

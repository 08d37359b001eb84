"""The rules of openai-responses: for each a request that breaks just it, and requests that break none."""

from typing import Any

import pytest
from rule_mutations import deep, survivors

from lockstitch.history.repair import target_profile
from lockstitch.providers import responses_rules
from lockstitch.providers.catalog import profile, with_overrides
from lockstitch.providers.responses_rules import RULES, ResponsesRules, violations

PROFILE = profile("openai-responses")
DEEPSEEK = target_profile("openai-responses", "deepseek")
PNG = "data:image/png;base64,aGk="


def message(role: Any = "user", content: Any = "q", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **fields}


def says(words: Any = "a") -> dict[str, Any]:
    return message("assistant", [{"type": "output_text", "text": words}])


def call(call_id: Any = "c1", name: Any = "read", arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **fields}


def output(call_id: Any = "c1", value: Any = "r") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def reasoning(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def image(url: Any = PNG) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url}


U = message()
Rules = list[tuple[str, str]]

ITEMS: dict[str, tuple[list[Any], Rules]] = {
    "a request without items": ([], [("input_empty", "input")]),
    "an item that is no object": (["q", U], [("item_unknown", "input[0]")]),
    "an item of an unknown type": ([{"type": "hologram"}, U], [("item_unknown", "input[0]")]),
    "an item without a type or a role": ([{"content": "q"}, U], [("item_unknown", "input[0]")]),
    "a role of another protocol": ([message("tool"), U], [("role_unknown", "input[0]")]),
    "an output without a call": ([U, output()], [("output_without_call", "input[1]")]),
    "a second output of one call": (
        [U, call(), call("c2"), output(), output(), output("c2")],
        [("output_duplicate", "input[4]")],
    ),
    "a call without an output": ([U, call()], [("call_unanswered", "input[1]")]),
    "a call without an output before the next": (
        [U, call(), U, call("c2"), output("c2")],
        [("call_unanswered", "input[3]")],
    ),
    "a message between a call and its output": (
        [U, call(), message("developer"), output()],
        [("output_not_adjacent", "input[3]")],
    ),
    "an answer between a call and its output": (
        [U, call(), says(), output()],
        [("output_not_adjacent", "input[3]")],
    ),
    "one call id twice": ([U, call(), output(), call(), output()], [("call_id_duplicate", "input[3]")]),
    "a call id that is too long": ([U, call("x" * 65), output("x" * 65)], [("call_id_invalid", "input[1]")]),
    "a call id with a blank": ([U, call("a b"), output("a b")], [("call_id_invalid", "input[1]")]),
    "a call without a name": ([U, call(name=""), output()], [("call_name_invalid", "input[1]")]),
    "arguments that are cut": ([U, call(arguments="{"), output()], [("call_arguments_invalid", "input[1]")]),
    "the id of a message on a call": ([U, call(id="msg_1"), output()], [("item_id_invalid", "input[1]")]),
    "the id of a call on a message": ([message(id="fc_1")], [("item_id_invalid", "input[0]")]),
    "the id of a message on reasoning": (
        [U, reasoning(id="msg_1"), says(), U],
        [("item_id_invalid", "input[1]")],
    ),
    "an output that is an object": ([U, call(), output(value={})], [("output_shape", "input[2]")]),
    "a blank output": ([U, call(), output(value=" ")], [("output_empty", "input[2]")]),
    "content that is a number": ([message(content=7)], [("content_shape", "input[0]")]),
    "text that is no string": (
        [message(content=[{"type": "input_text", "text": None}])],
        [("content_shape", "input[0].content[0]")],
    ),
    "an empty list of parts": ([message(content=[])], [("content_empty", "input[0]")]),
    "blank text": ([message(content="")], [("content_empty", "input[0].content")]),
    "an input part in an answer": (
        [U, message("assistant", [{"type": "input_text", "text": "x"}]), U],
        [("part_unknown", "input[1].content[0]")],
    ),
    "an image at no URL": ([message(content=[image("x")])], [("image_invalid", "input[0].content[0]")]),
    "an image of another type": (
        [message(content=[image("data:image/tiff;base64,aGk=")])],
        [("image_invalid", "input[0].content[0]")],
    ),
    "an answer at the end": ([U, says()], [("assistant_last", "input[1]")]),
    "reasoning at the end": ([U, reasoning()], [("reasoning_last", "input[1]")]),
    "reasoning that nothing of its answer follows": ([U, reasoning(), U], [("reasoning_last", "input[2]")]),
    "no prompt": ([message("system", "s")], [("no_prompt", "input")]),
    "a NUL": ([message(content="a\0")], [("nul_character", "input[0].content")]),
    "a lone surrogate": ([message(content="\ud83d")], [("surrogate", "input[0].content")]),
    "a lone surrogate in an output": ([U, call(), output(value="\ud83d")], [("surrogate", "input[2]")]),
    "a lone surrogate in an unknown field": ([{**U, "x": "\ud83d"}], [("surrogate", "input[0]")]),
    "an unknown field that is nested too deep": ([{**U, "x": deep()}], [("nested_too_deep", "input[0]")]),
    "a lone surrogate in a part's unknown field": (
        [message(content=[{"type": "input_text", "text": "q", "x": "\ud83d"}])],
        [("surrogate", "input[0].content[0]")],
    ),
    "a lone surrogate in a file": (
        [message(content=[{"type": "input_file", "file_data": "\ud83d"}])],
        [("surrogate", "input[0].content[0]")],
    ),
    "a lone surrogate in an item of the server's": (
        [U, {"type": "web_search_call", "query": "\ud83d"}, says(), U],
        [("surrogate", "input[1]")],
    ),
}

PROFILES: dict[str, tuple[Any, list[Any], Rules]] = {
    "an image for a model without vision": (
        with_overrides(PROFILE, vision=False),
        [message(content=[image()])],
        [("image_unsupported", "input[0].content[0]")],
    ),
    "an image that is too large": (
        with_overrides(PROFILE, image_max_base64=3),
        [message(content=[image()])],
        [("image_too_large", "input[0].content[0]")],
    ),
    "too many images": (
        with_overrides(PROFILE, images_max=1),
        [message(content=[image(), image()])],
        [("images_too_many", "input[0].content[1]")],
    ),
    "deepseek wants reasoning before each parallel call": (
        DEEPSEEK,
        [U, reasoning(), call("a"), call("b"), output("a"), output("b")],
        [("reasoning_not_repeated", "input[3]")],
    ),
    "reasoning before each parallel call": (
        DEEPSEEK,
        [U, reasoning(), call("a"), reasoning(), call("b"), output("a"), output("b")],
        [],
    ),
}

BODIES: dict[str, tuple[dict[str, Any], Rules]] = {
    "input that is neither text nor array": ({"input": 7}, [("input_empty", "input")]),
    "reasoning in the clear where nothing is stored": (
        {"input": [U, reasoning(), says(), U], "store": False},
        [("reasoning_unsealed", "input[1]")],
    ),
    "encrypted reasoning where nothing is stored": (
        {"input": [U, reasoning(encrypted_content="x"), says(), U], "store": False},
        [],
    ),
    "an output to a call of the stored part": (
        {"input": [output()], "previous_response_id": "resp_1"},
        [],
    ),
    "nothing new but an instruction": (
        {"input": [message("developer", "s")], "conversation": "conv_1"},
        [],
    ),
    "a lone surrogate in an option": ({"input": "q", "x": "\ud83d"}, [("surrogate", "x")]),
    "tools that are no array": ({"input": "q", "tools": True}, [("tools_shape", "tools")]),
    "a tool that is nothing": ({"input": "q", "tools": [{}]}, [("tool_name_invalid", "tools[0]")]),
    "a tool without a good name": (
        {"input": "q", "tools": [{"type": "function", "name": "bad name"}]},
        [("tool_name_invalid", "tools[0]")],
    ),
    "a tool twice": (
        {"input": "q", "tools": [{"type": "function", "name": "a"}] * 2},
        [("tool_name_duplicate", "tools[1]")],
    ),
    "a tool whose schema is no object's": (
        {"input": "q", "tools": [{"type": "function", "name": "a", "parameters": {}}]},
        [("tool_schema_invalid", "tools[0]")],
    ),
    "a tool that is no object": ({"input": "q", "tools": ["a"]}, [("tool_schema_invalid", "tools[0]")]),
    "a tool choice without tools": (
        {"input": "q", "tool_choice": "required"},
        [("tool_choice_without_tools", "tool_choice")],
    ),
    "a plain question": ({"input": "q"}, []),
}

VALID: dict[str, list[Any]] = {
    "messages without their type": [{"role": "user", "content": "q"}],
    "a conversation": [message("system", "s"), U, says(), U],
    "an answer as a string": [U, message("assistant", "a"), U],
    "parallel calls": [U, call("a"), call("b"), output("b"), output("a")],
    "reasoning between calls": [U, reasoning(), call("a"), reasoning(), call("b"), output("a"), output("b")],
    "calls one after the other": [U, call("a"), output("a"), call("b"), output("b")],
    "ids of items": [U, reasoning(), call(id="fc_1", status="completed"), output()],
    "parts of all kinds": [
        message(content=[{"type": "input_text", "text": "q"}, image(), {"type": "input_file"}])
    ],
    "an output of parts": [U, call(), output(value=[{"type": "input_text", "text": "r"}, image()])],
    "an image of the provider's files": [message(content=[{"type": "input_image", "file_id": "file_1"}])],
    "items of the server's": [U, {"type": "web_search_call", "id": "ws_1"}, says(), U],
}  # fmt: skip


@pytest.mark.parametrize("case", ITEMS)
def test_an_item_list_breaks_just_these_rules(case: str) -> None:
    items, expected = ITEMS[case]
    assert found({"input": items}) == expected


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_adds_just_these_rules(case: str) -> None:
    target, items, expected = PROFILES[case]
    assert found({"input": items}, target) == expected


@pytest.mark.parametrize("case", BODIES)
def test_a_body_breaks_just_these_rules(case: str) -> None:
    body, expected = BODIES[case]
    assert found(body) == expected


@pytest.mark.parametrize("case", VALID)
def test_a_valid_request_breaks_no_rule(case: str) -> None:
    assert found({"input": VALID[case]}) == []


def test_every_rule_has_a_case_and_a_wording() -> None:
    rules = {rule for table in (ITEMS, PROFILES, BODIES) for case in table.values() for rule, _ in case[-1]}
    assert rules == set(RULES)
    assert all(RULES.values())


def test_the_fold_finds_the_same_however_it_is_fed() -> None:
    for items, _ in ITEMS.values():
        rules = ResponsesRules(PROFILE, {})
        for item in items:
            rules.extend([item])
            rules.at_end()
        assert [*rules.found, *rules.at_end()] == violations({"input": items}, PROFILE)


def test_no_check_can_be_deleted_unnoticed() -> None:
    def table(check: Any) -> list[Any]:
        seen = [check({"input": items}, PROFILE) for items, _ in ITEMS.values()]
        seen += [check(body, PROFILE) for body, _ in BODIES.values()]
        return seen + [check({"input": items}, target) for target, items, _ in PROFILES.values()]

    assert survivors(responses_rules, table) == []


def found(body: dict[str, Any], target: Any = PROFILE) -> Rules:
    return [(one.rule, one.where) for one in violations(body, target)]

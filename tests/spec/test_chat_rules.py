"""The rules of openai-chat: for each a request that breaks it and no other, and requests that break none."""

from typing import Any

import pytest
from rule_mutations import deep, survivors

from lockstitch.providers import openai_chat_rules
from lockstitch.providers.catalog import profile, with_overrides
from lockstitch.providers.openai_chat_rules import RULES, ChatRules, violations

GENERIC = profile("generic")
USER = {"role": "user", "content": "q"}
PNG = "data:image/png;base64,aGk="


def call(call_id: Any = "c1", name: Any = "read", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def result(call_id: Any = "c1", content: Any = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def says(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(url: Any = PNG) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def tool(name: Any = "read", parameters: Any = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}} if parameters is None else parameters
    return {"type": "function", "function": {"name": name, "parameters": schema}}


Case = tuple[list[Any], list[tuple[str, str]]]

MESSAGES: dict[str, Case] = {
    "a request without messages": ([], [("messages_empty", "messages")]),
    "a message that is no object": (["q", USER], [("message_shape", "messages[0]")]),
    "a role nobody has": ([USER, {"role": "robot", "content": "x"}], [("role_unknown", "messages[1]")]),
    "a role that is no string": ([USER, {"role": [], "content": "x"}], [("role_unknown", "messages[1]")]),
    "a result without any call": ([USER, result()], [("tool_without_call", "messages[1]")]),
    "a result before its call": (
        [USER, result("c1"), asks(call("c1")), result("c1")],
        [("tool_without_call", "messages[1]")],
    ),
    "a result of a call that a later message made old": (
        [USER, asks(call("a")), result("a"), USER, result("a")],
        [("tool_without_call", "messages[4]")],
    ),
    "a second result of one call": (
        [USER, asks(call("a"), call("b")), result("a"), result("a"), result("b")],
        [("result_duplicate", "messages[3]")],
    ),
    "a call without a result": ([USER, asks(call()), USER], [("call_unanswered", "messages[2]")]),
    "a call without a result at the end": ([USER, asks(call())], [("call_unanswered", "messages[1]")]),
    "one of two calls without a result": (
        [USER, asks(call("a"), call("b")), result("a"), USER],
        [("call_unanswered", "messages[3]")],
    ),
    "one id twice in a message": (
        [USER, asks(call("a"), call("a")), result("a")],
        [("call_id_duplicate", "messages[1].tool_calls[1]")],
    ),
    "one id in two messages": (
        [USER, asks(call("a")), result("a"), asks(call("a")), result("a")],
        [("call_id_duplicate", "messages[3].tool_calls[0]")],
    ),
    "an empty id": (
        [USER, asks(call(""))],
        [("call_id_invalid", "messages[1].tool_calls[0]"), ("call_unanswered", "messages[1]")],
    ),
    "an id with characters outside the class": (
        [USER, asks(call("a b")), result("a b")],
        [("call_id_invalid", "messages[1].tool_calls[0]")],
    ),
    "an id that is too long": (
        [USER, asks(call("x" * 65)), result("x" * 65)],
        [("call_id_invalid", "messages[1].tool_calls[0]")],
    ),
    "a call without a name": (
        [USER, asks(call(name="")), result()],
        [("call_name_invalid", "messages[1].tool_calls[0]")],
    ),
    "a name with a blank in it": (
        [USER, asks(call(name="a b")), result()],
        [("call_name_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments that are cut": (
        [USER, asks(call(arguments='{"a": tru')), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments that are an array": (
        [USER, asks(call(arguments="[]")), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments that are an object, not its text": (
        [USER, asks(call(arguments={})), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments with NaN": (
        [USER, asks(call(arguments='{"a":NaN}')), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments with an escaped lone surrogate": (
        [USER, asks(call(arguments='{"a":"\\ud99c"}')), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "arguments that are nested too deep": (
        [USER, asks(call(arguments='{"a":' * 150 + "1" + "}" * 150)), result()],
        [("call_arguments_invalid", "messages[1].tool_calls[0]")],
    ),
    "a call without its function": (
        [USER, asks({"id": "c1", "name": "read"}), result()],
        [("call_shape", "messages[1].tool_calls[0]")],
    ),
    "a call that is no object": (
        [USER, asks("c1", content="x"), USER],
        [("call_shape", "messages[1].tool_calls[0]")],
    ),
    "a call without its type": (
        [USER, asks({"id": "c1", "function": {"name": "read", "arguments": "{}"}}), result()],
        [("call_shape", "messages[1].tool_calls[0]")],
    ),
    "calls that are no array": (
        [USER, {**says("x"), "tool_calls": {}}, USER],
        [("call_shape", "messages[1]")],
    ),
    "an empty array of calls": (
        [USER, {**says("x"), "tool_calls": []}, USER],
        [("calls_empty", "messages[1]")],
    ),
    "calls of the user": ([{**USER, "tool_calls": [call()]}], [("calls_misplaced", "messages[0]")]),
    "content that is a number": ([{"role": "user", "content": 7}], [("content_shape", "messages[0]")]),
    "no content": ([{"role": "user"}], [("content_shape", "messages[0]")]),
    "a text that is no string": ([user(text(7))], [("content_shape", "messages[0].content[0]")]),
    "blank content": ([{"role": "user", "content": " \n"}], [("content_empty", "messages[0]")]),
    "an empty list of parts": ([user()], [("content_empty", "messages[0]")]),
    "a blank part": ([user(text("q"), text(""))], [("content_empty", "messages[0].content[1]")]),
    "an empty result": ([USER, asks(call()), result(content="")], [("content_empty", "messages[2]")]),
    "an assistant that says nothing": ([USER, says(""), USER], [("assistant_empty", "messages[1]")]),
    "an assistant that says blanks": ([USER, says(" \n"), USER], [("assistant_empty", "messages[1]")]),
    "an assistant without content": ([USER, says(None), USER], [("assistant_empty", "messages[1]")]),
    "an unknown part": ([user({"type": "hologram"})], [("part_unknown", "messages[0].content[0]")]),
    "a part that is no object": ([user("q")], [("part_unknown", "messages[0].content[0]")]),
    "thinking as a part": (
        [USER, says([{"type": "thinking", "thinking": "hm"}, text("x")]), USER],
        [("part_unknown", "messages[1].content[0]")],
    ),
    "an image in a result": (
        [USER, asks(call()), result(content=[image()])],
        [("image_unsupported", "messages[2].content[0]")],
    ),
    "an image without a URL": ([user(image(None))], [("image_invalid", "messages[0].content[0]")]),
    "an image at no URL": ([user(image("blob:abc"))], [("image_invalid", "messages[0].content[0]")]),
    "an image of another type": (
        [user(image("data:image/tiff;base64,aGk="))],
        [("image_invalid", "messages[0].content[0]")],
    ),
    "an image that is not base64": (
        [user(image("data:image/png;base64,a-b"))],
        [("image_invalid", "messages[0].content[0]")],
    ),
    "an assistant at the end": ([USER, says("x")], [("assistant_last", "messages[1]")]),
    "only a system message": ([{"role": "system", "content": "s"}], [("no_prompt", "messages")]),
    "a NUL": ([{"role": "user", "content": "a\0b"}], [("nul_character", "messages[0].content")]),
    "a lone surrogate": ([{"role": "user", "content": "\ud83d"}], [("surrogate", "messages[0].content")]),
    "a lone surrogate in an unknown field": ([{**USER, "name": "\ud83d"}], [("surrogate", "messages[0]")]),
    "a deeply nested unknown field": ([{**USER, "x": deep()}], [("nested_too_deep", "messages[0]")]),
    "a lone surrogate in a part's unknown field": (
        [user({**text("q"), "x": ["\ud83d"]})],
        [("surrogate", "messages[0].content[0]")],
    ),
    "a lone surrogate in a call's unknown field": (
        [USER, asks({**call(), "x": "\ud83d"}), result()],
        [("surrogate", "messages[1].tool_calls[0]")],
    ),
    "a lone surrogate in another part": (
        [user({"type": "file", "file": {"file_data": "\ud83d"}})],
        [("surrogate", "messages[0].content[0]")],
    ),
    "a lone surrogate beside an image": (
        [user({"type": "image_url", "image_url": {"url": PNG, "detail": "\ud83d"}})],
        [("surrogate", "messages[0].content[0]")],
    ),
}  # fmt: skip

PROFILES: dict[str, tuple[dict[str, Any], list[Any], list[tuple[str, str]]]] = {
    "an image for a model without vision": (
        {"vision": False},
        [user(image())],
        [("image_unsupported", "messages[0].content[0]")],
    ),
    "an image that is too large": (
        {"image_max_base64": 3},
        [user(image())],
        [("image_too_large", "messages[0].content[0]")],
    ),
    "too many images": (
        {"images_max": 1},
        [user(image(), image())],
        [("images_too_many", "messages[0].content[1]")],
    ),
    "two users in a row where roles alternate": (
        {"strict_alternation": True},
        [USER, USER],
        [("role_order", "messages[1]")],
    ),
    "an assistant first where roles alternate": (
        {"strict_alternation": True},
        [says("x"), USER],
        [("role_order", "messages[0]")],
    ),
    "two assistants in a row where roles alternate": (
        {"strict_alternation": True},
        [USER, says("x"), says("y"), USER],
        [("role_order", "messages[2]")],
    ),
    "a system message in the middle where roles alternate": (
        {"strict_alternation": True},
        [USER, {"role": "system", "content": "s"}],
        [("system_not_first", "messages[1]")],
    ),
    "two results in a row where roles alternate": (
        {"strict_alternation": True},
        [USER, asks(call("a"), call("b")), result("a"), result("b")],
        [],
    ),
    "an assistant at the end where prefill is known": ({"prefill": True}, [USER, says("x")], []),
    "an id of another length": (
        {"id_exact": 9, "id_pattern": "[A-Za-z0-9]"},
        [USER, asks(call("abc")), result("abc")],
        [("call_id_invalid", "messages[1].tool_calls[0]")],
    ),
}

BODIES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "messages that are no array": ({"messages": 7}, [("messages_empty", "messages")]),
    "a NUL in an option": ({"messages": [USER], "stop": "a\0"}, [("nul_character", "stop")]),
    "no tools at all": ({"messages": [USER], "tools": []}, [("tools_shape", "tools")]),
    "tools that are no array": ({"messages": [USER], "tools": {"x": 1}}, [("tools_shape", "tools")]),
    "a tool that is nothing": ({"messages": [USER], "tools": [{}]}, [("tool_schema_invalid", "tools[0]")]),
    "a tool that is no object": ({"messages": [USER], "tools": ["x"]}, [("tool_schema_invalid", "tools[0]")]),
    "a tool without a good name": (
        {"messages": [USER], "tools": [tool("bad name")]},
        [("tool_name_invalid", "tools[0]")],
    ),
    "a tool twice": ({"messages": [USER], "tools": [tool(), tool()]}, [("tool_name_duplicate", "tools[1]")]),
    "a tool whose schema is no object's": (
        {"messages": [USER], "tools": [tool(parameters={"type": "string"})]},
        [("tool_schema_invalid", "tools[0]")],
    ),
    "a tool whose schema is no schema": (
        {"messages": [USER], "tools": [tool(parameters=7)]},
        [("tool_schema_invalid", "tools[0]")],
    ),
    "a tool choice without tools": (
        {"messages": [USER], "tool_choice": "required"},
        [("tool_choice_without_tools", "tool_choice")],
    ),
    "a lone surrogate in an option": ({"messages": [USER], "stop": ["\ud83d"]}, [("surrogate", "stop")]),
    "a vendor's builtin tool": ({"messages": [USER], "tools": [{"type": "web_search"}]}, []),
    "a tool with a vendor's prefix": ({"messages": [USER], "tools": [tool("$web_search")]}, []),
}

VALID: dict[str, list[Any]] = {
    "a question": [USER],
    "a conversation": [{"role": "system", "content": "s"}, USER, says("x"), USER],
    "several users in a row": [USER, USER],
    "a conversation that an assistant begins": [says("x"), USER],
    "parallel calls with results in any order": [USER, asks(call("a"), call("b")), result("b"), result("a")],
    "calls beside blank content": [USER, asks(call(), content=" \n"), result()],
    "calls beside text": [USER, asks(call(), content="looking"), result()],
    "ids of kimi": [USER, asks(call("functions.read:0")), result("functions.read:0")],
    "images and text": [user(text("see"), image(), image("https://example.com/a.png"))],
    "other parts": [user({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}})],
    "a refusal": [USER, says([{"type": "refusal", "refusal": "no"}]), USER],
    "a system message in the middle": [USER, {"role": "developer", "content": "s"}, USER],
    "fields nobody knows": [{**USER, "name": "bob"}, {**says("x"), "annotations": [], "refusal": None}, USER],
    "reasoning": [USER, asks(call(), reasoning_content="hm"), result()],
    "arguments in any spelling": [USER, asks(call(arguments=' { "a" : [1, 2.5e3] } ')), result()],
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_list_breaks_just_these_rules(case: str) -> None:
    messages, expected = MESSAGES[case]
    assert found({"messages": messages}) == expected


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_adds_just_these_rules(case: str) -> None:
    limits, messages, expected = PROFILES[case]
    assert found({"messages": messages}, **limits) == expected


@pytest.mark.parametrize("case", BODIES)
def test_a_body_breaks_just_these_rules(case: str) -> None:
    body, expected = BODIES[case]
    assert found(body) == expected


@pytest.mark.parametrize("case", VALID)
def test_a_valid_request_breaks_no_rule(case: str) -> None:
    assert found({"messages": VALID[case]}) == []


THINKING: dict[str, tuple[str, dict[str, Any], list[tuple[str, str]]]] = {
    "reasoning is missing": ("moonshot", {}, [("reasoning_missing", "messages[1]")]),
    "reasoning is empty, which counts as missing": (
        "moonshot",
        {"reasoning_content": ""},
        [("reasoning_missing", "messages[1]")],
    ),
    "the placeholder is there": ("moonshot", {"reasoning_content": " "}, []),
    "deepseek takes the empty string": ("deepseek", {"reasoning_content": ""}, []),
    "deepseek misses it too": ("deepseek", {}, [("reasoning_missing", "messages[1]")]),
    "nobody else asks for it": ("generic", {}, []),
}


@pytest.mark.parametrize("case", THINKING)
def test_reasoning_beside_calls_where_thinking_is_on(case: str) -> None:
    name, fields, expected = THINKING[case]
    messages = [USER, asks(call(), **fields), result()]
    body = {"messages": messages, "thinking": {"type": "enabled"}}
    assert [(one.rule, one.where) for one in violations(body, profile(name))] == expected
    assert violations({"messages": messages}, profile(name)) == []


def test_every_rule_has_a_case_and_a_wording() -> None:
    tables = [
        *MESSAGES.values(),
        *((messages, rules) for _, messages, rules in PROFILES.values()),
        *BODIES.values(),
    ]
    covered = {rule for _, rules in tables for rule, _ in rules} | {"reasoning_missing"}
    assert covered == set(RULES)
    assert all(RULES.values())


def test_the_fold_finds_the_same_however_it_is_fed() -> None:
    for messages, _ in MESSAGES.values():
        rules = ChatRules(GENERIC)
        for message in messages:
            rules.extend([message])
            rules.at_end()
        assert [*rules.found, *rules.at_end()] == violations({"messages": messages}, GENERIC)


def test_no_check_can_be_deleted_unnoticed() -> None:
    def table(check: Any) -> list[Any]:
        seen = [check({"messages": messages}, GENERIC) for messages, _ in MESSAGES.values()]
        seen += [check(body, GENERIC) for body, _ in BODIES.values()]
        for limits, messages, _ in PROFILES.values():
            seen.append(check({"messages": messages}, with_limits(limits)))
        for name, fields, _ in THINKING.values():
            body = {"messages": [USER, asks(call(), **fields), result()], "thinking": {"type": "enabled"}}
            seen.append(check(body, profile(name)))
        return seen

    assert survivors(openai_chat_rules, table) == []


def found(body: dict[str, Any], **limits: Any) -> list[tuple[str, str]]:
    return [(one.rule, one.where) for one in violations(body, with_limits(limits))]


def with_limits(limits: dict[str, Any]) -> Any:
    return with_overrides(GENERIC, **limits)

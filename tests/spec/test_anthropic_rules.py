"""The rules of anthropic-messages: for each a request that breaks just it, and requests that break none."""

from typing import Any

import pytest
from histories import png_data
from rule_mutations import deep, survivors

from lockstitch.providers import anthropic_rules
from lockstitch.providers.anthropic_rules import RULES, AnthropicRules, violations
from lockstitch.providers.catalog import profile, with_overrides

PROFILE = profile("anthropic")
MARK = {"cache_control": {"type": "ephemeral"}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) if blocks else "q"}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) if blocks else "a"}


def text(words: Any = "t", **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def use(call_id: Any = "t1", name: Any = "read", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {} if arguments is None else arguments,
    } | fields


def result(call_id: Any = "t1", content: Any = "r", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def thought(**fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": "sig", **fields}


def image(media_type: Any = "image/png", data: Any = "aGk=") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def tool(name: Any = "read", schema: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"} if schema is None else schema, **fields}


U, A = user(), says()
Rules = list[tuple[str, str]]

MESSAGES: dict[str, tuple[list[Any], Rules]] = {
    "a request without messages": ([], [("messages_empty", "messages")]),
    "a message that is no object": (["q", U], [("message_shape", "messages[0]")]),
    "a role of another protocol": ([U, {"role": "tool", "content": "x"}], [("role_unknown", "messages[1]")]),
    "an assistant first": ([A, U], [("first_not_user", "messages[0]")]),
    "two assistants in a row": ([U, A, A, U], [("role_order", "messages[2]")]),
    "two users in a row": ([U, U], [("role_order", "messages[1]")]),
    "no content": ([{"role": "user"}], [("content_shape", "messages[0]")]),
    "an empty list of blocks": ([{"role": "user", "content": []}], [("content_empty", "messages[0]")]),
    "blank text": ([user(text(" \n"))], [("text_blank", "messages[0].content[0]")]),
    "blank text as a string": ([{"role": "user", "content": ""}], [("text_blank", "messages[0].content[0]")]),
    "blank text of the assistant": ([U, says(text("")), U], [("text_blank", "messages[1].content[0]")]),
    "text that is no string": ([user(text(7))], [("content_shape", "messages[0].content[0]")]),
    "an unknown block": ([user({"type": "hologram"})], [("block_unknown", "messages[0].content[0]")]),
    "an unknown block of the assistant": (
        [U, says({"type": "hologram"}), U],
        [("block_unknown", "messages[1].content[0]")],
    ),
    "a block that is no object": ([user(text(), "x")], [("block_unknown", "messages[0].content[1]")]),
    "a call of the user": ([user(use())], [("block_misplaced", "messages[0].content[0]")]),
    "a result of the assistant": (
        [U, says(text(), result()), U],
        [("block_misplaced", "messages[1].content[1]")],
    ),
    "a call without a result": ([U, says(use()), user(text())], [("call_unanswered", "messages[2]")]),
    "a call without a result at the end": ([U, says(use())], [("call_unanswered", "messages[1]")]),
    "a call before another answer": (
        [U, says(use()), A, U],
        [("role_order", "messages[2]"), ("call_unanswered", "messages[2]")],
    ),
    "a result without a call": ([user(result())], [("result_without_call", "messages[0].content[0]")]),
    "a second result of one call": (
        [U, says(use()), user(result(), result())],
        [("result_duplicate", "messages[2].content[1]")],
    ),
    "a result behind text": (
        [U, says(use()), user(text(), result())],
        [("results_not_first", "messages[2].content[1]")],
    ),
    "one id in two messages": (
        [U, says(use()), user(result()), says(use()), user(result())],
        [("call_id_duplicate", "messages[3].content[0]")],
    ),
    "an id with a dot": (
        [U, says(use("a.b")), user(result("a.b"))],
        [("call_id_invalid", "messages[1].content[0]")],
    ),
    "an id that is too long": (
        [U, says(use("x" * 65)), user(result("x" * 65))],
        [("call_id_invalid", "messages[1].content[0]")],
    ),
    "a call without a name": (
        [U, says(use(name="")), user(result())],
        [("call_name_invalid", "messages[1].content[0]")],
    ),
    "arguments as text": (
        [U, says(use(arguments="{}")), user(result())],
        [("call_input_invalid", "messages[1].content[0]")],
    ),
    "arguments with a lone surrogate": (
        [U, says(use(arguments={"a": "\ud99c"})), user(result())],
        [("call_input_invalid", "messages[1].content[0]")],
    ),
    "a result that is a number": (
        [U, says(use()), user(result(content=7))],
        [("result_shape", "messages[2].content[0]")],
    ),
    "a result with an unknown part": (
        [U, says(use()), user(result(content=[{"type": "video"}]))],
        [("result_shape", "messages[2].content[0]")],
    ),
    "a result whose error flag is no boolean": (
        [U, says(use()), user(result(is_error="no"))],
        [("result_shape", "messages[2].content[0]")],
    ),
    "blank text in a result": (
        [U, says(use()), user(result(content=[text("")]))],
        [("text_blank", "messages[2].content[0].content[0]")],
    ),
    "thinking without a signature": (
        [U, says({"type": "thinking", "thinking": "hm"}, text()), U],
        [("thinking_signature", "messages[1].content[0]")],
    ),
    "thinking without text": (
        [U, says(thought(thinking=None), text()), U],
        [("thinking_signature", "messages[1].content[0]")],
    ),
    "redacted thinking without data": (
        [U, says({"type": "redacted_thinking", "data": ""}, text()), U],
        [("thinking_signature", "messages[1].content[0]")],
    ),
    "thinking signed by another model": (
        [U, says(thought(model="other"), text()), U],
        [("thinking_signature", "messages[1].content[0]")],
    ),
    "thinking at a message's end": ([U, says(text(), thought()), U], [("thinking_last", "messages[1]")]),
    "a server's call without its result": (
        [U, says({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, text()), U],
        [("server_call_unpaired", "messages[1]")],
    ),
    "an image of another type": ([user(image("image/tiff"))], [("image_invalid", "messages[0].content[0]")]),
    "an image that is not base64": ([user(image(data="a-b"))], [("image_invalid", "messages[0].content[0]")]),
    "an image without a source": (
        [user({"type": "image", "source": {"type": "blob"}})],
        [("image_invalid", "messages[0].content[0]")],
    ),
    "an image over plain http": (
        [user({"type": "image", "source": {"type": "url", "url": "http://example.com/a.png"}})],
        [("image_invalid", "messages[0].content[0]")],
    ),
    "an image with too many pixels": (
        [user(image(data=png_data(8001, 10)))],
        [("image_too_many_pixels", "messages[0].content[0]")],
    ),
    "an image with too many pixels beside many others": (
        [user(image(data=png_data(2400, 1200)), *[image()] * 20)],
        [("image_too_many_pixels", "messages[0].content[0]")],
    ),
    "five cache marks": ([user(*[text(**MARK)] * 5)], [("cache_marks", "messages")]),
    "an assistant at the end": ([U, A], [("assistant_last", "messages[1]")]),
    "a NUL": ([user(text("a\0"))], [("nul_character", "messages[0].content[0]")]),
    "a lone surrogate": ([user(text("\ud83d"))], [("surrogate", "messages[0].content[0]")]),
    "a lone surrogate in a result": (
        [U, says(use()), user(result(content="\ud83d"))],
        [("surrogate", "messages[2].content[0].content")],
    ),
    "a lone surrogate in a document": (
        [user({"type": "document", "source": {"data": "\ud83d"}})],
        [("surrogate", "messages[0].content[0]")],
    ),
    "a lone surrogate in a server's result": (
        [U, says({"type": "server_tool_use", "id": "s1", "query": "\ud83d"},
                 {"type": "web_search_tool_result", "tool_use_id": "s1"}, text()), U],
        [("surrogate", "messages[1].content[0]")],
    ),
    "a lone surrogate in an unknown field": ([{**U, "x": "\ud83d"}], [("surrogate", "messages[0]")]),
    "an unknown field that is nested too deep": ([{**U, "x": deep()}], [("nested_too_deep", "messages[0]")]),
    "a lone surrogate in a block's unknown field": (
        [user(text(x="\ud83d"))],
        [("surrogate", "messages[0].content[0]")],
    ),
}  # fmt: skip

PROFILES: dict[str, tuple[dict[str, Any], list[Any], Rules]] = {
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
    "a prefill that ends in a blank": (
        {"prefill": True},
        [U, says(text("x "))],
        [("prefill_whitespace", "messages[1]")],
    ),
    "a prefill": ({"prefill": True}, [U, says(text("x"))], []),
}

BODIES: dict[str, tuple[dict[str, Any], Rules]] = {
    "messages that are no array": ({"messages": None}, [("messages_empty", "messages")]),
    "a system prompt that is a number": ({"messages": [U], "system": 7}, [("system_shape", "system")]),
    "a system block that is no text": (
        {"messages": [U], "system": [{"type": "image"}]},
        [("system_shape", "system[0]")],
    ),
    "a blank system block": ({"messages": [U], "system": [text(" ")]}, [("text_blank", "system[0]")]),
    "a NUL in the system prompt": (
        {"messages": [U], "system": [text("a\0")]},
        [("nul_character", "system[0]")],
    ),
    "a lone surrogate in an option": ({"messages": [U], "x": "\ud83d"}, [("surrogate", "x")]),
    "a limit of nothing": ({"messages": [U], "max_tokens": 0}, [("max_tokens_invalid", "max_tokens")]),
    "a limit that is none": ({"messages": [U], "max_tokens": None}, [("max_tokens_invalid", "max_tokens")]),
    "a limit that is a boolean": (
        {"messages": [U], "max_tokens": True},
        [("max_tokens_invalid", "max_tokens")],
    ),
    "tools that are no array": ({"messages": [U], "tools": True}, [("tools_shape", "tools")]),
    "a tool without a good name": (
        {"messages": [U], "tools": [tool("bad name")]},
        [("tool_name_invalid", "tools[0]")],
    ),
    "a tool twice": ({"messages": [U], "tools": [tool(), tool()]}, [("tool_name_duplicate", "tools[1]")]),
    "a tool whose schema has no type": (
        {"messages": [U], "tools": [tool(schema={})]},
        [("tool_schema_invalid", "tools[0]")],
    ),
    "a tool that is no object": ({"messages": [U], "tools": ["read"]}, [("tool_schema_invalid", "tools[0]")]),
    "a tool choice without tools": (
        {"messages": [U], "tool_choice": {"type": "any"}},
        [("tool_choice_without_tools", "tool_choice")],
    ),
    "thinking is on and the exchange began without": (
        {
            "messages": [U, says(use()), user(result())],
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        [("thinking_first", "messages[2]")],
    ),
    "thinking is on and the exchange began with it": (
        {"messages": [U, says(thought(), use()), user(result())], "thinking": {"type": "enabled"}},
        [],
    ),
    "thinking is on and the exchange is over": (
        {"messages": [U, says(use()), user(result()), A, U], "thinking": {"type": "enabled"}},
        [],
    ),
    "adaptive thinking may begin anywhere": (
        {"messages": [U, says(use()), user(result())], "thinking": {"type": "adaptive"}},
        [],
    ),
    "marks on tools and system count too": (
        {"messages": [user(*[text(**MARK)] * 3)], "tools": [tool(**MARK)], "system": [text(**MARK)]},
        [("cache_marks", "messages")],
    ),
    "a tool of the server's": (
        {"messages": [U], "tools": [{"type": "web_search_20250305", "name": "s"}]},
        [],
    ),
}

VALID: dict[str, list[Any]] = {
    "a question": [U],
    "a conversation": [U, A, U],
    "parallel calls and text behind the results": [
        U,
        says(text(), use("a"), use("b")),
        user(result("b"), result("a", is_error=True), text()),
    ],
    "thinking of the model itself": [
        U,
        says(thought(), {"type": "redacted_thinking", "data": "x"}, text()),
        U,
    ],
    "images, also in results": [user(image(), text()), says(use()), user(result(content=[image(), text()]))],
    "a result without content": [U, says(use()), user({"type": "tool_result", "tool_use_id": "t1"})],
    "a large image beside few others": [user(image(data=png_data(2400, 1200)), *[image()] * 19)],
    "documents": [user({"type": "document", "source": {"type": "text", "data": "x"}}, text())],
    "a server's call with its result": [
        U,
        says(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            text(),
        ),
        U,
    ],
    "four cache marks": [user(*[text(**MARK)] * 4)],
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


def test_every_rule_has_a_case_and_a_wording() -> None:
    rules = {
        rule for table in (MESSAGES, PROFILES, BODIES) for case in table.values() for rule, _ in case[-1]
    }
    assert rules == set(RULES)
    assert all(RULES.values())


def test_the_fold_finds_the_same_however_it_is_fed() -> None:
    for messages, _ in MESSAGES.values():
        rules = AnthropicRules(PROFILE, {})
        for message in messages:
            rules.extend([message])
            rules.at_end()
        assert [*rules.found, *rules.at_end()] == violations({"messages": messages}, PROFILE)


def test_no_check_can_be_deleted_unnoticed() -> None:
    def table(check: Any) -> list[Any]:
        seen = [check({"messages": messages}, PROFILE) for messages, _ in MESSAGES.values()]
        seen += [check(body, PROFILE) for body, _ in BODIES.values()]
        for limits, messages, _ in PROFILES.values():
            seen.append(check({"messages": messages}, with_overrides(PROFILE, **limits)))
        return seen

    assert survivors(anthropic_rules, table) == []


def found(body: dict[str, Any], **limits: Any) -> Rules:
    return [(one.rule, one.where) for one in violations(body, with_overrides(PROFILE, **limits))]

"""The rules of gemini: for each a request that breaks it and no other, and requests that break none."""

from typing import Any

import pytest
from rule_mutations import deep, survivors

from lockstitch.providers import gemini_rules
from lockstitch.providers.catalog import profile, with_overrides
from lockstitch.providers.gemini_rules import RULES, GeminiRules, violations

PROFILE = profile("gemini")


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts) if parts else [{"text": "q"}]}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts) if parts else [{"text": "a"}]}


def call(name: Any = "read", args: Any = None, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {} if args is None else args, **fields}}


def response(name: Any = "read", value: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "functionResponse": {"name": name, "response": {"output": "r"} if value is None else value, **fields}
    }


def inline(kind: Any = "image/png", data: Any = "aGk=") -> dict[str, Any]:
    return {"inlineData": {"mimeType": kind, "data": data}}


U, M = user(), model()
Rules = list[tuple[str, str]]

CONTENTS: dict[str, tuple[list[Any], Rules]] = {
    "a request without contents": ([], [("contents_empty", "contents")]),
    "a content that is no object": (["q", U], [("content_shape", "contents[0]")]),
    "a role of another protocol": (
        [{"role": "assistant", "parts": [{"text": "x"}]}, U],
        [("role_unknown", "contents[0]")],
    ),
    "the model first": ([M, U], [("first_not_user", "contents[0]")]),
    "the model twice in a row": ([U, M, M, U], [("role_order", "contents[2]")]),
    "a content without parts": ([{"role": "user", "parts": []}], [("parts_empty", "contents[0]")]),
    "a part without data": ([user({"x": 1})], [("part_unknown", "contents[0].parts[0]")]),
    "a part that is no object": ([user({"text": "q"}, "x")], [("part_unknown", "contents[0].parts[1]")]),
    "a call that is no object": ([U, model({"functionCall": 7}), U], [
        ("part_unknown", "contents[1].parts[0]"),
    ]),
    "data that is no object": ([user({"inlineData": 7})], [("part_unknown", "contents[0].parts[0]")]),
    "blank text": ([user({"text": " "})], [("text_blank", "contents[0].parts[0]")]),
    "a call of the user": ([user(call()), user(response())], [("call_misplaced", "contents[0]")]),
    "a call without a response": ([U, model(call()), U], [("call_unanswered", "contents[2]")]),
    "a call without a response at the end": ([U, model(call())], [("call_unanswered", "contents[1]")]),
    "fewer responses than calls": (
        [U, model(call(), call("write")), user(response())],
        [("call_unanswered", "contents[2]")],
    ),
    "more responses than calls": (
        [U, model(call()), user(response(), response())],
        [("call_unanswered", "contents[2]")],
    ),
    "a response without a call": ([user(response())], [("response_without_call", "contents[0]")]),
    "text beside responses": (
        [U, model(call()), user(response(), {"text": "x"})],
        [("response_mixed", "contents[2]")],
    ),
    "a response with another name": (
        [U, model(call()), user(response("write"))],
        [("response_mismatch", "contents[2]")],
    ),
    "a response with another id": (
        [U, model(call(id="a")), user(response(id="b"))],
        [("response_mismatch", "contents[2]")],
    ),
    "a call without a name": (
        [U, model(call("")), user(response(""))],
        [("call_name_invalid", "contents[1].parts[0]")],
    ),
    "a name that begins with a digit": (
        [U, model(call("1a")), user(response("1a"))],
        [("call_name_invalid", "contents[1].parts[0]")],
    ),
    "arguments as text": (
        [U, model(call(args="{}")), user(response())],
        [("call_args_invalid", "contents[1].parts[0]")],
    ),
    "arguments with a lone surrogate": (
        [U, model(call(args={"a": "\ud83d"})), user(response())],
        [("call_args_invalid", "contents[1].parts[0]")],
    ),
    "an empty id": ([U, model(call(id="")), user(response())], [("call_id_invalid", "contents[1].parts[0]")]),
    "one id twice": (
        [U, model(call(id="a"), call(id="a")), user(response(id="a"), response(id="a"))],
        [("call_id_duplicate", "contents[1].parts[1]")],
    ),
    "a response that is text": (
        [U, model(call()), user(response(value="r"))],
        [("response_shape", "contents[2].parts[0]")],
    ),
    "an image of another type": ([user(inline("image/gif"))], [("image_invalid", "contents[0].parts[0]")]),
    "data without a type": ([user(inline(None))], [("image_invalid", "contents[0].parts[0]")]),
    "an image that is not base64": ([user(inline(data="a-b"))], [("image_invalid", "contents[0].parts[0]")]),
    "the model at the end": ([U, M], [("model_last", "contents[1]")]),
    "a NUL": ([user({"text": "a\0"})], [("nul_character", "contents[0].parts[0]")]),
    "a lone surrogate": ([user({"text": "\ud83d"})], [("surrogate", "contents[0].parts[0]")]),
    "a lone surrogate in an unknown field": ([{**U, "x": "\ud83d"}], [("surrogate", "contents[0]")]),
    "an unknown field that is nested too deep": ([{**U, "x": deep()}], [("nested_too_deep", "contents[0]")]),
    "a lone surrogate in a part's unknown field": (
        [user({"text": "q", "x": "\ud83d"})],
        [("surrogate", "contents[0].parts[0]")],
    ),
    "a lone surrogate in a call's unknown field": (
        [U, model(call(x="\ud83d")), user(response())],
        [("surrogate", "contents[1].parts[0]")],
    ),
}  # fmt: skip

PROFILES: dict[str, tuple[dict[str, Any], list[Any], Rules]] = {
    "an image for a model without vision": (
        {"vision": False},
        [user(inline())],
        [("image_unsupported", "contents[0].parts[0]")],
    ),
    "an image that is too large": (
        {"image_max_base64": 3},
        [user(inline())],
        [("image_too_large", "contents[0].parts[0]")],
    ),
    "too many images": (
        {"images_max": 1},
        [user(inline(), inline())],
        [("images_too_many", "contents[0].parts[1]")],
    ),
}

BODIES: dict[str, tuple[dict[str, Any], Rules]] = {
    "contents that are no array": ({"contents": None}, [("contents_empty", "contents")]),
    "a call without a signature for generation 3": (
        {"contents": [U, model(call()), user(response())], "model": "gemini-3-pro"},
        [("signature_missing", "contents[1]")],
    ),
    "a call with a signature": (
        {
            "contents": [
                U,
                model({**call(), "thoughtSignature": "x"}, call("write")),
                user(response(), response("write")),
            ],
            "model": "gemini-3-pro",
        },
        [],
    ),
    "a call of an earlier turn": (
        {"contents": [U, model(call()), user(response()), M, U], "model": "gemini-3-pro"},
        [],
    ),
    "a lone surrogate in an option": ({"contents": [U], "x": "\ud83d"}, [("surrogate", "x")]),
    "tools that are no array": ({"contents": [U], "tools": True}, [("tools_shape", "tools")]),
    "a tool that is no object": ({"contents": [U], "tools": ["x"]}, [("tool_schema_invalid", "tools[0]")]),
    "a system instruction of nothing": (
        {"contents": [U], "systemInstruction": {}},
        [("system_shape", "systemInstruction")],
    ),
    "a system instruction with a blank part": (
        {"contents": [U], "systemInstruction": {"parts": [{"text": "s"}, {"text": " "}]}},
        [("system_shape", "systemInstruction")],
    ),
    "a system instruction": ({"contents": [U], "system_instruction": {"parts": [{"text": "s"}]}}, []),
    "a tool without a good name": (
        {"contents": [U], "tools": [{"functionDeclarations": [{"name": "bad name"}]}]},
        [("tool_name_invalid", "tools[0].functionDeclarations[0]")],
    ),
    "a tool twice": (
        {"contents": [U], "tools": [{"functionDeclarations": [{"name": "a"}] * 2}]},
        [("tool_name_duplicate", "tools[0].functionDeclarations[1]")],
    ),
    "a tool whose schema is no object's": (
        {
            "contents": [U],
            "tools": [{"functionDeclarations": [{"name": "a", "parameters": {"type": "STRING"}}]}],
        },
        [("tool_schema_invalid", "tools[0].functionDeclarations[0]")],
    ),
    "a declaration that is no object": (
        {"contents": [U], "tools": [{"functionDeclarations": ["a"]}]},
        [("tool_schema_invalid", "tools[0].functionDeclarations[0]")],
    ),
}  # fmt: skip

VALID: dict[str, list[Any]] = {
    "a question": [U],
    "a content without a role": [{"parts": [{"text": "q"}]}],
    "a conversation": [U, M, U],
    "the user twice, as behind responses": [U, model(call()), user(response()), U],
    "parallel calls": [U, model({"text": "x"}, call(), call("write")), user(response(), response("write"))],
    "the other spelling": [
        U,
        model({"function_call": {"name": "read", "args": {}}}),
        user({"function_response": {"name": "read", "response": {}}}),
    ],
    "thoughts": [U, model({"text": "", "thought": True, "thoughtSignature": "x"}, {"text": "a"}), U],
    "names with dots": [U, model(call("a.b:c-d")), user(response("a.b:c-d"))],
    "media": [user(inline(), inline("audio/wav", "x"), {"fileData": {"fileUri": "u"}}, {"text": "q"})],
    "code": [U, model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}), U],
}


@pytest.mark.parametrize("case", CONTENTS)
def test_a_content_list_breaks_just_these_rules(case: str) -> None:
    contents, expected = CONTENTS[case]
    assert found({"contents": contents}) == expected


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_adds_just_these_rules(case: str) -> None:
    limits, contents, expected = PROFILES[case]
    assert found({"contents": contents}, **limits) == expected


@pytest.mark.parametrize("case", BODIES)
def test_a_body_breaks_just_these_rules(case: str) -> None:
    body, expected = BODIES[case]
    assert found(body) == expected


@pytest.mark.parametrize("case", VALID)
def test_a_valid_request_breaks_no_rule(case: str) -> None:
    assert found({"contents": VALID[case]}) == []


def test_every_rule_has_a_case_and_a_wording() -> None:
    rules = {
        rule for table in (CONTENTS, PROFILES, BODIES) for case in table.values() for rule, _ in case[-1]
    }
    assert rules == set(RULES)
    assert all(RULES.values())


def test_the_fold_finds_the_same_however_it_is_fed() -> None:
    for contents, _ in CONTENTS.values():
        rules = GeminiRules(PROFILE, {})
        for content in contents:
            rules.extend([content])
            rules.at_end()
        assert [*rules.found, *rules.at_end()] == violations({"contents": contents}, PROFILE)


def test_no_check_can_be_deleted_unnoticed() -> None:
    def table(check: Any) -> list[Any]:
        seen = [check({"contents": contents}, PROFILE) for contents, _ in CONTENTS.values()]
        seen += [check(body, PROFILE) for body, _ in BODIES.values()]
        for limits, contents, _ in PROFILES.values():
            seen.append(check({"contents": contents}, with_overrides(PROFILE, **limits)))
        return seen

    assert survivors(gemini_rules, table) == []


def found(body: dict[str, Any], **limits: Any) -> Rules:
    return [(one.rule, one.where) for one in violations(body, with_overrides(PROFILE, **limits))]

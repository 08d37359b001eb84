"""``lint`` and ``repair`` on plain requests: total, idempotent, faithful to what was right."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_anthropic_rules import VALID as ANTHROPIC
from test_chat_rules import VALID as CHAT
from test_gemini_rules import VALID as GEMINI
from test_responses_rules import VALID as RESPONSES
from wire_requests import REQUESTS

from lockstitch import CallerError, lint, repair
from lockstitch.agent import amendments
from lockstitch.cli.wire_lint import lint as lint_command
from lockstitch.history.ladder import MEANINGS, told
from lockstitch.schema.notes import Anomaly

FIELDS = {
    "openai-chat": "messages",
    "anthropic-messages": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
VALID = {
    f"{dialect}: {case}": (dialect, {FIELDS[dialect]: elements})
    for dialect, table in (
        ("openai-chat", CHAT),
        ("anthropic-messages", ANTHROPIC),
        ("openai-responses", RESPONSES),
        ("gemini", GEMINI),
    )
    for case, elements in table.items()
}
dialects = st.sampled_from(list(FIELDS))
thorough = settings(deadline=None, max_examples=250, suppress_health_check=list(HealthCheck))


@given(dialects, dialects, st.data())
@thorough
def test_anything_becomes_a_request_that_breaks_no_rule(
    source: str, dialect: str, data: st.DataObject
) -> None:
    request = data.draw(REQUESTS[source])
    before = copy.deepcopy(request)
    lint(request, dialect, source=source)
    mended = repair(request, dialect, source=source)
    assert request == before, "the caller's request is not touched"
    assert lint(mended.request, dialect) == []
    json.dumps(mended.request, ensure_ascii=False).encode()
    assert repair(mended.request, dialect) == (mended.request, ())
    if source == dialect and mended.request != request:
        assert mended.anomalies, "what was changed is named"


@pytest.mark.parametrize("case", VALID)
def test_a_valid_request_comes_back_byte_for_byte(case: str) -> None:
    dialect, request = VALID[case]
    request = {"model": "m", "x-unknown": {"b": 1, "a": [None]}, **request}
    mended = repair(request, dialect)
    assert json.dumps(mended.request) == json.dumps(request)
    assert mended.anomalies == ()


@pytest.mark.parametrize("case", VALID)
def test_what_was_right_comes_back_as_it_was_beside_what_was_wrong(case: str) -> None:
    """An orphan at the end makes the request invalid; every element but the mended one stays verbatim."""
    dialect, request = VALID[case]
    field = FIELDS[dialect]
    elements = request[field]
    orphan: dict[str, Any] = {
        "openai-chat": {"role": "tool", "tool_call_id": "nowhere", "content": "lost"},
        "anthropic-messages": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "nowhere", "content": "lost"}],
        },
        "openai-responses": {"type": "function_call_output", "call_id": "nowhere", "output": "lost"},
        "gemini": {
            "role": "user",
            "parts": [{"functionResponse": {"name": "nowhere", "response": {"output": "lost"}}}],
        },
    }[dialect]
    mended = repair({field: [*elements, orphan]}, dialect)
    kept = mended.request[field]
    # Projection may join neighbours or put text first; whatever it leaves alone is the same object's JSON.
    untouched = [json.dumps(element) for element in elements]
    same = [json.dumps(element) in untouched for element in kept]
    assert sum(same) >= len(kept) - sum(one.kind != "orphan_result_dropped" for one in mended.anomalies)
    assert "orphan_result_dropped" in {one.kind for one in mended.anomalies}


def chat_call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}


def use(call_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "read", "input": arguments}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "r"}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def function(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


Q = user("q")
SEE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
SEEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
SCHEMA = {"type": "object"}

CONVERTED: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "chat to anthropic": (
        "openai-chat",
        "anthropic-messages",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be kind"},
                user(text("see"), SEE),
                {"role": "assistant", "content": None, "tool_calls": [chat_call("a.1", '{"p": 1}')]},
                {"role": "tool", "tool_call_id": "a.1", "content": "r"},
            ],
            "tools": [function("read", description="Read.", parameters=SCHEMA)],
            "tool_choice": "required",
            "stop": "END",
            "max_tokens": 100,
            "temperature": 0.5,
            "seed": 7,
        },
        {
            "model": "m",
            "max_tokens": 100,
            "messages": [
                user(text("see"), SEEN),
                {"role": "assistant", "content": [use("*", {"p": 1})]},
                user(result("*")),
            ],
            "system": [text("be kind")],
            "tools": [{"name": "read", "description": "Read.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "any"},
            "stop_sequences": ["END"],
            "temperature": 0.5,
        },
    ),
    "anthropic to chat": (
        "anthropic-messages",
        "openai-chat",
        {
            "model": "m",
            "system": "be kind",
            "max_tokens": 100,
            "messages": [
                Q,
                {"role": "assistant", "content": [text("hm"), use("t1", {})]},
                user(result("t1"), text("so?")),
            ],
        },
        {
            "model": "m",
            "max_tokens": 100,
            "messages": [
                {"role": "system", "content": "be kind"},
                Q,
                {"role": "assistant", "content": "hm", "tool_calls": [chat_call("t1")]},
                {"role": "tool", "tool_call_id": "t1", "content": "r"},
                user("so?"),
            ],
        },
    ),
    "chat to gemini": (
        "openai-chat",
        "gemini",
        {
            "messages": [
                Q,
                {"role": "assistant", "content": "", "tool_calls": [chat_call("c1")]},
                {"role": "tool", "tool_call_id": "c1", "content": "r"},
                user("next"),
            ],
        },
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "read", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "r"}}},
                    ],
                },
                {"role": "user", "parts": [{"text": "next"}]},
            ],
        },
    ),
    "gemini to responses": (
        "gemini",
        "openai-responses",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"a": 1}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "read", "response": {"result": "r"}}}],
                },
            ],
            "systemInstruction": {"parts": [{"text": "be kind"}]},
        },
        {
            "input": [
                {"type": "message", "role": "user", "content": "q"},
                {"type": "function_call", "call_id": "noid-1", "name": "read", "arguments": '{"a":1}'},
                {"type": "function_call_output", "call_id": "noid-1", "output": "r"},
            ],
            "store": False,
            "instructions": "be kind",
            "include": ["reasoning.encrypted_content"],
        },
    ),
}


@pytest.mark.parametrize("case", CONVERTED)
def test_a_request_is_converted(case: str) -> None:
    source, dialect, request, expected = CONVERTED[case]
    mended = repair(request, dialect, source=source)
    made = re.sub(r'"[A-Za-z0-9]{24}"', '"*"', json.dumps(mended.request))
    assert json.loads(made) == expected
    dropped = [one.where for one in mended.anomalies if one.kind == "field_dropped"]
    assert dropped == (["seed"] if "seed" in request else [])


MARK = {"cache_control": {}}
EXCHANGE = [Q, {"role": "assistant", "content": [use("t", {})]}, user(result("t"))]

MENDED: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "a system message in anthropic's list goes to the system prompt": (
        "anthropic-messages",
        {"system": "a", "messages": [{"role": "system", "content": "b"}, Q]},
        {"system": [text("a"), text("b")], "messages": [Q]},
        ["system_moved"],
    ),
    "a blank system block goes": (
        "anthropic-messages",
        {"system": [text(" ")], "messages": [Q]},
        {"messages": [Q]},
        ["system_cleaned"],
    ),
    "thinking is switched off where the exchange began without": (
        "anthropic-messages",
        {"thinking": {"type": "enabled"}, "messages": EXCHANGE},
        {"messages": EXCHANGE},
        ["thinking_disabled"],
    ),
    "the last cache marks stay": (
        "anthropic-messages",
        {"system": [text("s", **MARK)], "messages": [user(*(text(str(n), **MARK) for n in range(5)))]},
        {
            "system": [text("s", **MARK)],
            "messages": [user(text("0"), text("1"), *(text(str(n), **MARK) for n in (2, 3, 4)))],
        },
        ["cache_marks_removed"],
    ),
    "a tool with a bad name is left out": (
        "openai-chat",
        {"messages": [Q], "tools": [function("a b"), function("ok")]},
        {"messages": [Q], "tools": [function("ok")]},
        ["tool_left_out"],
    ),
    "without a tool that can be sent there is no choice either": (
        "openai-chat",
        {"messages": [Q], "tools": [function("a b")], "tool_choice": "required"},
        {"messages": [Q]},
        ["tool_left_out"],
    ),
    "a schema that only lacks its type gets it": (
        "openai-chat",
        {"messages": [Q], "tools": [function("a", parameters={"properties": {"x": {}}})]},
        {"messages": [Q], "tools": [function("a", parameters={**SCHEMA, "properties": {"x": {}}})]},
        ["tool_schema_typed"],
    ),
    "a choice of a tool where none is offered goes": (
        "openai-chat",
        {"messages": [Q], "tool_choice": "required"},
        {"messages": [Q]},
        ["option_left_out"],
    ),
    "tools that are no list go": (
        "openai-chat",
        {"messages": [Q], "tools": True, "tool_choice": "auto"},
        {"messages": [Q]},
        ["field_dropped"],
    ),
    "a limit that is none is replaced": (
        "anthropic-messages",
        {"messages": [Q], "max_tokens": None},
        {"messages": [Q], "max_tokens": 8192},
        ["limit_replaced"],
    ),
    "a NUL in an option is replaced": (
        "openai-chat",
        {"messages": [Q], "stop": ["a\0"]},
        {"messages": [Q], "stop": ["a\ufffd"]},
        ["nul_replaced"],
    ),
    "an empty system instruction goes": (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "systemInstruction": {}},
        {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
        ["system_cleaned"],
    ),
    "an id of another kind of item goes": (
        "openai-responses",
        {"input": [{"type": "message", "role": "user", "content": "q", "id": "x", "status": "s"}]},
        {"input": [{"type": "message", "role": "user", "content": "q", "status": "s"}]},
        ["item_id_dropped"],
    ),
    "a declaration that gemini refuses is left out": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "q"}]}],
            "tools": [{"functionDeclarations": [{"name": "1a"}, {"name": "a"}]}],
        },
        {
            "contents": [{"role": "user", "parts": [{"text": "q"}]}],
            "tools": [{"functionDeclarations": [{"name": "a"}]}],
        },
        ["tool_left_out"],
    ),
    "a broken character in an option is replaced": (
        "openai-chat",
        {"messages": [Q], "user": "\ud83d"},
        {"messages": [Q], "user": "\ufffd"},
        ["surrogate_replaced"],
    ),
    "nothing at all becomes a question": (
        "openai-chat",
        {},
        {"messages": [user("Continue.")]},
        ["user_added"],
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_fields_beside_the_messages_are_mended(case: str) -> None:
    dialect, request, expected, anomalies = MENDED[case]
    mended = repair(request, dialect)
    assert mended.request == expected
    assert [one.kind for one in mended.anomalies] == anomalies


def test_a_limit_nobody_knows_is_the_callers_mistake() -> None:
    with pytest.raises(CallerError, match="colour"):
        lint({"messages": []}, "openai-chat", colour="red")
    with pytest.raises(CallerError, match="unknown dialect"):
        repair({"messages": []}, "smoke-signals")
    with pytest.raises(CallerError, match="unknown profile"):
        repair({"messages": []}, "openai-chat", profile="nobody")


def test_a_vendor_is_spoken_to_in_another_dialect_by_that_dialects_rules() -> None:
    call = {"type": "tool_use", "id": "a.b", "name": "x", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a.b", "content": "r"}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
    ]
    found = lint({"messages": messages}, "anthropic-messages", profile="deepseek")
    assert [one.rule for one in found] == ["call_id_invalid"]


# --- the command


def run(*arguments: str, request: Any = None) -> tuple[int, Any]:
    done = CliRunner().invoke(
        lint_command, [*arguments, "-"], input=json.dumps(request), catch_exceptions=False
    )
    return done.exit_code, json.loads(done.stdout)


BROKEN = {
    "messages": [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "x", "content": "r"}]
}


def test_wire_lint_prints_violations_and_exits_1() -> None:
    code, out = run("--dialect", "openai-chat", request=BROKEN)
    assert code == 1
    assert out["anomalies"] == []
    assert [one["rule"] for one in out["violations"]] == ["tool_without_call"]
    assert set(out["violations"][0]) == {"rule", "where", "detail"}
    assert "request" not in out


def test_wire_lint_with_fix_prints_the_request_and_exits_0() -> None:
    code, out = run("--dialect", "openai-chat", "--fix", request=BROKEN)
    assert code == 0
    assert out["violations"] == []
    assert [one["kind"] for one in out["anomalies"]] == ["orphan_result_dropped"]
    assert out["request"] == {"messages": [{"role": "user", "content": "q"}]}


def test_wire_lint_of_a_valid_request_exits_0() -> None:
    done = run("--dialect", "openai-chat", request={"messages": [Q]})
    assert done == (0, {"violations": [], "anomalies": []})


def test_wire_lint_converts_and_takes_settings() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    request = {"messages": [{"role": "user", "content": [image]}]}
    code, out = run(
        "--dialect",
        "anthropic-messages",
        "--from",
        "openai-chat",
        "--set",
        "vision=false",
        "--fix",
        request=request,
    )
    assert code == 0
    assert out["request"]["messages"] == [
        {"role": "user", "content": "[image omitted: model has no image input]"}
    ]


WRONG: dict[str, tuple[list[str], str]] = {
    "a file that is not there": (["--dialect", "gemini", "/nowhere/x.json"], "cannot read"),
    "a setting without a value": (["--dialect", "gemini", "--set", "vision", "FILE"], "is not KEY=JSON"),
    "a setting that is not JSON": (["--dialect", "gemini", "--set", "vision=no", "FILE"], "not JSON"),
    "a setting nobody knows": (["--dialect", "gemini", "--set", "x=1", "FILE"], "unknown field"),
    "a profile nobody knows": (["--dialect", "gemini", "--profile", "x", "FILE"], "unknown profile"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wire_lint_names_what_the_caller_did_wrong(case: str, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text("{}")
    arguments = [str(file) if one == "FILE" else one for one in WRONG[case][0]]
    with pytest.raises(CallerError, match=WRONG[case][1]):
        CliRunner().invoke(lint_command, arguments, catch_exceptions=False)


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"a": NaN}', "[" * 5000])
def test_wire_lint_refuses_what_is_no_request(text: str) -> None:
    with pytest.raises(CallerError):
        CliRunner().invoke(lint_command, ["--dialect", "gemini", "-"], input=text, catch_exceptions=False)


# --- what is told


def test_one_line_says_what_was_left_out() -> None:
    assert told("normal", []) == ""
    assert told("strict", []) == "sent without fields that only some providers know"
    anomalies = [Anomaly("result_synthesised"), Anomaly("call_id_changed"), Anomaly("result_synthesised")]
    assert told("normal", anomalies) == "2 x missing tool results filled in, call ids renamed"
    assert told("no_media", anomalies[:1]) == (
        "sent without fields that only some providers know, the model's earlier reasoning, images; "
        "missing tool results filled in"
    )


def test_every_kind_of_anomaly_has_a_meaning() -> None:
    source = Path(repair.__code__.co_filename).parent
    kinds: set[str] = set()
    for file in [*source.glob("*.py"), source.parent / "providers" / "parsed.py"]:
        kinds |= set(
            re.findall(r'(?:Anomaly|anomaly|_note)\(\s*"([a-z_]+)"', file.read_text(encoding="utf-8"))
        )
    kinds |= {"arguments_replaced", "nul_replaced", amendments.LIMIT, amendments.TOOL, amendments.MEDIA}
    assert kinds == set(MEANINGS) - {"option_left_out"} | (kinds & {"option_left_out"})


def test_the_documented_example_is_repaired_as_shown() -> None:
    page = (Path(__file__).parents[2] / "docs/repair.md").read_text(encoding="utf-8")
    before, after = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)[:2])
    mended = repair(before, "openai-chat")
    assert mended.request == after
    named = re.search(r"and the anomalies (.*?)\. The late", page, re.DOTALL)
    assert named is not None
    assert [one.kind for one in mended.anomalies] == re.findall(r"`([a-z_]+)`", named[1])

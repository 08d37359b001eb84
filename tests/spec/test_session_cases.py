"""The field cases of broken histories: what users met, through the public functions.

A line of ``tests/recorded/cases/session.jsonl`` is one case. Histories go through ``lint`` and ``repair`` as
``lockstitch wire lint`` would be asked; logs of other agents are given the same damage in our own format; the
cases about a provider's refusal go through ``classify``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from histories import png_data
from neutral import differences, joined, neutral_case, neutral_message, neutral_request

from lockstitch import classify, lint, repair
from lockstitch.agent.recovery import refused_tool
from lockstitch.history.context import Context
from lockstitch.history.project import project
from lockstitch.history.repair import target_profile
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.events import (
    AssistantMessage,
    Body,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    LegacyCompaction,
    NoteEvent,
    Prune,
    SessionStart,
    StepStart,
    ToolFinished,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.usage import Usage
from lockstitch.session.closers import closers
from lockstitch.session.file_store import FileStore
from lockstitch.session.gate import LogState, advance
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.functions import tool
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import run_call
from lockstitch.wire.jsonl import encode

CASES = {
    case["id"]: case
    for case in map(
        json.loads,
        (Path(__file__).parents[1] / "recorded/cases/session.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
LIMITS = ("vision", "strict_alternation", "id_max", "prefill", "image_max_base64")
DIALECTS = {"bedrock-converse": "anthropic-messages"}


def asked(case: dict[str, Any]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """A case as the arguments of ``lint`` and ``repair``: request, dialect, everything else."""
    given = case["input"]
    target = given.get("target", {})
    dialect = DIALECTS.get(target.get("protocol"), target.get("protocol", "openai-chat"))
    request: dict[str, Any] = {"model": target.get("model", "m")}
    options: dict[str, Any] = {key: target[key] for key in LIMITS if key in target}
    if "provider" in target:
        options["profile"] = target["provider"]
    if "items" in given:
        request["input"] = [*given["items"], *([given["then"]] if "then" in given else [])]
        if "store" in target:
            request["store"] = target["store"]
    else:
        request["messages"] = [nested(message) for message in given["messages"]]
        if dialect != "openai-chat":
            options["source"] = "openai-chat"
    if target.get("thinking"):
        request["thinking"] = {"type": "enabled"}
    return request, dialect, options


def nested(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its calls in chat's own shape, which the cases flatten."""
    if "tool_calls" not in message:
        return message
    calls = [
        {
            "id": one["id"],
            "type": "function",
            "function": {"name": one["name"], "arguments": one["arguments"]},
        }
        for one in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def expected_requests(case: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What the case expects, and its alternatives."""
    return [case["expected"]["request"], *case["expected"].get("alternatives", [])]


REPAIRED = [
    "interrupt-mid-tool-no-result",
    "resume-after-summary-first-message",
    "step-retry-amplifies-orphans",
    "duplicate-call-ids-one-turn",
    "kimi-native-ids-mangled",
    "thinking-signature-model-switch",
    "thinking-modified-latest-assistant",
    "empty-text-block-stored",
    "tool-only-turn-gets-empty-text",
    "compound-id-over-64",
    "id-charset-anthropic",
    "invalid-json-arguments-in-history",
    "malformed-call-bricks-all-turns",
    "orphan-call-custom-provider",
    "deepseek-reasoning-not-passed-back",
    "system-message-between-call-and-result",
    "anthropic-split-tool-results",
    "mistral-id-nine-alnum",
    "mistral-tool-after-user",
    "consecutive-user-messages-vllm",
    "bedrock-two-assistants",
    "gemini-response-count-mismatch-after-compress",
    "image-after-switch-to-text-model",
    "image-in-tool-result-text-model",
    "image-not-multimodal-400",
    "responses-error-turn-calls-skipped-results-kept",
    "responses-call-text-result-order",
    "bedrock-duplicate-ids-hallucinated",
    "reload-auto-resume-prefill-loop",
    "subagent-tail-prefill",
    "reasoning-only-assistant-after-crash",
    "lone-surrogate-in-tool-input",
    "lone-surrogate-from-truncation",
    "oversized-image-locks-session",
    "bedrock-blank-text-block",
    "steer-before-slow-tool-finished",
    "queued-announcement-during-exec",
    "interrupt-bedrock-wording",
    "moonshot-reasoning-placeholder-not-empty",
]
UNSTRUCTURAL = ("image-after-switch-to-text-model", "image-not-multimodal-400")
"""Refused for a model's abilities rather than for structure; a rule finds them all the same."""


@pytest.mark.parametrize("name", REPAIRED)
def test_a_broken_request_is_refused_and_then_repaired_as_expected(name: str) -> None:
    case = CASES[name]
    request, dialect, options = asked(case)
    if "provider_error" in case["input"]:
        assert lint(request, dialect, **options) != []
    mended = repair(request, dialect, **options)
    judged = {key: value for key, value in options.items() if key != "source"}
    assert lint(mended.request, dialect, **judged) == []
    profile = target_profile(dialect, options.get("profile"))
    found = neutral_request(mended.request, dialect, profile)
    complaints = [differences(found, neutral_case(one, profile)) for one in expected_requests(case)]
    assert [] in complaints, complaints
    assert repair(mended.request, dialect, **judged) == (mended.request, ())


ITEMS = {
    "hook-context-between-responses-items": ["message", "function_call", "function_call_output", "message"],
    "responses-reasoning-item-pairs": ["message", "function_call", "function_call_output"],
    "responses-crash-mid-call": ["message", "function_call", "function_call_output", "message"],
    "responses-each-parallel-call-needs-reasoning": [
        "message", "reasoning", "function_call", "reasoning", "function_call",
        "function_call_output", "function_call_output",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_broken_items_are_refused_and_then_repaired_as_expected(name: str) -> None:
    request, dialect, options = asked(CASES[name])
    assert lint(request, dialect, **options) != []
    mended = repair(request, dialect, **options)
    assert lint(mended.request, dialect, **options) == []
    items = mended.request["input"]
    assert [item["type"] for item in items] == ITEMS[name]
    assert len(items) == len(CASES[name]["expected"]["request_items"])
    if name == "responses-reasoning-item-pairs":
        assert "id" not in items[1]
    if name == "responses-crash-mid-call":
        assert items[2]["output"]


# --- histories that go through a log of ours


def said(name: str) -> UserMessage:
    return UserMessage(id=name, content=(Text(text=name),))


def answered(*content: Any) -> AssistantMessage:
    blocks = tuple(Text(text=one) if isinstance(one, str) else one for one in content)
    return AssistantMessage(id="a", content=blocks, finish="tool_calls", provider="generic", model="m")


def call(call_id: str, name: str = "read", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def finished(seq: int, position: int, call_id: str, text: str) -> ToolFinished:
    return ToolFinished(seq, position, call_id, (Text(text=text),), "done")


def compacted(name: str, summary: str, keep_from_seq: int | None) -> list[Body]:
    content = (Text(text=summary),)
    return [
        CompactionStart(name, "threshold", keep_from_seq),
        CompactionSummary(name, content),
        CompactionEnd(name, applied=True),
    ]


LOGS: dict[str, list[Body]] = {
    "compaction-splits-parallel-batch": [
        said("fix it"),
        answered(call("A", arguments='{"p":1}'), call("B", arguments='{"p":2}')),
        finished(1, 0, "A", "ra"),
        finished(1, 1, "B", "rb"),
        said("go on"),
        LegacyCompaction((Text(text="SUMMARY"),), 3),
    ],
    "compaction-keeps-orphan-call": [
        said("q"),
        answered("ok"),
        said("next"),
        answered(call("t1")),
        LegacyCompaction((Text(text="SUMMARY"),), 2),
    ],
    "compaction-entry-inside-pair": [
        answered(call("toolu_1")),
        *compacted("old", "OLD", None),
        finished(0, 0, "toolu_1", "real result"),
        *compacted("new", "NEW", 0),
        said("continue"),
    ],
    "empty-text-synthesised-late": [
        said("q"),
        answered("r"),
        said("next"),
        *compacted("blank", "  ", 2),
    ],
    "orphan-result-bypasses-repair": [
        said("q0"),
        answered(call("toolu_1", "ls")),
        finished(1, 0, "toolu_1", "x"),
        said("q1"),
        LegacyCompaction((), 2),
    ],
    "quota-fallback-loses-tool-response": [
        said("q"),
        answered(call("c1", "ls")),
        finished(1, 0, "c1", "files"),
        said("next"),
    ],
    "late-results-after-subagent-turn": [
        answered(call("tu_1", "a"), call("tu_2", "b"), call("tu_3", "c")),
        finished(0, 0, "tu_1", "r1"),
        NoteEvent("subagent", {"asked": "call_s1"}),
        finished(0, 1, "tu_2", "r2"),
        NoteEvent("subagent", {"answered": "call_s1"}),
        finished(0, 2, "tu_3", "r3"),
        said("go"),
    ],
    "subagent-events-in-parent-log": [
        answered(call("toolu_1", "task"), call("toolu_2", "read")),
        NoteEvent("subagent", {"asked": "toolu_9"}),
        finished(0, 1, "toolu_2", "r2"),
        NoteEvent("subagent", {"answered": "toolu_9"}),
        finished(0, 0, "toolu_1", "started"),
    ],
    "subagent-stream-persisted-in-parent": [
        answered(call("c1", "transfer_task")),
        NoteEvent("subagent", {"says": "sub says hi"}),
        finished(0, 0, "c1", "sub done"),
        said("next"),
    ],
    "killed-during-subagent-output-lost": [
        answered(call("c1", "subagent")),
        NoteEvent("subagent", {"output": "report"}),
        finished(0, 0, "c1", "report"),
        said("resume"),
    ],
    "control-notice-inside-pair": [
        said("q"),
        answered(call("toolu_1", "subagent")),
        said("[notice]"),
        finished(1, 0, "toolu_1", "done"),
        said("hi"),
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_with_the_same_damage_becomes_the_expected_request(name: str) -> None:
    case = CASES[name]
    dialect = case["input"].get("target", {}).get("protocol", "openai-chat")
    profile = target_profile(dialect)
    context = Context()
    for seq, body in enumerate(LOGS[name]):
        context.apply(Event(seq, seq, body))
    projected = project(context.messages, profile, model="m")
    found = [one for message in projected.messages for one in neutral_message(message)]
    if name == "orphan-result-bypasses-repair":
        found = [one for one in found if one.text != "…"][-1:]
    complaints = [differences(joined(found), neutral_case(one, profile)) for one in expected_requests(case)]
    assert [] in complaints, complaints


def test_a_call_that_was_killed_is_closed_when_the_log_is_opened() -> None:
    """hung-tool-cancel-never-reached, responses-panic-on-missing-output: the closers answer what is open."""
    log: list[Body] = [
        SessionStart(1, "s"),
        TurnStart(1),
        said("q"),
        StepStart(1, 1),
        answered(call("t1", "subagent")),
    ]
    state, context = LogState(), Context()
    for seq, body in enumerate(log):
        advance(state, Event(seq, seq, body))
        context.apply(Event(seq, seq, body))
    for body in closers(state):
        event = Event(state.next_seq, 9, body)
        advance(state, event)
        context.apply(event)
    for name in ("hung-tool-cancel-never-reached", "interrupt-mid-tool-no-result"):
        dialect = "anthropic-messages"
        profile = target_profile(dialect)
        projected = project(context.messages, profile, model="m")
        found = [one for message in projected.messages for one in neutral_message(message)]
        assert [one.role for one in found] == ["user", "assistant", "tool"], name
        assert found[2].text


# --- damage to the stored bytes


DAMAGE: dict[str, tuple[Callable[[list[bytes]], bytes], list[str], int]] = {
    "resume-truncated-at-malformed-line": (
        lambda lines: b"".join(
            [*lines[:3], b'{"type":"snapshot","id":"2","data":{"files":["x"\n', *lines[3:]]
        ),
        ["user: a", "assistant: b", "user: c"],
        1,
    ),
    "null-bytes-mid-log": (
        lambda lines: b"".join([*lines[:3], bytes(22) + b"\n", *lines[3:]]),
        ["user: a", "assistant: b", "user: c"],
        1,
    ),
    "null-bytes-abort-import": (
        lambda lines: b"".join([*lines[:3], bytes(9) + lines[3], *lines[4:]]),
        ["user: a", "assistant: b", "user: c"],
        1,
    ),
    "torn-tail-swallows-next-append": (
        lambda lines: b"".join([*lines, b'{"seq":7,"data":{"content":"caf\xc3']),
        ["user: a", "assistant: b", "user: c"],
        1,
    ),
    "torn-final-record-rejected": (
        lambda lines: b"".join([*lines[:-1], lines[-1][:-20]]),
        ["user: a", "assistant: b"],
        1,
    ),
    "glued-records-one-line": (
        lambda lines: b"".join([*lines[:2], lines[2].rstrip(b"\n"), *lines[3:]]),
        ["user: a", "assistant: b", "user: c"],
        0,
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_log_with_damaged_bytes_opens_with_all_that_is_whole(name: str, tmp_path: Path) -> None:
    damage, expected, warnings = DAMAGE[name]
    bodies: list[Body] = [
        SessionStart(1, "s"),
        TurnStart(1),
        said("a"),
        StepStart(1, 1),
        answered("b"),
        said("c"),
    ]
    lines = [encode(seq, 7, body) for seq, body in enumerate(bodies)]
    store = FileStore(tmp_path, index=False)
    log = await store.open("s")
    path = log.path
    await log.close()
    (path / "log.jsonl").write_bytes(damage(lines))

    context = Context()
    log = await store.open("s", fold=context.apply)
    assert words(context)[: len(expected)] == expected
    report = log.report
    assert (report.set_aside + (report.torn_bytes > 0) > 0) == (warnings > 0)
    for event in log.append(*_turn_with("b again", log.state)):
        context.apply(event)
    await log.flush()
    await log.close()

    again = Context()
    log = await store.open("s", fold=again.apply)
    assert words(again) == words(context)
    await log.close()
    await store.close()


def _turn_with(words_said: str, state: LogState) -> list[Body]:
    turn = state.turns + 1
    return [TurnStart(turn), said(words_said), TurnEnd(turn, "completed")]


def words(context: Context) -> list[str]:
    return [
        f"{message.role}: {''.join(block.text for block in message.content if isinstance(block, Text))}"
        for message in context.messages
    ]


# --- what a refusal means


REFUSALS: dict[str, tuple[str, str]] = {
    "image-no-endpoints-404": ("MODEL_NOT_FOUND", "drop_media"),
    "image-not-multimodal-400": ("MODEL_NOT_FOUND", "drop_media"),
    "one-bad-tool-schema-blocks-session": ("INVALID_TOOL_SCHEMA", "drop_tool"),
    "tool-schema-error-looks-like-empty-run": ("INVALID_TOOL_SCHEMA", "drop_tool"),
    "bodyless-400-triggers-compaction": ("INVALID_REQUEST", "ladder"),
    "rate-limit-misread-as-overflow": ("RATE_LIMIT", "retry"),
    "persistent-429-compaction-loop": ("RATE_LIMIT", "retry"),
    "overflow-wording-unknown-infinite-retry": ("CONTEXT_WINDOW_EXCEEDED", "compact"),
    "groq-413-is-rate-limit": ("RATE_LIMIT", "lower_max_tokens"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_recovered_from_in_its_own_way(name: str) -> None:
    given = CASES[name]["input"]
    error = given["provider_error"]
    found = classify(
        error["status"],
        {},
        json.dumps({"error": {"message": error["message"], "code": error.get("code")}}),
        context_ratio=given.get("usage_ratio"),
    )
    assert (found.code, found.recovery) == REFUSALS[name]


def test_a_tool_that_the_provider_names_is_left_out() -> None:
    """one-bad-tool-schema-blocks-session."""
    given = CASES["one-bad-tool-schema-blocks-session"]["input"]
    error = given["provider_error"]
    failure = classify(error["status"], {}, json.dumps({"error": {"message": error["message"]}})).failure
    tools = [one["name"] for one in given["tools"]]
    named = refused_tool(failure, tools, ())
    assert [one for one in tools if one != named] == CASES["one-bad-tool-schema-blocks-session"]["expected"][
        "tools"
    ]


def test_images_go_when_the_provider_has_no_endpoint_for_them() -> None:
    """image-no-endpoints-404: the resend is a repair for a model without vision."""
    case = CASES["image-no-endpoints-404"]
    request, dialect, options = asked(case)
    mended = repair(request, dialect, **options, vision=False)
    profile = target_profile(dialect, options["profile"])
    found = neutral_request(mended.request, dialect, profile)
    assert differences(found, neutral_case(case["expected"]["request"], profile)) == []


# --- the rest, one by one


def test_the_oldest_large_images_go_when_there_are_many() -> None:
    """many-images-2000px-limit: an old picture becomes illegal because of its neighbours."""

    def image(width: int) -> dict[str, Any]:
        source = {"type": "base64", "media_type": "image/png", "data": png_data(width, 1200)}
        return {"type": "image", "source": source}

    request = {"messages": [{"role": "user", "content": [image(2400), *[image(100)] * 20]}]}
    assert [one.rule for one in lint(request, "anthropic-messages")] == ["image_too_many_pixels"]
    mended = repair(request, "anthropic-messages")
    kinds = [block["type"] for block in mended.request["messages"][0]["content"]]
    assert kinds == ["text", *["image"] * 20]
    assert lint(mended.request, "anthropic-messages") == []


def test_missing_reasoning_of_another_model_is_stood_in_for() -> None:
    """deepseek-reasoning-lost-foreign-history: one of the accepted ways is an empty reasoning_content."""
    request, dialect, options = asked(CASES["deepseek-reasoning-lost-foreign-history"])
    assert [one.rule for one in lint(request, dialect, **options)] == ["reasoning_missing"]
    mended = repair(request, dialect, **options)
    assert mended.request["messages"][1]["reasoning_content"] == ""


@pytest.mark.parametrize("name", ["bad-unicode-blocks-compaction", "zero-usage-anchor-disables-compaction"])
def test_a_request_contains_what_the_case_names(name: str) -> None:
    request, dialect, options = asked(CASES[name])
    mended = repair(request, dialect, **options)
    assert lint(mended.request, dialect) == []
    wanted = CASES[name]["expected"]["request_contains"]
    if isinstance(wanted, str):
        assert any(wanted in str(message.get("content")) for message in mended.request["messages"])
    else:
        assert wanted in mended.request["messages"]


def test_usage_of_zero_is_no_anchor_and_a_good_answer_stays() -> None:
    """zero-usage-anchor-disables-compaction, silent-overflow-false-positive."""
    context = Context()
    good = AssistantMessage("a", (Text(text="good answer"),), "stop", usage=Usage(50_000, 10, 900_000))
    cut_short = AssistantMessage("b", (Text(text="partial"),), "interrupted", usage=Usage())
    for seq, body in enumerate([said("q"), good, cut_short]):
        context.apply(Event(seq, seq, body))
    assert words(context) == ["user: q", "assistant: good answer", "assistant: partial"]
    assert context.last_usage == good.usage


def test_a_result_larger_than_the_window_is_cut_to_head_and_tail() -> None:
    """overflow-by-last-tool-result: the log keeps it whole, the context does not."""
    context = Context()
    log: list[Body] = [
        said("q"),
        answered(call("c1", "shell")),
        finished(1, 0, "c1", "X" * 5000),
        Prune((2,), 400, 400),
    ]
    for seq, body in enumerate(log):
        context.apply(Event(seq, seq, body))
    profile = target_profile("openai-chat")
    projected = project(context.messages, profile, model="m")
    found = [one for message in projected.messages for one in neutral_message(message)]
    expected = neutral_case(CASES["overflow-by-last-tool-result"]["expected"]["request"], profile)
    assert differences(found, expected) == []


async def test_a_call_with_bad_arguments_is_answered_not_dropped(tmp_path: Path) -> None:
    """nul-byte-in-arguments."""
    arguments = CASES["nul-byte-in-arguments"]["input"]["response"]["tool_calls"][0]["arguments"]

    @tool
    def edit(old: str) -> str:
        """Edit."""
        return old

    context = ToolContext(cwd=tmp_path, session_id="s", call_id="c1", progress=lambda text: None, environ={})
    ran = await run_call(Registry([edit]), call("c1", "edit", arguments), context)
    assert (ran.outcome, ran.is_error) == ("invalid", True)
    assert ran.content


def test_every_case_is_covered() -> None:
    alone = {
        "hung-tool-cancel-never-reached",
        "responses-panic-on-missing-output",
        "many-images-2000px-limit",
        "deepseek-reasoning-lost-foreign-history",
        "bad-unicode-blocks-compaction",
        "zero-usage-anchor-disables-compaction",
        "silent-overflow-false-positive",
        "overflow-by-last-tool-result",
        "nul-byte-in-arguments",
    }
    assert {*REPAIRED, *ITEMS, *LOGS, *DAMAGE, *REFUSALS, *alone} == set(CASES)

"""The seeds' third case: a session that an older version compacted inside an exchange, bricked by its orphan.

The history stays as the log has it; every request leaves the orphan out, whatever the provider's wording; and
the transcript is of one length with the live history, so that nothing said since is hidden.
"""

from typing import Any

import msgspec
import pytest
from event_logs import answered, events, finished, fold, said, text

from lockstitch import Agent
from lockstitch.agent import events as told
from lockstitch.agent.messages import folding
from lockstitch.history.project import Intent, project
from lockstitch.history.transcript import PageFold
from lockstitch.providers import catalog, dialects
from lockstitch.providers.classify import classify
from lockstitch.schema import events as log
from lockstitch.schema.events import AttemptStart, Body, LegacyCompaction, TurnEnd, TurnStart
from lockstitch.schema.messages import Request
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.gateway import Gateway
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.wire.jsonl import encode

OLD: list[Body] = [
    TurnStart(1),
    said("look at the file"),
    log.StepStart(1, 1),
    AttemptStart(1, 1, 1),
    answered("looking", "x"),
    log.ToolCallStarted(4, 0, "x", "read"),
    log.ToolFinished(4, 0, "x", text("the file"), "done"),
    log.StepEnd(1, 1),
    TurnEnd(1, "completed"),
    LegacyCompaction(text("Summary: the file was read."), 2),
]
"""The cut keeps the result and folds its call away."""
LIVE: list[Body] = [TurnStart(2), said("and now?"), said("please")]
"""Said since, not yet flushed."""
PROFILES = ["generic", "deepseek", "openai", "anthropic", "openai-responses", "gemini"]


def test_the_history_is_faithful_to_the_log() -> None:
    context = fold(OLD)
    assert [message.role for message in context.messages] == ["user", "tool"]


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("intent", [Intent.REQUEST, Intent.SUMMARY])
def test_no_request_holds_the_orphan(name: str, intent: Intent) -> None:
    profile = catalog.profile(name)
    projected = project(fold([*OLD, *LIVE]).messages, profile, model="m", intent=intent)
    wire = dialects.encode(Request("m", projected.messages), profile)
    assert dialects.violations(wire.body, wire.dialect, profile) == []
    assert "the file" not in str(wire.body).replace("the file was read", "")
    assert "orphan_result_dropped" in [anomaly.kind for anomaly in projected.anomalies]


def test_a_fragment_is_left_alone() -> None:
    messages = fold(OLD).messages
    assert project(
        messages[1:], catalog.profile("generic"), model="m", intent=Intent.SIZING
    ).messages == tuple(messages[1:])


def test_the_first_live_message_is_shown() -> None:
    live = fold([*OLD, *LIVE])
    page = PageFold(limit=100)
    stored = folding(page)
    for event in events(OLD):
        stored.apply(event)
    page.take_all(live.transcript)
    shown = [(entry.kind or entry.role, entry.id) for entry in page.page.entries]
    assert shown == [
        ("user", "look at the file"),
        ("assistant", "looking"),
        ("tool", "tool-6"),
        ("legacy_compaction", "legacy_compaction-9"),
        ("user", "and now?"),
        ("user", "please"),
    ]
    assert len(stored.messages) + len(LIVE) - 1 == len(live.messages)


async def stored_session() -> MemoryStore:
    """A store that holds the old session."""
    store = MemoryStore()
    async with Agent(ScriptedModel(["x"]), store=store, environ={}).open("s"):
        pass
    first = store.read_log("s").splitlines(keepends=True)[0]
    lines = [encode(seq, 1_000, shifted(body)) for seq, body in enumerate(OLD, 1)]
    store.write_log("s", first + b"".join(lines))
    return store


def shifted(body: Body) -> Body:
    """The body in a log that begins with a record of its own: addresses are one higher."""
    return msgspec.structs.replace(body, message_seq=5) if hasattr(body, "message_seq") else body


async def test_the_session_opens_and_goes_on_and_shows_what_is_said() -> None:
    store = await stored_session()
    model = ScriptedModel(["It is fine."], strict="openai-chat")
    async with Agent(model, store=store, environ={}).open("s") as session:
        result = await session.send("and now?").result()
        page = await session.transcript.page(limit=3)
    assert result.text == "It is fine."
    assert len(model.requests) == 1, "nothing was refused: the orphan was never sent"
    assert [entry.id for entry in page.entries][-2:] == ["t2u", page.entries[-1].id]
    assert [entry.content for entry in page.entries][-2:] == [text("and now?"), text("It is fine.")]


# ---- recognition, in both directions ----

STRUCTURAL = [
    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    'Messages with role "tool" must be a response to a preceding message with "tool_calls"',
    "Messages with role `tool` must be a response to a preceding message with `tool_calls`.",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
    "tool_call_ids did not have response messages: call_1",
    "An assistant message with 'tool_calls' must be followed by tool messages (insufficient tool messages "
    "following tool_calls message)",
]


@pytest.mark.parametrize("message", STRUCTURAL)
@pytest.mark.parametrize("status", [400, 422])
def test_both_directions_are_structural(message: str, status: int) -> None:
    verdict = classify(status, {}, {"error": {"message": message}})
    assert (verdict.code, verdict.recovery) == ("INVALID_STRUCTURE", "ladder")


def test_a_model_that_is_not_supported_is_not_structural() -> None:
    body = {"error": {"message": "Not supported model mimo-v2.5-pro-ultraspeed"}}
    verdict = classify(400, {}, body)
    assert verdict.recovery not in ("ladder", "compact")


# ---- strict resend, end to end ----


async def test_a_structural_refusal_is_answered_by_one_stricter_request() -> None:
    """OpenAI's wording, over HTTP: exactly two requests, the second one repaired."""
    refusal: dict[str, Any] = {
        "status": 400,
        "error": {"message": STRUCTURAL[0], "type": "invalid_request_error", "param": "messages.[1].role"},
    }
    async with Gateway([refusal, "Mended."]) as gateway:
        store = await stored_session()
        agent = Agent("m", base_url=gateway.base_url, store=store, environ={})
        async with agent.open("s") as session:
            seen = [event async for event in session.send("and now?")]
        assert len(gateway.requests) == 2
        first, second = (request["body"]["messages"] for request in gateway.requests)
    assert first != second
    assert [message["role"] for message in second] == ["user"], "strict: neighbouring user messages are one"
    assert [event.rung for event in seen if isinstance(event, told.Repaired)][-1] == "strict"
    ending = seen[-1]
    assert isinstance(ending, told.TurnEnded)
    assert (ending.reason, ending.text) == ("completed", "Mended.")


def test_an_orphan_is_a_result_whose_call_is_nowhere() -> None:
    bodies: list[Body] = [said("u"), answered("a", "x"), finished(1, 0), finished(1, 7)]
    projected = project(fold(bodies).messages, catalog.profile("generic"), model="m")
    assert [message.role for message in projected.messages] == ["user", "assistant", "tool"]

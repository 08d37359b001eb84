"""Compaction in a session: triggers, ways out, transactions, budgets, and conversations without end."""

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from lockstitch import Agent, Budget, CallerError, ProviderError, tool
from lockstitch.agent import events as told
from lockstitch.history.learned_window import named_window
from lockstitch.history.window import threshold_of
from lockstitch.llm.retry import Backoff, RetryPolicy
from lockstitch.providers import catalog
from lockstitch.schema import events as log
from lockstitch.schema.events import Body, Event
from lockstitch.schema.usage import Usage
from lockstitch.session.gate import refusal
from lockstitch.session.log_state import LogState, advance
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel

WORDS = "the quick brown fox jumps over the lazy dog and goes on its way "
OVERFLOW = {"error": {"message": "context length exceeded", "code": "context_length_exceeded"}, "status": 400}
BUSY = {"error": {"message": "busy"}, "status": 503}
REFUSED = {"error": {"message": "An assistant message with 'tool_calls' must be followed by tool messages"}}
SUMMARY = "Goal: build the parser. Done: src/app.py."
QUICK = RetryPolicy(backoff=Backoff(retries=1, max_delay_s=0.01), by_code={}, initial_delay_s=0.01)


@tool
def fetch_page(number: int) -> str:
    """Fetch a page."""
    return f"page {number} " + WORDS * 200


class World:
    """An agent over a store in memory whose model has a window, and what its log holds."""

    def __init__(
        self,
        *answers: Any,
        window: int | None = None,
        known: int | None = None,
        then: str = "Done as asked.",
        profile: str = "generic",
        **options: Any,
    ) -> None:
        script = {"answers": list(answers), "then": {"text": then}}
        dialect = catalog.profile(profile).protocol
        self.model = ScriptedModel(script, profile=profile, window=window, strict=dialect)
        if known is not None:
            endpoint = self.model.endpoint
            facts = msgspec.structs.replace(endpoint.profile, context_window=known)
            self.model.endpoint = dataclasses.replace(endpoint, profile=facts)
        self.store = MemoryStore()
        self.compacting: list[told.Compacting] = []
        self.compacted: list[told.Compacted] = []
        options.setdefault("retry", QUICK)
        options.setdefault("tools", [fetch_page])
        self.agent = Agent(self.model, store=self.store, environ={}, **options)

    async def say(self, *prompts: str) -> list[told.TurnEnded]:
        ends = []
        async with self.agent.open("s") as session:
            for prompt in prompts:
                async for event in session.send(prompt):
                    if isinstance(event, told.Compacted):
                        self.compacted.append(event)
                    elif isinstance(event, told.Compacting):
                        self.compacting.append(event)
                    elif isinstance(event, told.TurnEnded):
                        ends.append(event)
        return ends

    async def bodies(self, *kinds: type[Any]) -> list[Any]:
        events: list[Event] = []
        await self.store.open("s", read_only=True, fold=events.append)
        return [event.body for event in events if isinstance(event.body, kinds or Body)]

    @property
    def methods(self) -> list[str]:
        return [event.method for event in self.compacted]

    def sent(self, number: int) -> str:
        return str(self.model.requests[number]["body"]["messages"])


def prompts(count: int, words: int = 40) -> list[str]:
    return [f"Prompt {n}: {WORDS * (words // 12)}" for n in range(1, count + 1)]


def long_prompts() -> list[str]:
    """Three turns and a prompt; the history without the prompt fits the window that the refusal teaches."""
    return [*prompts(3, words=1_200), f"Prompt 4: {WORDS * 120}"]


async def reasons(world: World) -> set[str]:
    return {body.reason for body in await world.bodies(log.TurnEnd)}


# ---- triggers ----


async def test_a_history_is_compacted_before_the_request_that_would_fill_the_window() -> None:
    world = World(known=3_000, window=3_000, then=SUMMARY)
    ends = await world.say(*prompts(12, words=200))
    assert {end.reason for end in ends} == {"completed"}
    assert {(event.trigger, event.method) for event in world.compacted} == {("threshold", "model")}
    assert not [request for request in world.model.requests if "refused" in request]
    first = world.compacted[0]
    assert first.tokens_after < first.tokens_before / 2
    assert "Prompt 12:" in world.sent(-1)
    assert "[This conversation was shortened." in world.sent(-1)
    assert [begun.tokens_before for begun in world.compacting] == [
        event.tokens_before for event in world.compacted
    ]


async def test_an_unknown_window_is_learned_from_one_refusal_and_outlives_the_process() -> None:
    world = World(window=2_000, then=SUMMARY)
    await world.say(*prompts(15, words=150))
    await world.say(*prompts(10, words=150))
    assert [event.trigger for event in world.compacted][:2] == ["overflow", "threshold"]
    assert sum("refused" in request for request in world.model.requests) == 1
    assert await reasons(world) == {"completed"}


async def test_a_window_is_learned_from_a_refusal_that_names_none() -> None:
    world = World("One.", "Two.", OVERFLOW, SUMMARY, then="Fine.")
    ends = await world.say(*prompts(3, words=300))
    assert [end.reason for end in ends] == ["completed"] * 3
    assert [event.trigger for event in world.compacted] == ["overflow"]


async def test_by_hand_with_a_focus() -> None:
    world = World(*["Noted."] * 4, SUMMARY)
    await world.say(*prompts(4, words=300))
    async with world.agent.open("s") as session:
        before = len(session.messages)
        done = await session.compact("the parser")
        assert isinstance(done, told.Compacted)
        assert (done.trigger, done.method) == ("manual", "model")
        assert done.tokens_after < done.tokens_before
        assert len(session.messages) < before
    assert "Above all keep what concerns this: the parser" in world.sent(4)


async def test_by_hand_there_may_be_nothing_to_gain() -> None:
    world = World("Hi.")
    await world.say("Hello.")
    async with world.agent.open("s") as session:
        assert await session.compact() is None
    assert len(world.model.requests) == 1


async def test_by_hand_a_provider_that_lets_nobody_in_is_an_error_and_the_history_stays() -> None:
    denied = {"error": {"message": "Invalid API key"}, "status": 401}
    world = World(*["Noted."] * 3, denied)
    await world.say(*prompts(3, words=300))
    async with world.agent.open("s") as session:
        before = list(session.messages)
        with pytest.raises(ProviderError, match="the history is as it was"):
            await session.compact()
        assert list(session.messages) == before
    assert [body.applied for body in await world.bodies(log.CompactionEnd)] == [False]


async def test_not_while_a_turn_runs() -> None:
    world = World({"text": "slow", "delay_ms": 200})
    async with world.agent.open("s") as session:
        turn = session.send("go")
        waiting = asyncio.ensure_future(turn.__anext__())
        await asyncio.sleep(0.02)
        for act in (session.compact, session.undo, session.clear):
            with pytest.raises(CallerError, match="a turn is running"):
                await act()
        await waiting
        await turn.aclose()


# ---- pruning comes first ----


async def test_long_results_are_pruned_before_anything_is_summarised() -> None:
    call = {"tool_calls": [{"name": "fetch_page", "arguments": {"number": 1}}]}
    world = World(call, call, call, "All read.", known=11_000)
    ends = await world.say("Read the pages.")
    assert [end.reason for end in ends] == ["completed"]
    assert world.methods == ["prune"]
    assert world.compacting == [], "no model is asked, so nothing takes its time"
    assert len(world.model.requests) == 4, "no model was asked for a summary"
    assert "characters pruned]" in world.sent(-1)
    results = await world.bodies(log.ToolFinished)
    assert all(len(body.content[0].text) > 10_000 for body in results), "the log keeps them whole"


# ---- ways out ----


def conversation(*answers: Any, **options: Any) -> World:
    """Three turns, then a prompt whose request overflows; ``answers`` are to what follows."""
    return World("One.", "Two.", "Three.", OVERFLOW, *answers, then="Fine.", **options)


WAYS_OUT: dict[str, tuple[list[Any], str]] = {
    "a summary of the history": ([SUMMARY], "model"),
    "refused for its structure: the text in pieces": ([REFUSED, SUMMARY], "pieces"),
    "too long itself: the text in pieces": ([OVERFLOW, SUMMARY], "pieces"),
    "empty, again and again: the text in pieces": ([{"text": ""}, {"text": ""}, SUMMARY], "pieces"),
    "cut at the output limit: the text in pieces": (
        [{"text": "Goal:", "finish": "length"}, SUMMARY],
        "pieces",
    ),
    "larger than what it replaces: the text in pieces": ([{"text": WORDS * 900}, SUMMARY], "pieces"),
    "pieces refused too: a digest": ([REFUSED, REFUSED], "digest"),
    "pieces too long however small: a digest": ([OVERFLOW] * 4, "digest"),
    "pieces that say nothing: a digest": ([{"text": ""}] * 4, "digest"),
    "retried after a failure that passes": ([BUSY, SUMMARY], "model"),
    "a provider that is down: a digest, because the request cannot go out as it is": ([BUSY] * 2, "digest"),
}


@pytest.mark.parametrize(("answers", "method"), WAYS_OUT.values(), ids=WAYS_OUT.keys())
async def test_an_overflow_has_a_way_out(answers: list[Any], method: str) -> None:
    world = conversation(*answers)
    ends = await world.say(*long_prompts())
    assert ends[-1].reason == "completed", ends[-1]
    assert world.methods == [method]
    assert "Prompt 4:" in world.sent(-1)
    usage = (await world.bodies(log.CompactionSummary))[0].usage
    assert (usage is not None) == any("text" in a or isinstance(a, str) for a in map(_as_dict, answers))


def _as_dict(answer: Any) -> Any:
    return {"text": answer} if isinstance(answer, str) else answer


async def test_the_question_for_a_summary_keeps_the_providers_cache() -> None:
    world = World(known=6_000, window=6_000, then=SUMMARY, instructions="Be brief. " * 20)
    await world.say(*prompts(20, words=200))
    asked = [r for r in world.model.requests if "about to be shortened" in str(r["body"]["messages"][-1])]
    assert asked
    assert [share for share in (r["cache"]["share"] for r in asked) if share < 0.75] == []


async def test_before_a_request_that_may_fit_a_provider_that_is_down_costs_no_history() -> None:
    world = World("One.", "Two.", BUSY, BUSY, "Three.", known=900)
    ends = await world.say(*prompts(3, words=250))
    assert ends[-1].reason == "completed"
    assert world.methods == []
    assert "Prompt 1:" in world.sent(-1)


async def test_nothing_loops_where_no_history_fits() -> None:
    world = World(window=600, instructions=WORDS * 80, then="Fine.")
    (end,) = await world.say("Hello. " * 40)
    assert end.reason == "failed"
    assert end.failure is not None
    assert end.failure.code == "CONTEXT_WINDOW_EXCEEDED"
    assert "the system prompt and the tools alone take about" in end.failure.message
    assert len(world.model.requests) == 1
    (again,) = await world.say("Hello again.")
    assert again.reason == "failed"


async def test_a_history_that_is_refused_in_its_shortest_form_ends_the_turn() -> None:
    world = World("One.", then="Fine.")
    await world.say(*prompts(1, words=300))
    world.model = ScriptedModel({"then": OVERFLOW})
    world.agent = Agent(world.model, store=world.store, environ={}, retry=QUICK)
    (end,) = await world.say(*prompts(1, words=300))
    assert end.reason == "failed"
    assert end.failure is not None
    assert end.failure.code == "CONTEXT_WINDOW_EXCEEDED"
    assert "could not be made shorter" in end.detail or "still refused as too long" in end.detail
    assert len(world.model.requests) < 15


async def test_a_body_that_grows_too_large_is_made_smaller_whatever_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("lockstitch.agent.requests", "lockstitch.agent.compaction"):
        monkeypatch.setattr(f"{module}.BODY_CHARS_MAX", 12_000)
    world = World(known=1_000_000, then=SUMMARY)
    ends = await world.say(*prompts(10, words=300))
    assert {end.reason for end in ends} == {"completed"}
    assert world.methods
    assert all(len(str(request["body"])) < 14_000 for request in world.model.requests)


async def test_a_prompt_larger_than_the_window_is_shown_by_head_and_tail() -> None:
    world = World(window=2_000, then="Fine.")
    (end,) = await world.say("BEGIN " + WORDS * 1_000 + "END")
    assert end.reason == "completed"
    assert "BEGIN" in world.sent(-1)
    assert "END" in world.sent(-1)


async def test_a_result_larger_than_the_window_is_shown_by_head_and_tail() -> None:
    call = {"tool_calls": [{"name": "fetch_page", "arguments": {"number": 1}}]}
    world = World(call, window=1_500, then="Fine.")
    (end,) = await world.say("Read it.")
    assert end.reason == "completed"
    assert "Read it." in world.sent(-1)


# ---- transactions ----


async def test_a_compaction_can_be_cancelled_and_leaves_the_old_history() -> None:
    world = conversation({"text": SUMMARY, "hang": 20, "delay_ms": 20_000})
    async with world.agent.open("s") as session:
        for prompt in prompts(3, words=300):
            await session.send(prompt).result()
        turn = session.send("And now?")
        waiting = asyncio.ensure_future(turn.result())
        while len(world.model.requests) < 5:
            await asyncio.sleep(0.01)
        turn.cancel()
        assert (await waiting).reason == "cancelled"
        assert len(session.messages) == 7
    assert [body.applied for body in await world.bodies(log.CompactionEnd)] == [False]
    assert (await world.say("Go on."))[0].reason == "completed"


async def test_a_crash_at_any_record_leaves_the_old_or_the_new_history_never_half() -> None:
    world = conversation(SUMMARY)
    await world.say(*prompts(4, words=300))
    lines = world.store.read_log("s").splitlines(keepends=True)
    bodies = await world.bodies()
    start = next(n for n, body in enumerate(bodies) if isinstance(body, log.CompactionStart))
    end = next(n for n, body in enumerate(bodies) if isinstance(body, log.CompactionEnd))
    sizes = set()
    for cut in range(start, end + 2):
        store = MemoryStore()
        async with Agent(ScriptedModel(["x"]), store=store, environ={}).open("s"):
            pass
        store.write_log("s", b"".join(lines[:cut]))
        model = ScriptedModel({"then": {"text": "Going on."}}, strict="openai-chat")
        agent = Agent(model, store=store, environ={}, retry=QUICK)
        async with agent.open("s") as session:
            sizes.add(len(session.messages))
            assert (await session.send("Go on.").result()).text == "Going on."
    assert len(sizes) == 2


async def test_every_event_of_a_compaction_passes_the_gate_in_order() -> None:
    world = World(window=1_500, then=SUMMARY)
    await world.say(*prompts(10, words=150))
    state = LogState()
    for seq, body in enumerate(await world.bodies()):
        assert refusal(state, body) is None, body
        advance(state, Event(seq, 0, body))


# ---- bills ----


async def test_summaries_are_billed_and_count_against_the_budget() -> None:
    world = conversation({"text": SUMMARY, "usage": {"input_tokens": 5_000, "output_tokens": 10}})
    await world.say(*long_prompts())
    (summary,) = await world.bodies(log.CompactionSummary)
    assert summary.usage.input_tokens == 5_000
    async with world.agent.open("s") as session:
        assert session.usage.input_tokens > 5_000

    dear = {"text": SUMMARY, "usage": {"input_tokens": 50_000, "output_tokens": 10}}
    poor = conversation(dear, budget=Budget(tokens=40_000))
    ends = await poor.say(*long_prompts())
    assert ends[-1].reason == "budget"
    assert ends[-1].usage.input_tokens >= 50_000


async def test_calls_for_a_summary_that_a_kill_cut_off_are_billed() -> None:
    failed = {"error": {"message": "busy"}, "status": 503}
    world = conversation(failed, {"text": "", "usage": {"input_tokens": 5_000, "output_tokens": 1}}, SUMMARY)
    await world.say(*long_prompts())
    (summary,) = await world.bodies(log.CompactionSummary)
    before = world.store.read_log("s").splitlines(keepends=True)
    bodies = await world.bodies()
    calls = [n for n, body in enumerate(bodies) if isinstance(body, log.CompactionCall)]
    assert [bodies[n].spent for n in calls[:2]] == [None, None], "a refusal costs nothing"
    assert bodies[calls[2]].spent.input_tokens == 5_000
    for call in calls:
        store = MemoryStore()
        async with Agent(ScriptedModel(["x"]), store=store, environ={}).open("s"):
            pass
        store.write_log("s", b"".join(before[: call + 1]))
        async with Agent(ScriptedModel(["x"]), store=store, environ={}).open("s") as session:
            spent = session.usage
        answered = (body.usage for body in bodies[:call] if isinstance(body, log.AssistantMessage))
        asked = Usage(input_tokens=bodies[call].input_estimate, estimated=True)
        assert asked.input_tokens > 100
        assert spent == sum(answered, Usage()) + (bodies[call].spent or Usage()) + asked
    assert summary.usage.input_tokens > 5_000


async def test_who_watches_hears_of_retries_for_a_summary() -> None:
    world = conversation(BUSY, SUMMARY)
    seen = []
    async with world.agent.open("s") as session:
        for prompt in long_prompts():
            seen += [event async for event in session.send(prompt)]
    begun, retry, done = [
        event for event in seen if isinstance(event, told.Compacting | told.Retrying | told.Compacted)
    ]
    assert (begun.trigger, begun.tokens_before) == (done.trigger, done.tokens_before)
    assert (retry.of, retry.retry, retry.code) == ("summary", 1, "SERVER")
    assert isinstance(done, told.Compacted)


async def test_by_hand_who_asks_hears_of_retries() -> None:
    world = World("One.", "Two.", "Three.", BUSY, SUMMARY)
    seen: list[Any] = []
    async with world.agent.open("s") as session:
        for prompt in prompts(3, words=300):
            await session.send(prompt).result()
        done = await session.compact(watch=seen.append)
    assert done is not None
    begun, retry = seen
    assert begun == told.Compacting("manual", done.tokens_before)
    assert (retry.of, retry.retry) == ("summary", 1)


async def test_a_used_up_budget_asks_no_model_again_for_a_summary() -> None:
    empty = {"text": "", "usage": {"input_tokens": 50_000, "output_tokens": 1}}
    world = conversation(empty, budget=Budget(tokens=40_000))
    ends = await world.say(*long_prompts())
    assert world.methods == ["digest"]
    assert (ends[-1].reason, len(world.model.requests)) == ("budget", 5)


# ---- without end ----


async def test_a_conversation_of_any_length_goes_on_in_a_small_window() -> None:
    world = World(window=1_000, then="Did that in src/app.py, as asked.")
    said = [f"Prompt {n}: {WORDS * 12}" for n in range(150)]
    ends = await world.say(*said)
    assert {end.reason for end in ends} == {"completed"}
    assert sum(map(len, said)) // 4 > 25 * 1_000
    assert max(len(str(request["body"]["messages"])) for request in world.model.requests) < 1_000 * 4 * 2


@pytest.mark.parametrize("profile", ["generic", "mistral", "anthropic", "openai-responses", "gemini"])
async def test_a_turn_of_many_tool_calls_goes_on_in_a_small_window_in_every_protocol(profile: str) -> None:
    def step(number: int) -> dict[str, Any]:
        two = [{"name": "fetch_page", "arguments": {"number": number + n}} for n in range(2)]
        return {"text": f"Step {number}.", "tool_calls": two[: 1 + number % 2]}

    answers: list[Any] = []
    for number in range(20):
        answers.append(step(number))
    world = World(*answers, window=9_000, then="Goal: read all pages. Done.", profile=profile)
    (end,) = await world.say("Read all the pages, and remember the 7 of clubs.")
    assert end.reason == "completed", end
    assert world.compacted
    assert not [
        r for r in world.model.requests if r.get("refused", {}).get("rule") not in (None, "context_window")
    ]
    assert "remember the 7 of clubs" in str(world.model.requests[-1]["body"])


SCRIPTS = {
    "Chinese": "请把这个函数改成异步的，并且保留原来的错误处理逻辑。",
    "Russian": "Сделай эту функцию асинхронной и сохрани обработку ошибок. ",
    "emoji": "🙂🚀✅🔥 ",
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
}


@pytest.mark.parametrize("words", SCRIPTS.values(), ids=SCRIPTS.keys())
async def test_no_script_overflows_a_window_that_is_known(words: str) -> None:
    world = World(window=2_000, known=2_000, then=SUMMARY)
    ends = await world.say(*[f"{n} {words * (1_200 // len(words))}" for n in range(12)])
    assert {end.reason for end in ends} == {"completed"}
    assert not [request for request in world.model.requests if "refused" in request]


# ---- windows ----

NAMED = {
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.": 8192,
    "prompt is too long: 213462 tokens > 200000 maximum": 200_000,
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens": 131_072,
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.": 131_040,
    "The input (140000 tokens) is longer than the model's context length (131072 tokens).": 131_072,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000, decrease input": 200_000,
    "prompt token count of 140000 exceeds the limit of 128000": 128_000,
    "exceed_context_size_error (n_prompt_tokens=180283 > n_ctx=180224)": 180_224,
    "invalid params, context window exceeds limit": None,
    "prompt too long; exceeded max context length by 1234 tokens": None,
    "": None,
}


@pytest.mark.parametrize(("message", "window"), NAMED.items())
def test_the_window_that_a_refusal_names(message: str, window: int | None) -> None:
    assert named_window(message) == window


def test_room_for_the_answer_is_left_below_the_threshold() -> None:
    assert threshold_of(100_000, None) == 80_000
    assert threshold_of(100_000, 40_000) == 60_000
    assert threshold_of(100_000, 90_000) == 50_000

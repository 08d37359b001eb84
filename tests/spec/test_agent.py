"""The runtime as a program embeds it: ``Agent``, ``Session`` and ``Turn`` over a scripted model."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from lockstitch import (
    Agent,
    ApprovalRequiredError,
    Budget,
    BudgetError,
    CallerError,
    Decision,
    Hooks,
    Price,
    ProviderError,
    StorageError,
    Stuck,
    Tool,
    TurnFailedError,
    tool,
)
from lockstitch.agent import events as told
from lockstitch.schema import events as log
from lockstitch.schema.blocks import Text, ToolResult
from lockstitch.schema.events import Body, Event
from lockstitch.schema.messages import Message, Request
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.tools.approval import Policy


def calls(*named: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    """An answer with one call for each name, without arguments."""
    answer = {"tool_calls": [{"name": name, "arguments": {}} for name in named], **more}
    return answer if text is None else {**answer, "text": text}


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@tool(needs="approval")
def launch() -> str:
    """Launch it."""
    return "launched"


class World:
    """An agent over a store in memory, and what its log holds."""

    def __init__(self, *answers: Any, **options: Any) -> None:
        self.model = ScriptedModel(
            {"answers": list(answers), "then": {"text": "Nothing more."}},
            strict="openai-chat",
            wording=options.pop("wording", "provider"),
        )
        self.store = options.pop("store", None) or MemoryStore()
        options.setdefault("tools", [clock, launch])
        self.agent = Agent(self.model, store=self.store, environ={}, **options)

    async def run(self, prompt: str | None = "Go.", **options: Any) -> Any:
        return await self.agent.run(prompt, session="s", **options)

    async def bodies(self, *kinds: type[Any]) -> list[Any]:
        events: list[Event] = []
        await self.store.open("s", read_only=True, fold=events.append)
        return [event.body for event in events if isinstance(event.body, kinds or Body)]

    async def outcomes(self) -> list[str]:
        return [body.outcome for body in await self.bodies(log.ToolFinished)]

    async def reasons(self) -> list[str]:
        return [body.reason for body in await self.bodies(log.TurnEnd)]

    def sent(self, number: int) -> list[str]:
        """Texts of the messages of one request."""
        return [str(message["content"]) for message in self.model.requests[number]["body"]["messages"]]


# ---- turns ----


async def test_one_turn_with_a_tool() -> None:
    world = World(calls("clock"), "It is noon.")
    result = await world.run("What time is it?")
    assert (result.text, result.reason, result.session_id, result.turn) == (
        "It is noon.",
        "completed",
        "s",
        1,
    )
    assert result.usage.output_tokens > 0
    assert await world.outcomes() == ["done"]
    (title,) = await world.bodies(log.Title)
    assert title.title == "What time is it?"


async def test_turns_of_a_session_build_on_each_other() -> None:
    world = World("One.", "Two.")
    async with world.agent.open("s") as session:
        await session.send("first").result()
        await session.send("second").result()
        assert [message.role for message in session.messages] == ["user", "assistant"] * 2
        assert session.title == "first"
    assert world.sent(1) == ["first", "One.", "second"]


async def test_without_an_id_a_session_is_new() -> None:
    world = World("One.", "Two.")
    first, second = await world.agent.run("a"), await world.agent.run("b")
    assert first.session_id != second.session_id
    assert len(await world.store.list()) == 2


async def test_events_tell_the_turn_in_order() -> None:
    world = World(calls("clock", text="Let me see."), "Noon.")
    seen = [event async for event in world.agent.stream("Time?", session="s")]
    assert [type(event).__name__ for event in seen] == [
        "TextDelta",
        "ToolStarted",
        "ToolFinished",
        "TextDelta",
        "TurnEnded",
    ]


async def test_parallel_tools_overlap_and_serial_ones_do_not() -> None:
    running: list[int] = []
    most: dict[str, int] = {}

    async def busy(name: str) -> str:
        running.append(1)
        most[name] = max(most.get(name, 0), len(running))
        await asyncio.sleep(0.02)
        running.pop()
        return name

    @tool(parallel=True)
    async def beside() -> str:
        """Run beside others."""
        return await busy("beside")

    @tool
    async def alone() -> str:
        """Run alone."""
        return await busy("alone")

    world = World(calls("beside", "beside", "beside"), calls("alone", "alone"), tools=[beside, alone])
    await world.run()
    assert most == {"beside": 3, "alone": 1}


async def test_the_model_sees_results_in_call_order() -> None:
    @tool(parallel=True)
    async def wait(seconds: float) -> str:
        """Wait."""
        await asyncio.sleep(seconds)
        return f"waited {seconds}"

    asked = [{"name": "wait", "arguments": {"seconds": seconds}} for seconds in (0.05, 0.0)]
    world = World({"tool_calls": asked}, "Done.", tools=[wait])
    await world.run()
    assert [body.content[0].text for body in await world.bodies(log.ToolFinished)] == [
        "waited 0.0",
        "waited 0.05",
    ]
    assert world.sent(1)[-2:] == ["waited 0.05", "waited 0.0"]


async def test_a_second_turn_at_the_same_time_is_refused() -> None:
    world = World({"text": "Slow.", "delay_ms": 200})
    async with world.agent.open("s") as session:
        first = session.send("a")
        await session_is_busy(session, first)
        with pytest.raises(CallerError, match="steer"):
            await session.send("b").result()
        first.cancel()
        assert (await first.result()).reason == "cancelled"


async def session_is_busy(session: Any, turn: Any) -> None:
    """Start the turn without reading from it."""
    turn._started()
    while not session.messages:
        await asyncio.sleep(0)


async def test_an_empty_prompt_makes_no_session() -> None:
    world = World("One.")
    with pytest.raises(CallerError, match="empty"):
        await world.run("  ")
    assert await world.store.list() == []


# ---- input while a turn runs ----


async def test_steering_reaches_the_next_step_and_a_follow_up_the_next_turn() -> None:
    opened: list[Any] = []

    @tool
    async def work() -> str:
        """Work."""
        await opened[0].steer("Faster!")
        await opened[0].follow_up("And then?")
        return "worked"

    world = World(calls("work"), "Hurried.", "Then this.", tools=[work])
    async with world.agent.open("s") as session:
        opened.append(session)
        result = await session.send("Work.").result()
    assert result.text == "Then this."
    assert world.sent(1)[-1] == "Faster!"
    assert world.sent(2)[-2:] == ["Hurried.", "And then?"]
    origins = [body.origin for body in await world.bodies(log.UserMessage)]
    assert origins == ["user", "steer", "follow_up"]


async def test_input_queued_between_turns_survives_and_begins_the_next() -> None:
    world = World("One.", "Two.")
    async with world.agent.open("s") as session:
        await session.steer("Remember me.")
    async with world.agent.open("s") as session:
        await session.resume().result()
    assert world.sent(0) == ["Remember me."]


# ---- approvals ----


async def test_nobody_to_approve_ends_the_turn_with_every_call_answered() -> None:
    world = World(calls("launch", "clock"))
    with pytest.raises(ApprovalRequiredError, match="launch"):
        await world.run()
    assert await world.outcomes() == ["not_started", "not_started"]
    assert (await world.run(None)).text == "Nothing more."


ANSWERS: dict[str, tuple[Any, list[str], str]] = {
    "yes": (True, ["done"], "launched"),
    "no": (False, ["denied"], "denied"),
    "no, and why": ("the wind is too strong", ["denied"], "the wind is too strong"),
    "a decision": (Decision(allowed=True), ["done"], "launched"),
}


@pytest.mark.parametrize(("answer", "outcomes", "said"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_person_is_asked(answer: Any, outcomes: list[str], said: str) -> None:
    asked: list[str] = []

    async def approve(needed: told.ApprovalNeeded) -> Any:
        asked.append(needed.name)
        return answer

    world = World(calls("launch"), approve=approve)
    await world.run()
    assert (asked, await world.outcomes()) == (["launch"], outcomes)
    assert said in world.sent(1)[-1]


async def test_an_approval_for_the_session_is_asked_for_once_and_outlives_the_process() -> None:
    asked: list[str] = []

    def approve(needed: told.ApprovalNeeded) -> Decision:
        asked.append(needed.rule)
        return Decision(allowed=True, remember="session")

    world = World(calls("launch"), calls("launch"), "Good.", calls("launch"), approve=approve)
    await world.run()
    await world.run()
    assert asked == ["launch"]
    assert await world.outcomes() == ["done"] * 3


async def test_a_rule_denies_even_what_was_approved_beforehand() -> None:
    world = World(calls("launch"), approve=True, policy=Policy(deny=("launch",)))
    await world.run()
    assert await world.outcomes() == ["denied"]


# ---- hooks ----


async def test_hooks_see_and_change_what_happens() -> None:
    seen: list[str] = []

    def before_tool(call: Any) -> str | None:
        seen.append(call.name)
        return "not now" if call.name == "launch" else None

    async def turn_stopping(text: str) -> str | None:
        return None if text == "Checked." else "Check it."

    def before_request(request: Request) -> Request:
        return msgspec.structs.replace(request, system="Be brief.")

    world = World(
        calls("clock", "launch"),
        "Done.",
        "Checked.",
        approve=True,
        hooks=Hooks(
            before_tool=before_tool,
            turn_stopping=turn_stopping,
            before_request=before_request,
            after_tool=lambda call, ran: None,
        ),
    )
    result = await world.run()
    assert (result.text, seen) == ("Checked.", ["clock", "launch"])
    assert await world.outcomes() == ["done", "denied"]
    assert world.sent(0)[0] == "Be brief."
    assert world.sent(2)[-1] == "Check it."


def explode(*_: Any) -> Any:
    raise ZeroDivisionError("the hook is broken")


BROKEN = {
    "before a request": (Hooks(before_request=explode), []),
    "before a tool": (Hooks(before_tool=explode), ["not_started", "not_started"]),
    "after a tool": (Hooks(after_tool=explode), ["done", "not_started"]),
    "at the end": (Hooks(turn_stopping=explode), ["done", "done"]),
}


@pytest.mark.parametrize(("hooks", "outcomes"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_hook_leaves_a_closed_turn(hooks: Hooks, outcomes: list[str]) -> None:
    world = World(calls("clock", "clock"), "Done.", hooks=hooks)
    with pytest.raises(ZeroDivisionError):
        await world.run()
    assert sorted(await world.outcomes()) == outcomes
    assert await world.reasons() == ["failed"]


async def test_a_broken_approver_leaves_a_closed_turn() -> None:
    world = World(calls("launch"), approve=explode)
    with pytest.raises(ZeroDivisionError):
        await world.run()
    assert (await world.outcomes(), await world.reasons()) == (["not_started"], ["failed"])


async def test_a_hook_may_give_up_what_would_be_retried() -> None:
    failed = {"error": {"message": "overloaded"}, "status": 503}
    world = World(failed, hooks=Hooks(on_request_error=lambda failure: "give_up"))
    with pytest.raises(ProviderError) as caught:
        await world.run()
    assert caught.value.failure is not None
    assert len(world.model.requests) == 1


# ---- cancelling ----


async def test_leaving_the_loop_cancels_the_turn_and_the_session_goes_on() -> None:
    world = World({"text": "A long story.", "hang": 30, "quirks": ["no_done"], "chunk_chars": 3}, "Good.")
    async with world.agent.open("s") as session:
        async for event in session.send("Tell."):
            if isinstance(event, told.TextDelta):
                break
        while session._running is not None:
            await asyncio.sleep(0.01)
        assert (await session.send("Enough.").result()).text == "Good."
    assert await world.reasons() == ["cancelled", "completed"]


async def test_cancelling_the_task_closes_the_turn_before_it_passes_on() -> None:
    began = asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        began.set()
        await asyncio.sleep(60)
        return "never"

    world = World(calls("hang", "clock"), tools=[hang, clock])
    task = asyncio.create_task(world.run())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(await world.outcomes()) == ["cancelled", "not_started"]
    assert await world.reasons() == ["cancelled"]


async def test_a_tool_that_swallows_its_cancellation_is_left_behind_within_two_seconds() -> None:
    began, release = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Refuse to stop."""
        began.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    world = World(calls("stubborn"), tools=[stubborn])
    async with world.agent.open("s") as session:
        turn = session.send("Go.")
        turn._started()
        await began.wait()
        turn.cancel()
        result = await asyncio.wait_for(turn.result(), 10)
        release.set()
    assert result.reason == "cancelled"
    assert await world.outcomes() == ["cancelled"]


# ---- limits ----


async def test_steps_are_limited() -> None:
    world = World(*[calls("clock")] * 3, budget=Budget(steps=2), stuck=Stuck(stop_at=None))
    with pytest.raises(BudgetError, match="2 steps"):
        await world.run()
    assert len(world.model.requests) == 2


async def test_a_token_budget_is_the_sessions_and_survives_reopening() -> None:
    billed = {"input_tokens": 60, "output_tokens": 40}
    world = World({"text": "One.", "usage": billed}, "Two.", budget=Budget(tokens=100))
    await world.run()
    with pytest.raises(BudgetError, match="100 tokens of 100"):
        await world.run()
    assert len(world.model.requests) == 1


async def test_money_counts_all_four_classes() -> None:
    usage = {"input_tokens": 10, "output_tokens": 10, "cache_read_tokens": 10}
    price = Price(input=1.0, output=2.0, cache_read=0.5)
    world = World({"text": "One.", "usage": usage}, price=price, budget=Budget(cost_usd=0.00003))
    result = await world.run()
    assert result.cost == pytest.approx(10 * (1.0 + 2.0 + 0.5) / 1e6)
    with pytest.raises(BudgetError, match="cost"):
        await world.run()


async def test_the_same_call_again_and_again_ends_the_turn() -> None:
    world = World(*[calls("clock")] * 9, stuck=Stuck(remind_at=(2,), stop_at=4))
    with pytest.raises(TurnFailedError, match="stuck"):
        await world.run()
    assert len(world.model.requests) == 4
    assert "same call 2 times" in world.sent(2)[-1]


# ---- structured output ----


@dataclass
class Weather:
    town: str
    degrees: float


async def test_an_answer_becomes_a_value() -> None:
    world = World('{"town": "Bern", "degrees": 4.5}')
    result = await world.run("Weather?", output=Weather)
    assert result.output == Weather("Bern", 4.5)
    assert '"degrees"' in world.sent(0)[-1]


async def test_an_answer_that_does_not_fit_is_sent_back_with_the_reason() -> None:
    world = World("It is nice.", '{"town": "Bern"}', '```json\n{"town": "Bern", "degrees": 4}\n```')
    result = await world.run("Weather?", output=Weather)
    assert result.output == Weather("Bern", 4)
    assert "degrees" in world.sent(2)[-1]


async def test_answers_that_never_fit_end_the_turn() -> None:
    world = World(*["It is nice."] * 9)
    with pytest.raises(TurnFailedError, match="did not fit"):
        await world.run("Weather?", output=Weather)
    assert len(world.model.requests) == 4


# ---- requests that are refused ----


async def test_a_refusal_in_words_nobody_knows_climbs_and_what_went_through_is_remembered() -> None:
    no = {"error": {"message": "The quality of this is insufficient."}, "status": 400}
    called = calls("clock")
    world = World(called, no, "Good.", "Better.")
    result = await world.run()
    assert result.text == "Good."
    rungs = [body.rung for body in await world.bodies(log.AttemptStart)]
    assert rungs[:2] == ["normal", "normal"]
    assert rungs[2] != "normal"
    learned = [body for body in await world.bodies(log.Recovery) if body.succeeded]
    assert [body.rung for body in learned] == [rungs[2]]
    await world.run()
    assert [body.rung for body in await world.bodies(log.AttemptStart)][3] == rungs[2]


async def test_a_request_that_breaks_the_rules_is_never_sent() -> None:
    def spoil(request: Request) -> Request:
        orphan = Message("tool", (ToolResult(call_id="nobody", content=(Text("?"),)),))
        return msgspec.structs.replace(request, messages=(*request.messages, orphan))

    world = World("Never.", hooks=Hooks(before_request=spoil))
    with pytest.raises(ProviderError) as caught:
        await world.run()
    assert caught.value.failure is not None
    assert caught.value.failure.code == "INVALID_STRUCTURE"
    assert world.model.requests == []


# ---- when the disk refuses ----


class FullDisk(MemoryStore):
    """A store whose logs refuse to be flushed while ``full`` is set."""

    full = False

    async def open(self, *arguments: Any, **options: Any) -> Any:
        opened = await super().open(*arguments, **options)
        flush = opened.flush

        async def refusing() -> None:
            if self.full:
                raise StorageError("no space left on the device")
            await flush()

        opened.flush = refusing  # type: ignore[method-assign]
        return opened


async def test_a_full_disk_stops_the_turn_and_the_session_goes_on_when_there_is_room() -> None:
    store = FullDisk()
    world = World("One.", "Two.", store=store)
    async with world.agent.open("s") as session:
        store.full = True
        with pytest.raises(StorageError):
            await session.send("a").result()
        assert world.model.requests == [], "nothing is sent whose intent is not durable"
        store.full = False
        assert (await session.send("b").result()).text == "One."
    assert await world.reasons() == ["interrupted", "completed"]


# ---- without an event loop ----


def test_the_sync_twins_run_on_one_thread() -> None:
    threads: list[int] = []

    @tool
    async def where() -> str:
        """Say where."""
        threads.append(threading.get_ident())
        return "here"

    world = World(calls("where"), "One.", calls("where"), "Two.", tools=[where])
    assert world.agent.run_sync("a", session="s").text == "One."
    seen = list(world.agent.stream_sync("b", session="s"))
    assert isinstance(seen[-1], told.TurnEnded)
    assert len(threads) == 2
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


async def test_a_sync_twin_inside_a_loop_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="await"):
        World("One.").agent.run_sync("a")


def test_leaving_a_sync_stream_cancels_the_turn() -> None:
    world = World({"text": "A long story.", "hang": 30, "quirks": ["no_done"], "chunk_chars": 3})
    for _ in world.agent.stream_sync("a", session="s"):
        break
    assert asyncio.run(world.reasons()) == ["cancelled"]


def test_a_tool_may_be_a_plain_function() -> None:
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    world = World({"tool_calls": [{"name": "double", "arguments": {"number": 4}}]}, tools=[double])
    world.agent.run_sync("a", session="s")
    assert world.sent(1)[-1] == "8"
    assert isinstance(clock, Tool)

"""Who may say no to a turn: approvals, hooks, cancellation and budgets. None leaves a call unanswered."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_world import World, calls, clock

from lockstitch import (
    ApprovalRequiredError,
    Budget,
    BudgetError,
    CallerError,
    Decision,
    Hooks,
    Price,
    ProviderError,
    Stuck,
    TurnFailedError,
    tool,
)
from lockstitch.agent import events as told
from lockstitch.schema.messages import Request
from lockstitch.tools.approval import Policy

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


async def test_a_limit_on_money_needs_a_price() -> None:
    world = World("One.", budget=Budget(cost_usd=1))
    with pytest.raises(CallerError, match=r"the price of generic:scripted is not known: give price=Price"):
        await world.run()
    assert world.model.requests == []


async def test_prices_of_known_models_are_known_where_their_data_is_installed() -> None:
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    world = World("One.", profile="openai", budget=Budget(cost_usd=1))
    world.model.endpoint = dataclasses.replace(world.model.endpoint, model="gpt-4o")
    assert (await world.run()).cost > 0
    async with world.agent.open("s") as session:
        assert session.context_window == 128_000
    free = World("One.", profile="openai", price=Price(input=0, output=0))
    free.model.endpoint = world.model.endpoint
    assert (await free.run()).cost == 0, "a price that is given goes before"


async def test_the_same_call_again_and_again_ends_the_turn() -> None:
    world = World(*[calls("clock")] * 9, stuck=Stuck(remind_at=(2,), stop_at=4))
    with pytest.raises(TurnFailedError, match="stuck"):
        await world.run()
    assert len(world.model.requests) == 4
    assert "same call 2 times" in world.sent(2)[-1]


async def test_an_approval_for_good_is_kept_for_the_workspace(tmp_path: Path) -> None:
    asked: list[str] = []

    def approve(needed: told.ApprovalNeeded) -> Decision:
        asked.append(needed.rule)
        return Decision(allowed=True, remember="always")

    file = tmp_path / "approvals.json"
    for _ in range(2):
        world = World(calls("launch"), approve=approve, approvals_file=file, cwd=tmp_path)
        await world.run()
    assert asked == ["launch"]
    other = World(calls("launch"), approve=approve, approvals_file=file, cwd=tmp_path.parent)
    await other.run()
    assert asked == ["launch", "launch"]

"""Limits and a watchdog: what a turn may spend, and a hook that does not accept "done" without a test run."""

import asyncio

from lockstitch import Agent, Budget, BudgetError, Hooks, Price, ToolCall, tool
from lockstitch.testing.scripted_model import ScriptedModel

tested: list[str] = []


@tool
def run_tests() -> str:
    """Run the tests."""
    tested.append("run")
    return "12 passed"


def insist(text: str) -> str | None:
    """Asked when the model thinks it is done; what it returns is said to the model."""
    return None if tested else "Run the tests before you say that you are done."


def watch(call: ToolCall) -> str | None:
    """Asked before each tool; a text keeps it from running and tells the model why."""
    print(f"about to run {call.name}")
    return None


model = ScriptedModel(
    [
        "Done!",
        {"tool_calls": [{"name": "run_tests", "arguments": {}}]},
        {"text": "Done, and 12 tests pass.", "usage": {"input_tokens": 40_000, "output_tokens": 2_000}},
        "Never reached.",
    ]
)


async def main() -> None:
    agent = Agent(
        model,
        tools=[run_tests],
        hooks=Hooks(turn_stopping=insist, before_tool=watch),
        budget=Budget(steps=20, cost_usd=0.05),
        price=Price(input=1.0, output=5.0),
        store="memory",
    )
    async with agent.open() as session:
        result = await session.send("Mend it.").result()
        print(result.text, f"${session.cost:.3f}")
        try:
            (await session.send("And now polish it.").result()).check()
        except BudgetError as error:
            print(error)


asyncio.run(main())

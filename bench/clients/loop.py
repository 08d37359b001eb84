"""Whole agents that run one tool loop each, one function a library; see worker.py for how they are driven.

An order is `{"base_url": ...}`: the server asks for a number of calls of `add`, then ends. Every client
returns how often its tool ran.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import worker

PROMPT = "Add until you are told to stop."
KEY = "bench"
NO_LIMIT = 1_000_000


class Calls:
    """The tool, and how often it was called."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.count += 1
        return a + b


def lockstitch() -> worker.Contender:
    """With its log on disk, as it always is."""
    import tempfile

    from lockstitch import Agent, Budget

    folder = tempfile.TemporaryDirectory(prefix="bench-loop-")

    async def run(order: Mapping[str, Any]) -> int:
        calls = Calls()
        agent = Agent(
            "generic:m",
            tools=[calls.add],
            base_url=order["base_url"],
            store=Path(folder.name),
            environ={},
            budget=Budget(steps=NO_LIMIT),
        )
        for _ in worker.repeats(order):
            async for _ in agent.stream(PROMPT):
                pass
        return calls.count

    return run


def pydantic_ai() -> worker.Contender:
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def run(order: Mapping[str, Any]) -> int:
        calls = Calls()
        provider = OpenAIProvider(base_url=order["base_url"], api_key=KEY)
        agent = Agent(OpenAIChatModel("m", provider=provider))
        agent.tool_plain(calls.add)
        async with agent.run_stream(PROMPT, usage_limits=UsageLimits(request_limit=NO_LIMIT)) as result:
            async for _ in result.stream_text():
                pass
        return calls.count

    return run


def openai_agents() -> worker.Contender:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI

    async def run(order: Mapping[str, Any]) -> int:
        calls = Calls()
        model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=order["base_url"], api_key=KEY))
        agent = Agent(name="bench", model=model, tools=[function_tool(calls.add)])
        result = Runner.run_streamed(agent, PROMPT, max_turns=NO_LIMIT)
        async for _ in result.stream_events():
            pass
        return calls.count

    return run


if __name__ == "__main__":
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    worker.main({"lockstitch": lockstitch, "pydantic-ai": pydantic_ai, "openai-agents": openai_agents})

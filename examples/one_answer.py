"""One answer with a tool, from plain code. With a real model: ``Agent("deepseek:deepseek-chat", ...)``."""

from lockstitch import Agent, tool
from lockstitch.testing.scripted_model import ScriptedModel


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


model = ScriptedModel(
    [
        {"text": "Let me add that up.", "tool_calls": [{"name": "add", "arguments": {"a": 17, "b": 25}}]},
        "17 + 25 is 42.",
    ]
)

agent = Agent(model, tools=[add], instructions="Be brief.", store="memory")
result = agent.run_sync("What is 17 + 25?")
print(result.text)
print(result.usage.input_tokens + result.usage.output_tokens, "tokens")

"""An answer as a value of a type. One that does not fit goes back to the model with the reason."""

from dataclasses import dataclass

from lockstitch import Agent
from lockstitch.testing.scripted_model import ScriptedModel


@dataclass
class Invoice:
    number: str
    total_cents: int
    lines: list[str]


model = ScriptedModel(
    [
        "The invoice is number 7 and costs 12.50.",
        '{"number": "7", "total_cents": "twelve fifty", "lines": ["bread"]}',
        '{"number": "7", "total_cents": 1250, "lines": ["bread", "cheese"]}',
    ]
)

agent = Agent(model, store="memory")
result = agent.run_sync("Read this invoice: ...", output=Invoice)
print(result.output)

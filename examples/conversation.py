"""A conversation that streams, takes a second instruction while it works, and is kept on disk."""

import asyncio
import tempfile
from pathlib import Path

from lockstitch import (
    Agent,
    AttemptDiscarded,
    Session,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    tool,
)
from lockstitch.testing.scripted_model import ScriptedModel

model = ScriptedModel(
    [
        {
            "text": "I look at the weather.",
            "tool_calls": [{"name": "weather", "arguments": {"town": "Bern"}}],
        },
        "Bern: 4 degrees and rain. So no picnic, and no boat either.",
        "You are welcome.",
    ]
)


@tool
async def weather(town: str) -> str:
    """Tell the weather in a town."""
    await asyncio.sleep(0.2)
    return f"{town}: 4 degrees, rain"


async def show(session: Session, prompt: str) -> None:
    """Print a turn as it happens."""
    async for event in session.send(prompt):
        match event:
            case TextDelta(text=text):
                print(text, end="", flush=True)
            case AttemptDiscarded():
                print("\n(that attempt failed; forget its text)")
            case ToolStarted():
                await session.steer("And a boat trip?")  # said to the model at its next step
            case ToolFinished(name=name, text=text):
                print(f"\n[{name}: {text}]")
            case TurnEnded(reason=reason):
                print(f"\n({reason})")
            case _:
                pass


async def main(folder: Path) -> None:
    agent = Agent(model, tools=[weather], store=folder)
    async with agent.open("trip") as session:
        await show(session, "Is it a day for a picnic in Bern?")
    # Another process, another day: the same id goes on.
    async with agent.open("trip") as session:
        await show(session, "Thanks!")
        print(session.title, session.usage.output_tokens)


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder)))

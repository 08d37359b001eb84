"""An agent over a scripted model and a store in memory, for tests of the runtime."""

from typing import Any

from lockstitch import Agent, tool
from lockstitch.schema import events as log
from lockstitch.schema.events import Body, Event
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel


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
            strict=options.pop("strict", "openai-chat"),
            profile=options.pop("profile", "generic"),
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

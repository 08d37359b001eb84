"""Who may run what: rules first, then a person, who may be asked only once."""

import asyncio

from lockstitch import Agent, ApprovalNeeded, Decision, Policy, tool
from lockstitch.testing.scripted_model import ScriptedModel


@tool(needs="approval")
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool(needs="approval")
def delete_mailbox() -> str:
    """Delete everything."""
    return "gone"


def mail(to: str) -> dict[str, object]:
    return {"tool_calls": [{"name": "send_mail", "arguments": {"to": to, "text": "Hello."}}]}


model = ScriptedModel(
    [
        mail("ada"),
        mail("grace"),
        {"tool_calls": [{"name": "delete_mailbox", "arguments": {}}]},
        "Two mails are out.",
    ]
)


async def ask(needed: ApprovalNeeded) -> Decision:
    """Here a person would be asked. This one allows it for the rest of the session."""
    print(f"may {needed.name} run with {needed.arguments}? yes, and do not ask again")
    return Decision(allowed=True, remember="session")


async def main() -> None:
    agent = Agent(
        model,
        tools=[send_mail, delete_mailbox],
        approve=ask,
        policy=Policy(deny=("delete_mailbox",)),
        store="memory",
    )
    result = await agent.run("Greet Ada and Grace, then clean up.")
    print(result.text)


asyncio.run(main())

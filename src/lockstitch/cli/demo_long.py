"""``lockstitch demo --long``: a conversation far longer than its model's window, which goes on to its end.

A real gateway on loopback refuses every prompt of more than 4,000 tokens. Nobody tells the agent so: the
first refusal teaches it. The session lies in memory, because a disk that syncs two thousand turns takes
minutes; the checks are made on its log and on what the gateway received.
"""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from .. import Agent
from ..agent.events import Compacted, TurnEnded
from ..session.memory_store import MemoryStore
from ..testing.gateway import running_gateway
from ..testing.window import prompt_tokens
from .demo_checks import Check
from .demo_print import Narrator

WINDOW: Final = 4_000
TOKENS: Final = 1_000_000
"""Of everything the user says."""
PROMPT_TOKENS: Final = 1_200
SESSION: Final = "long"
TOUCHED: Final = "src/tariff.py"
"""A file that the first turn touches: it must be known in the last request."""
TOLD_EVERY: Final = 100_000

_TEXT: Final = "the till adds every item and takes the discount off before the tax is worked out"


@dataclass(slots=True)
class Talk:
    """What there is to check."""

    reasons: Counter[str] = field(default_factory=Counter)
    compactions: list[Compacted] = field(default_factory=list)
    turns: int = 0
    tokens_held: int = 0
    first_id: str = ""


def play(tell: Narrator, tokens: int = TOKENS) -> list[Check]:
    """The conversation, told as it goes; what was checked."""
    tell.title(f"A conversation of {tokens:,} tokens with a model that takes {WINDOW:,}")
    first: dict[str, Any] = {"tool_calls": [{"name": "note", "arguments": {"path": TOUCHED}}]}
    script = {
        "answers": [first],
        "then": {"text": "I did that, as you asked. Goal: the till. Done: the discount."},
    }
    with running_gateway(script, strict="openai-chat", window=WINDOW) as gateway, _no_proxies():
        tell.line("gateway", f"{gateway.base_url}, refuses prompts of more than {WINDOW:,} tokens")
        return asyncio.run(_converse(tell, gateway, tokens))


@contextlib.contextmanager
def _no_proxies() -> Iterator[None]:
    """Loopback is reached directly, whatever this process's environment says."""
    before = os.environ.get("no_proxy")
    os.environ["no_proxy"] = "127.0.0.1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["no_proxy"]
        else:
            os.environ["no_proxy"] = before


async def _converse(tell: Narrator, gateway: Any, tokens: int) -> list[Check]:
    def note(path: str) -> str:
        """Note a file."""
        return f"noted {path}"

    agent = Agent("demo", base_url=gateway.base_url, store=MemoryStore(), tools=[note], environ={})
    talk, said = Talk(), 0
    async with agent.open(SESSION) as session:
        while said < tokens:
            talk.turns += 1
            prompt = _prompt(talk.turns)
            said += len(prompt) // 4
            async for event in session.send(prompt):
                if isinstance(event, Compacted):
                    talk.compactions.append(event)
                elif isinstance(event, TurnEnded):
                    talk.reasons[event.reason] += 1
            if said % TOLD_EVERY < len(prompt) // 4:
                compactions = len(talk.compactions)
                tell.line("lockstitch", f"{said:,} tokens, {talk.turns:,} turns, {compactions} compactions")
        talk.tokens_held = session.context_tokens
        page = await session.transcript.page(after=-1, limit=1, roles=["user"])
        talk.first_id = page.entries[0].id
    return _checks(gateway.requests, talk)


def _checks(requests: list[dict[str, Any]], talk: Talk) -> list[Check]:
    refused = [request for request in requests if "refused" in request]
    sent = [prompt_tokens("openai-chat", request["body"]) for request in requests if "refused" not in request]
    last = str(requests[-1]["body"])
    triggers = Counter(event.trigger for event in talk.compactions)
    return [
        Check(
            f"all {talk.turns:,} turns were completed",
            set(talk.reasons) == {"completed"},
            str(dict(talk.reasons)),
        ),
        Check(
            "one refusal taught the window; no request was too long after it",
            len(refused) == 1 and triggers["overflow"] == 1,
            f"{len(refused)} refusals, {dict(triggers)}",
        ),
        Check(f"every request had at most {WINDOW:,} tokens", max(sent) <= WINDOW, f"up to {max(sent):,}"),
        Check(
            "the file that the first turn touched is named in the last request", TOUCHED in last, last[:200]
        ),
        Check(
            "the last prompt is in the last request word for word", _prompt(talk.turns) in last, last[-200:]
        ),
        Check("the transcript still begins with the first prompt", talk.first_id == "t1u", talk.first_id),
        Check(
            "what the model holds at the end fits its window",
            talk.tokens_held <= WINDOW,
            f"{talk.tokens_held:,} tokens",
        ),
    ]


def _prompt(number: int) -> str:
    known = _TEXT.split()
    words = " ".join(known[(number * 7 + i * 3) % len(known)] for i in range(PROMPT_TOKENS * 4 // 5))
    return f"Request {number}: {words}"

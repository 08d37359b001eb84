"""What compaction costs, and that a small window holds a conversation without end.

    python bench/compaction.py [--tokens 1000000] [--window 4000]

First the pure part on sessions of growing length: work for each message must stay the same. Then a
conversation with a model behind a window, over the real loop with a scripted model: every turn completes, and
no request is larger than the window allows. Figures that were kept: docs/decisions/0091-compaction.md.
"""

import argparse
import asyncio
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from lockstitch import Agent
from lockstitch.agent.events import Compacted, TurnEnded
from lockstitch.history.compact import limits, plan
from lockstitch.history.context import Context
from lockstitch.history.fact_search import gather
from lockstitch.history.plain_text import digest, pieces
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.events import (
    AssistantMessage,
    Body,
    Event,
    ToolFinished,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.testing.window import prompt_tokens

TEXT = "the quick brown fox jumps over the lazy dog and goes on its way through the wood"
WORDS = TEXT.split()
PROMPT_TOKENS = 500


def turn(number: int, seq: int) -> Iterator[Body]:
    yield TurnStart(number)
    yield UserMessage(f"u{number}", (Text(f"prompt {number}"),))
    call = ToolCall(id="c", name="read", arguments=f'{{"path":"src/file{number % 97}.py"}}')
    yield AssistantMessage(f"a{number}", (Text("looking"), call), "tool_calls", "generic", "m")
    yield ToolFinished(seq + 2, 0, "c", (Text("some content " * 20),), "done")
    yield AssistantMessage(f"b{number}", (Text("done " * 20),), "stop", "generic", "m")
    yield TurnEnd(number, "completed")


def session(messages: int) -> Context:
    context, seq = Context(), 0
    for number in range(1, messages // 4 + 1):
        for body in turn(number, seq):
            context.apply(Event(seq, seq, body))
            seq += 1
    return context


def compact(context: Context) -> None:
    wanted = limits(200_000, 0)
    planned = plan(context.messages, context.is_prompt, wanted)
    assert planned is not None
    gather(planned.head)
    digest(planned.head, wanted.summary)
    pieces(planned.head, 60_000, 12)


def calls_of(work: Callable[[], None]) -> int:
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        counted[event] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted["call"] + counted["c_call"]


def measure_plans() -> None:
    print(f"{'messages':>10} {'seconds':>9} {'µs each':>9} {'calls each':>11}")
    for messages in (10_000, 30_000, 100_000):
        context = session(messages)
        began = time.perf_counter()
        compact(context)
        seconds = time.perf_counter() - began
        calls = calls_of(lambda context=context: compact(context))  # type: ignore[misc]
        print(f"{messages:10} {seconds:9.3f} {seconds / messages * 1e6:9.1f} {calls / messages:11.1f}")


async def converse(tokens: int, window: int) -> bool:
    model = ScriptedModel(
        {"then": {"text": "I did that in src/app.py, as you asked."}}, window=window, strict="openai-chat"
    )
    agent = Agent(model, store=MemoryStore(), environ={}, instructions="Be brief.")
    compacted: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    largest = refused = requests = said = number = 0
    began = time.perf_counter()
    async with agent.open("long") as opened:
        while said < tokens:
            number += 1
            words = " ".join(WORDS[(number * 7 + i * 3) % len(WORDS)] for i in range(PROMPT_TOKENS * 4 // 5))
            said += len(words) // 4
            async for event in opened.send(f"Prompt {number}: {words}"):
                if isinstance(event, Compacted):
                    compacted[f"{event.trigger}, {event.method}"] += 1
                elif isinstance(event, TurnEnded):
                    reasons[event.reason] += 1
            for request in model.requests[requests:]:
                refused += "refused" in request
                largest = max(largest, prompt_tokens("openai-chat", request["body"]))
            requests = len(model.requests)
    seconds = time.perf_counter() - began
    print(f"\n{said:,} tokens in {number:,} turns through a window of {window:,}: {seconds:.1f} s")
    print(f"  turns: {dict(reasons)}")
    print(f"  requests: {requests:,}, of which refused {refused}; the largest had {largest:,} tokens")
    print(f"  compactions: {dict(compacted)}")
    print(f"  largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
    return set(reasons) == {"completed"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--window", type=int, default=4_000)
    given = parser.parse_args()
    measure_plans()
    if given.tokens == 0:
        return 0
    return 0 if asyncio.run(converse(given.tokens, given.window)) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Turns a long history into a request, by Lockstitch and by msgspec alone; see worker.py.

An order is `{"messages": N, "repeat": M, "long": B}`. Each contender measures its own CPU, without its
preparations.
"""

import functools
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import worker

from lockstitch.history.policy import policy
from lockstitch.history.project import Projector
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile
from lockstitch.schema.blocks import Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message, Request

USUAL_CHARS, LARGE_CHARS, ONE_IN = 1_842, 23_455, 14
"""Of longer results. Of 300,536 results that one developer's agents were given in a week, 7 % had more than
10,000 characters and 23,455 on average; the others had 1,842.

Source: https://github.com/anthony-chaudhary/fak/issues/12164 (read 2026-12-01).
"""


@functools.cache
def history(size: int, long: bool = False) -> tuple[Message, ...]:
    """Prompts, calls and results of an agent at work, the same on every run."""
    messages: list[Message] = []
    number = 0
    while len(messages) < size:
        if number % 20 == 0:
            messages.append(Message("user", (Text(text=f"Please look at part {number} of the project."),)))
        messages += exchange(number, long)
        number += 1
    return tuple(messages[:size])


def exchange(number: int, long: bool = False) -> list[Message]:
    arguments = f'{{"path":"src/module_{number}.py","limit":200}}'
    call = ToolCall(id=f"call_{number}", name="read", arguments=arguments)
    output = "\n".join(f"    value_{line} = compute({line}, part={number})" for line in range(12))
    if long:
        chars = USUAL_CHARS if number % ONE_IN else LARGE_CHARS
        output = (f"{output}\n" * (chars // len(output) + 1))[:chars]
    return [
        Message("assistant", (Text(text=f"I am reading module {number} now."), call)),
        Message("tool", (ToolResult(call_id=call.id, content=(Text(text=output),)),)),
    ]


class GrowingRequest:
    """The request of one session, as it grows."""

    def __init__(self) -> None:
        target = profile("generic")
        self._projector = Projector(policy(target, model="m", rung="normal"))
        self._writer = dialects.writer(target)

    def write(self, new: tuple[Message, ...]) -> bytes:
        self._projector.extend(new)
        written = self._writer.write(Request("m", self._projector.projected.messages))
        if written.violations:
            raise RuntimeError(written.violations[0].detail)
        return written.wire.encoded()


def encode_floor() -> worker.Contender:
    """msgspec over the finished request, as plain values; nothing is projected or checked."""
    target = profile("generic")

    async def write(order: Mapping[str, Any]) -> Mapping[str, float]:
        body = _plain(order["messages"], order["long"], target)
        start = time.process_time()
        for _ in worker.repeats(order):
            msgspec.json.encode(body)
        return {"seen": order["messages"], "own_cpu_s": time.process_time() - start}

    return write


@functools.cache
def _plain(size: int, long: bool, target: Any) -> Any:
    wire = dialects.encode(Request("m", history(size, long)), target)
    return msgspec.json.decode(wire.encoded())


def first() -> worker.Contender:
    async def write(order: Mapping[str, Any]) -> Mapping[str, float]:
        messages = history(order["messages"], order["long"])
        start = time.process_time()
        for _ in worker.repeats(order):
            GrowingRequest().write(messages)
        return {"seen": order["messages"], "own_cpu_s": time.process_time() - start}

    return write


def further() -> worker.Contender:
    async def write(order: Mapping[str, Any]) -> Mapping[str, float]:
        growing = GrowingRequest()
        growing.write(history(order["messages"]))
        steps = [tuple(exchange(10**6 + number)) for number in worker.repeats(order)]
        start = time.process_time()
        for new in steps:
            growing.write(new)
        return {"seen": order["messages"], "own_cpu_s": time.process_time() - start}

    return write


if __name__ == "__main__":
    worker.main({"encode": encode_floor, "first": first, "further": further})

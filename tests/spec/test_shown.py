"""What a model call writes and no delta holds is counted in the log, at most once in a while."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lockstitch.agent import shown
from lockstitch.agent.shown import OutputMeter, Shown
from lockstitch.schema.chunks import ReasoningDelta, TextDelta, ToolCallDelta
from lockstitch.schema.events import AssistantDelta, OutputCount


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "COUNT_EVERY_MS", 5)


def log_of() -> tuple[Any, list[Any]]:
    bodies: list[Any] = []
    return SimpleNamespace(append=lambda *more: bodies.extend(more)), bodies


async def counts(bodies: list[Any], number: int) -> None:
    async with asyncio.timeout(10):
        while len([body for body in bodies if isinstance(body, OutputCount)]) < number:
            await asyncio.sleep(0.005)


async def test_many_pieces_are_one_record_of_all_their_bytes(soon: None) -> None:
    world, bodies = log_of()
    meter = OutputMeter(world)
    for _ in range(100):
        meter.add("ab")
    meter.add("")
    meter.add("你")
    await counts(bodies, 1)
    assert bodies == [OutputCount(203)]
    meter.add("c")
    await counts(bodies, 2)
    assert bodies[1:] == [OutputCount(204)], "the next one tells all, not what is new"
    meter.close()


async def test_nothing_is_told_of_a_call_that_ended(soon: None) -> None:
    world, bodies = log_of()
    meter = OutputMeter(world)
    meter.add("ab")
    meter.close()
    await asyncio.sleep(0.05)
    assert bodies == []


async def test_of_an_attempt_only_its_arguments_are_counted(soon: None) -> None:
    world, bodies = log_of()
    attempt = Shown(world)
    attempt.take([ReasoningDelta(0, "hm"), TextDelta(1, "I write"), ToolCallDelta(2, id="a", name="write")])
    attempt.take([ToolCallDelta(2, '{"path": "a')])
    await counts(bodies, 1)
    attempt.close()
    counted = [body for body in bodies if isinstance(body, OutputCount)]
    assert counted == [OutputCount(11)]
    texts = [body.text for body in bodies if isinstance(body, AssistantDelta)]
    assert texts == ["hm", "I write"]

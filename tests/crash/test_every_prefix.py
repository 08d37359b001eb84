"""A session cut at any byte: it opens, its next request is valid, and the turn can go on.

The log is the demo's own: a refused attempt, a retry, a SIGKILL in the middle of a tool, and a second turn.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstitch.agent.api import Agent
from lockstitch.agent.carried import Carried
from lockstitch.agent.requests import RequestMaker
from lockstitch.cli import demo_story as story
from lockstitch.cli.demo import _play
from lockstitch.cli.demo_print import Narrator
from lockstitch.history.context import Context
from lockstitch.llm.endpoint import Endpoint
from lockstitch.providers.catalog import profile
from lockstitch.schema.events import Event, Recovery, SessionRepaired, TurnEnd
from lockstitch.session.log_reader import LogReader
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.mending import first_record, mend
from lockstitch.testing.gateway import running_gateway
from lockstitch.tools.builtin import builtin_tools
from lockstitch.tools.registry import Registry

ENDPOINT = Endpoint(profile("deepseek"), "deepseek-chat", "http://127.0.0.1:9/v1")


@pytest.fixture(scope="module")
def log() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "stage"
        _play(stage, Narrator())
        yield (stage / "home" / "sessions" / story.SESSION / "log.jsonl").read_bytes()


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    await (await made.open(story.SESSION)).close()
    return made


def bodies(events: list[Event]) -> list[object]:
    return [event.body for event in events]


def test_every_prefix_opens_and_has_a_valid_next_request(log: bytes) -> None:
    """Through the one function that every store opens a log with; the stores' own tests cut files."""
    projected: list[object] = []
    for end in range(len(log) + 1):
        events: list[Event] = []
        reader = LogReader(story.SESSION, events.append)
        reader.feed(log[:end])
        reader.end()
        mend(reader, first_record(story.SESSION, ""), file="", fold=events.append)
        state = reader.state
        assert (state.defects, reader.set_aside, state.turn_open, state.too_new) == (0, 0, False, None)
        # Most cuts inside one record leave the same events, but for the count of bytes that were cut off.
        if (now := [body for body in bodies(events) if not isinstance(body, SessionRepaired)]) != projected:
            projected = now
            assert_valid_request(events)


def assert_valid_request(events: list[Event]) -> None:
    """The request is fit to be sent as it is, on the first rung, and nothing had to be repaired in it."""
    context, carried = Context(), Carried()
    for event in events:
        context.apply(event)
        carried.apply(event)
    maker = RequestMaker(endpoint=ENDPOINT, registry=Registry(builtin_tools()))
    request, projection = asyncio.run(maker.request(context, "normal"))
    prepared = maker.prepare(context, carried, "normal", request, projection)
    ready = getattr(prepared, "ready", None)
    assert ready is not None, (prepared, events[-1])


async def test_the_turn_goes_on_from_a_cut(log: bytes, store: MemoryStore) -> None:
    borders = {end + 1 for end, byte in enumerate(log) if byte == ord("\n")}
    cuts = sorted({0, *borders, *range(0, len(log), 97)})
    answers = {"then": {"text": "On we go.", "tool_calls": []}}
    with running_gateway(answers, strict="openai-chat") as gateway:
        agent = Agent(
            "deepseek:deepseek-chat",
            tools=builtin_tools(),
            store=store,
            base_url=gateway.base_url,
            environ={story.KEY_VARIABLE: story.KEY},
        )
        # One session is kept open so that connections are shared, as in a program with many.
        async with agent.open("other"):
            for cut in cuts:
                store.write_log(story.SESSION, log[:cut])
                result = await agent.run("What is left?", session=story.SESSION)
                assert result.text == "On we go."
        refused = [entry["refused"] for entry in gateway.requests if "refused" in entry]
        assert refused == []
        assert len(gateway.requests) == len(cuts)


async def test_a_turn_that_was_cut_is_told_apart_from_one_that_ended(log: bytes, store: MemoryStore) -> None:
    """The log that goes on holds how the last turn ended: by itself, or closed at the next opening."""
    store.write_log(story.SESSION, log)
    events: list[Event] = []
    await (await store.open(story.SESSION, fold=events.append)).close()
    ends = [body for body in bodies(events) if isinstance(body, TurnEnd)]
    assert [end.reason for end in ends] == list(story.TURNS)
    assert [body for body in bodies(events) if isinstance(body, Recovery)] == []

"""Refusals that name one thing: requests go on without it, and the session remembers, model by model."""

import base64
import threading

import pytest
from agent_world import World, calls, clock

from lockstitch import ProviderError, tool
from lockstitch.schema import events as log
from lockstitch.schema.blocks import Base64Source, Image, Text
from lockstitch.schema.messages import Options
from lockstitch.session.memory_store import MemoryStore

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(6000)).decode()
LIMIT = {
    "error": {"message": "max_tokens is too large: 9000. This model supports at most 8192 completion tokens"},
    "status": 400,
}
SCHEMA = {"error": {"message": "Invalid schema for function 'launch': bad type"}, "status": 400}
NO_IMAGE = {"error": {"message": "Could not process image"}, "status": 400}


def asked(world: World) -> list[tuple[int, list[str]]]:
    """Limit and tools of each request."""
    bodies = [request["body"] for request in world.model.requests]
    return [
        (body["max_tokens"], [tool["function"]["name"] for tool in body.get("tools", ())]) for body in bodies
    ]


async def test_a_refused_output_limit_is_lowered_and_a_refused_tool_left_out_for_the_session() -> None:
    store = MemoryStore()
    options = Options(max_tokens=9000)
    world = World(LIMIT, SCHEMA, calls("clock"), "Good.", "Again.", store=store, options=options)
    result = await world.run()
    assert [(repair.kind, repair.ids) for repair in result.repairs] == [
        ("limit_lowered", ()),
        ("limit_lowered", ()),
        ("tool_left_out", ("launch",)),
    ]
    await world.run()
    both, one = ["clock", "launch"], ["clock"]
    assert asked(world) == [(9000, both), (4500, both), *[(4500, one)] * 3]
    later = World("Later.", store=store, options=options)
    await later.run()
    assert asked(later) == [(4500, one)]
    told = [body for body in await world.bodies(log.Recovery) if body.succeeded]
    assert [[anomaly.kind for anomaly in body.anomalies] for body in told] == [
        ["limit_lowered", "tool_left_out"]
    ]


async def test_what_a_model_refused_is_asked_for_again_where_it_is_another() -> None:
    store = MemoryStore()
    await World(LIMIT, SCHEMA, "Good.", store=store, options=Options(max_tokens=9000)).run()

    @tool
    def launch(when: str) -> str:
        """Launch it, with a schema that was mended."""
        return when

    mended = World("Fine.", store=store, tools=[clock, launch], options=Options(max_tokens=2000))
    await mended.run()
    assert asked(mended) == [(2000, ["clock", "launch"])], "a mended tool, and a limit that is low enough"
    other = World("Fine.", store=store, profile="deepseek", options=Options(max_tokens=9000))
    await other.run()
    assert asked(other) == [(9000, ["clock", "launch"])], "another model"


async def test_a_limit_that_was_lowered_in_vain_is_not_remembered() -> None:
    world = World(*[LIMIT] * 5, "Good.", options=Options(max_tokens=9000))
    with pytest.raises(ProviderError):
        await world.run()
    await world.run()
    assert [limit for limit, _ in asked(world)] == [9000, 4500, 2250, 1125, 562, 9000]


async def test_a_refused_image_is_left_out_alone_and_for_as_long_as_the_history_lasts() -> None:
    image = Image("image/png", Base64Source(PIXEL))
    store = MemoryStore()
    thinking = {**calls("clock"), "reasoning": "I look at the clock."}
    answers = (thinking, "It is noon.", NO_IMAGE, "Noon.", "Still noon.", "A picture.")
    world = World(*answers, store=store, profile="moonshot", strict=None)
    await world.run()
    await world.run([Text("And what is this?"), image])
    await world.run("And this?")
    bodies = [request["body"]["messages"] for request in world.model.requests]
    assert [PIXEL in str(messages) for messages in bodies] == [False, False, True, False, False]
    assert all("I look at the clock." in str(messages) for messages in bodies[2:]), "reasoning stays"
    assert {body.rung for body in await world.bodies(log.AttemptStart)} == {"normal"}
    async with world.agent.open("s") as session:
        await session.clear()
        await session.send([Text("Once more:"), image]).result()
    assert PIXEL in str(world.model.requests[-1]["body"]["messages"])


async def test_a_refusal_of_images_that_there_are_none_of_climbs() -> None:
    world = World(NO_IMAGE, "Good.")
    await world.run()
    rungs = [body.rung for body in await world.bodies(log.AttemptStart)]
    assert rungs[0] == "normal"
    assert len(set(rungs)) == len(rungs) == 2


async def test_images_are_read_beside_the_loop() -> None:
    store = MemoryStore()
    world = World("I see.", "Still.", store=store)
    await world.run([Text("Look:"), Image("image/png", Base64Source(PIXEL))])
    read_in: list[int] = []
    blobs = store._sessions["s"].blobs
    get = blobs.get

    def noted(sha256: str) -> bytes:
        read_in.append(threading.get_ident())
        return get(sha256)

    blobs.get = noted  # type: ignore[method-assign]  # to see which thread waits for it
    await World("Still.", store=store).run()
    assert len(read_in) == 1
    assert threading.get_ident() not in read_in

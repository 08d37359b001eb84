"""The ladder, end to end: a strict provider in words nobody knows, and refusals that no ladder can mend."""

from typing import Any

import pytest
from agent_world import World, calls

from lockstitch import ProviderError
from lockstitch.cli.broken_history import log as broken_log
from lockstitch.history.policy import RUNGS
from lockstitch.schema import events as log

PROVIDERS = {
    "openai-chat": "generic",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
}
OPAQUE = {"error": {"message": "The quality of this is insufficient."}, "status": 400}
WORDINGS = ("opaque", "bodyless", "server-error")


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("dialect", PROVIDERS)
async def test_a_session_with_every_defect_completes_a_turn_without_one_refused_request(
    dialect: str, wording: str
) -> None:
    world = World(calls("clock"), "Good.", strict=dialect, profile=PROVIDERS[dialect], wording=wording)
    data, wrong = broken_log("s", "", "m")
    assert len(wrong) > 10
    await (await world.store.open("s")).close()
    world.store.write_log("s", data)
    result: Any = await world.run("And now?")
    assert (result.reason, result.text) == ("completed", "Good.")
    assert [request["status"] for request in world.model.requests] == [200, 200]
    assert [request for request in world.model.requests if "refused" in request] == []


@pytest.mark.parametrize("refusals", (1, 2))
async def test_each_rung_is_refused_at_most_once(refusals: int) -> None:
    world = World(calls("clock"), *[OPAQUE] * refusals, "Good.")
    assert (await world.run()).text == "Good."
    rungs = [body.rung for body in await world.bodies(log.AttemptStart)][1:]
    assert len(rungs) == len(set(rungs)) == refusals + 1
    assert rungs == sorted(rungs, key=RUNGS.index)
    bodies = [str(request["body"]) for request in world.model.requests[1:]]
    assert len(bodies) == len(set(bodies)), "no rung sends what was just refused"


async def test_an_opaque_bad_option_ends_after_the_ladder_with_the_first_error_and_leaves_no_rung() -> None:
    first = {"error": {"message": "Computer says no, first."}, "status": 400}
    world = World(calls("clock"), first, *[OPAQUE] * 20)
    with pytest.raises(ProviderError) as caught:
        await world.run()
    assert caught.value.failure is not None
    assert caught.value.failure.provider_message == "Computer says no, first."
    assert len(world.model.requests) <= 1 + len(RUNGS)
    assert [body for body in await world.bodies(log.Recovery) if body.succeeded] == []


RECOGNISED = {
    "a model that does not exist": (
        404,
        {"message": "The model `m` does not exist", "code": "model_not_found"},
    ),
    "a key that is refused": (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}),
    "an option that is not known": (400, {"message": "Unrecognized request argument supplied: topp"}),
}


@pytest.mark.parametrize("name", RECOGNISED)
async def test_a_recognised_refusal_for_another_reason_is_not_sent_again(name: str) -> None:
    status, error = RECOGNISED[name]
    world = World({"error": error, "status": status}, "Never.")
    with pytest.raises(ProviderError):
        await world.run()
    assert len(world.model.requests) == 1

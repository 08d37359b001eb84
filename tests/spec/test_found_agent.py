"""What hostile testing broke an agent with: names that are no Unicode text, arguments of the wrong kind."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstitch import Agent, Result
from lockstitch.schema.errors import CallerError
from lockstitch.testing.scripted_model import ScriptedModel

HALF = "\udcff"
"""Half of a surrogate pair: what a byte that is no UTF-8 becomes on a command line or in a file name."""


async def test_a_request_that_cannot_be_sent_ends_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(["never asked"])
    model.endpoint = replace(model.endpoint, model=HALF)
    agent = Agent(model, store=tmp_path)
    async with asyncio.timeout(10):
        async with agent.open("s") as session:
            result: Result[Any] = await session.send("hi").result()
    assert (result.reason, result.failure and result.failure.code) == ("failed", "INVALID_STRUCTURE")
    assert model.requests == []


async def test_a_session_goes_on_behind_a_request_that_could_not_be_sent(tmp_path: Path) -> None:
    model = ScriptedModel(["never asked"])
    model.endpoint = replace(model.endpoint, model=HALF)
    async with Agent(model, store=tmp_path).open("s") as session:
        await session.send("hi").result()
    result: Result[Any] = await Agent(ScriptedModel(["done"], strict="openai-chat"), store=tmp_path).run(
        "again", session="s"
    )
    assert result.text == "done"


WRONG: dict[str, dict[str, Any]] = {
    "a model that is no Unicode text": {"model": f"generic:{HALF}"},
    "an address that is no Unicode text": {"model": "generic:m", "base_url": f"http://x/{HALF}"},
    "a folder that is no Unicode text": {"cwd": HALF},
    "a folder with a NUL": {"cwd": "a\0b"},
    "no instructions": {"instructions": None},
    "instructions as bytes": {"instructions": b"x"},
    "a store that is a number": {"store": 5},
    "a store that is bytes": {"store": b"x"},
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_cannot_be_used_is_the_callers_error(name: str, tmp_path: Path) -> None:
    given = {
        "model": ScriptedModel(["x"]),
        "store": tmp_path,
        "base_url": "http://127.0.0.1:9",
        **WRONG[name],
    }
    with pytest.raises(CallerError):
        await Agent(**given).run("hi", session="s")


async def test_a_folder_whose_name_is_no_unicode_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / f"d{HALF}"
    folder.mkdir()
    store = tmp_path / "store"
    with pytest.raises(CallerError, match="rename it"):
        await Agent(ScriptedModel(["x"]), store=store, cwd=folder).run("hi", session="s")
    assert not any(store.rglob("log.jsonl"))

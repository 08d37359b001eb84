"""Cassettes record once and replay for ever; and a switch keeps tests from real requests."""

from pathlib import Path

import pytest
from agent_world import clock

from lockstitch import Agent, CallerError
from lockstitch.llm.request_guard import VARIABLE, RealRequestError, no_real_requests
from lockstitch.testing.cassette import Cassette, CassetteMismatchError, difference
from lockstitch.testing.gateway import running_gateway

KEY = "sk-cassette-0123456789"
ENVIRON = {"DEEPSEEK_API_KEY": KEY}
MODEL = "deepseek:deepseek-chat"
ANSWERS = [
    {"text": "Let me see.", "tool_calls": [{"name": "clock", "arguments": {}}], "quirks": ["keepalives"]},
    {"error": {"message": f"overloaded, {KEY}"}, "status": 503, "headers": {"Retry-After": "0"}},
    {"text": "Noon. ☀", "quirks": ["gzip"]},
]


async def play(model: Cassette, prompt: str = "Time?") -> str:
    agent = Agent(model, tools=[clock], store="memory", environ={})
    return (await agent.run(prompt)).text


@pytest.fixture
async def cassette(tmp_path: Path) -> Path:
    path = tmp_path / "cassettes" / "time.jsonl"
    with running_gateway({"answers": ANSWERS}, strict="openai-chat") as gateway:
        model = Cassette(path, MODEL, base_url=gateway.base_url, environ=ENVIRON)
        assert model.recording
        assert await play(model) == "Noon. ☀"
        await model.close()
    return path


async def test_what_was_recorded_plays_without_key_and_network(cassette: Path) -> None:
    with no_real_requests():
        model = Cassette(cassette, MODEL, environ={})
        assert not model.recording
        assert await play(model) == "Noon. ☀"
        assert model.left == 0


async def test_no_key_is_recorded(cassette: Path) -> None:
    assert KEY not in cassette.read_text()
    assert "overloaded, ***" in cassette.read_text()


async def test_another_request_is_told_apart_and_where(cassette: Path) -> None:
    with pytest.raises(CassetteMismatchError, match=r"\$\.messages\[0\]\.content"):
        await play(Cassette(cassette, MODEL, environ={}), "What is the time?")


async def test_one_request_too_many_is_told(cassette: Path) -> None:
    cassette.write_text(cassette.read_text().splitlines()[0] + "\n")
    with pytest.raises(CassetteMismatchError, match="holds 1 exchanges"):
        await play(Cassette(cassette, MODEL, environ={}))


async def test_a_damaged_cassette_says_so(cassette: Path) -> None:
    cassette.write_text("{half")
    with pytest.raises(CallerError, match="record again"):
        Cassette(cassette, MODEL, environ={})


DIFFERENCES = {
    "equal values": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, None),
    "another value": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "$.a[1].b"),
    "a longer list": ([1], [1, 2], "$[1]"),
    "a key more": ({"a": 1}, {"a": 1, "b": 2}, "$.b"),
    "another type": ({"a": 1}, {"a": "1"}, "$.a"),
}


@pytest.mark.parametrize(("left", "right", "place"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_difference(left: object, right: object, place: str | None) -> None:
    assert difference(left, right) == place


def agent(base_url: str) -> Agent:
    return Agent("generic:x", base_url=base_url, store="memory", environ={})


async def test_the_switch_stops_what_would_leave_this_machine() -> None:
    with no_real_requests(), pytest.raises(RealRequestError, match="to api"):
        await agent("http://api.example/v1").run("Hello?")


async def test_the_switch_may_be_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(RealRequestError):
        await agent("http://api.example/v1").run("Hello?")


async def test_the_switch_lets_loopback_through() -> None:
    with no_real_requests(), running_gateway(["Hi."]) as gateway:
        assert (await agent(gateway.base_url).run("Hello?")).text == "Hi."


def test_the_errors_have_codes_of_their_own() -> None:
    assert {RealRequestError.code, CassetteMismatchError.code} == {"REAL_REQUEST", "CASSETTE_MISMATCH"}

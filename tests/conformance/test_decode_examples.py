"""The examples of docs/decode.md, run as they stand there, against the mock gateway.

The httpx and openai packages are the test extra ``peers``, which ``./dev test`` installs; aiohttp is ours.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lockstitch.history.decode import Decoded
from lockstitch.providers.classify import Classified
from lockstitch.schema.blocks import Text, ToolCall
from lockstitch.schema.chunks import Chunk, Finish
from lockstitch.testing.gateway import Gateway, running_gateway

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients, not ours

GUIDE = (Path(__file__).parents[2] / "docs/decode.md").read_text(encoding="utf-8")
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "text": "Looking.",
    "tool_calls": [{"id": "c1", "name": "ls", "arguments": {"path": "."}}],
    "usage": {"input_tokens": 9, "output_tokens": 5},
    "split": 7,
}
Reader = Callable[[Gateway], tuple[Any, list[Chunk]]]


def example(title: str) -> Callable[..., Any]:
    """The function that the section's code defines."""
    section = GUIDE.split(f"### {title}\n", 1)[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 16
    names: dict[str, Any] = {}
    exec(compile(code[1], f"docs/decode.md, {title}", "exec"), names)
    return names["answer"]


def by_httpx(gateway: Gateway) -> tuple[Any, list[Chunk]]:
    pytest.importorskip("httpx", reason="the extra `peers` is not installed")
    shown: list[Chunk] = []
    url = f"{gateway.base_url}/chat/completions"
    return example("httpx")(url, {**REQUEST, "stream": True}, shown.extend), shown


def by_aiohttp(gateway: Gateway) -> tuple[Any, list[Chunk]]:
    shown: list[Chunk] = []

    async def read() -> Any:
        async with aiohttp.ClientSession() as session:
            url = f"{gateway.base_url}/chat/completions"
            return await example("aiohttp")(session, url, {**REQUEST, "stream": True}, shown.extend)

    return asyncio.run(read()), shown


def by_openai(gateway: Gateway) -> tuple[Any, list[Chunk]]:
    openai = pytest.importorskip("openai", reason="the extra `peers` is not installed")
    shown: list[Chunk] = []
    client = openai.OpenAI(base_url=gateway.base_url, api_key="test-key-0000", max_retries=0)
    return example("The openai client's raw response")(client, REQUEST, shown.extend), shown


READERS: dict[str, Reader] = {"httpx": by_httpx, "aiohttp": by_aiohttp, "openai": by_openai}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    yield READERS[request.param]


def test_an_answer_is_read(reader: Reader) -> None:
    with running_gateway([ANSWER]) as gateway:
        result, shown = reader(gateway)
    assert isinstance(result, Decoded)
    assert result.content == (Text("Looking."), ToolCall("c1", "ls", '{"path":"."}'))
    assert (result.finish.reason, result.notes) == ("tool_calls", ())
    assert shown[-1] == result.finish
    assert [type(chunk) for chunk in shown].count(Finish) == 1


def test_an_error_status_is_classified(reader: Reader) -> None:
    refusal = {"status": 429, "error": {"message": "Rate limit reached"}, "headers": {"retry-after": "7"}}
    with running_gateway([refusal]) as gateway:
        result, _ = reader(gateway)
    failure = result.failure if isinstance(result, Classified) else result.finish.failure
    assert (failure.code, failure.retry_after_s, failure.status) == ("RATE_LIMIT", 7.0, 429)


@pytest.mark.parametrize("name", ["httpx", "aiohttp"])
def test_a_broken_body_is_a_failure(name: str) -> None:
    with running_gateway([{**ANSWER, "cut_after": 250}]) as gateway:
        result, shown = READERS[name](gateway)
    assert result.finish.reason == "error"
    assert result.finish.failure.retryable
    assert shown[-1] == result.finish

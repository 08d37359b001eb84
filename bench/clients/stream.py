"""Clients that read one chat stream each, one function a library; see worker.py for how they are driven.

An order is `{"base_url": ...}`. Every client goes on to the end of the stream and returns how many things its
library yielded.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import worker

PROMPT = "Go."
KEY = "bench"


def floor() -> worker.Contender:
    """What any Python client must pay: aiohttp's bytes, a split, a typed decode. Nothing is assembled."""
    import aiohttp
    import msgspec

    class Function(msgspec.Struct):
        name: str | None = None
        arguments: str | None = None

    class Call(msgspec.Struct):
        index: int = 0
        id: str | None = None
        function: Function | None = None

    class Delta(msgspec.Struct):
        content: str | None = None
        tool_calls: list[Call] | None = None

    class Choice(msgspec.Struct):
        delta: Delta
        finish_reason: str | None = None

    class Completion(msgspec.Struct):
        choices: list[Choice]

    decode = msgspec.json.Decoder(Completion).decode

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        url, body = order["base_url"] + "/chat/completions", {"model": "m"}
        async with aiohttp.ClientSession() as session:
            for _ in worker.repeats(order):
                rest = b""
                async with session.post(url, json=body) as response:
                    async for data in response.content.iter_any():
                        *frames, rest = (rest + data).split(b"\n\n")
                        for frame in frames:
                            if frame != b"data: [DONE]":
                                decode(frame[6:])
                            seen += 1
        return seen

    return read


def lockstitch() -> worker.Contender:
    """The model runtime: request encoded, stream framed, translated, checked and assembled."""
    from lockstitch.llm.runtime import ModelRuntime

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        endpoint, wire = _lockstitch_request(order["base_url"])
        async with ModelRuntime() as runtime:
            for _ in worker.repeats(order):
                async with runtime.stream(endpoint, wire) as chunks:
                    async for _ in chunks:
                        seen += 1
                    _must_have_answered(chunks.result)
        return seen

    return read


def lockstitch_logged() -> worker.Contender:
    """The same, with what is shown going into a session's log on disk as the agent does it."""
    import tempfile

    from lockstitch.agent.driver import Shown
    from lockstitch.llm.runtime import ModelRuntime
    from lockstitch.schema.blocks import Text
    from lockstitch.schema.events import (
        AssistantMessage,
        AttemptStart,
        StepEnd,
        StepStart,
        TurnEnd,
        TurnStart,
    )
    from lockstitch.session.file_store import FileStore

    folder = tempfile.TemporaryDirectory(prefix="bench-logged-")

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        endpoint, wire = _lockstitch_request(order["base_url"])
        store = FileStore(Path(folder.name))
        log = await store.open("bench")
        async with ModelRuntime() as runtime:
            for _ in worker.repeats(order):
                turn = log.state.turns + 1
                log.append(TurnStart(turn), StepStart(turn, 1), AttemptStart(turn, 1, 1))
                await log.flush()
                shown = Shown(log)
                async with runtime.stream(endpoint, wire) as chunks:
                    async for chunk in chunks:
                        more = chunks.ready()
                        shown.take((chunk, *more))
                        seen += 1 + len(more)
                    result = _must_have_answered(chunks.result)
                shown.close()
                said = tuple(block for block in result.content if isinstance(block, Text))
                log.append(
                    AssistantMessage(f"m{turn}", said, "stop"), StepEnd(turn, 1), TurnEnd(turn, "completed")
                )
                await log.flush()
        await log.close()
        await store.close()
        return seen

    return read


def _lockstitch_request(base_url: str) -> tuple[Any, Any]:
    from lockstitch.llm.endpoint import resolve
    from lockstitch.providers.dialects import encode
    from lockstitch.schema.blocks import Text
    from lockstitch.schema.messages import Message, Request

    endpoint = resolve("m", base_url=base_url, environ={})
    return endpoint, encode(Request("m", (Message("user", (Text(text=PROMPT),)),)), endpoint.profile)


def _must_have_answered(result: Any) -> Any:
    if result.finish.failure is not None:
        raise RuntimeError(result.finish.failure.message)
    return result


def lockstitch_agent() -> worker.Contender:
    """One turn of the whole agent on the same stream, with its session log on disk."""
    import tempfile

    from lockstitch import Agent

    folder = tempfile.TemporaryDirectory(prefix="bench-stream-")

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        agent = Agent("generic:m", base_url=order["base_url"], store=Path(folder.name), environ={})
        for _ in worker.repeats(order):
            async for _ in agent.stream(PROMPT):
                seen += 1
        return seen

    return read


def openai() -> worker.Contender:
    from openai import AsyncOpenAI

    async def read(order: Mapping[str, Any]) -> int:
        client = AsyncOpenAI(base_url=order["base_url"], api_key=KEY)
        seen = 0
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": PROMPT}], stream=True
        )
        async for _ in stream:
            seen += 1
        return seen

    return read


def pydantic_ai() -> worker.Contender:
    from pydantic_ai import ModelRequest
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def read(order: Mapping[str, Any]) -> int:
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=order["base_url"], api_key=KEY))
        seen = 0
        async with model_request_stream(model, [ModelRequest.user_text_prompt(PROMPT)]) as stream:
            async for _ in stream:
                seen += 1
            stream.get()
        return seen

    return read


def litellm() -> worker.Contender:
    import litellm as library

    library.suppress_debug_info = True

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        messages = [{"role": "user", "content": PROMPT}]
        stream = await library.acompletion(
            model="openai/m", api_base=order["base_url"], api_key=KEY, messages=messages, stream=True
        )
        async for _ in stream:
            seen += 1
        return seen

    return read


def langchain() -> worker.Contender:
    from langchain_openai import ChatOpenAI

    async def read(order: Mapping[str, Any]) -> int:
        seen = 0
        async for _ in ChatOpenAI(model="m", base_url=order["base_url"], api_key=KEY).astream(PROMPT):
            seen += 1
        return seen

    return read


if __name__ == "__main__":
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import asks a server for prices
    os.environ["LANGSMITH_TRACING"] = "false"
    ours = {
        "lockstitch": lockstitch,
        "lockstitch, logged": lockstitch_logged,
        "lockstitch agent": lockstitch_agent,
    }
    peers = {"openai": openai, "pydantic-ai": pydantic_ai, "litellm": litellm, "langchain-openai": langchain}
    worker.main({"floor": floor, **ours, **peers})

"""Reads every openai-chat case through one library and says what it made of each.

usage: cases.py NAME ADDRESS CASES.jsonl

Prints one JSON line a case: `{"id", "text", "calls": [{"id", "name", "arguments"}], "error"}`; `arguments` is
what the library gives (text or a mapping), `error` the exception's text or null. Every library runs without
retries and with what it offers for the whole of one streamed response.
"""

import asyncio
import json
import logging
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

KEY = "bench"
PROMPT = "Go."
CASE_TIMEOUT_S = 20
ERROR_CHARS = 160


class Outcome(NamedTuple):
    text: str
    calls: list[dict[str, Any]]


Reader = Callable[[str, Mapping[str, Any]], Awaitable[Outcome]]
"""Takes a base URL and the case's input; only Lockstitch has a use for its profile and the names of tools."""


def lockstitch(*, told: bool = True) -> Reader:
    """``told``: with the case's profile and offered tools; else the generic profile and no tools."""
    from lockstitch.llm.endpoint import resolve
    from lockstitch.llm.runtime import ModelRuntime
    from lockstitch.providers.dialects import encode
    from lockstitch.schema.blocks import Text, ToolCall
    from lockstitch.schema.messages import Message, Request, ToolSpec

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        model = f"{(told and case.get('profile')) or 'generic'}:m"
        endpoint = resolve(model, base_url=base_url, environ={}, key_store=lambda _: KEY)
        offered = case.get("tools", ()) if told else ()
        tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in offered)
        request = Request("m", (Message("user", (Text(text=PROMPT),)),), tools=tools)
        async with (
            ModelRuntime() as runtime,
            runtime.stream(endpoint, encode(request, endpoint.profile)) as chunks,
        ):
            async for _ in chunks:
                pass
            result = chunks.result
        if result.finish.failure is not None:
            raise RuntimeError(result.finish.failure.message)
        calls = [block for block in result.content if isinstance(block, ToolCall)]
        return Outcome(
            "".join(block.text for block in result.content if isinstance(block, Text)),
            [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls],
        )

    return read


def openai() -> Reader:
    """The client's chunks, put together the usual way: calls by index, only their arguments appended.

    Its own accumulator (`chat.completions.stream`) gets fewer right, since it asserts on sparse chunks.
    """
    from openai import AsyncOpenAI

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        client = AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0)
        messages: Any = [{"role": "user", "content": PROMPT}]
        text, calls = "", {}
        async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    if call.index not in calls:
                        calls[call.index] = call
                    else:
                        function = calls[call.index].function
                        function.arguments = (function.arguments or "") + (call.function.arguments or "")
        return Outcome(text, _functions(calls.values()))

    return read


def pydantic_ai() -> Reader:
    from openai import AsyncOpenAI
    from pydantic_ai import ModelRequest
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import TextPart, ToolCallPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        client = AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0)
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        async with model_request_stream(model, [ModelRequest.user_text_prompt(PROMPT)]) as stream:
            async for _ in stream:
                pass
            parts = stream.get().parts
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        return Outcome(
            "".join(part.content for part in parts if isinstance(part, TextPart)),
            [{"id": call.tool_call_id, "name": call.tool_name, "arguments": call.args} for call in calls],
        )

    return read


def litellm() -> Reader:
    import litellm as library

    library.suppress_debug_info = True

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        messages = [{"role": "user", "content": PROMPT}]
        stream = await library.acompletion(
            model="openai/m",
            api_base=base_url,
            api_key=KEY,
            messages=messages,
            stream=True,
            num_retries=0,
            max_retries=0,
        )
        whole: Any = library.stream_chunk_builder([chunk async for chunk in stream])
        message = whole.choices[0].message
        return Outcome(message.content or "", _functions(message.tool_calls or []))

    return read


def langchain() -> Reader:
    from langchain_openai import ChatOpenAI

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        model = ChatOpenAI(model="m", base_url=base_url, api_key=KEY, max_retries=0)
        whole: Any = None
        async for chunk in model.astream(PROMPT):
            whole = chunk if whole is None else whole + chunk
        calls = [
            {"id": call["id"], "name": call["name"], "arguments": call["args"]}
            for call in (*whole.tool_calls, *whole.invalid_tool_calls)
        ]
        return Outcome(str(whole.text), calls)

    return read


def openai_agents() -> Reader:
    from agents import ModelSettings, ModelTracing, OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    async def read(base_url: str, case: Mapping[str, Any]) -> Outcome:
        model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0))
        response: Any = None
        async for event in model.stream_response(
            None, PROMPT, ModelSettings(), [], None, [], ModelTracing.DISABLED
        ):
            if event.type == "response.completed":
                response = event.response
        text, calls = "", []
        for item in response.output:
            if item.type == "message":
                text += "".join(part.text for part in item.content if part.type == "output_text")
            elif item.type == "function_call":
                calls.append({"id": item.call_id, "name": item.name, "arguments": item.arguments})
        return Outcome(text, calls)

    return read


def _functions(calls: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "name": call.function.name, "arguments": call.function.arguments} for call in calls
    ]


READERS = {
    "lockstitch": lockstitch,
    "lockstitch-untold": partial(lockstitch, told=False),
    "openai": openai,
    "pydantic-ai": pydantic_ai,
    "litellm": litellm,
    "langchain-openai": langchain,
    "openai-agents": openai_agents,
}


async def main(name: str, address: str, cases: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some libraries print; that must not land among the answers
    read = READERS[name]()
    for line in Path(cases).read_text(encoding="utf-8").split("\n")[:-1]:
        case = json.loads(line)
        if case["input"]["protocol"] != "openai-chat":
            continue
        found: dict[str, Any] = {"id": case["id"], "text": "", "calls": [], "error": None}
        try:
            async with asyncio.timeout(CASE_TIMEOUT_S):
                outcome = await read(f"{address}/{case['id']}/v1", case["input"])
            found |= outcome._asdict()
        except Exception as error:  # whatever a library raises is its answer to the case
            found["error"] = f"{type(error).__name__}: {error}"[:ERROR_CHARS]
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import asks a server for prices
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    os.environ["LANGSMITH_TRACING"] = "false"
    os.environ.setdefault("OPENAI_API_KEY", KEY)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(main(*sys.argv[1:4]))

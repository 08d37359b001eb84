"""Oracles: the vendors' own packages, reading from the mock gateway, assemble what the script says.

They show that the gateway's well-formed streams are what the providers send, and so that decoding them
rightly means something. The packages are the test extra ``peers``; without them these tests are skipped.
"""

import json
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from lockstitch.history.decode import decode
from lockstitch.schema.blocks import Reasoning, Text, ToolCall
from lockstitch.testing.gateway import Gateway, running_gateway

openai = pytest.importorskip("openai", reason="the extra `peers` is not installed")
anthropic = pytest.importorskip("anthropic", reason="the extra `peers` is not installed")
genai = pytest.importorskip("google.genai", reason="the extra `peers` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours


@dataclass(frozen=True)
class Assembled:
    """One answer in no protocol's spelling: what all readers must agree about."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    finish: str = "stop"
    usage: tuple[int, int, int, int] = (9, 5, 0, 0)
    """Uncached input, output, read from a cache, written to one."""


PROMPT = [{"role": "user", "content": "hi"}]
USAGE = {"input_tokens": 9, "output_tokens": 5}


def chat_client(gateway: Gateway) -> Any:
    return openai.OpenAI(base_url=gateway.base_url, api_key="test-key-0000", max_retries=0)


def chat_usage(usage: Any) -> tuple[int, int, int, int]:
    details = usage.prompt_tokens_details
    read, write = (details.cached_tokens or 0, details.cache_write_tokens or 0) if details else (0, 0)
    return usage.prompt_tokens - read - write, usage.completion_tokens, read, write


def chat_assembled(completion: Any) -> Assembled:
    choice = completion.choices[0]
    calls = choice.message.tool_calls or []
    return Assembled(
        text=choice.message.content or "",
        reasoning=getattr(choice.message, "reasoning_content", None) or "",
        calls=tuple((c.id, c.function.name, json.loads(c.function.arguments)) for c in calls),
        finish=choice.finish_reason,
        usage=chat_usage(completion.usage),
    )


def chat_stream(client: Any) -> Assembled:
    options = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=PROMPT, stream_options=options) as stream:
        try:
            return chat_assembled(stream.get_final_completion())
        except openai.LengthFinishReasonError as error:
            return chat_assembled(error.completion)


def chat_document(client: Any) -> Assembled:
    return chat_assembled(client.chat.completions.create(model="m", messages=PROMPT))


ANTHROPIC_STOP = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def anthropic_assembled(message: Any) -> Assembled:
    usage = message.usage
    written = usage.cache_creation_input_tokens
    return Assembled(
        text="".join(block.text for block in message.content if block.type == "text"),
        reasoning="".join(block.thinking for block in message.content if block.type == "thinking"),
        calls=tuple((b.id, b.name, b.input) for b in message.content if b.type == "tool_use"),
        finish=ANTHROPIC_STOP[message.stop_reason],
        usage=(usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens, written),
    )


def anthropic_client(gateway: Gateway) -> Any:
    return anthropic.Anthropic(base_url=gateway.url, api_key="test-key-0000", max_retries=0)


def anthropic_stream(client: Any) -> Assembled:
    with client.messages.stream(model="m", max_tokens=9, messages=PROMPT) as stream:
        return anthropic_assembled(stream.get_final_message())


def anthropic_document(client: Any) -> Assembled:
    return anthropic_assembled(client.messages.create(model="m", max_tokens=9, messages=PROMPT))


def responses_assembled(response: Any) -> Assembled:
    kinds: dict[str, list[Any]] = {"reasoning": [], "message": [], "function_call": []}
    for item in response.output:
        kinds[item.type].append(item)
    usage = response.usage
    read, write = usage.input_tokens_details.cached_tokens, usage.input_tokens_details.cache_write_tokens
    finish = (
        "length" if response.status == "incomplete" else "tool_calls" if kinds["function_call"] else "stop"
    )
    return Assembled(
        text="".join(part.text for item in kinds["message"] for part in item.content),
        reasoning="".join(part.text for item in kinds["reasoning"] for part in item.summary),
        calls=tuple((c.call_id, c.name, json.loads(c.arguments)) for c in kinds["function_call"]),
        finish=finish,
        usage=(usage.input_tokens - read - write, usage.output_tokens, read, write),
    )


def responses_last(events: Any) -> Assembled:
    last = list(events)[-1]
    if last.type == "error":
        raise RuntimeError(last.message)
    return responses_assembled(last.response)


def responses_stream(client: Any) -> Assembled:
    return responses_last(client.responses.create(model="m", input="hi", stream=True))


def responses_helper(client: Any) -> Assembled:
    """The package's own assembly of deltas, stricter than the plain events."""
    with client.responses.stream(model="m", input="hi") as stream:
        return responses_last(stream)


def responses_document(client: Any) -> Assembled:
    return responses_assembled(client.responses.create(model="m", input="hi"))


GEMINI_STOP = {"STOP": "stop", "MAX_TOKENS": "length"}


def gemini_assembled(chunks: list[Any]) -> Assembled:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    calls = tuple(
        (p.function_call.id, p.function_call.name, p.function_call.args) for p in parts if p.function_call
    )
    usage = chunks[-1].usage_metadata
    read = usage.cached_content_token_count or 0
    output = usage.candidates_token_count + (usage.thoughts_token_count or 0)
    finish = GEMINI_STOP[chunks[-1].candidates[0].finish_reason.value]
    return Assembled(
        text="".join(p.text for p in parts if p.text and not p.thought),
        reasoning="".join(p.text for p in parts if p.text and p.thought),
        calls=calls,
        finish="tool_calls" if calls and finish == "stop" else finish,
        usage=(usage.prompt_token_count - read, output, read, 0),
    )


def gemini_client(gateway: Gateway) -> Any:
    return genai.Client(api_key="test-key-0000", http_options={"base_url": gateway.url})


def gemini_stream(client: Any) -> Assembled:
    return gemini_assembled(list(client.models.generate_content_stream(model="m", contents="hi")))


def gemini_document(client: Any) -> Assembled:
    return gemini_assembled([client.models.generate_content(model="m", contents="hi")])


READERS: dict[str, tuple[Callable[[Gateway], Any], Callable[[Any], Assembled]]] = {
    "openai-chat stream": (chat_client, chat_stream),
    "openai-chat document": (chat_client, chat_document),
    "anthropic-messages stream": (anthropic_client, anthropic_stream),
    "anthropic-messages document": (anthropic_client, anthropic_document),
    "openai-responses stream": (chat_client, responses_stream),
    "openai-responses stream by its helper": (chat_client, responses_helper),
    "openai-responses document": (chat_client, responses_document),
    "gemini stream": (gemini_client, gemini_stream),
    "gemini document": (gemini_client, gemini_document),
}

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}


def ours(dialect: str) -> Callable[[Any], Assembled]:
    """Lockstitch as one more reader of the same bytes."""

    def read(gateway: Gateway) -> Assembled:
        body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
        request = urllib.request.Request(gateway.url + PATHS[dialect], json.dumps(body).encode())
        with urllib.request.urlopen(request) as response:
            decoded = decode(response.read(), dialect, tools=["add", "now"])
        usage = decoded.usage
        assert usage is not None
        blocks = decoded.content
        calls = tuple(
            (b.id, b.name, json.loads(b.arguments or "{}")) for b in blocks if isinstance(b, ToolCall)
        )
        return Assembled(
            text="".join(block.text for block in blocks if isinstance(block, Text)),
            reasoning="".join(block.text for block in blocks if isinstance(block, Reasoning)),
            calls=calls,
            finish=decoded.finish.reason,
            usage=(
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens or 0,
                usage.cache_write_tokens or 0,
            ),
        )

    return read


READERS |= {f"lockstitch on {dialect}": (nullcontext, ours(dialect)) for dialect in PATHS}

ADD = {"id": "c1", "name": "add", "arguments": {"a": 1, "text": 'é "quoted" \n'}}
NOW = {"id": "c2", "name": "now", "arguments": {}}
CALLS = (("c1", "add", ADD["arguments"]), ("c2", "now", {}))
CASES: dict[str, tuple[dict[str, Any], Assembled]] = {
    "text": ({"text": "Hello."}, Assembled(text="Hello.")),
    "text beyond ASCII in single characters": (
        {"text": "héllo 😀 世界", "chunk_chars": 1},
        Assembled(text="héllo 😀 世界"),
    ),
    "text split at every byte": ({"text": "héllo 😀", "split": 1}, Assembled(text="héllo 😀")),
    "reasoning before text": (
        {"text": "42.", "reasoning": "Let me think.", "signature": "c2lnbmVk"},
        Assembled(text="42.", reasoning="Let me think."),
    ),
    "a call": (
        {"tool_calls": [ADD], "chunk_chars": 3},
        Assembled(calls=CALLS[:1], finish="tool_calls"),
    ),
    "a call without arguments": ({"tool_calls": [NOW]}, Assembled(calls=CALLS[1:], finish="tool_calls")),
    "parallel calls behind text and reasoning": (
        {"text": "Both.", "reasoning": "Hm.", "tool_calls": [ADD, NOW], "chunk_chars": 5},
        Assembled(text="Both.", reasoning="Hm.", calls=CALLS, finish="tool_calls"),
    ),
    "parallel calls whose deltas alternate": (
        {"tool_calls": [ADD, NOW], "chunk_chars": 2, "quirks": ["interleaved"]},
        Assembled(calls=CALLS, finish="tool_calls"),
    ),
    "an answer cut at its limit": (
        {"text": "Once upon", "finish": "length"},
        Assembled(text="Once upon", finish="length"),
    ),
    "usage with a cache and reasoning": (
        {
            "text": "a",
            "usage": {
                "input_tokens": 9,
                "cache_read_tokens": 4,
                "output_tokens": 5,
                "reasoning_tokens": 3,
            },
        },
        Assembled(text="a", usage=(9, 5, 4, 0)),
    ),
    "lines that end in CR LF": ({"text": "Hello.", "quirks": ["crlf"]}, Assembled(text="Hello.")),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_client_reads_what_the_script_says(reader: str) -> None:
    make_client, read = READERS[reader]
    answers = [{"usage": USAGE, **spec} for spec, _ in CASES.values()]
    with running_gateway(answers) as gateway, make_client(gateway) as client:
        read_back = {name: read(client) for name in CASES}
    assert read_back == {name: expected for name, (_, expected) in CASES.items()}


FAILURES: dict[str, tuple[str, str, str, str]] = {
    "openai-chat": ("openai-chat stream", "RateLimitError", "slow down", "The server had an error"),
    "openai-responses": (
        "openai-responses stream by its helper",
        "RateLimitError",
        "slow down",
        "The server had an error",
    ),
    "anthropic-messages": ("anthropic-messages stream", "RateLimitError", "slow down", "Overloaded"),
    "gemini": ("gemini stream", "ClientError", "RESOURCE_EXHAUSTED", "The model is overloaded"),
}


@pytest.mark.parametrize("dialect", FAILURES)
def test_the_official_client_understands_a_failure(dialect: str) -> None:
    reader, kind, refusal, in_stream = FAILURES[dialect]
    make_client, read = READERS[reader]
    answers = [
        {"error": {"message": "slow down"}, "status": 429},
        {"text": "a long answer that is cut", "quirks": ["error_in_stream"]},
    ]
    with running_gateway(answers) as gateway, make_client(gateway) as client:
        with pytest.raises(Exception, match=refusal) as refused:
            read(client)
        with pytest.raises(Exception, match=in_stream):
            read(client)
    assert type(refused.value).__name__ == kind

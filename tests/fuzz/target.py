"""What is fuzzed: one input is a body with settings in front; ``check`` raises if anything about it is wrong.

The first byte chooses the dialect, the second the profile of chat and the split. Inputs that failed once lie
in ``tests/recorded/fuzz`` and are checked by ``tests/spec/test_fuzz_findings.py`` for ever after.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lockstitch.history.assemble import Assembler, Grammar
from lockstitch.history.decode import Decoded, Decoder
from lockstitch.providers.classify import MESSAGE_CHARS, classify
from lockstitch.providers.retry_after import LONGEST_S
from lockstitch.schema.blocks import ToolCall
from lockstitch.schema.chunks import Chunk, Finish
from lockstitch.wire import strict_json
from lockstitch.wire.sse import SseDecoder

DIALECTS: Final = ("openai-chat", "anthropic-messages", "openai-responses", "gemini")
CHAT_PROFILES: Final = ("generic", "deepseek", "moonshot", "qwen", "vllm", "minimax")
RECORDED: Final = Path(__file__).parents[1] / "recorded"
TOOLS: Final = ("ls", "read", "read_file", "get_weather")


def check(data: bytes) -> None:
    """Decodes the input whole and in pieces, and holds the results against the promises."""
    if len(data) < 2:
        return
    body = data[2:]
    dialect = DIALECTS[data[0] % len(DIALECTS)]
    profile = CHAT_PROFILES[data[1] % len(CHAT_PROFILES)] if dialect == "openai-chat" else None
    whole = decoded([body], dialect, profile)
    size = data[1] // len(CHAT_PROFILES) + 1
    assert decoded([body[at : at + size] for at in range(0, len(body), size)], dialect, profile) == whole
    check_framing(body, size)
    check_refusal(body, status=data[1] * 2 + 100)


def decoded(reads: list[bytes], dialect: str, profile: str | None) -> Decoded:
    decoder = Decoder(dialect, profile=profile, tools=TOOLS)
    chunks: list[Chunk] = []
    for read in reads:
        chunks += decoder.feed(read)
    chunks += decoder.end()
    assert [type(chunk) for chunk in chunks].count(Finish) == 1
    grammar, assembler = Grammar(), Assembler()
    for chunk in chunks:
        grammar.check(chunk)
        assembler.add(chunk)
    result = decoder.result
    assert result.finish is chunks[-1] is assembler.finish
    assert assembler.ignored == 0
    json.dumps(result.to_json()).encode()
    for block in result.content:
        if isinstance(block, ToolCall):
            assert block.id and block.name and result.finish.failure is None
            if block.invalid is None:
                strict_json.arguments(block.arguments)
    return result


def check_framing(body: bytes, size: int) -> None:
    one, pieces = SseDecoder(), SseDecoder()
    frames = one.feed(body) + one.end()
    again = [frame for at in range(0, len(body), size) for frame in pieces.feed(body[at : at + size])]
    assert again + pieces.end() == frames
    assert (one.comments, one.strays) == (pieces.comments, pieces.strays)


def check_refusal(body: bytes, *, status: int) -> None:
    """The same bytes as the body of an error answer, and as what its headers say."""
    said = body[:200].decode("latin-1")
    headers = {"retry-after": said, "x-ratelimit-reset": said, "x-ratelimit-remaining": "0", "date": said}
    for refused in (classify(status, {}, body), classify(429, headers, body, now_s=0.0)):
        json.dumps(msgspec.to_builtins(refused), allow_nan=False).encode()
        assert len(refused.message) <= MESSAGE_CHARS and refused.message.isprintable()
        assert 0 <= (refused.retry_after_s or 0) <= LONGEST_S


def seeds() -> Iterator[tuple[str, bytes]]:
    """The bodies of the field cases, with settings in front, by name."""
    for line in (RECORDED / "cases/wire.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        given = case["input"]
        body = b"".join(
            [base64.b64decode(read) for read in given["raw_b64"]]
            if "raw_b64" in given
            else [
                f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
                for event in given["events"]
            ]
        )
        profile = given.get("profile", "generic")
        second = CHAT_PROFILES.index(profile) if profile in CHAT_PROFILES else 0
        yield case["id"], bytes((DIALECTS.index(given["protocol"]), second)) + body

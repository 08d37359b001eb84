"""The field cases: what users met, through the same function as ``lockstitch wire decode``.

A line of ``tests/recorded/cases/wire.jsonl`` is one case; ``wire_more.jsonl`` holds further ones of the same
kinds, ``derived`` or reduced from the report in ``source``. ``input`` has the payload of each ``data:``
line, or the reads of a body as base64; ``expected`` the message, finish, usage and class of error, or
``one_of`` several; ``<synthetic>`` stands for any fresh id, and null arguments with ``invalid`` for a call
that must not be run.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from chat_streams import reasoning_of, text_of

from lockstitch.history.decode import Decoded, decode
from lockstitch.schema.blocks import ToolCall
from lockstitch.wire import strict_json

RECORDED = Path(__file__).parents[1] / "recorded" / "cases"
CASES = {
    case["id"]: case
    for name in ("wire.jsonl", "wire_more.jsonl")
    for case in map(json.loads, (RECORDED / name).read_text(encoding="utf-8").split("\n")[:-1])
}
CODES = {
    "empty_response": ("EMPTY_RESPONSE",),
    "stream_truncated": ("STREAM_CLOSED",),
    "malformed_model_output": ("MALFORMED_TOOL_CALL", "MALFORMED_RESPONSE"),
    "overloaded": ("OVERLOADED",),
    "upstream_error": ("SERVER", "OVERLOADED"),
    "protocol_error": ("MALFORMED_RESPONSE", "NOT_AN_API"),
    "malformed_frame": ("MALFORMED_RESPONSE",),
    "not_an_api": ("NOT_AN_API",),
    "rate_limited": ("RATE_LIMIT",),
    "quota": ("QUOTA",),
    "auth": ("AUTH",),
    "content_filter": ("CONTENT_FILTER",),
    "context_overflow": ("CONTEXT_WINDOW_EXCEEDED",),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("split", ["reads as recorded", "one byte a read"])
def test_a_field_case_comes_out_as_expected(name: str, split: str) -> None:
    given, expected = CASES[name]["input"], CASES[name]["expected"]
    reads = reads_of(given)
    if split == "one byte a read":
        reads = [bytes([byte]) for read in reads for byte in read]
    http = given.get("http", {})
    decoded = decode(
        reads,
        given["protocol"],
        profile=given.get("profile"),
        tools=given.get("tools", ()),
        status=http.get("status", 200),
        content_type=http.get("content_type"),
    )
    complaints = [differences(decoded, outcome) for outcome in expected.get("one_of", [expected])]
    assert [] in complaints, complaints


def reads_of(given: dict[str, Any]) -> list[bytes]:
    if "raw_b64" in given:
        return [base64.b64decode(read) for read in given["raw_b64"]]
    reads = []
    for event in given["events"]:
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        named = given["protocol"] in ("anthropic-messages", "openai-responses") and isinstance(event, dict)
        reads.append((f"event: {event['type']}\n" if named else "").encode() + f"data: {data}\n\n".encode())
    return reads


def differences(decoded: Decoded, expected: dict[str, Any]) -> list[str]:
    """How an answer differs from an outcome; parts that the outcome leaves open are not compared."""
    found = [("finish", decoded.finish.reason, expected["finish"])]
    error, failure = expected.get("error"), decoded.finish.failure
    if error is None:
        found.append(("failure", failure, None))
    else:
        code = failure.code if failure is not None and failure.code in CODES[error["class"]] else None
        found.append(("code", failure and failure.code, code or CODES[error["class"]]))
        found.append(("retryable", failure and failure.retryable, error["retryable"]))
    if expected.get("message") is not None:
        found += message_pairs(decoded, expected["message"])
    if expected.get("usage") is not None:
        found += usage_pairs(decoded, expected["usage"])
    if expected.get("warning") == "text_tool_call":
        found.append(("note", any(note.kind == "text_tool_call" for note in decoded.notes), True))
    return [f"{what}: {got!r}, not {wanted!r}" for what, got, wanted in found if got != wanted]


def message_pairs(decoded: Decoded, message: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    content = message.get("content", "")
    text = text_of(decoded)
    if content.endswith("..."):
        content = text if text.startswith(content[:-3]) else content
    calls = [block for block in decoded.content if isinstance(block, ToolCall)]
    wanted = []
    for position, one in enumerate(message.get("tool_calls", [])):
        minted = one["id"] == "<synthetic>" and position < len(calls)
        arguments = None if one.get("invalid") else one["arguments"]
        wanted.append((calls[position].id if minted else one["id"], one["name"], arguments))
    got = [
        (block.id, block.name, None if block.invalid else strict_json.arguments(block.arguments))
        for block in calls
    ]
    return [
        ("content", text, content),
        ("reasoning", reasoning_of(decoded), message.get("reasoning", "")),
        ("calls", got, wanted),
        ("distinct ids", len({block.id for block in calls}), len(calls)),
    ]


def usage_pairs(decoded: Decoded, wanted: dict[str, int]) -> list[tuple[str, Any, Any]]:
    usage = decoded.usage
    if usage is None:
        return [("usage", None, wanted)]
    got = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "context_total": usage.context_tokens,
    }
    return [("usage", {key: got[key] for key in wanted}, wanted)]

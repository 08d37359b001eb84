"""Every recorded error wording gets its code, through the public function, in every shape a body can have."""

import json
from pathlib import Path
from typing import Any

import pytest

from lockstitch.providers.classify import classify

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "recorded/cases/errors.jsonl").read_text().splitlines()
]
STRUCTURE = {"INVALID_STRUCTURE"}
ALLOWED = {
    "tool_result_orphan": STRUCTURE,
    "tool_call_unanswered": STRUCTURE,
    "tool_id_invalid": STRUCTURE,
    "duplicate_tool_id": STRUCTURE,
    "role_order": STRUCTURE,
    "empty_content": STRUCTURE,
    "thinking_signature": STRUCTURE,
    "context_overflow": {"CONTEXT_WINDOW_EXCEEDED"},
    "rate_limit": {"RATE_LIMIT"},
    "quota": {"QUOTA"},
    "overloaded": {"OVERLOADED"},
    "auth": {"AUTH"},
    "unsupported_model": {"MODEL_NOT_FOUND"},
}
BAD_PARAM = {
    "image dimensions": "UNSUPPORTED_CONTENT",
    "image exceeds": "UNSUPPORTED_CONTENT",
    "Invalid schema": "INVALID_TOOL_SCHEMA",
    "413 Request": "REQUEST_TOO_LARGE",
    "max_tokens: 48000": "OUTPUT_LIMIT",
    "reasoning": "INVALID_STRUCTURE",
    "surrogate": "INVALID_STRUCTURE",
    "tool_calls[]": "INVALID_STRUCTURE",
    "temperature": "INVALID_REQUEST",
    "top_p": "INVALID_REQUEST",
}
OTHER = {"missing finish_reason": "STREAM_CLOSED", "(no body)": "INVALID_REQUEST"}


def expected(case: dict[str, Any]) -> set[str]:
    exact = {"bad_param": BAD_PARAM, "other": OTHER}.get(case["kind"])
    if exact is None:
        return ALLOWED[case["kind"]]
    return {next(code for words, code in exact.items() if words in case["message"])}


def ratio(case: dict[str, Any]) -> float:
    """What the recorded notes say about the window: nearly full for an overflow, else nearly empty."""
    return 0.95 if case["kind"] == "context_overflow" else 0.2


SHAPES = {
    "an openai object": lambda text: {
        "error": {"message": text, "type": "invalid_request_error", "code": None}
    },
    "an anthropic object": lambda text: {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": text},
    },
    "bytes of JSON": lambda text: json.dumps({"error": {"message": text, "code": None}}).encode(),
    "the error as text": lambda text: json.dumps({"error": text}),
    "fastapi's detail": lambda text: json.dumps({"detail": text}),
    "fastapi's list": lambda text: json.dumps(
        {"detail": [{"loc": ["body"], "msg": text, "type": "value_error"}]}
    ),
    "a message at the top": lambda text: json.dumps({"object": "error", "message": text, "code": 40000}),
    "plain text": lambda text: text,
    "a nested error": lambda text: {"error": {"error": {"message": text}}},
    "a list": lambda text: json.dumps([{"error": {"message": text, "status": "FAILED_PRECONDITION"}}]),
    "openrouter's raw": lambda text: {
        "error": {
            "message": "Provider returned error",
            "metadata": {"provider_name": "P", "raw": json.dumps({"error": {"message": text}})},
        }
    },
    "litellm's prefix": lambda text: {
        "error": {
            "message": "litellm.BadRequestError: XException - " + json.dumps({"error": {"message": text}})
        }
    },
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES, ids=[f"{case['provider']}: {case['message'][:70]}" for case in CASES])
def test_every_recorded_wording_gets_its_code(case: dict[str, Any], shape: str) -> None:
    said = SHAPES[shape](case["message"])
    found = classify(case["status"], {}, said, context_ratio=ratio(case))
    assert found.code in expected(case)


LIMITS = [case for case in CASES if case["kind"] == "context_overflow" and "(no body)" not in case["message"]]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
@pytest.mark.parametrize("case", LIMITS, ids=[case["message"][:70] for case in LIMITS])
def test_an_overflow_wording_is_no_overflow_at_429_and_5xx(case: dict[str, Any], status: int) -> None:
    assert classify(status, {}, case["message"]).code in {"RATE_LIMIT", "SERVER", "OVERLOADED"}


STRUCTURAL = [case for case in CASES if ALLOWED.get(case["kind"]) is STRUCTURE]


@pytest.mark.parametrize("status", [None, 200, 400, 422, 500, 502])
@pytest.mark.parametrize("case", STRUCTURAL, ids=[case["message"][:70] for case in STRUCTURAL])
def test_structural_words_are_structural_at_any_status(case: dict[str, Any], status: int | None) -> None:
    found = classify(status, {}, {"error": {"message": case["message"]}})
    assert (found.code, found.recovery, found.retryable) == ("INVALID_STRUCTURE", "ladder", False)

"""When to come back, said by an error inside an answer with status 200: in whatever place and words, it is
what the same error would say as a body of its own.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lockstitch.history.decode import decode
from lockstitch.providers.classify import classify
from lockstitch.providers.dialects import DIALECTS
from lockstitch.providers.retry_after import LONGEST_S

Error = dict[str, Any]
LIMIT = {"message": "Rate limit reached", "type": "rate_limit_error"}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}


def beside(**fields: Any) -> Error:
    """An answer whose error has these fields beside it."""
    return {"error": LIMIT, **fields}


ERRORS: dict[str, tuple[Error, float]] = {
    "a sentence": ({"error": {**LIMIT, "message": "Rate limit reached. Please try again in 7s."}}, 7.0),
    "a number in the error": ({"error": {**LIMIT, "retry_after": 7}}, 7.0),
    "milliseconds in the error": ({"error": {**LIMIT, "retry_after_ms": 7000}}, 7.0),
    "a number beside the error": (beside(retry_after=7), 7.0),
    "text beside the error": (beside(retryAfter="7s"), 7.0),
    "milliseconds beside the error": (beside(retry_after_ms="7000"), 7.0),
    "headers beside the error": (beside(headers={"Retry-After": "7"}), 7.0),
    "headers in the error": ({"error": {**LIMIT, "metadata": {"headers": {"retry-after": "7"}}}}, 7.0),
    "a limit that begins anew": (
        {
            "error": {
                **LIMIT,
                "metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "7"}},
            }
        },
        7.0,
    ),
    "Gemini's details": (
        {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "", "details": [RETRY_INFO]}},
        7.0,
    ),
    "details beside a text": ({"error": "rate limit exceeded", "code": 429, "details": [RETRY_INFO]}, 7.0),
    "an overloaded provider": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "retry_after": 7},
        7.0,
    ),
    "a number without end": (beside(retry_after=10**30), LONGEST_S),
}


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def failed(value: Error) -> bytes:
    return frame({"type": "response.failed", "response": {"status": "failed", **value}})


PLACES: dict[str, tuple[Callable[[Error], bytes], tuple[str, ...]]] = {
    "a frame": (frame, tuple(DIALECTS)),
    "a frame of a list": (lambda value: frame([value]), tuple(DIALECTS)),
    "an event of errors": (lambda value: b"event: error\n" + frame(value), tuple(DIALECTS)),
    "a JSON body": (lambda value: json.dumps(value).encode(), tuple(DIALECTS)),
    "text behind a frame": (
        lambda value: frame({"type": "ping"}) + json.dumps(value).encode(),
        tuple(DIALECTS),
    ),
    "a choice": (
        lambda value: frame({**value, "error": None, "choices": [{"delta": {}, "error": value["error"]}]}),
        ("openai-chat",),
    ),
    "a failed response": (failed, ("openai-responses",)),
    "the event of a failed response": (
        lambda value: frame({**value, "type": "response.failed"}),
        ("openai-responses",),
    ),
}
CASES = [
    pytest.param(dialect, place, name, id=f"{dialect}, {place}: {name}")
    for place, (_, dialects) in PLACES.items()
    for dialect in dialects
    for name in ERRORS
    # What lies beside the error of a choice or of a response says when, and not what kind.
    if not (len(dialects) == 1 and "details beside" in name)
]


@pytest.mark.parametrize(("dialect", "place", "name"), CASES)
def test_an_error_in_a_stream_says_when_to_come_back(dialect: str, place: str, name: str) -> None:
    value, delay_s = ERRORS[name]
    failure = decode(PLACES[place][0](value), dialect).finish.failure
    alone = classify(429, {}, json.dumps(value)).failure
    assert failure is not None
    assert failure.code in ("RATE_LIMIT", "OVERLOADED")
    assert failure.retry_after_s == delay_s == alone.retry_after_s


BARE: dict[str, tuple[Error, str]] = {
    "a code and a message": ({"code": "Throttling", "message": "Requests rate limit exceeded"}, "RATE_LIMIT"),
    "Qianfan's": ({"error_code": 18, "error_msg": "Open api qps request limit reached"}, "RATE_LIMIT"),
    "a code and a msg": ({"code": 1305, "msg": "Too many requests, rate limit exceeded"}, "RATE_LIMIT"),
    "Cloudflare's": ({"success": False, "errors": [{"code": 3040, "message": "Rate limited"}]}, "RATE_LIMIT"),
    "a status and a message": ({"status": 429, "message": "Too Many Requests"}, "RATE_LIMIT"),
    "a status alone in a code": ({"statusCode": 429, "code": 429, "message": "slow down"}, "RATE_LIMIT"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("place", ["a frame", "a JSON body"])
def test_an_error_without_the_word_is_one(dialect: str, name: str, place: str) -> None:
    value, code = BARE[name]
    failure = decode(PLACES[place][0](value), dialect).finish.failure
    assert failure is not None and failure.code == code


NO_ERRORS = {
    "a code that says all is well": {"code": 0, "message": "ok"},
    "a message beside data": {"code": 1, "msg": "ok", "data": {"id": "x"}},
    "a status of a response": {"status": "completed", "message": "done"},
    "a status that is none of failure": {"status": 200, "message": "ok"},
    "success with errors of nobody": {"success": True, "errors": []},
    "a message without a code": {"msg": "queued"},
}


@pytest.mark.parametrize("name", NO_ERRORS)
def test_a_frame_that_says_something_else_is_no_error(name: str) -> None:
    answer = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert decode(frame(NO_ERRORS[name]) + frame(answer), "openai-chat").finish.failure is None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("said", [-7, "soon", None, True, [], {}])
def test_what_is_no_delay_says_nothing(dialect: str, said: Any) -> None:
    failure = decode(frame(beside(retry_after=said)), dialect).finish.failure
    assert failure is not None
    assert (failure.code, failure.retry_after_s) == ("RATE_LIMIT", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_without_its_wrapper_is_known_by_its_type(dialect: str) -> None:
    decoded = decode(frame({"type": "overloaded_error", "message": "Overloaded", "retry_after": 7}), dialect)
    failure = decoded.finish.failure
    assert failure is not None
    assert (failure.code, failure.retry_after_s) == ("OVERLOADED", 7.0)

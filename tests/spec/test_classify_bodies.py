"""Error bodies of every shape, hostile ones too: what is read from them, and what never happens."""

import json
import re
from re import _constants, _parser  # type: ignore[attr-defined]  # private, but the only reader of patterns
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.providers import error_body, wordings
from lockstitch.providers.catalog import profile
from lockstitch.providers.classify import Classified, classify, recovery_of
from lockstitch.schema.failures import RETRYABLE, FailureCode, failure

BY_STATUS = {
    400: ("INVALID_REQUEST", "ladder"),
    401: ("AUTH", "none"),
    402: ("QUOTA", "none"),
    403: ("AUTH", "none"),
    404: ("MODEL_NOT_FOUND", "none"),
    405: ("NOT_AN_API", "none"),
    408: ("TIMEOUT", "retry"),
    409: ("SERVER", "retry"),
    413: ("REQUEST_TOO_LARGE", "drop_media"),
    422: ("INVALID_REQUEST", "ladder"),
    429: ("RATE_LIMIT", "retry"),
    451: ("CONTENT_FILTER", "none"),
    500: ("SERVER", "retry"),
    502: ("SERVER", "retry"),
    503: ("SERVER", "retry"),
    504: ("SERVER", "retry"),
    520: ("SERVER", "retry"),
    529: ("OVERLOADED", "retry"),
    302: ("NOT_AN_API", "none"),
}

NOTHING_SAID = [
    "",
    " \n",
    "null",
    "{}",
    "[]",
    '""',
    b"",
    b"\xff\xfe",
    {},
    {"error": {}},
    {"error": None},
    {"message": ""},
]


@pytest.mark.parametrize("body", NOTHING_SAID, ids=repr)
@pytest.mark.parametrize("status", BY_STATUS)
def test_a_body_that_says_nothing_leaves_it_to_the_status(status: int, body: Any) -> None:
    found = classify(status, {}, body)
    assert (found.code, found.recovery) == BY_STATUS[status]


RATIOS = {
    None: "INVALID_REQUEST",
    0.0: "INVALID_REQUEST",
    0.89: "INVALID_REQUEST",
    0.9: "CONTEXT_WINDOW_EXCEEDED",
    3.0: "CONTEXT_WINDOW_EXCEEDED",
}
MUTE = [
    "",
    "400 status code (no body)",
    "Bad Request",
    {"error": {"message": "", "type": "invalid_request_error", "code": 400}},
]


@pytest.mark.parametrize("body", MUTE, ids=repr)
@pytest.mark.parametrize(("ratio", "code"), RATIOS.items())
def test_a_400_without_a_body_is_judged_by_the_windows_fill(
    body: Any, ratio: float | None, code: str
) -> None:
    assert classify(400, {}, body, context_ratio=ratio).code == code


@pytest.mark.parametrize("status", [401, 403, 404, 413, 429, 500, 502, 529])
def test_a_full_window_means_nothing_at_another_status(status: int) -> None:
    assert classify(status, {}, "", context_ratio=5).code != "CONTEXT_WINDOW_EXCEEDED"


def test_a_full_window_means_nothing_where_the_body_says_what_is_wrong() -> None:
    assert classify(400, {}, "temperature must be between 0 and 2", context_ratio=5).code == "INVALID_REQUEST"


PAGES = {
    502: "SERVER",
    503: "SERVER",
    429: "RATE_LIMIT",
    413: "REQUEST_TOO_LARGE",
    403: "AUTH",
    404: "NOT_AN_API",
    400: "NOT_AN_API",
    200: "NOT_AN_API",
}


@pytest.mark.parametrize(("status", "code"), PAGES.items())
def test_a_page_is_its_status_and_shows_its_title_only(status: int, code: str) -> None:
    head = "<!DOCTYPE html><html><head><title>\n Some  gateway </title></head>"
    page = f"{head}<body>unexpected role 'tool'</body></html>"
    found = classify(status, {}, page)
    assert found.code == code
    assert '"Some gateway"' in found.message
    assert "unexpected role" not in found.message


IN_STREAM = {
    "a number as the code": ({"error": {"message": "x", "code": 502}}, "SERVER"),
    "a number as text": ({"error": {"message": "x", "code": "429"}}, "RATE_LIMIT"),
    "a status of google's": ({"error": {"message": "x", "status": "UNAVAILABLE"}}, "OVERLOADED"),
    "anthropic's type": (
        {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
        "RATE_LIMIT",
    ),
    "anthropic's own fault": ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "SERVER"),
    "a failed response": ({"code": "server_error", "message": "x"}, "SERVER"),
    "a refusal": ({"error": {"type": "invalid_request_error", "message": "x"}}, "INVALID_REQUEST"),
    "minimax's numbers": ({"base_resp": {"status_code": 1008, "status_msg": "x"}}, "QUOTA"),
    "minimax, busy": ({"base_resp": {"status_code": 1002, "status_msg": "x"}}, "RATE_LIMIT"),
    "nothing known": ({"error": {"message": "x"}}, "SERVER"),
    "a text alone": ("x", "UNKNOWN"),
    "a broken connection": ({"error": "upstream error: read ECONNRESET"}, "TRANSPORT"),
    "a structure": ({"error": {"message": "unexpected role 'tool'", "code": 500}}, "INVALID_STRUCTURE"),
}


@pytest.mark.parametrize("status", [None, 200])
@pytest.mark.parametrize(("body", "code"), IN_STREAM.values(), ids=IN_STREAM)
def test_errors_inside_an_accepted_answer(body: Any, code: str, status: int | None) -> None:
    assert classify(status, {}, body).code == code


NUMBERS = {
    ("minimax", None, 1008): "QUOTA",
    ("minimax", None, 1002): "RATE_LIMIT",
    ("minimax", None, 1039): "RATE_LIMIT",
    ("minimax", None, 1027): "CONTENT_FILTER",
    ("minimax", None, 2049): "AUTH",
    ("minimax", None, 1033): "SERVER",
    ("zai", 429, "1113"): "QUOTA",
    ("zhipu", 429, "1302"): "RATE_LIMIT",
    ("zhipu", 400, "1211"): "MODEL_NOT_FOUND",
    ("zhipu", 401, "1002"): "AUTH",
    ("zhipu", 400, "1301"): "CONTENT_FILTER",
    ("zhipu", 400, "1261"): "CONTEXT_WINDOW_EXCEEDED",
    ("zhipu", 400, "1112"): "AUTH",
    ("zhipu", 429, "1310"): "QUOTA",
    ("zai", 429, "1312"): "OVERLOADED",
    ("generic", 400, "1301"): "INVALID_REQUEST",
    ("generic", 400, "1261"): "INVALID_REQUEST",
}


@pytest.mark.parametrize(("sender", "code"), NUMBERS.items())
def test_a_vendors_own_numbers_count_for_that_vendor(sender: tuple[str, int | None, Any], code: str) -> None:
    name, status, number = sender
    assert classify(status, {}, {"error": {"code": number, "message": "x"}}, profile=name).code == code


def test_the_status_of_the_answer_wins_over_one_in_its_body() -> None:
    assert classify(429, {}, {"error": {"message": "x", "code": 400}}).code == "RATE_LIMIT"
    assert classify(400, {}, {"error": {"message": "x", "code": 500}}).code == "INVALID_REQUEST"


ECHOES = {
    "fastapi's input": {
        "detail": [
            {
                "type": "missing",
                "loc": ["body", "model"],
                "msg": "Field required",
                "input": "prompt is too long",
            }
        ]
    },
    "groq's failed generation": {"error": {"message": "bad", "failed_generation": "context_length_exceeded"}},
    "pydantic's input_value": {
        "error": {
            "message": "1 validation error [type=int, input_value='prompt is too long', input_type=str]"
        }
    },
    "a request repeated": {"error": "cannot parse; messages = [{'content': 'maximum context length'}]"},
}


@pytest.mark.parametrize("body", ECHOES.values(), ids=ECHOES)
def test_the_users_own_words_are_not_classified(body: Any) -> None:
    assert classify(400, {}, body).code in {"INVALID_REQUEST", "MALFORMED_TOOL_CALL"}


def test_a_request_larger_than_a_whole_limit_must_change_before_it_is_sent_again() -> None:
    over = "on tokens per min (TPM): Limit 30000, Requested 342389."
    used = "on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000."
    assert (classify(429, {}, over).code, classify(429, {}, over).recovery) == (
        "RATE_LIMIT",
        "lower_max_tokens",
    )
    assert (classify(429, {}, used).code, classify(429, {}, used).recovery) == ("RATE_LIMIT", "retry")


def test_a_model_without_eyes_is_sent_the_request_without_images() -> None:
    found = classify(400, {}, "deepseek-chat is not a multimodal model")
    assert (found.code, found.recovery) == ("MODEL_NOT_FOUND", "drop_media")


def test_the_message_says_who_what_and_what_next_in_one_line() -> None:
    found = classify(
        400,
        {"X-Request-Id": "req-1"},
        {"error": {"message": "prompt is\ntoo long", "type": "invalid_request_error"}},
        profile=profile("deepseek"),
    )
    assert found.message == (
        "deepseek: the request is larger than the model's window (HTTP 400): "
        '"prompt is too long"; compact the history'
    )
    assert found.failure == failure(
        "CONTEXT_WINDOW_EXCEEDED",
        found.message,
        status=400,
        request_id="req-1",
        provider_code="invalid_request_error",
        provider_message="prompt is\ntoo long",
    )


def test_a_redirect_says_where_to_without_its_query() -> None:
    found = classify(302, {"Location": "https://login.example/sso?token=abc"}, "")
    assert "https://login.example/sso" in found.message
    assert "abc" not in found.message


@pytest.mark.parametrize("code", get_args(FailureCode))
def test_every_code_has_one_way_out(code: FailureCode) -> None:
    way = recovery_of(failure(code, "x"))
    assert way != "retry" or code in RETRYABLE
    assert way != "none" or code not in RETRYABLE


# ---- hostile input -----------------------------------------------------------------------------------

HOSTILE = {
    "deep arrays": "[" * 100_000,
    "deep objects": '{"error":' * 100_000,
    "deep objects, closed": '{"error":' * 5000 + "1" + "}" * 5000,
    "JSON in JSON in JSON": json.dumps(
        json.dumps(json.dumps({"message": json.dumps({"error": "x" * 1000})}))
    ),
    "ten megabytes": b"x" * 10_000_000,
    "ten megabytes of words": b"tokens exceed " * 700_000,
    "a thousand messages": {"errors": [{"message": "x" * 1000}] * 1000},
    "no UTF-8": bytes(range(256)) * 100,
    "lone surrogates": '{"error":{"message":"\\ud800\\udfff\\udc00"}}',
    "NUL": '{"error":{"message":"a\\u0000b"}}',
    "a NaN": '{"error":{"code":NaN,"message":Infinity}}',
    "a huge number": '{"error":{"code":' + "9" * 5000 + "}}",
    "keys that are no strings": {1: {"error": "x"}, None: 2},
    "every type": {"error": [None, True, 1, 1.5, "x", {}, [], {"message": {"message": ["x"]}}]},
    "an unclosed page": "<html><title>" + "<" * 100_000,
    "half a cycle of proxies": {
        "error": {"message": '{"error":{"message":"{\\"error\\":\\"Overloaded\\"}"}}'}
    },
}


def check(found: Classified) -> None:
    assert found.code in get_args(FailureCode)
    assert found.retryable == (found.code in RETRYABLE)
    assert found.message
    assert len(found.message) < 1000
    assert found.message.isprintable()
    assert len(found.failure.provider_message or "") <= 2000
    assert len(found.failure.provider_code or "") <= 200
    assert found.retry_after_s is None or found.retry_after_s >= 0


@pytest.mark.parametrize("status", [None, 400, 429, 500])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bodies_are_survived(body: Any, status: int | None) -> None:
    check(classify(status, {}, body))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(["429", "overloaded_error", "prompt is too long"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "code",
                    "type",
                    "status",
                    "detail",
                    "metadata",
                    "raw",
                    "details",
                    "retryDelay",
                    "base_resp",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    body=JSON | st.binary(max_size=200) | st.text(max_size=200),
    status=st.none() | st.integers(100, 599),
    headers=st.dictionaries(
        st.sampled_from(["Retry-After", "retry-after-ms", "x-request-id", "location", "date"]),
        st.text(max_size=40),
    ),
)
def test_anything_at_all_gets_a_code_and_a_message(
    body: Any, status: int | None, headers: dict[str, str]
) -> None:
    check(classify(status, headers, body))


@given(JSON)
def test_a_body_reads_the_same_as_bytes_as_text_and_decoded(value: Any) -> None:
    if isinstance(value, str | bytes | int | float) or value is None:
        return
    text = json.dumps(value)
    decoded = json.loads(text)
    assert error_body.read(text) == error_body.read(text.encode()) == error_body.read(decoded)


def test_only_the_beginning_of_a_text_is_searched() -> None:
    far = "x" * error_body.SEARCHED_CHARS + " prompt is too long"
    assert classify(400, {}, far).code == "INVALID_REQUEST"
    assert len(error_body.read("y " * 1_000_000).searched()) <= error_body.SEARCHED_CHARS


PHRASES = [
    line.strip()
    for row in wordings.TABLE
    for line in (row.phrases + "\n" + row.unless).splitlines()
    if line.strip()
]
UNBOUNDED = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)


def repeats(pattern: Any, inside: int = 0) -> list[int]:
    """For each repeat of a parsed pattern, how many boundless ones it stands in, itself included."""
    found: list[int] = []
    for operation, argument in pattern:
        if operation in UNBOUNDED:
            _, most, body = argument
            depth = inside + (most > 200)
            found += [depth, *repeats(body, depth)]
        elif operation is _constants.SUBPATTERN:
            found += repeats(argument[-1], inside)
        elif operation is _constants.BRANCH:
            for branch in argument[1]:
                found += repeats(branch, inside)
        elif operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            found += repeats(argument[1], inside)
    return found


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_phrase_repeats_without_a_bound_inside_a_repeat(phrase: str) -> None:
    parsed = _parser.parse(phrase.replace(" ... ", wordings.GAP))
    assert max(repeats(parsed), default=0) <= 1
    re.compile(phrase)


def test_the_check_of_phrases_sees_a_catastrophic_one() -> None:
    assert max(repeats(_parser.parse(r"(?:a+)+b"))) == 2
    assert max(repeats(_parser.parse(r"(?:a{1,12} ){0,3}b"))) == 0

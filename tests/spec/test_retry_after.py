"""When to come back: headers in three units, three forms of a date, and sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.providers.classify import classify
from lockstitch.providers.retry_after import LONGEST_S, duration_s, from_headers, http_date_s

NOW_S = 1_792_567_680.0  # Wed, 21 Oct 2026 07:28:00 GMT

HEADERS = {
    "seconds": ({"retry-after": "20"}, 20.0),
    "a fraction of seconds": ({"retry-after": "1.5"}, 1.5),
    "zero": ({"retry-after": "0"}, 0.0),
    "a duration": ({"retry-after": "1m30s"}, 90.0),
    "milliseconds": ({"retry-after-ms": "1500"}, 1.5),
    "azure's milliseconds": ({"x-ms-retry-after-ms": "250"}, 0.25),
    "milliseconds win over rounded seconds": ({"retry-after": "2", "retry-after-ms": "1200"}, 1.2),
    "a date": ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
    "a date from the answer's own clock": (
        {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:25 GMT"},
        5.0,
    ),
    "a date with dashes": ({"retry-after": "Wednesday, 21-Oct-26 07:28:30 GMT"}, 30.0),
    "a date of C": ({"retry-after": "Wed Oct 21 07:28:30 2026"}, 30.0),
    "a date that has passed": ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, 0.0),
    "a negative number has passed": ({"retry-after": "-5"}, 0.0),
    "20 digits are more than a year": ({"retry-after": "9" * 20}, LONGEST_S),
    "endless digits are more than a year": ({"retry-after": "9" * 400}, LONGEST_S),
    "a number beyond all floats is more than a year": ({"retry-after": "1e400"}, LONGEST_S),
    "an exponent is read": ({"retry-after": "2e1"}, 20.0),
    "a number without its zero is read": ({"retry-after": ".5"}, 0.5),
    "endless milliseconds are more than a year": ({"retry-after-ms": "9" * 20}, LONGEST_S),
    "a duration of endless digits is more than a year": ({"retry-after": "9" * 30 + "s"}, LONGEST_S),
    "a date in the year 9999 is more than a year": (
        {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
        LONGEST_S,
    ),
    "a Unix time in place of seconds is a date": ({"retry-after": "1792567710"}, 30.0),
    "a Unix time in milliseconds too": ({"retry-after": "1792567710500"}, 30.5),
    "also in a header of milliseconds": ({"retry-after-ms": "1792567710500"}, 30.5),
    "a Unix time that has passed": ({"retry-after": "1792567000"}, 0.0),
    "a word is none": ({"retry-after": "soon"}, None),
    "infinity is none": ({"retry-after": "inf"}, None),
    "not a number is none": ({"retry-after": "nan"}, None),
    "an impossible date is none": ({"retry-after": "Wed, 31 Feb 2026 07:28:30 GMT"}, None),
    "blank is none": ({"retry-after": " "}, None),
    "no header": ({}, None),
}


@pytest.mark.parametrize(("headers", "seconds"), HEADERS.values(), ids=HEADERS)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert from_headers(headers, now_s=NOW_S) == seconds


def test_a_date_without_any_clock_says_nothing() -> None:
    assert from_headers({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}) is None


def test_header_names_are_read_in_any_case() -> None:
    assert classify(429, {"Retry-After": "7"}, b"").retry_after_s == 7.0


DATES = ["Wed, 21 Oct 2026 07:28:00 GMT", "Wednesday, 21-Oct-26 07:28:00 GMT", "Wed Oct 21 07:28:00 2026"]


@pytest.mark.parametrize("text", DATES)
def test_all_three_forms_of_a_date_are_one_moment(text: str) -> None:
    assert http_date_s(text) == NOW_S


DURATIONS = {"38.50225s": 38.502, "1m26.4s": 86.4, "523ms": 0.523, "2 minutes": 120.0, "7m12s": 432.0,
             "1 hour and 3 minutes": 3780.0, "3 hours, 2 minutes, 1 second": 10921.0, "1 day": 86400.0,
             "20": None, "4 models": None, "s": None, "": None}  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds


BODIES = {
    "openai": ({"error": {"message": "Rate limit reached for m. Please try again in 20s. Visit x."}}, 20.0),
    "openai, milliseconds": ({"error": {"message": "Limit 3. Please try again in 523ms."}}, 0.523),
    "groq": ({"error": {"message": "Please try again in 7m12.5s. Need more tokens?"}}, 432.5),
    "azure": ({"error": {"code": "429", "message": "Please retry after 26 seconds."}}, 26.0),
    "gemini's words": (
        {"error": {"message": "Quota exceeded.\nPlease retry in 38.502s.", "code": 429}},
        38.502,
    ),
    "google's RetryInfo": (
        {"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}]}},
        38.0,
    ),
    "RetryInfo as an object": ({"error": {"details": [{"retryDelay": {"seconds": 38}}]}}, 38.0),
    "a field": ({"detail": "slow", "retry_after": 12}, 12.0),
    "a field as text": ({"error": {"message": "slow", "retry_after": "12"}}, 12.0),
    "bedrock says nothing": ({"message": "Too many tokens, please wait before trying again."}, None),
    "a number of 20 digits in a field": ({"error": {"message": "slow", "retry_after": 10**20}}, LONGEST_S),
    "a number beyond all floats in a field": ({"retry_after": 10**400}, LONGEST_S),
    "an integer too long to be written out": ({"retry_after": 10**5000, "code": 10**5000}, LONGEST_S),
    "a text of 20 digits in a field": ({"error": {"message": "slow", "retry_after": "9" * 20}}, LONGEST_S),
    "a negative field says nothing": ({"error": {"message": "slow", "retry_after": -1}}, None),
    "no number in a field says nothing": ({"error": {"message": "slow", "retry_after": float("nan")}}, None),
    "milliseconds in a field": ({"message": "slow", "retry_after_ms": 1500}, 1.5),
    "a duration in a field of milliseconds": ({"message": "slow", "retry_after_ms": "2s"}, 2.0),
    "RetryInfo's seconds as text": ({"error": {"details": [{"retryDelay": {"seconds": "38"}}]}}, 38.0),
    "RetryInfo beyond all floats": ({"details": [{"retryDelay": {"seconds": 10**400}}]}, LONGEST_S),
    "RetryInfo of endless digits": ({"details": [{"retryDelay": "9" * 40 + "s"}]}, LONGEST_S),
    "a sentence of endless digits": ({"message": f"Please try again in {'9' * 40}s."}, LONGEST_S),
    "headers that a proxy passes on": ({"error": {"metadata": {"headers": {"Retry-After": "7"}}}}, 7.0),
    "other numbers are no delay": (
        {"error": {"message": "Limit 30000, Requested 342389 tokens in 2 models"}},
        None,
    ),
}


@pytest.mark.parametrize(("body", "seconds"), BODIES.values(), ids=BODIES)
def test_bodies(body: dict[str, object], seconds: float | None) -> None:
    assert classify(429, {}, body).retry_after_s == seconds


RESETS = {
    "openrouter's, in the body, in milliseconds": (
        {},
        {"metadata": {"headers": {"X-RateLimit-Reset": "1792567725000", "X-RateLimit-Remaining": "0"}}},
        45.0,
    ),
    "in seconds": ({"x-ratelimit-reset": "1792567725", "x-ratelimit-remaining": "0"}, {}, 45.0),
    "seconds from now": ({"ratelimit-reset": "45", "ratelimit-remaining": "0"}, {}, 45.0),
    "something remains": ({"ratelimit-reset": "45", "ratelimit-remaining": "3"}, {}, None),
    "what remains is not said": ({"ratelimit-reset": "45"}, {}, None),
    "a sentence is better": (
        {"ratelimit-reset": "45", "ratelimit-remaining": "0"},
        {"message": "try again in 20s"},
        20.0,
    ),
}


@pytest.mark.parametrize(("headers", "error", "seconds"), RESETS.values(), ids=RESETS)
def test_the_end_of_a_limit(headers: dict[str, str], error: dict[str, object], seconds: float | None) -> None:
    assert classify(429, headers, {"error": error}, now_s=NOW_S).retry_after_s == seconds


def test_the_end_of_a_limit_is_not_known_without_a_clock() -> None:
    headers = {"x-ratelimit-reset": "1792567725", "x-ratelimit-remaining": "0"}
    assert classify(429, headers, b"").retry_after_s is None


@given(st.text(max_size=60) | st.integers().map(str) | st.floats().map(str))
def test_any_header_gives_a_delay_that_can_be_written_down(text: str) -> None:
    for name in ("retry-after", "retry-after-ms", "date", "x-ratelimit-reset"):
        headers = {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "x-ratelimit-remaining": "0", name: text}
        for now_s in (None, NOW_S):
            seconds = classify(429, headers, b"", now_s=now_s).retry_after_s
            assert seconds is None or 0 <= seconds <= LONGEST_S


def test_a_header_wins_over_the_body() -> None:
    assert (
        classify(429, {"retry-after": "3"}, {"error": {"message": "try again in 20s"}}).retry_after_s == 3.0
    )

"""Retry policy: which failures, how often, how long."""

import pytest

from lockstitch.llm.retry import GiveUp, RetryAfter, RetryPolicy, after_failure, spoken
from lockstitch.providers.retry_after import LONGEST_S
from lockstitch.schema.failures import RETRYABLE, failure

POLICY = RetryPolicy()


def decide(
    code: str = "SERVER", *, retry: int = 1, elapsed_s: float = 0, jitter: float = 0, **details: object
):
    return after_failure(
        POLICY, failure(code, "x", **details), retry=retry, elapsed_s=elapsed_s, jitter=jitter
    )


def test_retry_policy_pins_the_new_default_retryable_set() -> None:
    assert RetryPolicy().retryable == RETRYABLE == {
        "EMPTY_RESPONSE",
        "MALFORMED_TOOL_CALL",
        "MALFORMED_RESPONSE",
        "STREAM_CLOSED",
        "RATE_LIMIT",
        "OVERLOADED",
        "SERVER",
        "TIMEOUT",
        "TRANSPORT",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "delays"),
    {
        "SERVER": [0.5, 1, 2, 4, 8],
        "MALFORMED_TOOL_CALL": [0.5, 1, 2, 4, 8],
        "RATE_LIMIT": [0.5, 1, 2, 4, 8, 16, 30, 30],
        "OVERLOADED": [0.5, 1, 2, 4, 8, 16, 30, 30],
    }.items(),
)
def test_waits_double_up_to_their_limit_and_then_the_turn_gives_up(code: str, delays: list[float]) -> None:
    decisions = [decide(code, retry=count) for count in range(1, len(delays) + 2)]
    assert decisions == [RetryAfter(delay) for delay in delays] + [
        GiveUp(f"{code} after {len(delays)} retries")
    ]


def test_a_longer_series_stops_at_ten_seconds() -> None:
    patient = RetryPolicy(backoff=type(POLICY.backoff)(retries=10_000, max_delay_s=10))
    waits = {
        after_failure(patient, failure("SERVER", "x"), retry=count, elapsed_s=0, jitter=0)
        for count in (6, 7, 9999)
    }
    assert waits == {RetryAfter(10)}


def test_jitter_lengthens_a_wait_by_at_most_a_tenth() -> None:
    assert decide(retry=2, jitter=0.5) == RetryAfter(1.05)
    assert decide(retry=2, jitter=0.999).delay_s < 1.1


ASKED = {
    "a Retry-After is kept": (20.0, RetryAfter(20.0)),
    "also one shorter than our own wait": (1.0, RetryAfter(1.0)),
    "none at all grows like our own, or all retries would be gone at once": (0.0, RetryAfter(2.0)),
    "a tenth of a second too": (0.1, RetryAfter(2.0)),
    "an absurd one is a long one": (
        LONGEST_S,
        GiveUp("RATE_LIMIT: the provider asks to come back in more than a year"),
    ),
    "up to a minute": (60.0, RetryAfter(60.0)),
    "beyond a minute the turn fails and says when": (
        61.0,
        GiveUp("RATE_LIMIT: the provider asks to come back in 61 seconds"),
    ),
    "in hours, if it is hours": (9000.0, GiveUp("RATE_LIMIT: the provider asks to come back in 2.5 hours")),
}


@pytest.mark.parametrize(("asked_s", "decision"), ASKED.values(), ids=ASKED)
def test_retry_after(asked_s: float, decision: RetryAfter | GiveUp) -> None:
    assert decide("RATE_LIMIT", retry=3, retry_after_s=asked_s) == decision


def test_retries_end_with_their_time() -> None:
    assert decide(elapsed_s=299) == RetryAfter(0.5)
    assert decide(elapsed_s=299.9) == GiveUp("SERVER: 5 minutes for retries are used up")
    assert decide("RATE_LIMIT", elapsed_s=250, retry_after_s=55) == GiveUp(
        "RATE_LIMIT: 5 minutes for retries are used up"
    )


@pytest.mark.parametrize(
    "code", ["AUTH", "QUOTA", "INVALID_STRUCTURE", "CONTEXT_WINDOW_EXCEEDED", "UNKNOWN", "ABORTED"]
)
def test_what_waiting_does_not_cure_is_not_retried(code: str) -> None:
    assert decide(code) == GiveUp(f"{code} is not retried")


def test_a_request_larger_than_a_whole_limit_is_not_sent_again_as_it_is() -> None:
    found = decide("RATE_LIMIT", subkind="over_whole_limit", retry_after_s=2)
    assert found == GiveUp("RATE_LIMIT: the request alone exceeds the limit, so it must change first")


def test_a_policy_may_narrow_or_widen_the_set() -> None:
    narrow = RetryPolicy(retryable=frozenset({"SERVER"}))
    wide = RetryPolicy(retryable=RETRYABLE | {"UNKNOWN"})
    unknown, limited = failure("UNKNOWN", "x"), failure("RATE_LIMIT", "x")
    assert after_failure(narrow, limited, retry=1, elapsed_s=0, jitter=0) == GiveUp(
        "RATE_LIMIT is not retried"
    )
    assert after_failure(wide, unknown, retry=1, elapsed_s=0, jitter=0) == RetryAfter(0.5)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (90, "90 seconds"), (120, "2 minutes"), (5400, "90 minutes"), (200_000, "2.3 days")],
)
def test_delays_are_spoken(seconds: float, text: str) -> None:
    assert spoken(seconds) == text

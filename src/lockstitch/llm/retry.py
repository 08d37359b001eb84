"""Whether and when a failed model call is tried again: pure, so that the answer can be logged and replayed.

Counts and times come in as arguments, because they live in the session's log and survive a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..providers.retry_after import LONGEST_S
from ..schema.failures import RETRYABLE, Failure, FailureCode


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often, and how the wait grows."""

    retries: int
    """After the first try."""
    max_delay_s: float
    """Longest own wait; a provider's Retry-After may be longer."""


DEFAULT_BACKOFF: Final = Backoff(retries=5, max_delay_s=10.0)
CROWDED: Final = Backoff(retries=8, max_delay_s=30.0)
"""For a provider that works but has no room: worth more patience, because each try costs nothing."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """One provider's policy. The defaults are those of every provider."""

    backoff: Backoff = DEFAULT_BACKOFF
    by_code: Mapping[FailureCode, Backoff] = field(
        default_factory=lambda: {"RATE_LIMIT": CROWDED, "OVERLOADED": CROWDED}
    )
    retryable: frozenset[FailureCode] = RETRYABLE
    """Narrow or widen it here; ``Failure.retryable`` is only the default of its code."""
    initial_delay_s: float = 0.5
    """Doubles with each retry."""
    jitter_ratio: float = 0.1
    max_elapsed_s: float = 300.0
    """From the first try of a step: no retry starts later than this."""
    max_retry_after_s: float = 60.0
    """A provider that asks for more is not waited for; the turn fails and says when to come back."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str
    """One line for people: why there is no further try, and when one would make sense."""


Decision: TypeAlias = RetryAfter | GiveUp

SHORT_S: Final = 1.0
"""Providers also ask for no wait at all: in a header that is rounded down, or a date past by their clock."""
HOPELESS: Final = frozenset({"over_whole_limit"})
"""Subkinds under which the same request can never pass: its own recovery must change it first."""


def after_failure(
    policy: RetryPolicy, failure: Failure, *, retry: int, elapsed_s: float, jitter: float
) -> Decision:
    """What follows a failed attempt.

    ``retry`` counts up from 1: the retry that would come now. ``elapsed_s`` is the time since the first
    attempt of the step began. ``jitter`` in [0, 1) spreads the wait upwards by at most ``jitter_ratio``, so
    that clients that failed together do not come back together; a wait the provider asked for is never
    shortened. One of under a second grows like our own: else all retries were gone before anything changed.
    """
    if failure.code not in policy.retryable:
        return GiveUp(f"{failure.code} is not retried")
    if failure.subkind in HOPELESS:
        return GiveUp(f"{failure.code}: the request alone exceeds the limit, so it must change first")
    backoff = policy.by_code.get(failure.code, policy.backoff)
    asked_s = failure.retry_after_s
    if asked_s is not None and asked_s > policy.max_retry_after_s:
        return GiveUp(f"{failure.code}: the provider asks to come back in {spoken(asked_s)}")
    if retry > backoff.retries:
        return GiveUp(
            f"{failure.code} after {backoff.retries} {'retry' if backoff.retries == 1 else 'retries'}"
        )
    # 64 doublings exceed any limit; the bound keeps a wild count from becoming a huge integer
    own_s = min(policy.initial_delay_s * 2 ** min(max(retry - 1, 0), 64), backoff.max_delay_s)
    if asked_s is None or asked_s < SHORT_S:
        asked_s = max(asked_s or 0.0, own_s)
    delay_s = asked_s * (1 + policy.jitter_ratio * jitter)
    if elapsed_s + delay_s > policy.max_elapsed_s:
        return GiveUp(f"{failure.code}: {spoken(policy.max_elapsed_s)} for retries are used up")
    return RetryAfter(delay_s)


def spoken(seconds: float) -> str:
    """A delay as people say it: ``90 seconds``, ``15 minutes``, ``3.5 hours``; never nothing."""
    if seconds >= LONGEST_S:
        return "more than a year"
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    whole = max(round(seconds), 1)
    return f"{whole} {'second' if whole == 1 else 'seconds'}"

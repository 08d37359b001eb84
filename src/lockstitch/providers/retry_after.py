"""When to come back, as a provider says it: headers in three units, dates, and sentences.

Everything here is pure: the time of the answer comes in as an argument or from its own Date header. Every
delay is between 0 and ``LONGEST_S``, however absurd the text: one that is too long is no reason to come back
at once.

Sources: RFC 9110 section 10.2.3 (Retry-After); openai-python 3.57.0 (openai/_base_client.py: retry-after-ms);
https://github.com/googleapis/googleapis (google/rpc/error_details.proto: RetryInfo, read 2026-11-30);
https://github.com/cloudfoundry/cloud_controller_ng/issues/2544 (a Unix time in Retry-After) and
https://github.com/Gitlawb/openclaude/issues/936 (OpenRouter's X-RateLimit-Reset), read 2026-12-01.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from math import isnan
from typing import Final

MILLISECOND_HEADERS = ("retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms")
SECOND_HEADERS = ("retry-after", "x-retry-after", "x-ms-retry-after")
RESET_HEADERS = (
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
)
"""When a limit begins anew, which matters only if nothing remains of it. OpenAI's ``-requests`` and
``-tokens`` are not here: those come back little by little, and a request may go through long before."""
LONGEST_S: Final = 366 * 86400.0
"""A longer delay is this one."""
_EPOCH_S: Final = 1e9
"""From here on a number of seconds is a moment: no provider asks to be left alone for 30 years."""
_EPOCH_MS: Final = 1e11
"""From here on such a moment is in milliseconds."""

_UNIT_S = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_TEXT_MAX: Final = 1024
"""Characters of a header that are read."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def from_headers(headers: Mapping[str, str], *, now_s: float | None = None) -> float | None:
    """Seconds from the answer until a retry is welcome; None if the headers do not say.

    Millisecond variants win over seconds, because gateways that send both round the seconds. A date is
    measured from the answer's own Date header, else from ``now_s`` (Unix seconds); with neither it is None.
    A moment that has passed is 0.0. ``headers`` has lower-case names.
    """
    for name in MILLISECOND_HEADERS:
        value = number(headers.get(name, ""))
        if value is not None:
            return bounded(value / 1000) if value < _EPOCH_MS else _from_now(value, headers, now_s)
    for name in SECOND_HEADERS:
        text = headers.get(name, "")
        seconds = _delay(text, headers, now_s)
        if seconds is None:
            seconds = _until(text, headers, now_s)
        if seconds is not None:
            return seconds
    return None


def from_reset_headers(headers: Mapping[str, str], *, now_s: float | None = None) -> float | None:
    """Seconds until a limit of which nothing remains is lifted; None if the headers do not say. Some count
    from now, others are Unix times in seconds or milliseconds; those need a clock, as above.
    """
    for reset, remaining in RESET_HEADERS:
        if number(headers.get(remaining, "")) == 0:
            text = headers.get(reset, "")
            value = number(text)
            if value is not None and value >= _EPOCH_S and _clock(headers, now_s) is None:
                return None
            if (seconds := _delay(text, headers, now_s)) is not None:
                return seconds
    return None


def duration_s(text: str) -> float | None:
    """Seconds of a whole duration such as ``38.5s``, ``1m26.4s``, ``523ms`` or ``2 minutes``; else None."""
    found = _patterns().duration.fullmatch(text.strip().lower()) if len(text) <= _TEXT_MAX else None
    return _total(found.group(0)) if found else None


def from_text(text: str) -> float | None:
    """Seconds of the first "try again in ...", "retry after ..." or "wait ..." in lower-case ``text``."""
    found = _patterns().sentence.search(text)
    return _total(found.group(1)) if found else None


def number(text: str) -> float | None:
    """The number that a text is, of any size; None for every other text, infinity and NaN included."""
    stripped = text.strip()
    if len(stripped) > _TEXT_MAX or not _patterns().number.fullmatch(stripped):
        return None
    return float(stripped)


def bounded(seconds: float) -> float:
    """A delay that can be waited for and written down: what has passed is 0."""
    return 0.0 if isnan(seconds) else round(min(max(0.0, seconds), LONGEST_S), 3)


def http_date_s(text: str) -> float | None:
    """Unix seconds of an HTTP date in any of its three forms; None if it is none. Independent of locale."""
    if len(text) > 64:
        return None
    stripped = text.strip().lower()
    if found := _patterns().day_first.fullmatch(stripped):
        day, month, year, *clock = found.groups()
    elif found := _patterns().month_first.fullmatch(stripped):
        month, day, *clock, year = found.groups()
    else:
        return None
    full_year = int(year) if len(year) == 4 else int(year) + (2000 if int(year) < 70 else 1900)
    hour, minute, second = (int(part) for part in clock)
    try:
        moment = datetime(
            full_year, _MONTHS.index(month) + 1, int(day), hour, minute, min(second, 59), tzinfo=UTC
        )
    except ValueError:
        return None
    return moment.timestamp()


def _delay(text: str, headers: Mapping[str, str], now_s: float | None) -> float | None:
    """Seconds of a number or a duration."""
    value = number(text)
    if value is None:
        return duration_s(text)
    return bounded(value) if value < _EPOCH_S else _from_now(value, headers, now_s)


def _from_now(moment: float, headers: Mapping[str, str], now_s: float | None) -> float:
    """Seconds until a Unix time, in seconds or milliseconds."""
    clock_s = _clock(headers, now_s)
    return bounded((moment / 1000 if moment >= _EPOCH_MS else moment) - (clock_s or 0.0))


def _until(text: str, headers: Mapping[str, str], now_s: float | None) -> float | None:
    then_s, clock_s = http_date_s(text), _clock(headers, now_s)
    return None if then_s is None or clock_s is None else bounded(then_s - clock_s)


def _clock(headers: Mapping[str, str], now_s: float | None) -> float | None:
    answered_s = http_date_s(headers.get("date", ""))
    return now_s if answered_s is None else answered_s


def _total(text: str) -> float:
    parts = _patterns().part.findall(text)
    return bounded(sum(float(amount) * _UNIT_S[unit] for amount, unit in parts))


class _Patterns:
    def __init__(self) -> None:
        unit = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
        # Possessive, so that endless digits are read once.
        amount = rf"\d++(?:\.\d++)? ?(?:{unit})(?![a-z])"
        compact = r"\d++(?:\.\d++)?(?:ms|s|m|h|d)"
        several = rf"(?:{compact}){{1,4}}(?![a-z])|{amount}(?:(?:,? and |,? ){amount}){{0,3}}"
        self.number = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
        self.duration = re.compile(several)
        self.sentence = re.compile(
            r"(?:(?:try|retry|retrying|again|available|resets?|back) (?:again )?(?:in|after)"
            r"|wait|retry_?-?(?:after|delay)['\"]?[:=]) ?"
            rf"(?:about |approximately |at least |for |another |['\"])?({several})"
        )
        self.part = re.compile(
            r"(\d+(?:\.\d+)?) ?"
            r"(millisecond|ms|second|sec|s|minute|min|m|hour|hr|h|day|d)(?![a-rt-z])"
        )
        month = f"({'|'.join(_MONTHS)})"
        clock = r"(\d\d):(\d\d):(\d\d)"
        self.day_first = re.compile(
            rf"[a-z]{{3,9}}, (\d\d?)[ -]{month}[ -](\d{{4}}|\d\d) {clock} (?:gmt|utc)"
        )
        self.month_first = re.compile(rf"[a-z]{{3}} {month} {{1,2}}(\d\d?) {clock} (\d{{4}})")


@cache
def _patterns() -> _Patterns:
    return _Patterns()

"""When to come back, as a provider says it: headers in three units, dates, and sentences.

Everything here is pure: the time of the answer comes in as an argument or from its own Date header.
Sources: RFC 9110 section 10.2.3 (Retry-After); openai-python 3.57.0 (openai/_base_client.py: retry-after-ms);
https://github.com/googleapis/googleapis (google/rpc/error_details.proto: RetryInfo, read 2026-11-30).
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from math import isfinite

MILLISECOND_HEADERS = ("retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms")
SECOND_HEADERS = ("retry-after", "x-retry-after", "x-ms-retry-after")

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
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def from_headers(headers: Mapping[str, str], *, now_s: float | None = None) -> float | None:
    """Seconds from the answer until a retry is welcome; None if the headers do not say.

    Millisecond variants win over seconds, because gateways that send both round the seconds. A date is
    measured from the answer's own Date header, else from ``now_s`` (Unix seconds); with neither it is None.
    A moment that has passed is 0.0. ``headers`` has lower-case names.
    """
    for name in MILLISECOND_HEADERS:
        value = _number(headers.get(name, ""))
        if value is not None:
            return value / 1000
    for name in SECOND_HEADERS:
        text = headers.get(name, "")
        seconds = _number(text)
        if seconds is None:
            seconds = duration_s(text)
        if seconds is None:
            seconds = _until(text, headers.get("date", ""), now_s)
        if seconds is not None:
            return seconds
    return None


def duration_s(text: str) -> float | None:
    """Seconds of a whole duration such as ``38.5s``, ``1m26.4s``, ``523ms`` or ``2 minutes``; else None."""
    found = _patterns().duration.fullmatch(text.strip().lower()) if len(text) <= 64 else None
    return _total(found.group(0)) if found else None


def from_text(text: str) -> float | None:
    """Seconds of the first "try again in ...", "retry after ..." or "wait ..." in lower-case ``text``."""
    found = _patterns().sentence.search(text)
    return _total(found.group(1)) if found else None


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


def _until(text: str, date: str, now_s: float | None) -> float | None:
    then_s = http_date_s(text)
    if then_s is None:
        return None
    answered_s = http_date_s(date)
    from_s = now_s if answered_s is None else answered_s
    return None if from_s is None else round(max(0.0, then_s - from_s), 3)


def _number(text: str) -> float | None:
    stripped = text.strip()
    if not stripped or len(stripped) > 32 or not _patterns().number.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if isfinite(value) else None


def _total(text: str) -> float:
    parts = _patterns().part.findall(text)
    return round(sum(float(amount) * _UNIT_S[unit] for amount, unit in parts), 3)


class _Patterns:
    def __init__(self) -> None:
        unit = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
        amount = rf"\d{{1,9}}(?:\.\d{{1,9}})? ?(?:{unit})(?![a-z])"
        compact = r"\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d)"
        several = rf"(?:{compact}){{1,4}}(?![a-z])|{amount}(?:(?:,? and |,? ){amount}){{0,3}}"
        self.number = re.compile(r"\d{1,15}(?:\.\d{0,9})?")
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

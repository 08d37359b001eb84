"""What providers say when they refuse, as a table: the first row that fits a status and a text decides.

Order is meaning. Rows above shield rows below: what an output limit, a limit per minute or a quota shares
with an overflow ("maximum", "tokens", "exceeds") is told apart here and nowhere else. The phrases themselves
are in ``wordings_structure``, ``wordings_limits``, ``wordings_service`` and ``wordings_content``, one a line.

A phrase is a regular expression over ``error_body.normalised`` text (lower case, every quote a ``'``, single
spaces), in which `` ... `` stands for a gap of at most 60 characters. No phrase repeats without a bound
inside a repeat, so each is linear in a text that is itself at most 8 KiB.

Public reports of these wordings: tests/recorded/cases/errors.jsonl and tests/spec/test_classify_wordings.py.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from ..schema.failures import FailureCode
from . import wordings_content as content
from . import wordings_limits as limits
from . import wordings_service as service
from . import wordings_structure as structure
from .error_statuses import (
    ACCESS,
    ANY,
    BUSY_AT,
    DETERMINISTIC,
    IN_STREAM,
    MODEL_AT,
    PAYLOAD,
    QUOTA_AT,
    REQUEST,
    ROUTE,
    SERVER,
    WAITING_AT,
    Statuses,
)

GAP: Final = r".{0,60}"


class Row(NamedTuple):
    code: FailureCode
    statuses: Statuses
    phrases: str
    subkind: str | None = None
    unless: str = ""
    """Phrases that overrule the row."""


TABLE: Final = (
    Row("INVALID_STRUCTURE", ANY, structure.CALLS_WITHOUT_TOOLS, subkind="calls_without_tools"),
    Row("INVALID_STRUCTURE", ANY, structure.PHRASES),
    Row("RATE_LIMIT", WAITING_AT, limits.RATE),
    Row("QUOTA", QUOTA_AT, limits.QUOTA),
    Row("TIMEOUT", SERVER, service.TIMEOUT),
    Row("OVERLOADED", BUSY_AT, service.OVERLOADED),
    Row("AUTH", ACCESS, service.AUTH, unless=service.AUTH_NOT),
    Row("CONTENT_FILTER", DETERMINISTIC | {403, 451}, content.FILTER),
    Row("MALFORMED_TOOL_CALL", REQUEST, content.BAD_CALL),
    Row("INVALID_TOOL_SCHEMA", DETERMINISTIC, content.TOOL_SCHEMA),
    Row("OUTPUT_LIMIT", REQUEST, limits.OUTPUT, unless=limits.OUTPUT_NOT),
    Row("CONTEXT_WINDOW_EXCEEDED", REQUEST, limits.OVERFLOW),
    Row("MODEL_NOT_FOUND", DETERMINISTIC, content.NO_IMAGES, subkind="no_images"),
    Row("UNSUPPORTED_CONTENT", PAYLOAD, content.MEDIA),
    Row("REQUEST_TOO_LARGE", REQUEST, limits.TOO_LARGE),
    Row("MODEL_NOT_FOUND", DETERMINISTIC, service.NO_TOOLS, subkind="no_tools"),
    Row("MODEL_NOT_FOUND", MODEL_AT, service.MODEL),
    Row("MODEL_NOT_FOUND", DETERMINISTIC, service.CHANNEL),
    Row("NOT_AN_API", ROUTE, service.NOT_AN_API),
    Row("INVALID_STRUCTURE", REQUEST, structure.POINTERS),
    Row("INVALID_REQUEST", REQUEST, content.PARAMETER, subkind="parameter"),
    Row("CONTEXT_WINDOW_EXCEEDED", REQUEST, limits.UNEXPLAINED_TOKENS, unless=limits.UNEXPLAINED_TOKENS_NOT),
    Row("STREAM_CLOSED", IN_STREAM, service.STREAM_CLOSED),
    Row("TRANSPORT", IN_STREAM, service.TRANSPORT),
)
"""In order of precedence."""


def by_wording(text: str, status: int | None, *, skip: frozenset[FailureCode]) -> Row | None:
    """The first row whose statuses hold ``status`` and a phrase of which is in the normalised ``text``."""
    for row, pattern, overruled in _compiled():
        if status not in row.statuses or row.code in skip or not pattern.search(text):
            continue
        if overruled is None or not overruled.search(text):
            return row
    return None


@cache
def _compiled() -> tuple[tuple[Row, re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple((row, _pattern(row.phrases), _pattern(row.unless) if row.unless else None) for row in TABLE)


def _pattern(phrases: str) -> re.Pattern[str]:
    lines = (line.strip() for line in phrases.splitlines())
    return re.compile("|".join(line.replace(" ... ", GAP) for line in lines if line))

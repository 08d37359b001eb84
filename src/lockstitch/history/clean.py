"""Texts and arguments as every provider can read them: well-formed, without NUL, arguments an object."""

import operator
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ..schema.notes import Anomaly
from ..wire.strict_json import InvalidJson, arguments, is_object, well_formed

ANOMALY_CHARS: Final = 300
"""Longest text of an anomaly: it is logged, and says what happened, not all of what it happened to."""
REPLACEMENT: Final = "\ufffd"
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Cleaned(NamedTuple):
    """A text that can be sent, and the kinds of anomaly that it took, in the order they were met."""

    text: str
    anomalies: tuple[str, ...] = ()


def anomaly(kind: str, where: str, ids: Iterable[str] = (), detail: str = "") -> Anomaly:
    """An anomaly whose texts can be logged, whatever the history's ids and names hold."""
    known = tuple(clean_text(call_id).text[:ANOMALY_CHARS] for call_id in ids)
    return Anomaly(kind, where, known, clean_text(detail).text[:ANOMALY_CHARS])


def is_clean(text: str) -> bool:
    """Whether the text can be sent as it is. Cheap."""
    if "\0" in text:
        return False
    return text.isascii() or well_formed(text) is text


def clean_text(text: str) -> Cleaned:
    """The text with NUL and lone surrogates replaced by U+FFFD. Cheap where there is nothing to do."""
    if is_clean(text):
        return Cleaned(text)
    kinds: list[str] = []
    formed = well_formed(text)
    if formed != text:
        kinds.append("surrogate_replaced")
    if "\0" in formed:
        formed = formed.replace("\0", REPLACEMENT)
        kinds.append("nul_replaced")
    return Cleaned(formed, tuple(kinds))


def clean_value(value: Any) -> Any:
    """A JSON value with every text in it cleaned; the value itself where nothing was to do."""
    if isinstance(value, str):
        return clean_text(value).text
    if isinstance(value, list):
        items = [clean_value(item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, dict):
        fields = {clean_value(key): clean_value(item) for key, item in value.items()}
        same = len(fields) == len(value) and all(map(operator.is_, fields.values(), value.values()))
        return value if same and all(map(operator.is_, fields, value)) else fields
    return value


def clean_arguments(text: str) -> Cleaned:
    """Arguments as the text of a JSON object; ``{}`` where they were none, because the pair has to stay.

    A text that is an object already comes back as it is, whatever its spacing.
    """
    if is_object(text):
        return Cleaned(text)
    try:
        value = arguments(text)
    except InvalidJson:
        return Cleaned("{}", ("arguments_replaced",))
    if not value and not text.strip().startswith("{"):
        return Cleaned("{}")  # Empty and null are no arguments; nothing is lost.
    if text.isascii() and not _SURROGATE_ESCAPE.search(text):
        return Cleaned(text)
    rewritten = msgspec.json.encode(value).decode()
    if well_formed(text) == text and _decodes_alike(text, value):
        return Cleaned(text)
    return Cleaned(rewritten, ("surrogate_replaced",))


def _decodes_alike(text: str, value: object) -> bool:
    """Whether the text itself holds no lone surrogate, not even an escaped one."""
    try:
        return bool(msgspec.json.decode(text) == value)
    except (msgspec.DecodeError, UnicodeError):
        return False

"""Strict JSON at every ingress: bounded depth, no NaN, well-formed text.

Strict means RFC 8259 with two limits of our own: nesting of at most ``MAX_DEPTH``, and no lone surrogates,
which become U+FFFD because UTF-8 (and so the log and every provider) cannot carry them.
"""

import json
import re
from typing import Any, Final, NoReturn

import msgspec

MAX_DEPTH: Final = 100
"""Deeper values are invalid. RFC 8259, section 9, allows a limit; every parser of a provider has one."""

REPLACEMENT: Final = "\ufffd"

_decode: Final = msgspec.json.Decoder().decode
_STRUCTURE = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class InvalidJson(ValueError):  # noqa: N818  # reads as what it is, in `except` as in text
    """A text is not what was asked for; ``reason`` says why in a few words.

    ``kind`` is ``not_json`` or ``not_an_object``, the words a tool call is marked with.
    """

    def __init__(self, reason: str, *, kind: str = "not_json") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


def parse(text: str | bytes) -> Any:
    """The value of a JSON text, with lone surrogates replaced.

    Bytes must be UTF-8. Raises InvalidJson on anything else, on NaN and Infinity, and below ``MAX_DEPTH``.
    """
    if _openers(text) > MAX_DEPTH and depth(text) > MAX_DEPTH:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH}")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return _parse_slowly(text)
    except RecursionError as error:
        raise InvalidJson("nested too deeply") from error


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a tool call. An empty text and ``null`` are no arguments.

    Raises InvalidJson with kind ``not_json`` or ``not_an_object``.
    """
    if not text or text.isspace():
        return {}
    value = parse(text)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidJson(f"arguments are a JSON {_type_name(value)}, not an object", kind="not_an_object")
    return value


def is_object(text: str) -> bool:
    """Whether a glance shows that the text is that of an object, well-formed and not deep; cheap.

    False says nothing: ``arguments`` looks closer.
    """
    if len(text) > MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH:
        return False
    try:
        return type(_decode(text)) is dict
    except (msgspec.DecodeError, UnicodeError):
        return False


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, and pairs put together; the same object if there
    is none.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def encoded(value: Any) -> str:
    """A parsed value as JSON text, well-formed whatever it holds."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(well_formed_value(value)).decode()


def well_formed_value(value: Any) -> Any:
    """A parsed value with ``well_formed`` applied to every string and key in it."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_value(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(str(key)): well_formed_value(item) for key, item in value.items()}
    return value


def depth(text: str | bytes) -> int:
    """How deep a JSON text nests. Linear, and right for a valid text; for others it errs either way."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    level = deepest = 0
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark in "[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in "]}":
            level -= 1
    return deepest


def _openers(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return text.count(b"[") + text.count(b"{")
    return text.count("[") + text.count("{")


def _parse_slowly(text: str | bytes) -> Any:
    # msgspec refuses the escape of a lone surrogate; the standard library reads it, and it is replaced.
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except InvalidJson:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidJson(str(error) or "not JSON") from error
    return well_formed_value(value)


def _refuse_constant(word: str) -> NoReturn:
    raise InvalidJson(f"{word} is not JSON")


def _type_name(value: object) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), type(value).__name__)

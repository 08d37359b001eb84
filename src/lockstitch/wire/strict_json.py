"""Strict JSON at every ingress: bounded depth and size, numbers that can be kept, well-formed text.

Strict means RFC 8259 with limits of our own: nesting of at most ``MAX_DEPTH``, at most ``VALUES_MAX`` values,
and no lone surrogates, which become U+FFFD because UTF-8 (and so the log and every provider) cannot carry
them. Of repeated keys the last counts, as in every parser of a provider.

A number is an integer of up to 4,300 digits (Python's limit for reading one) or a binary64. One that is
neither (``1e999``) would become infinity, which JSON cannot hold, so that it would be stored as null. It is
refused where a text is to be JSON; ``lenient`` asks its caller what is to stand for it; and ``encoded``
writes it as a text. So null always means null.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec

MAX_DEPTH: Final = 100
"""Deeper values are invalid. RFC 8259, section 9, allows a limit; every parser of a provider has one."""

VALUES_MAX: Final = 1_000_000
"""Values, keys not counted, of one text. Empty objects make 32 MiB of text into more than 1 GiB of memory; so
many of any kind stay below 250 MiB beside their texts."""

REPLACEMENT: Final = "\ufffd"

_decode: Final = msgspec.json.Decoder().decode
# A string without its end reaches to the end of the text: else the search would begin again at each of its
# escaped quotes, and 80 KB of them took 26 seconds.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


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

    Bytes must be UTF-8. Raises InvalidJson on anything else, on numbers that cannot be kept, below
    ``MAX_DEPTH`` and beyond ``VALUES_MAX``.
    """
    check_bounds(text)
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


def refuse_number(digits: str) -> NoReturn:
    """Raises InvalidJson for a number that cannot be kept."""
    shown = digits if len(digits) <= 40 else f"{digits[:20]}... ({len(digits):,} digits)"
    raise InvalidJson(f"{shown} is no number that JSON and a double can hold")


def lenient(text: str, unkept: Callable[[str], Any] = refuse_number, *, controls: bool = False) -> Any:
    """The value of a JSON text, lone surrogates and all; with ``controls`` as they are in strings, too.

    ``unkept`` is given the text of each number that cannot be kept (NaN, Infinity, 1e999, an integer of more
    than 4,300 digits), and returns what is to stand for it, or raises. Raises InvalidJson for what is no
    JSON; bounds are for ``check_bounds``.
    """

    def whole(digits: str) -> Any:
        try:
            return int(digits)
        except ValueError:
            return unkept(digits)

    def real(digits: str) -> Any:
        return finite(digits, unkept)

    try:
        return json.loads(text, parse_constant=unkept, parse_float=real, parse_int=whole, strict=not controls)
    except InvalidJson:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidJson(str(error) or "not JSON") from error


def finite(digits: str, unkept: Callable[[str], Any] = refuse_number) -> Any:
    """The binary64 nearest to a number's text; what ``unkept`` gives for NaN and for one that none holds."""
    number = float(digits)
    return number if math.isfinite(number) else unkept(digits)


def check_bounds(text: str | bytes) -> None:
    """Raises InvalidJson beyond ``VALUES_MAX`` and below ``MAX_DEPTH``, before anything is decoded.

    Cheap for a text that could be neither. Right for a valid text; for others it errs either way.
    """
    length = len(text)
    if length > VALUES_MAX and has_too_many_values(text):
        raise InvalidJson(f"more than {VALUES_MAX:,} values")
    if length > MAX_DEPTH and _openers(text) > MAX_DEPTH and depth(text) > MAX_DEPTH:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH}")


def has_too_many_values(text: str | bytes) -> bool:
    """Whether a JSON text holds more than ``VALUES_MAX`` values.

    What could separate them is counted in C; only where that is too much, strings are taken out first.
    """
    if len(text) <= VALUES_MAX or _separators(text) < VALUES_MAX:
        return False
    # A value is at most two strings, itself and its key, so that more need not be taken out to be counted.
    bare, strings = _STRING.subn(b"", _as_bytes(text), count=2 * VALUES_MAX + 1)
    return strings > 2 * VALUES_MAX or _separators(bare) >= VALUES_MAX


def is_object(text: str) -> bool:
    """Whether a glance shows that the text is that of an object, well-formed, not deep, not large; cheap.

    False says nothing: ``arguments`` looks closer.
    """
    if len(text) > MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH:
        return False
    if len(text) > VALUES_MAX and _separators(text) >= VALUES_MAX:
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
    """A value as JSON text, whatever it holds of texts and numbers; see ``well_formed_value``."""
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(well_formed_value(value)).decode()
    if b"null" in text:  # which msgspec also writes for infinity
        text = msgspec.json.encode(well_formed_value(value))
    return text.decode()


def well_formed_value(value: Any) -> Any:
    """A JSON value as the log and every provider can hold it.

    ``well_formed`` is applied to every string and key, and a number that JSON has not becomes a text: "NaN",
    "Infinity", "-Infinity".
    """
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, list | tuple):
        return [well_formed_value(item) for item in value]
    if isinstance(value, Mapping):
        return {well_formed(str(key)): well_formed_value(item) for key, item in value.items()}
    return value


def has_unkept_number(value: Any) -> bool:
    """Whether a JSON value holds NaN or an infinity, which msgspec would write as null."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, list | tuple):
        return any(map(has_unkept_number, value))
    return isinstance(value, Mapping) and any(map(has_unkept_number, value.values()))


def depth(text: str | bytes) -> int:
    """How deep a JSON text nests. Linear, and right for a valid text; for others it errs either way."""
    level = deepest = 0
    for mark in _STRING.sub(b"", _as_bytes(text)).translate(None, _NO_BRACKETS):
        if mark in b"[{":
            level += 1
            deepest = max(deepest, level)
        else:
            level -= 1
    return deepest


def _as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _openers(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return text.count(b"[") + text.count(b"{")
    return text.count("[") + text.count("{")


def _separators(text: str | bytes) -> int:
    """What stands before a value: one less than there are, and more where strings hold such signs."""
    return _openers(text) + (text.count(b",") if isinstance(text, bytes) else text.count(","))


def _parse_slowly(text: str | bytes) -> Any:
    # msgspec refuses the escape of a lone surrogate; the standard library reads it, and it is replaced.
    try:
        said = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise InvalidJson(str(error)) from error
    return well_formed_value(lenient(said))


def _type_name(value: object) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), type(value).__name__)

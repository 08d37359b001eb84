"""What every validator asks of texts, images and JSON values; nothing here is shared with the projection."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from ..schema.notes import Violation

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
OBJECT: Final = (dict, Mapping)
"""For ``isinstance``: what nearly every object is, and what any is, which takes longer to find out."""
ARRAY: Final = (list, tuple)
Within: TypeAlias = tuple[str | int, ...]
"""Fields and positions on the way from an element to what is meant."""
MAX_DEPTH: Final = 100
"""Nesting of JSON that a provider's parser may refuse to follow."""


def place_of(element: str, within: Within) -> str:
    """An element, or what lies within it, in words. Made when something is found, since that is rare."""
    return element + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in within)


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space: nothing, as the wordings count."""
    return not text or text.isspace()


def text_rules(text: str) -> Sequence[tuple[str, str]]:
    """Rule and detail of each character class in the text that a provider refuses."""
    found: tuple[tuple[str, str], ...] = ()
    if "\x00" in text:
        found = (("nul_character", "a NUL character"),)
    if not text.isascii() and not _is_unicode(text):
        found = (*found, ("surrogate", "half of a surrogate pair"))
    return found


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def value_rules(value: Any) -> Iterator[tuple[str, str]]:
    """The same for every text in a JSON value: a call's arguments, a block that nobody here knows."""
    if _plainly_fine(value):
        return
    try:
        for text in _texts(value, 0):
            yield from text_rules(text)
    except RecursionError:
        yield "nested_too_deep", f"nested deeper than {MAX_DEPTH}"


def word(value: object) -> str:
    """A string as it is, and nothing of any other type: what can be looked up in a set of words."""
    return value if isinstance(value, str) else ""


def extra_rules(fields: Mapping[str, Any], known: frozenset[str]) -> Iterable[tuple[str, str]]:
    """What is wrong with the texts of fields that no rule knows: they are sent as they are."""
    if fields.keys() <= known:
        return ()
    unknown = [{name: value} for name, value in fields.items() if name not in known]
    return itertools.chain.from_iterable(map(value_rules, unknown))


def field_violations(body: Mapping[str, Any], *looked_at: str) -> Iterator[Violation]:
    """Text that cannot be sent in the fields beside the messages: an option, a tool's description."""
    for name, value in body.items():
        if name in looked_at or value is None:
            continue
        for rule, detail in value_rules({name: value}):
            yield Violation(rule, name, detail)


def object_problem(text: object) -> str:
    """Why a text is not that of a JSON object; empty if it is."""
    if not isinstance(text, str):
        return f"a {type(text).__name__}, not a string"
    if len(text) <= MAX_DEPTH or text.count("[") + text.count("{") <= MAX_DEPTH:
        try:
            if type(_decode_strictly(text)) is dict:
                return ""
        except (msgspec.DecodeError, UnicodeError):
            pass  # The standard library's parser takes more, and says what it does not.
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {str(error)[:80]}"
    if not isinstance(value, dict):
        return f"JSON of a {type(value).__name__}, not of an object"
    return value_problem(value)


def value_problem(value: Any) -> str:
    """What a provider's parser would refuse in a JSON value; empty if nothing."""
    if _plainly_fine(value):
        return ""
    for rule, detail in value_rules(value):
        if rule != "nul_character":
            return detail
    return ""


def _plainly_fine(value: Any) -> bool:
    """Whether a glance at the value's JSON shows that no closer look is needed."""
    try:
        text = msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError, TypeError, OverflowError):
        return False
    # Brackets in texts count too: a value with so few of them cannot be deep.
    return text.count(b"[") + text.count(b"{") <= MAX_DEPTH and b"\\u0000" not in text


def is_base64(data: str) -> bool:
    """Whether the data is base64 of something: its alphabet, its padding, not empty."""
    return len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield key
            yield from _texts(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, depth + 1)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), -float("inf")):
        raise ValueError(f"{digits[:40]} is too large for a double")
    return number


_decode_strictly: Final = msgspec.json.Decoder().decode
_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)

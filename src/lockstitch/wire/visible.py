"""Whether a text shows anything."""

from collections.abc import Iterable
from typing import Final

_BEGINNING: Final = 256


def is_visible(text: str) -> bool:
    """Whether a text holds a character that a person would see: not white space, not a control or format
    mark. Half of a surrogate pair counts: alone it is seen as U+FFFD.
    """
    # Behind the beginning each character once: millions that show nothing are mostly few different ones.
    return _any_visible(text[:_BEGINNING]) or _any_visible(set(text[_BEGINNING:]))


def _any_visible(characters: Iterable[str]) -> bool:
    return any(
        not char.isspace() and (char.isprintable() or "\ud800" <= char <= "\udfff") for char in characters
    )

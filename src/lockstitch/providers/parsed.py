"""What reading a plain request yields, and the small rules of reading that all protocols share.

Reading is total: whatever JSON stands where a request should, it becomes messages, and what had no place is
named by an anomaly. Judging is the validator's, mending the projection's.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..schema.blocks import Base64Source, Image, Text, UrlSource
from ..schema.messages import Message, Options
from ..schema.notes import Anomaly
from ..schema.profiles import Profile


class Element(NamedTuple):
    """One element of a request's list of messages, items or contents."""

    message: Message
    anomalies: tuple[Anomaly, ...] = ()
    """What of the element has no place in ``message``."""


class Target(NamedTuple):
    """Whom a plain request is for: its messages count as written by this model unless they say otherwise."""

    profile: Profile
    model: str


ITEM: Final = "item"
"""Key of a block's ``extra`` (responses): the block begins a message item; these are the item's fields."""
DEFAULT_IMAGE_TYPE: Final = "image/jpeg"


def text_of(value: Any) -> str:
    """A string as it is; None as nothing; any other JSON value as its text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


def json_text(value: Any) -> str:
    """A JSON value as compact text. Lone surrogates stay, for the projection to replace."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError, TypeError, OverflowError):
        return repr(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects in an array."""
    return [item for item in items(value) if isinstance(item, Mapping)]


def without(fields: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
    """The fields that reading did not use, to be given back as they came; None if there are none."""
    rest = {name: value for name, value in fields.items() if name not in names}
    return rest or None


def image_from_url(url: str, extra: Mapping[str, Any] | None = None) -> Image:
    """An image from a URL; a data URL becomes the data itself."""
    if url.startswith("data:"):
        head, _, data = url[len("data:") :].partition(",")
        media_type = head.removesuffix(";base64")
        if head != media_type:
            return Image(media_type=media_type, source=Base64Source(data), extra=extra)
    guessed = mimetypes.guess_type(url.partition("?")[0])[0] or ""
    media_type = guessed if guessed.startswith("image/") else DEFAULT_IMAGE_TYPE
    return Image(media_type=media_type, source=UrlSource(url), extra=extra)


class OptionReader:
    """Collects options from a request's fields, and which fields they came from; wrong types are none."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._fields: dict[str, Any] = {}

    def take(self, field: str, option: str, value: Any) -> None:
        """Take ``value``, which the request has in ``field``, as the option of that name."""
        if value is None:
            return
        try:
            msgspec.convert({option: value}, Options)
        except (msgspec.ValidationError, UnicodeEncodeError):
            return
        self.used.add(field)
        self._fields[option] = tuple(value) if isinstance(value, list) else value

    @property
    def options(self) -> Options:
        return Options(**self._fields)


def stop_of(value: Any) -> list[str] | None:
    """Stop sequences, from one or from an array; None if it is neither."""
    if isinstance(value, str):
        return [value]
    return [text for text in items(value) if isinstance(text, str)] or None


def omitted(what: object, where: str = "") -> tuple[Text, Anomaly]:
    """The notice that stands in for something our values cannot hold, and the anomaly that names it."""
    kind = str(what or "block")[:40]
    return Text(text=f"[{kind} omitted]"), Anomaly("block_omitted", where, detail=f"{kind} in a tool result")

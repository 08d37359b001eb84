"""Reading the values of a chat frame of any shape: what counts, and nothing for everything else."""

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

from ..schema.blocks import Base64Source, Image, UrlSource
from ..wire import strict_json

_DATA_URL: Final = re.compile(r"data:(image/[\w.+-]{1,60});base64,(?=.)")
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


def reasoning_in(delta: Mapping[str, Any]) -> str:
    """The first of the reasoning fields that holds any text."""
    for key in _REASONING_FIELDS:
        text = delta.get(key)
        if isinstance(text, str) and text:
            return text
    return ""


def slot_of(number: Hashable, index: Hashable | None) -> Hashable | None:
    """The key of a call: its number, within its choice."""
    if index is None or number == 0:
        return index
    return number, index


def number_of(value: Any) -> int | None:
    """An index that counts: a whole number of any size, also as a string of digits or a float."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        digits = value.strip()
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    return value if isinstance(value, int) else None


def identity_of(entry: Mapping[str, Any]) -> tuple[str | None, str | None, str]:
    """Id, name and arguments of an entry, which some gateways write without the inner ``function``."""
    function = entry.get("function")
    inner = function if isinstance(function, dict) else {}
    id, name = entry.get("id"), inner.get("name", entry.get("name"))
    if isinstance(function, str):
        name = function
    return (
        id if isinstance(id, str) else None,
        name if isinstance(name, str) else None,
        _arguments_text(inner.get("arguments", entry.get("arguments"))),
    )


def _arguments_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else strict_json.encoded(value)


def image_of(entry: Mapping[str, Any]) -> Image | None:
    """The image of an entry that has its address, or itself in the address."""
    inner = entry.get("image_url")
    url = inner.get("url") if isinstance(inner, dict) else inner
    if not isinstance(url, str):
        return None
    if found := _DATA_URL.match(url):
        return Image(media_type=found[1], source=Base64Source(url[found.end() :]))
    return Image(media_type="image/*", source=UrlSource(url)) if url.startswith("https://") else None


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; a single object counts as a list of one."""
    items = value if isinstance(value, list) else [value]
    return (item for item in items if isinstance(item, dict))


def text_in(value: Any) -> str:
    """The text of a string, of a part, or of a list of both."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return text_in(value.get("text"))
    return "".join(text_in(item) for item in value) if isinstance(value, list) else ""


def type_name(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        list: "array",
    }
    return names.get(type(value), "object")

"""What a tool returned, as content that every log, request and terminal can take."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstitch.schema.blocks import Base64Source, Image, Text
from lockstitch.wire import strict_json

from .contract import ToolOutput
from .schema import is_pydantic
from .text import clean, middle_cut

NO_OUTPUT: Final = "(no output)"
IMAGE_MAX_BASE64: Final = 20 * 1024 * 1024
"""Characters of one image; more than any provider takes."""
META_MAX_BYTES: Final = 256 * 1024
"""Of a result's display data, as JSON."""
IMAGES_MAX: Final = 20
"""Images of one result."""


def to_output(value: Any) -> ToolOutput:
    """The output for a tool function's return value. Raises TypeError for a value with no JSON form."""
    match value:
        case ToolOutput():
            return value
        case Text() | Image():
            return ToolOutput((value,))
        case None:
            return ToolOutput((Text(NO_OUTPUT),))
        case str():
            return ToolOutput((Text(value),))
        case bytes() | bytearray() | memoryview():
            return ToolOutput((Text(bytes(value).decode("utf-8", "replace")),))
        case list() | tuple() if value and all(isinstance(item, Text | Image) for item in value):
            return ToolOutput(tuple(value))
        case _:
            return ToolOutput((Text(_json(value).decode()),))


def bounded(
    output: ToolOutput, max_chars: int, *, keep: Callable[[str], str | None]
) -> tuple[tuple[Text | Image, ...], dict[str, Any]]:
    """The content made safe and cut to ``max_chars`` of text, and what is to be added to the meta.

    Blank content becomes a placeholder, since providers refuse empty results. ``keep`` is given the whole
    text when it is cut, and returns where it lies (or None).
    """
    blocks = _sound(output.content)
    total = sum(len(block.text) for block in blocks if isinstance(block, Text))
    extra: dict[str, Any] = {}
    if total > max_chars:
        whole = "\n".join(block.text for block in blocks if isinstance(block, Text))
        place = keep(whole)
        hint = f"; the whole result is in {place}" if place else ""
        images = [block for block in blocks if isinstance(block, Image)]
        blocks = [Text(middle_cut(whole, max_chars, hint=hint)), *images]
        extra = {"cut_chars": total - max_chars, "whole_chars": total}
        if place:
            extra["whole"] = place
    if not any(isinstance(block, Image) or block.text.strip() for block in blocks):
        blocks = [Text(NO_OUTPUT)]
    return tuple(blocks), extra


def plain_meta(meta: Mapping[str, Any] | None, extra: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Display data as plain, well-formed JSON values; beyond META_MAX_BYTES only its size is kept."""
    merged = {**(meta or {}), **extra}
    if not merged:
        return None
    try:
        encoded = _json(merged)
    except (TypeError, ValueError, OverflowError):
        return {"dropped": "display data with no JSON form", **extra}
    if len(encoded) > META_MAX_BYTES:
        return {"dropped": f"display data of {len(encoded):,} bytes", **extra}
    decoded: Mapping[str, Any] = msgspec.json.decode(encoded)
    return decoded


def _sound(content: Sequence[Any]) -> list[Text | Image]:
    blocks: list[Text | Image] = []
    images = 0
    for block in content:
        match block:
            case Text(text=str(text)):
                blocks.append(Text(clean(text)))
            case Image():
                images += 1
                complaint = (
                    _image_complaint(block) if images <= IMAGES_MAX else f"more than {IMAGES_MAX} images"
                )
                blocks.append(Text(f"(an image was left out: {complaint})") if complaint else block)
            case _:
                blocks.append(Text(f"(a block of type {type(block).__name__} was left out)"))
    return blocks


def _image_complaint(image: Image) -> str | None:
    if not isinstance(image.media_type, str) or not image.media_type.startswith("image/"):
        return "its media type is not image/..."
    if not isinstance(image.source, Base64Source):
        return None
    data = image.source.data
    if len(data) > IMAGE_MAX_BASE64:
        return f"{len(data):,} characters of base64, the limit is {IMAGE_MAX_BASE64:,}"
    try:
        return None if base64.b64decode(data, validate=True) else "it is empty"
    except (binascii.Error, ValueError):
        return "its data is not base64"


def _json(value: Any) -> bytes:
    """What a tool gave as JSON, whatever texts and numbers it holds.

    Raises TypeError, ValueError and OverflowError for a value with no JSON form.
    """
    try:
        encoded = msgspec.json.encode(value, enc_hook=_foreign)
        if b"null" not in encoded:  # which msgspec also writes for infinity
            return encoded
    except UnicodeEncodeError:
        pass  # half of a surrogate pair
    except RecursionError as error:
        raise TypeError("the returned value is nested too deeply for JSON") from error
    return strict_json.encoded(msgspec.to_builtins(value, str_keys=True, enc_hook=_foreign)).encode()


def _foreign(value: Any) -> Any:
    if is_pydantic(type(value)):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)

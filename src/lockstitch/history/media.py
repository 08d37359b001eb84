"""Images in requests: which ones a target takes, and the notice that stands in for one it does not."""

import binascii
from typing import Final, NamedTuple, assert_never

import msgspec

from ..schema.blocks import Base64Source, BlobSource, Image, UrlSource
from ..schema.profiles import Profile
from ..wire.image_size import size_of_base64
from .policy import Policy

NO_VISION: Final = "[image omitted: model has no image input]"
NO_MEDIA: Final = "[image omitted: the request was refused with it]"
NO_PLACE: Final = "[image omitted: an assistant message cannot hold one]"
NO_IMAGE: Final = "[image omitted: its data is not a readable image]"
TOO_MANY: Final = "[image omitted: the request holds too many newer ones]"
IN_NEXT_MESSAGE: Final = "[image: shown in the next message]"


class ImageBudget(NamedTuple):
    """What the number of images in a history says about each of them.

    A function of the number alone, so that the same history always sends the same images; it moves in steps,
    since each step changes messages that were sent before and costs the provider's cache once.
    """

    dropped: int = 0
    """How many images, the oldest first, are left out."""
    max_px: int | None = None
    """Largest side of an image."""


def image_budget(count: int, profile: Profile) -> ImageBudget:
    """The budget for a history with ``count`` images that could be sent one by one."""
    dropped = 0
    limit = profile.images_max
    if limit is not None and count > limit:
        step = max(1, limit // 2)
        dropped = -(-(count - limit) // step) * step
    many = profile.images_many is not None and count - dropped > profile.images_many
    return ImageBudget(dropped, profile.images_many_px if many else profile.image_max_px)


def over_budget(image: Image, number: int, budget: ImageBudget) -> str | None:
    """Why the image, the history's ``number``-th from 0, is left out; None if it is not."""
    if number < budget.dropped:
        return TOO_MANY
    if budget.max_px is None or not isinstance(image.source, Base64Source):
        return None
    size = size_of_base64(image.source.data)
    if size is None or max(size) <= budget.max_px:
        return None
    return f"[image omitted: {size.width}x{size.height} pixels, of which {budget.max_px} a side are allowed]"


_MAGIC: Final[tuple[tuple[str, str], ...]] = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
)
"""How the base64 of a format begins; WebP shares RIFF's beginning, and no other RIFF file is an image."""


def fitted(image: Image, policy: Policy) -> Image | str:
    """The image as the target takes it, its type corrected from its data; or why it cannot be sent."""
    if not policy.profile.vision:
        return NO_VISION
    if not policy.images():
        return NO_MEDIA
    limit = policy.profile.image_max_base64
    if limit is not None and base64_size(image) > limit:
        return f"[image omitted: {raw_size(image)} bytes exceeds the limit]"
    match image.source:
        case Base64Source():
            return _inline(image, image.source.data, policy)
        case UrlSource():
            return image if _reachable(image.source.url, policy) else NO_IMAGE
        case BlobSource():
            if not image.source.sha256:
                return NO_IMAGE  # A plain request named a size and no data.
            return image if image.media_type in policy.image_types else _unsupported(image)
        case _:
            assert_never(image.source)


def base64_size(image: Image) -> int:
    """Characters of base64 that the image takes in a request; 0 for a URL."""
    match image.source:
        case Base64Source():
            return len(image.source.data)
        case BlobSource():
            return (image.source.size + 2) // 3 * 4
        case UrlSource():
            return 0
        case _:
            assert_never(image.source)


def raw_size(image: Image) -> int:
    """Bytes of the image itself; 0 for a URL."""
    match image.source:
        case Base64Source():
            data = image.source.data
            return len(data) * 3 // 4 - data[-2:].count("=")
        case BlobSource():
            return image.source.size
        case UrlSource():
            return 0
        case _:
            assert_never(image.source)


def _inline(image: Image, data: str, policy: Policy) -> Image | str:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        return NO_IMAGE
    if not data:
        return NO_IMAGE
    media_type = next((kind for start, kind in _MAGIC if data.startswith(start)), image.media_type)
    if media_type not in policy.image_types:
        return _unsupported(image)
    return image if media_type == image.media_type else msgspec.structs.replace(image, media_type=media_type)


def _reachable(url: str, policy: Policy) -> bool:
    """Whether the target can fetch the image. Anthropic fetches over https only."""
    return url.startswith("https://") or (url.startswith("http://") and not policy.signed_reasoning)


def _unsupported(image: Image) -> str:
    return f"[image omitted: {image.media_type[:40] or 'its type'} is not supported]"

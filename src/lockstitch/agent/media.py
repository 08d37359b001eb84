"""Images on their way into the log and out of it: large ones are blobs beside it, named by their hash."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from ..schema.blocks import Base64Source, Block, Image
from ..schema.messages import Message
from ..session.blobs import Blobs, holds_blobs, with_media

B = TypeVar("B", bound=Block)

INLINE_MAX_CHARS: Final = 4096
"""Characters of base64 that stay in a record."""


async def stored(content: Sequence[B], blobs: Blobs) -> tuple[B, ...]:
    """The content with large images kept as blobs, durable on return. Data that is no base64 stays as it is.

    Raises StorageError if the disk refuses.
    """
    if not any(_is_large(block) for block in content):
        return tuple(content)
    return tuple([await _stored(block, blobs) for block in content])


async def loaded(messages: Sequence[Message], blobs: Blobs) -> Sequence[Message]:
    """The messages with the bytes of their images in place: many megabytes perhaps, and so read in a thread.

    Raises StorageError if the disk refuses; an image that is lost is a text that says so.
    """
    if not any(holds_blobs(message) for message in messages):
        return messages
    return await asyncio.to_thread(with_media, messages, blobs)


async def _stored(block: B, blobs: Blobs) -> B:
    if not (isinstance(block, Image) and isinstance(block.source, Base64Source) and _is_large(block)):
        return block
    try:
        data = base64.b64decode(block.source.data, validate=True)
    except binascii.Error:
        return block
    source = await asyncio.to_thread(blobs.put, data)
    return msgspec.structs.replace(block, source=source)


def _is_large(block: Block) -> bool:
    return (
        isinstance(block, Image)
        and isinstance(block.source, Base64Source)
        and len(block.source.data) > INLINE_MAX_CHARS
    )

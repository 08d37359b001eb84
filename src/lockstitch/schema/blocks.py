"""Blocks: the parts of a message. Frozen, tagged by ``type``, decoded at the edge and trusted inside.

These, messages and events are kept from the collector of garbage (``gc=False``): they are values of JSON and
so in no cycle, and of a long session there are hundreds of thousands.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec


class Replay(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider wants back beside a block, and only that provider: signatures, item ids."""

    provider: str
    """The profile name the data came from."""
    model: str
    data: Mapping[str, Any]


class _Block(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", kw_only=True, gc=False):
    extra: Mapping[str, Any] | None = None
    """Fields given back as they came (cache marks); None when there were none."""
    replay: Replay | None = None


class Text(_Block, tag="text", frozen=True):
    """Visible text, of a person, a model or a tool."""

    text: str


class Reasoning(_Block, tag="reasoning", frozen=True):
    """What a model thought before it answered. It goes back to that model only."""

    text: str
    signature: str | None = None
    """The provider's proof over ``text``; a request to that provider carries both or neither."""
    redacted: str | None = None
    """Encrypted reasoning in the provider's own encoding; ``text`` is then empty or a summary."""


class Base64Source(msgspec.Struct, frozen=True, tag="base64", tag_field="type"):
    """An image's bytes, in base64."""

    data: str


class UrlSource(msgspec.Struct, frozen=True, tag="url", tag_field="type"):
    """An image that the provider fetches."""

    url: str


class BlobSource(msgspec.Struct, frozen=True, tag="blob", tag_field="type"):
    sha256: str
    """Hex digest; the bytes lie in the session's ``blobs/`` directory."""
    size: int
    """Bytes."""


ImageSource: TypeAlias = Base64Source | UrlSource | BlobSource


class Image(_Block, tag="image", frozen=True):
    """A picture, in a prompt or in what a tool found."""

    media_type: str
    source: ImageSource


class ToolCall(_Block, tag="tool_call", frozen=True):
    """What a model wants run."""

    id: str
    name: str
    arguments: str
    """Raw JSON text as the model wrote it; ``""`` means ``{}``. Parse it with ``wire.strict_json``."""
    invalid: str | None = None
    """Why the call must be answered with an error and never run (``truncated``, ``not_json``, …)."""


class ToolResult(_Block, tag="tool_result", frozen=True):
    """The answer to one call."""

    call_id: str
    content: tuple["Text | Image", ...]
    is_error: bool = False


class Opaque(_Block, tag="opaque", frozen=True):
    """A block that has no place here (a document, a server-side tool), kept for its own protocol."""

    protocol: str
    value: Any


Block: TypeAlias = Text | Reasoning | Image | ToolCall | ToolResult | Opaque

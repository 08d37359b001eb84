"""An encoded request: what a transport needs to send one model call, in one protocol's own format."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..schema.notes import Note


class WireRequest(msgspec.Struct, frozen=True):
    """One request, ready for a transport. Holds no key and no host: those belong to the endpoint."""

    dialect: str
    """The protocol that encoded it, e.g. ``openai-chat``."""
    path: str
    """Appended to the endpoint's base URL, e.g. ``/chat/completions``."""
    body: Mapping[str, Any]
    """JSON-encodable; single values inside may be ``msgspec.Raw`` (JSON that was encoded before)."""
    headers: Mapping[str, str] = {}
    """Headers the protocol wants besides authentication and content type."""
    tools: tuple[str, ...] = ()
    """Names of the tools offered, in the order of the request."""
    notes: tuple[Note, ...] = ()
    """Options that were left out because the provider refuses them."""

    def encoded(self) -> bytes:
        """The body as JSON. Raises ``UnicodeEncodeError`` on a lone surrogate, which a validator reports."""
        return msgspec.json.encode(self.body)

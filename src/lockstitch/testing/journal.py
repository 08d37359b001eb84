"""What a gateway received, for tests to look at. Key values never get in."""

import json
from collections import deque
from typing import Any, Final

from .http1 import HttpRequest

MASK: Final = "***"
SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"}
)
MIN_SECRET_CHARS: Final = 8
"""A shorter value is masked in its header only: elsewhere it would hide ordinary words."""
MAX_ENTRIES: Final = 10_000
MAX_BODY_BYTES_KEPT: Final = 64 << 20
"""Of all bodies together; the oldest lose theirs first."""


class Journal:
    """The requests in order, each a dict of JSON values.

    ``n`` (from 1), ``method``, ``path``, ``headers`` (lower-case names), ``body`` (JSON, or text that is
    none), then what became of it: ``status``, ``answer`` (position in the script; None if no answer of the
    script was given), ``note`` (why), ``usage``, ``client_left``.
    """

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=MAX_ENTRIES)
        self._sizes: deque[tuple[dict[str, Any], int]] = deque()
        self._kept_bytes = 0
        self._count = 0
        self._secrets: set[str] = set()

    def entries(self) -> list[dict[str, Any]]:
        """The entries that are kept, oldest first; a new list of the same dicts."""
        return list(self._entries)

    def add(self, request: HttpRequest) -> dict[str, Any]:
        """Take down ``request``; the entry is returned so that its outcome can be added."""
        self._learn(request)
        self._count += 1
        entry: dict[str, Any] = {
            "n": self._count,
            "method": request.method,
            "path": self.masked(request.target),
            "headers": {name.lower(): self._header(name.lower(), value) for name, value in request.headers},
            "body": self._body(request.body),
            "status": None,
            "answer": None,
        }
        self._entries.append(entry)
        self._bound(entry, len(request.body))
        return entry

    def masked(self, text: str) -> str:
        """``text`` without any key value that came with a request."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def _learn(self, request: HttpRequest) -> None:
        for name, value in request.headers:
            if name.lower() in SECRET_HEADERS:
                self._secrets.update(word for word in value.split() if len(word) >= MIN_SECRET_CHARS)
        _, _, query = request.target.partition("?")
        for pair in query.split("&"):
            key, _, value = pair.partition("=")
            if key in {"key", "api_key", "api-key"} and value:
                self._secrets.add(value)

    def _header(self, name: str, value: str) -> str:
        if name not in SECRET_HEADERS:
            return self.masked(value)
        scheme, space, _ = value.partition(" ")
        return f"{scheme} {MASK}" if space else MASK

    def _body(self, body: bytes) -> Any:
        text = self.masked(body.decode("utf-8", "replace"))
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            return text

    def _bound(self, entry: dict[str, Any], size: int) -> None:
        self._sizes.append((entry, size))
        self._kept_bytes += size
        while self._kept_bytes > MAX_BODY_BYTES_KEPT and len(self._sizes) > 1:
            oldest, freed = self._sizes.popleft()
            oldest["body"] = None
            oldest["note"] = "body dropped: the journal keeps the newest 64 MiB"
            self._kept_bytes -= freed

"""Whether a request is what a scripted answer expects of it."""

import json
from collections.abc import Iterator
from typing import Any

from .http1 import HttpRequest
from .script import Expect


def unmet(expect: Expect | None, request: HttpRequest) -> str | None:
    """The first expectation that ``request`` does not meet, in words; None if it meets all."""
    if expect is None:
        return None
    texts = _texts(request.body)
    for wanted in expect.contains:
        if not any(wanted in text for text in texts):
            return f"the body lacks {wanted!r}"
    for unwanted in expect.lacks:
        if any(unwanted in text for text in texts):
            return f"the body contains {unwanted!r}"
    for name, wanted in expect.headers.items():
        if wanted not in request.header(name.lower()):
            return f"the header {name} lacks {wanted!r}"
    if expect.path is not None and expect.path not in request.target:
        return f"the path lacks {expect.path!r}"
    return None


def _texts(body: bytes) -> list[str]:
    """The body as sent and, so that nobody has to write escapes, each string in its JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return [text, *_strings(json.loads(text))]
    except (ValueError, RecursionError):
        return [text]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)

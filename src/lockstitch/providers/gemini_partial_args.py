"""Arguments of a gemini call that come in pieces, each with its place in the whole.

Vertex sends a call so if its request asks for it (``streamFunctionCallArguments``), and gateways pass it on:
first the name, then ``partialArgs``, each a value or a piece of a string at a JSON path, and last a call
without ``willContinue``.

Source: google-genai 3.6.1 (google/genai/types.py: FunctionCall.partial_args, PartialArg).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ..wire import strict_json
from .event_translator import objects_of, text_of

_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_STEPS_MAX: Final = 50
_VALUES: Final = ("boolValue", "numberValue", "stringValue")


def is_partial(wire: Mapping[str, Any]) -> bool:
    """Whether a call is one of several pieces, and not the last one."""
    return wire.get("willContinue") is True or bool(wire.get("partialArgs"))


class PartialCall:
    """One call while its pieces come."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.signature: str | None = None
        self._arguments: dict[str, Any] = {}
        self._open: list[str | int] = []
        """The place whose string goes on."""
        self._string: list[str] = []
        """Its pieces, joined when it ends: joining each time would take quadratic time."""
        self._broken = False

    def add(self, wire: Mapping[str, Any], signature: str | None) -> None:
        """One more piece."""
        self.id = self.id or text_of(wire.get("id"))
        self.name = self.name or text_of(wire.get("name"))
        self.signature = self.signature or signature
        whole = wire.get("args")
        if isinstance(whole, dict):
            self._arguments.update(whole)
        for piece in objects_of(wire.get("partialArgs")):
            self._broken = not self._put(piece) or self._broken

    @property
    def within_string(self) -> bool:
        """A string of its arguments goes on."""
        return bool(self._open)

    def arguments(self, *, ended: bool) -> str:
        """As JSON text, which is cut off where the stream was, or where a piece had no place."""
        self._close()
        text = strict_json.encoded(self._arguments)
        return text if ended and not self._broken else text[:-1]

    def _put(self, piece: Mapping[str, Any]) -> bool:
        steps = _steps(text_of(piece.get("jsonPath")))
        value = next((piece[key] for key in _VALUES if key in piece), None)
        if not steps:
            return False
        fits = True
        if steps != self._open or not isinstance(value, str):
            self._close()
            fits = _set(self._arguments, steps, value)
        if fits and isinstance(value, str):
            self._open = steps
            self._string.append(value)
        if piece.get("willContinue") is not True:
            self._close()
        return fits

    def _close(self) -> None:
        """The string that went on ends."""
        if self._open:
            _set(self._arguments, self._open, "".join(self._string))
        self._open = []
        self._string = []


def _steps(path: str) -> list[str | int]:
    """Keys and places of ``$.a[0].b``; none if it is no such path."""
    found = list(_STEP.finditer(path, 1))
    if not path.startswith("$") or "".join(step[0] for step in found) != path[1:] or len(found) > _STEPS_MAX:
        return []
    return [int(step[2]) if step[2] else step[1] or step[3] or step[4] or "" for step in found]


def _set(root: dict[str, Any], steps: list[str | int], value: Any) -> bool:
    """Puts a value at its place, making what is missing on the way; False if there is no such place."""
    at: Any = root
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        fits = isinstance(at, dict) if isinstance(step, str) else isinstance(at, list) and step <= len(at)
        if not fits:
            return False
        if isinstance(at, list) and step == len(at):
            at.append(None)
        if after is None:
            at[step] = value
            return True
        there = at.get(step) if isinstance(at, dict) else at[step]
        if there is None:
            there = at[step] = {} if isinstance(after, str) else []
        at = there
    return False

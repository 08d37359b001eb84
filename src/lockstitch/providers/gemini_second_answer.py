"""A second answer in one body of gemini, which has no end mark to stop at.

Gateways that try again send the next attempt into the same body. Behind a finish reason, content is a second
answer if it has another response id than all before it, or if it repeats everything said before; then it is
left out. Anything else behind a finish reason is more of the answer, for some gateways put a finish reason
into every frame: an answer doubled is better than one that lost its end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..wire import strict_json
from .event_translator import object_of, objects_of, text_of

_Value = Mapping[str, Any]


class SecondAnswer:
    """Holds back what may be a second answer until the end of the body tells."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        """Response ids of the frames up to the finish reason."""
        self._first = _Content()
        self._finished = False
        self._always_labelled = True
        """Every frame with content so far had a finish reason: then none of them means an end."""
        self._held: list[_Value] = []

    def holds(self, value: _Value) -> bool:
        """Whether a frame is held back; if not, it is part of the answer."""
        if self._finished and (self._held or _parts(value)):
            self._held.append(value)
            return True
        self._ids.add(text_of(value.get("responseId")))
        if _parts(value):
            self._first.add(value)
            self._always_labelled = self._always_labelled and _labelled(value)
        self._finished = self._finished or (_labelled(value) and not self._always_labelled)
        return False

    def settled(self) -> tuple[Sequence[_Value], str]:
        """At the end of the body: the held frames that belong to the answer; what to note of the others."""
        held, self._held = self._held, []
        if not held:
            return (), ""
        ids = {text_of(value.get("responseId")) for value in held if _parts(value)}
        if len(self._ids) == len(ids) == 1 and not ids & {"", *self._ids}:
            return (), "it has another response id"
        second = _Content()
        for value in held:
            second.add(value)
        return ((), "it repeats the first") if second.said == self._first.said else (held, "")


class _Content:
    """What frames say, with texts of a kind joined, so that the split into frames does not matter."""

    def __init__(self) -> None:
        self._said: list[tuple[str, list[str]]] = []

    def add(self, value: _Value) -> None:
        for part in _parts(value):
            if isinstance(part.get("text"), str):
                kind, text = ("thought" if part.get("thought") is True else "text"), part["text"]
            else:
                kind, text = "part", strict_json.encoded(part)
            if text and self._said and self._said[-1][0] == kind != "part":
                self._said[-1][1].append(text)
            elif text:
                self._said.append((kind, [text]))

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(kind, strict_json.well_formed("".join(texts))) for kind, texts in self._said]


def _labelled(value: _Value) -> bool:
    labels = (text_of(one.get("finishReason")) for one in objects_of(value.get("candidates")))
    return any(label and not label.endswith("UNSPECIFIED") for label in labels)


def _parts(value: _Value) -> list[_Value]:
    """The parts of a frame that say anything."""
    return [
        part
        for candidate in objects_of(value.get("candidates"))
        for part in objects_of(object_of(candidate.get("content")).get("parts"))
        if any(held for key, held in part.items() if key != "thought")
    ]

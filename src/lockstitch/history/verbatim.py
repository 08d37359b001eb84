"""Giving elements of a plain request back as they came, wherever the projection left them alone.

An element that is written like one of the request's own says the same, so the own one goes out: with its
order of fields, its spelling and what nobody here knows of. One that a validator still objects to does not.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence, Set
from typing import Any

import msgspec

from ..providers.codecs import Codec
from ..providers.parsed import Element, Target
from ..schema.blocks import ToolCall
from ..schema.messages import Message
from ..schema.notes import Anomaly, Violation


class Verbatim:
    """The elements of a mended request. ``give_up`` what is objected to until nothing changes any more."""

    def __init__(
        self,
        originals: Sequence[Any],
        read: Sequence[Element],
        messages: Sequence[Message],
        codec: Codec,
        target: Target,
    ) -> None:
        self._originals = originals
        self._read = read
        self._written = codec.write(messages, target)
        own: dict[bytes, deque[int]] = {}
        names = {
            block.id: block.name
            for element in read
            for block in element.message.content
            if isinstance(block, ToolCall)
        }
        for index, element in enumerate(read):
            alone = codec.write([element.message], target, names)
            if len(alone) == 1:
                own.setdefault(_key(alone[0]), deque()).append(index)
        self._chosen: list[int | None] = []
        for written in self._written:
            waiting = own.get(_key(written))
            self._chosen.append(waiting.popleft() if waiting else None)

    @property
    def elements(self) -> list[Any]:
        """The request's elements as of now."""
        return [
            written if index is None else self._originals[index]
            for written, index in zip(self._written, self._chosen, strict=True)
        ]

    def give_up(self, field: str, flagged: Iterable[Violation]) -> bool:
        """Write the flagged elements out instead of giving them back; whether that changed any."""
        changed = False
        for violation in flagged:
            found = re.match(rf"{field}\[(\d+)\]", violation.where)
            places = [int(found[1])] if found else range(len(self._chosen))
            for place in places:
                index = self._chosen[place]
                if index is not None and self._originals[index] != self._written[place]:
                    self._chosen[place] = None
                    changed = True
        return changed

    def anomalies(self, places: Sequence[str], seen: Set[str]) -> list[Anomaly]:
        """What happened to elements that did not go back as they came.

        ``places`` are those of the messages that the elements were read into, as the projection names them;
        of those ``seen``, something has been said already.
        """
        kept = set(self._chosen)
        found: list[Anomaly] = []
        for index, element in enumerate(self._read):
            if index in kept:
                continue
            for anomaly in element.anomalies:
                found.append(msgspec.structs.replace(anomaly, where=places[index]))
            if not element.anomalies and places[index] not in seen:
                found.append(Anomaly("rewritten", places[index], detail="the same content in the usual form"))
        return found


def _key(element: Any) -> bytes:
    try:
        return msgspec.json.encode(element, order="sorted")
    except (UnicodeEncodeError, TypeError, OverflowError, RecursionError):
        return repr(element).encode("utf-8", "surrogatepass")

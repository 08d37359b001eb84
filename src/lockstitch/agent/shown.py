"""What a model call writes while it writes it: told to who watches, and logged in case the process dies."""

import asyncio
from collections.abc import Iterable
from typing import Final, Literal

from ..schema import chunks
from ..schema.chunks import Chunk
from ..schema.events import OutputCount
from . import events
from .deltas import EVERY_MS, Coalescer
from .world import World

COUNT_EVERY_MS: Final = 1_000
"""So much of what a killed call wrote may be missing in its bill. Nobody watches it, as people do deltas."""


class OutputMeter:
    """Logs how much one call has written that no delta holds, so that it is billed if the process dies."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        if not text:
            return
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(COUNT_EVERY_MS / 1000, self._tell)

    def close(self) -> None:
        """The call ended, and its end tells what it cost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._timer = None
        self._world.append(OutputCount(self._bytes))


class Shown:
    """Logs what one attempt shows, coalesced, and not later than a stalled stream could lose it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._deltas = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._arguments = OutputMeter(world)

    def take(self, given: Iterable[Chunk]) -> list[events.UserEvent]:
        """Log what chunks show, and give the events that show it. Those of a read are best given together."""
        shown: list[events.UserEvent] = []
        texts: list[str] = []
        last: chunks.TextDelta | chunks.ReasoningDelta | None = None
        for chunk in given:
            if type(chunk) is chunks.TextDelta:
                shown.append(events.TextDelta(chunk.text))
            elif type(chunk) is chunks.ReasoningDelta:
                shown.append(events.ReasoningDelta(chunk.text))
            else:
                if type(chunk) is chunks.ToolCallDelta:
                    self._arguments.add(chunk.arguments)
                continue
            if last is not None and (chunk.index != last.index or type(chunk) is not type(last)):
                self._add(last, texts)
                texts = []
            last = chunk
            texts.append(chunk.text)
        if last is not None:
            self._add(last, texts)
        return shown

    def _add(self, place: chunks.TextDelta | chunks.ReasoningDelta, texts: list[str]) -> None:
        """Texts of one block, that of ``place``."""
        block: Literal["text", "reasoning"] = "text" if type(place) is chunks.TextDelta else "reasoning"
        if due := self._deltas.add(place.index, block, "".join(texts)):
            self._world.append(*due)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_MS / 1000, self._flush)

    def close(self) -> None:
        """Log what is held back; nothing comes behind it."""
        if self._timer is not None:
            self._timer.cancel()
        self._arguments.close()
        self._flush()

    def _flush(self) -> None:
        self._timer = None
        if held := self._deltas.flush():
            self._world.append(*held)

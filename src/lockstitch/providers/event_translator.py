"""What the translators of event-typed protocols share: frames to JSON objects, errors, endings.

A protocol gives ``_event`` for one object of the stream and ``_whole`` for an answer that is one document.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..schema.blocks import Replay
from ..schema.chunks import Chunk
from ..schema.failures import Failure
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..wire.strict_json import InvalidJson
from . import frames
from .other_protocols import not_read, protocol_of
from .response import ResponseBuilder
from .translator import MODEL_MAX, Mint


class EventTranslator(ABC):
    """One response of an event-typed protocol. See ``providers.translator`` for the contract."""

    dialect: ClassVar[str]
    end_mark: ClassVar[str]
    """What the protocol's own end is called, for a note."""
    answer_key: ClassVar[str]
    """A field that every whole answer has."""

    def __init__(self, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None) -> None:
        self.terminal = False
        self._builder = ResponseBuilder(self.dialect, profile, tools, mint)
        self._profile = profile
        self._model = ""
        """As the provider names it in the response."""
        self._document = False

    @property
    def finished(self) -> bool:
        return self._builder.finished

    @property
    def settled(self) -> bool:
        return self._builder.terminal_seen

    @property
    def refused(self) -> bool:
        return self._builder.refused

    @property
    def notes(self) -> list[Note]:
        return self._builder.notes

    def keep_halves(self) -> None:
        self._builder.keep_halves()

    def frame(self, data: bytes, event: str) -> list[Chunk]:
        if not self._builder.finished:
            self._read(data, event)
        return self._builder.take()

    def document(self, value: Any) -> list[Chunk]:
        self._document = True
        self._builder.note("json_instead_of_stream", "the answer is one JSON document, not an event stream")
        known, spoken = False, None
        for said in value if isinstance(value, list) else [value]:
            if not isinstance(said, dict):
                continue
            one = frames.unwrapped(said, self.answer_key)
            spoken = spoken or protocol_of(one)
            if frames.error_in(one, "") is None:
                known = self._whole(one) or known
            elif not self._builder.refused and (reported := self._reported(one, "")) is not None:
                self._builder.failed(reported)
        if not known and not self._builder.terminal_seen:
            self._builder.failed(not_read(self.dialect, spoken))
        return self._builder.take()

    def end(self, strays: bytes) -> list[Chunk]:
        if not self._builder.finished:
            self._before_ending()
            if self._builder.terminal_seen and not self._document and self.end_mark:
                self._builder.note("missing_terminal", f"the stream ended without its {self.end_mark}")
            self._builder.end(strays)
        return self._builder.take()

    def fail(self, failure: Failure, *, aborted: bool = False) -> list[Chunk]:
        self._before_ending()
        self._builder.fail(failure, aborted=aborted)
        return self._builder.take()

    @abstractmethod
    def _event(self, value: Mapping[str, Any], event: str) -> None:
        """Say to the builder what one object of the stream says."""

    @abstractmethod
    def _whole(self, value: Mapping[str, Any]) -> bool:
        """Say to the builder what a whole answer says; False if it is no answer of this protocol."""

    def _before_ending(self) -> None:  # noqa: B027  # most protocols hold nothing back
        """Give to the builder what is still held back."""

    def _close(self) -> None:
        """The protocol's own end was seen."""
        if not self._builder.finished:
            self._before_ending()
            self._builder.close()
        self.terminal = True

    def _replay(self, **data: Any) -> Replay | None:
        """Data that only this provider and model get back; None if there is none."""
        kept = {key: value for key, value in data.items() if value is not None}
        return Replay(self._profile.name, self._model[:MODEL_MAX], kept) if kept else None

    def _read(self, data: bytes, event: str) -> None:
        if data.strip().upper() == b"[DONE]":
            self._close()
            return
        try:
            value = frames.parse(data, self._builder.notebook, self._builder.keep_halves)
        except InvalidJson as error:
            self._unreadable(data, event, error.reason)
            return
        if isinstance(value, dict):
            self._object(value, event)
            return
        self._builder.note("frame_not_object", "a frame holds JSON that is no object")
        for one in objects_of(value):  # a list of them, where there should be one
            if not self._builder.finished:
                self._object(one, event)

    def _object(self, value: Mapping[str, Any], event: str) -> None:
        reported = self._reported(value, event)
        if reported is not None:
            self._builder.failed(reported)
            self._close()
        else:
            self._event(value, event)

    def _unreadable(self, data: bytes, event: str, reason: str) -> None:
        parts = frames.glued(data, self._builder.notebook)
        if parts is not None:
            for part in parts:
                if not self._builder.finished:
                    self._read(part, event)
        elif event == "error":
            text = data.decode("utf-8", "replace")
            self._builder.failed(frames.reported_as_text(text, dialect=self.dialect, profile=self._profile))
            self._close()
        else:
            self._builder.unreadable(data, reason)

    def _reported(self, value: Mapping[str, Any], event: str) -> Failure | None:
        return frames.reported(value, event=event, dialect=self.dialect, profile=self._profile)


def text_of(value: Any) -> str:
    """A string, or nothing for every other type."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> Mapping[str, Any]:
    """A JSON object, or an empty one for every other type."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, or none for every other type."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

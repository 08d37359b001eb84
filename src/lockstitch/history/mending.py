"""A plain request mended in its own format, or converted to another one, on one rung of the ladder."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..providers import dialects
from ..providers.codecs import Codec, codec
from ..providers.parsed import Element, Target
from ..schema.blocks import Block, Reasoning, Text, ToolResult
from ..schema.messages import Message, Request
from ..schema.notes import Anomaly, Violation
from .clean import clean_text
from .policy import policy
from .project import Projected, Projector
from .request_fields import Mended, asks_to_think, mend_fields, with_system
from .verbatim import Verbatim

RUNTIME_FIELDS: Final = frozenset({"stream", "stream_options"})
"""Fields the encoders add for a runtime; a converted request has one only if it came with it."""


FIELD_PASSES: Final = 3
"""A tool may need its type and then, for its name, to go."""


class Repair(NamedTuple):
    """A request that its provider accepts, and what it took."""

    request: dict[str, Any]
    anomalies: tuple[Anomaly, ...]


class Mending:
    """A request that stays in its format."""

    def __init__(self, request: Mapping[str, Any], dialect: str, target: Target) -> None:
        self._request = request
        self._dialect = dialect
        self._target = target
        self._codec = codec(dialect)
        self._elements = _elements(request, self._codec)
        self._read = self._codec.read(self._elements, target)

    def on(self, rung: str, facts: Mapping[str, Any]) -> Repair:
        """The request on a rung; ``facts`` are what is known of it beyond its fields."""
        known = {**self._request, **facts}
        stored = self._dialect == "openai-responses" and known.get("store") is not False
        messages, places = _joined(self._read, self._codec)
        projected = _project(messages, self._target, rung, thinking=asks_to_think(known), stored=stored)
        leading, rest = _leading_system(projected.messages, self._codec)
        request, anomalies = with_system(self._request, self._codec.system_field, leading)
        kept = Verbatim(self._elements, self._read, rest, self._codec, self._target)
        flagged = self._judged(request, kept, facts)
        while kept.give_up(self._codec.list_field, flagged):
            flagged = self._judged(request, kept, facts)
        request, found = fields_mended({**request, **facts}, flagged, self._dialect, self._target)
        request = {key: value for key, value in request.items() if key in self._request or key not in facts}
        seen = {one.where for one in projected.anomalies}
        if leading:
            seen |= {places[at] for at, one in enumerate(self._read) if one.message.role == "system"}
        rewritten = kept.anomalies(places, seen)
        return Repair(request, (*_climbed(rung), *anomalies, *found, *projected.anomalies, *rewritten))

    def _judged(self, request: dict[str, Any], kept: Verbatim, facts: Mapping[str, Any]) -> list[Violation]:
        request[self._codec.list_field] = kept.elements
        return dialects.violations({**request, **facts}, self._dialect, self._target.profile)


class Conversion:
    """A request that goes from one format to another."""

    def __init__(self, request: Mapping[str, Any], source: str, dialect: str, target: Target) -> None:
        self._request = request
        self._dialect = dialect
        self._target = target
        self._codec = codec(dialect)
        self._source = codec(source)
        system, self._tools, self._options, self._used = self._source.read_options(request)
        self._system = clean_text(system).text
        self._read = self._source.read(_elements(request, self._source), target)

    def plain(self) -> dict[str, Any]:
        """Written as it is, for a validator."""
        messages, _ = _joined(self._read, self._source)
        return self._write([_bare(message) for message in messages])[0]

    def on(self, rung: str, facts: Mapping[str, Any]) -> Repair:
        """The request on a rung; ``facts`` are what is known of it beyond its fields."""
        thinking = asks_to_think({**self._request, **facts})
        messages, _ = _joined(self._read, self._source)
        bare = [_bare(message) for message in messages]
        projected = _project(bare, self._target, rung, thinking=thinking, stored=False)
        request, notes = self._write(projected.messages)
        flagged = dialects.violations(request, self._dialect, self._target.profile)
        request, found = fields_mended(request, flagged, self._dialect, self._target)
        read = [anomaly for element in self._read for anomaly in element.anomalies]
        return Repair(
            request, (*_climbed(rung), *self._unread(), *notes, *found, *read, *projected.anomalies)
        )

    def _unread(self) -> Sequence[Anomaly]:
        names = sorted(set(self._request) - self._used - RUNTIME_FIELDS)
        return [
            Anomaly("field_dropped", name, detail=f"{self._dialect} has no place for it") for name in names
        ]

    def _write(self, messages: Sequence[Message]) -> tuple[dict[str, Any], list[Anomaly]]:
        leading, rest = _leading_system(messages, self._codec)
        system = "\n\n".join(text for text in (self._system, leading) if text.strip())
        empty = Request(self._target.model, (), system, self._tools, self._options)
        wire = dialects.encode(empty, self._target.profile)
        request = {
            key: _unmarked(value)
            for key, value in wire.body.items()
            if key not in RUNTIME_FIELDS or key in self._request
        }
        field = self._codec.list_field
        request[field] = [*request.get(field, ()), *self._codec.write(rest, self._target)]
        request.pop("model", None)
        if "model" in self._request:
            request["model"] = self._request["model"]
        elif self._target.model:
            request["model"] = self._target.model
        return request, [Anomaly(note.kind, detail=note.detail) for note in wire.notes]


def fields_mended(request: dict[str, Any], flagged: list[Violation], dialect: str, target: Target) -> Mended:
    """The request with its fields mended until nothing is found any more: one mending may uncover another."""
    anomalies: list[Anomaly] = []
    for _ in range(FIELD_PASSES):
        request, found = mend_fields(request, flagged)
        if not found:
            break
        anomalies += found
        flagged = dialects.violations(request, dialect, target.profile)
    return request, anomalies


def _project(
    messages: Sequence[Message], target: Target, rung: str, *, thinking: bool, stored: bool
) -> Projected:
    projector = Projector(
        policy(target.profile, model=target.model, rung=rung, thinking=thinking, stored=stored)
    )
    projector.extend(messages)
    return projector.projected


def _elements(request: Mapping[str, Any], known: Codec) -> Sequence[Any]:
    """The request's messages, items or contents, whatever stands there."""
    elements = request.get(known.list_field)
    if isinstance(elements, str):
        return [{"role": "user", "content": elements}]
    return elements if isinstance(elements, list | tuple) else ()


def _joined(read: Sequence[Element], known: Codec) -> tuple[list[Message], list[str]]:
    """The messages read, parts of one answer joined; and of each element, the place of its message."""
    messages: list[Message] = []
    places: list[str] = []
    for element in read:
        message = element.message
        last = messages[-1] if messages else None
        if known.answers_are_split and last is not None and last.role == message.role == "assistant":
            messages[-1] = msgspec.structs.replace(last, content=(*last.content, *message.content))
        else:
            messages.append(message)
        places.append(f"messages[{len(messages) - 1}]")
    return messages, places


def _leading_system(messages: Sequence[Message], known: Codec) -> tuple[str, Sequence[Message]]:
    """What leading system messages say, where the protocol has a field for it, and the messages behind."""
    if known.system_field is None:
        return "", messages
    texts: list[str] = []
    count = 0
    for message in messages:
        if message.role != "system":
            break
        texts += [block.text for block in message.content if isinstance(block, Text)]
        count += 1
    return "\n\n".join(texts), messages[count:]


def _bare(message: Message) -> Message:
    """The message without fields that only its own format knows."""
    content = tuple(_bare_block(block) for block in message.content)
    return msgspec.structs.replace(message, content=content, extra=None)


def _bare_block(block: Block) -> Block:
    if isinstance(block, Reasoning):
        model = {key: value for key, value in (block.extra or {}).items() if key == "model"}
        return msgspec.structs.replace(block, extra=model or None, replay=None)
    if isinstance(block, ToolResult):
        parts = tuple(msgspec.structs.replace(part, extra=None, replay=None) for part in block.content)
        return msgspec.structs.replace(block, content=parts, extra=None, replay=None)
    return msgspec.structs.replace(block, extra=None, replay=None)


def _unmarked(value: Any) -> Any:
    """A field's value without the cache marks an encoder put on it: a repair adds none."""
    if not isinstance(value, list):
        return value
    return [
        {key: field for key, field in item.items() if key != "cache_control"}
        if isinstance(item, dict)
        else item
        for item in value
    ]


def _climbed(rung: str) -> Sequence[Anomaly]:
    return () if rung == "normal" else (Anomaly("rung", detail=rung),)

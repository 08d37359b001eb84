"""Stream translation of openai-responses: the events of ``/responses`` become our chunks.

Items are told apart by their id, calls also by their call id, and by ``output_index``; gateways leave out,
change or confuse them, so whichever is known finds the item. What is given again at the end of a part, an
item or the response completes what streamed and never erases it.

Sources: openai-python 3.57.0 (openai/types/responses/response_*_event.py, response.py, response_status.py);
DeepSeek's list of its events, https://api-docs.deepseek.com/guides/responses_api (read 2026-11-30). The
events ``response.done``, ``response.reasoning.delta`` and ``response.reasoning_summary.delta`` are those of
gateways.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ..schema.blocks import Opaque
from ..schema.failures import failure
from ..schema.profiles import Profile
from ..schema.usage import Usage
from ..wire import strict_json
from . import frames
from .call_slots import CallDelta
from .event_translator import EventTranslator, object_of, objects_of, text_of
from .openai_chat_usage import count
from .openai_chat_values import number_of
from .responses_parts import Completed, Parts
from .translator import Mint

_Kind: TypeAlias = Literal["message", "reasoning", "call", "other"]
_KINDS: Final[dict[str, _Kind]] = {"message": "message", "reasoning": "reasoning", "function_call": "call"}
_Source: TypeAlias = Literal["summary", "content"]
_SUMMARY_BREAK: Final = "\n\n"
_TERMINALS: Final = ("response.completed", "response.done", "response.incomplete", "response.cancelled")


@dataclass(slots=True)
class _Item:
    """One output item while it streams."""

    key: int
    """Ours, in order of appearance."""
    kind: _Kind
    id: str | None = None
    parts: Parts = field(default_factory=Parts)
    """Of a message or of reasoning."""
    source: _Source | None = None
    """Of the two texts of reasoning the one that came first, and counts."""
    latest: Hashable = None
    """The part of the reasoning that was written to last."""
    done: bool = False


class ResponsesStream(EventTranslator):
    """One response of openai-responses. See ``providers.translator`` for the contract."""

    dialect = "openai-responses"
    end_mark = "response.completed"
    answer_key = "output"

    def __init__(self, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None) -> None:
        super().__init__(profile, tools, mint)
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_call_id: dict[str, _Item] = {}
        self._by_index: dict[int, _Item] = {}
        self._open_calls: dict[Hashable, None] = {}
        """Keys of the calls that arguments may belong to which do not say whose they are."""
        self._unplaced: dict[_Kind, _Item] = {}
        """Items of events that say neither id nor index, one of a kind."""

    # ---- events ------------------------------------------------------------------------------

    def _event(self, value: Mapping[str, Any], event: str) -> None:
        kind = text_of(value.get("type")) or event
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(value)
            case "response.function_call_arguments.delta":
                self._arguments(value, text_of(value.get("delta")))
            case "response.output_item.added":
                self._added(value)
            case "response.output_item.done":
                self._item_done(value)
            case "response.output_text.done" | "response.refusal.done":
                self._text_done(value, text_of(value.get("text")) or text_of(value.get("refusal")))
            case "response.content_part.done" | "response.reasoning_part.done":
                self._part_done(value, object_of(value.get("part")))
            case "response.reasoning_summary_part.done":
                self._reasoning_done(value, "summary", text_of(object_of(value.get("part")).get("text")))
            case "response.function_call_arguments.done":
                self._arguments_done(value)
            case "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta":
                self._reasoning(value, "summary", text_of(value.get("delta")))
            case "response.reasoning_text.delta" | "response.reasoning.delta":
                self._reasoning(value, "content", text_of(value.get("delta")))
            case "response.reasoning_summary_text.done" | "response.reasoning_summary.done":
                self._reasoning_done(value, "summary", text_of(value.get("text")))
            case "response.reasoning_text.done" | "response.reasoning.done":
                self._reasoning_done(value, "content", text_of(value.get("text")))
            case "response.created" | "response.in_progress" | "response.queued":
                self._model = text_of(object_of(value.get("response")).get("model")) or self._model
            case "response.failed":
                self._failed(_response_of(value), value)
                self._close()
            case _ if kind in _TERMINALS:
                self._ended(_response_of(value), kind.removeprefix("response."))
                self._close()
            case "response":
                self._whole(value)
            case _ if not kind.startswith("response."):
                self._builder.note("unknown_event", f"an event of type {kind!r}")
                self._builder.not_ours(value, event)

    def _whole(self, value: Mapping[str, Any]) -> bool:
        if not isinstance(value.get("output"), list) and value.get("object") != "response":
            return False
        if text_of(value.get("status")) == "failed":
            self._failed(value, value)
        else:
            self._ended(value, text_of(value.get("status")) or "completed")
        return True

    # ---- items -------------------------------------------------------------------------------

    def _find(self, id: Any, index: Any, kind: _Kind, call_id: Any = None) -> _Item:
        """The item that an event is about, opened if it is new. Gateways write the call id where an item's
        belongs (https://github.com/lidge-jun/opencodex/pull/1361, read 2026-11-30)."""
        known_id = text_of(id) or None
        known_index = number_of(index)
        item = self._by_id.get(known_id) if known_id is not None else None
        if item is None and kind == "call":
            item = self._by_call_id.get(text_of(call_id) or known_id or "")
        if item is None and known_index is not None:
            item = self._by_index.get(known_index)
        if item is None and known_id is None and known_index is None:
            item = self._unplaced.get(kind) or self._last_of(kind)
        if item is None or item.kind != kind:
            item = self._unplaced.pop(kind, None) or self._open(kind)
            if known_id is None and known_index is None:
                self._unplaced[kind] = item
        return self._place(item, known_id, known_index)

    def _open(self, kind: _Kind) -> _Item:
        item = _Item(len(self._items), kind)
        if kind == "call":
            self._open_calls[item.key] = None
        self._items.append(item)
        return item

    def _place(self, item: _Item, id: str | None, index: int | None) -> _Item:
        if id is not None:
            self._by_id.setdefault(id, item)
            item.id = item.id or id
        if index is not None:
            self._by_index[index] = item
        return item

    def _last_of(self, kind: _Kind) -> _Item | None:
        return next((item for item in reversed(self._items) if item.kind == kind and not item.done), None)

    def _added(self, value: Mapping[str, Any]) -> None:
        """A new item, unless its id is known; an index alone may be taken by an item that came before."""
        wire = object_of(value.get("item"))
        kind = _KINDS.get(text_of(wire.get("type")), "other")
        id = text_of(wire.get("id")) or None
        index = number_of(value.get("output_index"))
        item = self._by_id.get(id) if id is not None else None
        if item is None:
            item = self._place(self._open(kind), id, index)
        if kind == "call":
            self._call(item, wire)

    def _item_done(self, value: Mapping[str, Any]) -> None:
        wire = object_of(value.get("item"))
        kind = _KINDS.get(text_of(wire.get("type")), "other")
        id = wire.get("id", wire.get("item_id"))  # Bedrock: https://github.com/anomalyco/opencode/pull/46885
        self._complete(self._find(id, value.get("output_index"), kind, wire.get("call_id")), wire)

    def _complete(self, item: _Item, wire: Mapping[str, Any]) -> None:
        """An item given whole: adds what its events left out."""
        match item.kind:
            case "message":
                self._complete_message(item, wire)
            case "reasoning":
                self._complete_reasoning(item, wire)
            case "call":
                self._builder.complete_name(item.key, text_of(wire.get("name")))
                self._call(item, {**wire, "arguments": None})
                self._builder.complete_arguments(item.key, _arguments_text(wire.get("arguments")))
            case "other":
                if not text_of(wire.get("type")):
                    self._builder.note("unknown_block", "an output item without a type")
                elif not item.done:
                    self._builder.block(Opaque(protocol=self.dialect, value=wire), visible=True)
        item.done = True
        self._open_calls.pop(item.key, None)

    # ---- messages ----------------------------------------------------------------------------

    def _text(self, value: Mapping[str, Any]) -> None:
        item, number = self._text_part(value)
        if piece := text_of(value.get("delta")):
            self._builder.text(piece, part=(item.key, item.parts.add(number, piece)))

    def _text_done(self, value: Mapping[str, Any], whole: str) -> None:
        item, number = self._text_part(value)
        self._complete_text(item, item.parts.complete(number, whole))

    def _complete_text(self, item: _Item, completed: Completed) -> None:
        key, rest = completed
        self._builder.text(self._or_note(item, rest), part=(item.key, key))

    def _text_part(self, value: Mapping[str, Any]) -> tuple[_Item, int]:
        item = self._find(value.get("item_id"), value.get("output_index"), "message")
        return item, number_of(value.get("content_index")) or 0

    def _or_note(self, item: _Item, rest: str | None) -> str:
        """What a text given whole adds; nothing, and a note, if it is another one."""
        if rest is None:
            self._builder.note("text_differs", f"the {item.kind} number {item.key}")
        return rest or ""

    def _part_done(self, value: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        match part.get("type"):
            case "output_text" | "refusal" | "text":
                self._text_done(value, text_of(part.get("text")) or text_of(part.get("refusal")))
            case "reasoning_text":
                self._reasoning_done(value, "content", text_of(part.get("text")))

    def _complete_message(self, item: _Item, wire: Mapping[str, Any]) -> None:
        content = _parts_of(wire.get("content"))
        wholes = [text_of(part.get("text")) or text_of(part.get("refusal")) for part in content]
        for completed, part in zip(item.parts.complete_all(wholes), content, strict=True):
            self._complete_text(item, completed)
            if annotations := part.get("annotations"):
                self._builder.annotate_text(part=(item.key, completed[0]), extra={"annotations": annotations})

    # ---- reasoning ---------------------------------------------------------------------------

    def _reasoning(self, value: Mapping[str, Any], source: _Source, piece: str) -> None:
        item, number = self._reasoning_part(value, source)
        if piece and item.source in (None, source):
            self._think(item, source, (item.parts.add(number, piece), piece))

    def _reasoning_done(self, value: Mapping[str, Any], source: _Source, whole: str) -> None:
        item, number = self._reasoning_part(value, source)
        if item.source in (None, source):
            self._think(item, source, item.parts.complete(number, whole))

    def _reasoning_part(self, value: Mapping[str, Any], source: _Source) -> tuple[_Item, int]:
        """Of a summary beside the reasoning itself one is enough, the first: the item's ``source``."""
        item = self._find(value.get("item_id"), value.get("output_index"), "reasoning")
        return item, number_of(value.get("summary_index" if source == "summary" else "content_index")) or 0

    def _think(self, item: _Item, source: _Source, completed: Completed) -> None:
        key, piece = completed[0], self._or_note(item, completed[1])
        if not piece:
            return
        if item.source is not None and key != item.latest:
            self._builder.reasoning(_SUMMARY_BREAK, part=item.key)
        item.source, item.latest = source, key
        self._builder.reasoning(piece, part=item.key)

    def _complete_reasoning(self, item: _Item, wire: Mapping[str, Any]) -> None:
        texts: dict[_Source, list[str]] = {
            source: [text_of(part.get("text")) for part in _parts_of(wire.get(source))]
            for source in ("summary", "content")
        }
        source: _Source = item.source or ("summary" if any(texts["summary"]) else "content")
        for completed in item.parts.complete_all(texts[source]):
            self._think(item, source, completed)
        sealed = text_of(wire.get("encrypted_content")) or None
        id = text_of(wire.get("id")) or item.id
        if sealed is not None or id is not None:
            replay = self._replay(item_id=id, summary_parts=len(texts["summary"]))
            self._builder.seal_reasoning(part=item.key, redacted=sealed, replay=replay)

    # ---- calls -------------------------------------------------------------------------------

    def _call(self, item: _Item, wire: Mapping[str, Any]) -> None:
        call = self._builder.call(
            CallDelta(
                item.key,
                text_of(wire.get("call_id")) or None,
                text_of(wire.get("name")) or None,
                _arguments_text(wire.get("arguments")),
                whole_slot=item.id is not None and wire.get("id") == item.id,
            )
        )
        if call_id := text_of(wire.get("call_id")):
            self._by_call_id.setdefault(call_id, item)
        if call is not None and (id := text_of(wire.get("id")) or item.id):
            call.replay = self._replay(item_id=id)

    def _arguments(self, value: Mapping[str, Any], piece: str) -> None:
        item = self._item_of_arguments(value)
        if not self._builder.call_arguments(item.key, piece):
            self._builder.call(CallDelta(item.key, arguments=piece))

    def _arguments_done(self, value: Mapping[str, Any]) -> None:
        item = self._item_of_arguments(value)
        if name := text_of(value.get("name")):
            self._builder.complete_name(item.key, name)
            self._builder.call(CallDelta(item.key, name=name))
        self._builder.complete_arguments(item.key, _arguments_text(value.get("arguments")))

    def _item_of_arguments(self, value: Mapping[str, Any]) -> _Item:
        id, index, call_id = value.get("item_id"), value.get("output_index"), value.get("call_id")
        if number_of(index) is None and not text_of(id) and not text_of(call_id):
            item = self._find(id, index, "call")
            self._open_calls = self._builder.doubt({**self._open_calls, item.key: None})
            return item
        return self._find(id, index, "call", call_id)

    # ---- endings -----------------------------------------------------------------------------

    def _ended(self, response: Mapping[str, Any], status: str) -> None:
        self._model = text_of(response.get("model")) or self._model
        self._usage(object_of(response.get("usage")))
        self._complete_output(objects_of(response.get("output")))
        status = text_of(response.get("status")) or status
        reason = text_of(object_of(response.get("incomplete_details")).get("reason"))
        if status == "failed" or object_of(response.get("error")):
            self._failed(response, response)
        elif status == "cancelled":
            self._builder.failed(failure("SERVER", "the provider cancelled the response; try again"))
        elif status == "incomplete" and reason == "content_filter":
            text = "the provider's content filter ended the answer; change the request"
            self._builder.failed(failure("CONTENT_FILTER", text, provider_code=reason))
        elif status == "incomplete":
            if reason != "max_output_tokens":
                self._builder.note("unknown_finish_reason", f"incomplete for the reason {reason!r}")
            self._builder.reason("length")
        else:
            self._builder.reason("stop")

    def _complete_output(self, output: Sequence[Mapping[str, Any]]) -> None:
        """The final snapshot: completes what streamed; what did not stream is added, nothing is erased."""
        for position, wire in enumerate(output):
            kind = _KINDS.get(text_of(wire.get("type")), "other")
            item = self._by_id.get(text_of(wire.get("id")))
            if item is None and kind == "call":
                item = self._by_call_id.get(text_of(wire.get("call_id")))
            if item is None or item.kind != kind:
                at = self._by_index.get(position)
                item = at if at is not None and at.kind == kind else self._unplaced.pop(kind, None)
            if item is None:
                same = [one for one in self._items if one.kind == kind]
                before = sum(
                    _KINDS.get(text_of(one.get("type")), "other") == kind for one in output[:position]
                )
                item = same[before] if before < len(same) else self._open(kind)
            self._complete(item, wire)

    def _failed(self, response: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        self._usage(object_of(response.get("usage")))
        said: Any = response.get("error") or event.get("error") or {"message": "the response failed"}
        value = {**frames.delays(event), **frames.delays(response), "error": said}
        found = frames.reported(value, event="error", dialect=self.dialect, profile=self._profile)
        assert found is not None
        self._builder.failed(found)

    def _usage(self, wire: Mapping[str, Any]) -> None:
        """``input_tokens`` includes what was read from the cache, ``Usage.input_tokens`` does not."""
        prompt, answer = count(wire.get("input_tokens")), count(wire.get("output_tokens"))
        if prompt is None and answer is None:
            return
        details = object_of(wire.get("input_tokens_details"))
        read, written = count(details.get("cached_tokens")), count(details.get("cache_write_tokens"))
        self._builder.usage(
            Usage(
                input_tokens=max(0, (prompt or 0) - (read or 0) - (written or 0)),
                output_tokens=answer or 0,
                cache_read_tokens=read,
                cache_write_tokens=written,
                reasoning_tokens=count(object_of(wire.get("output_tokens_details")).get("reasoning_tokens")),
            )
        )


def _response_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response of an event; some gateways send it in place of the event
    (https://github.com/pjq/sap-ai-core-llm-proxy/pull/35, read 2026-11-30)."""
    return object_of(value.get("response")) or (value if value.get("object") == "response" else {})


def _parts_of(content: Any) -> list[Mapping[str, Any]]:
    """The parts of an item; a text, alone or in their list, is one too, as it is in a request."""
    parts = content if isinstance(content, list) else [content]
    return [
        {"text": part} if isinstance(part, str) else part for part in parts if isinstance(part, str | dict)
    ]


def _arguments_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else strict_json.encoded(value)

"""Stream translation of anthropic-messages: the events of ``/v1/messages`` become our chunks.

Sources: https://platform.claude.com/docs/build-with-claude/streaming and
https://platform.claude.com/docs/build-with-claude/handling-stop-reasons (read 2026-11-30), and anthropic
2.14.0 (anthropic/types/raw_*_event.py, stop_reason.py). Bedrock adds usage to ``message_stop``.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from ..schema.blocks import Opaque
from ..schema.failures import FailureCode, failure
from ..schema.profiles import Profile
from ..schema.usage import Usage
from ..wire import strict_json
from .call_slots import CallDelta
from .event_translator import EventTranslator, object_of, objects_of, text_of
from .openai_chat_usage import count
from .openai_chat_values import number_of
from .response import Reason
from .translator import Mint

_REASONS: Final[dict[str, Reason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",  # a server-side tool loop paused; what came is the message to go on from
    "tool_use": "tool_calls",
    "max_tokens": "length",
}
_FAILURES: Final[dict[str, tuple[FailureCode, str]]] = {
    "refusal": ("CONTENT_FILTER", "the provider refused to answer; change the request"),
    "model_context_window_exceeded": (
        "CONTEXT_WINDOW_EXCEEDED",
        "the conversation no longer fits the model's window; compact it",
    ),
}
_USAGE_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class AnthropicStream(EventTranslator):
    """One response of anthropic-messages. See ``providers.translator`` for the contract."""

    dialect = "anthropic-messages"
    end_mark = "message_stop"
    answer_key = "content"

    def __init__(self, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None) -> None:
        super().__init__(profile, tools, mint)
        self._counts: dict[str, int] = {}
        self._inputs: dict[Hashable, str] = {}
        """Input that came whole with the start of a tool_use block, used if no delta brings any."""
        self._open_calls: dict[Hashable, None] = {}
        """Calls that were started, not stopped, and whose input did not come whole."""
        self._opaque: dict[Hashable, tuple[Mapping[str, Any], list[str]]] = {}
        """Open blocks that have no place here, each with the pieces of its input."""
        self._citations: dict[Hashable, list[Any]] = {}
        self._keys: dict[int, Hashable] = {}
        """Key of the block that an index stands for now; gateways use one index for several blocks."""
        self._key_by_id: dict[str, Hashable] = {}
        self._starts = 0
        self._stopped: set[Hashable] = set()
        self._last: Hashable = 0
        """Key of the block that was started or written to last, for events without an index."""
        self._whole_content: Sequence[Mapping[str, Any]] = ()
        """Content that came with message_start, used if no block follows."""

    def _event(self, value: Mapping[str, Any], event: str) -> None:
        match text_of(value.get("type")) or event:
            case "content_block_delta":
                key, delta = self._index(value), object_of(value.get("delta"))
                if number_of(value.get("index")) is None and "partial_json" in delta:
                    self._open_calls = self._builder.doubt({**self._open_calls, key: None})
                self._delta(key, delta)
            case "content_block_start":
                self._start(self._new_key(value), object_of(value.get("content_block")))
            case "content_block_stop":
                self._stop(self._index(value))
            case "message_start":
                self._message_start(object_of(value.get("message")))
            case "message_delta":
                self._usage(object_of(value.get("usage")))
                self._label(object_of(value.get("delta")).get("stop_reason") or value.get("stop_reason"))
            case "message_stop":
                self._usage(object_of(value.get("usage")))
                self._usage(_bedrock_metrics(value))
                self._close()
            case "message":
                self._whole(value)
            case "ping":
                pass
            case kind:
                self._builder.note("unknown_event", f"an event of type {kind!r}")
                self._builder.not_ours(value, event)

    def _whole(self, value: Mapping[str, Any]) -> bool:
        content = value.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            return False
        self._model = text_of(value.get("model")) or self._model
        self._usage(object_of(value.get("usage")))
        self._blocks(objects_of(content))
        self._label(value.get("stop_reason"))
        self._builder.reason("stop")
        return True

    def _before_ending(self) -> None:
        for index in (*self._inputs, *self._opaque):
            self._stop(index)
        content, self._whole_content = self._whole_content, ()
        if content and not self._builder.begun:
            self._blocks(content)

    def _message_start(self, message: Mapping[str, Any]) -> None:
        self._model = text_of(message.get("model")) or self._model
        self._usage(object_of(message.get("usage")))
        self._whole_content = objects_of(message.get("content"))
        self._label(message.get("stop_reason"))

    def _blocks(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        for position, block in enumerate(blocks):
            self._start(("whole", position), block)
            self._stop(("whole", position))

    def _index(self, value: Mapping[str, Any]) -> Hashable:
        index = number_of(value.get("index"))
        if index is None:
            self._builder.note("missing_index", "an event of a block does not say which block")
        else:
            self._last = self._keys.setdefault(index, index)
        return self._last

    def _new_key(self, value: Mapping[str, Any]) -> Hashable:
        """The key of a block that starts: its own, unless it is a call that started before."""
        index = number_of(value.get("index"))
        id = text_of(object_of(value.get("content_block")).get("id"))
        key: Hashable = self._key_by_id.get(id)
        if key is None:
            taken = index is None or self._keys.get(index, index) in self._stopped
            self._starts += 1
            key = ("again", self._starts) if taken else index
        if id:
            self._key_by_id[id] = key
        if index is not None:
            self._keys[index] = key
        self._last = key
        return key

    def _start(self, index: Hashable, block: Mapping[str, Any]) -> None:
        match block.get("type"):
            case "text":
                self._builder.text(text_of(block.get("text")), part=index)
                if citations := block.get("citations"):
                    self._builder.annotate_text(part=index, extra={"citations": citations})
            case "thinking":
                self._builder.reasoning(text_of(block.get("thinking")), part=index)
                self._sign(index, block.get("signature"))
            case "redacted_thinking":
                if data := text_of(block.get("data")):
                    self._builder.seal_reasoning(part=index, redacted=data)
            case "tool_use":
                self._builder.call(
                    CallDelta(index, text_of(block.get("id")) or None, text_of(block.get("name")) or None)
                )
                self._inputs[index] = _input_text(block.get("input"))
                if not self._inputs[index]:
                    self._open_calls[index] = None
            case kind:
                if not text_of(kind):
                    self._builder.note("unknown_block", "a block without a type")
                else:
                    self._opaque[index] = (block, [])

    def _delta(self, index: Hashable, delta: Mapping[str, Any]) -> None:
        match delta.get("type") or _kind_of(delta):
            case "text_delta":
                self._builder.text(text_of(delta.get("text")), part=index)
            case "input_json_delta":
                self._arguments(index, delta.get("partial_json"))
            case "thinking_delta":
                self._builder.reasoning(text_of(delta.get("thinking")), part=index)
            case "signature_delta":
                self._sign(index, delta.get("signature"))
            case "citations_delta":
                found = self._citations.setdefault(index, [])
                found.append(delta.get("citation"))
                self._builder.annotate_text(part=index, extra={"citations": found})
            case kind:
                self._builder.note("unknown_delta", f"a delta of type {kind!r}")

    def _arguments(self, index: Hashable, piece: Any) -> None:
        text = piece if isinstance(piece, str) else _input_text(piece)
        if index in self._opaque:
            self._opaque[index][1].append(text)
        elif text:
            self._inputs.pop(index, None)
            if not self._builder.call_arguments(index, text):
                self._builder.call(CallDelta(index, arguments=text))

    def _stop(self, index: Hashable) -> None:
        self._stopped.add(index)
        self._open_calls.pop(index, None)
        if whole := self._inputs.pop(index, ""):
            self._builder.call_arguments(index, whole)
        if index in self._opaque:
            block, pieces = self._opaque.pop(index)
            if any(pieces) and (whole_input := self._input("".join(pieces))) is not None:
                block = {**block, "input": whole_input}
            self._builder.block(Opaque(protocol=self.dialect, value=block), visible=True)

    def _input(self, text: str) -> dict[str, Any] | None:
        """The input of a provider's own tool; None if it was cut, for only an object can be given back."""
        try:
            return strict_json.arguments(strict_json.well_formed(text))
        except strict_json.InvalidJson as error:
            self._builder.note("invalid_arguments", f"a tool of the provider: {error.reason}")
            return None

    def _sign(self, index: Hashable, signature: Any) -> None:
        if isinstance(signature, str) and signature:
            self._builder.seal_reasoning(part=index, signature=signature)

    def _label(self, label: Any) -> None:
        if not isinstance(label, str) or not label:
            return
        if label in _FAILURES:
            code, text = _FAILURES[label]
            self._builder.failed(failure(code, text, provider_code=label))
            return
        if label not in _REASONS:
            self._builder.note("unknown_finish_reason", f"stop_reason is {label!r}")
        self._builder.reason(_REASONS.get(label, "stop"))

    def _usage(self, wire: Mapping[str, Any]) -> None:
        """Counts so far: per field the largest, since a later report may leave out or zero an earlier one."""
        for name in _USAGE_FIELDS:
            said = count(wire.get(name))
            if said is not None:
                self._counts[name] = max(said, self._counts.get(name, 0))
        if self._counts:
            self._builder.usage(
                Usage(
                    input_tokens=self._counts.get("input_tokens", 0),
                    output_tokens=self._counts.get("output_tokens", 0),
                    cache_read_tokens=self._counts.get("cache_read_input_tokens"),
                    cache_write_tokens=self._counts.get("cache_creation_input_tokens"),
                )
            )


def _kind_of(delta: Mapping[str, Any]) -> str | None:
    """The type of a delta that does not say it, by the field it carries."""
    by_field = {
        "text": "text_delta",
        "partial_json": "input_json_delta",
        "thinking": "thinking_delta",
        "signature": "signature_delta",
    }
    return next((kind for field, kind in by_field.items() if field in delta), None)


def _input_text(value: Any) -> str:
    """Input given as a value, as JSON text; the empty object that every block starts with says nothing."""
    if value is None or value in ({}, ""):
        return ""
    return value if isinstance(value, str) else strict_json.encoded(value)


def _bedrock_metrics(value: Mapping[str, Any]) -> Mapping[str, Any]:
    metrics = object_of(value.get("amazon-bedrock-invocationMetrics"))
    return {
        "input_tokens": metrics.get("inputTokenCount"),
        "output_tokens": metrics.get("outputTokenCount"),
        "cache_read_input_tokens": metrics.get("cacheReadInputTokenCount"),
        "cache_creation_input_tokens": metrics.get("cacheWriteInputTokenCount"),
    }

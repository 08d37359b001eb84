"""Stream translation of gemini: the responses of ``:streamGenerateContent`` become our chunks.

Each frame is a whole GenerateContentResponse with the parts that are new. Calls come whole and often without
an id; there is no sentinel, the end of the body is the end.

Source: the types of the google-genai package 3.6.1 (google/genai/types.py: GenerateContentResponse, Part,
FunctionCall, FinishReason, BlockedReason, GenerateContentResponseUsageMetadata).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..schema.blocks import Base64Source, Image, Opaque
from ..schema.failures import FailureCode, failure
from ..schema.profiles import Profile
from ..schema.usage import Usage
from ..wire import strict_json
from .call_slots import CallDelta
from .event_translator import EventTranslator, object_of, objects_of, text_of
from .gemini_partial_args import PartialCall, is_partial
from .gemini_second_answer import SecondAnswer
from .openai_chat_usage import count
from .response import Reason
from .translator import Mint

_MARKS: Final = ("thought", "thoughtSignature", "thought_signature")
"""Fields of a part that are no content."""
_REASONS: Final[dict[str, Reason]] = {
    "STOP": "stop",
    "NO_IMAGE": "stop",  # an image was expected; what came instead is the answer
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",  # the limit of one request; the answer is not at its end
}
_FILTERED: Final = ("CONTENT_FILTER", "the provider's filter ended the answer ({}); change the request")
_MALFORMED: Final = ("MALFORMED_TOOL_CALL", "the model wrote a tool call that cannot be used ({}); try again")
_FAILURES: Final[dict[str, tuple[FailureCode, str]]] = {
    "SAFETY": _FILTERED,
    "RECITATION": _FILTERED,
    "BLOCKLIST": _FILTERED,
    "PROHIBITED_CONTENT": _FILTERED,
    "SPII": _FILTERED,
    "LANGUAGE": _FILTERED,
    "IMAGE_SAFETY": _FILTERED,
    "IMAGE_PROHIBITED_CONTENT": _FILTERED,
    "IMAGE_RECITATION": _FILTERED,
    "MODEL_ARMOR": _FILTERED,
    "ESCALATION": _FILTERED,
    "PUP_LIMITED_DISABLED": ("AUTH", "the provider has limited this account ({}); ask the provider"),
    "MALFORMED_FUNCTION_CALL": _MALFORMED,
    "UNEXPECTED_TOOL_CALL": _MALFORMED,
    "TOO_MANY_TOOL_CALLS": _MALFORMED,
    "MALFORMED_RESPONSE": (
        "MALFORMED_RESPONSE",
        "the provider could not read its model's answer ({}); try again",
    ),
    "MISSING_THOUGHT_SIGNATURE": (
        "INVALID_STRUCTURE",
        "a call of the history lacks its thought signature ({}); send the request without reasoning",
    ),
}


class GeminiStream(EventTranslator):
    """One response of gemini. See ``providers.translator`` for the contract."""

    dialect = "gemini"
    end_mark = ""  # the end of the body is the end
    answer_key = "candidates"

    def __init__(self, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None) -> None:
        super().__init__(profile, tools, mint)
        self._calls = 0
        self._seen: dict[str, tuple[str, str]] = {}
        """Name and arguments of the calls that brought an id."""
        self._partial: dict[str | int, PartialCall] = {}
        """Calls whose arguments come in pieces, by their id or, without one, a number, in order."""
        self._pieces_lost = False
        """A piece may have gone to another call than its own."""
        self._second = SecondAnswer()

    def _event(self, value: Mapping[str, Any], event: str) -> None:
        value = object_of(value.get("response")) or value  # Code Assist wraps each response
        if self._second.holds(value):
            return
        self._take(value)

    def _before_ending(self) -> None:
        held, note = self._second.settled()
        if note:
            self._builder.note("second_answer", note)
        for value in held:
            self._take(value)
        for key in list(self._partial):  # the last one was cut, the others had no end of their own
            others = len(self._partial) > 1
            self._end_partial(key, ended=others and not self._partial[key].within_string)

    def _take(self, value: Mapping[str, Any]) -> None:
        self._model = text_of(value.get("modelVersion")) or self._model
        for candidate in objects_of(value.get("candidates")):
            self._candidate(candidate)
        if "candidates" not in value:
            self._builder.not_ours(value)
        self._usage(object_of(value.get("usageMetadata")))
        blocked = text_of(object_of(value.get("promptFeedback")).get("blockReason"))
        if blocked and not blocked.endswith("UNSPECIFIED"):
            text = f"the provider blocked the prompt ({blocked}); change the request"
            self._builder.failed(failure("CONTENT_FILTER", text, provider_code=blocked))

    def _whole(self, value: Mapping[str, Any]) -> bool:
        inner = object_of(value.get("response")) or value
        if not any(key in inner for key in ("candidates", "promptFeedback", "usageMetadata")):
            return False
        self._take(inner)
        return True

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        content = object_of(candidate.get("content"))
        for part in objects_of(content.get("parts")):
            self._part(part)
        self._label(candidate.get("finishReason"), text_of(candidate.get("finishMessage")))

    def _part(self, part: Mapping[str, Any]) -> None:
        signature = text_of(part.get("thoughtSignature", part.get("thought_signature"))) or None
        call = part.get("functionCall", part.get("function_call"))
        image = object_of(part.get("inlineData", part.get("inline_data")))
        if isinstance(call, dict):
            # One part with both (https://github.com/NousResearch/hermes-agent/pull/109862, read 2026-11-30).
            self._text(text_of(part.get("text")), part.get("thought") is True, None)
            self._call(call, signature)
        elif isinstance(part.get("text"), str):
            self._text(part["text"], part.get("thought") is True, signature)
        elif text_of(image.get("data")):
            media_type = text_of(image.get("mimeType", image.get("mime_type"))) or "application/octet-stream"
            if media_type.startswith("image/"):
                replay = self._replay(thought_signature=signature)
                picture = Image(media_type=media_type, source=Base64Source(image["data"]), replay=replay)
                self._builder.block(picture, visible=True)
            else:
                self._builder.block(Opaque(protocol=self.dialect, value=part), visible=True)
        elif any(object_of(value) for key, value in part.items() if key not in _MARKS):
            self._builder.block(Opaque(protocol=self.dialect, value=part), visible=True)
        elif any(value is not None for key, value in part.items() if key not in _MARKS):
            self._builder.note("unknown_block", f"a part that holds nothing known: {', '.join(part)[:100]}")
        elif signature is not None:
            self._text("", False, signature)

    def _text(self, text: str, thought: bool, signature: str | None) -> None:
        if thought:
            self._builder.reasoning(text, part="thought")
            if signature is not None:
                self._builder.seal_reasoning(part="thought", signature=signature)
            return
        self._builder.text(text, part="text")
        if signature is not None:
            self._builder.annotate_text(part="text", replay=self._replay(thought_signature=signature))

    def _call(self, wire: Mapping[str, Any], signature: str | None) -> None:
        if is_partial(wire) or self._partial:
            self._partial_call(wire, signature)
        else:
            self._call_whole(wire, signature)

    def _call_whole(self, wire: Mapping[str, Any], signature: str | None) -> None:
        id = text_of(wire.get("id")) or None
        name = text_of(wire.get("name")) or None
        arguments = _arguments(wire.get("args"))
        if id is not None and id in self._seen:
            if self._seen[id] == (name, arguments):
                self._builder.note("call_repeated", f"the call {id} came twice; it counts once")
                return
            self._builder.note("id_reused", f"two different calls have the id {id}; the second gets another")
            id = None
        if id is not None:
            self._seen[id] = (name or "", arguments)
        self._calls += 1
        call = self._builder.call(CallDelta(("call", self._calls), id, name, arguments))
        if call is not None and signature is not None:
            call.replay = self._replay(thought_signature=signature)

    def _partial_call(self, wire: Mapping[str, Any], signature: str | None) -> None:
        """One piece of a call: of the one with its id; if it has a name, of another one; else of the last."""
        id, name = text_of(wire.get("id")), text_of(wire.get("name"))
        last = next(reversed(self._partial), None)
        key: str | int | None = id if id in self._partial else None
        if key is None and last is not None and not (name and self._partial[last].name):
            key = last
            self._pieces_lost = self._pieces_lost or (not id and len(self._partial) > 1)
        if key is None:
            if last is not None and not (id and self._partial[last].id):  # no later piece can say it is its
                self._end_partial(last, ended=not self._partial[last].within_string)
            self._calls += 1
            key = id or self._calls
            self._partial[key] = PartialCall()
        self._partial[key].add(wire, signature)
        if wire.get("willContinue") is not True:
            self._end_partial(key, ended=True)

    def _end_partial(self, key: str | int, *, ended: bool) -> None:
        partial = self._partial.pop(key)
        ended = ended and not self._pieces_lost
        whole = {"id": partial.id, "name": partial.name, "args": partial.arguments(ended=ended)}
        self._call_whole(whole, partial.signature)

    def _label(self, said: Any, detail: str) -> None:
        label = said.upper() if isinstance(said, str) else ""
        if not label or label.endswith("UNSPECIFIED"):
            return
        if label in _FAILURES:
            code, text = _FAILURES[label]
            said = f"{label}: {detail}"[:300] if detail else label
            self._builder.failed(failure(code, text.format(said), provider_code=label))
            return
        if label not in _REASONS:
            self._builder.note("unknown_finish_reason", f"finishReason is {label!r}")
        self._builder.reason(_REASONS.get(label, "stop"))

    def _usage(self, wire: Mapping[str, Any]) -> None:
        """The last report counts. promptTokenCount includes cached tokens; thoughts are counted apart."""
        prompt, answer = count(wire.get("promptTokenCount")), count(wire.get("candidatesTokenCount"))
        thoughts = count(wire.get("thoughtsTokenCount"))
        if prompt is None and answer is None and thoughts is None:
            return
        cached = count(wire.get("cachedContentTokenCount"))
        tool_prompt = count(wire.get("toolUsePromptTokenCount")) or 0
        self._builder.usage(
            Usage(
                input_tokens=max(0, (prompt or 0) - (cached or 0)) + tool_prompt,
                output_tokens=(answer or 0) + (thoughts or 0),
                cache_read_tokens=cached,
                reasoning_tokens=thoughts,
            )
        )


def _arguments(value: Any) -> str:
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else strict_json.encoded(value)

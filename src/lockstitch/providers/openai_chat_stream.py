"""Stream translation of openai-chat: chunks of ``/chat/completions`` become our chunks.

Frames that look as they should are decoded into typed structs, everything else value by value; both ways feed
the same builder and give the same chunks. Whatever a gateway sends, nothing raises.

Sources: openai-python 3.57.0 (openai/types/chat/chat_completion_chunk.py);
https://api-docs.deepseek.com/guides/thinking_mode.md (reasoning_content) and
https://github.com/mistralai/client-python (src/mistralai/client/models: content as a list of parts), read
2026-11-30; https://openrouter.ai/docs/features/multimodal/image-generation (images),
https://github.com/openai/openai-python/issues/2507 (audio) and the model OpenRouterStreamChoice of
https://api.koog.ai (an error within a choice), read 2026-12-01. What gateways do beside them: docs/notes.md.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ..schema.blocks import Replay
from ..schema.chunks import Chunk
from ..schema.failures import Failure
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..wire import strict_json
from ..wire.strict_json import InvalidJson
from . import frames
from .call_slots import Call, CallDelta
from .openai_chat_chunk import ChatChunk, Entry, decode_chunk
from .openai_chat_finish import reason_of, says_nothing
from .openai_chat_replay import DETAILS, EXTRA_CONTENT, ReasoningDetails, text_of
from .openai_chat_usage import usage_of
from .openai_chat_values import (
    identity_of,
    image_of,
    number_of,
    objects_of,
    reasoning_in,
    slot_of,
    text_in,
    type_name,
)
from .other_protocols import not_read, protocol_of
from .response import ResponseBuilder
from .translator import MODEL_MAX, Mint

_SHALLOW_MAX: Final = 2 * strict_json.MAX_DEPTH
"""Bytes of a frame that cannot be nested too deeply: each level takes two, for its brackets."""


class OpenAiChatStream:
    """One response of openai-chat. See ``providers.translator`` for the contract."""

    def __init__(
        self, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None, *, typed: bool = True
    ) -> None:
        """``typed`` false takes the slow path for every frame, for a test that both are the same."""
        self.terminal = False
        self._builder = ResponseBuilder("openai-chat", profile, tools, mint)
        self._profile = profile
        self._typed = typed
        self._messages: dict[Hashable, Mapping[str, Any]] = {}
        """Whole messages by choice, used if no delta came."""
        self._details = ReasoningDetails()
        self._model = ""
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
        return self.frames(((data, event),))[0]

    def frames(self, found: Iterable[tuple[bytes, str]]) -> tuple[list[Chunk], int]:
        """See ``translator.TranslateAll``. Nearly all the time of a stream is spent in this loop."""
        if self._builder.finished:
            return [], 0
        builder, typed = self._builder, self._typed
        read = 0
        for data, event in found:
            read += 1
            chunk: ChatChunk | None = None
            if typed and event != "error" and not (len(data) > _SHALLOW_MAX and _may_be_deep(data)):
                try:
                    chunk = decode_chunk(data)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    chunk = None
            # A frame without choices and usage is perhaps an error that does not say so.
            if chunk is not None and (chunk.choices or chunk.usage is not None):
                self._typed_frame(chunk)
                continue
            self._slow_frame(data, event)
            if builder.finished:
                break
        return builder.take(), read

    def document(self, value: Any) -> list[Chunk]:
        self._document = True
        self._builder.note("json_instead_of_stream")
        known, spoken = False, None
        for said in value if isinstance(value, list) else [value]:
            one = frames.unwrapped(said, "choices") if isinstance(said, dict) else said
            known = known or (isinstance(one, dict) and "choices" in one)
            spoken = spoken or (protocol_of(one) if isinstance(one, dict) else None)
            self._value(one, "")
        if known:
            self._settle()
            self._builder.reason("stop")
        elif not self._builder.terminal_seen:
            self._builder.failed(not_read("openai-chat", spoken))
        return self._builder.take()

    def end(self, strays: bytes) -> list[Chunk]:
        if not self._builder.finished:
            self._settle()
            if self._builder.well and not self._document:
                self._builder.note("missing_done")
            self._builder.end(strays)
        return self._builder.take()

    def fail(self, failure: Failure, *, aborted: bool = False) -> list[Chunk]:
        self._settle()
        self._builder.fail(failure, aborted=aborted)
        return self._builder.take()

    # ---- frames as they should be ------------------------------------------------------------

    def _typed_frame(self, chunk: ChatChunk) -> None:
        builder = self._builder
        for choice in chunk.choices:
            if choice is None:
                continue
            number = choice.index or 0
            delta = choice.delta
            if delta is not None:
                reasoning = (
                    delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.thinking
                )
                if reasoning:
                    self._say(reasoning, delta.content)
                elif delta.content:
                    builder.text(delta.content)
                if delta.tool_calls:
                    self._typed_entries(delta.tool_calls, number)
            if choice.finish_reason:
                self._label(choice.finish_reason)
        if chunk.usage is not None:
            self._usage(chunk.usage)

    def _typed_entries(self, entries: list[Entry | None], number: int) -> None:
        if len(entries) > 1:
            self._doubt(
                slot_of(number, entry.index)
                for entry in entries
                if entry is not None and (function := entry.function) is not None
                if function.arguments and not (entry.id or function.name)
            )
        follows = False
        for entry in entries:
            if entry is None:
                continue
            function = entry.function
            slot = slot_of(number, entry.index) if number else entry.index
            if function is not None and not function.name and not entry.id and slot is not None:
                piece = function.arguments or ""
                if not self._builder.call_arguments(slot, piece):
                    self._entry(slot, None, None, piece, follows)
            elif function is None:
                self._entry(slot, entry.id, None, "", follows)
            else:
                self._entry(slot, entry.id, function.name, function.arguments or "", follows)
            follows = True

    # ---- frames of any shape -----------------------------------------------------------------

    def _slow_frame(self, data: bytes, event: str) -> None:
        if data.strip(b' \t\n"').upper() == b"[DONE]":
            self._settle()
            self._builder.close()
            self.terminal = True
            return
        try:
            value = frames.parse(data, self._builder.notebook, self._builder.keep_halves)
        except InvalidJson as error:
            parts = frames.glued(data, self._builder.notebook)
            if parts is not None:
                for part in parts:
                    if not self._builder.finished:
                        self._slow_frame(part, event)
            elif event == "error" and self._builder.refused:
                return
            elif event == "error":
                text = data.decode("utf-8", "replace")
                self._builder.failed(
                    frames.reported_as_text(text, dialect="openai-chat", profile=self._profile)
                )
            else:
                self._builder.unreadable(data, error.reason)
            return
        self._value(value, event)

    def _value(self, value: Any, event: str) -> None:
        if not isinstance(value, dict):
            self._builder.note("frame_not_object", f"a frame holds a JSON {type_name(value)}, not an object")
            for one in value if isinstance(value, list) else ():  # a list of them, where there should be one
                if isinstance(one, dict):
                    self._value(one, event)
            return
        said = frames.error_in(value, event)
        if said is not None and not self._builder.refused:
            self._builder.failed(frames.reported_as(said, dialect="openai-chat", profile=self._profile))
        self._model = model if isinstance(model := value.get("model"), str) else self._model
        usage = value.get("usage")
        if not isinstance(usage, dict) and isinstance(value.get("x_groq"), dict):
            usage = value["x_groq"].get("usage")
        if said is None and "choices" not in value:
            self._builder.not_ours(value, event)
        if said is None:
            for choice in objects_of(value.get("choices")):
                if choice.get("error"):  # OpenRouter's place for an error of one choice
                    self._value({**frames.delays(value), "error": choice["error"]}, event)
                    continue
                self._choice(choice)
                if not isinstance(usage, dict):  # Moonshot reports it inside the choice
                    usage = choice.get("usage")
        if isinstance(usage, dict):
            self._usage(usage)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        number = number_of(choice.get("index")) or 0
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, number)
        elif isinstance(choice.get("text"), str):  # the older completions API
            self._builder.text(choice["text"])
        message = choice.get("message")
        if isinstance(message, dict):
            self._messages[number] = message
        label = choice.get("finish_reason")
        if isinstance(label, str):
            self._label(label)

    def _delta(self, delta: Mapping[str, Any], number: Hashable, *, whole: bool = False) -> None:
        """One delta, or with ``whole`` a message: there each entry is a call of its own."""
        reasoning = reasoning_in(delta)
        if isinstance(details := delta.get(DETAILS), list):
            self._details.add(details)
            reasoning = reasoning or text_of(details)
            if details:
                self._builder.seal_reasoning()  # opens the block here, even if it never gets a text
        content = delta.get("content")
        if isinstance(content, list | dict):
            self._parts(content if isinstance(content, list) else [content], reasoning)
        else:
            if content is not None and not isinstance(content, str):
                self._builder.note("content_not_text", f"content is a JSON {type_name(content)}")
            self._say(reasoning, content if isinstance(content, str) else None)
        if isinstance(refusal := delta.get("refusal"), str):
            self._builder.text(refusal)
        self._media(delta)
        entries = list(objects_of(delta.get("tool_calls")))
        identities = list(map(identity_of, entries))
        if len(entries) > 1 and not whole:
            self._doubt(
                slot_of(number, number_of(entry.get("index")))
                for entry, (id, name, arguments) in zip(entries, identities, strict=True)
                if arguments and not (id or name)
            )
        for position, (entry, identity) in enumerate(zip(entries, identities, strict=True)):
            index = ("message", position) if whole else number_of(entry.get("index"))
            call = self._entry(slot_of(number, index), *identity, follows=position > 0)
            extra = entry.get(EXTRA_CONTENT)
            if call is not None and isinstance(extra, dict) and extra:
                call.replay = self._replay({EXTRA_CONTENT: extra})
        # Beside the new field the old one says the same again.
        if isinstance(legacy := delta.get("function_call"), dict) and not delta.get("tool_calls"):
            self._entry(slot_of(number, "function_call"), *identity_of(legacy), follows=False)

    def _media(self, delta: Mapping[str, Any]) -> None:
        """Images of a model behind OpenRouter, and what is said in the audio of OpenAI's."""
        for entry in objects_of(delta.get("images")):
            picture = image_of(entry)
            if picture is None:
                self._builder.note("unknown_content_part", "images holds an entry without an image")
            else:
                self._builder.block(picture, visible=True)
        audio = delta.get("audio")
        if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
            self._builder.text(audio["transcript"])

    def _parts(self, parts: list[Any], reasoning: str) -> None:
        """Content as a list of typed parts (Mistral), behind reasoning from a field of its own."""
        self._say(reasoning, None)
        for part in parts:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, str):
                self._builder.text(part)
            elif kind in ("thinking", "reasoning"):
                self._builder.reasoning(
                    text_in(part.get("thinking", part.get("reasoning", part.get("text"))))
                )
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                self._builder.text(part["text"])
            elif part is not None:
                self._builder.note("unknown_content_part", f"content holds a part of type {kind!r}")

    def _replay(self, data: Mapping[str, Any]) -> Replay:
        return Replay(self._profile.name, self._model[:MODEL_MAX], data)

    def _settle(self) -> None:
        """What is only known at the end: whole messages, if no delta came, and what goes back with
        reasoning.
        """
        messages, self._messages = self._messages, {}
        if messages and not self._builder.begun:
            for number, message in messages.items():
                self._delta(message, number, whole=True)
        if entries := self._details.entries():
            self._builder.seal_reasoning(replay=self._replay({DETAILS: entries}))
            self._details = ReasoningDetails()

    # ---- what both have in common ------------------------------------------------------------

    def _say(self, reasoning: str, content: str | None) -> None:
        if reasoning:
            self._builder.reasoning(reasoning)
            if content == reasoning:
                self._builder.note("content_mirrors_reasoning")
                return
        if content:
            self._builder.text(content)

    def _entry(
        self, slot: Hashable | None, id: str | None, name: str | None, arguments: str, follows: bool
    ) -> Call | None:
        if id is not None and (not id or id.isspace()):
            id = None
        if name is not None and (not name or name.isspace()):
            name = None
        if name is None and slot is not None:
            call = self._builder.call_arguments(slot, arguments, id)
            if call is not None:
                return call
        return self._builder.call(CallDelta(slot, id, name, arguments, follows))

    def _doubt(self, slots: Iterable[Hashable | None]) -> None:
        """Of one list, the slots of entries that hold nothing but arguments: two of a slot may be for two
        calls of it, in whatever order."""
        seen: set[Hashable | None] = set()
        for slot in slots:
            if slot in seen:
                self._builder.doubt_sharing(slot)
                return
            seen.add(slot)

    def _label(self, label: str) -> None:
        if says_nothing(label):
            return
        meant = reason_of(label)
        if isinstance(meant, Failure):
            self._builder.failed(meant)
        elif meant is None:
            self._builder.note("unknown_finish_reason", f"finish_reason is {label!r}")
            self._builder.reason("stop")
        else:
            self._builder.reason(meant)

    def _usage(self, wire: Mapping[str, Any]) -> None:
        usage = usage_of(wire)
        if usage is not None:
            self._builder.usage(usage)
        elif any(value is not None for value in wire.values()):
            self._builder.note("bad_usage", f"a usage object without a usable count: {wire!r}")


def _may_be_deep(data: bytes) -> bool:
    """Whether a frame could be nested too deeply; structs skip what they do not know, however deep."""
    return data.count(b"{") + data.count(b"[") > strict_json.MAX_DEPTH

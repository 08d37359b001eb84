"""Shaping: one node of the pairing as messages that a policy allows, with an anomaly for all that changed.

Pure and local: a node's shape depends on the node and the policy alone, so it never changes because something
was appended. What depends on neighbours is in ``project``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, assert_never

import msgspec

from ..schema.blocks import (
    Base64Source,
    BlobSource,
    Block,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ..schema.messages import Message
from ..schema.notes import Anomaly
from .clean import clean_arguments, clean_text
from .pair import Exchange, Node, Plain, Slot
from .policy import Policy

NO_RESULT: Final = (
    "Error: there is no result of this tool call. It was interrupted and may or may not have taken effect."
)
NO_OUTPUT: Final = "(no output)"
NO_VISION: Final = "[image omitted: model has no image input]"
NO_MEDIA: Final = "[image omitted: the request was refused with it]"
NO_PLACE: Final = "[image omitted: an assistant message cannot hold one]"
IN_NEXT_MESSAGE: Final = "[image: shown in the next message]"

_NAME_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(slots=True)
class Shaped:
    """What became of one node: messages in order, and what was changed."""

    messages: list[Message] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)


def shape(node: Node, policy: Policy) -> Shaped:
    """The node as messages of the canonical form that the policy's encoder takes."""
    return _Shaping(policy).plain(node) if isinstance(node, Plain) else _Shaping(policy).exchange(node)


class _Shaping:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._out = Shaped()

    def plain(self, node: Plain) -> Shaped:
        role = node.role
        content = self._user_content(node.content, node.where)
        if not content:
            self._note("empty_message_dropped", node.where, detail=f"a {role} message without content")
            return self._out
        self._out.messages.append(Message(role, content))
        return self._out

    def exchange(self, node: Exchange) -> Shaped:
        where, first = node.sources[0]
        if len(node.sources) > 1:
            places = ", ".join(place for place, _ in node.sources[1:])
            self._note("assistants_merged", where, detail=f"joined with {places}")
        if node.moved:
            self._note("result_moved", where, node.moved, "put directly behind its call")
        sent = self._sent_slots(node, where)
        content = self._assistant_content(node, sent)
        if not any(isinstance(block, Text | ToolCall | Opaque) for block in content):
            self._note("empty_message_dropped", where, detail="an assistant message without text and calls")
            return self._out
        self._out.messages.append(
            Message("assistant", tuple(content), provider=first.provider, model=first.model)
        )
        if sent:
            self._results([node.slots[position] for position in sorted(sent)], where)
        return self._out

    def _sent_slots(self, node: Exchange, where: str) -> set[int]:
        """Positions of the calls that go out: those with a name, each call once unless it has its result."""
        sent: set[int] = set()
        seen: set[tuple[str, str, str]] = set()
        for position, slot in enumerate(node.slots):
            call = slot.call
            key = (call.id, call.name, call.arguments)
            if not slot.wire_id:
                detail = "a call without a name" + (", and its result" if slot.result else "")
                self._note("nameless_call_dropped", where, (call.id,), f"{detail}: {call.arguments[:80]}")
            elif slot.result is None and key in seen:
                self._note(
                    "duplicate_call_dropped", where, (call.id,), f"{call.name} was called like this before"
                )
            else:
                sent.add(position)
            seen.add(key)
        return sent

    def _assistant_content(self, node: Exchange, sent: set[int]) -> list[Block]:
        content: list[Block] = []
        position = 0
        for where, message in node.sources:
            own = self._policy.wrote(message)
            for block in message.content:
                if isinstance(block, ToolCall):
                    if position in sent:
                        content.append(self._call(node.slots[position], own=own, where=where))
                    position += 1
                else:
                    content.extend(self._assistant_block(block, where, own=own))
        return self._without_blanks(self._with_reasoning(content, bool(sent)), bool(sent), node.sources[0][0])

    def _assistant_block(self, block: Block, where: str, *, own: bool) -> Iterable[Block]:
        match block:
            case Text():
                return (self._text(block, where),)
            case Reasoning():
                return self._reasoning(block, where, own=own)
            case Image():
                self._note("image_omitted", where, detail="an image in an assistant message")
                return (Text(text=NO_PLACE),)
            case Opaque():
                return self._opaque(block, where)
            case ToolCall() | ToolResult():
                return ()
            case _:
                assert_never(block)

    def _reasoning(self, block: Reasoning, where: str, *, own: bool) -> Iterable[Block]:
        policy = self._policy
        if not policy.reasoning():
            reason = "left out on this rung"
        elif policy.profile.reasoning_back == "never":
            reason = f"{policy.profile.name} takes none back"
        elif not own:
            reason = "another model wrote it"
        elif policy.signed_reasoning and not (block.signature or block.redacted):
            reason = "it has no signature"
        else:
            return (block,)
        self._note("reasoning_dropped", where, detail=reason)
        return ()

    def _with_reasoning(self, content: list[Block], has_calls: bool) -> list[Block]:
        placeholder = self._policy.profile.reasoning_placeholder
        if placeholder is None or not (has_calls and self._policy.thinking and self._policy.reasoning()):
            return content
        if any(isinstance(block, Reasoning) and block.text for block in content):
            return content
        rest = [block for block in content if not isinstance(block, Reasoning)]
        return [Reasoning(text=placeholder), *rest]

    def _without_blanks(self, content: list[Block], has_calls: bool, where: str) -> list[Block]:
        said = any(isinstance(block, Text) and block.text.strip() for block in content)
        if has_calls and not said and self._policy.blank_beside_calls:
            return content
        kept = [block for block in content if not isinstance(block, Text) or block.text.strip()]
        if len(kept) < len(content):
            self._note("blank_text_dropped", where)
        return kept

    def _call(self, slot: Slot, *, own: bool, where: str) -> ToolCall:
        call = slot.call
        name = _NAME_REFUSED.sub("_", call.name)[: self._policy.name_max]
        arguments = clean_arguments(call.arguments)
        if slot.wire_id != call.id:
            self._note("call_id_changed", where, (call.id,), f"sent as {slot.wire_id}")
        if name != call.name:
            self._note("call_name_changed", where, (call.id,), f"{call.name[:80]!r} is sent as {name}")
        for kind in arguments.anomalies:
            self._note(kind, where, (call.id,), f"arguments of {name}: {call.arguments[:200]}")
        replay = call.replay if own else None
        return ToolCall(id=slot.wire_id, name=name, arguments=arguments.text, extra=call.extra, replay=replay)

    def _results(self, slots: list[Slot], where: str) -> None:
        results: list[ToolResult] = []
        images: list[Block] = []
        for slot in slots:
            results.append(self._result(slot, where, images))
        if self._policy.results_with_user:
            self._out.messages.append(Message("user", (*results, *images)))
            return
        self._out.messages.extend(Message("tool", (result,)) for result in results)
        if images:
            self._out.messages.append(Message("user", tuple(images)))

    def _result(self, slot: Slot, where: str, images: list[Block]) -> ToolResult:
        call_id = slot.wire_id
        if slot.result is None:
            self._note("result_synthesised", where, (slot.call.id,), f"no result of {slot.call.name[:80]}")
            return ToolResult(call_id=call_id, content=(Text(text=NO_RESULT),), is_error=True)
        content: list[Text | Image] = []
        for part in slot.result.content:
            if isinstance(part, Text):
                text = self._text(part, where)
                if text.text.strip():
                    content.append(text)
                continue
            image = self._image(part, where)
            if isinstance(image, Image) and not self._policy.images_in_results:
                images.append(image)
                image = Text(text=IN_NEXT_MESSAGE)
            content.append(image)
        if not content:
            content.append(Text(text=NO_OUTPUT))
        return ToolResult(
            call_id=call_id, content=tuple(content), is_error=slot.result.is_error, extra=slot.result.extra
        )

    def _user_content(self, blocks: Iterable[Block], where: str) -> tuple[Block, ...]:
        content: list[Block] = []
        for block in blocks:
            match block:
                case Text():
                    text = self._text(block, where)
                    if text.text.strip():
                        content.append(text)
                    else:
                        self._note("blank_text_dropped", where)
                case Image():
                    content.append(self._image(block, where))
                case Opaque():
                    content.extend(self._opaque(block, where))
                case Reasoning() | ToolCall() | ToolResult():
                    pass  # The pairing took them out.
                case _:
                    assert_never(block)
        return tuple(content)

    def _text(self, block: Text, where: str) -> Text:
        cleaned = clean_text(block.text)
        for kind in cleaned.anomalies:
            self._note(kind, where)
        return block if not cleaned.anomalies else msgspec.structs.replace(block, text=cleaned.text)

    def _image(self, image: Image, where: str) -> Image | Text:
        notice = _notice(image, self._policy)
        if notice is None:
            return image
        self._note("image_omitted", where, detail=notice)
        return Text(text=notice)

    def _opaque(self, block: Opaque, where: str) -> Iterable[Block]:
        if block.protocol == self._policy.profile.protocol and not self._policy.strict():
            return (block,)
        kind = block.value.get("type", "block") if isinstance(block.value, dict) else "block"
        self._note("block_omitted", where, detail=f"{kind} of {block.protocol}")
        return (Text(text=f"[{kind} omitted: it cannot be sent to this model]"),)

    def _note(self, kind: str, where: str, ids: Iterable[str] = (), detail: str = "") -> None:
        self._out.anomalies.append(Anomaly(kind, where, tuple(ids), detail))


def _notice(image: Image, policy: Policy) -> str | None:
    """Why the image cannot be sent, as the text that stands in for it; None if it can."""
    if not policy.profile.vision:
        return NO_VISION
    if not policy.images():
        return NO_MEDIA
    limit = policy.profile.image_max_base64
    size = base64_size(image)
    if limit is None or size <= limit:
        return None
    return f"[image omitted: {raw_size(image)} bytes exceeds the limit]"


def base64_size(image: Image) -> int:
    """Characters of base64 that the image takes in a request; 0 for a URL."""
    match image.source:
        case Base64Source():
            return len(image.source.data)
        case BlobSource():
            return (image.source.size + 2) // 3 * 4
        case _:
            return 0


def raw_size(image: Image) -> int:
    """Bytes of the image itself; 0 for a URL."""
    match image.source:
        case Base64Source():
            data = image.source.data
            return len(data) * 3 // 4 - (len(data) - len(data.rstrip("=")) if len(data) % 4 == 0 else 0)
        case BlobSource():
            return image.source.size
        case _:
            return 0

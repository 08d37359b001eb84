"""Shaping: one node of the pairing as messages that a policy allows, with an anomaly for all that changed.

Pure and local: a node's shape depends on the node and the policy alone, so it never changes because something
was appended. What depends on neighbours is in ``project``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

import msgspec

from ..schema.blocks import Block, Image, Opaque, Reasoning, Replay, Text, ToolCall, ToolResult
from ..schema.messages import Message, Role
from ..schema.notes import Anomaly
from .clean import anomaly, clean_arguments, clean_text, clean_value
from .item_ids import with_valid_ids
from .media import IN_NEXT_MESSAGE, NO_PLACE, ImageBudget, fitted, over_budget
from .pair import Exchange, Plain, Slot
from .policy import RUNGS, Policy
from .reasoning import kept_reasoning, without_trailing

NO_RESULT: Final = (
    "Error: there is no result of this tool call. It was interrupted and may or may not have taken effect."
)
NOT_RUN: Final = (
    "Error: the arguments of this tool call were not the JSON of an object, so it was not run. Send it again."
)
NO_OUTPUT: Final = "(no output)"
SHOWN_CHARS: Final = 200
"""How much of a text that was changed its anomaly quotes."""

_NAME_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")
_GEMINI_NAME_REFUSED: Final = re.compile(r"[^A-Za-z0-9_.:-]")


@dataclass(slots=True)
class Shaped:
    """What became of one node: messages in order, and what was changed."""

    messages: list[Message] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    images: int = 0
    """Images that could be sent one by one, whether or not there is room for all of them."""


def shape(node: Plain | Exchange, policy: Policy, budget: ImageBudget, images_before: int) -> Shaped:
    """The node as messages of the canonical form that the policy's encoder takes.

    ``images_before``: images of the nodes before it, which ``budget`` counts.
    """
    shaping = _Shaping(policy, budget, images_before)
    if isinstance(node, Plain):
        shaping.plain(node)
    elif RUNGS.index(policy.rung) >= RUNGS.index("flattened"):
        shaping.flat_exchange(node)
    else:
        shaping.exchange(node)
    return shaping.out


def joined(before: list[Block], after: list[Block]) -> list[Block]:
    """The content of two messages as that of one; where text meets text, a blank line lies between."""
    end, start = before[-1] if before else None, after[0] if after else None
    if not isinstance(end, Text) or not isinstance(start, Text):
        return [*before, *after]
    plain = not (end.extra or start.extra or end.replay or start.replay)
    if not plain or not end.text.strip() or not start.text.strip():
        return [*before, *after]
    return [*before[:-1], Text(text=f"{end.text}\n\n{start.text}"), *after[1:]]


def wire_name(name: str, policy: Policy) -> str:
    """A tool's name in the characters and the length that the target allows; unchanged if it fits."""
    if policy.profile.protocol != "gemini":
        return _NAME_REFUSED.sub("_", name)[: policy.name_max]
    cleaned = _GEMINI_NAME_REFUSED.sub("_", name)[: policy.name_max]
    return cleaned if cleaned[:1].isalpha() or cleaned[:1] == "_" else f"_{cleaned}"[: policy.name_max]


class _Shaping:
    def __init__(self, policy: Policy, budget: ImageBudget, images_before: int) -> None:
        self.out = Shaped()
        self._policy = policy
        self._budget = budget
        self._images_before = images_before

    # --- messages of the user and the system

    def plain(self, node: Plain) -> None:
        content: list[Block] = []
        for block in node.content:
            match block:
                case Text():
                    content.extend(self._said(block, node.where))
                case Image():
                    content.append(self._image(block, node.where))
                case Opaque():
                    content.append(self._opaque(block, node.where, node.role))
                case Reasoning() | ToolCall() | ToolResult():
                    pass  # The pairing took them out.
                case _:
                    assert_never(block)
        if not content:
            self._note("empty_message_dropped", node.where, detail=f"a {node.role} message without content")
            return
        if node.role == "system":
            content = self._texts_only(content, node.where)
        self.out.messages.append(Message(node.role, tuple(content), extra=self._extra(node.extra)))

    def _texts_only(self, content: Iterable[Block], where: str) -> list[Block]:
        kept: list[Block] = []
        for block in content:
            if isinstance(block, Image):
                self._note("image_omitted", where, detail="an image in a system message")
                kept.append(Text(text="[image omitted: a system message cannot hold one]"))
            else:
                kept.append(block)
        return kept

    # --- exchanges

    def exchange(self, node: Exchange) -> None:
        where = node.sources[0][0]
        writer = self._writer(node)
        self._note_structure(node, where)
        sent = self._sent_slots(node, where)
        content = self._assistant_content(node, sent)
        if all(isinstance(block, Reasoning) for block in content):
            self._note("empty_message_dropped", where, detail="an assistant message without text and calls")
            return
        extra = self._extra(writer.extra) if len(node.sources) == 1 else None
        self.out.messages.append(
            Message("assistant", tuple(content), provider=writer.provider, model=writer.model, extra=extra)
        )
        if sent:
            self._results([node.slots[position] for position in sorted(sent)], where)

    def flat_exchange(self, node: Exchange) -> None:
        """The exchange as text: nothing a provider could pair, and nothing lost."""
        where = node.sources[0][0]
        writer = self._writer(node)
        self._note_structure(node, where)
        said: list[Block] = []
        answered: list[Block] = []
        slots = iter(node.slots)
        for place, message in node.sources:
            for block in message.content:
                if isinstance(block, ToolCall):
                    self._flat_call(next(slots), place, said, answered)
                else:
                    said.extend(self._assistant_block(block, message, place, in_tool_turn=False))
        said = [block for block in said if not isinstance(block, Text) or block.text.strip()]
        if not said:
            self._note("empty_message_dropped", where, detail="an assistant message without text and calls")
        else:
            self.out.messages.append(
                Message("assistant", tuple(said), provider=writer.provider, model=writer.model)
            )
        if answered:
            self.out.messages.append(Message("user", tuple(answered)))

    def _flat_call(self, slot: Slot, where: str, said: list[Block], answered: list[Block]) -> None:
        name = slot.call.name.strip() or "a tool without a name"
        self._note("call_flattened", where, (slot.call.id,), f"{name[:80]} as text")
        called = Text(text=f"[Called {name} with {slot.call.arguments or '{}'}]")
        said.append(self._text(called, where))
        if slot.result is None:
            answered.append(self._text(Text(text=f"[There is no result of {name}.]"), where))
            return
        answered.append(self._text(Text(text=f"[Result of {name}:]"), where))
        for part in slot.result.content:
            answered.extend(
                self._said(part, where) if isinstance(part, Text) else (self._image(part, where),)
            )

    def _writer(self, node: Exchange) -> Message:
        """The source whose provider and model the message keeps: the target's own, if it wrote any."""
        own = (message for _, message in node.sources if self._policy.wrote(message))
        return next(own, node.sources[0][1])

    def _note_structure(self, node: Exchange, where: str) -> None:
        if len(node.sources) > 1:
            places = ", ".join(place for place, _ in node.sources[1:])
            self._note("assistants_merged", where, detail=f"joined with {places}")
        if node.moved:
            self._note("result_moved", where, node.moved, "put directly behind its call")

    def _sent_slots(self, node: Exchange, where: str) -> set[int]:
        """Positions of the calls that go out: those with a name, each call once unless it has its result."""
        sent: set[int] = set()
        seen: set[tuple[str, str, str]] = set()
        for position, slot in enumerate(node.slots):
            call = slot.call
            key = (call.id, call.name, call.arguments)
            if not slot.wire_id:
                text = _result_text(slot)
                detail = f"arguments {call.arguments[:SHOWN_CHARS]!r}" + (
                    f", result {text!r}" if text else ""
                )
                self._note("nameless_call_dropped", where, (call.id,), detail)
            elif slot.result is None and key in seen:
                self._note(
                    "duplicate_call_dropped", where, (call.id,), f"{call.name[:80]} was called like this"
                )
            else:
                sent.add(position)
            seen.add(key)
        return sent

    def _assistant_content(self, node: Exchange, sent: set[int]) -> Sequence[Block]:
        content: list[Block] = []
        position = 0
        tool_turn = node.in_tool_turn or bool(sent)
        for where, message in node.sources:
            part: list[Block] = []
            for block in message.content:
                if isinstance(block, ToolCall):
                    if position in sent:
                        part.append(self._call(node.slots[position], message, where))
                    position += 1
                else:
                    part.extend(self._assistant_block(block, message, where, in_tool_turn=tool_turn))
            content = joined(content, part)
        where = node.sources[0][0]
        content = self._without_blanks(content, bool(sent), where)
        content = self._paired_server_calls(content, where)
        if sent and self._policy.texts_before_calls:
            content = _texts_first(content)
        content = self._with_reasoning(content, bool(sent), where)
        return self._with_valid_ids(content, node, where) if self._policy.item_ids else content

    def _with_valid_ids(self, content: list[Block], node: Exchange, where: str) -> list[Block]:
        said = sum(isinstance(block, Reasoning) for _, message in node.sources for block in message.content)
        kept = sum(isinstance(block, Reasoning) for block in content)
        valid = with_valid_ids(content, reasoning_left_out=kept < said)
        if valid != content:
            self._note("item_id_dropped", where, detail="it is refused without the reasoning before it")
        return valid

    def _assistant_block(
        self, block: Block, message: Message, where: str, *, in_tool_turn: bool
    ) -> Iterable[Block]:
        match block:
            case Text():
                text = self._text(block, where)
                if text.replay is not None and self._replay(text.replay, message) is None:
                    text = msgspec.structs.replace(text, replay=None)
                return (text,)
            case Reasoning():
                kept = kept_reasoning(block, message, self._policy, in_tool_turn=in_tool_turn)
                if isinstance(kept, str):
                    self._note("reasoning_dropped", where, detail=kept)
                    return ()
                return (kept,)
            case Image() if self._policy.images_in_answers:
                return (self._image(block, where),)
            case Image():
                self._note("image_omitted", where, detail="an image in an assistant message")
                return (Text(text=NO_PLACE),)
            case Opaque():
                return (self._opaque(block, where, "assistant"),)
            case ToolCall() | ToolResult():
                return ()
            case _:
                assert_never(block)

    def _with_reasoning(self, content: list[Block], has_calls: bool, where: str) -> list[Block]:
        if self._policy.reasoning_leads:
            kept = without_trailing(content)
            if len(kept) < len(content):
                self._note("reasoning_dropped", where, detail="nothing follows it in its message")
            content = kept
        placeholder = self._policy.profile.reasoning_placeholder
        if placeholder is None or not (has_calls and self._policy.thinking and self._policy.reasoning()):
            return content
        if any(isinstance(block, Reasoning) for block in content):
            return content
        return [Reasoning(text=placeholder), *content]

    def _without_blanks(self, content: list[Block], has_calls: bool, where: str) -> list[Block]:
        if has_calls and self._policy.blank_beside_calls and not any(map(_is_part, content)):
            return content  # Sent as one blank string, which is what a model that only calls often says.
        kept = [block for block in content if not isinstance(block, Text) or block.text.strip()]
        if len(kept) < len(content):
            self._note("blank_text_dropped", where)
        return kept

    def _paired_server_calls(self, content: list[Block], where: str) -> list[Block]:
        """Calls the provider runs itself stand beside their results in one message, or not at all."""
        if not any(isinstance(block, Opaque) for block in content):
            return content
        values = [block.value for block in content if isinstance(block, Opaque)]
        calls = {repr(value.get("id")) for value in values if value.get("type") in _SERVER_CALLS}
        answered = {repr(value["tool_use_id"]) for value in values if "tool_use_id" in value}
        kept: list[Block] = []
        for block in content:
            value = block.value if isinstance(block, Opaque) else {}
            lonely_call = value.get("type") in _SERVER_CALLS and repr(value.get("id")) not in answered
            lonely_result = "tool_use_id" in value and repr(value["tool_use_id"]) not in calls
            if lonely_call or lonely_result:
                self._note("block_omitted", where, detail=f"{value.get('type')} without its other half")
                kept.append(Text(text=f"[{value.get('type')} omitted: its other half is missing]"))
            else:
                kept.append(block)
        return kept

    def _call(self, slot: Slot, message: Message, where: str) -> ToolCall:
        call = slot.call
        name = wire_name(call.name, self._policy)
        arguments = clean_arguments(call.arguments)
        if slot.wire_id != call.id:
            self._note("call_id_changed", where, (call.id,), f"sent as {slot.wire_id}")
        if name != call.name:
            self._note("call_name_changed", where, (call.id,), f"{call.name[:80]!r} is sent as {name}")
        for kind in arguments.anomalies:
            self._note(kind, where, (call.id,), f"arguments of {name}: {call.arguments[:SHOWN_CHARS]!r}")
        return ToolCall(
            id=slot.wire_id,
            name=name,
            arguments=arguments.text,
            extra=self._extra(call.extra),
            replay=self._replay(call.replay, message),
        )

    def _replay(self, replay: Replay | None, message: Message) -> Replay | None:
        """What goes back beside a block, if its writer is the target and its texts can be sent."""
        if replay is None or not self._policy.wrote(message) or not self._policy.reasoning():
            return None
        return replay if clean_value(replay.data) is replay.data else None

    def _results(self, slots: list[Slot], where: str) -> None:
        results: list[ToolResult] = []
        images: list[Block] = []
        for slot in slots:
            results.append(self._result(slot, where, images))
        if self._policy.results_with_user:
            self.out.messages.append(Message("user", tuple(results)))
        else:
            self.out.messages.extend(Message("tool", (result,)) for result in results)
        if images:
            self.out.messages.append(Message("user", tuple(images)))

    def _result(self, slot: Slot, where: str, images: list[Block]) -> ToolResult:
        call_id = slot.wire_id
        if slot.result is None:
            self._note("result_synthesised", where, (slot.call.id,), f"no result of {slot.call.name[:80]}")
            unread = "arguments_replaced" in clean_arguments(slot.call.arguments).anomalies
            text = NOT_RUN if unread else NO_RESULT
            return ToolResult(call_id=call_id, content=(Text(text=text),), is_error=True)
        content: list[Text | Image] = []
        for part in slot.result.content:
            if isinstance(part, Text):
                said = self._text(part, where)
                if said.text.strip():
                    content.append(said)
                continue
            image = self._image(part, where)
            if isinstance(image, Image) and not self._policy.images_in_results:
                images.append(image)
                image = Text(text=IN_NEXT_MESSAGE)
            content.append(image)
        if not content:
            content.append(Text(text=NO_OUTPUT))
        extra = self._extra(slot.result.extra)
        return ToolResult(call_id=call_id, content=tuple(content), is_error=slot.result.is_error, extra=extra)

    # --- parts

    def _said(self, block: Text, where: str) -> Iterable[Block]:
        text = self._text(block, where)
        if text.text.strip():
            return (text,)
        self._note("blank_text_dropped", where)
        return ()

    def _text(self, block: Text, where: str) -> Text:
        cleaned = clean_text(block.text)
        for kind in cleaned.anomalies:
            self._note(kind, where)
        extra = self._extra(block.extra)
        if not cleaned.anomalies and extra is block.extra:
            return block
        return msgspec.structs.replace(block, text=cleaned.text, extra=extra)

    def _image(self, image: Image, where: str) -> Image | Text:
        fit = fitted(image, self._policy)
        if isinstance(fit, Image):
            number = self._images_before + self.out.images
            self.out.images += 1
            fit = over_budget(fit, number, self._budget) or fit
        if isinstance(fit, str):
            self._note("image_omitted", where, detail=fit)
            return Text(text=fit)
        if fit.media_type != image.media_type:
            self._note("image_type_corrected", where, detail=f"{image.media_type[:40]} is {fit.media_type}")
        return fit

    def _opaque(self, block: Opaque, where: str, role: Role) -> Block:
        if self._policy.keeps_opaque(block.protocol, block.value, role):
            value = clean_value(block.value)
            if value is block.value:
                return block
            self._note("surrogate_replaced", where)
            return msgspec.structs.replace(block, value=value)
        kind = _kind(block.value)
        self._note("block_omitted", where, detail=f"{kind} of {block.protocol}")
        return Text(text=f"[{kind} omitted: it cannot be sent to this model]")

    def _extra(self, extra: Any) -> Any:
        """Fields given back as they came; none on a strict rung, since one of them may be what is refused."""
        return None if extra is None or self._policy.strict else clean_value(extra)

    def _note(self, kind: str, where: str, ids: Iterable[str] = (), detail: str = "") -> None:
        self.out.anomalies.append(anomaly(kind, where, ids, detail))


_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})


def _texts_first(content: list[Block]) -> list[Block]:
    """Calls and the reasoning between them behind everything else of their message."""
    first = next(place for place, block in enumerate(content) if isinstance(block, ToolCall))
    behind = [block for block in content[first:] if not isinstance(block, ToolCall | Reasoning)]
    if not behind:
        return content
    return [*content[:first], *behind, *(block for block in content[first:] if block not in behind)]


def _is_part(block: Block) -> bool:
    """Whether the block says something, or cannot be a part of a plain string."""
    if isinstance(block, Text):
        return bool(block.extra or block.text.strip())
    return isinstance(block, Opaque)


def _kind(value: Any) -> str:
    """A word for a block nobody here knows."""
    if not isinstance(value, dict):
        return "block"
    kind = value.get("type") or next(iter(value), "block")
    return clean_text(str(kind)[:40]).text


def _result_text(slot: Slot) -> str:
    texts = slot.result.content if slot.result else ()
    return " ".join(part.text for part in texts if isinstance(part, Text))[:SHOWN_CHARS]

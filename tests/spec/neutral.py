"""A request of any protocol, and the neutral form of the field cases, as the same few facts to compare.

A neutral message is (role, text, calls, result id): calls are (id, name, arguments as a value). Neighbouring
user messages are one, since whether they are joined is the protocol's affair.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lockstitch.providers.codecs import codec
from lockstitch.providers.parsed import Target
from lockstitch.schema.blocks import Reasoning, Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message
from lockstitch.schema.profiles import Profile


class Neutral(NamedTuple):
    role: str
    text: str
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name, and arguments as JSON with sorted keys."""
    result_of: str | None = None
    reasoning: str | None = None


def neutral_request(request: Mapping[str, Any], dialect: str, profile: Profile) -> list[Neutral]:
    """The messages of a request in its provider's format."""
    known = codec(dialect)
    read = known.read(request[known.list_field], Target(profile, str(request.get("model", ""))))
    return joined([one for element in read for one in neutral_message(element.message)])


def neutral_case(messages: Sequence[Mapping[str, Any]], profile: Profile) -> list[Neutral]:
    """The messages of a field case, which are chat style with flattened calls or Anthropic's blocks.

    The text of a result that is flagged as an error, or has no content, is free.
    """
    read = codec("openai-chat").read(messages, Target(profile, ""))
    return joined([one for element in read for one in neutral_message(element.message, free=True)])


def neutral_message(message: Message, *, free: bool = False) -> list[Neutral]:
    results = [
        Neutral("tool", _result_text(block, free=free), result_of=block.call_id)
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    rest = [block for block in message.content if not isinstance(block, ToolResult)]
    if results and not rest:
        return results
    calls = tuple(
        (block.id, block.name, json.dumps(json.loads(block.arguments or "{}"), sort_keys=True))
        for block in rest
        if isinstance(block, ToolCall)
    )
    thoughts = [block.text for block in rest if isinstance(block, Reasoning)]
    return [
        *results,
        Neutral(message.role, _text(rest), calls, reasoning="".join(thoughts) if thoughts else None),
    ]


def joined(messages: Sequence[Neutral]) -> list[Neutral]:
    """Neighbouring answers and neighbouring users are one; a blank line lies between their texts."""
    out: list[Neutral] = []
    for message in messages:
        last = out[-1] if out else None
        if last is not None and last.role == message.role and message.role in ("user", "assistant"):
            text = "\n\n".join(part for part in (last.text, message.text) if part)
            thoughts = last.reasoning if message.reasoning is None else message.reasoning
            out[-1] = Neutral(last.role, text, (*last.calls, *message.calls), reasoning=thoughts)
        else:
            out.append(message)
    return out


def differences(found: Sequence[Neutral], expected: Sequence[Neutral]) -> list[str]:
    """Where a request differs from what a case expects, whose ``<...>`` are patterns; none: it matches."""
    if len(found) != len(expected):
        return [f"{len(found)} messages, not {len(expected)}: {found}"]
    bound: dict[str, str] = {}
    complaints: list[str] = []
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        complaints += [f"{index}: {text}" for text in _compare(one, other, bound)]
    ids = [call[0] for message in found for call in message.calls]
    return complaints + ([f"ids repeat: {ids}"] if len(set(ids)) < len(ids) else [])


def _compare(one: Neutral, other: Neutral, bound: dict[str, str]) -> list[str]:
    complaints = []
    if one.role != other.role:
        complaints.append(f"role {one.role}, not {other.role}")
    if not _matches(one.text, other.text):
        complaints.append(f"text {one.text!r}, not {other.text!r}")
    if other.reasoning is not None and one.reasoning != other.reasoning:
        complaints.append(f"reasoning {one.reasoning!r}, not {other.reasoning!r}")
    if [call[1:] for call in one.calls] != [call[1:] for call in other.calls]:
        complaints.append(f"calls {one.calls}, not {other.calls}")
    for mine, theirs in zip(one.calls, other.calls, strict=False):
        if not _matches(mine[0], theirs[0]):
            complaints.append(f"id {mine[0]!r}, not {theirs[0]!r}")
        bound[theirs[0]] = bound["<same>"] = mine[0]
    wanted = bound.get(str(other.result_of), other.result_of)
    if one.result_of != wanted:
        complaints.append(f"a result of {one.result_of!r}, not of {wanted!r}")
    return complaints


def _matches(found: str, expected: str) -> bool:
    if expected.startswith("<^") and expected.endswith("$>"):
        return re.fullmatch(expected[2:-2], found) is not None
    if expected.startswith("<") and expected.endswith(">"):
        return bool(found.strip())
    if "<head>" in expected:
        return "left out" in found or "pruned" in found
    return found == expected


def _result_text(result: ToolResult, *, free: bool) -> str:
    text = _text(result.content)
    return "<free>" if free and (result.is_error or not text) else text


def _text(blocks: Sequence[Any]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))

"""A scripted answer made definite: ids, model, usage and pieces, in no protocol's spelling yet."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .script import Answer

CREATED_S: Final = 1_700_000_000
"""Unix seconds in every answer: a script always plays the same bytes."""


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """One tool call, whole."""

    id: str
    name: str
    arguments: str
    signature: str | None = None

    def parsed(self) -> Any:
        """The arguments as JSON, or their text where they are none."""
        try:
            return json.loads(self.arguments or "{}")
        except ValueError:
            return self.arguments


@dataclass(frozen=True, slots=True)
class Reply:
    """What a protocol's renderer needs to know, and nothing it could get wrong."""

    number: int
    """Position of the answer among all that the gateway gave, from 1."""
    model: str
    text: str
    reasoning: str
    signature: str | None
    calls: tuple[ReplyCall, ...]
    finish: str
    usage: Mapping[str, int]
    """Buckets of ``script.USAGE_FIELDS``."""
    report_usage: bool
    chunk_chars: int
    quirks: frozenset[str]

    def pieces(self, text: str) -> list[str]:
        """``text`` in deltas of ``chunk_chars`` characters; none for an empty text."""
        return [text[at : at + self.chunk_chars] for at in range(0, len(text), self.chunk_chars)]


def make(answer: Answer, number: int, *, model: str, usage: Mapping[str, int], asked_usage: bool) -> Reply:
    """The reply to one request.

    ``usage`` is what was counted; buckets that the script sets win over it. A usage that is in the script is
    always reported, a counted one only if the request asked for it.
    """
    calls = tuple(
        ReplyCall(
            id=call.id if call.id is not None else f"call_{number}_{position}",
            name=call.name,
            arguments=_text(call.arguments),
            signature=call.signature,
        )
        for position, call in enumerate(answer.tool_calls)
    )
    return Reply(
        number=number,
        model=answer.model or model,
        text=answer.text or "",
        reasoning=answer.reasoning or "",
        signature=answer.signature,
        calls=calls,
        finish=answer.finish or ("tool_calls" if calls else "stop"),
        usage=dict(answer.usage) if answer.usage is not None else usage,
        report_usage="no_usage" not in answer.quirk_set and (answer.usage is not None or asked_usage),
        chunk_chars=answer.chunk_chars,
        quirks=answer.quirk_set,
    )


def _text(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))

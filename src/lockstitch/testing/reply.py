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

    id: str | None
    """None where the protocol knows calls without one and the script gives none."""
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

    def share(self, part: int, parts: int) -> dict[str, int]:
        """The usage so far: the prompt is known from the start, what was generated grows to its total."""
        grows = ("output_tokens", "reasoning_tokens")
        return {key: n * part // parts if key in grows else n for key, n in self.usage.items()}


def make(
    answer: Answer,
    number: int,
    *,
    model: str,
    usage: Mapping[str, int],
    asked_usage: bool,
    id_prefix: str | None = "call_",
) -> Reply:
    """The reply to one request.

    ``usage`` is what was counted; a usage in the script takes its place and is always reported, a counted one
    only if the request asked for it. ``id_prefix`` opens the ids of calls that the script gives none; with
    None they have none.
    """
    reasoning, text = answer.reasoning or "", answer.text or ""
    if reasoning and "think_tags" in answer.quirk_set:
        reasoning, text = "", f"<think>{reasoning}</think>\n{text}"
    calls = tuple(
        ReplyCall(
            id=f"{id_prefix}{number}_{position}" if call.id is None and id_prefix else call.id,
            name=call.name,
            arguments=_text(call.arguments),
            signature=call.signature,
        )
        for position, call in enumerate(answer.tool_calls)
    )
    return Reply(
        number=number,
        model=answer.model or model,
        text=text,
        reasoning=reasoning,
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

"""Planning a compaction: what is shortened, what is replaced by a summary, and what stays as it is.

Order: long results are pruned; if that is not enough, everything before a cut between exchanges is replaced
by one summary, behind which the latest prompts of the user stay verbatim, and then the tail. Pure: the plan
is what ``CompactionStart`` records, and the fold of the log carries it out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..schema.blocks import Block, Image, Text, ToolResult
from ..schema.messages import Message
from .exchanges import cuts
from .tokens import message_tokens, text_tokens

PROMPTS_MAX: Final = 20_000
"""Tokens of user prompts that stay verbatim; and of a summary."""
SUMMARY_MAX: Final = 8_192
SUMMARY_MIN: Final = 96
RESULT_HEAD_CHARS: Final = 4_096
RESULT_TAIL_CHARS: Final = 1_024
RESULT_MIN_CHARS: Final = 160
CHARS_PER_TOKEN: Final = 3
"""To turn a budget of tokens into characters of a result; low, so that the result fits."""
PRUNE_ENOUGH: Final = 0.65
"""Share of the window at which pruning alone is a compaction; above it there would soon be another."""
LAST_EXCHANGE_SHARE: Final = 0.4
"""Of the room, which the newest exchange may take even if it is larger than the tail's part."""
LEAST_REPLACED: Final = 48
"""Tokens below which nothing is gained by a summary."""

SEVERITIES: Final = 3
"""0: as usual. 1: the history was refused again: half of everything, and no model is asked. 2: the least."""
_TAIL: Final = (0.16, 0.08, 0.0)
_PROMPTS: Final = (0.10, 0.06, 0.05)
_SUMMARY: Final = (0.12, 0.08, 0.05)
_FACTS: Final = (0.08, 0.05, 0.03)
_RESULT: Final = (0.05, 0.025, 0.0125)
_SHRINK: Final = (1.0, 0.6, 0.35)


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens that each part may have after a compaction."""

    room: int
    """The window without system prompt and tools."""
    tail: int
    last_exchange: int
    prompts: int
    summary: int
    facts: int
    head_chars: int
    """Of a pruned result."""
    tail_chars: int


def limits(window: int, fixed: int, severity: int = 0) -> Limits:
    """Budgets for a window of which ``fixed`` tokens are taken by system prompt and tools."""
    room = max(int((window - fixed) * _SHRINK[severity]), SUMMARY_MIN)
    result_chars = int(room * _RESULT[severity]) * CHARS_PER_TOKEN
    head = max(min(RESULT_HEAD_CHARS, result_chars * 4 // 5), RESULT_MIN_CHARS)
    return Limits(
        room=room,
        tail=int(room * _TAIL[severity]),
        last_exchange=int(room * LAST_EXCHANGE_SHARE) if severity == 0 else int(room * _TAIL[severity]),
        prompts=min(PROMPTS_MAX, int(room * _PROMPTS[severity])),
        summary=max(SUMMARY_MIN, min(SUMMARY_MAX, int(room * _SUMMARY[severity]))),
        facts=int(room * _FACTS[severity]),
        head_chars=head,
        tail_chars=max(min(RESULT_TAIL_CHARS, result_chars // 5), RESULT_MIN_CHARS // 4),
    )


def long_results(messages: Sequence[Message], wanted: Limits, *, spare_last: bool = True) -> tuple[int, ...]:
    """Numbers of the results that pruning would shorten, images among them counting as long.

    ``spare_last``: the newest exchange is left alone, because the model has not read it yet.
    """
    end = len(messages)
    if spare_last:
        end = next((place for place in reversed(cuts(messages)) if place < len(messages)), 0)
    limit = wanted.head_chars + wanted.tail_chars + 60
    return tuple(
        message.seq
        for message in messages[:end]
        if message.seq is not None and message.role == "tool" and _is_long(message.content, limit)
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """One compaction: what a summary replaces and what stays."""

    head: tuple[Message, ...]
    """What the summary is to be made of: everything before the tail, the prompts that stay included."""
    replaced: int
    """Estimated tokens that the summary stands for."""
    keep_from_seq: int | None
    keep_prompts: tuple[int, ...]
    shorten: tuple[int, ...]
    head_chars: int
    tail_chars: int


def plan(messages: Sequence[Message], is_prompt: Callable[[Message], bool], wanted: Limits) -> Plan | None:
    """The plan for the live messages; None if a summary would gain nothing. Linear in the messages."""
    sizes = [message_tokens(message) for message in messages]
    cut = _cut(messages, sizes, wanted)
    head = tuple(messages[:cut])
    kept, shortened, head_chars, tail_chars = _prompts(messages, cut, sizes, is_prompt, wanted)
    kept_tokens = sum(sizes[place] for place in kept) if not shortened else wanted.prompts
    replaced = sum(sizes[:cut]) - kept_tokens
    if replaced < LEAST_REPLACED:
        return None
    return Plan(
        head=head,
        replaced=replaced,
        keep_from_seq=messages[cut].seq if cut < len(messages) else None,
        keep_prompts=tuple(_seq(messages[place]) for place in kept),
        shorten=tuple(_seq(messages[place]) for place in shortened),
        head_chars=head_chars,
        tail_chars=tail_chars,
    )


def _cut(messages: Sequence[Message], sizes: Sequence[int], wanted: Limits) -> int:
    """The earliest allowed place with no more than the tail's tokens behind it."""
    behind = 0
    best = place = len(messages)
    allowed = [place for place in cuts(messages) if place == len(messages) or messages[place].seq is not None]
    for candidate in reversed(allowed):
        behind += sum(sizes[candidate:place])
        place = candidate
        newest = best == len(messages) and candidate < len(messages)
        if behind > (wanted.last_exchange if newest else wanted.tail):
            break
        best = candidate
    return best


def _prompts(
    messages: Sequence[Message],
    cut: int,
    sizes: Sequence[int],
    is_prompt: Callable[[Message], bool],
    wanted: Limits,
) -> tuple[list[int], list[int], int, int]:
    """Places of the prompts before the cut that stay, those that are shortened, and to which lengths."""
    kept: list[int] = []
    left = wanted.prompts
    in_tail = any(is_prompt(message) for message in messages[cut:])
    for place in range(cut - 1, -1, -1):
        message = messages[place]
        if message.seq is None or not is_prompt(message):
            continue
        if sizes[place] > left:
            if kept or in_tail:
                break
            # The latest prompt is what the model works on: of it something always stays.
            text = _said(message)
            chars = max(len(text) * left // max(text_tokens(text), 1), 2 * RESULT_MIN_CHARS)
            return [place], [place], math.ceil(chars / 2), chars // 2
        kept.insert(0, place)
        left -= sizes[place]
    return kept, [], 0, 0


def _said(message: Message) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def _is_long(content: Sequence[Block], limit: int) -> bool:
    for block in content:
        if isinstance(block, ToolResult):
            for part in block.content:
                if isinstance(part, Image) or len(part.text) > limit:
                    return True
    return False


def _seq(message: Message) -> int:
    assert message.seq is not None, "only messages of a log are compacted"
    return message.seq

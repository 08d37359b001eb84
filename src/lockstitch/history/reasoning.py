"""Reasoning in requests: whose goes back, in what form, and why the rest stays behind.

Each provider proves its own reasoning in its own way, so none of it crosses from one model to another.
Sources: https://api-docs.deepseek.com/guides/thinking_mode.md (tool turns, read 2026-11-30);
https://platform.claude.com/docs/build-with-claude/thinking (signatures, read 2026-11-30); openai-python
3.57.0, openai/types/responses/response_includable.py (encrypted items).
"""

from collections.abc import Sequence

import msgspec

from ..schema.blocks import Block, Reasoning
from ..schema.messages import Message
from .clean import clean_text, clean_value
from .policy import Policy


def kept_reasoning(
    block: Reasoning, message: Message, policy: Policy, *, in_tool_turn: bool
) -> Reasoning | str:
    """The block as it goes back to the model that wrote it, or the reason why it does not.

    ``in_tool_turn``: the message or one before it in its turn has calls. A rule that looked further ahead
    would change what was already sent.
    """
    profile = policy.profile
    if not policy.reasoning():
        return "left out on this rung"
    if in_tool_turn and policy.thinking and block.text == profile.reasoning_placeholder:
        return block  # Nobody's reasoning: an earlier projection put it there.
    if profile.reasoning_back == "never":
        return f"{profile.name} takes none back"
    if not policy.wrote(message):
        return "another model wrote it"
    if profile.reasoning_back == "tool_turns" and not in_tool_turn:
        return f"{profile.name} takes back only that of turns with tool calls"
    if policy.signed_reasoning and not (block.signature or block.redacted):
        return "it has no signature"
    if policy.sealed_reasoning and not block.redacted:
        return "it is not encrypted, and the provider does not store it"
    sealed = block.redacted if policy.takes_sealed else block.signature
    if not block.text and not sealed and not block.replay:
        return "it is empty"
    proof = f"{block.signature or ''}{block.redacted or ''}"
    cleaned, extra = clean_text(block.text), clean_value(block.extra)
    if clean_text(proof).anomalies or (proof and cleaned.anomalies):
        return "it cannot be sent as it was signed"
    if policy.strict:
        extra = None
    if not cleaned.anomalies and extra is block.extra:
        return block
    return msgspec.structs.replace(block, text=cleaned.text, extra=extra)


def without_trailing(content: Sequence[Block]) -> list[Block]:
    """The blocks without reasoning at their end: a message's last block cannot be thinking (anthropic)."""
    kept = list(content)
    while kept and isinstance(kept[-1], Reasoning):
        kept.pop()
    return kept

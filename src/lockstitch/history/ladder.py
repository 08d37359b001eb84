"""The ladder: ever plainer forms of one request, for when a provider refuses it and nobody knows why.

Each rung gives up what those above it gave up, and something more; none needs the provider's wording. When to
climb is the turn machine's business (``agent``); what a rung leaves out is the projection's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from ..schema.notes import Anomaly

Rung = Literal["normal", "strict", "no_reasoning", "no_media", "flattened", "digest"]

RUNGS: Final[tuple[Rung, ...]] = ("normal", "strict", "no_reasoning", "no_media", "flattened", "digest")

GIVES_UP: Final[Mapping[Rung, str]] = {
    "normal": "",
    "strict": "fields that only some providers know",
    "no_reasoning": "the model's earlier reasoning",
    "no_media": "images",
    "flattened": "the structure of tool calls (they are sent as text)",
    "digest": "all but the last prompts and a digest of the rest",
}
"""What each rung adds to what is left out, in a user's words."""

MEANINGS: Final[Mapping[str, str]] = {
    "arguments_replaced": "tool arguments that were not JSON",
    "assistants_merged": "answers joined into one",
    "blank_text_dropped": "blank texts left out",
    "block_omitted": "blocks the model cannot take left out",
    "cache_marks_removed": "cache marks removed",
    "call_flattened": "tool calls sent as text",
    "call_id_changed": "call ids renamed",
    "call_name_changed": "tool names respelled",
    "calls_moved": "tool calls outside of answers moved",
    "digested": "the conversation shortened to a digest",
    "duplicate_call_dropped": "repeated tool calls left out",
    "empty_message_dropped": "empty messages left out",
    "field_dropped": "request fields left out",
    "image_omitted": "images left out",
    "image_type_corrected": "image types corrected",
    "item_id_dropped": "item ids left out",
    "late_result_moved": "late tool results told as text",
    "limit_lowered": "the limit of output lowered",
    "limit_replaced": "limits replaced",
    "media_left_out": "images and files left out",
    "nameless_call_dropped": "tool calls without a name left out",
    "nul_replaced": "NUL characters replaced",
    "option_left_out": "options left out",
    "orphan_result_dropped": "tool results without a call left out",
    "reasoning_dropped": "reasoning left out",
    "result_moved": "tool results moved to their calls",
    "result_synthesised": "missing tool results filled in",
    "rewritten": "messages rewritten in the usual form",
    "role_changed": "roles corrected",
    "rung": "a plainer form chosen",
    "surplus_result_dropped": "second tool results left out",
    "surrogate_replaced": "broken characters replaced",
    "system_as_user": "system messages told by the user",
    "system_cleaned": "the system prompt cleaned",
    "system_moved": "system messages moved to the system prompt",
    "thinking_disabled": "thinking switched off",
    "tool_left_out": "tools left out",
    "tool_schema_typed": "tool schemas completed",
    "user_added": "placeholders for a user added",
    "value_cut": "values nested too deep left out",
}
"""Every kind of anomaly, as what happened to the things in question."""


def told(rung: str, anomalies: Iterable[Anomaly]) -> str:
    """One line for the user: what of a request was mended or left out; empty if nothing was.

    ``sent without images; 2 missing tool results filled in, call ids renamed``
    """
    at = RUNGS.index(rung) if rung in RUNGS else 0
    given_up = [GIVES_UP[each] for each in RUNGS[1 : at + 1]]
    counts = Counter(anomaly.kind for anomaly in anomalies)
    mended = [
        f"{count} x {MEANINGS.get(kind, kind)}" if count > 1 else MEANINGS.get(kind, kind)
        for kind, count in counts.items()
    ]
    parts = [f"sent without {', '.join(given_up)}"] if given_up else []
    return "; ".join([*parts, ", ".join(mended)]) if mended else "".join(parts)

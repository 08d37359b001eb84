"""Ids of items in ``openai-responses`` requests: which may stay beside a call or a message that goes back.

An id ties an item to the reasoning before it. Where that reasoning does not go back, the id must not either:
"was provided without its required 'reasoning' item".
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..providers.parsed import ITEM
from ..schema.blocks import Block, ToolCall

CALL_PREFIX: Final = "fc"
"""What the id of a call begins with; any other is refused."""


def with_valid_ids(content: Sequence[Block], *, reasoning_left_out: bool) -> list[Block]:
    """The blocks without ids that the provider would refuse."""
    return [_valid(block, reasoning_left_out) for block in content]


def _valid(block: Block, left_out: bool) -> Block:
    extra = block.extra
    if not extra:
        return block
    if isinstance(block, ToolCall) and "id" in extra:
        if not left_out and str(extra["id"]).startswith(CALL_PREFIX):
            return block
        return _with_extra(block, {key: value for key, value in extra.items() if key != "id"})
    item = extra.get(ITEM)
    if left_out and isinstance(item, Mapping) and "id" in item:
        fields = {key: value for key, value in item.items() if key != "id"}
        return _with_extra(block, {**extra, ITEM: fields})
    return block


def _with_extra(block: Block, extra: dict[str, Any]) -> Block:
    return msgspec.structs.replace(block, extra=extra or None)

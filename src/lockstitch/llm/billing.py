"""What a cut stream has cost: estimated where the provider never said, and marked so. Pure."""

import math
from typing import Final

import msgspec

from ..history.decode import Decoded
from ..history.tokens import block_tokens
from ..providers.translator import OVER_OUR_LIMIT
from ..schema.failures import FailureCode
from ..schema.usage import Usage

CUT: Final[frozenset[FailureCode]] = frozenset(
    {"STREAM_CLOSED", "TRANSPORT", "TIMEOUT", "ABORTED", "MALFORMED_RESPONSE"}
)
"""Failures that end an answer before its provider could report usage; OVER_OUR_LIMIT before we read so far.
All others are the provider's last word."""
SILENT: Final[frozenset[FailureCode]] = frozenset({"TIMEOUT", "ABORTED"})
"""Of these, the ones under which an accepted request is taken as billed although no answer was seen."""
ARGUMENT_CHARS_PER_TOKEN: Final = 3.0
"""JSON has more punctuation than prose; only the number of characters is at hand."""
OPENING_SHARE: Final = 0.5
"""A count below this share of our estimate is the one that opens a stream (anthropic's ``message_start``)."""


def with_estimate(
    decoded: Decoded, *, accepted: bool, began: bool, input_estimate: int, argument_chars: int
) -> Usage | None:
    """Usage of one ended stream, completed by an estimate if the stream was cut.

    ``accepted``: the provider answered 2xx. ``began``: a data frame came. ``argument_chars``: characters of
    tool call arguments that were streamed; the text and reasoning are in ``decoded``. None if nothing was
    billed, or a provider ended the answer itself without reporting.
    """
    reported = decoded.usage
    failed = decoded.finish.failure
    if failed is None or not accepted:
        return reported
    if failed.code not in CUT and failed.subkind != OVER_OUR_LIMIT:
        return reported
    if not began and failed.code not in SILENT:
        return reported
    written = sum(map(block_tokens, decoded.content)) + math.ceil(argument_chars / ARGUMENT_CHARS_PER_TOKEN)
    if reported is None:
        return Usage(input_tokens=input_estimate, output_tokens=written, estimated=True)
    if reported.output_tokens < written * OPENING_SHARE:
        return msgspec.structs.replace(reported, output_tokens=written, estimated=True)
    return reported

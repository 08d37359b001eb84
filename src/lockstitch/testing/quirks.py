"""The quirks of the mock gateway, by name: what each does to a well-formed answer.

The same names hold for every protocol. A quirk that has nothing to bite on (``same_index`` in an answer
without calls) changes nothing; ``docs/gateway.md`` tells beside each what a client must do.
"""

from collections.abc import Mapping
from typing import Final

QUIRKS: Final[Mapping[str, str]] = {
    # identity of calls
    "empty_continuation_ids": 'deltas after a call\'s first carry id "" and name ""',
    "null_continuation_ids": "deltas after a call's first carry id null and name null",
    "repeated_identity": "every delta of a call repeats its id and name",
    "string_null_name": 'deltas after a call\'s first carry the name "null", a string',
    "no_ids": "no call has an id",
    "null_ids": "every call's id is null",
    "no_name": "no call has a name",
    "null_name": "every call's name is null",
    "late_id": "a call's id comes only with its last delta",
    "late_name": "a call's name comes only with its last delta",
    "split_name": "a call's name comes in two pieces, before its arguments",
    "same_index": "all calls share the first one's index",
    "no_index": "calls carry no index",
    "one_based_index": "indices count up from 1",
    "interleaved": "the argument deltas of parallel calls alternate",
    "whole_call_one_chunk": "all calls come whole, in one delta that also ends the answer",
    # arguments
    "arguments_as_object": "arguments are a JSON object where its text was due",
    "null_arguments": "a call's first delta has arguments null",
    "cut_arguments": "the last call's arguments stop in the middle, the stream then ends as if complete",
    # endings
    "no_done": "the sentinel at the end of the stream is missing",
    "no_finish_reason": "no event says why the answer ended",
    "stop_with_calls": "the answer holds calls but ends as if it held none",
    "finish_other": "the answer ends with a reason no protocol defines",
    "error_in_stream": "half of the answer, then an error event, then the end",
    "error_as_json_line": "half of the answer, then an error as bare JSON outside of any event, then the end",
    "cut_after_half": "half of the body's bytes, then the connection closes without the body's end",
    "clean_cut": "a cut ends the HTTP body properly, as a gateway does that lost its backend",
    "reset": "a cut resets the connection instead of closing it",
    "two_answers": "the whole answer is sent twice in one body",
    # bytes and bodies
    "html": "an HTML page instead of the answer",
    "empty_body": "headers, then no body at all",
    "keepalives": "a comment line before every event",
    "crlf": "lines end in CR LF",
    "lone_cr": "lines end in CR",
    "bom": "the body starts with a byte order mark",
    "no_space": "no space after the colons",
    "no_last_blank_line": "the blank line that ends the last event is missing",
    "multi_line_data": "an event's JSON is spread over several data lines",
    "null_frames": "a literal null as an event before each real one",
    "gzip": "the body is gzip and says so, whatever the client accepts",
    "gzip_unmarked": "the body is gzip and no header says so",
    "wrong_content_type": "events are called JSON, and JSON is called events",
    "json_body": "one JSON document where a stream was asked for",
    # usage and text
    "usage_every_chunk": "every event carries the usage so far",
    "no_usage": "usage is never reported",
    "think_tags": "reasoning comes as <think> tags at the start of the text",
    "reasoning_in_both": "reasoning deltas are repeated as text",
}

PARAMETRIC: Final[Mapping[str, str]] = {
    "reasoning_field": "reasoning comes in the field named after the colon",
}
"""Quirks written ``name:value``."""


def unknown(name: str) -> bool:
    """Whether no quirk goes by this name."""
    head, colon, value = name.partition(":")
    return not (head in PARAMETRIC and value) if colon else name not in QUIRKS


def value_of(name: str, quirks: frozenset[str]) -> str | None:
    """The value of the parametric quirk ``name`` among ``quirks``; None if it is not there."""
    return next((quirk.partition(":")[2] for quirk in sorted(quirks) if quirk.startswith(f"{name}:")), None)

"""Every kind of note that a decoded answer can carry, in words for a bug report at the gateway.

docs/notes.md lists the same for reading; a test keeps them together.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class NoteKind(NamedTuple):
    """What a note means."""

    meaning: str
    """What the gateway did, and what became of it."""
    ask: str
    """What the gateway should do instead."""


NOTE_KINDS: Final[Mapping[str, NoteKind]] = {
    "identity_conflict": NoteKind(
        "a later delta of a tool call carried another id or name; the first one was kept",
        "repeat the id and name of a call unchanged, or leave them out after its first delta",
    ),
    "identity_too_long": NoteKind(
        "the id or name of a tool call is longer than any can be, and did not count",
        "send an id of at most a few kilobytes and the name of an offered tool",
    ),
    "call_id_minted": NoteKind(
        "a tool call came without an id; a fresh one was made",
        "send a unique id with each tool call",
    ),
    "duplicate_call_id": NoteKind(
        "two tool calls of one answer have the same id",
        "send a unique id with each tool call",
    ),
    "invalid_arguments": NoteKind(
        "the arguments of a tool call are no JSON object; the call is kept but must not be run",
        "pass the model's arguments on whole and in order; a parser in front of the model may have cut them",
    ),
    "arguments_replaced": NoteKind(
        "the arguments given at the end of a tool call differ from the pieces before; the end counted",
        "send pieces that add up to the whole",
    ),
    "empty_arguments_first": NoteKind(
        "the arguments of a tool call began with an empty object before the real ones; it was left out",
        "begin the arguments of a call with nothing, not with `{}`",
    ),
    "text_differs": NoteKind(
        "a text given again at its end differs from the pieces before; the pieces counted",
        "send pieces that add up to the whole",
    ),
    "text_tool_call": NoteKind(
        "the text holds tool calls as the model's own markup instead of structured calls",
        "turn on the tool-call parser that fits the model",
    ),
    "call_repeated": NoteKind(
        "the same tool call came twice under one id; it counts once",
        "send each tool call once",
    ),
    "id_reused": NoteKind(
        "two different tool calls came under one id; the second got another",
        "send a unique id with each tool call",
    ),
    "missing_index": NoteKind(
        "an event about a block does not say which block",
        "number the events of each block",
    ),
    "unknown_block": NoteKind(
        "a block has no type and was skipped",
        "send the type of each block",
    ),
    "unknown_delta": NoteKind(
        "a delta is of a type that this version does not know, and was skipped",
        "nothing: if the provider documents it, please report it to Lockstitch",
    ),
    "unknown_event": NoteKind(
        "an event is of a type that this version does not know, and was skipped",
        "nothing: if the provider documents it, please report it to Lockstitch",
    ),
    "unknown_finish_reason": NoteKind(
        "the finish reason is a word that the protocol does not have; it was taken for an end",
        "send one of the protocol's own finish reasons",
    ),
    "missing_done": NoteKind(
        "the stream ended after its finish reason but without its [DONE] line",
        "end each stream with `data: [DONE]`",
    ),
    "missing_terminal": NoteKind(
        "the stream ended after its finish reason but without the protocol's last event",
        "end each stream with the protocol's last event",
    ),
    "second_answer": NoteKind(
        "behind its end the answer came a second time, which was left out",
        "send one answer in one body, also after trying again behind the scenes",
    ),
    "broken_after_finish": NoteKind(
        "the connection broke after the finish reason; the answer was complete all the same",
        "close the response in an orderly way",
    ),
    "frame_not_json": NoteKind(
        "a data frame is not JSON and was skipped",
        "send one whole JSON object in each event; a proxy may cut or pad long lines",
    ),
    "frame_not_object": NoteKind(
        "a data frame is JSON but no object, such as null, and was skipped",
        "send nothing, or a comment line, where there is nothing to say",
    ),
    "events_without_blank_line": NoteKind(
        "events follow each other without the blank line that ends an event",
        "end each event with an empty line",
    ),
    "several_objects_in_frame": NoteKind(
        "one event holds several JSON objects in a row; each was taken for an event",
        "send one JSON object in each event",
    ),
    "doubled_data_prefix": NoteKind(
        "the data of an event begins with `data:` once more",
        "write `data: ` once; two layers each put it in front",
    ),
    "json_instead_of_stream": NoteKind(
        "a stream was asked for and one JSON document came",
        "honour `stream: true`",
    ),
    "json_lines": NoteKind(
        "a stream was asked for and JSON lines came instead of server-sent events",
        "put `data: ` before each object and an empty line behind it",
    ),
    "content_mirrors_reasoning": NoteKind(
        "a delta carried the same text as reasoning and as content; it counted as reasoning",
        "send reasoning in its own field only",
    ),
    "content_not_text": NoteKind(
        "the content of a delta is neither text nor a list of parts, and was skipped",
        "send content as a string",
    ),
    "unknown_content_part": NoteKind(
        "the content holds a part of a type that has no place here, and it was skipped",
        "nothing: newer than this version, please report it to Lockstitch",
    ),
    "bad_usage": NoteKind(
        "a usage object holds no usable token count",
        "send token counts as whole numbers that are not negative",
    ),
    "number_not_kept": NoteKind(
        "a number is none of JSON or of a double; NaN and infinities became null, others a text of their "
        "digits",
        "send null for NaN and infinities, and numbers that a double can hold",
    ),
    "lone_surrogate": NoteKind(
        "the text holds half of a UTF-16 pair, which became U+FFFD",
        "do not cut the text between the two halves of a surrogate pair",
    ),
    "split_character": NoteKind(
        "the two halves of a UTF-16 pair came in different deltas; they were put together",
        "do not cut the text between the two halves of a surrogate pair",
    ),
    "invalid_utf8": NoteKind(
        "a frame holds bytes that are not UTF-8, which became U+FFFD",
        "do not cut or re-encode the bytes of a character",
    ),
    "gzip_truncated": NoteKind(
        "the body is gzip and ends before its end mark",
        "do not compress event streams, or flush and end the compression properly",
    ),
}

"""A reply in the spelling of ``openai-chat``: stream events, or one JSON document.

Sources: the types of the official ``openai`` package 3.57.0, which the tests read these streams with; for the
last chunk with the usage, its types/chat/chat_completion_stream_options_param.py. The field of reasoning is
DeepSeek's, https://api-docs.deepseek.com/guides/thinking_mode.md (read 2026-11-30).
"""

from collections.abc import Mapping
from typing import Any, Final

from . import quirks as quirk_names
from .call_deltas import CallDelta, deltas
from .reply import CREATED_S, Reply

DONE: Final = "[DONE]"

_FINISH: Final[Mapping[str, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}


def events(reply: Reply) -> list[Any]:
    """The payloads of the stream in order, the sentinel included."""
    quirks = reply.quirks
    choices: list[dict[str, Any]] = [{"delta": {"role": "assistant", "content": ""}}]
    choices += [{"delta": delta} for delta in _text_deltas(reply)]
    calls = [_call(delta) for delta in deltas(reply)]
    finish = None if "no_finish_reason" in quirks else _finish(reply)
    if "whole_call_one_chunk" in quirks and calls:
        choices.append({"delta": {"tool_calls": calls}, "finish_reason": finish})
    else:
        choices += [{"delta": {"tool_calls": [call]}} for call in calls]
        if finish is not None:
            choices.append({"delta": {}, "finish_reason": finish})
    made = [_chunk(reply, [{"index": 0, "finish_reason": None, **choice}]) for choice in choices]
    if "usage_every_chunk" in quirks:
        for i, event in enumerate(made):
            event["usage"] = usage(reply.share(i + 1, len(made)))
    elif reply.report_usage:
        made.append({**_chunk(reply, []), "usage": usage(reply.usage)})
    return made if "no_done" in quirks else [*made, DONE]


def document(reply: Reply) -> dict[str, Any]:
    """The answer to a request that did not ask for a stream."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.reasoning:
        message[_reasoning_field(reply.quirks)] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_whole_call(reply, position) for position in range(len(reply.calls))]
    finish = None if "no_finish_reason" in reply.quirks else _finish(reply)
    made = {
        "id": f"chatcmpl-{reply.number}",
        "object": "chat.completion",
        "created": CREATED_S,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    return made if "no_usage" in reply.quirks else {**made, "usage": usage(reply.usage)}


def usage(buckets: Mapping[str, int]) -> dict[str, Any]:
    """The disjoint buckets as this protocol has them: the prompt includes what came from the cache."""
    read, write = buckets.get("cache_read_tokens", 0), buckets.get("cache_write_tokens", 0)
    prompt, output = buckets.get("input_tokens", 0) + read + write, buckets.get("output_tokens", 0)
    made: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }
    details = {"cached_tokens": "cache_read_tokens", "cache_write_tokens": "cache_write_tokens"}
    if shown := {name: buckets[bucket] for name, bucket in details.items() if bucket in buckets}:
        made["prompt_tokens_details"] = shown
    if "reasoning_tokens" in buckets:
        made["completion_tokens_details"] = {"reasoning_tokens": buckets["reasoning_tokens"]}
    return made


def error(fields: Mapping[str, Any], status: int) -> dict[str, Any]:
    """An error object: the body of a refusal, or an event within a stream."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": "", "type": kind, "param": None, "code": None, **fields}}


def _text_deltas(reply: Reply) -> list[dict[str, Any]]:
    name = _reasoning_field(reply.quirks)
    both = "reasoning_in_both" in reply.quirks
    reasoning = [{name: piece, "content": piece if both else None} for piece in reply.pieces(reply.reasoning)]
    return reasoning + [{"content": piece} for piece in reply.pieces(reply.text)]


def _reasoning_field(quirks: frozenset[str]) -> str:
    return quirk_names.value_of("reasoning_field", quirks) or "reasoning_content"


def _finish(reply: Reply) -> str:
    if "finish_other" in reply.quirks:
        return "unknown"
    if "stop_with_calls" in reply.quirks:
        return "stop"
    return _FINISH.get(reply.finish, reply.finish)


def _call(delta: CallDelta) -> dict[str, Any]:
    fields = delta.fields
    made: dict[str, Any] = {key: fields[key] for key in ("index", "id") if key in fields}
    if delta.first:
        made["type"] = "function"
    made["function"] = {key: fields[key] for key in ("name", "arguments") if key in fields}
    return made


def _whole_call(reply: Reply, position: int) -> dict[str, Any]:
    """The call as its first and last deltas together have it, so that quirks of identity hold here too."""
    mine = [delta for delta in deltas(reply) if delta.position == position]
    fields = dict(mine[0].fields)
    for key in ("id", "name"):
        if key in mine[-1].fields and mine[-1].fields[key] not in ("", None, "null"):
            fields[key] = mine[-1].fields[key]
    if "split_name" in reply.quirks:
        fields["name"] = reply.calls[position].name
    pieces = [delta.fields["arguments"] for delta in mine]
    function: dict[str, Any] = {
        "arguments": pieces[0] if len(pieces) == 1 else "".join(piece or "" for piece in pieces)
    }
    if "name" in fields:
        function = {"name": fields["name"], **function}
    made: dict[str, Any] = {"id": fields["id"]} if "id" in fields else {}
    return {**made, "type": "function", "function": function}


def _chunk(reply: Reply, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.number}",
        "object": "chat.completion.chunk",
        "created": CREATED_S,
        "model": reply.model,
        "choices": choices,
    }

"""A reply in the spelling of ``gemini``: chunks of a stream, or one JSON document.

A function call comes whole, in one part, and usually without an id: quirks that need a second delta of a call
have nothing to bite on here.

Source: the types of the official ``google-genai`` package 3.6.1 (google/genai/types.py), which the tests read
these streams with.
"""

from collections.abc import Mapping
from typing import Any, Final

from . import quirks as quirk_names
from .call_deltas import deltas
from .reply import Reply, ReplyCall

_FINISH: Final[Mapping[str, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_STATUS: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def events(reply: Reply) -> list[Any]:
    """The chunks in order; there is no sentinel, the end of the body ends the stream."""
    finish = {} if "no_finish_reason" in reply.quirks else {"finishReason": _finish(reply)}
    chunks = [_parts_of(reply, [part]) for part in (*_reasoning(reply), *_text(reply))]
    calls = _calls(reply)
    if "whole_call_one_chunk" in reply.quirks and calls:
        chunks.append(_parts_of(reply, calls, **finish))
    else:
        chunks += [_parts_of(reply, [call]) for call in calls]
        chunks.append(_parts_of(reply, _last_parts(reply), **finish))
    if "no_usage" not in reply.quirks:
        chunks[-1]["usageMetadata"] = usage(reply.usage)
    if "usage_every_chunk" in reply.quirks:
        for i, chunk in enumerate(chunks):
            chunk["usageMetadata"] = usage(reply.share(i + 1, len(chunks)))
    return chunks


def document(reply: Reply) -> dict[str, Any]:
    """The answer to a request that did not ask for a stream."""
    parts: list[dict[str, Any]] = []
    if reply.reasoning:
        parts.append({"text": reply.reasoning, _thought(reply): True})
    if reply.text:
        parts.append({"text": reply.text})
    parts += [*_calls(reply), *(part for part in _last_parts(reply) if "thoughtSignature" in part)]
    finish = {} if "no_finish_reason" in reply.quirks else {"finishReason": _finish(reply)}
    made = _parts_of(reply, parts, **finish)
    return made if "no_usage" in reply.quirks else {**made, "usageMetadata": usage(reply.usage)}


def usage(buckets: Mapping[str, int]) -> dict[str, Any]:
    """The disjoint buckets as this protocol has them: thoughts stand beside the candidates, not within."""
    read, thoughts = buckets.get("cache_read_tokens", 0), buckets.get("reasoning_tokens", 0)
    prompt = buckets.get("input_tokens", 0) + read + buckets.get("cache_write_tokens", 0)
    output = buckets.get("output_tokens", 0)
    made = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": output - thoughts,
        "totalTokenCount": prompt + output,
    }
    if "cache_read_tokens" in buckets:
        made["cachedContentTokenCount"] = read
    if "reasoning_tokens" in buckets:
        made["thoughtsTokenCount"] = thoughts
    return made


def error(fields: Mapping[str, Any], status: int) -> dict[str, Any]:
    """An error object: the body of a refusal, or a chunk within a stream."""
    name = _STATUS.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": "", "status": name, **fields}}


def _parts_of(reply: Reply, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": reply.model, "responseId": f"resp_{reply.number}"}


def _thought(reply: Reply) -> str:
    return quirk_names.value_of("reasoning_field", reply.quirks) or "thought"


def _reasoning(reply: Reply) -> list[dict[str, Any]]:
    return [{"text": piece, _thought(reply): True} for piece in reply.pieces(reply.reasoning)]


def _text(reply: Reply) -> list[dict[str, Any]]:
    return [{"text": piece} for piece in reply.pieces(reply.text)]


def _last_parts(reply: Reply) -> list[dict[str, Any]]:
    """Of the last chunk: an empty text, which carries the signature of an answer without calls."""
    signed = reply.signature is not None and not reply.calls
    return [{"text": "", **({"thoughtSignature": reply.signature} if signed else {})}]


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [_call(reply, position, call) for position, call in enumerate(reply.calls)]


def _call(reply: Reply, position: int, call: ReplyCall) -> dict[str, Any]:
    """The call's part. The first one carries the answer's signature unless it has its own."""
    mine = [delta for delta in deltas(reply) if delta.position == position]
    fields = {key: mine[0].fields[key] for key in ("id", "name") if key in mine[0].fields}
    fields |= {key: mine[-1].fields[key] for key in ("id", "name") if mine[-1].fields.get(key)}
    if "string_null_name" in reply.quirks or "split_name" in reply.quirks:
        fields["name"] = call.name
    if fields.get("id", "") is None and "null_ids" not in reply.quirks:
        del fields["id"]
    text = "".join(piece for delta in mine if isinstance(piece := delta.fields["arguments"], str))
    cut = "cut_arguments" in reply.quirks and position == len(reply.calls) - 1
    args = None if "null_arguments" in reply.quirks else text if cut else call.parsed()
    signature = call.signature or (reply.signature if position == 0 else None)
    proof = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {**fields, "args": args}, **proof}


def _finish(reply: Reply) -> str:
    return "UNKNOWN_REASON" if "finish_other" in reply.quirks else _FINISH.get(reply.finish, reply.finish)

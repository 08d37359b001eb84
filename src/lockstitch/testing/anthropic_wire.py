"""A reply in the spelling of ``anthropic-messages``: stream events, or one JSON document.

Sources: Claude API documentation, "Streaming messages",
https://platform.claude.com/docs/build-with-claude/streaming (read 2026-11-30), and the types of the
official ``anthropic`` package 2.14.0, which the tests read these streams with.
"""

from collections.abc import Mapping
from typing import Any, Final

from . import quirks as quirk_names
from .call_deltas import CallDelta, deltas
from .reply import Reply

_STOP: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def events(reply: Reply) -> list[Any]:
    """The payloads of the stream in order; the ``event:`` line of each is its ``type``."""
    blocks = [*_reasoning(reply), *_text(reply)]
    blocks += _calls(reply, len({event["index"] for event in blocks}))
    made: list[Any] = [{"type": "message_start", "message": _start(reply)}, *blocks]
    if blocks:
        made.insert(2, {"type": "ping"})
    if "usage_every_chunk" in reply.quirks:
        made = _with_usage(reply, made)
    made.append(_message_delta(reply, stop=None if "no_finish_reason" in reply.quirks else _stop(reply)))
    return made if "no_done" in reply.quirks else [*made, {"type": "message_stop"}]


def document(reply: Reply) -> dict[str, Any]:
    """The answer to a request that did not ask for a stream."""
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append(
            {"type": "thinking", _thinking(reply): reply.reasoning, "signature": reply.signature or ""}
        )
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [_whole_call(reply, position) for position in range(len(reply.calls))]
    stop = None if "no_finish_reason" in reply.quirks else _stop(reply)
    made = {**_start(reply), "content": content, "stop_reason": stop}
    return made if "no_usage" in reply.quirks else {**made, "usage": usage(reply.usage)}


def usage(buckets: Mapping[str, int]) -> dict[str, Any]:
    """The buckets as this protocol has them: disjoint, as ours are."""
    made: dict[str, Any] = {
        "input_tokens": buckets.get("input_tokens", 0),
        "cache_creation_input_tokens": buckets.get("cache_write_tokens", 0),
        "cache_read_input_tokens": buckets.get("cache_read_tokens", 0),
        "output_tokens": buckets.get("output_tokens", 0),
    }
    if "reasoning_tokens" in buckets:
        made["output_tokens_details"] = {"thinking_tokens": buckets["reasoning_tokens"]}
    return made


def error(fields: Mapping[str, Any], status: int) -> dict[str, Any]:
    """An error object: the body of a refusal, or an event within a stream."""
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": "", **fields}}


def _start(reply: Reply) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": f"msg_{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    if "no_usage" not in reply.quirks:
        made["usage"] = usage({**reply.usage, "output_tokens": 1, "reasoning_tokens": 0})
    return made


def _thinking(reply: Reply) -> str:
    return quirk_names.value_of("reasoning_field", reply.quirks) or "thinking"


def _reasoning(reply: Reply) -> list[dict[str, Any]]:
    if not reply.reasoning:
        return []
    block = {"type": "thinking", "thinking": "", "signature": ""}
    steps = [{"type": "thinking_delta", _thinking(reply): piece} for piece in reply.pieces(reply.reasoning)]
    if reply.signature is not None:
        steps.append({"type": "signature_delta", "signature": reply.signature})
    return _block(reply, 0, block, steps)


def _text(reply: Reply) -> list[dict[str, Any]]:
    if not reply.text:
        return []
    steps = [{"type": "text_delta", "text": piece} for piece in reply.pieces(reply.text)]
    return _block(reply, 1 if reply.reasoning else 0, {"type": "text", "text": ""}, steps)


def _block(
    reply: Reply, index: int, block: dict[str, Any], steps: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    index += "one_based_index" in reply.quirks
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": step} for step in steps),
        {"type": "content_block_stop", "index": index},
    ]


def _calls(reply: Reply, before: int) -> list[dict[str, Any]]:
    """Blocks of calls, each closed behind its last delta or, interleaved, at the end."""
    made: list[dict[str, Any]] = []
    stops: list[dict[str, Any]] = []
    for delta in deltas(reply, before):
        index = {key: delta.fields[key] for key in ("index",) if key in delta.fields}
        if delta.first:
            made.append({"type": "content_block_start", **index, "content_block": _opened(reply, delta)})
        step = _input_delta(reply, delta)
        if step is not None:
            made.append({"type": "content_block_delta", **index, "delta": step})
        if delta.last:
            (stops if "interleaved" in reply.quirks else made).append({"type": "content_block_stop", **index})
    return made + stops


def _identity(delta: CallDelta) -> dict[str, Any]:
    return {key: delta.fields[key] for key in ("id", "name") if key in delta.fields}


def _opened(reply: Reply, delta: CallDelta) -> dict[str, Any]:
    given: Any = {}
    if "arguments_as_object" in reply.quirks:
        given = delta.fields["arguments"]
    elif "null_arguments" in reply.quirks:
        given = None
    return {"type": "tool_use", **_identity(delta), "input": given}


def _input_delta(reply: Reply, delta: CallDelta) -> dict[str, Any] | None:
    """What a delta adds to its open block; a call's first one usually adds nothing.

    The protocol has no place for identity behind a block's start: a quirk that puts some there puts it into
    the delta.
    """
    piece = delta.fields["arguments"]
    if not isinstance(piece, str) or (delta.first and not piece):
        return None
    more = {} if delta.first else _identity(delta)
    return {"type": "input_json_delta", "partial_json": piece, **more}


def _whole_call(reply: Reply, position: int) -> dict[str, Any]:
    mine = [delta for delta in deltas(reply) if delta.position == position]
    fields = _identity(mine[0])
    for key, value in _identity(mine[-1]).items():
        if value not in ("", None, "null"):
            fields[key] = value
    if "split_name" in reply.quirks:
        fields["name"] = reply.calls[position].name
    return {"type": "tool_use", **fields, "input": reply.calls[position].parsed()}


def _stop(reply: Reply) -> str:
    if "finish_other" in reply.quirks:
        return "unknown"
    if "stop_with_calls" in reply.quirks:
        return "end_turn"
    return _STOP.get(reply.finish, reply.finish)


def _message_delta(reply: Reply, *, stop: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
    }
    if "no_usage" not in reply.quirks:
        made["usage"] = usage(reply.usage)
    return made


def _with_usage(reply: Reply, made: list[Any]) -> list[Any]:
    """A ``message_delta`` with the usage so far behind each delta of a block."""
    parts = sum(event["type"] == "content_block_delta" for event in made) + 1
    done = 0
    longer: list[Any] = []
    for event in made:
        longer.append(event)
        if event["type"] == "content_block_delta":
            done += 1
            so_far = usage(reply.share(done, parts))
            longer.append({"type": "message_delta", "delta": {"stop_reason": None}, "usage": so_far})
    return longer

"""A reply in the spelling of ``openai-responses``: stream events, or one JSON document.

Source: the types of the official ``openai`` package 3.57.0 (openai/types/responses), which the tests read
these streams with.
"""

from collections.abc import Mapping
from typing import Any, Final

from . import quirks as quirk_names
from .call_deltas import CallDelta, deltas
from .reply import CREATED_S, Reply

_INCOMPLETE: Final[Mapping[str, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}


def events(reply: Reply) -> list[Any]:
    """The payloads of the stream in order; the ``event:`` line of each is its ``type``."""
    items = [*_reasoning(reply), *_message(reply)]
    items += _calls(reply, bool(reply.reasoning) + bool(reply.text))
    if "usage_every_chunk" in reply.quirks:
        items = _with_usage(reply, items)
    made = [
        {"type": "response.created", "response": _response(reply, "in_progress")},
        {"type": "response.in_progress", "response": _response(reply, "in_progress")},
        *items,
    ]
    if "no_done" not in reply.quirks:
        name = "incomplete" if reply.finish in _INCOMPLETE else "completed"
        made.append({"type": f"response.{name}", "response": document(reply)})
    return [{**event, "sequence_number": number} for number, event in enumerate(made)]


def document(reply: Reply) -> dict[str, Any]:
    """The answer to a request that did not ask for a stream; also what the last event of a stream holds."""
    output = [event["item"] for event in (*_reasoning(reply), *_message(reply)) if _is_done(event)]
    output += [_whole_call(reply, position) for position in range(len(reply.calls))]
    made = {**_response(reply, _status(reply)), "output": output}
    if reply.finish in _INCOMPLETE:
        made["incomplete_details"] = {"reason": _INCOMPLETE[reply.finish]}
    return made if "no_usage" in reply.quirks else {**made, "usage": usage(reply.usage)}


def usage(buckets: Mapping[str, int]) -> dict[str, Any]:
    """The disjoint buckets as this protocol has them: the input includes what a cache held."""
    read, write = buckets.get("cache_read_tokens", 0), buckets.get("cache_write_tokens", 0)
    total_in, output = buckets.get("input_tokens", 0) + read + write, buckets.get("output_tokens", 0)
    return {
        "input_tokens": total_in,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": buckets.get("reasoning_tokens", 0)},
        "total_tokens": total_in + output,
    }


def error(fields: Mapping[str, Any], status: int) -> dict[str, Any]:
    """The body of a refusal."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": "", "type": kind, "param": None, "code": None, **fields}}


def stream_error(fields: Mapping[str, Any], status: int) -> dict[str, Any]:
    """An error event: flat, unlike the body of a refusal."""
    return {"type": "error", "code": None, "message": "", "param": None, **fields, "sequence_number": 0}


def _response(reply: Reply, status: str | None) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": CREATED_S,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": reply.model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _status(reply: Reply) -> str | None:
    if "no_finish_reason" in reply.quirks:
        return None
    if "finish_other" in reply.quirks:
        return "unknown"
    return "incomplete" if reply.finish in _INCOMPLETE else "completed"


def _is_done(event: Mapping[str, Any]) -> bool:
    return bool(event["type"] == "response.output_item.done")


def _reasoning(reply: Reply) -> list[dict[str, Any]]:
    if not reply.reasoning:
        return []
    kind = quirk_names.value_of("reasoning_field", reply.quirks) or "reasoning_summary_text"
    item_id = f"rs_{reply.number}"
    index = _shifted(reply, 0)
    at = {"item_id": item_id, "output_index": index, "summary_index": 0}
    item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
    if reply.signature is not None:
        item["encrypted_content"] = reply.signature
    part = {"type": "summary_text", "text": reply.reasoning}
    inner = [
        {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}},
        *(
            {"type": f"response.{kind}.delta", **at, "delta": piece}
            for piece in reply.pieces(reply.reasoning)
        ),
        {"type": f"response.{kind}.done", **at, "text": reply.reasoning},
        {"type": "response.reasoning_summary_part.done", **at, "part": part},
    ]
    return _item(index, item, inner, {**item, "summary": [part]})


def _message(reply: Reply) -> list[dict[str, Any]]:
    if not reply.text:
        return []
    item_id = f"msg_{reply.number}"
    index = _shifted(reply, 1 if reply.reasoning else 0)
    at = {"item_id": item_id, "output_index": index, "content_index": 0}
    item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    text = {"type": "response.output_text.delta", **at, "logprobs": []}
    inner = [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({**text, "delta": piece} for piece in reply.pieces(reply.text)),
        {"type": "response.output_text.done", **at, "text": reply.text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]
    return _item(index, item, inner, {**item, "status": _item_status(reply), "content": [part]})


def _item(
    index: int, added: dict[str, Any], inner: list[dict[str, Any]], done: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.added", "output_index": index, "item": added},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": done},
    ]


def _item_status(reply: Reply) -> str:
    return "incomplete" if reply.finish == "length" else "completed"


def _shifted(reply: Reply, index: int) -> int:
    return index + ("one_based_index" in reply.quirks)


def _calls(reply: Reply, before: int) -> list[dict[str, Any]]:
    """Items of calls; with ``interleaved`` all end together, behind the last delta."""
    made: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for delta in deltas(reply, before):
        at = {"output_index": delta.fields["index"]} if "index" in delta.fields else {}
        if delta.first and "whole_call_one_chunk" not in reply.quirks:
            item = _call_item(reply, delta, delta.fields["arguments"], "in_progress")
            made.append({"type": "response.output_item.added", **at, "item": item})
        elif not delta.first:
            made.append(_arguments_delta(reply, delta, at))
        if delta.last:
            (ends if "interleaved" in reply.quirks else made).extend(_call_end(reply, delta, at))
    return made + ends


def _item_id(reply: Reply, delta: CallDelta) -> dict[str, Any]:
    """What pairs a later event with its item. The quirks that blank an id later on blank this one."""
    if not delta.first:
        if "empty_continuation_ids" in reply.quirks:
            return {"item_id": ""}
        if "null_continuation_ids" in reply.quirks:
            return {"item_id": None}
    return {"item_id": f"fc_{reply.number}_{delta.position}"}


def _arguments_delta(reply: Reply, delta: CallDelta, at: dict[str, Any]) -> dict[str, Any]:
    more = {}
    if "repeated_identity" in reply.quirks:
        more = {"call_id": delta.fields["id"], "name": delta.fields["name"]}
    made = {"type": "response.function_call_arguments.delta", **_item_id(reply, delta), **at, **more}
    return {**made, "delta": delta.fields["arguments"]}


def _call_end(reply: Reply, delta: CallDelta, at: dict[str, Any]) -> list[dict[str, Any]]:
    whole = _whole_call(reply, delta.position)
    done = {"type": "response.output_item.done", **at, "item": whole}
    if "whole_call_one_chunk" in reply.quirks:
        return [done]
    arguments = {"type": "response.function_call_arguments.done", **_item_id(reply, delta), **at}
    return [{**arguments, "arguments": whole["arguments"]}, done]


def _call_item(reply: Reply, delta: CallDelta, arguments: Any, status: str) -> dict[str, Any]:
    made: dict[str, Any] = {"id": f"fc_{reply.number}_{delta.position}", "type": "function_call"}
    if "id" in delta.fields:
        made["call_id"] = delta.fields["id"]
    if "name" in delta.fields:
        made["name"] = delta.fields["name"]
    return {**made, "arguments": arguments, "status": status}


def _whole_call(reply: Reply, position: int) -> dict[str, Any]:
    """The item as its end has it: a continuation, so quirks of later deltas hold here too."""
    mine = [delta for delta in deltas(reply) if delta.position == position]
    first, last = mine[0], mine[-1]
    pieces = [delta.fields["arguments"] for delta in mine]
    arguments: Any = "".join(piece or "" for piece in pieces) if len(pieces) > 1 else pieces[0]
    fields: dict[str, Any] = {key: first.fields[key] for key in ("id", "name") if key in first.fields}
    fields |= {key: last.fields[key] for key in ("id", "name") if key in last.fields}
    if "split_name" in reply.quirks:
        fields["name"] = reply.calls[position].name
    whole = CallDelta(position, first=False, last=True, fields=fields)
    return _call_item(reply, whole, arguments, _item_status(reply))


def _with_usage(reply: Reply, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A ``response.in_progress`` with the usage so far behind each delta."""
    parts = sum(event["type"].endswith(".delta") for event in items) + 1
    done = 0
    longer: list[dict[str, Any]] = []
    for event in items:
        longer.append(event)
        if event["type"].endswith(".delta"):
            done += 1
            response = {**_response(reply, "in_progress"), "usage": usage(reply.share(done, parts))}
            longer.append({"type": "response.in_progress", "response": response})
    return longer

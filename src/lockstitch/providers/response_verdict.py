"""Why a response is no answer: what came is refused, or its stream was cut."""

from collections.abc import Sequence

from ..schema.failures import Failure, failure
from ..schema.profiles import Profile
from .call_slots import Call
from .markup_calls import MarkedCall
from .response_blocks import BlockWriter


def why_no_answer(
    calls: Sequence[Call],
    marked: Sequence[MarkedCall] | None,
    reason: str | None,
    profile: Profile,
    said: BlockWriter,
) -> Failure | None:
    """Why a response that came to its end is no answer all the same; None if it is one.

    ``marked`` are the calls written as markup, None if there is markup that cannot be read.
    """
    for call in calls:
        if call.name is None:
            return _malformed_call(f"tool call {(call.id or str(call.index))[:100]} never got a name")
        if call.id is None and profile.missing_call_id == "refuse":
            return _malformed_call(f"the call of tool {call.name[:100]!r} never got an id")
    if marked is None:
        return _malformed_call("the text holds marked-up tool calls that are incomplete or unreadable")
    if calls or marked or reason == "length":
        return None
    if reason == "tool_calls":
        return failure("EMPTY_RESPONSE", "the model stopped to call tools but called none; try again")
    if not said.visible:
        only = "reasoning but no answer" if said.slots else "nothing"
        return failure("EMPTY_RESPONSE", f"the model ended its turn with {only}; try again")
    return None


def cause_of_cut(strays: bytes, unreadable: str | None) -> Failure:
    """Why a body ended without a finish reason: a frame was not JSON (``unreadable``), or nobody knows."""
    if unreadable is not None:
        return failure("MALFORMED_RESPONSE", f"a frame of the stream is not JSON: {unreadable}; try again")
    outside = " ".join(strays.decode("utf-8", "replace").split())[:200]
    said = f"; outside of the stream it says {outside!r}" if outside else ""
    return failure(
        "STREAM_CLOSED",
        f"the stream ended without a finish reason or a sentinel{said}; try again",
        subkind="clean_eof",
    )


def _malformed_call(what: str) -> Failure:
    return failure("MALFORMED_TOOL_CALL", f"{what}; the response was refused, try again")

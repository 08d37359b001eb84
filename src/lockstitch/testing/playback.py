"""What a scripted answer is to one request: its status and the bytes of its body. No I/O."""

import base64

from . import delivery, reply
from .prompt_cache import CHARS_PER_TOKEN, Share
from .routes import ANTHROPIC, Asked
from .script import Answer


def status_of(answer: Answer) -> int:
    """The HTTP status: the script's, else 500 for an error that is not within a stream."""
    return answer.status or (500 if _is_refusal(answer) else 200)


def body_of(answer: Answer, asked: Asked, number: int, share: Share | None) -> delivery.Body:
    """The body of ``answer``, which is the ``number``-th given; ``share``: what its prompt costs."""
    quirks = answer.quirk_set
    protocol = asked.protocol
    if answer.raw is not None:
        return delivery.raw([answer.raw.encode("utf-8", "surrogatepass")], quirks)
    if answer.raw_b64 is not None:
        return delivery.raw([base64.b64decode(part) for part in answer.raw_b64], quirks)
    if answer.events is not None:
        return delivery.event_stream(answer.events, quirks, named=protocol.named_events)
    if answer.error is not None and _is_refusal(answer):
        return delivery.document(protocol.error(answer.error, status_of(answer)), quirks)
    made = reply.make(
        answer,
        number,
        model=asked.model,
        usage=_counted(answer, share, asked),
        asked_usage=asked.usage,
        id_prefix=protocol.id_prefix,
    )
    streaming = asked.stream if answer.stream is None else answer.stream
    if not streaming or "json_body" in quirks:
        return delivery.document(protocol.document(made), quirks)
    events = protocol.events(made)
    if _fails_in_stream(answer):
        status = answer.status if answer.status and answer.status >= 400 else 500
        error = protocol.stream_error(answer.error or protocol.default_error, status)
        stray = "error_as_json_line" in quirks
        half = events[: max(1, len(events) // 2)]
        events = [*half, delivery.Stray(delivery.compact(error)) if stray else error]
    if asked.as_array:
        return delivery.array_stream(events, quirks)
    return delivery.event_stream(events, quirks, named=protocol.named_events)


def cut_size(body: delivery.Body, answer: Answer) -> int | None:
    """Bytes of the body that are sent before it is cut; None if it is not."""
    if answer.cut_after is not None:
        return answer.cut_after
    if "cut_after_half" in answer.quirk_set:
        return sum(map(len, body.parts)) // 2
    return None


def parts_of(body: delivery.Body, answer: Answer) -> list[bytes]:
    """The body as far as it is sent, in the parts that the script sets apart: events, or reads of its own."""
    size = cut_size(body, answer)
    parts = body.parts if size is None else delivery.cut(body.parts, size)
    if answer.event_delay_ms or answer.raw_b64 is not None:
        return parts
    return [b"".join(parts)]


def _fails_in_stream(answer: Answer) -> bool:
    return bool(answer.quirk_set & {"error_in_stream", "error_as_json_line"})


def _is_refusal(answer: Answer) -> bool:
    return answer.error is not None and not _fails_in_stream(answer)


def _counted(answer: Answer, share: Share | None, asked: Asked) -> dict[str, int]:
    """The usage of an answer whose script does not say: four characters a token."""
    said = (answer.text or "", answer.reasoning or "", *(str(call.arguments) for call in answer.tool_calls))
    output = -(-sum(map(len, said)) // CHARS_PER_TOKEN)
    if share is None:
        return {"output_tokens": output}
    made = {"input_tokens": share.fresh, "output_tokens": output, "cache_read_tokens": share.read}
    if asked.protocol is ANTHROPIC:
        made["cache_write_tokens"] = share.write
    return made

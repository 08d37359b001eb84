"""Plays one prepared chat stream to every request, as fast as the socket takes it.

The path says which: `/texts-T/arguments-A/calls-C/v1/chat/completions` has T text deltas and A argument
deltas spread in turn over C parallel tool calls, whose continuations carry empty ids and names; `-wide` makes
an argument delta 100 characters instead of one short word. Without tool calls (A = 0) it ends in `stop`.
With `-paced` a write of eight events comes about every half second, as from a model, and not as fast
as possible.
"""

import asyncio
import functools
import json
import random
import re

import serving

EVENTS_PER_WRITE = 8  # a busy gateway flushes several tokens at once
PACE_S = 0.5
PIECE = 1 << 16
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
SHAPE = re.compile(r"^/texts-(\d{1,7})/arguments-(\d{1,7})/calls-(\d{1,3})(-wide)?(-paced)?/")
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def frame(value: object) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def delta(fields: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}
    return frame(_envelope([choice]))


def call(index: int, name: str, arguments: str) -> bytes:
    identity = f"call_{index}" if name else ""
    function = {"name": name, "arguments": arguments}
    return delta({"tool_calls": [{"index": index, "id": identity, "type": "function", "function": function}]})


def _envelope(choices: list[object]) -> dict[str, object]:
    fixed = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1760000000, "model": "m"}
    return {**fixed, "choices": choices}


def events(texts: int, arguments: int, calls: int, wide: bool) -> list[bytes]:
    """The frames of one response; with one call there are texts + arguments + 6 of them."""
    out = [delta({"role": "assistant", "content": ""})]
    out += [delta({"content": f" word{i % 89}"}) for i in range(texts)]
    if arguments:
        out += [call(index, "write_file", '{"text":"') for index in range(calls)]
        padding = "x" * 91 if wide else ""
        out += [
            call(i % calls, "", f"line{i % 97:02d} {padding}"[: 100 if wide else None])
            for i in range(arguments)
        ]
        out += [call(index, "", '"}') for index in range(calls)]
    out.append(delta({}, "tool_calls" if arguments else "stop"))
    produced = texts + arguments
    usage = {"prompt_tokens": 10, "completion_tokens": produced, "total_tokens": produced + 10}
    out.append(frame({**_envelope([]), "usage": usage}))
    out.append(b"data: [DONE]\n\n")
    return out


@functools.lru_cache(maxsize=4)
def wire(texts: int, arguments: int, calls: int, wide: bool) -> bytes:
    frames = events(texts, arguments, calls, wide)
    groups = [b"".join(frames[i : i + EVENTS_PER_WRITE]) for i in range(0, len(frames), EVENTS_PER_WRITE)]
    return b"".join(b"%x\r\n%b\r\n" % (len(group), group) for group in groups) + b"0\r\n\r\n"


async def answer(path: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
    shape = SHAPE.match(path)
    if shape is None:
        writer.write(NOT_FOUND)
        return False
    texts, arguments, calls = (int(number) for number in shape.group(1, 2, 3))
    response = wire(texts, arguments, max(calls, 1), shape.group(4) is not None)
    writer.write(HEAD)
    if shape.group(5):
        await _paced(response, writer)
        return True
    for start in range(0, len(response), PIECE):
        writer.write(response[start : start + PIECE])
        await writer.drain()
    return True


async def _paced(response: bytes, writer: asyncio.StreamWriter) -> None:
    """One HTTP chunk at a time, in a rhythm of its own for each stream, as models have."""
    pause_s = PACE_S * random.uniform(0.8, 1.2)
    start = 0
    while start < len(response):
        size = int(response[start : response.index(b"\r\n", start)], 16)
        end = response.index(b"\r\n", start) + 2 + size + 2
        writer.write(response[start:end])
        await writer.drain()
        await asyncio.sleep(pause_s)
        start = end


if __name__ == "__main__":
    serving.run(answer)

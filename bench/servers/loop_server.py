"""A model that wants one tool call a step: `/steps-N/v1/chat/completions` answers with a call of `add` until
the request holds N tool results, then with text. It answers from the request alone and keeps no state."""

import asyncio
import json
import re

import serving
from stream_server import HEAD, NOT_FOUND, delta

STEPS = re.compile(r"^/steps-(\d{1,5})/")
RESULT = re.compile(rb'"role": ?"tool"')


def step(number: int) -> bytes:
    """The frames of one call, its arguments in two pieces and its identity blank on the second."""
    first, second = f'{{"a": {number}, ', '"b": 1}'
    opening = {
        "index": 0,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "add", "arguments": first},
    }
    continued = {"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": second}}
    return (
        delta({"role": "assistant", "content": None, "tool_calls": [opening]})
        + delta({"tool_calls": [continued]})
        + delta({}, "tool_calls")
    )


def last() -> bytes:
    return delta({"role": "assistant", "content": "done"}) + delta({}, "stop")


async def answer(path: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
    steps = STEPS.match(path)
    if steps is None:
        writer.write(NOT_FOUND)
        return False
    json.loads(body)  # a request that is no JSON must not look like a fast one
    done = len(RESULT.findall(body))
    frames = (step(done) if done < int(steps.group(1)) else last()) + b"data: [DONE]\n\n"
    writer.write(HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(frames), frames))
    return True


if __name__ == "__main__":
    serving.run(answer)

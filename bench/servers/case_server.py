"""Replays recorded response bodies: `POST /<case id>/v1/...` gets that case's bytes, read by read.

usage: case_server.py CASES.jsonl
"""

import asyncio
import base64
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import serving

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
NAMED_EVENTS = ("anthropic-messages", "openai-responses")
"""Protocols whose frames carry the payload's type as an `event:` line too."""
READ_GAP_S = 0.001
"""Between two writes, so that they arrive as two reads."""


def main() -> None:
    with Path(sys.argv[1]).open(encoding="utf-8", newline="\n") as lines:
        cases = {case["id"]: case["input"] for case in map(json.loads, lines)}

    async def answer(path: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        case = cases.get(path.split("/")[1])
        if case is None:
            writer.write(NOT_FOUND)
            return False
        writer.write(head(case.get("http") or {}))
        for piece in pieces(case):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(READ_GAP_S)
        return False  # the body ends with the connection, as the cases' own did

    serving.run(answer)


def head(http: Mapping[str, Any]) -> bytes:
    fields = [f"HTTP/1.1 {http.get('status', 200)} Case", "Connection: close"]
    fields.append(f"Content-Type: {http.get('content_type', 'text/event-stream')}")
    if "content_encoding" in http:
        fields.append(f"Content-Encoding: {http['content_encoding']}")
    return ("\r\n".join(fields) + "\r\n\r\n").encode()


def pieces(case: Mapping[str, Any]) -> Iterator[bytes]:
    """The body as it was read from the network: raw reads, or one frame an event."""
    if "raw_b64" in case:
        raw = case["raw_b64"]
        yield from map(base64.b64decode, [raw] if isinstance(raw, str) else raw)
        return
    for event in case["events"]:
        if isinstance(event, str):
            yield f"data: {event}\n\n".encode()
            continue
        name = event.get("type") if isinstance(event, dict) and case["protocol"] in NAMED_EVENTS else None
        yield (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"


if __name__ == "__main__":
    main()

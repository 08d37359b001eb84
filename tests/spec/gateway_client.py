"""A client of the mock gateway that sees bytes: what was written, and whether the body ended as HTTP says."""

import json
import socket
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from lockstitch.testing.gateway import Gateway, running_gateway

ASK = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "hello"}],
}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    """With chunked transfer undone."""
    writes: list[bytes]
    """The chunks of a chunked body; the whole of another."""
    complete: bool
    """The body ended as HTTP says it must."""

    def payloads(self) -> list[Any]:
        frames = [f for f in self.body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n") if f]
        datas = ["\n".join(x[5:].strip() for x in f.split("\n") if x.startswith("data:")) for f in frames]
        return [data if data == "[DONE]" else json.loads(data) for data in datas if data]

    def deltas(self) -> list[Any]:
        """Each event in short: its delta (calls alone where there are any), beside it a reason or usage."""
        made: list[Any] = []
        for event in self.payloads():
            if not isinstance(event, dict) or "choices" not in event:
                made.append(event)
            elif not event["choices"]:
                made.append(event["usage"])
            else:
                choice = event["choices"][0]
                short = choice["delta"].get("tool_calls") or choice["delta"]
                more = [x for x in (choice["finish_reason"], event.get("usage")) if x is not None]
                made.append([short, *more] if more else short)
        return made


def post_bytes(body: Any = ASK, path: str = "/v1/chat/completions", headers: str = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def read_reply(file: Any) -> Reply:
    status = int(file.readline().split()[1])
    headers = {}
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if "transfer-encoding" not in headers:
        wanted = int(headers.get("content-length", -1))
        body = file.read(wanted)
        return Reply(status, headers, body, [body], len(body) == wanted)
    writes, complete = [], False
    try:
        while size_line := file.readline():
            size = int(size_line, 16)
            data = file.read(size)
            complete = size == 0 and file.readline() == b"\r\n"
            if complete or len(data) < size:
                break
            writes.append(data)
            file.readline()
    except ConnectionResetError:
        headers["reset"] = "yes"
    return Reply(status, headers, b"".join(writes), writes, complete)


def ask(gateway: Gateway, request: bytes | None = None) -> Reply:
    with closing(socket.create_connection(("127.0.0.1", gateway.port), 5)) as sock:
        sock.sendall(post_bytes() if request is None else request)
        with sock.makefile("rb") as file:
            return read_reply(file)


def answer(spec: Any, request: bytes | None = None) -> Reply:
    with running_gateway([spec]) as gateway:
        return ask(gateway, request)

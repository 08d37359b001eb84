"""The mock gateway over real sockets: how it sends, what it understands, what it takes down, how it ends."""

import asyncio
import json
import socket
import threading
from contextlib import closing
from typing import Any

import aiohttp
import pytest
from gateway_client import ASK, answer, ask, post_bytes, read_reply

from lockstitch.testing.gateway import Gateway, GatewayError, running_gateway

CALLS = {"text": "Hi", "tool_calls": [{"id": "c1", "name": "add", "arguments": {"a": 1}}]}
SHORT = {"events": [{"x": 1}, "[DONE]"]}


# --- how it is sent


def test_split_sends_pieces_of_that_many_bytes() -> None:
    assert answer({"raw": "abcdefg", "split": 3}).writes == [b"abc", b"def", b"g"]


def test_raw_base64_is_one_write_each() -> None:
    assert answer({"raw_b64": ["YWI=", "Yw=="]}).writes == [b"ab", b"c"]


def test_an_event_delay_sends_events_one_by_one() -> None:
    assert answer({**SHORT, "event_delay_ms": 1}).writes == [b'data: {"x":1}\n\n', b"data: [DONE]\n\n"]


CUTS: dict[str, tuple[dict[str, Any], bytes, bool]] = {
    "after some bytes": ({"cut_after": 4}, b"0123", False),
    "after none": ({"cut_after": 0}, b"", False),
    "beyond the end it still closes": ({"cut_after": 99}, b"0123456789", False),
    "after half": ({"quirks": ["cut_after_half"]}, b"01234", False),
    "cleanly": ({"quirks": ["cut_after_half", "clean_cut"]}, b"01234", True),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut(name: str) -> None:
    spec, body, complete = CUTS[name]
    reply = answer({"raw": "0123456789", **spec})
    assert (reply.body, reply.complete) == (body, complete)
    assert reply.headers["connection"] == "close"


def test_a_cut_document_is_shorter_than_it_said() -> None:
    reply = answer({"error": {"message": "x"}, "cut_after": 5})
    assert (reply.body, reply.complete) == (b'{"err', False)


def test_a_cleanly_cut_document_does_not_say_its_length() -> None:
    reply = answer({"error": {"message": "x"}, "cut_after": 5, "quirks": ["clean_cut"]})
    assert (reply.body, "content-length" in reply.headers) == (b'{"err', False)


def test_a_reset_is_seen_as_one() -> None:
    reply = answer({"raw": "0123456789", "cut_after": 4, "quirks": ["reset"], "hang": 0.05})
    assert reply.headers.get("reset") == "yes"


def test_keepalive_ms_sends_comments_while_waiting_but_not_before_the_headers() -> None:
    reply = answer({**SHORT, "delay_ms": 60, "keepalive_ms": 20})
    assert reply.body.startswith(b": keepalive\n\n")
    assert reply.payloads() == [{"x": 1}, "[DONE]"]


def test_a_hang_holds_the_connection_open_and_the_gateway_still_stops() -> None:
    with running_gateway([{"raw": "abc", "hang": 600}]) as gateway:
        sock = socket.create_connection(("127.0.0.1", gateway.port), 5)
        sock.sendall(post_bytes())
        received = b""
        while b"abc" not in received:
            received += sock.recv(1000)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)
    sock.settimeout(5)
    with closing(sock), pytest.raises(ConnectionResetError):
        while sock.recv(1000):
            pass
        raise ConnectionResetError  # closed: as good as reset


def test_a_short_hang_ends_the_body_properly() -> None:
    reply = answer({"raw": "abc", "hang": 0.03})
    assert (reply.body, reply.complete) == (b"abc", True)


async def test_a_client_that_leaves_is_taken_down() -> None:
    async with Gateway([{"text": "a" * 400, "event_delay_ms": 20}]) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(post_bytes())
        await reader.readuntil(b"data:")
        writer.close()
        await writer.wait_closed()
        for _ in range(50):
            if gateway.requests[0].get("client_left"):
                break
            await asyncio.sleep(0.02)
        assert gateway.requests[0]["client_left"] is True


def test_keepalive_ms_holds_in_a_hang_too() -> None:
    reply = answer({"raw": "data: x\n\n", "hang": 0.05, "keepalive_ms": 20})
    assert reply.body.startswith(b"data: x\n\n: keepalive\n\n")
    assert reply.complete


# --- HTTP


def test_one_connection_carries_several_requests() -> None:
    with (
        running_gateway(["a", {"error": {"message": "no"}, "status": 429}, "b"]) as gateway,
        closing(socket.create_connection(("127.0.0.1", gateway.port), 5)) as sock,
        sock.makefile("rb") as file,
    ):
        statuses = []
        for _ in range(3):
            sock.sendall(post_bytes())
            reply = read_reply(file)
            statuses.append((reply.status, reply.headers["connection"], reply.complete))
    assert statuses == [(200, "keep-alive", True), (429, "keep-alive", True), (200, "keep-alive", True)]


def test_an_old_client_gets_a_body_that_ends_with_the_connection() -> None:
    reply = answer({"raw": "abc"}, post_bytes().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert (reply.body, "transfer-encoding" in reply.headers) == (b"abc", False)


def test_a_chunked_request_is_read() -> None:
    data = json.dumps(ASK).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (data[:9], data[9:]))
    with running_gateway(["a"]) as gateway:
        assert ask(gateway, head + chunks + b"0\r\n\r\n").status == 200
        assert gateway.requests[0]["body"] == ASK


def test_a_client_that_waits_for_continue_is_told_to() -> None:
    request = post_bytes(headers="Expect: 100-continue\r\n")
    head, _, body = request.partition(b"\r\n\r\n")
    with (
        running_gateway(["a"]) as gateway,
        closing(socket.create_connection(("127.0.0.1", gateway.port), 5)) as sock,
        sock.makefile("rb") as file,
    ):
        sock.sendall(head + b"\r\n\r\n")
        assert [file.readline(), file.readline()] == [b"HTTP/1.1 100 Continue\r\n", b"\r\n"]
        sock.sendall(body)
        assert read_reply(file).status == 200


PLACES = {
    "without the version": ("POST", "/chat/completions", 200),
    "with a query": ("POST", "/v1/chat/completions?a=b", 200),
    "behind a prefix": ("POST", "/openai/v1/chat/completions", 200),
    "another path": ("POST", "/v1/completions", 404),
    "another method": ("GET", "/v1/chat/completions", 404),
    "health": ("GET", "/healthz", 200),
}


@pytest.mark.parametrize("name", PLACES)
def test_paths(name: str) -> None:
    method, path, status = PLACES[name]
    request = post_bytes(path=path).replace(b"POST", method.encode(), 1)
    assert answer("a", request).status == status


BAD_REQUESTS = {
    "not HTTP": (b"hello\r\n\r\n", 400),
    "a header without a colon": (b"GET / HTTP/1.1\r\nhello\r\n\r\n", 400),
    "a length that is none": (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
    "a length that is too large": (b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
    "a chunk size that is none": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "headers without end": (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000, 431),
    "a body that is not JSON": (post_bytes(b"{"), 400),
    "a body that is no object": (post_bytes([]), 400),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_answered_and_uses_up_no_answer(name: str) -> None:
    request, status = BAD_REQUESTS[name]
    with running_gateway(["a"]) as gateway:
        assert ask(gateway, request).status == status
        assert gateway.left == 1
        assert ask(gateway).status == 200


# --- journal


def test_requests_are_taken_down_as_they_came() -> None:
    with running_gateway(["a", {"error": {"message": "x"}, "status": 429}]) as gateway:
        ask(gateway)
        ask(gateway, post_bytes({**ASK, "model": "n"}))
        ask(gateway, b"GET /requests HTTP/1.1\r\n\r\n")
        journal = json.loads(ask(gateway, b"GET /requests HTTP/1.1\r\n\r\n").body)
    short = [[e[k] for k in ("n", "method", "path", "status", "answer")] for e in journal["requests"]]
    assert short == [
        [1, "POST", "/v1/chat/completions", 200, 0],
        [2, "POST", "/v1/chat/completions", 429, 1],
    ]
    assert [entry["body"]["model"] for entry in journal["requests"]] == ["m", "n"]
    assert journal["requests"] == gateway.requests


SECRETS = {
    "a bearer token": ("Authorization: Bearer sk-secret-0123456789\r\n", "", "authorization", "Bearer ***"),
    "anthropic's key": ("X-Api-Key: sk-secret-0123456789\r\n", "", "x-api-key", "***"),
    "google's key": ("x-goog-api-key: sk-secret-0123456789\r\n", "", "x-goog-api-key", "***"),
    "azure's key": ("api-key: sk-secret-0123456789\r\n", "", "api-key", "***"),
    "a key in the query": ("", "?alt=sse&key=sk-secret-0123456789", "host", "x"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_key_values_never_get_into_the_journal(name: str) -> None:
    headers, query, header, shown = SECRETS[name]
    body = {**ASK, "messages": [{"role": "user", "content": "my key is sk-secret-0123456789"}]}
    request = post_bytes(
        body, path="/v1/chat/completions" + query, headers=headers + "X-More: sk-secret-0123456789\r\n"
    )
    with running_gateway(["a"]) as gateway:
        ask(gateway, request)
        taken = ask(gateway, b"GET /requests HTTP/1.1\r\n\r\n").body.decode()
        assert gateway.requests[0]["headers"][header] == shown
    assert "sk-secret" not in taken
    assert "my key is ***" in taken


# --- life


def test_a_taken_port_is_one_clear_error() -> None:
    with (
        running_gateway(["a"]) as gateway,
        pytest.raises(GatewayError, match=rf"cannot listen on 127.0.0.1:{gateway.port}: .*in use"),
        running_gateway(["b"], port=gateway.port),
    ):
        pass


UNKNOWN = {
    "dialect": ({"strict": "smoke-signals"}, 'no strict rules for "smoke-signals"; known: openai-chat'),
    "wording": (
        {"wording": "rude"},
        'unknown wording "rude"; known: provider, opaque, bodyless, server-error',
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_setting_is_told_what_is_known(name: str) -> None:
    settings, message = UNKNOWN[name]
    with pytest.raises(GatewayError) as caught:
        Gateway(["a"], **settings)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


async def test_requests_are_served_side_by_side() -> None:
    script = {"answers": [{"text": str(i), "delay_ms": 20} for i in range(30)]}
    async with Gateway(script) as gateway, aiohttp.ClientSession() as session:

        async def one() -> str:
            body = {**ASK, "stream": False}
            async with session.post(f"{gateway.base_url}/chat/completions", json=body) as response:
                return str((await response.json())["choices"][0]["message"]["content"])

        texts = await asyncio.gather(*(one() for _ in range(30)))
        assert sorted(texts, key=int) == [str(i) for i in range(30)]
        assert [entry["n"] for entry in gateway.requests] == list(range(1, 31))


def test_a_failing_block_still_stops_the_gateway() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), running_gateway([{"raw": "x", "hang": 600}]) as gateway:
        sock = socket.create_connection(("127.0.0.1", gateway.port), 5)
        with closing(sock):
            sock.sendall(post_bytes())
            raise ZeroDivisionError
    assert threading.active_count() == before


def test_the_port_is_free_again_behind_the_block() -> None:
    before = threading.active_count()
    with running_gateway(["a"]) as gateway:
        ask(gateway)
    with running_gateway(["b"], port=gateway.port) as again:
        assert ask(again).status == 200
    assert threading.active_count() == before


async def test_no_task_is_left_behind() -> None:
    async with Gateway(["a", {"raw": "x", "hang": 600}]) as gateway:
        idle = await asyncio.open_connection("127.0.0.1", gateway.port)
        held = await asyncio.open_connection("127.0.0.1", gateway.port)
        held[1].write(post_bytes())
        await held[0].readuntil(b"\r\n\r\n")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for _, writer in (idle, held):
        writer.close()


async def test_a_real_client_reads_two_answers_over_one_connection() -> None:
    async with Gateway([{"text": "héllo", "split": 1}, CALLS]) as gateway, aiohttp.ClientSession() as session:
        bodies = []
        for _ in range(2):
            async with session.post(f"{gateway.base_url}/chat/completions", json=ASK) as response:
                bodies.append(await response.read())
    assert "héllo".encode() in bodies[0]
    assert bodies[1].endswith(b"data: [DONE]\n\n")

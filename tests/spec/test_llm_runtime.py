"""One model call against a server that misbehaves in bytes: exactly one finish, always the right one."""

import asyncio
import gzip
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from raw_server import (
    DONE,
    END,
    HEAD,
    KEY,
    USAGE,
    WHOLE,
    WIRE,
    Peer,
    answered,
    chunked,
    collect,
    endpoint,
    event,
    refusal,
    serving,
    text,
)

from lockstitch.history.assemble import Grammar
from lockstitch.history.tokens import text_tokens
from lockstitch.llm.runtime import ModelRuntime
from lockstitch.providers.wire_request import WireRequest
from lockstitch.schema.blocks import Text
from lockstitch.schema.chunks import Finish, UsageChunk
from lockstitch.schema.usage import Usage

HELLO = (Text("Hello you"),)
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n"
JSON = b'{"choices":[{"message":{"role":"assistant","content":"Hello you"},"finish_reason":"stop"}]}'

GOOD = {
    "a chunked stream": HEAD + chunked(WHOLE) + END,
    "every byte in a chunk of its own": HEAD
    + b"".join(chunked(WHOLE[i : i + 1]) for i in range(len(WHOLE)))
    + END,
    "a body that ends with the connection": CLOSE_HEAD + WHOLE,
    "a server that never sends the last chunk": HEAD + chunked(WHOLE),
    "a cut behind the finish reason, before the sentinel": HEAD
    + chunked(text("Hello you") + event({}, "stop")),
    "a body shorter than its length, but complete in itself": SIZED + WHOLE,
    "an unasked gzip": CLOSE_HEAD[:-2] + b"content-encoding: gzip\r\n\r\n" + gzip.compress(WHOLE),
    "a whole JSON answer where a stream was asked for": SIZED.replace(b"5000", str(len(JSON)).encode())
    + JSON,
    "status 201": HEAD.replace(b"200 OK", b"201 Created") + chunked(WHOLE) + END,
    "an informational answer first": b"HTTP/1.1 103 Early Hints\r\n\r\n" + HEAD + chunked(WHOLE) + END,
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD)
async def test_an_answer_is_complete_by_its_own_protocol_however_the_connection_ends(answer: bytes) -> None:
    result = (await answered(answer)).result
    assert (result.content, result.finish) == (HELLO, Finish("stop"))


BAD: Mapping[str, tuple[bytes, str, str | None]] = {
    "nothing at all": (b"", "TRANSPORT", "disconnected"),
    "a head that is cut": (b"HTTP/1.1 200 OK\r\nconte", "TRANSPORT", "disconnected"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "TRANSPORT", "malformed_http"),
    "a status that is no number": (b"HTTP/1.1 abc OK\r\n\r\n", "TRANSPORT", "malformed_http"),
    "a header line without end": (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000, "TRANSPORT", "malformed_http"),
    "a chunk size that is none": (HEAD + b"zz\r\nabc\r\n", "TRANSPORT", "malformed_http"),
    "a cut in the middle of a chunk": (HEAD + chunked(text("Hi"))[:-20], "STREAM_CLOSED", "cut"),
    "a cut between chunks": (HEAD + chunked(text("Hi")), "STREAM_CLOSED", "cut"),
    "a body shorter than its length": (SIZED + text("Hi"), "STREAM_CLOSED", "cut"),
    "an orderly end without terminal": (HEAD + chunked(text("Hi")) + END, "STREAM_CLOSED", "clean_eof"),
    "an empty body": (HEAD + END, "EMPTY_RESPONSE", None),
    "only keepalives": (HEAD + chunked(b": ping\n\n" * 3) + END, "EMPTY_RESPONSE", None),
    "a web page": (HEAD + chunked(b"<html><title>Sign in</title></html>") + END, "NOT_AN_API", None),
    "an error in the stream": (
        HEAD
        + chunked(text("Hi") + b'data: {"error":{"message":"x","code":503,"type":"overloaded_error"}}\n\n')
        + END,
        "OVERLOADED",
        None,
    ),
    "an overflow in the stream": (
        HEAD + chunked(b'data: {"error":{"message":"x","code":"context_length_exceeded"}}\n\n') + END,
        "CONTEXT_WINDOW_EXCEEDED",
        None,
    ),
    "a redirect": (refusal(307, b"", location="https://x.example/"), "NOT_AN_API", "redirect"),
    "a refusal whose body is cut": (refusal(401, b"{}")[:-1], "AUTH", None),
    "a compressed refusal": (refusal(429, gzip.compress(b'{"error":"insufficient_quota"}')), "QUOTA", None),
    "a status without meaning": (refusal(418, b"teapot"), "INVALID_REQUEST", "unrecognised"),
    "status 204": (b"HTTP/1.1 204 No Content\r\n\r\n", "EMPTY_RESPONSE", None),
}


@pytest.mark.parametrize(("answer", "code", "subkind"), BAD.values(), ids=BAD)
async def test_whatever_goes_wrong_is_the_one_finish(answer: bytes, code: str, subkind: str | None) -> None:
    async with serving(answer) as server, ModelRuntime(idle_s=5) as runtime:
        chunks = await collect(runtime.stream(endpoint(server.url), WIRE))
    grammar = Grammar()
    for chunk in chunks:
        grammar.check(chunk)
    finish = chunks[-1]
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert (finish.reason, finish.failure.code) == ("error", code)
    if subkind is not None:
        assert finish.failure.subkind == subkind
    assert "\n" not in finish.failure.message
    assert sum(isinstance(chunk, Finish) for chunk in chunks) == 1


async def refused_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


UNREACHABLE = {
    "a port where nobody listens": (None, "connect"),
    "a host name that does not exist": ("http://no-such-host.invalid/v1", "dns"),
    "a host name that cannot exist": (f"http://{'a' * 70}.invalid/v1", None),
}


@pytest.mark.parametrize(("url", "subkind"), UNREACHABLE.values(), ids=UNREACHABLE)
async def test_no_connection_is_a_transport_failure(url: str | None, subkind: str | None) -> None:
    async with ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(url or await refused_port()), WIRE, input_estimate=9)
        chunks = await collect(stream)
    [finish] = chunks
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert finish.failure.code == "TRANSPORT"
    assert subkind is None or finish.failure.subkind == subkind
    assert stream.result.usage is None


async def test_a_port_that_speaks_no_tls_is_a_transport_failure() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server, ModelRuntime() as runtime:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        [finish] = await collect(runtime.stream(endpoint(url), WIRE))
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert (finish.failure.code, finish.failure.subkind) == ("TRANSPORT", "tls")


async def test_a_reset_in_the_middle_keeps_what_had_arrived() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD + chunked(text("Hel"), text("lo")))
        await asyncio.sleep(0.02)
        peer.reset()

    result = (await answered(script)).result
    assert result.content == (Text("Hello"),)
    assert result.finish.failure is not None
    assert (result.finish.failure.code, result.finish.failure.subkind) == ("TRANSPORT", "reset")
    assert result.finish.failure.request_id == "req-7"
    assert result.usage == Usage(input_tokens=50, output_tokens=text_tokens("Hello"), estimated=True)


async def test_a_reset_behind_a_whole_answer_changes_nothing() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD + chunked(WHOLE))
        peer.reset()

    assert (await answered(script)).result.finish == Finish("stop")


async def test_a_refusal_keeps_status_request_id_delay_and_the_providers_words() -> None:
    body = b'{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}'
    result = (await answered(refusal(429, body, retry_after="7", x_request_id="req-1"))).result
    found = result.finish.failure
    assert found is not None
    assert (found.code, found.status, found.retry_after_s, found.request_id, found.provider_code) == (
        "RATE_LIMIT",
        429,
        7.0,
        "req-1",
        "rate_limit_exceeded",
    )
    assert found.provider_message == "Rate limit reached"
    assert result.usage is None


async def test_a_bodyless_400_is_judged_by_the_windows_fill() -> None:
    async with serving(refusal(400, b"")) as server, ModelRuntime() as runtime:
        codes = []
        for ratio in (0.95, 0.2, None):
            stream = runtime.stream(endpoint(server.url), WIRE, context_ratio=ratio)
            await collect(stream)
            assert stream.result.finish.failure is not None
            codes.append(stream.result.finish.failure.code)
    assert codes == ["CONTEXT_WINDOW_EXCEEDED", "INVALID_REQUEST", "INVALID_REQUEST"]


async def test_a_large_error_body_is_read_to_its_bound_only() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.send(b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n")
        while not peer.gone.is_set() and sent < 64 * 1024 * 1024:
            await peer.send(b"x" * 65536)
            sent += 65536

    result = (await answered(script)).result
    assert result.finish.failure is not None
    assert result.finish.failure.code == "SERVER"
    assert len(result.finish.failure.message) < 600
    assert sent < 32 * 1024 * 1024


# ---- timeouts --------------------------------------------------------------------------------------


def hang(*data: bytes, every_s: float = 0, then: bytes = b"") -> Any:
    """Send ``data``, then ``then`` every so often, until the client gives up."""

    async def script(peer: Peer) -> None:
        for piece in data:
            await peer.send(piece)
        while not peer.gone.is_set():
            if then:
                await peer.send(then)
            try:
                await asyncio.wait_for(peer.gone.wait(), every_s or None)
            except TimeoutError:
                continue

    return script


PING = chunked(b": keepalive\n\n")
SILENCES = {
    "no head": (hang(), {"idle_s": 0.1}, "first_frame"),
    "a head and no data": (hang(HEAD), {"idle_s": 0.1}, "first_frame"),
    "keepalives without end, before data": (
        hang(HEAD, every_s=0.02, then=PING),
        {"idle_s": 0.1, "first_frame_s": 0.2},
        "first_frame",
    ),
    "silence after data": (hang(HEAD, chunked(text("Hi"))), {"idle_s": 0.1}, "idle"),
    "keepalives without end, after data": (
        hang(HEAD, chunked(text("Hi")), every_s=0.02, then=PING),
        {"idle_s": 0.15},
        "idle",
    ),
    "frames that say nothing without end, after data": (
        hang(HEAD, chunked(text("Hi")), every_s=0.02, then=chunked(text(""))),
        {"idle_s": 0.15},
        "idle",
    ),
    "frames that say nothing without end, before data": (
        hang(HEAD, every_s=0.02, then=chunked(text(""))),
        {"idle_s": 0.1, "first_frame_s": 0.2},
        "first_frame",
    ),
    "an endless answer": (
        hang(HEAD, every_s=0.02, then=chunked(text("Hi"))),
        {"idle_s": 5, "total_s": 0.2},
        "deadline",
    ),
    "no head until the deadline": (hang(), {"total_s": 0.1}, "deadline"),
}


@pytest.mark.parametrize(("script", "limits", "subkind"), SILENCES.values(), ids=SILENCES)
async def test_silence_ends_in_a_timeout(script: Any, limits: dict[str, float], subkind: str) -> None:
    async with asyncio.timeout(3):
        result = (await answered(script, **limits)).result
    assert result.finish.failure is not None
    assert (result.finish.failure.code, result.finish.failure.subkind) == ("TIMEOUT", subkind)


async def test_a_body_held_open_behind_an_error_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstitch.llm.runtime.REFUSED_BODY_S", 0.05)
    reported = b'data: {"error":{"message":"x","code":503,"type":"overloaded_error"}}\n\n'
    script = hang(HEAD, chunked(text("Hi") + reported + USAGE))
    async with serving(script) as server, ModelRuntime(idle_s=30) as runtime:
        chunks = await collect(runtime.stream(endpoint(server.url), WIRE))
    finish = chunks[-1]
    assert isinstance(finish, Finish) and finish.failure is not None
    assert (finish.failure.code, finish.failure.subkind) == ("OVERLOADED", None)
    assert chunks[-2] == UsageChunk(Usage(input_tokens=7, output_tokens=2))


async def test_a_body_held_open_behind_the_finish_reason_is_a_whole_answer_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lockstitch.llm.runtime.SETTLED_BODY_S", 0.05)
    ended = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    script = hang(HEAD, chunked(text("Hi") + ended + USAGE))
    async with serving(script) as server, ModelRuntime(idle_s=30) as runtime:
        chunks = await collect(runtime.stream(endpoint(server.url), WIRE))
    assert chunks[-2:] == [UsageChunk(Usage(input_tokens=7, output_tokens=2)), Finish("stop")]


async def test_keepalives_extend_the_wait_for_the_first_data() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD)
        for _ in range(8):
            await asyncio.sleep(0.03)
            await peer.send(PING)
        await peer.send(chunked(WHOLE) + END)

    result = (await answered(script, idle_s=0.15, first_frame_s=5)).result
    assert result.finish == Finish("stop")


async def test_the_consumers_own_time_is_no_silence() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD + chunked(text("Hello")))
        await asyncio.sleep(0.05)
        await peer.send(chunked(text(" you") + event({}, "stop") + DONE) + END)

    async with serving(script) as server, ModelRuntime(idle_s=0.12) as runtime:
        async with runtime.stream(endpoint(server.url), WIRE) as chunks:
            async for _ in chunks:
                await asyncio.sleep(0.05)
        assert (chunks.result.content, chunks.result.finish) == (HELLO, Finish("stop"))


async def test_the_body_of_a_refusal_may_hang_without_hiding_its_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lockstitch.llm.exchange.ERROR_BODY_S", 0.05)
    script = hang(b"HTTP/1.1 503 Busy\r\ncontent-length: 500\r\n\r\n", b"server overloaded")
    result = (await answered(script)).result
    assert result.finish.failure is not None
    assert (result.finish.failure.code, result.finish.failure.status) == ("OVERLOADED", 503)


# ---- cancelling and leaving ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent", [b"", HEAD, HEAD + chunked(text("Hi"))], ids=["no head", "no data", "some data"]
)
async def test_cancel_ends_the_stream_at_once_and_closes_the_connection(sent: bytes) -> None:
    async with serving(hang(sent)) as server, ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(server.url), WIRE, input_estimate=50)
        asyncio.get_running_loop().call_later(0.05, stream.cancel)
        async with asyncio.timeout(1):
            chunks = await collect(stream)
            await server.peers[0].gone.wait()
    finish = chunks[-1]
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert (finish.reason, finish.failure.code) == ("aborted", "ABORTED")
    billed = Usage(input_tokens=50, output_tokens=text_tokens("Hi") if b"Hi" in sent else 0, estimated=True)
    assert stream.result.usage == (billed if sent else None)
    assert [chunk for chunk in chunks if isinstance(chunk, UsageChunk)] == (
        [UsageChunk(billed)] if sent else []
    )


async def test_cancel_before_the_first_chunk_sends_nothing() -> None:
    async with serving(HEAD + chunked(WHOLE) + END) as server, ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(server.url), WIRE)
        stream.cancel()
        [finish] = await collect(stream)
        assert isinstance(finish, Finish)
        assert finish.reason == "aborted"
        assert server.peers == []


async def test_cancel_from_the_consumers_loop_keeps_what_was_decoded() -> None:
    async with serving(hang(HEAD, chunked(text("a") + text("b")))) as server, ModelRuntime() as runtime:
        async with runtime.stream(endpoint(server.url), WIRE) as chunks:
            seen = []
            async for chunk in chunks:
                seen.append(chunk)
                chunks.cancel()
        assert chunks.result.content == (Text("ab"),)
        assert seen[-1] == chunks.result.finish


async def test_cancel_after_the_end_changes_nothing() -> None:
    stream = await answered(HEAD + chunked(WHOLE) + END)
    stream.cancel()
    assert stream.result.finish == Finish("stop")


@pytest.mark.parametrize(
    "sent", [b"", HEAD, HEAD + chunked(text("Hi"))], ids=["no head", "no data", "some data"]
)
async def test_cancelling_the_task_propagates_and_closes_the_connection(sent: bytes) -> None:
    async with serving(hang(sent)) as server, ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(server.url), WIRE, input_estimate=50)
        task = asyncio.create_task(collect(stream))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(1):
            await server.peers[0].gone.wait()
        assert stream.result.finish.reason == "aborted"


async def test_leaving_early_closes_the_connection_and_leaves_a_result() -> None:
    async with serving(hang(HEAD, chunked(text("Hi")))) as server, ModelRuntime() as runtime:
        async with runtime.stream(endpoint(server.url), WIRE, input_estimate=50) as chunks:
            async for _ in chunks:
                break
        async with asyncio.timeout(1):
            await server.peers[0].gone.wait()
        assert chunks.result.finish.reason == "aborted"
        assert chunks.result.usage == Usage(input_tokens=50, output_tokens=text_tokens("Hi"), estimated=True)


async def test_an_exception_of_the_consumer_passes_through() -> None:
    async with serving(hang(HEAD, chunked(text("Hi")))) as server, ModelRuntime() as runtime:
        with pytest.raises(ZeroDivisionError):
            async with runtime.stream(endpoint(server.url), WIRE) as chunks:
                async for _ in chunks:
                    raise ZeroDivisionError
        async with asyncio.timeout(1):
            await server.peers[0].gone.wait()


@pytest.mark.parametrize(
    "sent", [b"", HEAD, HEAD + chunked(text("Hi"))], ids=["no head", "no data", "some data"]
)
async def test_a_runtime_closed_under_an_open_stream_aborts_it(sent: bytes) -> None:
    async with serving(hang(sent)) as server:
        runtime = ModelRuntime()
        task = asyncio.create_task(collect(runtime.stream(endpoint(server.url), WIRE)))
        await asyncio.sleep(0.05)
        await runtime.close()
        async with asyncio.timeout(1):
            chunks = await task
    assert isinstance(chunks[-1], Finish)
    assert chunks[-1].reason == "aborted"


async def test_a_server_that_is_always_ahead_meets_the_deadline_too() -> None:
    async def flood(peer: Peer) -> None:
        await peer.send(HEAD)
        while not peer.gone.is_set():
            await peer.send(chunked(text("Hi")) * 100)

    async with asyncio.timeout(5):
        result = (await answered(flood, total_s=0.1)).result
    assert result.finish.failure is not None
    assert result.finish.failure.subkind == "deadline"


async def test_a_large_request_is_sent_whole() -> None:
    wire = WireRequest(dialect="openai-chat", path="/chat/completions", body={"image": "x" * 3_000_000})
    async with serving(HEAD + chunked(WHOLE) + END) as server, ModelRuntime() as runtime:
        chunks = await collect(runtime.stream(endpoint(server.url), wire))
    assert chunks[-1] == Finish("stop")
    assert server.peers[0].request.endswith(b'"' + b"x" * 3_000_000 + b'"}')


async def test_a_refusal_before_the_request_was_read_is_still_a_refusal() -> None:
    async def early(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(refusal(413, b'{"error":"Payload Too Large"}', connection="close"))
        await writer.drain()
        writer.close()

    wire = WireRequest(dialect="openai-chat", path="/chat/completions", body={"image": "x" * 8_000_000})
    async with await asyncio.start_server(early, "127.0.0.1", 0) as server, ModelRuntime() as runtime:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        [finish] = await collect(runtime.stream(endpoint(url), wire))
    assert isinstance(finish, Finish)
    assert finish.failure is not None
    assert finish.failure.code in {"REQUEST_TOO_LARGE", "TRANSPORT"}


async def test_a_result_before_the_end_is_refused() -> None:
    async with ModelRuntime() as runtime:
        stream = runtime.stream(endpoint("http://127.0.0.1:9/v1"), WIRE)
        with pytest.raises(RuntimeError, match="has not ended"):
            _ = stream.result


# ---- what is sent, and the connection --------------------------------------------------------------


async def test_the_request_carries_key_and_body_and_asks_for_no_compression() -> None:
    async with serving(HEAD + chunked(WHOLE) + END) as server, ModelRuntime() as runtime:
        await collect(runtime.stream(endpoint(server.url), WIRE))
    head, _, body = server.peers[0].request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    lines = head.lower().split(b"\r\n")
    assert f"authorization: bearer {KEY}".lower().encode() in lines
    assert b"accept-encoding: identity" in lines
    assert b"content-type: application/json" in lines
    assert body == b'{"model":"m","stream":true}'


async def test_a_connection_is_used_again_after_a_complete_answer() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD + chunked(WHOLE) + END)
        await peer.gone.wait()

    async with serving(script) as server, ModelRuntime() as runtime:
        await collect(runtime.stream(endpoint(server.url), WIRE))
        second = asyncio.create_task(collect(runtime.stream(endpoint(server.url), WIRE)))
        await asyncio.sleep(0.05)
        second.cancel()
    assert len(server.peers) == 1


async def test_a_netrc_file_neither_replaces_the_key_nor_refuses_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with serving(HEAD + chunked(WHOLE) + END) as server, ModelRuntime() as runtime:
        chunks = await collect(runtime.stream(endpoint(server.url), WIRE))
    assert chunks[-1] == Finish("stop")
    assert f"Authorization: Bearer {KEY}".encode() in server.peers[0].request


async def test_text_that_is_no_unicode_is_a_structural_failure_and_never_leaves() -> None:
    wire = WireRequest(dialect="openai-chat", path="/chat/completions", body={"model": "\ud800"})
    async with serving(b"") as server, ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(server.url), wire)
        await collect(stream)
    assert stream.result.finish.failure is not None
    assert stream.result.finish.failure.code == "INVALID_STRUCTURE"
    assert server.peers == []


async def test_usage_that_only_opened_a_cut_stream_is_completed_by_an_estimate() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":700,"completion_tokens":1}}\n\n'
    long = text("word " * 70)
    result = (await answered(HEAD + chunked(usage + long))).result
    assert result.usage == Usage(input_tokens=700, output_tokens=text_tokens("word " * 70), estimated=True)


async def test_usage_that_was_reported_before_the_cut_is_kept() -> None:
    result = (await answered(HEAD + chunked(text("Hello you") + USAGE))).result
    assert result.usage == Usage(input_tokens=7, output_tokens=2)

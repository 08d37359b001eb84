"""CPU of HTTP clients per event of one raw stream, side by side: `python bench/http_clients.py [ROUNDS]`.

Run it with a Python that has aiohttp and whichever of httpx and httpx2 are to be compared. The server is a
process of its own and sends 20,000 events, once one event in each HTTP chunk, as a provider flushes them,
and once eight. Nothing is parsed: the figures are what the client itself costs. Record:
docs/decisions/0002-dependencies.md.
"""

import asyncio
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable

EVENTS = 20_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}\n\n'
)
REQUEST = {"content": b"{}", "headers": {"Content-Type": "application/json"}}


def serve(per_chunk: int, port_out: "multiprocessing.Queue[int]") -> None:
    group = EVENT * per_chunk
    body = b"%x\r\n%s\r\n" % (len(group), group) * (EVENTS // per_chunk) + b"0\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(HEAD)
                for at in range(0, len(body), 65536):
                    writer.write(body[at : at + 65536])
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port_out.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def by_aiohttp(url: str, rounds: int) -> float:
    import aiohttp

    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def once() -> int:
            async with session.post(url, data=REQUEST["content"], headers=REQUEST["headers"]) as response:
                return sum([len(data) async for data in response.content.iter_any()])

        return await cpu_per_event(once, rounds)


async def by_httpx(url: str, rounds: int, module: str) -> float:
    httpx = __import__(module)
    async with httpx.AsyncClient(timeout=60) as session:

        async def once() -> int:
            async with session.stream("POST", url, **REQUEST) as response:
                return sum([len(data) async for data in response.aiter_raw()])

        return await cpu_per_event(once, rounds)


async def cpu_per_event(once: Callable[[], object], rounds: int) -> float:
    """Microseconds, the median of ``rounds`` after a warm-up."""
    figures = []
    for _ in range(rounds + 1):
        started = time.process_time()
        received = await once()  # type: ignore[misc]  # a coroutine function
        figures.append((time.process_time() - started) / EVENTS * 1e6)
        assert received == EVENTS * len(EVENT), f"{received} bytes"
    return statistics.median(figures[1:])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"Python {platform.python_version()}, {multiprocessing.cpu_count()} cores, {rounds} rounds")
    for per_chunk in (1, 8):
        ports: multiprocessing.Queue[int] = multiprocessing.Queue()
        server = multiprocessing.Process(target=serve, args=(per_chunk, ports), daemon=True)
        server.start()
        url = f"http://127.0.0.1:{ports.get()}/v1/chat/completions"
        found = {"aiohttp": asyncio.run(by_aiohttp(url, rounds))}
        for module in ("httpx", "httpx2"):
            try:
                found[module] = asyncio.run(by_httpx(url, rounds, module))
            except ImportError:
                print(f"{module} is not installed", file=sys.stderr)
        server.kill()
        ratios = {name: round(figure / found["aiohttp"], 1) for name, figure in found.items()}
        figures = {name: round(figure, 2) for name, figure in found.items()}
        print(json.dumps({"events_per_chunk": per_chunk, "cpu_us_per_event": figures, "ratio": ratios}))


if __name__ == "__main__":
    main()

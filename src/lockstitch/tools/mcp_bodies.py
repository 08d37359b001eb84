"""JSON answers of MCP servers over HTTP, read no further than one message may be long.

The ``mcp`` package bounds the events of a stream (``max_sse_event_size``); a body that is one JSON document
it reads to its end, whatever that is (mcp 2.3, ``_handle_json_response``, read 2026-12-01).
"""

from typing import Any

from lockstitch.wire.strict_json import VALUES_MAX, has_too_many_values


async def bound(response: Any, max_bytes: int) -> None:
    """Makes ``aread`` of an httpx2.Response raise StreamError beyond so many bytes, or VALUES_MAX."""
    import httpx2

    async def aread() -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > max_bytes:
                raise httpx2.StreamError(f"the message has more than {max_bytes:,} bytes")
        if has_too_many_values(bytes(body)):
            raise httpx2.StreamError(f"the message holds more than {VALUES_MAX:,} values")
        return bytes(body)

    response.aread = aread

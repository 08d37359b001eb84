"""A transport that takes out of a server's list of tools what would spoil all of it.

The ``mcp`` package refuses a whole list for one tool that is not described as the protocol says. Here such
tools are set aside first, and of the others only what is used is kept: a name, a description and the schema
of the arguments. Schemas of results go too; a result that misses one is still of use to a model.
"""

from types import TracebackType
from typing import Any

from .mcp_tools import Quarantined, objection
from .text import clean


class Sifting:
    """A transport of the ``mcp`` package (a context of a reading and a writing stream) around another."""

    def __init__(self, transport: Any) -> None:
        self.aside: dict[str, Quarantined] = {}
        """By the server's name for the tool; cleared when a list begins anew."""
        self._transport = transport

    async def __aenter__(self) -> tuple[Any, Any]:
        reading, writing = await self._transport.__aenter__()
        return _Reading(reading, self.aside), writing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        ended: bool | None = await self._transport.__aexit__(kind, error, trace)
        return ended


class _Reading:
    """The stream of messages, with lists of tools sifted as they pass."""

    def __init__(self, stream: Any, aside: dict[str, Quarantined]) -> None:
        self._stream = stream
        self._aside = aside

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self._sifted(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> Any:
        return self._sifted(await self._stream.__anext__())

    async def __aenter__(self) -> "_Reading":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *ending: Any) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*ending)
        return ended

    def _sifted(self, item: Any) -> Any:
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            result["tools"] = [kept for entry in result["tools"] if (kept := self._tool(entry)) is not None]
        return item

    def _tool(self, entry: Any) -> dict[str, Any] | None:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            self._aside[""] = Quarantined("", "it has no name")
            return None
        reason = objection(entry.get("inputSchema"))
        if reason:
            self._aside[name] = Quarantined(clean(name)[:100], reason)
            return None
        description = entry.get("description")
        kept = {"name": name, "inputSchema": entry["inputSchema"]}
        return {**kept, "description": description} if isinstance(description, str) else kept

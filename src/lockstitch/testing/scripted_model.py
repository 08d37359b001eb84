"""A model that plays a gateway's script without HTTP, for tests of agents that need no network.

    model = ScriptedModel([{"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, "It is 3."])
    agent = Agent(model, tools=[add])

Everything behind the socket is the real thing: requests are encoded, answers rendered to bytes, decoded and
judged as those of a provider are; only the transport is played. What the script does to bytes and connections
(quirks, cuts, delays, a hang) holds here too, except ``split`` and ``keepalive_ms``.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from ..llm.endpoint import Endpoint
from ..llm.runtime import ModelRuntime
from ..llm.transport import Transport
from ..providers import catalog
from . import playback
from .http1 import HttpRequest
from .player import Played, Player
from .script import Source
from .strict import Wording


class ScriptedModel(ModelRuntime):
    """A model runtime whose answers are a script's, and the endpoint they seem to come from.

    Pass it as the model of an ``Agent``, or call ``stream`` as on a ModelRuntime. ``profile`` names the
    provider that is played; ``strict``, ``wording`` and ``window`` are those of ``testing.gateway.Gateway``.
    Raises ScriptError, GatewayError, or CallerError on an unknown profile.
    """

    def __init__(
        self,
        script: Source,
        *,
        profile: str = "generic",
        model: str = "scripted",
        strict: str | None = None,
        wording: Wording = "provider",
        window: int | None = None,
        idle_s: float = 300.0,
    ) -> None:
        super().__init__(idle_s=idle_s)
        self._player = Player(script, strict=strict, wording=wording, window=window)
        self._transport = cast(Transport, _ScriptedTransport(self._player))
        self.endpoint = Endpoint(catalog.profile(profile), model, "http://scripted.invalid/v1")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was sent so far, as a gateway's ``GET /requests`` has it."""
        return self._player.requests

    @property
    def left(self) -> int:
        """Answers of the script that were not given yet."""
        return self._player.left


class _ScriptedTransport:
    """Stands in for ``llm.transport.Transport``."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "_ScriptedAnswer":
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        played = self._player.play(HttpRequest("POST", target, "HTTP/1.1", list(headers.items()), body))
        if played.answer.delay_ms:
            await asyncio.sleep(played.answer.delay_ms / 1000)
        return _ScriptedAnswer(played)

    async def close(self) -> None:
        pass


class _ScriptedAnswer:
    """Stands in for ``llm.transport.Answer``."""

    def __init__(self, played: Played) -> None:
        self._answer = played.answer
        self._parts = playback.parts_of(played.body, played.answer)
        self._next = 0
        self._cut = playback.cut_size(played.body, played.answer) is not None
        self._closed = asyncio.Event()
        self._entry = played.entry
        self.status = played.status
        given = {name.lower(): value for name, value in played.answer.headers.items()}
        kind = played.answer.content_type or played.body.content_type
        encoding = {name.lower(): value for name, value in played.body.headers.items()}
        self.headers: Mapping[str, str] = {"content-type": kind, **encoding, **given}

    def buffered(self) -> bytes:
        return b""

    def ended(self) -> bool:
        return False

    async def read(self) -> bytes:
        if self._next < len(self._parts):
            part = self._parts[self._next]
            if self._next and self._answer.event_delay_ms:
                await self._wait(self._answer.event_delay_ms / 1000)
            self._next += 1
            return part or await self.read()
        if self._answer.hang:
            await self._wait(self._answer.hang)
        if self._cut and "clean_cut" not in self._answer.quirk_set:
            raise self._broken()
        return b""

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._closed.wait(), seconds)
        except TimeoutError:
            return
        self._entry["client_left"] = True
        raise ConnectionResetError("the answer was closed while it was read")

    def _broken(self) -> Exception:
        """What the HTTP client raises where an answer is cut, in words like its own."""
        import aiohttp

        if "reset" in self._answer.quirk_set:
            return aiohttp.ClientConnectionResetError("the script resets the connection")
        return aiohttp.ClientPayloadError("not enough data: the script cuts the answer")

    def close(self) -> None:
        self._closed.set()

    def linger(self) -> None:
        self._closed.set()

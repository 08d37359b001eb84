"""A cassette: real answers of a provider, recorded once and played ever after, byte for byte.

    model = Cassette("tests/cassettes/weather.jsonl", "deepseek:deepseek-chat")
    agent = Agent(model, tools=[weather], store="memory")

The first run records, if the file is not there; later runs need no key and no network. A request that
differs from the recorded one fails and says where: then the file is to be removed and recorded again. Keys
are masked in everything that is written. One JSON object a line, each an exchange in its order.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from ..llm.credentials import Masker, masker
from ..llm.endpoint import Endpoint, resolve
from ..llm.exchange import Exchange
from ..llm.runtime import ModelRuntime
from ..llm.transport import Answer, Transport
from ..providers.wire_request import WireRequest
from ..schema.errors import CallerError, LockstitchError

FORMAT: Final = 1
KEPT_HEADERS: Final = ("content-type", "content-encoding", "retry-after", "x-request-id", "request-id")
"""Of a response; the others say nothing that an agent reads."""
Mode: TypeAlias = Literal["auto", "record", "replay"]
_NO_KEY: Final = {"LOCKSTITCH_API_KEY": "replayed"}


class CassetteMismatchError(LockstitchError):
    """A request is not the recorded one, or there are more of them; the text says where they part."""

    code = "CASSETTE_MISMATCH"


class Exchanged(msgspec.Struct, frozen=True):
    """One recorded request and its response."""

    url: str
    """Without its query."""
    request: Any
    """The body, as JSON."""
    status: int
    headers: Mapping[str, str]
    body: str
    base64: bool = False
    """Whether ``body`` is base64, because it is no UTF-8."""
    format: int = FORMAT

    def response(self) -> bytes:
        return base64.b64decode(self.body) if self.base64 else self.body.encode()


class Cassette(ModelRuntime):
    """A model runtime that records or replays; pass it as the model of an ``Agent``.

    ``mode``: ``auto`` records if there is no file. Raises CallerError for a file that cannot be read, and, to
    record, for an unknown model or a missing key.
    """

    def __init__(
        self,
        path: Path | str,
        model: str,
        *,
        mode: Mode = "auto",
        base_url: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        super().__init__(environ=environ)
        self.path = Path(path)
        self._player: _Player | None = None
        self.recording = mode == "record" or (mode == "auto" and not self.path.exists())
        if self.recording:
            self.endpoint = resolve(model, base_url=base_url, environ=environ)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")
            self._transport: Transport = _Recorder(self.path, masker(environ, self.endpoint.key))
        else:
            self.endpoint = _without_key(model, base_url)
            self._player = _Player(self.path)
            self._transport = cast(Transport, self._player)

    @property
    def left(self) -> int:
        """Recorded exchanges that were not played yet."""
        return 0 if self._player is None else self._player.left

    def _connect(self, endpoint: Endpoint, wire: WireRequest, body: bytes) -> Exchange:
        if self._player is not None:
            # Here and not in the transport, whose errors would be taken for the network's, and retried.
            self._player.expect(body)
        return super()._connect(endpoint, wire, body)


class _Recorder(Transport):
    """Sends for real, and writes down each exchange when its answer was read to the end, or left."""

    def __init__(self, path: Path, masker: Masker) -> None:
        super().__init__(connect_s=10.0)
        self._path = path
        self._masker = masker

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer = await super().post(url, headers, body)
        return cast(Answer, _Tee(answer, lambda read: self._write(url, body, answer, read)))

    def _write(self, url: str, body: bytes, answer: Answer, read: bytes) -> None:
        kept = {name: value for name, value in answer.headers.items() if name in KEPT_HEADERS}
        request = msgspec.json.decode(self._masker.mask(body.decode("utf-8", "replace")))
        try:
            text, is_base64 = self._masker.mask(read.decode()), False
        except UnicodeDecodeError:
            text, is_base64 = base64.b64encode(read).decode(), True
        exchanged = Exchanged(url.partition("?")[0], request, answer.status, kept, text, is_base64)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(exchanged) + b"\n")


class _Tee:
    """An answer that keeps what is read of it."""

    def __init__(self, answer: Answer, write: Any) -> None:
        self._answer = answer
        self._write = write
        self._read = bytearray()
        self.status = answer.status
        self.headers = answer.headers

    def buffered(self) -> bytes:
        data = self._answer.buffered()
        self._read += data
        return data

    def ended(self) -> bool:
        return self._answer.ended()

    async def read(self) -> bytes:
        data = await self._answer.read()
        self._read += data
        return data

    def close(self) -> None:
        self._done()
        self._answer.close()

    def linger(self) -> None:
        self._done()
        self._answer.linger()

    def _done(self) -> None:
        write, self._write = self._write, None
        if write is not None:
            write(bytes(self._read))


class _Player:
    """Stands in for the transport: answers with what was recorded, if the request is the recorded one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges = _read(path)
        self._next = 0

    @property
    def left(self) -> int:
        return len(self._exchanges) - self._next

    def expect(self, body: bytes) -> None:
        """Raises CassetteMismatchError if the next request is not to be this one."""
        number = self._next
        if number >= len(self._exchanges):
            raise CassetteMismatchError(
                f"{self._path} holds {number} exchanges, and one more is asked for; record it again"
            )
        recorded = self._exchanges[number]
        if (place := difference(recorded.request, msgspec.json.decode(body))) is not None:
            raise CassetteMismatchError(
                f"request {number + 1} is not the one in {self._path}: they part at {place}; record it again"
            )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "_Played":
        self._next += 1
        return _Played(self._exchanges[self._next - 1])

    async def close(self) -> None:
        pass


class _Played:
    """Stands in for an answer."""

    def __init__(self, recorded: Exchanged) -> None:
        self.status = recorded.status
        self.headers = dict(recorded.headers)
        self._body = recorded.response()

    def buffered(self) -> bytes:
        return b""

    def ended(self) -> bool:
        return not self._body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        pass

    def linger(self) -> None:
        pass


def difference(recorded: Any, asked: Any, place: str = "$") -> str | None:
    """Where two JSON values part, as a path; None if they are equal."""
    if type(recorded) is not type(asked):
        return place
    if isinstance(recorded, dict):
        for key in dict.fromkeys([*recorded, *asked]):
            if key not in recorded or key not in asked:
                return f"{place}.{key}"
            if (found := difference(recorded[key], asked[key], f"{place}.{key}")) is not None:
                return found
        return None
    if isinstance(recorded, list):
        for number, (left, right) in enumerate(zip(recorded, asked, strict=False)):
            if (found := difference(left, right, f"{place}[{number}]")) is not None:
                return found
        return None if len(recorded) == len(asked) else f"{place}[{min(len(recorded), len(asked))}]"
    return None if recorded == asked else place


def _read(path: Path) -> list[Exchanged]:
    try:
        lines = path.read_bytes().splitlines()
        exchanges = [msgspec.json.decode(line, type=Exchanged) for line in lines]
    except (OSError, msgspec.DecodeError) as error:
        raise CallerError(
            f"the cassette {path} cannot be read: {error}; remove it and record again"
        ) from error
    if any(exchange.format > FORMAT for exchange in exchanges):
        raise CallerError(f"the cassette {path} is of a newer Lockstitch; record it again")
    return exchanges


def _without_key(model: str, base_url: str | None) -> Endpoint:
    """The endpoint for a replay, which needs no key."""
    from ..providers.catalog import profiles

    provider, colon, name = model.partition(":")
    profile = profiles().get(provider if colon else "generic")
    if profile is None:
        return resolve(model, base_url=base_url, environ=_NO_KEY)  # says what is wrong with it
    return Endpoint(
        profile, name if colon else model, base_url or profile.base_url or "http://replayed.invalid"
    )

"""The model runtime: one request, one stream of chunks, one terminal finish whatever happens.

Every failure of provider or network becomes the Finish of the stream; exceptions of the consumer,
cancellation of its task and misuse pass through. Nothing is retried here: that is the driver's, because
retries live in the log.
"""

import secrets
import string
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from math import inf
from typing import Final, Self
from urllib.parse import urlsplit
from weakref import WeakSet

import msgspec

from ..history.decode import Decoded, Decoder
from ..providers.classify import classify, request_id
from ..providers.translator import Mint
from ..providers.wire_request import WireRequest
from ..schema.chunks import Chunk, Finish, UsageChunk
from ..schema.failures import Failure, failure
from ..schema.profiles import Profile
from ..schema.usage import Usage
from . import request_guard
from .billing import with_estimate
from .credentials import Masker, masker
from .endpoint import Endpoint
from .exchange import Call, Exchange, ExchangeFailed
from .transport import Answer, Transport, inflated
from .watchdog import Watchdog

REFUSED_BODY_S: Final = 2.0
"""So long may the body stay silent behind an error of the provider in it: the ending is decided, and only
usage may follow."""


SETTLED_BODY_S: Final = 60.0
"""The same behind a finish reason. Longer, because some gateways label every frame with one: behind such a
frame silence may be the model's."""


class ModelRuntime:
    """Model calls over one HTTP client session. Use within one event loop; ``close()`` at the end."""

    def __init__(
        self,
        *,
        connect_s: float = 10.0,
        idle_s: float = 300.0,
        first_frame_s: float = 660.0,
        total_s: float | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Bounds of every call.

        ``connect_s``: name look-up, TCP and TLS. ``idle_s``: silence between frames that say something, and
        before the first one. ``first_frame_s``: all waiting before that, where comments and empty frames
        keep a stream alive. ``total_s``: the whole call. Keys that ``environ`` holds under known names are
        masked in failures, as is the endpoint's own.
        """
        self._transport = Transport(connect_s=connect_s)
        self._idle_s = idle_s
        self._first_frame_s = first_frame_s
        self._total_s = total_s
        self._environ: Mapping[str, str] = environ or {}
        # the client does not wake reads of connections that it closes as a whole
        self._exchanges: WeakSet[Exchange] = WeakSet()

    def stream(
        self,
        endpoint: Endpoint,
        wire: WireRequest,
        *,
        input_estimate: int = 0,
        context_ratio: float | None = None,
    ) -> "ModelStream":
        """The stream of one model call; the request leaves when the first chunk is asked for.

        ``input_estimate`` (tokens) is billed if the stream is cut before usage is reported; ``context_ratio``
        judges a 400 without a body.
        """
        return ModelStream(
            wire,
            endpoint.profile,
            lambda body: self._connect(endpoint, wire, body),
            masker=masker(self._environ, endpoint.key),
            input_estimate=input_estimate,
            context_ratio=context_ratio,
        )

    def _connect(self, endpoint: Endpoint, wire: WireRequest, body: bytes) -> Exchange:
        url = endpoint.url(wire.path)
        if isinstance(self._transport, Transport):  # not where the transport is played
            request_guard.check(url)
        headers = {**wire.headers, **endpoint.auth_headers()}
        where = f"{endpoint.profile.name} ({urlsplit(url).hostname})"
        watchdog = Watchdog(self._idle_s, self._first_frame_s)
        exchange = Exchange(self._transport, Call(url, headers, body, where), watchdog, self._total_s)
        self._exchanges.add(exchange)
        return exchange

    async def close(self) -> None:
        """Close every connection. A stream still open ends in ``aborted``."""
        for exchange in list(self._exchanges):
            exchange.stop(failure("ABORTED", "the model runtime was closed; open it again for another call"))
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class ModelStream:
    """Chunks of one model call: ``async with runtime.stream(...) as chunks: async for chunk in chunks``.

    The last chunk is a Finish, and everything before it obeys the grammar of ``schema.chunks``. Leaving the
    block early, or cancelling the task, closes the connection. For one consumer at a time.
    """

    def __init__(
        self,
        wire: WireRequest,
        profile: Profile,
        connect: Callable[[bytes], Exchange],
        *,
        masker: Masker,
        input_estimate: int,
        context_ratio: float | None,
    ) -> None:
        self._wire = wire
        self._profile = profile
        self._connect = connect
        self._masker = masker
        self._input_estimate = input_estimate
        self._context_ratio = context_ratio
        self._ready: deque[Chunk] = deque()
        self._said = 0
        """Chunks decoded so far."""
        self._exchange: Exchange | None = None
        self._answer: Answer | None = None
        self._decoder: Decoder | None = None
        self._cancelled = False
        self._result: Decoded | None = None

    @property
    def result(self) -> Decoded:
        """The whole answer, once the Finish was given out or the stream was left. Raises RuntimeError
        before."""
        if self._result is None:
            raise RuntimeError("the stream has not ended: read it to its Finish, or leave its block, first")
        return self._result

    def cancel(self) -> None:
        """End the stream: what was decoded is still given out, then a Finish ``aborted``, without waiting.

        From the stream's own event loop. Nothing happens if the stream has ended.
        """
        self._cancelled = True
        if self._result is None and self._exchange is not None:
            self._exchange.stop(self._abortion("cancelled"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._result is None:
            self._fail(self._abortion("left before its end"))
            self._ready.clear()
        if self._exchange is not None:
            self._exchange.close()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        # A generator takes half the time of calling ``__anext__`` for each chunk. What it has not given out
        # stays in ``_ready``, so that it may be left and made anew at any chunk.
        ready = self._ready
        while True:
            while ready:
                yield ready.popleft()
            if self._result is not None:
                return
            await self._advance()

    async def __anext__(self) -> Chunk:
        ready = self._ready
        while not ready:
            if self._result is not None:
                raise StopAsyncIteration
            await self._advance()
        return ready.popleft()

    def ready(self) -> list[Chunk]:
        """Take the chunks that need no waiting; ``async for`` goes on behind them."""
        taken = list(self._ready)
        self._ready.clear()
        return taken

    async def _advance(self) -> None:
        """Bring the stream one step further: open it, or read and decode once. Never raises a network's
        failure."""
        try:
            if self._exchange is None:
                await self._open()
                return
            data = await self._exchange.read(limit_s=self._patience_s())
        except ExchangeFailed as failed:
            self._fail(failed.failure)
            return
        decoder = self._decoder
        assert decoder is not None, "a stream that is open has a decoder"
        chunks = decoder.feed(data) if data else decoder.end()
        self._take(chunks)
        # Not frames: a gateway that sends empty ones for ever would never be silent.
        self._said += len(chunks)
        self._exchange.received(self._said)
        if decoder.finished:
            self._conclude(decoder)

    def _patience_s(self) -> float:
        """How long the next read may wait at most, whatever the idle limit says."""
        decoder = self._decoder
        if decoder is None or not decoder.settled:
            return inf
        return REFUSED_BODY_S if decoder.refused else SETTLED_BODY_S

    async def _open(self) -> None:
        """Send the request; afterwards there is a decoder, or the stream has ended."""
        if self._cancelled:
            raise ExchangeFailed(self._abortion("cancelled"))
        try:
            body = self._wire.encoded()
        except UnicodeEncodeError as error:  # not the network's fault, and the same at every retry
            text = f"the request holds text that is no Unicode ({error.reason}); repair the request"
            raise ExchangeFailed(failure("INVALID_STRUCTURE", text, subkind="local")) from error
        self._exchange = self._connect(body)
        answer = self._answer = await self._exchange.open()
        if not 200 <= answer.status < 300:
            refusal = await self._exchange.read_refusal()
            raise ExchangeFailed(self._classified(answer, inflated(refusal)))
        self._decoder = self._new_decoder(answer)

    def _new_decoder(self, answer: Answer | None) -> Decoder:
        return Decoder(
            self._wire.dialect,
            profile=self._profile,
            tools=self._wire.tools,
            headers=answer.headers if answer is not None else None,
            mint=_mint(self._profile),
        )

    def _classified(self, answer: Answer, body: bytes) -> Failure:
        return classify(
            answer.status,
            answer.headers,
            body,
            dialect=self._wire.dialect,
            profile=self._profile,
            context_ratio=self._context_ratio,
            now_s=time.time(),
        ).failure

    def _abortion(self, how: str) -> Failure:
        return failure("ABORTED", f"{self._profile.name}: the request was {how}")

    def _fail(self, reason: Failure) -> None:
        """End the stream with a failure of this side; what the decoder holds comes first."""
        decoder = self._decoder or self._new_decoder(None)
        self._take(decoder.fail(reason, aborted=reason.code == "ABORTED"))
        self._conclude(decoder)

    def _take(self, chunks: list[Chunk]) -> None:
        self._ready.extend(chunks)

    def _conclude(self, decoder: Decoder) -> None:
        """The decoder has given its Finish: complete usage, mask keys, let the connection go."""
        ended = self._ready.pop()
        assert isinstance(ended, Finish), "the grammar puts the Finish last"
        ended = self._told(ended)
        decoded = msgspec.structs.replace(decoder.result, finish=ended)
        usage = self._billed(decoded, decoder)
        if usage is not None and usage != decoded.usage:
            if decoded.usage is not None:
                self._ready.remove(UsageChunk(decoded.usage))  # it comes right before the Finish, if at all
            self._ready.append(UsageChunk(usage))
        self._ready.append(ended)
        notes = tuple(self._masker.mask_struct(note) for note in decoded.notes)
        self._result = msgspec.structs.replace(decoded, usage=usage, notes=notes)
        if self._exchange is not None:
            self._exchange.close(complete=ended.failure is None)

    def _told(self, ended: Finish) -> Finish:
        """The Finish with what the answer's head adds to its failure, and without keys."""
        reason = ended.failure
        if reason is None:
            return ended
        if self._answer is not None and reason.request_id is None:
            reason = msgspec.structs.replace(reason, request_id=request_id(self._answer.headers))
        return msgspec.structs.replace(ended, failure=self._masker.mask_struct(reason))

    def _billed(self, decoded: Decoded, decoder: Decoder) -> Usage | None:
        return with_estimate(
            decoded,
            accepted=self._answer is not None and 200 <= self._answer.status < 300,
            began=decoder.data_frames > 0,
            input_estimate=self._input_estimate,
            argument_chars=0 if decoded.finish.failure is None else decoder.argument_chars,
        )


def _mint(profile: Profile) -> Mint:
    """Fresh call ids in the alphabet and length that every provider's profile allows."""
    if profile.id_exact is not None:
        size = profile.id_exact
        return lambda: "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(size))
    return lambda: f"call_{secrets.token_hex(12)}"

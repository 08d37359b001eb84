"""One HTTP exchange with its waits: whatever ends it from here or from there is an ``ExchangeFailed``.

Waiting happens in two places, for the head and for bytes. Both can be interrupted at once by ``stop``,
which is how ``cancel()`` and every timeout work: the request's task is cancelled, or the connection closed
under the read.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from ..schema.failures import Failure, failure
from .transport import ERROR_BODY_BYTES, Answer, Transport
from .watchdog import Watchdog

ERROR_BODY_S: Final = 10.0
"""So long may the body of a refusal take; its status is known already."""
CLOCK_SLACK_S: Final = 0.001
"""Timers may ring early by the clock's resolution."""


class ExchangeFailed(Exception):  # noqa: N818 - an outcome, told to nobody outside
    """The exchange came to no good end; carries the failure to report. Never leaves this package."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent, and where to."""

    url: str
    headers: Mapping[str, str]
    """With the key."""
    body: bytes
    where: str
    """The host, for messages."""

    def __repr__(self) -> str:
        return f"Call({self.where}, {len(self.body)} bytes)"


class Exchange:
    """One request and the bytes of its answer."""

    def __init__(self, transport: Transport, call: Call, watchdog: Watchdog, total_s: float | None) -> None:
        self._transport = transport
        self._call = call
        self._watchdog = watchdog
        self._total_s = total_s
        self._deadline = inf
        self._alarm = Alarm(self._ring)
        self._request: asyncio.Task[Answer] | None = None
        self._answer: Answer | None = None
        self._stopped: Failure | None = None
        self._lingers = False

    async def open(self) -> Answer:
        """Send the request and wait for the head of its answer."""
        self._check_running()
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        if self._total_s is not None:
            self._deadline = started_s + self._total_s
        call = self._call
        self._request = loop.create_task(self._transport.post(call.url, call.headers, call.body))
        self._alarm.set(min(started_s + self._watchdog.allowance_s(), self._deadline))
        try:
            await asyncio.wait({self._request})
        except asyncio.CancelledError:
            await self._abandon(self._request)
            raise
        finally:
            self._alarm.clear()
            self._watchdog.waited(loop.time() - started_s)
        self._answer = self._outcome(self._request)
        return self._answer

    async def read(self, *, limit_s: float = inf) -> bytes:
        """At least one byte of the body, or none at its end."""
        self._check_running()
        answer = self._answer
        assert answer is not None, "open() comes first"
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        if started_s >= self._deadline:  # a server that is never waited for rings no timer
            self._ring()
            self._check_running()
        data = answer.buffered()
        if data or answer.ended():
            return data
        self._alarm.set(min(started_s + min(self._watchdog.allowance_s(), limit_s), self._deadline))
        try:
            return await answer.read()
        except asyncio.CancelledError:
            self.stop(failure("ABORTED", f"{self._call.where}: the task was cancelled"))
            raise
        except Exception as error:
            data = answer.buffered()  # came together with the error, which the next read raises again
            if data and self._stopped is None:
                return data
            raise ExchangeFailed(self._stopped or self._translated(error)) from error
        finally:
            self._alarm.clear()
            self._watchdog.waited(loop.time() - started_s)

    async def read_refusal(self) -> bytes:
        """The body of an error answer, as much of it as came; cut at ERROR_BODY_BYTES."""
        body = bytearray()
        try:
            while len(body) < ERROR_BODY_BYTES and (data := await self.read(limit_s=ERROR_BODY_S)):
                body += data
        except ExchangeFailed as failed:
            if failed.failure.code == "ABORTED":
                raise
        return bytes(body[:ERROR_BODY_BYTES])

    def received(self, chunks: int) -> None:
        """What was read has been decoded; ``chunks`` is the number of chunks so far."""
        self._watchdog.received(chunks)

    def stop(self, reason: Failure) -> None:
        """End the exchange now; a wait in progress, or else the next one, fails with ``reason``."""
        if self._stopped is None:
            self._stopped = reason
        if self._request is not None and not self._request.done():
            self._request.cancel()
        if self._answer is not None:
            self._answer.close()

    def close(self, *, complete: bool = False) -> None:
        """Give up the connection; after a ``complete`` answer keep it for the next request if its end comes
        soon."""
        self._alarm.close()
        if self._answer is None or self._lingers:
            return
        if complete:
            self._lingers = True
            self._answer.linger()
        else:
            self._answer.close()

    def _check_running(self) -> None:
        if self._stopped is not None:
            raise ExchangeFailed(self._stopped)

    def _outcome(self, request: "asyncio.Task[Answer]") -> Answer:
        if request.cancelled():
            raise ExchangeFailed(
                self._stopped or failure("ABORTED", f"{self._call.where}: the request was cancelled")
            )
        error = request.exception()
        if error is not None:
            raise ExchangeFailed(self._stopped or self._translated(error)) from error
        if self._stopped is not None:
            request.result().close()
            raise ExchangeFailed(self._stopped)
        return request.result()

    async def _abandon(self, request: "asyncio.Task[Answer]") -> None:
        """Cancel a request and see that its connection is closed, even if its answer comes this very
        moment."""
        self._stopped = failure("ABORTED", f"{self._call.where}: the task was cancelled")
        request.add_done_callback(_close_answer)
        request.cancel()
        await asyncio.wait({request})

    def _translated(self, error: BaseException) -> Failure:
        from .network_errors import translate  # with the HTTP client, which is loaded by now

        return translate(error, self._call.where)

    def _ring(self) -> None:
        where = self._call.where
        if asyncio.get_running_loop().time() >= self._deadline - CLOCK_SLACK_S:
            text = f"{where}: not done within {self._total_s:g} s; send the request again or allow more time"
            self.stop(failure("TIMEOUT", text, subkind="deadline"))
        elif self._watchdog.begun:
            text = (
                f"{where}: no data for {self._watchdog.idle_s:g} s in the middle of an answer; send it again"
            )
            self.stop(failure("TIMEOUT", text, subkind="idle"))
        else:
            text = f"{where}: no answer began in time; send the request again"
            self.stop(failure("TIMEOUT", text, subkind="first_frame"))


class Alarm:
    """One timer for many waits: a later time than the one set costs nothing until the timer rings."""

    __slots__ = ("_handle", "_ring_at", "_when")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring_at = ring
        self._when = inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, when: float) -> None:
        """Ring at ``when``, in the loop's time."""
        self._when = when
        if self._handle is not None:
            if self._handle.when() <= when:
                return
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_at(when, self._check) if when != inf else None

    def clear(self) -> None:
        """Do not ring until set again."""
        self._when = inf

    def close(self) -> None:
        self.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check(self) -> None:
        self._handle = None
        if self._when == inf:
            return
        if asyncio.get_running_loop().time() >= self._when - CLOCK_SLACK_S:
            self._when = inf
            self._ring_at()
        else:
            self.set(self._when)


def _close_answer(request: "asyncio.Task[Answer]") -> None:
    if not request.cancelled() and request.exception() is None:
        request.result().close()

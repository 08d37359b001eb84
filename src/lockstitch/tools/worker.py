"""Sync code off the event loop, one daemon thread a call.

Not the loop's default executor: its few threads would be used up by hung tools, and the interpreter waits for
them at exit. A hung daemon thread holds up neither other tools nor the end of the process.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(
    function: Callable[[], T],
    *,
    stopping: threading.Event | None = None,
    late: Callable[[T], None] | None = None,
    name: str = "",
) -> T:
    """The function's value, computed in a new thread; its exceptions are raised here.

    On cancellation ``stopping`` is set and the thread is waited for, since what it does cannot be undone half
    way; ``late`` is given what the function came to. A second cancellation leaves it behind.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    scope = contextvars.copy_context()

    def settle(outcome: tuple[Any, BaseException | None]) -> None:
        if not done.done():
            done.set_result(outcome)

    def body() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = (scope.run(function), None)
        except BaseException as error:  # raised again where the value is awaited
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            return  # the loop is closed: the call was abandoned and nobody is left to tell

    threading.Thread(target=body, name=f"lockstitch-{name or 'worker'}", daemon=True).start()
    try:
        await asyncio.wait({done})
    except asyncio.CancelledError:
        if stopping is not None:
            stopping.set()
        await asyncio.wait({done})
        value, error = done.result()
        if late is not None and error is None:
            late(value)
        raise
    value, error = done.result()
    if isinstance(error, KeyboardInterrupt):
        # raised by the function itself, since real ones reach the main thread only; it must not end the loop
        raise RuntimeError("KeyboardInterrupt in a worker thread") from error
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]  # what `function` returned

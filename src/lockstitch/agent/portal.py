"""The portal: one thread with one event loop, behind which the sync twins of the async API run.

One loop for the whole process, because connections and locks belong to a loop; never a nested one.
"""

import asyncio
import atexit
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

STOP_S: Final = 10.0
"""How long the program's end waits for turns that are being closed."""
_WOULD_BLOCK: Final = (
    "a sync call would block the event loop that runs here (in a notebook there always is one); write "
)


class _End:
    """Stands for the end of an iteration: StopAsyncIteration may not cross a future."""


_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def call(work: Coroutine[Any, Any, T], *, twin: str) -> T:
    """Run ``work`` on the portal and wait for it. Ctrl-C cancels it, waits until it has ended, and passes on.

    Raises RuntimeError inside of a running event loop, where waiting would block it; ``twin`` is what to
    write there instead.
    """
    if _in_a_loop():
        work.close()
        raise RuntimeError(_WOULD_BLOCK + twin)
    return _waited(work)


def _waited(work: Coroutine[Any, Any, T]) -> T:
    future = asyncio.run_coroutine_threadsafe(work, _running_loop())
    try:
        return future.result()
    except BaseException:
        if not future.done():
            future.cancel()
            _wait_for_the_end(future)
        raise


def iterate(source: AsyncIterator[T], *, twin: str) -> Iterator[T]:
    """The items of ``source``, fetched on the portal. Leaving early closes the source. Raises as ``call``."""
    if _in_a_loop():
        raise RuntimeError(_WOULD_BLOCK + twin)
    return _iterated(source)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _iterated(source: AsyncIterator[T]) -> Iterator[T]:
    try:
        while True:
            item = _waited(_next(source))
            if isinstance(item, _End):
                return
            yield item
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            _waited(close())


async def _next(source: AsyncIterator[T]) -> "T | _End":
    return await anext(source, _End())


def _wait_for_the_end(future: Any) -> None:
    # The coroutine goes on for a moment after its future is cancelled: it answers calls and closes its log.
    drained = asyncio.run_coroutine_threadsafe(_other_tasks(), _running_loop())
    drained.result(timeout=STOP_S)


async def _other_tasks() -> None:
    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own and task.cancelling()]
    if others:
        await asyncio.wait(others, timeout=STOP_S)


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603  # one loop for the process is the point
    with _lock:
        if _loop is None or _loop.is_closed():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="lockstitch portal", daemon=True)
            thread.start()
            atexit.register(_stop, loop, thread)
            _loop = loop
        return _loop


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if loop.is_closed():
        return
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=STOP_S)
    if not thread.is_alive():
        loop.close()

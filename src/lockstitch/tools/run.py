"""One tool call run: whatever happens, there is an answer to it. Only cancellation passes through.

The contract about stopping: a run that is cancelled or out of time is told to stop (its task is cancelled,
``context.stopping`` is set) and has ``GRACE_S`` to end. A run that does not end by then (a coroutine that
swallows the cancellation, a thread that is blocked) is left behind: its call is answered, what it does
later is ignored, and the answer says that it may still be running. A coroutine is then closed where it
waits; a thread cannot be ended. What a run came to when it was told to stop is part of the answer, if it says
so in time: a sync tool by returning it, an async one by ``context.so_far``. A coroutine that blocks the event
loop itself is beyond help: blocking work belongs in a sync tool.
"""

import asyncio
import contextlib
import dataclasses
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from lockstitch.schema.blocks import Image, Text, ToolCall
from lockstitch.schema.events import ToolOutcome
from lockstitch.wire import strict_json

from .contract import InvalidArgumentsError, Tool, ToolContext, ToolError, ToolOutput
from .output import bounded, plain_meta
from .registry import Registry
from .text import clean
from .worker import in_thread

GRACE_S: Final = 1.5
"""From being told to stop to being left behind; with the work around it below the promised 2 s."""
BLOB_WAIT_S: Final = 10.0
"""For the sink that keeps the whole of a result that was cut."""
PROGRESS_MAX_CHARS: Final = 4_000
"""Of one progress text; the end of it is kept."""
_ERROR_MAX_CHARS: Final = 4_000
_NAMES_SHOWN: Final = 40
_EFFECTS: Final = "What it did until then may have had effects: look before you repeat it."

_left_behind: set["asyncio.Task[Any]"] = set()
"""Keeps runs that did not stop from being collected, and warned about, while they are pending."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The answer to one call; its fields are those of events.ToolFinished."""

    outcome: ToolOutcome
    content: tuple[Text | Image, ...]
    is_error: bool
    duration_ms: int
    meta: Mapping[str, Any] | None = None


class _CancelledError(Exception):
    """A run was cancelled, and had said what it came to."""

    def __init__(self, output: ToolOutput, limit: int) -> None:
        super().__init__()
        self.output = output
        self.limit = limit


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


async def run_call(
    registry: Registry,
    call: ToolCall,
    context: ToolContext,
    *,
    when_cancelled: Callable[[Ran], None] | None = None,
) -> Ran:
    """Runs the call and returns its answer, within the tool's time limit and GRACE_S.

    Outcomes: ``done``, ``failed`` (the tool said so or raised), ``invalid`` (arguments), ``unknown_tool``,
    ``timeout``. Raises nothing but CancelledError, and that within GRACE_S; the caller then answers the call.
    ``when_cancelled`` is given an answer before (outcome ``cancelled``) if there is output to show.
    """
    started = time.monotonic()
    try:
        outcome, output, limit = await _answer(registry, call, context)
        content, meta = await _presented(output, limit, context)
    except _CancelledError as cancelled:
        if when_cancelled is not None:
            with contextlib.suppress(Exception):  # content that is none must not hide the cancellation
                content, extra = bounded(cancelled.output, cancelled.limit, keep=_nowhere)
                meta = plain_meta(cancelled.output.meta, extra)
                when_cancelled(Ran("cancelled", content, True, _ms_since(started), meta))
        raise asyncio.CancelledError from None
    except Exception as error:  # a defect of ours must not leave a call without an answer either
        outcome, content = "failed", (Text(f"The tool could not be run: {_told(error)}"),)
        output, meta = ToolOutput((), is_error=True), None
    is_error = output.is_error or outcome != "done"
    return Ran(outcome, content, is_error, _ms_since(started), meta)


async def _answer(
    registry: Registry, call: ToolCall, context: ToolContext
) -> tuple[ToolOutcome, ToolOutput, int]:
    tool = registry.get(call.name)
    if tool is None:
        return "unknown_tool", _error(_unknown_tool(registry, call.name)), _ERROR_MAX_CHARS
    if call.invalid is not None:
        return "invalid", _error(_unusable(call.invalid)), _ERROR_MAX_CHARS
    try:
        arguments = strict_json.arguments(call.arguments)
    except strict_json.InvalidJson as error:
        text = f"The arguments of {tool.name} are not a JSON object ({error}), so it was not run. Try again."
        return "invalid", _error(text), _ERROR_MAX_CHARS
    so_far: list[ToolOutput] = []

    def keep(output: ToolOutput) -> None:
        sound = isinstance(output, ToolOutput) and isinstance(output.content, tuple)
        so_far[:] = [output] if sound else []

    outcome, output = await _run(tool, arguments, _guarded(context, keep), so_far)
    return outcome, output, tool.result_max_chars


async def _run(
    tool: Tool, arguments: Mapping[str, Any], context: ToolContext, so_far: Sequence[ToolOutput]
) -> tuple[ToolOutcome, ToolOutput]:
    task = asyncio.create_task(_caught(tool, arguments, context), name=f"tool {tool.name}")
    try:
        done, _ = await asyncio.wait({task}, timeout=tool.timeout_s)
    except asyncio.CancelledError:
        await _stop(task, context)
        if not so_far:
            raise
        output = _ended(so_far, f"{tool.name} was cancelled while it ran. {_EFFECTS}")
        raise _CancelledError(output, tool.result_max_chars) from None
    if not done:
        stopped = await _stop(task, context)
        state = "it was stopped" if stopped else "it did not stop when told to and may still be running"
        text = f"{tool.name} took longer than {tool.timeout_s:g} s; {state}. {_EFFECTS}"
        return "timeout", _ended(so_far, text)
    if task.cancelled():
        return "failed", _error(f"{tool.name} cancelled itself and gave no result.")
    result = task.result()
    match result:
        case _Raised(InvalidArgumentsError() as error):
            return "invalid", _error(str(error))
        case _Raised(error):
            return "failed", _raised(tool.name, error)
        case ToolOutput() as output:
            return ("failed" if output.is_error else "done"), output
        case _:
            assert_never(result)


async def _caught(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | _Raised:
    """What the tool raised, as a value; even SystemExit, which asyncio would let through to the program."""
    try:
        output: object = await tool.invoke(arguments, context)
        if not isinstance(output, ToolOutput):
            return _Raised(TypeError(f"invoke gave no ToolOutput but {type(output).__name__}"))
        return output
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # becomes the answer
        return _Raised(error)


async def _stop(task: "asyncio.Task[Any]", context: ToolContext) -> bool:
    """Whether the run ended within the grace. A second cancellation of the caller ends the wait at once."""
    context.stopping.set()
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_S)
    finally:
        stopped = task.done()
        if not stopped:
            _cut_off(task)
    return stopped


def _cut_off(task: "asyncio.Task[Any]") -> None:
    """Ends the coroutine where it waits, whether it wants or not, so that the loop can be closed one day."""
    _left_behind.add(task)
    task.add_done_callback(_let_go)
    coroutine = task.get_coro()
    if isinstance(coroutine, Coroutine):
        with contextlib.suppress(RuntimeError):  # it ignores even that; nothing else can be done to it
            coroutine.close()
    task.cancel()


def _let_go(task: "asyncio.Task[Any]") -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that the loop does not report what nobody waits for


async def _presented(
    output: ToolOutput, limit: int, context: ToolContext
) -> tuple[tuple[Text | Image, ...], Mapping[str, Any] | None]:
    whole: list[str] = []

    def remember(text: str) -> None:
        whole.append(text)

    content, extra = bounded(output, limit, keep=remember)
    if whole and context.blob_sink is not None:
        place = await _kept(whole[0], context.blob_sink)
        content, extra = bounded(output, limit, keep=lambda _text: place)
    return content, plain_meta(output.meta, extra)


async def _kept(text: str, sink: Callable[[bytes], str]) -> str | None:
    """Where the sink put it; None if it would not, since the answer matters more than the copy."""
    try:
        async with asyncio.timeout(BLOB_WAIT_S):
            return str(await in_thread(lambda: sink(text.encode()), name="blob"))
    except Exception:  # any failure of foreign code here means the same: there is no copy
        return None


def _guarded(context: ToolContext, so_far: Callable[[ToolOutput], None]) -> ToolContext:
    """A context of this run alone; its progress may be called from any thread, and neither raises nor tells
    anything once the run has been told to stop."""
    loop = asyncio.get_running_loop()
    show = context.progress
    broken = False

    stopping = threading.Event()

    def deliver(text: str) -> None:
        nonlocal broken
        if broken or stopping.is_set():
            return
        try:
            show(text)
        except Exception:  # an observer's failure must not become the tool's
            broken = True

    def progress(text: str) -> None:
        safe = clean(str(text)[-PROGRESS_MAX_CHARS:])
        try:
            loop.call_soon_threadsafe(deliver, safe)
        except RuntimeError:
            return  # the loop is closed: a run left behind has nobody to show this to

    return dataclasses.replace(context, progress=progress, stopping=stopping, so_far=so_far)


def _ended(so_far: Sequence[ToolOutput], text: str) -> ToolOutput:
    """The answer of a run that was stopped: what it said last, and that it was stopped."""
    if not so_far:
        return _error(text)
    return dataclasses.replace(so_far[-1], content=(*so_far[-1].content, Text(f"[{text}]")), is_error=True)


def _nowhere(_text: str) -> None:
    """No sink: nobody may be kept waiting for it now."""


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _error(text: str) -> ToolOutput:
    return ToolOutput((Text(text),), is_error=True)


def _raised(name: str, error: BaseException) -> ToolOutput:
    if isinstance(error, ToolError):
        return _error(_told(error))
    trace = "".join(traceback.format_exception(error, limit=-8))[-_ERROR_MAX_CHARS:]
    return ToolOutput((Text(f"{name} failed: {_told(error)}"),), is_error=True, meta={"traceback": trace})


def _told(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a __str__ that raises says nothing either
        text = ""
    if isinstance(error, ToolError):
        return text[:_ERROR_MAX_CHARS] or error.code
    kind = type(error).__name__
    return f"{kind}: {text}"[:_ERROR_MAX_CHARS] if text else kind


def _unknown_tool(registry: Registry, name: str) -> str:
    names = registry.names()
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    return f"There is no tool named {name[:100]!r}. " + (
        f"The tools are: {shown}." if names else "There are no tools."
    )


def _unusable(reason: str) -> str:
    if reason == "truncated":
        return (
            "The call was cut off by the output limit before its arguments were complete, so it was not run."
            " Send it again, shorter or in several calls."
        )
    return f"The call's arguments could not be used ({reason}), so it was not run. Send the call again."

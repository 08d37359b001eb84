"""What a driver acts on: the log and what is folded from it, requests, models, tools, and whom it may ask.

Protocols instead of classes where tests and embedding programs bring their own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from ..history.context import Context
from ..history.decode import Decoded
from ..llm.endpoint import Endpoint
from ..providers.wire_request import WireRequest
from ..schema.blocks import ToolCall
from ..schema.chunks import Chunk
from ..schema.events import Body, Event
from ..session.blobs import Blobs
from ..tools.contract import ToolContext
from ..tools.registry import Registry
from . import events
from . import inputs as got
from .approval import Approvals
from .carried import Carried
from .hooks import Hooks
from .requests import RequestMaker
from .session_fold import SessionFold


class Log(Protocol):
    """What the driver needs of a session's log; ``session.file_store.SessionLog`` is one."""

    blobs: Blobs

    def append(self, *bodies: Body, time_ms: int | None = None) -> tuple[Event, ...]: ...

    async def flush(self) -> None: ...


class ModelStream(Protocol):
    """One model call; it ends in exactly one ``Finish`` and raises nothing of the provider's."""

    async def __aenter__(self) -> "ModelStream": ...

    async def __aexit__(self, *error: object) -> None: ...

    def __aiter__(self) -> "ModelStream": ...

    async def __anext__(self) -> Chunk: ...

    def ready(self) -> Sequence[Chunk]:
        """Take the chunks that need no waiting: those of a read are cheaper together. There may be none."""
        ...

    def cancel(self) -> None: ...

    @property
    def result(self) -> Decoded: ...


@runtime_checkable
class Models(Protocol):
    """Where model calls go: ``llm.runtime.ModelRuntime``, or a scripted model in tests."""

    def stream(
        self,
        endpoint: Endpoint,
        wire: WireRequest,
        *,
        input_estimate: int = 0,
        context_ratio: float | None = None,
    ) -> Any: ...


class Compactor(Protocol):
    """Makes the history shorter, by events of its own in the log."""

    async def compact(
        self,
        trigger: Literal["threshold", "overflow"],
        severity: int,
        tell: Callable[[events.UserEvent], Awaitable[None]],
    ) -> got.CompactionDone:
        """Shorten it. Cancelled, it leaves the log with its compaction closed or not begun."""
        ...


@dataclass(slots=True)
class World:
    """What the driver acts on and asks. Time and chance are injected, so a test can hold them still."""

    log: Log
    fold: SessionFold
    requests: RequestMaker
    models: Models
    registry: Registry
    clock_ms: Callable[[], int]
    jitter: Callable[[], float]
    approvals: Approvals
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    compactor: Compactor | None = None
    hooks: Hooks = field(default_factory=Hooks)
    tool_context: Callable[[ToolCall, Callable[[str], None]], ToolContext] | None = None
    output_check: Callable[[str], Awaitable[got.StopHookSaid]] | None = None
    """Judges the last text of a turn; see ``structured``."""
    watchers: set[Callable[[], None]] = field(default_factory=set)
    """Called after every append: who shows the conversation as it grows."""

    @property
    def context(self) -> Context:
        return self.fold.context

    @property
    def carried(self) -> Carried:
        return self.fold.carried

    def append(self, *bodies: Body) -> tuple[Event, ...]:
        """Into the log, and into everything that is folded from it."""
        taken = self.log.append(*bodies, time_ms=self.clock_ms())
        for event in taken:
            self.fold(event)
        for watcher in tuple(self.watchers):
            watcher()
        return taken

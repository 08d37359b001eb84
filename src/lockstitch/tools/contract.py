"""What a tool is: a typed function, what the model is told about it, and the rules of its runs.

``functions.tool`` makes a ``Tool`` of a function, sync or async. ``run.run_call`` is the only way the runtime
calls one: it turns everything that can go wrong into an answer.
"""

import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from lockstitch.schema.blocks import Image, Text
from lockstitch.schema.errors import LockstitchError
from lockstitch.schema.messages import ToolSpec

Needs: TypeAlias = Literal["nothing", "approval"]

DEFAULT_TIMEOUT_S: Final = 300.0
"""How long one run of a tool may take, unless the tool says otherwise."""
DEFAULT_RESULT_MAX_CHARS: Final = 50_000
"""Text of one result that the model sees; more is shown as head and tail."""


class ToolError(LockstitchError):
    """For tools to raise: the call failed, and the text tells the model what to do about it."""

    code = "TOOL"


class InvalidArgumentsError(ToolError):
    """The arguments do not fit the tool; the text lists every problem with its place."""

    code = "INVALID_ARGUMENTS"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What one run of a tool came to."""

    content: tuple[Text | Image, ...]
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
    """For display only (a diff, an exit status); never sent to a model."""


def _ignore(_given: object) -> None:
    return None


@dataclass(slots=True)
class ToolContext:
    """The surroundings of one call. A tool that declares a parameter of this type is given it."""

    cwd: Path
    """The workspace. Built-in tools stay inside it."""
    read_roots: tuple[Path, ...] = ()
    """Directories beside it that built-in tools may read (where ``blob_sink`` puts things, for one)."""
    session_id: str = ""
    call_id: str = ""
    progress: Callable[[str], None] = _ignore
    """Text for a person who watches; never part of the result. Safe from any thread, never raises."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The agent's environment; tool processes get a part of it (``builtin_shell.tool_environment``)."""
    environ_allow: tuple[str, ...] = ()
    """Variables that tool processes get although their names look like secrets."""
    blob_sink: Callable[[bytes], str] | None = None
    """Keeps the whole of a result that was cut; returns where it lies. Runs in a worker thread; may raise."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the call timed out or was cancelled. A sync tool that works in a loop should look at it, and
    return what it has: that becomes part of the answer."""
    so_far: Callable[[ToolOutput], None] = _ignore
    """For an async tool that is cancelled: what it came to by then, said before it ends. Never raises."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the runtime sees it: made by ``functions.tool``, or directly if it comes from elsewhere."""

    spec: ToolSpec
    invoke: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]
    """Parsed arguments in, output out. May raise; InvalidArgumentsError if they do not fit the schema."""
    parallel: bool = False
    """Whether runs may overlap with those of other tools that say the same."""
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    """None: no limit of its own."""
    needs: Needs = "nothing"
    result_max_chars: int = DEFAULT_RESULT_MAX_CHARS
    function: Callable[..., Any] | None = None
    """The function it was made of, so that it can still be called as one."""

    @property
    def name(self) -> str:
        return self.spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, without schema, limits or context."""
        if self.function is None:
            raise TypeError(f"tool {self.name!r} is not made of a function; call it through run_call")
        return self.function(*args, **kwargs)

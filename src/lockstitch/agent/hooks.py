"""Hooks: where a program that embeds an agent may look in, and change its mind.

Each may be a plain function or a coroutine function. One that raises closes the turn as failed, every call
answered, and the exception then reaches whoever runs the turn.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, ParamSpec, TypeAlias, TypeVar

from ..schema.blocks import ToolCall
from ..schema.failures import Failure
from ..schema.messages import Request
from ..tools.run import Ran

P = ParamSpec("P")
T = TypeVar("T")
Hook: TypeAlias = Callable[P, T | Awaitable[T]]
"""A function or a coroutine function."""
Verdict: TypeAlias = Literal["default", "retry", "compact", "give_up"]


@dataclass(frozen=True, slots=True)
class Hooks:
    """All optional; None: nothing happens there."""

    before_request: "Hook[[Request], Request | None] | None" = None
    """Sees the projected request; may return another, which is validated like any."""
    on_request_error: "Hook[[Failure], Verdict] | None" = None
    """Asked after every failed attempt; ``default`` leaves it to the policy."""
    before_tool: "Hook[[ToolCall], str | None] | None" = None
    """Returns why a call must not run, or None."""
    after_tool: "Hook[[ToolCall, Ran], Ran | None] | None" = None
    """May return another answer than the tool's."""
    turn_stopping: "Hook[[str], str | None] | None" = None
    """Sees the last text; what it returns is said to the model, which then goes on."""


async def ask(hook: Hook[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What the hook says, sync or async."""
    said = hook(*arguments, **named)
    if inspect.isawaitable(said):
        return await said
    return said

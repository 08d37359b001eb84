"""Who may say that a tool runs: tools that need no approval, a standing decision, a person, or nobody."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..schema.blocks import ToolCall
from .events import ApprovalNeeded
from .inputs import CallDecided


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer."""

    allowed: bool
    reason: str = ""
    """Told to the model if it was denied."""
    remember: Literal["no", "session"] = "no"
    """``session``: do not ask about this tool again in this session, resumed or not."""


Answer: TypeAlias = bool | str | Decision
"""True allows; False denies; a text denies and says why."""
Approver: TypeAlias = Callable[[ApprovalNeeded], Answer | Awaitable[Answer]]


async def put_to(approver: Approver, position: int, call: ToolCall) -> CallDecided:
    """The answer of whoever ``approver`` asks."""
    answer = approver(ApprovalNeeded(call_id=call.id, name=call.name, arguments=call.arguments))
    if inspect.isawaitable(answer):
        answer = await answer
    match answer:
        case Decision():
            decision = answer
        case str():
            decision = Decision(allowed=False, reason=answer)
        case _:
            decision = Decision(allowed=bool(answer))
    return CallDecided(
        position=position,
        decision="allowed" if decision.allowed else "denied",
        by="user",
        reason=decision.reason,
        remember=decision.remember,
        pattern=call.name if decision.remember == "session" else "",
    )

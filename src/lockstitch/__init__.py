"""An agent runtime whose sessions cannot be bricked.

Everything public is here and is loaded when it is first used: ``import lockstitch`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from .agent.api import Agent, Result, Session, Turn
    from .agent.approval import Decision
    from .agent.hooks import Hooks
    from .agent.result import TurnFailedError
    from .agent.state import Budget, Price, Stuck
    from .history.decode import Decoder, decode
    from .history.repair import Repair, lint, repair
    from .providers.classify import classify
    from .schema.errors import (
        ApprovalRequiredError,
        BudgetError,
        CallerError,
        GateError,
        LockstitchError,
        ProviderError,
        SessionBusyError,
        SessionCorruptionError,
        SessionReadOnlyError,
        StorageError,
    )
    from .tools.contract import Tool, ToolContext, ToolError
    from .tools.functions import tool

__all__ = [  # noqa: RUF022  # by subject: the runtime, tools, functions for other agents, errors
    "Agent",
    "Session",
    "Turn",
    "Result",
    "Budget",
    "Price",
    "Stuck",
    "Hooks",
    "Decision",
    "tool",
    "Tool",
    "ToolContext",
    "ToolError",
    "decode",
    "Decoder",
    "classify",
    "lint",
    "repair",
    "Repair",
    "LockstitchError",
    "CallerError",
    "ProviderError",
    "TurnFailedError",
    "ApprovalRequiredError",
    "BudgetError",
    "SessionBusyError",
    "SessionCorruptionError",
    "SessionReadOnlyError",
    "GateError",
    "StorageError",
]

_HOMES = {
    "agent.api": ("Agent", "Session", "Turn", "Result"),
    "agent.approval": ("Decision",),
    "agent.hooks": ("Hooks",),
    "agent.result": ("TurnFailedError",),
    "agent.state": ("Budget", "Price", "Stuck"),
    "history.decode": ("Decoder", "decode"),
    "history.repair": ("Repair", "lint", "repair"),
    "providers.classify": ("classify",),
    "schema.errors": (
        "ApprovalRequiredError",
        "BudgetError",
        "CallerError",
        "GateError",
        "LockstitchError",
        "ProviderError",
        "SessionBusyError",
        "SessionCorruptionError",
        "SessionReadOnlyError",
        "StorageError",
    ),
    "tools.contract": ("Tool", "ToolContext", "ToolError"),
    "tools.functions": ("tool",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

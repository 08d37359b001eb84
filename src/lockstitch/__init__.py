"""An agent runtime whose sessions cannot be bricked.

Everything public is here and is loaded when it is first used: ``import lockstitch`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from .agent.api import Agent, Result, Session, Turn
    from .agent.approval import Decision
    from .agent.events import (
        ApprovalNeeded,
        AttemptDiscarded,
        Compacted,
        Compacting,
        ReasoningDelta,
        Repaired,
        Retrying,
        TextDelta,
        ToolFinished,
        ToolProgress,
        ToolStarted,
        TurnEnded,
        UserEvent,
    )
    from .agent.hooks import Hooks
    from .agent.result import TurnFailedError
    from .agent.state import Budget, Price, Stuck
    from .history.decode import Decoder, decode
    from .history.decoded import Decoded
    from .history.repair import Repair, lint, repair
    from .llm.retry import Backoff, RetryPolicy
    from .providers.classify import Classified, classify
    from .schema.blocks import (
        Base64Source,
        Block,
        Image,
        Opaque,
        Reasoning,
        Text,
        ToolCall,
        ToolResult,
        UrlSource,
    )
    from .schema.chunks import Finish
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
    from .schema.failures import Failure
    from .schema.messages import Message, Options, Request
    from .schema.notes import Anomaly, Note, Violation
    from .schema.profiles import Profile
    from .schema.usage import Usage
    from .tools.approval import Policy
    from .tools.contract import Tool, ToolContext, ToolError, ToolOutput
    from .tools.functions import tool
    from .tools.mcp import HttpServer, StdioServer

__all__ = [  # noqa: RUF022  # by subject
    # runtime
    "Agent",
    "Session",
    "Turn",
    "Result",
    "Options",
    "RetryPolicy",
    "Backoff",
    "Budget",
    "Price",
    "Stuck",
    "Hooks",
    "Decision",
    "Policy",
    "Profile",
    "StdioServer",
    "HttpServer",
    # events
    "UserEvent",
    "TextDelta",
    "ReasoningDelta",
    "ToolStarted",
    "ToolProgress",
    "ToolFinished",
    "ApprovalNeeded",
    "AttemptDiscarded",
    "Retrying",
    "Repaired",
    "Compacting",
    "Compacted",
    "TurnEnded",
    # tools
    "tool",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolError",
    # values
    "Block",
    "Text",
    "Image",
    "Base64Source",
    "UrlSource",
    "Reasoning",
    "ToolCall",
    "ToolResult",
    "Opaque",
    "Message",
    "Request",
    "Usage",
    "Failure",
    # functions
    "decode",
    "Decoder",
    "Decoded",
    "Finish",
    "Note",
    "classify",
    "Classified",
    "lint",
    "Violation",
    "repair",
    "Repair",
    "Anomaly",
    # errors
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
    "agent.api": (
        "Agent",
        "Result",
        "Session",
        "Turn",
    ),
    "agent.approval": ("Decision",),
    "agent.events": (
        "ApprovalNeeded",
        "AttemptDiscarded",
        "Compacted",
        "Compacting",
        "ReasoningDelta",
        "Repaired",
        "Retrying",
        "TextDelta",
        "ToolFinished",
        "ToolProgress",
        "ToolStarted",
        "TurnEnded",
        "UserEvent",
    ),
    "agent.hooks": ("Hooks",),
    "agent.result": ("TurnFailedError",),
    "agent.state": (
        "Budget",
        "Price",
        "Stuck",
    ),
    "history.decode": (
        "Decoder",
        "decode",
    ),
    "history.decoded": ("Decoded",),
    "history.repair": (
        "Repair",
        "lint",
        "repair",
    ),
    "llm.retry": (
        "Backoff",
        "RetryPolicy",
    ),
    "providers.classify": (
        "Classified",
        "classify",
    ),
    "schema.blocks": (
        "Base64Source",
        "Block",
        "Image",
        "Opaque",
        "Reasoning",
        "Text",
        "ToolCall",
        "ToolResult",
        "UrlSource",
    ),
    "schema.chunks": ("Finish",),
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
    "schema.failures": ("Failure",),
    "schema.messages": (
        "Message",
        "Options",
        "Request",
    ),
    "schema.notes": (
        "Anomaly",
        "Note",
        "Violation",
    ),
    "schema.profiles": ("Profile",),
    "schema.usage": ("Usage",),
    "tools.approval": ("Policy",),
    "tools.contract": (
        "Tool",
        "ToolContext",
        "ToolError",
        "ToolOutput",
    ),
    "tools.functions": ("tool",),
    "tools.mcp": (
        "HttpServer",
        "StdioServer",
    ),
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

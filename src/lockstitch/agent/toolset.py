"""The tools of an agent: those it was given, and those that its MCP servers offer by now."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..tools.contract import Tool
from ..tools.functions import tool
from ..tools.registry import Registry
from .state import Rules

Source = Callable[[], Sequence[Tool]]
"""Further tools, as they are known at the moment."""


class Toolset:
    """Asked before each turn; the registry stays the same object while the tools do."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]], *, all_need_decision: bool) -> None:
        """Raises CallerError for tools that cannot be described, or are named twice."""
        self._own = tuple(item if isinstance(item, Tool) else tool(item) for item in tools)
        self._all_need_decision = all_need_decision
        self._known: tuple[Tool, ...] = self._own
        self._registry = Registry(self._own)

    def registry(self, more: Source | None = None) -> Registry:
        """Own tools first, then the others. One whose name is taken by an earlier tool is left out."""
        taken = {item.name for item in self._own}
        others = [] if more is None else [item for item in more() if item.name not in taken]
        known = (*self._own, *others)
        if known != self._known:
            self._known, self._registry = known, Registry(known)
        return self._registry

    def rules(self, rules: Rules, registry: Registry) -> Rules:
        """The caller's rules with what the tools say about themselves."""
        parallel = frozenset(item.name for item in registry if item.parallel)
        free = frozenset(
            item.name for item in registry if item.needs == "nothing" and not self._all_need_decision
        )
        if (rules.parallel, rules.free) == (parallel, free):
            return rules
        return replace(rules, parallel=parallel, free=free, tools=registry.names())

"""The tools of one agent, by name and in one fixed order."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lockstitch.schema.errors import CallerError
from lockstitch.schema.messages import ToolSpec

from .contract import Tool

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# what every protocol takes: https://platform.openai.com/docs/api-reference/chat/create (tools.function.name)


class Registry:
    """Looks tools up by name. The order is the one given, so that a provider's prefix cache can hold."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises CallerError for a name that a provider would refuse or that is there twice."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if not _NAME.fullmatch(tool.name):
                raise CallerError(
                    f"tool name {tool.name!r} is not usable: providers take 1 to 64 characters of"
                    " A-Z a-z 0-9 _ -; give it another with @tool(name=...)"
                )
            if tool.name in self._tools:
                raise CallerError(
                    f"two tools are named {tool.name!r}; rename one of them with @tool(name=...)"
                )
            self._tools[tool.name] = tool

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in the registry's order."""
        return tuple(tool.spec for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

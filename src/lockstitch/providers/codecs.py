"""Reading and writing the elements of plain requests, one protocol like the other.

The modules of a protocol are imported when they are first used.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ..schema.errors import CallerError
from ..schema.messages import Message, Options, ToolSpec
from ..schema.profiles import Profile
from .parsed import Element, Target


class Codec(NamedTuple):
    """Where a protocol keeps its messages, and how they are read and written."""

    list_field: str
    """The field of the request that holds them."""
    parse_module: str
    request_module: str
    system_field: str | None
    """The field for what leading system messages say; None where they are messages like any other."""
    answers_are_split: bool = False
    """Neighbouring elements of the model are one answer."""

    def read(self, elements: Sequence[Any], target: Target) -> list[Element]:
        """Each element as one message."""
        read: list[Element] = _module(self.parse_module).read_elements(elements, target)
        return read

    def read_options(self, body: Mapping[str, Any]) -> tuple[str, tuple[ToolSpec, ...], Options, set[str]]:
        """System prompt, tools, options, and the names of the fields they were read from."""
        options: tuple[str, tuple[ToolSpec, ...], Options, set[str]]
        options = _module(self.parse_module).read_options(body)
        return options

    def write(
        self, messages: Sequence[Message], target: Target, names: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Messages as elements, with the cache marks they came with.

        ``names``: tools by the ids of calls that ``messages`` do not hold themselves, for results to name.
        """
        module: _RequestModule = _module(self.request_module)
        match self.request_module:
            case "anthropic_request":
                return module.encode_messages(messages, target.profile, keep_marks=True)
            case "gemini_request":
                return module.encode_messages(messages, target.profile, model=target.model, names=names)
            case _:
                return module.encode_messages(messages, target.profile)


class _RequestModule(Protocol):
    def encode_messages(
        self, messages: Sequence[Message], profile: Profile, **how: Any
    ) -> list[dict[str, Any]]: ...


CODECS: Final[Mapping[str, Codec]] = {
    "openai-chat": Codec("messages", "openai_chat_parse", "openai_chat_request", None),
    "anthropic-messages": Codec("messages", "anthropic_parse", "anthropic_request", "system"),
    "openai-responses": Codec("input", "responses_parse", "responses_request", None, True),
    "gemini": Codec("contents", "gemini_parse", "gemini_request", "systemInstruction"),
}


def codec(dialect: str) -> Codec:
    """The codec of a protocol. Raises CallerError, naming those there are."""
    known = CODECS.get(dialect)
    if known is None:
        raise CallerError(f"unknown dialect {dialect!r}; known: {', '.join(CODECS)}")
    return known


def _module(name: str) -> Any:
    return importlib.import_module(f".{name}", __package__)

"""The elements of requests that grow: each is written and checked once, in whatever protocol."""

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from ..schema.messages import Message

KEPT_AS_OBJECTS: Final = 3
"""Of the last elements, for protocols that change them until they are no longer the last."""

_encode_json: Final = msgspec.json.Encoder().encode


class UngroupedError(Exception):
    """The request was not projected: what one message becomes depends on its neighbours."""


class Rules(Protocol):
    """The fold of a protocol's validator over the elements of a request."""

    def extend(self, messages: Iterable[object], /) -> None: ...


R = TypeVar("R", bound=Rules)


class Growing(Generic[R]):
    """The elements written so far, each a ``msgspec.Raw``, and the state of the rules behind them.

    Where a request does not begin with the messages of the last one, everything starts anew.
    """

    def __init__(
        self, write: Callable[[Message], list[dict[str, Any]]], new_rules: Callable[[Any], R]
    ) -> None:
        """``new_rules`` makes a fold for a start: what it depends on besides the elements."""
        self.written: list[Any] = []
        self.last: list[dict[str, Any]] = []
        self._write = write
        self._new_rules = new_rules
        self._start: Any = None
        self._rules: R | None = None
        self._messages: Sequence[Message] = ()

    def update(self, start: Any, first: Sequence[dict[str, Any]], messages: Sequence[Message]) -> R:
        """Take what is new, and return the fold. ``first`` are elements before those of the messages.

        Raises what ``write`` raises, and then starts anew with the next request.
        """
        rules = self._rules
        if rules is None or start != self._start or not self._continues(messages):
            rules = self._new_rules(start)
            self._start, self._messages, self.written, self.last = start, (), [], []
            self._take(first, rules)
        self._rules = None  # Until everything is taken: what is half written is not gone on with.
        for message in messages[len(self._messages) :]:
            self._take(self._write(message), rules)
        self._messages, self._rules = messages, rules
        return rules

    def _continues(self, messages: Sequence[Message]) -> bool:
        """Whether they begin with those of the last request: the same objects, since equal ones may differ
        in JSON (1 and True)."""
        return len(messages) >= len(self._messages) and all(map(is_, messages, self._messages))

    def _take(self, elements: Sequence[dict[str, Any]], rules: R) -> None:
        rules.extend(elements)
        for element in elements:
            try:
                self.written.append(msgspec.Raw(_encode_json(element)))
            except UnicodeEncodeError:
                self.written.append(element)  # The rules have found the lone surrogate.
        self.last = [*self.last, *elements][-KEPT_AS_OBJECTS:]

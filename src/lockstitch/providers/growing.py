"""The elements of requests that grow: each is written and checked once, in whatever protocol."""

import copy
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from ..schema.messages import Message

KEPT_AS_OBJECTS: Final = 3
"""Of the last elements, for protocols that change them until they are no longer the last."""

TOGETHER: Final = 64
"""Messages that are encoded at once: enough to share the effort, few enough for the processor's cache."""

_encode_lines: Final = msgspec.json.Encoder().encode_lines


class UngroupedError(Exception):
    """The request was not projected: what one message becomes depends on its neighbours."""


class Rules(Protocol):
    """The fold of a protocol's validator over the elements of a request."""

    def extend(self, messages: Iterable[object], /) -> None: ...


R = TypeVar("R", bound=Rules)


class Growing(Generic[R]):
    """The elements written so far, each a ``msgspec.Raw``, and the state of the rules behind them.

    Those of the last message are written again with the next request, because the last message may change: a
    user who speaks twice is one message where roles alternate. Where more than it changed, everything starts
    anew.
    """

    def __init__(
        self, write: Callable[[Message], list[dict[str, Any]]], new_rules: Callable[[Any], R]
    ) -> None:
        """``new_rules`` makes a fold for a start: what it depends on besides the elements."""
        self.written: list[Any] = []
        """All elements of the last request."""
        self.last: list[dict[str, Any]] = []
        """Some of the last ones as they were before they became JSON."""
        self._write = write
        self._new_rules = new_rules
        self._start: Any = None
        self._rules: R | None = None
        self._settled: Sequence[Message] = ()
        """All messages of the last request but its last, and below what they became."""
        self._settled_written: list[Any] = []
        self._settled_last: list[dict[str, Any]] = []

    def update(self, start: Any, first: Sequence[dict[str, Any]], messages: Sequence[Message]) -> R:
        """Take what is new, and return the fold. ``first`` are elements before those of the messages.

        Raises what ``write`` raises, and then starts anew with the next request.
        """
        rules = self._rules
        if rules is None or start != self._start or not self._continues(messages):
            rules = self._new_rules(start)
            self._start, self._settled = start, ()
            self._settled_written, self._settled_last = [], []
            self._settle(first, rules)
        self._rules = None  # Until everything is taken: what is half written is not gone on with.
        settled = messages[:-1]
        new = settled[len(self._settled) :]
        for at in range(0, len(new), TOGETHER):
            some = new[at : at + TOGETHER]
            self._settle([element for message in some for element in self._write(message)], rules)
        ending = [element for message in messages[-1:] for element in self._write(message)]
        self._settled, self._rules = settled, rules
        self.written = [*self._settled_written, *_raws(ending)]
        self.last = [*self._settled_last, *ending][-max(KEPT_AS_OBJECTS, len(ending)) :]
        whole = _fork(rules)
        whole.extend(ending)
        return whole

    def _continues(self, messages: Sequence[Message]) -> bool:
        """Whether they begin with those that are settled: the same objects, since equal ones may differ in
        JSON (1 and True)."""
        return len(messages) > len(self._settled) and all(map(is_, messages, self._settled))

    def _settle(self, elements: Sequence[dict[str, Any]], rules: R) -> None:
        rules.extend(elements)
        self._settled_written.extend(_raws(elements))
        self._settled_last = [*self._settled_last, *elements[-KEPT_AS_OBJECTS:]][-KEPT_AS_OBJECTS:]


def _raws(elements: Sequence[dict[str, Any]]) -> list[Any]:
    try:
        # No line of JSON holds a line end. One buffer for all, cut up, leaves memory in better order than a
        # buffer for each, made too large and then shortened.
        return list(map(msgspec.Raw, _encode_lines(elements).split(b"\n")[:-1]))
    except UnicodeEncodeError:
        # One of them has a lone surrogate, which the rules find.
        return [element if len(elements) == 1 else _raws([element])[0] for element in elements]


def _fork(rules: R) -> R:
    """A copy that can go on by itself: the fold's own lists, sets and dicts are copied with it."""
    fork = copy.copy(rules)
    for name, value in vars(rules).items():
        if isinstance(value, list | set | dict):
            setattr(fork, name, value.copy())
    return fork

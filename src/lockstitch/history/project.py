"""The projection: any history as messages that the target accepts, with all that was changed as values.

``project`` is the loop over ``Projector``, which can be resumed: further messages cost only themselves. The
history is never touched. Repairs that depend on neighbours (alternation, a leading assistant, an assistant at
the end) are here; pairing is in ``pair``, what becomes of one node in ``shape``.

Append-only: all wire messages of an earlier request but its last are equal in a later one, because a node's
shape depends on nothing behind it except results that no request has gone without.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ..schema.blocks import Text, ToolResult
from ..schema.messages import Message
from ..schema.notes import Anomaly
from ..schema.profiles import Profile
from .digest import digested
from .media import image_budget
from .ordinary import Ordinary
from .pair import Pairing, Plain
from .policy import Policy, policy
from .shape import joined, shape

CONTINUE: Final = "Continue."
"""Stands where a request would end in, or begin with, an assistant message that the target does not take."""


class Intent(Enum):
    """What a projection is for. Never inferred from the messages."""

    REQUEST = "request"
    SUMMARY = "summary"
    """A compaction's request: as strict as any, because recovery must not depend on what is broken."""
    SIZING = "sizing"
    """A fragment to be counted: never paired, nothing dropped, since a partner may lie outside of it."""


class Projected(NamedTuple):
    """Messages to encode, and what it took."""

    messages: tuple[Message, ...]
    anomalies: tuple[Anomaly, ...]


def project(
    messages: Iterable[Message],
    profile: Profile,
    *,
    model: str,
    intent: Intent = Intent.REQUEST,
    rung: str = "normal",
    thinking: bool = True,
) -> Projected:
    """The messages as a request to ``model`` behind ``profile``.

    ``thinking`` false: the request is known not to ask for reasoning, so no placeholder for it is sent.
    Raises CallerError for a rung that does not exist, and on nothing that ``messages`` can hold.
    """
    if intent is Intent.SIZING:
        return Projected(tuple(messages), ())
    projector = Projector(policy(profile, model=model, rung=rung, thinking=thinking))
    projector.extend(messages)
    return projector.projected


_Joint: TypeAlias = tuple[int, Message | None, int, int]
"""The state before a node was joined on, to go back to when the node changes: how many messages there were,
the last of them, how many anomalies and images."""


class Projector:
    """A projection that can be resumed. ``extend`` as messages come; ``projected`` whenever a request is due.

    Mutable; one per policy and history. ``stable`` messages never change again but for the very last of them.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._pairing = Pairing(policy.profile)
        self._ordinary = Ordinary(self._pairing, policy)
        self._joints: list[_Joint] = []
        self._out: list[Message] = []
        self._anomalies: list[Anomaly] = []
        self._images = 0
        self._budget = image_budget(0, policy.profile)

    def extend(self, messages: Iterable[Message]) -> None:
        """Take the next messages of the history."""
        for message in messages:
            self._ordinary.take(message)

    @property
    def projected(self) -> Projected:
        """The request as of now."""
        self._ordinary.let_go()
        self._catch_up()
        if self.policy.rung == "digest":
            return self._digested()
        tail, anomalies = self._tail()
        return Projected((*self._out, *tail), (*self._pairing.anomalies, *self._anomalies, *anomalies))

    def _digested(self) -> Projected:
        prompts = [
            "\n".join(block.text for block in message.content if isinstance(block, Text))
            for node in self._pairing.nodes
            if isinstance(node, Plain) and node.role == "user"
            for message in shape(node, self.policy, self._budget, 0).messages
        ]
        note = Anomaly("digested", detail=f"{len(self._out)} messages as a digest of their beginnings")
        return Projected(
            tuple(digested(self._out, prompts)), (*self._pairing.anomalies, *self._anomalies, note)
        )

    def _catch_up(self) -> None:
        start = self._pairing.take_changed()
        self._go_back(start)
        self._shape_new()
        budget = image_budget(self._images, self.policy.profile)
        if budget != self._budget:
            self._budget = budget
            self._go_back(0)
            self._shape_new()

    def _go_back(self, start: int) -> None:
        """Undo what came of the nodes from ``start`` on."""
        if start >= len(self._joints):
            return
        length, last, anomalies, self._images = self._joints[start]
        del self._joints[start:]
        del self._out[length:]
        del self._anomalies[anomalies:]
        if last is not None:
            self._out[-1] = last

    def _shape_new(self) -> None:
        for node in self._pairing.nodes[len(self._joints) :]:
            last = self._out[-1] if self._out else None
            self._joints.append((len(self._out), last, len(self._anomalies), self._images))
            if isinstance(node, tuple):
                messages, anomalies = node
                self._anomalies += anomalies
                self._join(messages[0])
                self._out += messages[1:]  # Results, which join nothing.
                continue
            shaped = shape(node, self.policy, self._budget, self._images)
            self._anomalies += shaped.anomalies
            self._images += shaped.images
            for message in shaped.messages:
                self._join(message)

    def _join(self, message: Message) -> None:
        last = self._out[-1] if self._out else None
        if message.role == "system":
            message = self._system(message, last)
        if message.role == "assistant":
            self._before_assistant(last)
        if message.role == "user" and last is not None and last.role == "user" and self._merges(last):
            self._out[-1] = _merged(last, message)
        else:
            self._out.append(message)

    def _merges(self, last: Message) -> bool:
        """Whether a user message may join the one before it."""
        if self.policy.results_alone and any(isinstance(block, ToolResult) for block in last.content):
            return False
        return self.policy.alternate

    def _system(self, message: Message, last: Message | None) -> Message:
        if self.policy.system_anywhere or last is None or last.role == "system":
            return message
        self._anomalies.append(Anomaly("system_as_user", detail="a system message behind the start"))
        return Message("user", message.content)

    def _before_assistant(self, last: Message | None) -> None:
        if last is not None and last.role == "assistant":
            self._placeholder("between two answers: a request ended with the first")
        elif self.policy.user_first and (last is None or last.role == "system"):
            self._placeholder("the conversation began with an assistant message")

    def _placeholder(self, detail: str) -> None:
        self._anomalies.append(Anomaly("user_added", f"request[{len(self._out)}]", detail=detail))
        self._out.append(Message("user", (Text(text=CONTINUE),)))

    def _tail(self) -> tuple[list[Message], list[Anomaly]]:
        """What the request needs at its end if nothing follows."""
        placeholder = [Message("user", (Text(text=CONTINUE),))]
        where = f"request[{len(self._out)}]"
        if not any(message.role in ("user", "tool") for message in self._out):
            return placeholder, [Anomaly("user_added", where, detail="no user message was left")]
        if self._out[-1].role == "assistant" and not self.policy.profile.prefill:
            return placeholder, [Anomaly("user_added", where, detail="the target takes no prefill")]
        return [], []


def _merged(first: Message, second: Message) -> Message:
    content = joined(list(first.content), list(second.content))
    return Message(first.role, tuple(content), extra=first.extra or second.extra)

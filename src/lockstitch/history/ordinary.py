"""The ordinary part of a history: clean messages in clean order, which is nearly all of a real log.

What the general pass (``pair``, then ``shape``) would give back as it came, or without its reasoning, goes
around it: a message of the user as soon as it is there, an answer once nothing can change it any more. Until
then it is held; whatever else comes goes to the general pass, and what is held goes before it. The request is
the same: docs/decisions/0115-ordinary-messages-pass-as-they-are.md.
"""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final

from ..schema.blocks import Block, Reasoning, Replay, Text, ToolCall, ToolResult
from ..schema.messages import Message, Role
from ..schema.notes import Anomaly
from ..wire.strict_json import is_object
from .clean import anomaly, clean_value, is_clean
from .ladder import RUNGS
from .pair import Pairing
from .policy import Policy
from .reasoning import kept_reasoning
from .shape import wire_name

_FIRST_FLAT: Final = RUNGS.index("flattened")


class Ordinary:
    """Takes the messages of a history in order, and hands to the pairing those that are not ordinary.

    Mutable; it may hold the end of the history until ``let_go``.
    """

    def __init__(self, pairing: Pairing, policy: Policy) -> None:
        self._pairing = pairing
        self._policy = policy
        self._flat = RUNGS.index(policy.rung) >= _FIRST_FLAT
        self._thought_missing = policy.profile.reasoning_placeholder is not None and policy.thinking
        """Whether calls without reasoning beside them get a placeholder."""
        self._result_role: Final[Role] = "user" if policy.results_with_user else "tool"
        self._names: dict[str, bool] = {}
        """Whether the target takes a tool's name as it is."""
        self._held: list[Message] = []
        """An answer, and those results of its calls that came."""
        self._ids: list[str] = []
        """Of the held answer's calls, in order."""
        self._open: dict[str, int] = {}
        """Positions of its calls without a result, by id."""
        self._left_out: tuple[str, ...] = ()
        """Why its reasoning stays behind, if it does."""
        self._results: list[Message] = []
        """A message for each of its calls, in order: the result, if it came."""

    def take(self, message: Message) -> None:
        """The next message of the history."""
        role = message.role
        if role == "tool":
            if self._open and self._answers(message):
                self._held.append(message)
                if not self._open:
                    self._settle()
                return
        elif role == "assistant":
            if self._begins(message):
                self._held.append(message)
                return
        elif message.content and _are_texts(message.content) and message.extra is None and not self._flat:
            if self._open:
                self.let_go()
            elif self._held:
                self._settle()
            self._pairing.settle(((Message(role, message.content),), ()), message)
            return
        self.let_go()
        self._pairing.add(message)

    def let_go(self) -> None:
        """Give what is held to the general pass: a request is due, or something else came."""
        for message in self._held:
            self._pairing.add(message)
        self._held, self._open = [], {}

    def _begins(self, message: Message) -> bool:
        """Whether an exchange begins with this answer that may turn out to be ordinary."""
        self._left_out = ()
        if self._held or self._flat or message.extra is not None or not message.content:
            return False
        calls: dict[str, int] = {}
        thoughts: list[Reasoning] = []
        for block in message.content:
            if type(block) is ToolCall:
                if block.id in calls or not self._is_made(block, message):
                    return False
                calls[block.id] = len(calls)
            elif calls:
                return False
            elif type(block) is Reasoning:
                thoughts.append(block)
            elif not self._is_said(block, message):
                return False
        if not self._pairing.closed() or type(message.content[-1]) is Reasoning:
            return False
        if thoughts and not self._is_thought(message, thoughts, bool(calls)):
            return False
        if calls and self._thought_missing and (self._left_out or not thoughts):
            return False
        self._open = calls
        self._results = [message] * len(calls)
        self._ids = list(calls)
        return True

    def _is_thought(self, message: Message, thoughts: Sequence[Reasoning], has_calls: bool) -> bool:
        """Whether all reasoning of an answer goes back as it is, or none does, which is noted then."""
        in_tool_turn = has_calls or self._pairing.in_tool_turn
        kept = [kept_reasoning(one, message, self._policy, in_tool_turn=in_tool_turn) for one in thoughts]
        self._left_out = tuple(one for one in kept if isinstance(one, str))
        return len(self._left_out) == len(thoughts) or all(map(is_, kept, thoughts))

    def _is_made(self, call: ToolCall, message: Message) -> bool:
        """Whether a call goes out as the model made it."""
        if call.invalid is not None or call.extra is not None:
            return False
        if call.replay is not None and not self._is_own(call.replay, message):
            return False
        name = call.name
        if name not in self._names:
            self._names[name] = bool(name) and wire_name(name, self._policy) == name
        return self._names[name] and is_object(call.arguments) and self._pairing.ids.keeps(call.id)

    def _is_said(self, block: Block, message: Message) -> bool:
        """Whether a block of an answer is text that goes out as it is."""
        if type(block) is not Text or block.extra is not None or not _is_clear(block.text):
            return False
        return block.replay is None or self._is_own(block.replay, message)

    def _is_own(self, replay: Replay, message: Message) -> bool:
        """Whether what the writer of the message wants back goes back."""
        policy = self._policy
        return policy.wrote(message) and policy.reasoning() and clean_value(replay.data) is replay.data

    def _answers(self, message: Message) -> bool:
        """Whether the message is an ordinary result of an open call; it is noted then."""
        content = message.content
        result = content[0] if len(content) == 1 else None
        if type(result) is not ToolResult or result.extra is not None or result.replay is not None:
            return False
        position = self._open.get(result.call_id)
        if position is None or not result.content or not _are_texts(result.content):
            return False
        answer = self._held[0]
        if message.requests != answer.requests:
            return False
        if message.answers is not None and message.answers != (answer.seq, position):
            return False
        del self._open[result.call_id]
        self._results[position] = Message(self._result_role, content)
        return True

    def _settle(self) -> None:
        """Pass what is held: nothing can change it any more."""
        answer, results, content = self._held[0], self._results, self._held[0].content
        anomalies: Sequence[Anomaly] = ()
        if self._left_out:
            where = self._pairing.where
            anomalies = [anomaly("reasoning_dropped", where, detail=why) for why in self._left_out]
            content = tuple(block for block in content if type(block) is not Reasoning)
        said = Message("assistant", content, provider=answer.provider, model=answer.model)
        if len(results) > 1 and self._result_role == "user":
            results = [Message("user", tuple(one.content[0] for one in results))]
        self._pairing.settle(((said, *results), anomalies), answer, self._ids)
        self._held = []


def _are_texts(blocks: Iterable[Block]) -> bool:
    """Whether each block is text and nothing else, clean and not blank."""
    for block in blocks:
        if type(block) is not Text or block.extra is not None or not _is_clear(block.text):
            return False
    return True


def _is_clear(text: str) -> bool:
    """Whether a text says something and can be sent."""
    return text != "" and not text.isspace() and is_clean(text)

"""Pairing: one forward pass that finds each result its call, by occurrence and not by bare id.

A history becomes a list of nodes: plain messages, and exchanges (an assistant message, its calls and their
results). A result belongs to the call its address names, else to the latest message with an unanswered call
of its id, there to the first such call. A result that came after a request had already gone without it stays
where it is, as text, because what was sent does not change. Nothing else is mended here.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, assert_never

from ..schema.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from ..schema.messages import Message, Role
from ..schema.notes import Anomaly
from ..schema.profiles import Profile
from .clean import anomaly
from .wire_ids import WireIds

LATE_RESULT: Final = "[A result of the earlier call of {name} arrived only now:]"


@dataclass(slots=True)
class Plain:
    """A message of the user or the system, without results and calls."""

    where: str
    role: Role
    content: tuple[Block, ...]
    extra: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Slot:
    """One call and its result."""

    call: ToolCall
    wire_id: str
    """Empty for a call without a name: it is not sent."""
    result: ToolResult | None = None


@dataclass(slots=True, eq=False)
class Exchange:
    """An assistant message (or several that were one), its calls in order, and their results."""

    index: int
    """Its place among the nodes."""
    sources: list[tuple[str, Message]]
    """Places and messages: the blocks of all of them but results, in order, make one message."""
    slots: list[Slot] = field(default_factory=list)
    """One for each call block of the sources, in order."""
    moved: list[str] = field(default_factory=list)
    """Ids of results that stood further down the history."""
    waiting: dict[str, deque[int]] = field(default_factory=dict)
    """Slots that a result may still answer by id."""
    in_tool_turn: bool = False
    """Whether an earlier message of its turn has calls."""

    def has_calls(self) -> bool:
        return any(slot.wire_id for slot in self.slots)


Settled: TypeAlias = tuple[Sequence[Message], Sequence[Anomaly]]
"""A message or an answered exchange that needs no shaping: what is sent, and what was left out of it."""

Node: TypeAlias = Plain | Exchange | Settled


class Pairing:
    """The pass. ``add`` messages in order; ``nodes`` and ``anomalies`` hold what they amount to so far."""

    def __init__(self, profile: Profile) -> None:
        self.nodes: list[Node] = []
        self.anomalies: list[Anomaly] = []
        """What was left out or moved; a later message only adds to it."""
        self._changed = 0
        self._count = 0
        self.ids = WireIds(profile)
        self._by_seq: dict[int, tuple[Exchange | None, int, int]] = {}
        """Of each assistant message of a log: its exchange (None if settled: each call has its result), its
        first slot there, its number of slots."""
        self._open: dict[str, list[Exchange]] = {}
        """Of each id: exchanges with calls of it that may be unanswered, the latest last."""
        self._run: list[Exchange] = []
        """Neighbouring assistant messages at the end: one response, if a result behind them says so."""
        self._run_answered = False

    def take_changed(self) -> int:
        """How many leading nodes are as they were at the last call of this method."""
        changed, self._changed = self._changed, len(self.nodes)
        return changed

    @property
    def in_tool_turn(self) -> bool:
        """Whether an answer that came now would be one of a turn with calls."""
        return any(map(_in_tool_turn, self.nodes[-1:]))

    @property
    def where(self) -> str:
        """The place of the next message."""
        return f"messages[{self._count}]"

    def closed(self) -> bool:
        """Whether the last node stays as it is, an answer behind it and results of its calls included."""
        last = self.nodes[-1] if self.nodes else None
        if not isinstance(last, Exchange):
            return True
        return last.has_calls() and all(slot.result is not None for slot in last.slots)

    def settle(self, node: Settled, message: Message, calls: Sequence[str] = ()) -> None:
        """Take the next message of the history as a node that will not change, with the results behind it.

        ``calls``: the ids of its calls; ``ids`` keeps each, and each has one result. An answer needs a
        pairing that is ``closed``.
        """
        self._count += 1 + len(calls)
        self._run = []
        self.nodes.append(node)
        self.ids.keep(calls)
        if message.seq is not None:
            self._by_seq[message.seq] = (None, 0, len(calls))

    def add(self, message: Message) -> None:
        """Take the next message of the history."""
        where = self.where
        self._count += 1
        rest: list[Block] = []
        calls: list[Block] = []
        results: list[ToolResult] = []
        for block in message.content:
            if isinstance(block, ToolResult):
                results.append(block)
            elif message.role == "assistant":
                rest.append(block)
            elif isinstance(block, ToolCall):
                calls.append(block)
            elif isinstance(block, Reasoning):
                self._note("reasoning_dropped", where, detail=f"reasoning in a {message.role} message")
            else:
                rest.append(block)
        if message.role == "assistant" and (rest or not results):
            self._exchange(message, where)
        for result in results:
            self._result(result, message, where)
        if message.role != "assistant" and (rest or not message.content):
            self._plain(message.role, tuple(rest), where, message.extra)
        if calls:
            self._note("calls_moved", where, detail=f"calls in a {message.role} message")
            self._exchange(Message("assistant", tuple(calls)), where)

    def _plain(
        self, role: Role, content: tuple[Block, ...], where: str, extra: Mapping[str, Any] | None = None
    ) -> None:
        if role == "tool":
            role = "user"
            self._note("role_changed", where, detail="a tool message that answers no call")
        self._run = []
        self._touch(len(self.nodes))
        self.nodes.append(Plain(where, role, content, extra))

    def _exchange(self, message: Message, where: str) -> None:
        last = self.nodes[-1] if self.nodes else None
        neighbour = isinstance(last, Exchange) and not _request_between(last.sources[-1][1], message)
        exchange = Exchange(len(self.nodes), [(where, message)])
        exchange.in_tool_turn = _in_tool_turn(last)
        for block in message.content:
            if isinstance(block, ToolCall):
                wire_id = self.ids.assign(block.id) if block.name.strip() else ""
                exchange.waiting.setdefault(block.id, deque()).append(len(exchange.slots))
                exchange.slots.append(Slot(block, wire_id))
        for call_id in exchange.waiting:
            self._open.setdefault(call_id, []).append(exchange)
        if message.seq is not None:
            self._by_seq[message.seq] = (exchange, 0, len(exchange.slots))
        self._touch(len(self.nodes))
        self.nodes.append(exchange)
        if isinstance(last, Exchange) and neighbour and not last.has_calls():
            self._join(last)
            return
        if not neighbour or self._run_answered:
            self._run = []
        self._run.append(exchange)
        self._run_answered = False

    def _result(self, result: ToolResult, message: Message, where: str) -> None:
        if message.answers is None:
            found = self._by_id(result.call_id)
        elif self._is_settled(*message.answers):
            self._surplus(result, where)
            return
        else:
            found = self._by_address(*message.answers)
        if found is None:
            self._note("orphan_result_dropped", where, result.call_id, "no call is left without a result")
            return
        exchange, slot = found
        if slot.result is not None:
            self._surplus(result, where)
        elif _request_between(exchange.sources[0][1], message):
            self._note("late_result_moved", where, result.call_id, "a request had gone without it")
            heading = Text(text=LATE_RESULT.format(name=slot.call.name or "a tool"))
            self._plain("user", (heading, *result.content), where)
        else:
            self._attach(exchange, slot, result)

    def _surplus(self, result: ToolResult, where: str) -> None:
        self._note("surplus_result_dropped", where, result.call_id, "its call has a result already")

    def _attach(self, exchange: Exchange, slot: Slot, result: ToolResult) -> None:
        slot.result = result
        self._touch(exchange.index)
        if exchange in self._run:
            self._run_answered = True
            while self._run[-1] is not exchange:
                self._run.pop()
                self._join(self._run[-1])
        else:
            exchange.moved.append(slot.wire_id)

    def _by_address(self, seq: int, position: int) -> tuple[Exchange, Slot] | None:
        exchange, first, count = self._by_seq.get(seq, (None, 0, 0))
        if exchange is None or not 0 <= position < count:
            return None
        return exchange, exchange.slots[first + position]

    def _is_settled(self, seq: int, position: int) -> bool:
        """Whether the address is that of a call whose exchange is settled."""
        exchange, _, count = self._by_seq.get(seq, (None, 0, 0))
        return exchange is None and 0 <= position < count

    def _by_id(self, call_id: str) -> tuple[Exchange, Slot] | None:
        exchanges = self._open.get(call_id, [])
        while exchanges:
            exchange = exchanges[-1]
            waiting = exchange.waiting[call_id]
            while waiting:
                slot = exchange.slots[waiting.popleft()]
                if slot.result is None:
                    return exchange, slot
            exchanges.pop()
        return None

    def _join(self, first: Exchange) -> None:
        """Make the last node a part of ``first``, which stands directly before it."""
        second = self.nodes.pop()
        assert isinstance(second, Exchange)
        self._touch(first.index)
        offset = len(first.slots)
        first.slots += second.slots
        for call_id, positions in second.waiting.items():
            first.waiting.setdefault(call_id, deque()).extend(offset + position for position in positions)
            exchanges = self._open[call_id]
            if second in exchanges:
                exchanges.remove(second)
            exchanges.append(first)
        for _, message in second.sources:
            if message.seq is not None:
                _, start, count = self._by_seq[message.seq]
                self._by_seq[message.seq] = (first, offset + start, count)
        first.sources += second.sources
        first.moved += second.moved

    def _touch(self, index: int) -> None:
        self._changed = min(self._changed, index)

    def _note(self, kind: str, where: str, call_id: str | None = None, detail: str = "") -> None:
        ids = () if call_id is None else (call_id,)
        self.anomalies.append(anomaly(kind, where, ids, detail))


def _in_tool_turn(last: Node | None) -> bool:
    """Whether a message behind the node is one of a turn with calls."""
    match last:
        case Exchange():
            return last.in_tool_turn or last.has_calls()
        case tuple():
            return last[0][0].role == "assistant"
        case Plain() | None:
            return False
        case _:
            assert_never(last)


def _request_between(earlier: Message, later: Message) -> bool:
    """Whether the log shows that a request was sent after ``earlier`` and before ``later``."""
    if earlier.requests is None or later.requests is None:
        return False
    return earlier.requests != later.requests

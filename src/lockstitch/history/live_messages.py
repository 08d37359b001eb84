"""The live messages of a session and everything that rewrites them: compactions, clears, undos, pruning.

A rewrite replaces the list and keeps the old one for a while, so that an undo can bring it back.
"""

from collections.abc import Sequence
from copy import copy
from typing import Final, NamedTuple

from ..schema.blocks import Block, Text
from ..schema.events import CompactionStart, CompactionSummary, Prune
from ..schema.messages import Message
from .facts import Facts
from .shorten import shortened_prompt, shortened_result

KEPT_REWRITES: Final = 3
"""How many compactions and clears an undo can go back behind at once; see ``LiveMessages.needed``."""


class Rewrite(NamedTuple):
    """What a compaction or a clear replaced."""

    seq: int
    """Of the event that did."""
    before: list[Message]
    facts: Facts


class LiveMessages:
    """What the next request is made of. ``kept_rewrites`` as for ``Context``."""

    def __init__(self, kept_rewrites: frozenset[int] = frozenset()) -> None:
        self.messages: list[Message] = []
        self.facts = Facts()
        self.needed: set[int] = set()
        self.summaries: set[int] = set()
        """Numbers of the messages that are summaries."""
        self.kept = kept_rewrites
        self.rewrites: list[Rewrite] = []
        """Those that are held, oldest first."""
        self.rewritten: list[int] = []
        """Numbers of all rewrites that count, those that are no longer held included."""
        self.pruned: dict[int, tuple[tuple[int, int], ...]] = {}
        """How each pruned result was shortened, by its number: (head_chars, tail_chars), first to last."""

    def snapshot(self) -> "LiveMessages":
        """A copy that later changes do not reach."""
        other = copy(self)
        other.messages, other.rewrites = self.messages.copy(), self.rewrites.copy()
        other.rewritten, other.pruned = self.rewritten.copy(), self.pruned.copy()
        other.needed, other.summaries = self.needed.copy(), self.summaries.copy()
        return other

    def compact(
        self, seq: int, plan: CompactionStart, keep_from: int, made: CompactionSummary, summary: Message
    ) -> None:
        """Replace everything before ``keep_from`` by the summary and the prompts that the plan keeps."""
        prompts, tail = self._prompts(plan, keep_from), self._since(keep_from)
        self.replace(seq, [summary, *prompts, *tail])
        self.facts = Facts(made.files_read, made.files_changed, made.tasks)

    def replace(self, seq: int, messages: list[Message]) -> None:
        """Put other messages in their place; ``seq`` is the event that does."""
        self.rewritten.append(seq)
        self.rewrites.append(Rewrite(seq, self.messages, self.facts))
        if len(self.rewrites) > KEPT_REWRITES:
            oldest = self.rewrites[-KEPT_REWRITES - 1]
            if oldest.seq not in self.kept:
                del self.rewrites[-KEPT_REWRITES - 1]
        self.messages = messages

    def undo(self, first: int) -> None:
        """Take back everything from event ``first`` on."""
        held = {rewrite.seq for rewrite in self.rewrites}
        while self.rewritten and self.rewritten[-1] >= first:
            seq = self.rewritten.pop()
            if seq not in held:
                self.needed.add(seq)
        if self.rewrites and self.rewrites[-1].seq >= first:
            while self.rewrites and self.rewrites[-1].seq >= first:
                rewrite = self.rewrites.pop()
            self.messages, self.facts = [self._as_pruned(m) for m in rewrite.before], rewrite.facts
        messages = self.messages
        while messages and seq_of(messages[-1]) >= first and seq_of(messages[-1]) not in self.summaries:
            messages.pop()

    def prune(self, body: Prune) -> None:
        """Shorten results, also in lists that an undo may bring back."""
        wanted = set(body.result_seqs)
        for seq in wanted:
            self.pruned[seq] = (*self.pruned.get(seq, ()), (body.head_chars, body.tail_chars))
        for index in range(len(self.messages) - 1, -1, -1):
            if not wanted:
                break
            message = self.messages[index]
            if message.seq in wanted:
                wanted.discard(message.seq)
                self.messages[index] = shortened_result(message, body.head_chars, body.tail_chars)

    def _prompts(self, plan: CompactionStart, keep_from: int) -> list[Message]:
        """The user messages before ``keep_from`` that stay, in the order of the log."""
        wanted = {seq for seq in plan.keep_prompts if seq < keep_from}
        if not wanted:
            return []
        short = set(plan.shorten)
        return [
            shortened_prompt(message, plan.head_chars, plan.tail_chars) if message.seq in short else message
            for message in self.messages
            if message.role == "user" and message.seq in wanted and message.seq not in self.summaries
        ]

    def _since(self, seq: int) -> list[Message]:
        """Messages from ``seq`` on, without the summaries of older compactions, oldest first.

        The range may begin before an older compaction; what that one folded away is taken from before it.
        """
        found: dict[int, Message] = {}
        for messages in (*(rewrite.before for rewrite in self.rewrites), self.messages):
            for message in reversed(messages):
                if message.seq in self.summaries:
                    continue
                if message.seq is None or message.seq < seq:
                    break
                found[message.seq] = self._as_pruned(message)
        return [found[key] for key in sorted(found)]

    def _as_pruned(self, message: Message) -> Message:
        for head_chars, tail_chars in self.pruned.get(seq_of(message), ()):
            message = shortened_result(message, head_chars, tail_chars)
        return message


def seq_of(message: Message) -> int:
    """Its number in the log; -1 outside of one."""
    return -1 if message.seq is None else message.seq


def is_blank(content: Sequence[Block]) -> bool:
    """Whether nothing in it can be read."""
    return not any(isinstance(block, Text) and block.text.strip() for block in content)

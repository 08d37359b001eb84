"""The saved form of a ``Context``: what it holds as one value that JSON takes, and back.

A restored context equals the one that was saved, in all that later events and requests depend on, and goes on
like it. Each message is written once, however many lists and entries it is in.
"""

from collections.abc import Iterable, Iterator
from copy import copy

import msgspec

from ..schema.blocks import ToolCall
from ..schema.events import AttemptStart, CompactionStart, CompactionSummary, InputQueued, RequestHeader
from ..schema.messages import Message
from ..schema.usage import Usage
from .context import Context, RetryState, Unanswered
from .facts import Facts
from .live_messages import LiveMessages, Rewrite
from .transcript import Entry, Transcript


class SavedRewrite(msgspec.Struct, frozen=True):
    seq: int
    before: tuple[int, ...]
    """Numbers of messages in ``SavedContext.table``, as in every list of them."""
    facts: Facts


class SavedLive(msgspec.Struct, frozen=True, kw_only=True):
    """Of ``LiveMessages``."""

    messages: tuple[int, ...]
    facts: Facts
    needed: tuple[int, ...]
    summaries: tuple[int, ...]
    kept: tuple[int, ...]
    rewrites: tuple[SavedRewrite, ...]
    rewritten: tuple[int, ...]
    pruned: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class SavedEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    entry: Entry
    shares: int | None = None
    """The message whose content is the entry's, which is then left out."""


class SavedTranscript(msgspec.Struct, frozen=True):
    entries: tuple[SavedEntry, ...]
    count: int
    forgotten: int


class SavedContext(msgspec.Struct, frozen=True, kw_only=True):
    """Named as in ``Context``; mappings are pairs in their order."""

    table: tuple[Message, ...]
    """Every message that any list holds, once."""
    live: SavedLive
    transcript: SavedTranscript
    header: RequestHeader | None
    turn: int
    step: int
    open_turn: bool
    open_step: bool
    attempt: int
    open_attempt: AttemptStart | None
    queued: tuple[tuple[str, InputQueued], ...]
    retries: RetryState | None
    usage: Usage
    last_usage: Usage | None
    measured: int
    title: str
    session_id: str
    cwd: str
    epoch: int
    recovered: tuple[tuple[tuple[str, str], str], ...]
    windows: tuple[tuple[tuple[str, str], int], ...]
    requests: int
    unanswered: tuple[tuple[tuple[int, int], ToolCall, bool], ...]
    """Each with the place under which it waits, and whether it was started."""
    runtime: tuple[int, ...]
    turn_from: tuple[tuple[int, int], ...]
    prompt_from: int | None
    compaction: tuple[CompactionStart, int] | None
    summary: tuple[CompactionSummary, int] | None


def snapshot(context: Context) -> Context:
    """A copy that later events do not change: cheap, so that it can be saved while the session goes on."""
    other = copy(context)
    for name, value in vars(context).items():
        if isinstance(value, dict | set | list):
            setattr(other, name, value.copy())
    other.transcript = context.transcript.snapshot()
    other._live = context._live.snapshot()
    return other


def saved(context: Context) -> SavedContext:
    """What ``restored`` makes an equal context of. ``context`` has a transcript of the default limits."""
    table = _Table()
    live = _saved_live(context._live, table)
    return SavedContext(
        live=live,
        transcript=_saved_transcript(context.transcript, table),
        table=tuple(table.messages),
        header=context.header,
        turn=context.turn,
        step=context.step,
        open_turn=context.open_turn,
        open_step=context.open_step,
        attempt=context.attempt,
        open_attempt=context.open_attempt,
        queued=tuple(context.queued.items()),
        retries=context.retries,
        usage=context.usage,
        last_usage=context.last_usage,
        measured=context.measured,
        title=context.title,
        session_id=context.session_id,
        cwd=context.cwd,
        epoch=context.epoch,
        recovered=tuple(context.recovered.items()),
        windows=tuple(context.windows.items()),
        requests=context._requests,
        unanswered=tuple((place, it.call, it.started) for place, it in context._unanswered.items()),
        runtime=tuple(sorted(context._runtime)),
        turn_from=tuple(context._turn_from.items()),
        prompt_from=context._prompt_from,
        compaction=context._compaction,
        summary=context._summary,
    )


def restored(value: SavedContext) -> Context:
    """The context that was saved. Raises ValueError for a value that ``saved`` does not make."""
    context = Context()
    context._live = _restored_live(value.live, value.table)
    context.transcript = _restored_transcript(value.transcript, value.table)
    context.header = value.header
    context.turn, context.step, context.attempt = value.turn, value.step, value.attempt
    context.open_turn, context.open_step = value.open_turn, value.open_step
    context.open_attempt, context.retries = value.open_attempt, value.retries
    context.queued = dict(value.queued)
    context.usage, context.last_usage, context.measured = value.usage, value.last_usage, value.measured
    context.title, context.session_id, context.cwd = value.title, value.session_id, value.cwd
    context.epoch = value.epoch
    context.recovered, context.windows = dict(value.recovered), dict(value.windows)
    context._requests = value.requests
    context._unanswered = {
        place: Unanswered(*place, call, started) for place, call, started in value.unanswered
    }
    context._runtime = set(value.runtime)
    context._turn_from = dict(value.turn_from)
    context._prompt_from = value.prompt_from
    context._compaction, context._summary = value.compaction, value.summary
    return context


class _Table:
    """Gives each message a number, the same wherever it occurs."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.by_content: dict[int, int] = {}
        """By the identity of a message's content, which lives as long as the table."""
        self._numbers: dict[int, int] = {}

    def numbers(self, messages: Iterable[Message]) -> tuple[int, ...]:
        return tuple([self._number(message) for message in messages])

    def _number(self, message: Message) -> int:
        number = self._numbers.get(id(message))
        if number is None:
            number = self._numbers[id(message)] = len(self.messages)
            self.by_content.setdefault(id(message.content), number)
            self.messages.append(message)
        return number


def _saved_live(live: LiveMessages, table: _Table) -> SavedLive:
    rewrites = tuple(SavedRewrite(it.seq, table.numbers(it.before), it.facts) for it in live.rewrites)
    return SavedLive(
        messages=table.numbers(live.messages),
        facts=live.facts,
        needed=tuple(sorted(live.needed)),
        summaries=tuple(sorted(live.summaries)),
        kept=tuple(sorted(live.kept)),
        rewrites=rewrites,
        rewritten=tuple(live.rewritten),
        pruned=tuple(live.pruned.items()),
    )


def _restored_live(value: SavedLive, table: tuple[Message, ...]) -> LiveMessages:
    live = LiveMessages(frozenset(value.kept))
    live.messages = _listed(value.messages, table)
    live.facts = value.facts
    live.needed, live.summaries = set(value.needed), set(value.summaries)
    live.rewrites = [Rewrite(it.seq, _listed(it.before, table), it.facts) for it in value.rewrites]
    live.rewritten, live.pruned = list(value.rewritten), dict(value.pruned)
    return live


def _saved_transcript(transcript: Transcript, table: _Table) -> SavedTranscript:
    entries = tuple(_saved_entry(entry, table) for entry in transcript)
    return SavedTranscript(entries, transcript.count, transcript.forgotten)


def _saved_entry(entry: Entry, table: _Table) -> SavedEntry:
    shares = table.by_content.get(id(entry.content)) if entry.content else None
    if shares is None:
        return SavedEntry(entry)
    return SavedEntry(msgspec.structs.replace(entry, content=()), shares)


def _restored_transcript(value: SavedTranscript, table: tuple[Message, ...]) -> Transcript:
    transcript = Transcript()
    transcript.restore(_restored_entries(value.entries, table), value.count, value.forgotten)
    return transcript


def _restored_entries(entries: Iterable[SavedEntry], table: tuple[Message, ...]) -> Iterator[Entry]:
    for it in entries:
        if it.shares is None:
            yield it.entry
        else:
            yield msgspec.structs.replace(it.entry, content=_listed((it.shares,), table)[0].content)


def _listed(numbers: tuple[int, ...], table: tuple[Message, ...]) -> list[Message]:
    """Raises ValueError for a number that no message has."""
    if numbers and not 0 <= min(numbers) <= max(numbers) < len(table):
        raise ValueError("a saved list names a message that was not saved with it")
    return [table[number] for number in numbers]

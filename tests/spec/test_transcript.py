"""The transcript: everything ever said, from the reducer of the live context, in pages and as it grows."""

import asyncio
from typing import Any

import pytest
from event_logs import answered, compaction, events, finished, fold, logs, said, text
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lockstitch import Agent, Session
from lockstitch.agent.messages import folding
from lockstitch.history.context import Context
from lockstitch.history.live_messages import KEPT_REWRITES
from lockstitch.history.transcript import Entry, Page, PageFold, Transcript
from lockstitch.schema import events as log
from lockstitch.schema.events import Body, Clear, LegacyCompaction, TurnEnd, TurnStart, Undo
from lockstitch.schema.messages import Message
from lockstitch.session.memory_store import MemoryStore
from lockstitch.testing.scripted_model import ScriptedModel


def unbounded() -> Context:
    return Context(transcript=Transcript(10**9, 10**12))


def transcript(bodies: list[Body]) -> list[Entry]:
    return list(fold(bodies, unbounded()).transcript)


def words(entries: Any) -> list[str]:
    lines = []
    for entry in entries:
        said_text = " ".join(getattr(block, "text", "…") for block in entry.content)
        lines.append(f"{entry.kind or entry.role}: {said_text}".rstrip(": ").rstrip())
    return lines


def words_of(message: Message) -> str:
    return " ".join(getattr(block, "text", "…") for block in message.content)


def turn(number: int, *bodies: Body) -> list[Body]:
    return [TurnStart(number), *bodies, TurnEnd(number, "completed")]


TWO = [*turn(1, said("u1"), answered("a1")), *turn(2, said("u2"), answered("a2"))]

ENTRIES: dict[str, tuple[list[Body], list[str]]] = {
    "what was said, in the order of the log": (
        TWO,
        ["user: u1", "assistant: a1", "user: u2", "assistant: a2"],
    ),
    "a compaction is a mark with its summary, and takes nothing back": (
        [*TWO, *compaction(None)],
        ["user: u1", "assistant: a1", "user: u2", "assistant: a2", "compaction: SUM"],
    ),
    "a compaction that was not applied is none": (
        [*turn(1, said("u1")), *compaction(None, applied=False), *compaction(None, " ")],
        ["user: u1"],
    ),
    "undo and clear are marks": (
        [*TWO, Undo(2), Clear(), *turn(3, said("u3"))],
        ["user: u1", "assistant: a1", "user: u2", "assistant: a2", "undo", "clear", "user: u3"],
    ),
    "an undo of nothing is no mark": ([*turn(1, said("u1")), Undo(9)], ["user: u1"]),
    "a compaction by an older version": (
        [*TWO, LegacyCompaction(text("OLD"), 3)],
        ["user: u1", "assistant: a1", "user: u2", "assistant: a2", "legacy_compaction: OLD"],
    ),
    "a result stands where it was logged": (
        [TurnStart(1), answered("a", "c"), said("u"), finished(1, 0)],
        ["assistant: a …", "user: u", "tool: …"],
    ),
}


@pytest.mark.parametrize(("bodies", "lines"), ENTRIES.values(), ids=ENTRIES.keys())
def test_entries(bodies: list[Body], lines: list[str]) -> None:
    assert words(transcript(bodies)) == lines


def test_ids_are_those_of_the_log() -> None:
    bodies = [TurnStart(1), said("u1"), answered("a1", "c"), finished(2, 0), Clear()]
    assert [(entry.seq, entry.id) for entry in transcript(bodies)] == [
        (1, "u1"),
        (2, "a1"),
        (3, "tool-3"),
        (4, "clear-4"),
    ]


# ---- what must hold ----


@given(logs())
@settings(deadline=None, max_examples=50)
def test_a_fold_of_the_log_is_as_long_as_the_live_context(bodies: list[Body]) -> None:
    live = Context()
    for count, event in enumerate(events(bodies), 1):
        live.apply(event)
        assert len(fold(bodies[:count]).messages) == len(live.messages)


@given(logs())
@settings(deadline=None, max_examples=50)
def test_the_transcript_only_ever_grows_at_its_end(bodies: list[Body]) -> None:
    before: list[Entry] = []
    for count in range(len(bodies) + 1):
        now = transcript(bodies[:count])
        assert now[: len(before)] == before
        before = now
    seqs = [entry.seq for entry in before]
    assert seqs == sorted(set(seqs)), "each event makes at most one entry"


@given(logs(), st.data())
@settings(deadline=None, max_examples=50)
def test_the_flushed_part_and_the_live_tail_are_the_whole(bodies: list[Body], data: st.DataObject) -> None:
    flushed = data.draw(st.integers(0, len(bodies)))
    live = Context(transcript=Transcript(max_entries=data.draw(st.integers(1, 40))))
    fold(bodies, live)
    page = PageFold(limit=500)
    stored = folding(page)
    for event in events(bodies[:flushed]):
        stored.apply(event)
    assume(live.transcript.forgotten < flushed)  # what memory let go is on the disk: reading flushes first
    page.take_all(live.transcript)
    assert list(page.page.entries) == transcript(bodies)


@given(logs())
@settings(deadline=None, max_examples=50)
def test_every_live_message_is_in_the_transcript(bodies: list[Body]) -> None:
    context = fold(bodies, unbounded())
    known = {entry.seq for entry in context.transcript}
    summaries = {event.seq for event in events(bodies) if isinstance(event.body, log.CompactionSummary)}
    assert {message.seq for message in context.messages} <= known | summaries


# ---- pages ----


def entries_of(count: int) -> list[Entry]:
    roles = ["user", "assistant", "tool", "marker"]
    return [Entry(n * 3, f"e{n}", 0, roles[n % 4]) for n in range(count)]  # type: ignore[arg-type]


def page_of(entries: list[Entry], **cursor: Any) -> Page:
    fold_of = PageFold(**cursor)
    fold_of.take_all(entries)
    return fold_of.page


@given(st.integers(0, 40), st.integers(1, 9), st.sampled_from([None, ("user",), ("user", "tool")]))
def test_pages_backwards_and_forwards_give_everything_once(count: int, limit: int, roles: Any) -> None:
    entries = entries_of(count)
    wanted = [entry for entry in entries if roles is None or entry.role in roles]
    backwards: list[Entry] = []
    cursor, more = None, True
    while more:
        page = page_of(entries, before=cursor, limit=limit, roles=roles)
        backwards = [*page.entries, *backwards]
        cursor, more = page.older, page.older is not None
    assert backwards == wanted
    forwards: list[Entry] = []
    cursor = -1
    while found := page_of(entries, after=cursor, limit=limit, roles=roles).entries:
        assert len(found) == limit or found[-1] == wanted[-1]
        forwards += found
        cursor = found[-1].seq
    assert forwards == wanted


def test_roles_are_filtered_before_entries_are_counted() -> None:
    page = page_of(entries_of(40), limit=3, roles=["marker"])
    assert [entry.id for entry in page.entries] == ["e31", "e35", "e39"]
    assert page.older == 93


def test_an_entry_that_is_both_stored_and_live_is_shown_once() -> None:
    entries = entries_of(10)
    fold_of = PageFold(limit=20)
    fold_of.take_all(entries[:8])
    fold_of.take_all(entries[4:])
    assert list(fold_of.page.entries) == entries


def test_what_is_held_is_bounded_by_number_and_by_size() -> None:
    held = Transcript(max_entries=5, max_chars=1_000)
    for entry in entries_of(20):
        held.add(entry)
    assert ([entry.id for entry in held], held.count, held.forgotten) == (
        ["e15", "e16", "e17", "e18", "e19"],
        20,
        42,
    )
    held.add(Entry(99, "large", 0, "user", text("x" * 5_000)))
    assert [entry.id for entry in held] == ["large"]
    assert held.since(57) == [*held]
    assert held.since(50) is None
    assert held.since(99) == []


# ---- undo without end ----


@given(logs())
@settings(deadline=None, max_examples=80)
def test_an_undo_however_far_back_is_that_of_a_fold_that_forgets_nothing(bodies: list[Body]) -> None:
    all_rewrites = frozenset(range(len(bodies)))
    everything = fold(bodies, Context(kept_rewrites=all_rewrites))
    live = fold(bodies)
    if live.needed:
        live = fold(bodies, Context(kept_rewrites=frozenset(live.needed)))
    assert not live.needed
    if not any(isinstance(body, log.CompactionStart) and body.keep_from_seq for body in bodies):
        assert list(live.messages) == list(everything.messages)
        assert live.facts == everything.facts


def test_an_undo_behind_more_compactions_than_are_kept_says_what_it_needs() -> None:
    bodies = turn(1, said("u1"), answered("a1"))
    for number in range(2, KEPT_REWRITES + 4):
        bodies += [*compaction(None, f"S{number}"), *turn(number, said(f"u{number}"))]
    bodies.append(Undo(2))
    lost = fold(bodies)
    assert lost.needed
    again = fold(bodies, Context(kept_rewrites=frozenset(lost.needed)))
    assert [message.content for message in again.messages] == [text("S2")]


# ---- an open session ----


def agent_of(store: MemoryStore, *answers: Any, **options: Any) -> Agent:
    model = ScriptedModel({"answers": list(answers), "then": {"text": "Fine."}})
    return Agent(model, store=store, environ={}, **options)


async def test_pages_of_a_session_reach_back_behind_what_memory_holds() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        for number in range(1, 13):
            await session.send(f"prompt {number}").result()
        await session.compact()
        context = session._parts.world.context
        context.transcript = small(context.transcript)
        latest = await session.transcript.page(limit=2)
        assert len(latest.entries) == 2
        everything: list[Entry] = []
        cursor = None
        while True:
            page = await session.transcript.page(before=cursor, limit=5)
            everything = [*page.entries, *everything]
            cursor = page.older
            if cursor is None:
                break
        said_by_user = await session.transcript.page(after=-1, limit=100, roles=["user"])
    assert [e.turn for e in said_by_user.entries] == list(range(1, 13))
    assert [e.role for e in everything[:4]] == ["user", "assistant"] * 2
    assert len({e.seq for e in everything}) == len(everything) >= 24


def small(whole: Transcript) -> Transcript:
    """A transcript that has forgotten all but the last entries."""
    kept = Transcript(max_entries=3)
    for entry in whole:
        kept.add(entry)
    return kept


async def test_a_subscription_misses_nothing_and_repeats_nothing() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        await session.send("before").result()
        context = session._parts.world.context
        context.transcript = small(context.transcript)
        seen: list[Entry] = []
        slow: list[Entry] = []

        async def watch() -> None:
            async for entry in session.transcript.subscribe():
                seen.append(entry)

        async def watch_slowly() -> None:
            async for entry in session.transcript.subscribe(roles=["user", "marker"]):
                slow.append(entry)
                await asyncio.sleep(0.01)

        watching = [asyncio.ensure_future(watch()), asyncio.ensure_future(watch_slowly())]
        for number in range(8):
            await session.send(f"prompt {number}").result()
        await session.undo(2)
        await session.clear()
        everything = (await session.transcript.page(after=-1, limit=100)).entries
    await asyncio.gather(*watching)
    assert [entry.seq for entry in seen] == [entry.seq for entry in everything]
    assert [entry.seq for entry in slow] == [e.seq for e in everything if e.role in ("user", "marker")]
    assert words(everything)[-2:] == ["undo", "clear"]


async def test_a_subscription_from_a_cursor_begins_behind_it() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        await session.send("one").result()
        cursor = session._parts.world.context.transcript.latest
        await session.send("two").result()
        stream = session.transcript.subscribe(cursor)
        assert (await anext(stream)).content == text("two")
        await stream.aclose()


async def test_undo_rewind_and_clear_are_durable_and_free_of_turns_that_were_undone() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        for number in range(1, 6):
            await session.send(f"prompt {number}").result()
        assert await session.undo() == 5
        assert await session.undo(2) == 3
        assert len(session.messages) == 4
        await session.send("other").result()
    async with agent_of(store).open("s") as session:
        assert len(session.messages) == 6
        with pytest.raises(Exception, match="there is no turn 4 to go back to; the last that count: 1, 2, 6"):
            await session.rewind(4)
        await session.rewind(2)
        assert len(session.messages) == 4
        await session.rewind(0)
        assert len(session.messages) == 0
        with pytest.raises(Exception, match="1 turns cannot be undone: the conversation has 0"):
            await session.undo()
    async with agent_of(store).open("s") as session:
        await session.send("again").result()
        await session.clear()
        assert len(session.messages) == 0
        page = await session.transcript.page(limit=100)
    assert [entry.kind for entry in page.entries if entry.kind] == ["undo", "undo", "undo", "undo", "clear"]


async def test_a_rewind_behind_many_compactions_reads_the_log_again() -> None:
    store = MemoryStore()
    answer = {"text": "Goal: go on. Done: a little."}
    async with agent_of(store, *[answer] * 40).open("s") as session:
        for number in range(1, KEPT_REWRITES + 4):
            await session.send(f"prompt {number} " + "word " * 400).result()
            assert await session.compact() is not None
            if number == 1:
                first = list(session.messages)
        await session.rewind(1)
        assert list(session.messages) == first
        await session.send("and on").result()
        after = list(session.messages)
    async with agent_of(store).open("s") as session:
        assert list(session.messages) == after


async def compacted_turns(session: Session, count: int) -> None:
    """Turns that are compacted away one by one, so that memory keeps only the last few."""
    for _ in range(count):
        turn = await session.send("a prompt").result()
        session._parts.world.append(*compaction(None, f"SUM{turn.turn}"))


async def test_a_second_undo_far_back_keeps_what_the_first_needed() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        await compacted_turns(session, 8)
        await session.rewind(3)
        await session.send("what counts").result()
        await compacted_turns(session, 6)
        await session.rewind(9)
        shown = [words_of(message) for message in session.messages]
    async with agent_of(store).open("s") as session:
        assert [words_of(message) for message in session.messages] == shown
    assert shown == ["SUM3", "what counts", "Fine."]


async def test_input_that_is_queued_while_an_undo_reads_the_log_again_is_not_lost() -> None:
    store = MemoryStore()
    async with agent_of(store).open("s") as session:
        await compacted_turns(session, 8)
        read_log = session._parts.read_log

        async def reading(fold: Any) -> None:
            await read_log(fold)
            await session.follow_up("typed meanwhile")

        session._parts.read_log = reading
        await session.rewind(2)
        assert session.queued == ("typed meanwhile",)
        assert not session._parts.world.context.needed

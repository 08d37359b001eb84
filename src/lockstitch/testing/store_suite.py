"""What every session store must do: a suite to run over yours.

Subclass ``StoreSuite`` in a pytest module, with asyncio tests, and provide the fixture ``stored``: an object
with the three methods of ``StoredSessions``. Each test gets a fresh one.
"""

import asyncio
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Protocol

from lockstitch.schema.blocks import BlobSource, Image, Text, ToolCall
from lockstitch.schema.errors import (
    CallerError,
    GateError,
    SessionBusyError,
    SessionCorruptionError,
    SessionReadOnlyError,
)
from lockstitch.schema.events import (
    FORMAT_VERSION,
    AssistantDelta,
    AssistantMessage,
    AttemptStart,
    Body,
    Event,
    NoteEvent,
    SessionRepaired,
    SessionStart,
    StepStart,
    Title,
    ToolCallStarted,
    ToolFinished,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.messages import Message
from lockstitch.session.blobs import GONE_TEXT, BlobLostError, with_media
from lockstitch.session.store import SessionLog, SessionStore
from lockstitch.wire.jsonl import encode

from .session_samples import a_tool_turn, every_kind

HOSTILE_IDS = ("../x", "a/b", ".", "..", "nul\0", "ü~2f", "-", " ", "con", "x" * 1000, "~", "a.b", ".hidden")
"""Ids that a store has to take, each as a session of its own."""


class StoredSessions(Protocol):
    """A place of sessions, as the suite needs it."""

    def store(self) -> SessionStore:
        """A store of that place; called again, it sees what the one before it kept."""
        ...

    def read_log(self, session_id: str) -> bytes:
        """The record lines of a session that is not open."""
        ...

    def write_log(self, session_id: str, data: bytes) -> None:
        """Put ``data`` in the place of a session's record lines, whatever it is."""
        ...


class StoreSuite:
    """The tests. Names are the promises."""

    byte_step: ClassVar[int] = 1
    """Every how many bytes a log is cut and damaged; a slow store may leave some to the others."""

    # --- what is taken is read back -------------------------------------------------------------------------

    async def test_every_kind_of_event_is_read_back_as_it_was_appended(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s", cwd="/somewhere")
        appended = [event for body in every_kind() for event in log.append(body)]
        await log.close()
        await store.close()
        events, log = await reopened(stored, "s")
        assert events[0].body == SessionStart(FORMAT_VERSION, "s", "/somewhere")
        assert events[1:] == appended
        assert not log.report.mended and log.state.defects == 0

    async def test_a_refused_event_leaves_the_log_as_it_was(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        before = stored.read_log("s")
        store = stored.store()
        log = await store.open("s")
        state = log.state.snapshot()
        with raising(GateError):
            log.append(TurnStart(2), TurnStart(3))
        assert log.state == state
        await log.close()
        await store.close()
        assert stored.read_log("s") == before

    async def test_an_empty_call_id_is_refused_before_a_byte_is_written(self, stored: StoredSessions) -> None:
        await written(stored, "s", [])
        before = stored.read_log("s")
        store = stored.store()
        log = await store.open("s")
        opened: list[Body] = [TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1)]
        with raising(GateError):
            log.append(*opened, AssistantMessage("m", (ToolCall("", "read", "{}"),), "tool_calls"))
        with raising(GateError):
            log.append(*opened, AssistantMessage("m", (ToolCall("a", "", "{}"),), "tool_calls"))
        await log.close()
        await store.close()
        assert stored.read_log("s") == before

    async def test_lone_surrogates_become_replacement_characters(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s")
        (event,) = log.append(NoteEvent("a\ud800", {"k\udfff": ["\ud834", "😀"]}))
        assert event.body == NoteEvent("a\ufffd", {"k\ufffd": ["\ufffd", "😀"]})
        await log.close()
        await store.close()
        events, _ = await reopened(stored, "s")
        assert events[1] == event

    async def test_events_appended_and_flushed_at_once_keep_their_order(self, stored: StoredSessions) -> None:
        store = stored.store()
        logs = [await store.open(f"s{number}") for number in range(4)]

        async def fill(log: SessionLog) -> None:
            for number in range(25):
                log.append(Title(f"{log.id}-{number}"))
                await log.flush()

        await asyncio.gather(*(fill(log) for log in logs for _ in range(2)))
        for log in logs:
            await log.close()
        await store.close()
        for log in logs:
            events, _ = await reopened(stored, log.id)
            assert [event.seq for event in events] == list(range(51))

    async def test_a_cancelled_flush_still_keeps_what_was_taken(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s")
        log.append(Title("kept"))
        flushing = asyncio.ensure_future(log.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        with raising(asyncio.CancelledError):
            await flushing
        await log.close()
        await store.close()
        events, _ = await reopened(stored, "s")
        assert events[1].body == Title("kept")

    async def test_a_blob_is_read_back_or_known_to_be_lost(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s")
        data = bytes(range(256)) * 5000
        source = await asyncio.to_thread(log.blobs.put, data)
        assert await asyncio.to_thread(log.blobs.put, data) == source
        await log.close()
        await store.close()
        store = stored.store()
        view = await store.open("s", read_only=True)
        assert await asyncio.to_thread(view.blobs.get, source.sha256) == data
        for unknown in ("0" * 64, "../log.jsonl", ""):
            with raising(BlobLostError):
                view.blobs.get(unknown)
        image = Message("user", (Text("see"), Image("image/png", source)))
        gone = Message("user", (Image("image/png", BlobSource("0" * 64, 3)),))
        assert [type(block) for block in with_media([image], view.blobs)[0].content] == [Text, Image]
        assert with_media([gone], view.blobs)[0].content == (Text(GONE_TEXT),)
        await store.close()

    # --- one writer -----------------------------------------------------------------------------------------

    async def test_a_second_writer_is_refused_until_the_first_closes(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s")
        with raising(SessionBusyError):
            await store.open("s")
        await log.close()
        await (await store.open("s")).close()
        await store.close()

    async def test_a_read_only_view_shows_an_open_session_and_takes_nothing(
        self, stored: StoredSessions
    ) -> None:
        store = stored.store()
        log = await store.open("s")
        log.append(TurnStart(1), UserMessage("u", (Text("hi"),)))
        await log.flush()
        seen: list[Event] = []
        view = await store.open("s", read_only=True, fold=seen.append)
        assert [event.seq for event in seen] == [0, 1, 2]
        assert view.read_only and view.state.turn_open
        with raising(SessionReadOnlyError):
            view.append(Title("no"))
        await view.flush()
        await view.close()
        log.append(TurnEnd(1, "completed"))
        await log.close()
        await store.close()

    async def test_a_closed_session_takes_nothing(self, stored: StoredSessions) -> None:
        store = stored.store()
        log = await store.open("s")
        await log.close()
        with raising(CallerError):
            log.append(Title("late"))
        await store.close()

    # --- names ----------------------------------------------------------------------------------------------

    async def test_any_text_is_an_id_but_the_empty_one(self, stored: StoredSessions) -> None:
        store = stored.store()
        for session_id in HOSTILE_IDS:
            log = await store.open(session_id)
            log.append(Title(session_id))
            await log.close()
        assert {info.id for info in await store.list()} == set(HOSTILE_IDS)
        for session_id in HOSTILE_IDS:
            events: list[Event] = []
            await store.open(session_id, read_only=True, fold=events.append)
            assert events[1].body == Title(session_id)
        for impossible in ("", "\ud800", "x" * 100_000):
            with raising(CallerError):
                await store.open(impossible)
        await store.close()

    async def test_an_unknown_session_is_not_made_unless_asked_for(self, stored: StoredSessions) -> None:
        store = stored.store()
        with raising(CallerError):
            await store.open("s", create=False)
        with raising(CallerError):
            await store.open("s", read_only=True)
        with raising(CallerError):
            await store.check("s")
        assert await store.list() == []
        await store.close()

    # --- interruption and damage ----------------------------------------------------------------------------

    async def test_an_interruption_is_closed_once_and_always_the_same(self, stored: StoredSessions) -> None:
        bodies = a_tool_turn(1)[:7]
        await written(stored, "s", bodies)
        broken = stored.read_log("s")
        first, _ = await reopened(stored, "s")
        assert [type(event.body) for event in first[8:]] == [
            SessionRepaired,
            ToolFinished,
            ToolFinished,
            *(type(body) for body in a_tool_turn(1)[-2:]),
        ]
        outcomes = [event.body.outcome for event in first if isinstance(event.body, ToolFinished)]
        assert outcomes == ["not_started", "unknown"]
        assert {event.time_ms for event in first[8:]} == {first[7].time_ms}
        mended = stored.read_log("s")
        assert await reopened_events(stored, "s") == first
        assert stored.read_log("s") == mended
        stored.write_log("s", broken)
        assert await reopened_events(stored, "s") == first

    async def test_an_interrupted_answer_keeps_what_was_shown(self, stored: StoredSessions) -> None:
        deltas: list[Body] = [AssistantDelta(0, "reasoning", " "), AssistantDelta(1, "text", "half a sen")]
        start: list[Body] = [TurnStart(1), StepStart(1, 1), AttemptStart(1, 1, 1, input_estimate=40)]
        await written(stored, "s", [*start, *deltas])
        events, log = await reopened(stored, "s")
        answers = [event.body for event in events if isinstance(event.body, AssistantMessage)]
        assert [answer.content for answer in answers] == [(Text("half a sen"),)]
        assert answers[0].finish == "interrupted"
        assert answers[0].usage is not None and answers[0].usage.estimated
        assert (answers[0].usage.input_tokens, answers[0].usage.output_tokens) == (40, 4)
        assert log.report.closed_attempts == 1

    async def test_a_log_cut_at_any_byte_opens_and_goes_on(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        whole = stored.read_log("s")
        store = stored.store()
        for cut in range(0, len(whole), self.byte_step):
            stored.write_log("s", whole[:cut])
            events = await opened_and_continued(store, "s")
            complete = whole[: cut + 1].count(b'"}\n')  # a record that only lacks its newline is complete
            assert [event.seq for event in events] == list(range(len(events)))
            assert len(events) >= complete
            assert all(event.defect is None for event in events)
        await store.close()

    async def test_no_flipped_byte_costs_another_event_than_its_own(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        whole = stored.read_log("s")
        intact = await reopened_events(stored, "s")
        lines = whole.split(b"\n")
        store = stored.store()
        for offset in range(0, len(whole), self.byte_step):
            damaged = bytearray(whole)
            damaged[offset] ^= 1 << (offset % 8)
            stored.write_log("s", bytes(damaged))
            struck = whole[:offset].count(b"\n")
            is_newline = offset == sum(len(line) + 1 for line in lines[: struck + 1]) - 1
            report = await store.check("s")
            assert report.set_aside + report.torn_bytes > 0, f"flipped byte {offset} not reported"
            bodies = [event.body for event in await opened_and_continued(store, "s")]
            for event in intact:
                assert (event.seq == struck and not is_newline) or event.body in bodies, (offset, event)
        await store.close()

    async def test_strange_bytes_between_records_are_skipped(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        lines = stored.read_log("s").splitlines(keepends=True)
        intact = await reopened_events(stored, "s")
        strange = {
            "glued records": b"".join(line.rstrip(b"\n") for line in lines),
            "other line ends": b"".join(line.replace(b"\n", b"\r\n") for line in lines),
            "a byte order mark": b"\xef\xbb\xbf" + b"".join(lines),
            "a hole of zeros": b"".join(lines[:3]) + b"\0" * 4096 + b"".join(lines[3:]),
            "a line of zeros": b"".join(lines[:3]) + b"\0" * 99 + b"\n" + b"".join(lines[3:]),
            "blank lines": b"\n\n".join(line.rstrip(b"\n") for line in lines) + b"\n",
            "a foreign line": b"".join(lines[:5]) + b'{"role":"user"}\n' + b"".join(lines[5:]),
            "a torn record before a whole one": b"".join(lines[:5]) + lines[5][:20] + b"".join(lines[5:]),
            "no newline at the end": b"".join(lines).rstrip(b"\n"),
            "a record twice": b"".join(lines[:6]) + lines[5] + b"".join(lines[6:]),
        }
        store = stored.store()
        for name, data in strange.items():
            stored.write_log("s", data)
            events = await opened_and_continued(store, "s")
            kept = [event for event in events if not isinstance(event.body, SessionRepaired)]
            assert kept == intact, name
        await store.close()

    async def test_damage_is_told_once(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        lines = stored.read_log("s").splitlines(keepends=True)
        stored.write_log("s", b"".join([*lines[:3], b"junk\n", *lines[3:]]))
        for _ in range(3):
            events, log = await reopened(stored, "s")
            repairs = [event.body for event in events if isinstance(event.body, SessionRepaired)]
            assert [repair.set_aside for repair in repairs] == [1]
            assert log.report.set_aside == 1

    async def test_strict_opening_and_checking_write_nothing(self, stored: StoredSessions) -> None:
        await written(stored, "s", a_tool_turn(1))
        whole = stored.read_log("s")
        for damaged in (whole[:-9], b"junk\n" + whole, whole.replace(b"turn_start", b"turn_stars")):
            stored.write_log("s", damaged)
            store = stored.store()
            with raising(SessionCorruptionError):
                await store.open("s", strict=True)
            assert not (await store.check("s")).sound
            await store.close()
            assert stored.read_log("s") == damaged

    # --- logs that something else broke, or a newer version wrote -------------------------------------------

    async def test_a_log_that_breaks_the_rules_opens_shows_and_continues(
        self, stored: StoredSessions
    ) -> None:
        bad: list[Body] = [
            SessionStart(FORMAT_VERSION, "s"),
            StepStart(1, 1),
            AssistantMessage("", (ToolCall("", "read", "{}"), ToolCall("x", "", "{}")), "tool_calls"),
            ToolFinished(2, 0, "", (Text("orphan"),), "done"),
            ToolFinished(99, 5, "lost", (Text("orphan"),), "done"),
            ToolCallStarted(2, 1, "x", ""),
            TurnStart(1),
            AssistantMessage("m", (ToolCall("d", "read", "{}"), ToolCall("d", "read", "{}")), "tool_calls"),
            TurnEnd(1, "completed"),
            TurnEnd(7, "completed"),
        ]
        await written(stored, "s", [])
        lines = [encode(seq, 1_000 + seq, body) for seq, body in enumerate(bad)]
        stored.write_log("s", b"".join(lines))
        events, log = await reopened(stored, "s")
        assert [event.body for event in events[: len(bad)]] == bad
        assert [event.seq for event in events if event.defect is not None] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        answered = [event.body for event in events[len(bad) :] if isinstance(event.body, ToolFinished)]
        assert [(answer.message_seq, answer.position) for answer in answered] == [(7, 0), (7, 1)]
        assert log.report.defects == 9
        store = stored.store()
        assert await opened_and_continued(store, "s")
        await store.close()

    async def test_a_newer_log_is_shown_but_not_continued(self, stored: StoredSessions) -> None:
        start = encode(0, 5, SessionStart(FORMAT_VERSION, "s"))
        newer = {
            "format": encode(0, 5, SessionStart(FORMAT_VERSION + 1, "s")) + encode(1, 6, Title("t")),
            "kind": start + foreign_record(1, needed=True),
        }
        await written(stored, "s", [])
        for name, data in newer.items():
            stored.write_log("s", data)
            events, log = await reopened(stored, "s")
            assert len(events) == 2, name
            assert log.read_only and log.report.read_only, name
            with raising(SessionReadOnlyError):
                log.append(Title("no"))
            assert stored.read_log("s") == data, name

    async def test_a_kind_that_nobody_needs_does_not_stop_a_session(self, stored: StoredSessions) -> None:
        await written(stored, "s", [])
        start = encode(0, 5, SessionStart(FORMAT_VERSION, "s"))
        stored.write_log("s", start + foreign_record(1, needed=False))
        store = stored.store()
        events = await opened_and_continued(store, "s")
        await store.close()
        assert [event.needed for event in events[:2]] == [True, False]


def foreign_record(seq: int, *, needed: bool) -> bytes:
    """A record line of a kind that no version knows."""
    line = encode(seq, 9, NoteEvent("x", {"a": 1}))[: -len(b',"crc":"00000000"}\n')]
    line = line.replace(
        b'"note","needed":false', b'"from_the_future"' + (b"" if needed else b',"needed":false')
    )
    return line + b',"crc":"%08x"}\n' % zlib.crc32(line)


async def written(stored: StoredSessions, session_id: str, bodies: Sequence[Body]) -> None:
    """Make a session that holds ``bodies``, and leave it as a killed process would."""
    store = stored.store()
    log = await store.open(session_id)
    for body in bodies:
        log.append(body)
    await log.close()
    await store.close()


async def reopened(stored: StoredSessions, session_id: str) -> tuple[list[Event], SessionLog]:
    """Open and close the session in a new store; the events it was opened with."""
    store = stored.store()
    events: list[Event] = []
    log = await store.open(session_id, fold=events.append)
    await log.close()
    await store.close()
    return events, log


async def reopened_events(stored: StoredSessions, session_id: str) -> list[Event]:
    return (await reopened(stored, session_id))[0]


async def opened_and_continued(store: SessionStore, session_id: str) -> list[Event]:
    """Open the session and run one more turn in it; then it must be sound where it was continued.

    The events it was opened with are returned.
    """
    events: list[Event] = []
    log = await store.open(session_id, fold=events.append)
    appended: list[Event] = []
    for body in a_tool_turn(log.state.next_seq, log.state.turns + 1):
        appended += log.append(body)
    await log.close()
    again: list[Event] = []
    view = await store.open(session_id, read_only=True, fold=again.append)
    assert again[-len(appended) :] == appended
    assert again == [*events, *appended]
    assert view.report.torn_bytes == 0 and not view.state.turn_open
    return events


@contextmanager
def raising(error: type[BaseException]) -> Iterator[None]:
    """The block must raise ``error``: pytest is not imported by what users import."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")

"""A log that is read from a checkpoint on gives what the whole log gives: all values, and all bytes after."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import pytest
from event_logs import answered, compaction, events, finished, fold, logs, said
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_logs import fold_values, random_walk, sound_logs
from test_any_log import BODIES
from test_session_cases import LOGS
from test_work_counts import calls_of

from lockstitch.agent.carried import Carried
from lockstitch.agent.rewriting import complete
from lockstitch.agent.session_fold import SessionFold, _SavedCarried
from lockstitch.history.context import Context
from lockstitch.history.live_messages import KEPT_REWRITES
from lockstitch.history.saved_context import SavedContext, restored, saved, snapshot
from lockstitch.history.transcript import MAX_ENTRIES
from lockstitch.schema.events import KINDS, Body, Clear, Event, Prune, SessionStart, TurnEnd, TurnStart, Undo
from lockstitch.session import checkpoint as checkpoints
from lockstitch.session.checkpoint import Checkpoint, LogDigest
from lockstitch.session.log_reader import LogReader
from lockstitch.session.log_reading import LogBytes, read_behind, read_whole
from lockstitch.session.mending import implied_start, mend, open_report
from lockstitch.testing.session_samples import a_tool_turn, every_kind
from lockstitch.wire.jsonl import encode

KEY = b"k" * 32


def lines_of(bodies: list[Body]) -> list[bytes]:
    return [encode(seq, 1_000 + seq, body) for seq, body in enumerate(bodies)]


def log_of(data: bytes, piece_bytes: int = 1 << 16) -> LogBytes:
    def pieces(start: int, end: int) -> Iterator[bytes]:
        return (
            data[at : min(at + piece_bytes, end)] for at in range(start, min(end, len(data)), piece_bytes)
        )

    return LogBytes(len(data), pieces)


class Opened(NamedTuple):
    """Everything that an opening finds and does."""

    state: Any
    report: Any
    end: tuple[int | None, bool]
    damage: Any
    mended: bytes
    fold: dict[str, Any]


def opened(reader: LogReader, damage: Any, fold: SessionFold) -> Opened:
    report = open_report(reader)
    end = (reader.scanner.end_offset, reader.scanner.unterminated)
    mended = mend(reader, implied_start("s", ""), file="", fold=fold).data
    return Opened(reader.state.snapshot(), report, end, damage, mended, fold_values(fold))


def from_beginning(data: bytes) -> Opened:
    fold = SessionFold()
    reading = read_whole(log_of(data), "s", fold)
    return opened(reading.reader, reading.damage, fold)


def decoded(stored: bytes) -> Checkpoint | None:
    line, _, rest = stored.partition(b"\n")
    header = checkpoints.decode_header(line, SessionFold.version, KEY)
    return None if header is None else checkpoints.decode(header, rest)


def from_checkpoint(stored: bytes, data: bytes, piece_bytes: int = 1 << 16) -> Opened | None:
    checkpoint = decoded(stored)
    assert checkpoint is not None
    if len(data) < checkpoint.length:
        return None
    fold = SessionFold()
    reading = read_behind(checkpoint, len(stored), log_of(data, piece_bytes), "s", fold)
    return None if reading is None else opened(reading.reader, reading.damage, fold)


def checkpoints_of(lines: list[bytes]) -> Iterator[bytes]:
    """One behind each record."""
    fold, digest = SessionFold(), LogDigest()
    reader = LogReader("s", fold)
    for line in lines:
        reader.feed(line)
        digest.feed(line)
        assert reader.is_sound
        made = Checkpoint(digest.length, digest.value, reader.state.snapshot(), fold.save()())
        yield checkpoints.encode(made, fold.version, KEY)


SOUND: dict[str, list[Body]] = {
    "every kind of event": [SessionStart(1, "s"), *every_kind()],
    "three turns with tools": [
        SessionStart(1, "s"),
        *(body for turn in range(3) for body in a_tool_turn(1 + 12 * turn, turn + 1)),
    ],
    **{f"a random session ({seed})": random_walk(seed, 300) for seed in range(4)},
}


@pytest.mark.parametrize("bodies", SOUND.values(), ids=SOUND)
def test_any_checkpoint_of_a_session_and_the_rest_of_its_log_are_the_whole(bodies: list[Body]) -> None:
    lines = lines_of(bodies)
    whole = from_beginning(b"".join(lines))
    for stored in checkpoints_of(lines):
        assert from_checkpoint(stored, b"".join(lines)) == whole


@given(bodies=sound_logs(), data=st.data())
@settings(deadline=None, max_examples=60)
def test_also_of_a_log_that_was_cut_anywhere_behind_it(bodies: list[Body], data: st.DataObject) -> None:
    lines = lines_of(bodies)
    made = list(checkpoints_of(lines))
    at = data.draw(st.integers(0, len(lines) - 1))
    log = b"".join(lines)
    begin = len(b"".join(lines[: at + 1]))
    cut = data.draw(st.integers(begin, len(log)))
    piece = data.draw(st.sampled_from([1, 7, 100, 1 << 16]))
    assert from_checkpoint(made[at], log[:cut], piece) == from_beginning(log[:cut])


def test_every_cut_behind_every_checkpoint_of_one_session() -> None:
    lines = lines_of([SessionStart(1, "s"), *a_tool_turn(1)])
    log = b"".join(lines)
    whole = [from_beginning(log[:cut]) for cut in range(len(log) + 1)]
    begin = 0
    for line, stored in zip(lines, checkpoints_of(lines), strict=True):
        begin += len(line)
        for cut in range(len(log) + 1):
            expected = whole[cut] if cut >= begin else None
            assert from_checkpoint(stored, log[:cut]) == expected


@given(bodies=sound_logs(40), data=st.data(), flip=st.integers(1, 255))
@settings(deadline=None, max_examples=150)
def test_damage_is_left_to_a_reading_of_the_whole(bodies: list[Body], data: st.DataObject, flip: int) -> None:
    lines = lines_of(bodies)
    made = list(checkpoints_of(lines))
    at = data.draw(st.integers(0, len(lines) - 1))
    log = bytearray(b"".join(lines))
    offset = data.draw(st.integers(0, len(log) - 1))
    log[offset] ^= flip
    found = from_checkpoint(made[at], bytes(log))
    if offset < len(b"".join(lines[: at + 1])):
        assert found is None
    else:
        assert found is None or found == from_beginning(bytes(log))


LINES = lines_of([SessionStart(1, "s"), *a_tool_turn(1)])
FIVE = b"".join(LINES[:5])
ODD_TAILS = {
    "a record from before, again": LINES[2],
    "a record from before, with other content": encode(2, 7, LINES and SessionStart(1, "x")),
    "a number that was skipped": LINES[6],
    "a record that breaks the rules": encode(5, 7, SessionStart(1, "x")),
    "bytes that are no record": b"garbage\n",
    "a record inside of damage": b"garbage " + LINES[5],
}


@pytest.mark.parametrize("tail", ODD_TAILS.values(), ids=ODD_TAILS)
def test_what_only_the_whole_can_judge_is_left_to_it(tail: bytes) -> None:
    stored = list(checkpoints_of(LINES))[4]
    assert from_checkpoint(stored, FIVE + tail) is None
    assert from_checkpoint(stored, FIVE + LINES[5]) == from_beginning(FIVE + LINES[5])


HARMLESS_TAILS = {
    "nothing": b"",
    "an unfinished record": LINES[5][:-20],
    "a record without its newline": LINES[5][:-1],
    "empty lines": b"\n\r\n" + LINES[5],
    "a kind nobody needs": LINES[5] + b"\n",
}


@pytest.mark.parametrize("tail", HARMLESS_TAILS.values(), ids=HARMLESS_TAILS)
def test_what_a_crash_leaves_is_read_behind_it(tail: bytes) -> None:
    stored = list(checkpoints_of(LINES))[4]
    found = from_checkpoint(stored, FIVE + tail)
    assert found is not None
    assert found == from_beginning(FIVE + tail)


# --- the stored form ---------------------------------------------------------------------------------------


def test_no_flipped_byte_of_a_checkpoint_goes_unnoticed() -> None:
    stored = list(checkpoints_of(LINES))[-1]
    for offset in range(len(stored)):
        for flip in (1, 0x20, 0xFF):
            damaged = bytearray(stored)
            damaged[offset] ^= flip
            assert decoded(bytes(damaged)) is None
    for cut in range(len(stored)):
        assert decoded(stored[:cut]) is None


def signed(header: dict[str, Any], rest: bytes) -> bytes:
    """A checkpoint that says anything, by somebody who has the key."""
    head = msgspec.json.encode(header)[:-1]
    return b'%s,"mac":"%s"}\n%s' % (head, checkpoints._mac(KEY, head), rest)


def parts(stored: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The header without its MAC, the state, the fold."""
    header, state, fold = map(msgspec.json.decode, stored.splitlines())
    del header["mac"]
    return header, state, fold


STORED = list(checkpoints_of(LINES))[-1]
NONSENSE = [None, -1, 0, 2**70, "x", [], {}, [[]], True, 1.5]


@pytest.mark.parametrize("name", parts(STORED)[0])
def test_a_header_that_says_something_else_is_another_checkpoints(name: str) -> None:
    header, state, fold = parts(STORED)
    rest = msgspec.json.encode(state) + b"\n" + msgspec.json.encode(fold) + b"\n"
    assert decoded(signed(header, rest)) is not None
    for value in [value for value in NONSENSE if value != header[name]]:
        found = decoded(signed({**header, name: value}, rest))
        assert found is None or name in ("bytes", "sha256")
        if found is not None:
            assert found.length > 0 or name != "bytes"
            log = log_of(b"".join(LINES))
            assert found.length > log.size or read_behind(found, 0, log, "s", SessionFold()) is None


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a JSON value something else could stand."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[at[0]] = replaced(copied[at[0]], at[1:], by)
    return copied


def test_nonsense_anywhere_in_the_saved_state_never_raises() -> None:
    """Somebody who has the key may get other state by it, but no session that cannot be opened."""
    header, state, fold = parts(STORED)
    log = log_of(b"".join(LINES) + LINES[5])
    for which, whole in (("state", state), ("fold", fold)):
        for at in paths(whole):
            for nonsense in NONSENSE:
                lines = {"state": state, "fold": fold, which: replaced(whole, at, nonsense)}
                rest = b"".join(msgspec.json.encode(line) + b"\n" for line in lines.values())
                about = {"state_bytes": len(rest), "state_sha256": sha256(rest).hexdigest()}
                found = decoded(signed({**header, **about}, rest))
                if found is not None:
                    read_behind(found, len(rest), log, "s", SessionFold())


# --- the fold ----------------------------------------------------------------------------------------------


def folded(taken: list[Event], fold: SessionFold | None = None) -> SessionFold:
    fold = fold or SessionFold()
    for event in taken:
        fold(event)
    return fold


def again(fold: SessionFold) -> SessionFold:
    other = SessionFold()
    other.restore(fold.save()(), fold.next_seq)
    return other


@given(bodies=st.one_of(logs(), st.lists(BODIES, max_size=30), sound_logs()), at=st.integers(0, 200))
@settings(deadline=None, max_examples=300)
def test_a_fold_that_was_saved_anywhere_goes_on_as_if_it_had_not_been(bodies: list[Body], at: int) -> None:
    """Whatever the log holds: also one that the gate refuses, of which no checkpoint is ever made."""
    taken = events(bodies)
    at %= len(taken) + 1
    assert fold_values(folded(taken[at:], again(folded(taken[:at])))) == fold_values(folded(taken))


CASES: dict[str, list[Body]] = {**LOGS, **SOUND}


@pytest.mark.parametrize("bodies", CASES.values(), ids=CASES)
def test_so_does_that_of_a_recorded_session_saved_anywhere(bodies: list[Body]) -> None:
    taken = events(bodies)
    whole = fold_values(folded(taken))
    for at in range(len(taken) + 1):
        assert fold_values(folded(taken[at:], again(folded(taken[:at])))) == whole


@st.composite
def undone_far_back(draw: st.DrawFn) -> list[Body]:
    """Turns and compactions, and undos that go behind more of them than a context keeps."""
    bodies: list[Body] = []
    for turn in range(1, draw(st.integers(5, 16))):
        bodies += [TurnStart(turn), said(f"u{turn}"), answered(f"a{turn}", "c")]
        bodies.append(finished(len(bodies) - 1, 0, f"result {turn} " + "x" * 30))
        bodies.append(TurnEnd(turn, "completed"))
        live = [m.seq for m in fold(bodies).messages if m.seq is not None]
        keep = draw(st.none() | st.sampled_from(live)) if live else None
        move = draw(st.sampled_from(["compact"] * 6 + ["clear", "prune", "undo", "undo", "nothing"]))
        match move:
            case "compact":
                bodies += compaction(keep, f"SUM{turn}", prompts=tuple(live[:2]))
            case "clear":
                bodies.append(Clear())
            case "prune":
                bodies.append(Prune(tuple(live[-3:]), 4, 2))
            case "undo":
                bodies.append(Undo(draw(st.integers(1, turn))))
            case _:
                pass
    return bodies


@given(bodies=st.one_of(undone_far_back(), logs(40), sound_logs(200)), at=st.integers(0, 400))
@settings(deadline=None, max_examples=200)
async def test_an_undo_however_far_back_is_the_same_behind_a_checkpoint(bodies: list[Body], at: int) -> None:
    """As an agent does it: the log is folded again where an undo needs more than memory had kept."""
    taken = events(bodies)
    at %= len(taken) + 1
    before = folded(taken[:at])

    async def complete_at(fold: SessionFold, end: int) -> None:
        async def read_log(take: Any) -> None:
            for event in taken[:end]:
                take(event)

        await complete(fold, read_log)

    await complete_at(before, at)
    behind = folded(taken[at:], again(before))
    await complete_at(behind, len(taken))
    whole = folded(taken)
    was_incomplete = bool(whole.context.needed)
    await complete_at(whole, len(taken))
    found, expected = fold_values(behind), fold_values(whole)
    if was_incomplete:
        # It counts how often the messages were changed, also by folding again; only later counts matter.
        del found["context"]["epoch"], expected["context"]["epoch"]
    assert found == expected


def test_every_message_is_saved_once() -> None:
    bodies = random_walk(3, 400)
    context = folded(events(bodies)).context
    value = saved(context)
    assert len(context._live.rewrites) > 1
    held = [*context.messages, *(message for it in context._live.rewrites for message in it.before)]
    assert len(value.table) == len({id(message) for message in held}) < len(held)
    entry_contents = [it.entry.content for it in value.transcript.entries if it.shares is not None]
    assert entry_contents and set(entry_contents) == {()}


def test_a_snapshot_is_not_changed_by_what_comes_later() -> None:
    for seed in range(20):
        taken = events(random_walk(seed, 200))
        half = folded(taken[: len(taken) // 2])
        before = saved(half.context)
        kept = snapshot(half.context)
        folded(taken[len(taken) // 2 :], half)
        assert saved(kept) == before


def test_every_attribute_of_a_context_is_saved() -> None:
    """A new one must be saved and restored, or the context made anew what it is not told of."""
    fields = set(SavedContext.__struct_fields__) - {"table", "live"}
    attributes = {name.lstrip("_") for name in vars(Context())} - {"live"}
    assert fields == attributes


def test_every_attribute_of_what_a_turn_takes_over_is_saved() -> None:
    assert set(_SavedCarried.__struct_fields__) == {name.lstrip("_") for name in vars(Carried())}


def test_random_sessions_hold_every_kind_of_event() -> None:
    kinds = {type(body) for seed in range(12) for body in random_walk(seed, 300)}
    assert kinds == set(KINDS.values())


def test_a_restored_context_keeps_messages_that_are_the_same_one() -> None:
    context = folded(events(random_walk(3, 400))).context
    back = restored(msgspec.json.decode(msgspec.json.encode(saved(context)), type=SavedContext))
    held = {id(message) for it in back._live.rewrites for message in it.before}
    live = {id(message) for message in back.messages}
    was_held = {id(message) for it in context._live.rewrites for message in it.before}
    was_live = {id(message) for message in context.messages}
    assert (len(held), len(live), len(held & live)) == (
        len(was_held),
        len(was_live),
        len(was_held & was_live),
    )


# --- work --------------------------------------------------------------------------------------------------


def test_behind_a_checkpoint_an_opening_takes_the_same_steps_however_long_the_log_is() -> None:
    """Bytes are counted by bench/; here no step of Python may depend on what lies in front."""

    def steps(turns: int) -> Any:
        bodies: list[Body] = [SessionStart(1, "s")]
        for turn in range(1, turns + 1):
            bodies += [*a_tool_turn(len(bodies), turn), Clear()]
        bodies += [*(Clear() for _ in range(KEPT_REWRITES)), *(Clear() for _ in range(MAX_ENTRIES))]
        lines = lines_of(bodies)
        fold, digest = SessionFold(), LogDigest()
        reader = LogReader("s", fold)
        for line in lines:
            reader.feed(line)
            digest.feed(line)
        made = Checkpoint(digest.length, digest.value, reader.state.snapshot(), fold.save()())
        stored = checkpoints.encode(made, fold.version, KEY)
        log = b"".join(lines) + encode(len(lines), 0, TurnStart(turns + 1))
        counted = calls_of(lambda: from_checkpoint(stored, log, len(log)))
        del counted[
            "gc_cumulative_time.<locals>.gc_callback"
        ]  # hypothesis listens to the collector of garbage
        return counted

    assert steps(200) == steps(20)

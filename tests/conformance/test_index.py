"""Listing and searching: what the index knows, and that nothing depends on it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lockstitch.schema.blocks import Text
from lockstitch.schema.events import (
    AssistantMessage,
    AttemptFailed,
    AttemptStart,
    Body,
    RequestHeader,
    StepEnd,
    StepStart,
    Title,
    ToolCallStarted,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.failures import failure
from lockstitch.schema.usage import Usage
from lockstitch.session import listing
from lockstitch.session.file_store import FileStore
from lockstitch.session.index import MARKS
from lockstitch.session.index_text import match_query, searchable, spaced
from lockstitch.session.listing import INDEX_NAME
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.scan import Scanner
from lockstitch.session.sqlite_store import INDEX_SUFFIX, SqliteStore
from lockstitch.session.store import SessionKeeper
from lockstitch.testing.session_samples import a_tool_turn

Make = Callable[[], SessionKeeper]


@pytest.fixture(params=["files", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    stores: dict[str, Make] = {
        "files": lambda: FileStore(tmp_path / "sessions"),
        "sqlite": lambda: SqliteStore(tmp_path / "s.db", durable=False),
    }
    return stores[request.param]


@pytest.fixture
async def store(make: Make) -> AsyncIterator[SessionKeeper]:
    made = make()
    yield made
    await made.close()


def a_talk(said: str, answer: str, turn: int = 1) -> list[Body]:
    return [
        RequestHeader("generic", "m"),
        TurnStart(turn),
        UserMessage(f"u{turn}", (Text(said),)),
        StepStart(turn, 1),
        AttemptStart(turn, 1, 1),
        AttemptFailed(failure("SERVER", "x"), Usage(10, 0)),
        AttemptStart(turn, 1, 2),
        AssistantMessage(f"m{turn}", (Text(answer),), "stop", "generic", "m", Usage(100, 20)),
        StepEnd(turn, 1),
        TurnEnd(turn, "completed"),
    ]


async def talked(store: SessionKeeper, session_id: str, said: str, answer: str, cwd: str = "/work") -> None:
    log = await store.open(session_id, cwd=cwd)
    log.append(*a_talk(said, answer))
    await log.close()


async def test_a_listing_says_what_a_session_is_about_and_cost(store: SessionKeeper) -> None:
    await talked(store, "a", "\n  make it faster  \nplease", "done")
    await talked(store, "b", "hello", "hi")
    log = await store.open("b")
    log.append(Title("a greeting"))
    await log.close()
    listed = {info.id: info for info in await store.list()}
    assert (listed["a"].title, listed["b"].title) == ("make it faster", "a greeting")
    assert listed["a"].cwd == "/work" and listed["a"].turns == 1
    assert listed["a"].usage == Usage(110, 20)
    assert listed["a"].usage_by_model == {"generic:m": Usage(110, 20)}
    assert listed["a"].problem is None and listed["a"].created_ms is not None


async def test_the_latest_session_comes_first(store: SessionKeeper) -> None:
    for number, session_id in enumerate("bac"):
        log = await store.open(session_id)
        log.append(Title(session_id), time_ms=2_000_000_000_000 + number)
        await log.close()
    assert [info.id for info in await store.list()] == ["c", "a", "b"]


async def test_an_index_that_is_missing_or_damaged_is_made_again(make: Make, tmp_path: Path) -> None:
    first = make()
    await talked(first, "a", "find the needle", "here")
    expected = await first.list()
    await first.close()
    (path,) = [path for path in tmp_path.rglob("*") if path.name.endswith((INDEX_NAME, INDEX_SUFFIX))]
    damages: list[Callable[[], object]] = [
        path.unlink,
        lambda: path.write_bytes(b"no database" * 999),
        lambda: _flip(path),
    ]
    for damage in damages:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        damage()
        store = make()
        assert await store.list() == expected
        assert [hit.id for hit in await store.search("needle")] == ["a"]
        await store.close()


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for offset in range(200, len(data), 97):
        data[offset] ^= 0xFF
    path.write_bytes(data)


async def test_without_a_usable_index_sessions_are_listed_from_their_logs(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await talked(store, "a", "x", "y")
    await store.close()
    (tmp_path / INDEX_NAME).unlink()
    (tmp_path / INDEX_NAME).mkdir()
    for store in (FileStore(tmp_path), FileStore(tmp_path, index=False)):
        assert [(info.id, info.cwd) for info in await store.list()] == [("a", "/work")]
        await (await store.open("a")).close()
        await store.close()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from lockstitch.session.file_store import FileStore
from lockstitch.session.sqlite_store import SqliteStore
from lockstitch.schema.blocks import Text
from lockstitch.schema.events import TurnStart, UserMessage

async def die():
    place = Path(sys.argv[1])
    store = SqliteStore(place) if place.suffix else FileStore(place)
    log = await store.open(sys.argv[2])
    turn = log.state.turns + 1
    log.append(TurnStart(turn), UserMessage("u", (Text(sys.argv[3]),)))
    await log.flush()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(die())
"""


@pytest.mark.parametrize("place", ["sessions", "s.db"])
async def test_what_a_killed_process_said_is_found(place: str, tmp_path: Path) -> None:
    def make() -> SessionKeeper:
        return SqliteStore(tmp_path / place) if "." in place else FileStore(tmp_path / place)

    store = make()
    await talked(store, "known", "x", "y")
    await store.close()
    for session_id in ("known", "new"):
        subprocess.run(
            [sys.executable, "-c", KILLED, tmp_path / place, session_id, "an unusual word"], check=False
        )
    store = make()
    assert {info.id: info.title for info in await store.list()} == {"known": "x", "new": "an unusual word"}
    assert sorted(hit.id for hit in await store.search("unusual")) == ["known", "new"]
    await store.close()


async def test_a_session_that_is_being_written_stays_marked(make: Make) -> None:
    writer, reader = make(), make()
    log = await writer.open("s")
    for word in ("first", "second", "third"):
        log.append(Title(word))
        await log.flush()
        assert [info.title for info in await reader.list()] == [word]
    await log.close()
    await writer.close()
    await reader.close()


async def test_a_listing_looks_at_the_latest_known_sessions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    for number in range(20):
        log = await store.open(f"s{number}")
        log.append(Title("x"), time_ms=number)
        await log.close()
    await store.close()
    store = FileStore(tmp_path)
    looked: list[str] = []
    stat, opened = Path.stat, os.open
    monkeypatch.setattr(listing, "VERIFIED_MAX", 2)
    monkeypatch.setattr(Path, "stat", lambda path, **_: looked.append(str(path)) or stat(path))
    monkeypatch.setattr(os, "open", lambda path, *rest: looked.append(str(path)) or opened(path, *rest))
    assert len(await store.list()) == 20
    monkeypatch.undo()
    await store.close()
    logs = [path for path in looked if path.endswith("log.jsonl")]
    assert logs == [str(tmp_path / "s19" / "log.jsonl"), str(tmp_path / "s18" / "log.jsonl")]


async def test_a_log_that_changed_on_the_disk_is_noticed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await talked(store, "s", "a needle", "y")
    assert [info.problem for info in await store.list()] == [None]
    path = tmp_path / "s" / "log.jsonl"
    path.write_bytes(path.read_bytes().replace(b"needle", b"noodle"))
    assert [info.problem for info in await store.list()] == ["1 damaged places in its log"]
    path.unlink()
    (info,) = await store.list()
    assert "cannot be read" in (info.problem or "")
    await store.close()


async def test_damage_is_listed(store: SessionKeeper) -> None:
    await talked(store, "s", "x", "y")
    pieces: list[bytes] = []
    await store.copy_log("s", pieces.append)
    await store.rewrite_log("s", [b"garbage\n", *pieces])
    (info,) = await store.list()
    assert info.problem == "1 damaged places in its log"
    await store.rewrite_log("s", [*pieces, b'{"seq":'])
    (info,) = await store.list()
    assert info.problem == "its log ends in an unfinished record"
    await (await store.open("s")).close()
    (info,) = await store.list()
    assert info.problem is None


async def test_sessions_that_went_or_came_by_hand_are_noticed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for session_id in ("a", "b", "c"):
        await talked(store, session_id, f"about {session_id}", "y")
    assert len(await store.list()) == 3
    await store.remove("a")
    (tmp_path / "b").rename(tmp_path / "renamed")
    assert {info.id: info.title for info in await store.list()} == {"c": "about c", "renamed": "about b"}
    assert await store.search("about a y") == []
    await store.close()


async def test_another_session_of_the_same_id_is_another_one(store: SessionKeeper) -> None:
    await talked(store, "s", "the old one", "y")
    await store.list()
    await store.remove("s")
    await talked(store, "s", "the new one, which is longer", "y")
    (info,) = await store.list()
    assert (info.title, info.turns) == ("the new one, which is longer", 1)
    assert await store.search("old") == []


# --- search ------------------------------------------------------------------------------------------------

FOUND = {
    "one word": ("needle", ["en"]),
    "a word of an answer": ("haystack", ["en"]),
    "the beginning of a word": ("hayst", ["en"]),
    "all words must occur": ("needle haystack", ["en"]),
    "words of two events are not one": ("needle über", []),
    "another case and no accents": ("UBER", ["de"]),
    "words side by side": ('"the needle"', ["en"]),
    "words not side by side": ('"needle the"', []),
    "an open quotation": ('"the needle', ["en"]),
    "a character of a script without blanks": ("算", ["zh"]),
    "characters side by side": ("算法", ["zh"]),
    "characters not side by side": ("法算", []),
    "words beside such characters": ("bug 算法", ["zh"]),
    "kana": ("カタ", ["ja"]),
    "syntax is only text": ("needle OR NOT NEAR(x) -y *", []),
    "a star": ("needle*", ["en"]),
    "a column is only text": ("text:needle", []),
    "nothing": ("", []),
    "no word": ("--- *** ()", []),
    "a zero": ("\0", []),
}


@pytest.fixture
async def library(make: Make) -> AsyncIterator[SessionKeeper]:
    store = make()
    await talked(store, "en", "find the needle", "it is in the haystack, needle and all", "/work/a")
    await talked(store, "de", "wie groß über alles", "sehr", "/work/ab")
    await talked(store, "zh", "修复算法中的 bug", "好", "/work/a/b")
    await talked(store, "ja", "カタカナ", "はい", "/work/a/b")
    yield store
    await store.close()


@pytest.mark.parametrize(("words", "expected"), FOUND.values(), ids=FOUND)
async def test_search(words: str, expected: list[str], library: SessionKeeper) -> None:
    assert sorted({hit.id for hit in await library.search(words)}) == expected


async def test_a_hit_shows_the_words_around(library: SessionKeeper) -> None:
    hits = await library.search("算法")
    assert [(hit.id, hit.title, hit.kind, hit.seq) for hit in hits] == [("zh", "修复算法中的 bug", "user", 3)]
    assert hits[0].snippet == f"修复{MARKS[0]}算法{MARKS[1]}中的 bug"


async def test_a_search_keeps_to_a_folder_and_a_number(library: SessionKeeper) -> None:
    everything = [hit.id for hit in await library.search("find") + await library.search("bug")]
    assert sorted(everything) == ["en", "zh"]
    assert [hit.id for hit in await library.search("bug", cwd="/work/a/b/")] == ["zh"]
    assert [hit.id for hit in await library.search("bug", cwd="/work/a")] == ["zh"]
    assert await library.search("bug", cwd="/work/ab") == []
    assert len(await library.search("needle", limit=1)) == 1
    assert await library.search("needle", limit=0) == []


async def test_memory_can_be_searched_too() -> None:
    store = MemoryStore()
    await talked(store, "a", "find the Needle", "ok")
    assert [hit.id for hit in await store.search("needle find")] == ["a"]
    assert await store.search("") == []
    await store.close()


def test_a_query_is_never_syntax() -> None:
    assert match_query('a"b') == '"a"* "b"*' or match_query('a"b')
    assert match_query("x'; DROP TABLE--") == '"x\';" "DROP" "TABLE--"*'
    assert spaced("plain") == "plain"


def test_what_is_searched_is_bounded() -> None:
    kind, text = searchable(UserMessage("u", (Text("x" * 1_000_000),))) or ("", "")
    assert kind == "user" and len(text) < 30_000
    assert searchable(ToolCallStarted(1, 0, "a", "b")) is None


async def test_two_processes_may_index_at_once(make: Make) -> None:
    stores = [make() for _ in range(4)]
    await asyncio.gather(*(talked(store, f"s{n}", f"word{n}", "y") for n, store in enumerate(stores)))
    listings = await asyncio.gather(*(store.list() for store in stores))
    assert all({info.id for info in listing} == {"s0", "s1", "s2", "s3"} for listing in listings)
    for store in stores:
        await store.close()


def test_a_scanner_goes_on_where_another_stopped() -> None:
    from lockstitch.schema.events import SessionStart
    from lockstitch.session.intake import admit
    from lockstitch.session.log_state import LogState

    state = LogState()
    data = admit(state, [SessionStart(1, "s"), *a_tool_turn(1)], 0).data
    cut = data.index(b'{"seq":6')
    scanner = Scanner(after=5)
    items = scanner.feed(data[cut:])
    assert [item.seq for item in items if hasattr(item, "seq")] == list(range(6, 13))

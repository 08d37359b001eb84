"""Bundles from strangers: nothing is made of a hostile one, and what it takes to find that out is bounded."""

import asyncio
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstitch.schema.errors import CallerError, StorageError
from lockstitch.schema.events import SessionStart, Title
from lockstitch.session import bundle as bundles
from lockstitch.session import file_create
from lockstitch.session.bundle import export_session, import_session
from lockstitch.session.file_store import FileStore
from lockstitch.session.memory_store import MemoryStore
from lockstitch.session.migration import CURRENT
from lockstitch.wire.jsonl import encode

LOG = encode(0, 0, SessionStart(CURRENT, "s")) + encode(1, 1, Title("a"))
BLOB = b"picture" * 100


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def member(name: str, data: bytes, **other: Any) -> dict[str, Any]:
    return {"name": name, "bytes": len(data), "sha256": sha(data), **other}


def manifest(*members: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps(
        {"kind": "lockstitch-session", "format": 1, "id": "s", "members": members, **fields}
    ).encode()


def write(path: Path, *held: tuple[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", packing) as made:
        for name, data in held:
            made.writestr(name, data)


GOOD_LOG = member("log.jsonl", LOG)
GOOD_BLOB = member(f"blobs/{sha(BLOB)}", BLOB)
ZEROS = b"\0" * 5_000_000
NEGATIVE = {"name": "blobs/0", "bytes": -9_000_000, "sha256": "0"}
OUTSIDE = {"name": "blobs/../../x", "bytes": 1, "sha256": "../../x"}
HOSTILE: dict[str, tuple[list[tuple[str, bytes]], str]] = {
    "a log named three times": (
        [("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, GOOD_LOG, GOOD_LOG))],
        "names a member twice",
    ),
    "a blob named twice": (
        [("log.jsonl", LOG), ("b", BLOB), ("manifest.json", manifest(GOOD_LOG, GOOD_BLOB, GOOD_BLOB))],
        "names a member twice",
    ),
    "a bomb, honestly named": (
        [("log.jsonl", ZEROS), ("manifest.json", manifest(member("log.jsonl", ZEROS)))],
        r"unpacks to 5,000,000 bytes, and the limit is 1,000,000: raise it",
    ),
    "a bomb that is named small": (
        [("log.jsonl", ZEROS), ("manifest.json", manifest(member("log.jsonl", LOG)))],
        "is not what its manifest says",
    ),
    "sizes that cancel each other out": (
        [("log.jsonl", ZEROS), ("manifest.json", manifest(member("log.jsonl", ZEROS), NEGATIVE))],
        "no session bundle: Expected `int` >= 0",
    ),
    "a path outside": (
        [("log.jsonl", LOG), ("../x", b"x"), ("manifest.json", manifest(GOOD_LOG, member("../x", b"x")))],
        "'../x', which is no part of a session",
    ),
    "a path outside that is called a hash": (
        [("log.jsonl", LOG), ("blobs/../../x", b"x"), ("manifest.json", manifest(GOOD_LOG, OUTSIDE))],
        "is not what its manifest says",
    ),
    "an absolute path": (
        [("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, member("/etc/passwd", b"x")))],
        "which is no part of a session",
    ),
    "a log in capitals": (
        [("LOG.JSONL", LOG), ("manifest.json", manifest(member("LOG.JSONL", LOG)))],
        "holds no log",
    ),
    "a name of a megabyte": (
        [("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, member("x" * 1_000_000, b"x")))],
        r"holds '.{100}', which",
    ),
    "an id of a megabyte": (
        [("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, id="x" * 1_000_000))],
        "at most 4096 characters",
    ),
    "an empty id": ([("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, id=""))], "not empty"),
    "an id that is no text": (
        [("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, id=7))],
        "no session bundle",
    ),
    "a kind of a megabyte": ([("manifest.json", manifest(kind="x" * 1_000_000))], r"holds a '.{100}', not"),
    "a newer version that looks otherwise": (
        [("manifest.json", b'{"kind":"lockstitch-session","format":2,"parts":{}}')],
        "has format 2; this version reads 1",
    ),
    "a manifest that is too long": (
        [("manifest.json", b" " * (bundles.MANIFEST_MAX_BYTES + 1))],
        "its manifest has 16,777,217 bytes",
    ),
    "a manifest of too many values": (
        [("manifest.json", b'{"members":[' + b"{}," * 1_000_000 + b"{}]}")],
        "its manifest holds too many values",
    ),
    "a manifest that is nested": ([("manifest.json", b'{"x":' + b"[" * 100_000)], "no session bundle"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_bundle_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    held, reason = HOSTILE[name]
    write(tmp_path / "b.zip", *held)
    store = FileStore(tmp_path / "store")
    with pytest.raises(CallerError, match=reason) as caught:
        await import_session(store, tmp_path / "b.zip", max_bytes=1_000_000)
    assert len(str(caught.value)) < 1000
    await store.close()
    assert [path for path in (tmp_path / "store").rglob("*") if path.name == "log.jsonl"] == []
    assert sorted(path.name for path in tmp_path.iterdir()) in (["b.zip"], ["b.zip", "store"])


async def test_the_limit_can_be_raised_and_is_exact(tmp_path: Path) -> None:
    path, store = tmp_path / "b.zip", MemoryStore()
    blob = (f"blobs/{sha(BLOB)}", BLOB)
    write(path, ("log.jsonl", LOG), blob, ("manifest.json", manifest(GOOD_LOG, GOOD_BLOB)))
    size = len(LOG) + len(BLOB)
    with pytest.raises(CallerError, match="unpacks to"):
        await import_session(store, path, max_bytes=size - 1)
    assert (await import_session(store, path, max_bytes=size)).id == "s"
    await store.close()


@pytest.mark.parametrize("session_id", ["../../x", "/etc/x", ".", "..", "a\nb\x1b[31m", "con", "x" * 4096])
async def test_a_hostile_id_is_one_name_in_the_store(session_id: str, tmp_path: Path) -> None:
    write(tmp_path / "b.zip", ("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG, id=session_id)))
    store = FileStore(tmp_path / "deep" / "store")
    await import_session(store, tmp_path / "b.zip")
    with pytest.raises(CallerError, match="already"):
        await import_session(store, tmp_path / "b.zip")
    await store.close()
    logs = list(tmp_path.rglob("log.jsonl"))
    assert [log.parent.parent for log in logs] == [tmp_path / "deep" / "store"]


async def test_members_that_the_manifest_does_not_name_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    write(path, ("log.jsonl", LOG), ("../more", ZEROS), ("manifest.json", manifest(GOOD_LOG)))
    store = FileStore(tmp_path / "store")
    await import_session(store, path, max_bytes=len(LOG))
    await store.close()
    assert list(tmp_path.rglob("more")) == []


async def test_a_link_in_a_bundle_is_only_its_bytes(tmp_path: Path) -> None:
    target = b"/etc/passwd"
    link = zipfile.ZipInfo("log.jsonl")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as made:
        made.writestr(link, target)
        made.writestr("manifest.json", manifest(member("log.jsonl", target)))
    store = FileStore(tmp_path / "store")
    await import_session(store, tmp_path / "b.zip")
    await store.close()
    (log,) = tmp_path.rglob("log.jsonl")
    assert not log.is_symlink()
    assert log.read_bytes() == target


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
async def test_other_packings_than_ours_are_refused(packing: int, tmp_path: Path) -> None:
    write(tmp_path / "b.zip", ("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG)), packing=packing)
    store = MemoryStore()
    with pytest.raises(CallerError, match="packed in a way that no bundle is"):
        await import_session(store, tmp_path / "b.zip")
    await store.close()


@pytest.mark.filterwarnings("ignore:Duplicate name")
async def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    held = [("log.jsonl", b"x"), ("log.jsonl", LOG), ("manifest.json", manifest(GOOD_LOG))]
    write(tmp_path / "b.zip", *held)
    store = MemoryStore()
    with pytest.raises(CallerError, match="two members of one name"):
        await import_session(store, tmp_path / "b.zip")
    await store.close()


async def test_a_long_table_of_contents_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "b.zip", *((f"{number}", b"") for number in range(100)))
    monkeypatch.setattr(bundles, "DIRECTORY_MAX_BYTES", 1_000)
    store = MemoryStore()
    with pytest.raises(CallerError, match="its table of contents has more than 1,000 bytes"):
        await import_session(store, tmp_path / "b.zip")
    await store.close()


async def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = MemoryStore()
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(CallerError, match="it is no file"):
            await import_session(store, path)
    await store.close()


# ---- what is left when it ends in the middle ---------------------------------------------------------------

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from lockstitch.session.bundle import import_session
from lockstitch.session.blobs import DirectoryBlobs
from lockstitch.session.file_store import FileStore
DirectoryBlobs.put = lambda self, data: os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(import_session(FileStore(Path(sys.argv[1])), Path(sys.argv[2])))
"""


async def test_a_killed_import_leaves_no_session_and_its_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, root = tmp_path / "b.zip", tmp_path / "store"
    blob = (f"blobs/{sha(BLOB)}", BLOB)
    write(path, ("log.jsonl", LOG), blob, ("manifest.json", manifest(GOOD_LOG, GOOD_BLOB)))
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED, str(root), str(path)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    rests = list(root.glob(f"{file_create.TEMPORARY_PREFIX}*"))
    assert [rest.joinpath("log.jsonl").read_bytes() for rest in rests] == [LOG]
    store = FileStore(root)
    assert await store.list() == []
    await import_session(store, path, new_id="t")
    assert all(rest.exists() for rest in rests), "it might belong to an import that just begins"
    monkeypatch.setattr(file_create, "UNFINISHED_S", 0)
    await import_session(store, path)
    assert list(root.glob(f"{file_create.TEMPORARY_PREFIX}*")) == []
    assert {info.id for info in await store.list()} == {"s", "t"}
    await store.close()


async def test_what_is_being_made_is_not_taken_for_a_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_create, "UNFINISHED_S", 0)
    store, other = FileStore(tmp_path), FileStore(tmp_path)
    seen = []

    def pieces() -> Iterator[bytes]:
        yield LOG
        asyncio.run(other.put_log("t", [LOG]))
        seen.append(len(list(tmp_path.glob(f"{file_create.TEMPORARY_PREFIX}*"))))

    await store.put_log("s", pieces())
    assert seen == [1]
    assert {info.id for info in await store.list()} == {"s", "t"}
    await store.close()
    await other.close()


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """As a full disk: writing beyond ``size`` bytes of a file fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room", [0, 10, 200, 20_000], ids=str)
async def test_a_full_disk_ends_an_export_with_a_reason_and_without_a_rest(room: int, tmp_path: Path) -> None:
    store = MemoryStore()
    await store.put_log("s", [LOG], [os.urandom(100_000)])
    with files_at_most(room), pytest.raises(StorageError, match="free space or name another place"):
        await export_session(store, "s", tmp_path / "s.zip")
    assert list(tmp_path.iterdir()) == []
    await export_session(store, "s", tmp_path / "s.zip")
    await store.close()


async def test_an_export_overwrites_nothing_that_came_meanwhile(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.put_log("s", [LOG])
    target = tmp_path / "s.zip"
    both = await asyncio.gather(
        *(export_session(store, "s", target) for _ in range(4)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in both) == ["CallerError"] * 3 + ["Manifest"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.zip"]
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CallerError, match="exists already"):
        await export_session(store, "s", tmp_path / "link")
    await import_session(MemoryStore(), target)
    await store.close()

"""Makes the log of a long session, with a checkpoint or without, in a process of its own.

So neither the memory nor the time that it takes counts as that of a contender.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import histories


def make(root: Path, options: Mapping[str, Any]) -> Path:
    """The session "bench" in the folder `root`: `events`, maybe `compacted` and how old its `checkpoint` is.

    That is `none`, `end` (of all events), or `oldest`: the next event would have another one written.
    """
    subprocess.run([sys.executable, __file__, str(root), json.dumps(options)], check=True)
    return root


def _make(log: Path, options: Mapping[str, Any]) -> None:
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        file.writelines(histories.lines(options["events"], compacted=options.get("compacted", True)))
    age = options.get("checkpoint", "none")
    if age != "none":
        asyncio.run(_save(log))
    if age == "oldest":
        _grow_older(log)


def _grow_older(log: Path) -> None:
    from lockstitch.session.saving import due_after

    whole = log.read_bytes()
    checkpoint = log.with_name("checkpoint.jsonl")
    behind = len(whole) - due_after(checkpoint.stat().st_size)
    # At the end of a turn, where an opening adds nothing that closes it.
    end = whole.index(b"\n", whole.rindex(b'"kind":"turn_end"', 0, behind)) + 1
    checkpoint.unlink()
    log.write_bytes(whole[:end])
    asyncio.run(_save(log))
    log.write_bytes(whole)


async def _save(log: Path) -> None:
    from lockstitch.agent.session_fold import SessionFold
    from lockstitch.session.file_store import FileStore

    store = FileStore(log.parents[1], index=False)
    await (await store.open(log.parent.name, create=False, fold=SessionFold())).close()
    await store.close()


if __name__ == "__main__":
    _make(Path(sys.argv[1]) / "bench" / "log.jsonl", json.loads(sys.argv[2]))

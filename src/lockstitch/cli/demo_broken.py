"""``lockstitch demo --broken-history``: a session that every provider refuses opens and goes on."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..schema.events import AttemptStart, Event, SessionRepaired, TurnEnd
from ..session.file_store import FileStore
from . import demo_story as story
from . import exit_codes
from .broken_history import log, naive_request
from .demo_checks import Check
from .demo_print import Narrator
from .demo_stage import WAIT_S, Stage

ANSWER = "total is sum_up everywhere now, in the tests too."


def play(folder: Path, tell: Narrator) -> list[Check]:
    """The story, told as it happens, and what must be true after it."""
    tell.title("A session that every provider refuses")
    with Stage(folder) as stage:
        stage.start_gateway([{"text": ANSWER}], "--wording", "opaque")
        model = story.MODEL.partition(":")[2]
        data, wrong = log(story.SESSION, str(stage.project), model)
        place = stage.home / "sessions" / story.SESSION
        place.mkdir(parents=True)
        (place / "log.jsonl").write_bytes(data)
        tell.line("the log", f"{len(wrong)} defects, as they were found in the field:")
        for what in wrong:
            tell.line("", what)
        status, said = _post(f"{stage.base_url}/chat/completions", naive_request(model))
        tell.line("gateway", f"sent as it is: HTTP {status}, in words that help nobody: {said}")

        tell.title(f"$ lockstitch run --session {story.SESSION} --continue")
        agent = stage.run_agent("--continue", show=tell.event)
        code = agent.wait()
        events = asyncio.run(_events(stage.home / "sessions"))
        found = list(_checks(stage, data, events, status))
        ended = {"exit code": code, "text": agent.lines[-1].get("text") if agent.lines else None}
        wanted = {"exit code": exit_codes.DONE, "text": ANSWER}
        found.append(Check("the turn came to its answer", ended == wanted, str(ended)))
    return found


def _checks(stage: Stage, data: bytes, events: list[Event], naive_status: int) -> Iterator[Check]:
    yield Check("the history as it is was refused", naive_status == 400, f"HTTP {naive_status}")
    posted = [entry for entry in stage.journal()["requests"] if entry["method"] == "POST"][1:]
    outcome = [(entry["status"], entry.get("refused")) for entry in posted]
    yield Check("Lockstitch's one request went through at once", outcome == [(200, None)], str(outcome))
    rungs = [event.body.rung for event in events if isinstance(event.body, AttemptStart)][-1:]
    yield Check("in full, not in a poorer form", rungs == ["normal"], str(rungs))
    place = stage.home / "sessions" / story.SESSION
    now = (place / "log.jsonl").read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    yield Check("no byte of the log was rewritten", now.startswith(whole), "the old records differ")
    torn = data[len(whole) :]
    kept = [path for path in (place / "damaged").rglob("*") if path.is_file() and torn in path.read_bytes()]
    yield Check("what was damaged is kept beside it", bool(kept), "no copy holds the unfinished record")
    reports = [event.body for event in events if isinstance(event.body, SessionRepaired)]
    counts = [(body.set_aside, body.torn_bytes, body.defects > 0) for body in reports]
    yield Check("the damage is told in the log", counts == [(1, len(torn), True)], str(counts))
    ends = [event.body.reason for event in events if isinstance(event.body, TurnEnd)]
    yield Check("the turn is closed", ends[-1:] == ["completed"], str(ends))


async def _events(root: Path) -> list[Event]:
    store = FileStore(root)
    events: list[Event] = []
    try:
        await (await store.open(story.SESSION, read_only=True, fold=events.append)).close()
    finally:
        await store.close()
    return events


def _post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    """Status and message of a request that is sent as it is."""
    request = urllib.request.Request(  # noqa: S310  # our own gateway
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310  # the same
            return answer.status, "accepted"
    except urllib.error.HTTPError as error:
        said = json.loads(error.read() or b"{}")
        return error.code, str(said.get("error", {}).get("message", "nothing"))

"""``lockstitch demo``: a real turn over HTTP, through the faults this project is about, and proof of it."""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from ..schema.events import AttemptFailed, AttemptStart, Event, RetryStarted
from ..schema.usage import Usage
from ..session.file_store import FileStore
from ..session.reports import CheckReport
from . import demo_story as story
from . import exit_codes
from .demo_checks import Check, Evidence, checks
from .demo_print import Narrator
from .demo_stage import Stage, gone_soon


@click.command("demo")
@click.option("--broken-history", is_flag=True, help="Go on with a session that every provider refuses.")
@click.option("--long", "long_talk", is_flag=True, help="Talk far beyond the model's window.")
@click.option("--keep", is_flag=True, help="Keep the folder with the project and the session.")
def demo(*, broken_history: bool, long_talk: bool, keep: bool) -> int:
    """See an agent turn survive a bad gateway and a SIGKILL, and check that it did.

    Needs no key and no network: the model is a script behind a mock gateway on loopback. Exits with 1 if
    anything differs from what must be.
    """
    folder = Path(tempfile.mkdtemp(prefix="lockstitch-demo-"))
    tell = Narrator()
    began = time.monotonic()
    try:
        if broken_history:
            from .demo_broken import play

            results = play(folder, tell)
            _tell_checks(tell, results)
        elif long_talk:
            from .demo_long import play as talk

            results = talk(tell)
            _tell_checks(tell, results)
        else:
            evidence = _play(folder, tell)
            results = checks(evidence)
            _tell_checks(tell, results)
            _tell_figures(tell, evidence, time.monotonic() - began)
        _tell_verdict(tell, results)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if keep:
        tell.line("kept", str(folder))
    return exit_codes.DONE if all(check.holds for check in results) else exit_codes.FAILED


def _play(folder: Path, tell: Narrator) -> Evidence:
    """The story, told as it happens; what it left behind."""
    tell.title("An agent turn through a bad gateway and a SIGKILL")
    with Stage(folder) as stage:
        failed_before = not stage.project_test_passes()
        tell.line("project", "a small till; its test fails, because a discount is taken for a factor")
        stage.start_gateway(story.answers(sys.executable))
        tell.line("gateway", f"{stage.base_url}, a process of its own that plays a bad provider")

        tell.title(f'$ lockstitch run --session {story.SESSION} --yes "{story.TASK}"')
        tell.line("gateway", "repeats each call's id and name as empty or null in later pieces")
        first = stage.run_agent(story.TASK, show=tell.event)
        pid = stage.await_sign_of_life(first)
        first.kill()
        tell.line("SIGKILL", f"the agent dies while its tool (process {pid}) runs")
        tool_gone = gone_soon(pid)

        tell.title(f"$ lockstitch run --session {story.SESSION} --yes --continue")
        second = stage.run_agent("--continue", show=tell.event)
        code = second.wait()
        if code != exit_codes.DONE:
            tell.line("differs", f"the agent ended with exit code {code}: {second.last_words()}")
        passes = stage.project_test_passes()
        events, report = asyncio.run(_stored(stage.home / "sessions"))
        return Evidence(
            events=events,
            report=report,
            journal=stage.journal()["requests"],
            lines=second.lines,
            exit_code=code,
            tool_gone=tool_gone,
            test_failed_before=failed_before,
            test_passes_after=passes,
            project=stage.project,
            home=stage.home,
            output="".join([*first.raw, *first.errors, *second.raw, *second.errors]),
        )


async def _stored(root: Path) -> tuple[list[Event], CheckReport]:
    """The session as it lies on disk, read without writing."""
    store = FileStore(root)
    events: list[Event] = []
    try:
        log = await store.open(story.SESSION, read_only=True, fold=events.append)
        await log.close()
        return events, await store.check(story.SESSION)
    finally:
        await store.close()


def _tell_checks(tell: Narrator, results: Sequence[Check]) -> None:
    tell.title("Checked in the log, the gateway's journal, the files and the processes")
    for check in results:
        tell.line("ok" if check.holds else "differs", check.sentence)
        if not check.holds:
            tell.line("", f"found: {check.found}")


def _tell_figures(tell: Narrator, seen: Evidence, seconds: float) -> None:
    failed = len(seen.bodies(AttemptFailed))
    tell.title("In figures")
    tell.table(
        [
            ("attempts", f"{len(seen.bodies(AttemptStart))}, of which {failed} failed"),
            ("retries", str(len(seen.bodies(RetryStarted)))),
            ("tokens billed", _spelled(seen.billed)),
            ("repairs", f"{seen.repairs} (the call that was running when the agent was killed)"),
            ("time", f"{seconds:.1f} s"),
        ]
    )


def _tell_verdict(tell: Narrator, results: Sequence[Check]) -> None:
    differing = sum(not check.holds for check in results)
    tell.title(
        "All as it must be."
        if not differing
        else f"{differing} of {len(results)} checks differ; please report this with the lines above."
    )


def _spelled(usage: Usage) -> str:
    cached = usage.cache_read_tokens or 0
    total = usage.input_tokens + cached + usage.output_tokens
    return f"{total} ({usage.input_tokens} in, {cached} from cache, {usage.output_tokens} out)"

"""``lockstitch sessions show``: what was said and done."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from ..schema.events import Event, Unknown
from ..session.choose import choose_store
from ..session.log_reader import kind_of
from ..session.reports import OpenReport
from . import exit_codes
from .sessions_list import FORM_VERSION
from .story import Story
from .story_text import text_of


@click.command("show")
@click.argument("session")
@click.option(
    "--store", metavar="STORE", help="files, files:DIR; default: LOCKSTITCH_STORE, or the usual place."
)
@click.option("--full", is_flag=True, help="Do not shorten long results.")
@click.option("--json", "as_json", is_flag=True, help="The events, one JSON object a line.")
def show(session: str, *, store: str | None, full: bool, as_json: bool) -> int:
    """Show SESSION as text. It is only read, so it may be open elsewhere, damaged, or of a newer version."""
    if as_json:
        report = asyncio.run(_read(session, store, _print_json))
    else:
        story = Story()
        report = asyncio.run(_read(session, store, story.add))
        story.id = story.id or session
        for line in text_of(story, full=full):
            sys.stdout.write(line + "\n")
    _tell(report)
    return exit_codes.DONE


async def _read(session_id: str, spec: str | None, fold: Callable[[Event], None]) -> OpenReport:
    store = choose_store(spec, os.environ)
    try:
        return (await store.open(session_id, read_only=True, fold=fold)).report
    finally:
        await store.close()


def _print_json(event: Event) -> None:
    fields: dict[str, Any] = {"v": FORM_VERSION, "seq": event.seq, "time_ms": event.time_ms}
    fields["kind"] = kind_of(event.body)
    if not event.needed:
        fields["needed"] = False
    if event.defect is not None:
        fields["defect"] = event.defect
    fields["data"] = msgspec.Raw(event.body.raw) if isinstance(event.body, Unknown) else event.body
    sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")


def _tell(report: OpenReport) -> None:
    damaged = report.torn_bytes or report.set_aside or report.missing or report.defects
    if damaged:
        click.echo("lockstitch: this session is damaged; `lockstitch sessions check` says where", err=True)
    if report.read_only and "read-only" not in report.read_only:
        click.echo(f"lockstitch: it can be shown but not continued: {report.read_only}", err=True)

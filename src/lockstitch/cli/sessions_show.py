"""``lockstitch sessions show``: what was said and done."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import click
import msgspec

from ..schema.events import Event, Unknown
from ..session.log_reader import kind_of
from ..session.reports import OpenReport
from ..session.store import SessionKeeper
from . import exit_codes
from .lines import tell
from .stores import json_option, print_json, store_option, with_store
from .story import Story
from .story_text import text_of


@click.command("show")
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html"]),
    default="text",
    show_default=True,
    help="html is one page that needs nothing else.",
)
@click.option("--full", is_flag=True, help="Do not shorten long results (text).")
@store_option
@json_option
def show(session: str, *, form: str, full: bool, store: str | None, as_json: bool) -> int:
    """Show SESSION. It is only read, so it may be open elsewhere, damaged, or of a newer version.

    --json prints the events instead, one a line.
    """
    story = Story()
    fold = _print_event if as_json else story.add
    report = with_store(store, lambda opened: _read(opened, session, fold))
    story.id = session
    if not as_json:
        lines = (line + "\n" for line in _lines(story, form, full=full))
        if form == "text" and sys.stdout.isatty():
            click.echo_via_pager(lines)
        else:
            for line in lines:
                sys.stdout.write(line)
    _tell(report)
    return exit_codes.DONE


async def _read(store: SessionKeeper, session_id: str, fold: Callable[[Event], None]) -> OpenReport:
    return (await store.open(session_id, read_only=True, fold=fold)).report


def _lines(story: Story, form: str, *, full: bool) -> Iterator[str]:
    match form:
        case "markdown":
            from .story_markdown import markdown_of

            return markdown_of(story)
        case "html":
            from .story_html import html_of

            return html_of(story)
        case _:
            return text_of(story, full=full)


def _print_event(event: Event) -> None:
    fields: dict[str, Any] = {"seq": event.seq, "time_ms": event.time_ms, "kind": kind_of(event.body)}
    if not event.needed:
        fields["needed"] = False
    if event.defect is not None:
        fields["defect"] = event.defect
    fields["data"] = msgspec.Raw(event.body.raw) if isinstance(event.body, Unknown) else event.body
    print_json(fields)


def _tell(report: OpenReport) -> None:
    damaged = report.torn_bytes or report.set_aside or report.missing or report.defects
    if damaged:
        tell("lockstitch: this session is damaged; `lockstitch sessions check` says where")
    if report.read_only and "read-only" not in report.read_only:
        tell(f"lockstitch: it can be shown but not continued: {report.read_only}")

"""``lockstitch sessions list``."""

import asyncio
import os
import sys

import click
import msgspec

from ..session.choose import choose_store
from ..session.reports import SessionInfo
from ..tools.text import clean
from . import exit_codes
from .story_text import time_text

FORM_VERSION = 1
"""Of the JSON lines: docs/cli.md."""


@click.command("list")
@click.option(
    "--store", metavar="STORE", help="files, files:DIR; default: LOCKSTITCH_STORE, or the usual place."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_sessions(*, store: str | None, as_json: bool) -> int:
    """List the stored sessions, newest first. One that is damaged is listed with its problem."""
    infos = asyncio.run(_infos(store))
    for info in infos:
        if as_json:
            fields = {"v": FORM_VERSION, **msgspec.to_builtins(info)}
            sys.stdout.write(msgspec.json.encode(fields).decode() + "\n")
        else:
            sys.stdout.write(_line(info) + "\n")
    if not infos and not as_json:
        click.echo("no sessions yet; `lockstitch run PROMPT` makes one", err=True)
    return exit_codes.DONE


async def _infos(spec: str | None) -> list[SessionInfo]:
    store = choose_store(spec, os.environ)
    try:
        return await store.list()
    finally:
        await store.close()


def _line(info: SessionInfo) -> str:
    when = time_text(info.updated_ms) if info.updated_ms is not None else "?" * 19
    parts = [when, info.id, info.title, info.cwd]
    if info.problem:
        parts.append(f"[damaged: {info.problem}]")
    return "  ".join(" ".join(clean(part).split()) for part in parts if part)

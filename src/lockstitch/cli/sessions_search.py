"""``lockstitch sessions search``."""

import sys
from pathlib import Path

import click
import msgspec

from ..session.index import MARKS
from ..session.reports import SearchHit
from ..tools.text import clean
from . import exit_codes
from .stores import json_option, print_json, store_option, with_store
from .story_text import time_text


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--cwd", metavar="DIR", help="Only sessions of this folder and below.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N")
@store_option
@json_option
def search(words: tuple[str, ...], *, cwd: str | None, limit: int, store: str | None, as_json: bool) -> int:
    """Find where all WORDS were said, in any session. The last may be the beginning of a word.

    Words in quotation marks must stand side by side.
    """
    folder = None if cwd is None else str(Path(cwd).expanduser().absolute())
    hits = with_store(store, lambda opened: opened.search(" ".join(words), cwd=folder, limit=limit))
    for hit in hits:
        if as_json:
            print_json(msgspec.to_builtins(hit))
        else:
            sys.stdout.write(_text(hit) + "\n")
    if not hits and not as_json:
        click.echo("nothing found", err=True)
    return exit_codes.DONE if hits else exit_codes.FAILED


def _text(hit: SearchHit) -> str:
    title = f"  {hit.title}" if hit.title else ""
    snippet = clean(" ".join(hit.snippet.split()))
    if sys.stdout.isatty():
        marks = (click.style("\0", bold=True, reset=False).replace("\0", ""), click.style("", reset=True))
        snippet = snippet.replace(MARKS[0], marks[0]).replace(MARKS[1], marks[1])
    else:
        snippet = snippet.replace(MARKS[0], "").replace(MARKS[1], "")
    head = " ".join(clean(f"{time_text(hit.time_ms)}  {hit.id}{title}").split())
    return f"{head}\n    {hit.kind}: {snippet}"

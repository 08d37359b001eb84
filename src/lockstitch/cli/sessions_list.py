"""``lockstitch sessions list``."""

import re
import sys
import time
from pathlib import Path
from typing import Final

import click
import msgspec

from ..session.reports import SessionInfo
from ..tools.text import clean
from . import exit_codes
from .stores import json_option, print_json, store_option, with_store
from .story_text import time_text

_SPANS: Final = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


@click.command("list")
@click.option("--cwd", metavar="DIR", help="Only sessions of this folder and below.")
@click.option("--since", metavar="TIME", help="Only those used since: 2026-11-30, or 90m, 12h, 7d, 2w ago.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the latest N.")
@store_option
@json_option
def list_sessions(
    *, cwd: str | None, since: str | None, limit: int | None, store: str | None, as_json: bool
) -> int:
    """List the stored sessions, newest first. One that is damaged is listed with its problem."""
    since_ms = _since_ms(since)
    infos = with_store(store, lambda opened: opened.list())
    chosen = [info for info in infos if _matches(info, cwd, since_ms)][:limit]
    for info in chosen:
        if as_json:
            print_json(msgspec.to_builtins(info))
        else:
            sys.stdout.write(_line(info) + "\n")
    if not infos and not as_json:
        click.echo("no sessions yet; `lockstitch run PROMPT` makes one", err=True)
    return exit_codes.DONE


def _matches(info: SessionInfo, cwd: str | None, since_ms: float) -> bool:
    if since_ms and (info.updated_ms or 0) < since_ms:
        return False
    return cwd is None or Path(info.cwd).is_relative_to(Path(cwd).expanduser().absolute())


def _since_ms(text: str | None) -> float:
    if text is None:
        return 0
    if (span := re.fullmatch(r"(\d{1,6})([mhdw])", text)) is not None:
        return (time.time() - int(span[1]) * _SPANS[span[2]]) * 1000
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d")) * 1000
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"--since {text}: give a day like 2026-11-30, or a span like 12h or 7d"
        ) from None


def _line(info: SessionInfo) -> str:
    when = time_text(info.updated_ms) if info.updated_ms is not None else "?" * 19
    parts = [when, info.id, info.title, f"[damaged: {info.problem}]" if info.problem else "", info.cwd]
    return "  ".join(" ".join(clean(part).split()) for part in parts if part)

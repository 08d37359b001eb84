"""``lockstitch sessions fork``, ``export``, ``import``, ``rm`` and ``repair``."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from ..session.bundle import UNPACKED_MAX_BYTES, export_session, import_session
from ..session.housekeeping import RepairReport, fork, repair
from ..session.names import directory_name
from ..session.store import SessionKeeper
from ..tools.text import clean
from . import exit_codes
from .stores import json_option, print_json, store_option, with_store


@click.command("fork")
@click.argument("session")
@click.argument("new_id", required=False)
@click.option("--turn", type=click.IntRange(0), metavar="N", help="Up to the end of this turn. Default: all.")
@store_option
@json_option
def fork_session(
    session: str, new_id: str | None, *, turn: int | None, store: str | None, as_json: bool
) -> int:
    """Make a session that begins with what SESSION holds. SESSION itself is only read."""
    name = new_id or f"{session[:100]}-{secrets.token_hex(4)}"
    report = with_store(store, lambda opened: fork(opened, session, name, turn=turn))
    _done(
        msgspec.to_builtins(report),
        f"{report.id}: {report.records} records of {report.parent}, up to turn {report.turn}",
        as_json=as_json,
    )
    return exit_codes.DONE


@click.command("export")
@click.argument("session")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@store_option
@json_option
def export(session: str, file: Path | None, *, store: str | None, as_json: bool) -> int:
    """Write SESSION with its blobs to one file, with checksums. Default: SESSION.lockstitch.zip here."""
    target = file or Path(f"{directory_name(session)}.lockstitch.zip")
    manifest = with_store(store, lambda opened: export_session(opened, session, target))
    _done(
        {"file": str(target), **msgspec.to_builtins(manifest)},
        f"{target}: {sum(member.bytes for member in manifest.members):,} bytes of session {manifest.id}",
        as_json=as_json,
    )
    if manifest.lost_blobs:
        click.echo(f"lockstitch: {len(manifest.lost_blobs)} blobs are damaged and left out", err=True)
    return exit_codes.DONE


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "new_id", metavar="ID", help="Under another id.")
@click.option(
    "--max-bytes",
    type=click.IntRange(0),
    default=UNPACKED_MAX_BYTES,
    metavar="N",
    help="Refuse a file that unpacks to more. Default: 4 GiB.",
)
@store_option
@json_option
def import_bundle(file: Path, *, new_id: str | None, max_bytes: int, store: str | None, as_json: bool) -> int:
    """Make a session of FILE, which `sessions export` wrote, after every checksum was compared."""
    manifest = with_store(
        store, lambda opened: import_session(opened, file, new_id=new_id, max_bytes=max_bytes)
    )
    _done(msgspec.to_builtins(manifest), f"{manifest.id}: imported from {file}", as_json=as_json)
    return exit_codes.DONE


@click.command("rm")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--restore", is_flag=True, help="Take the sessions out of the trash instead.")
@click.option("--purge", is_flag=True, help="Empty the trash, after moving the sessions there. For good.")
@store_option
@json_option
def rm(sessions: tuple[str, ...], *, restore: bool, purge: bool, store: str | None, as_json: bool) -> int:
    """Move sessions to the trash."""
    if restore and purge:
        raise click.UsageError("--restore and --purge exclude each other")
    if not sessions and not purge:
        raise click.UsageError("name a session; `lockstitch sessions list` shows them")
    for fields, text in with_store(
        store, lambda opened: _remove(opened, sessions, restore=restore, purge=purge)
    ):
        _done(fields, text, as_json=as_json)
    return exit_codes.DONE


async def _remove(
    store: SessionKeeper, sessions: Sequence[str], *, restore: bool, purge: bool
) -> list[tuple[dict[str, Any], str]]:
    done: list[tuple[dict[str, Any], str]] = []
    for session_id in sessions:
        if restore:
            await store.restore(session_id)
            done.append(({"restored": session_id}, f"{session_id}: restored"))
        else:
            place = await store.remove(session_id)
            done.append(({"removed": session_id, "place": place}, f"{session_id}: moved to {place}"))
    if purge:
        count = await store.purge()
        done.append(({"purged": count}, f"{count} sessions deleted for good"))
    return done


@click.command("repair")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@store_option
@json_option
def repair_sessions(sessions: tuple[str, ...], *, store: str | None, as_json: bool) -> int:
    """Make logs sound: a copy first, then without damage, then closed where they were interrupted.

    Sessions also open without this; it is for those who want a clean `sessions check`.
    """

    async def work(opened: SessionKeeper) -> list[RepairReport]:
        return [await repair(opened, session_id) for session_id in sessions]

    reports = with_store(store, work)
    for report in reports:
        _done(msgspec.to_builtins(report), _repaired(report), as_json=as_json)
    left = any(
        report.after.torn_bytes or report.after.set_aside or report.after.missing for report in reports
    )
    return exit_codes.FAILED if left else exit_codes.DONE


def _repaired(report: RepairReport) -> str:
    before, after = report.before, report.after
    if report.backup is not None:
        text = f"written anew; {report.lost} records are lost; as it was: {report.backup}"
    elif before.open_turn is not None or before.open_calls:
        text = "was interrupted, and is closed now"
    else:
        text = "was sound"
    if after.defects:
        text += f"; {after.defects} events break the rules of the log and stay (requests are repaired)"
    return f"{report.id}: {text}"


def _done(fields: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(fields)
    else:
        sys.stdout.write(" ".join(clean(text).split()) + "\n")

"""``lockstitch sessions check``: what is damaged, and what opening would do. Nothing is written."""

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from ..schema.errors import CallerError, StorageError
from ..session.reports import CheckReport
from ..session.store import SessionKeeper
from ..tools.text import clean
from . import exit_codes
from .stores import json_option, print_json, store_option, with_store


@click.command("check")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@store_option
@json_option
def check(sessions: tuple[str, ...], *, store: str | None, as_json: bool) -> int:
    """Report damage of the given sessions, or of all, without changing anything.

    Exit code 1 if any is damaged.
    """
    reports = with_store(store, lambda opened: _reports(sessions, opened))
    sound = True
    for session_id, report in reports:
        sound = sound and isinstance(report, CheckReport) and report.sound
        if as_json:
            print_json(_fields(session_id, report))
        else:
            sys.stdout.write(clean(_text(session_id, report)) + "\n")
    return exit_codes.DONE if sound else exit_codes.FAILED


async def _reports(
    sessions: Sequence[str], store: SessionKeeper
) -> list[tuple[str, CheckReport | StorageError]]:
    reports: list[tuple[str, CheckReport | StorageError]] = []
    for session_id in sessions or [info.id for info in await store.list()]:
        try:
            reports.append((session_id, await store.check(session_id)))
        except StorageError as error:
            reports.append((session_id, error))
        except CallerError:
            if sessions:
                raise  # one that was asked for by name; of a listing it has just been taken away
    return reports


def _fields(session_id: str, report: CheckReport | StorageError) -> dict[str, Any]:
    if isinstance(report, StorageError):
        return {"id": session_id, "sound": False, "error": str(report)}
    return {"sound": report.sound, **msgspec.to_builtins(report)}


def _text(session_id: str, report: CheckReport | StorageError) -> str:
    if isinstance(report, StorageError):
        return f"{session_id}: {report}"
    lines = [f"{session_id}: {_verdict(report)}, {report.records} records in {report.bytes:,} bytes"]
    for place in report.damage:
        size = f"{place.length:,} bytes" if place.length else "nothing"
        lines.append(f"  byte {place.offset:,}: {size}, {place.reason}")
    lines += [f"  record {defect.seq} ({defect.kind}): {defect.reason}" for defect in report.defective]
    if report.in_use_by is not None:
        lines.append("  in use" + (f" by process {report.in_use_by}" if report.in_use_by > 0 else ""))
    lines += [f"  opening would {what}" for what in report.would]
    return "\n".join(lines)


def _verdict(report: CheckReport) -> str:
    if report.sound:
        return "sound"
    counts = (
        (report.torn_bytes, "torn bytes"),
        (report.set_aside, "damaged places"),
        (report.missing, "gaps"),
        (report.defects, "events that break the rules"),
    )
    return "damaged (" + ", ".join(f"{count} {what}" for count, what in counts if count) + ")"

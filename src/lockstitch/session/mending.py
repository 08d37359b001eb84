"""What opening a log adds to it, whatever store it lies in: one report, and closers for what is open."""

import msgspec

from lockstitch.schema.errors import CallerError, SessionCorruptionError
from lockstitch.schema.events import Body, SessionStart
from lockstitch.wire.strict_json import well_formed

from . import migration
from .closers import closers
from .intake import Admitted, admit
from .log_reader import Fold, FoldFailedError, LogReader
from .reports import CheckReport, OpenReport, damage_reports


def mend(reader: LogReader, start: SessionStart, *, file: str, fold: Fold | None) -> Admitted:
    """The records to append before the session goes on; they went through ``fold`` and are in the state.

    The same log always gives the same records: they carry the time of its last event. ``start`` is written if
    the log holds no record at all; ``file`` says where damaged bytes were copied.
    """
    state = reader.state
    bodies: list[Body] = []
    if (found := reader.findings(file)) is not None:
        bodies.append(found)
    bodies += closers(state)
    if state.next_seq == 0:
        state.start = None
        bodies.insert(0, start)
    elif state.start is not None and state.start.format < migration.CURRENT:
        # What follows has the present format, which an older version must not take for its own.
        bodies.insert(0, msgspec.structs.replace(state.start, format=migration.CURRENT))
    admitted = admit(state, bodies, state.time_ms)
    if fold is not None:
        for event in admitted.events:
            try:
                fold(event)
            except Exception as error:
                raise FoldFailedError(error) from error
    return admitted


def open_report(
    reader: LogReader, *, created: bool = False, files: tuple[str, ...] = (), read_only: str | None = None
) -> OpenReport:
    """To be made before ``mend``, which closes what this counts."""
    state = reader.state
    closes = read_only is None
    return OpenReport(
        created=created,
        records=reader.scanner.records,
        set_aside=reader.set_aside,
        missing=reader.missing,
        torn_bytes=reader.torn.length if reader.torn else 0,
        defects=state.defects,
        closed_calls=len(state.calls) if closes else 0,
        closed_attempts=int(state.open_attempt is not None) if closes else 0,
        closed_turn=state.turn_open and closes,
        files=files,
        damage=damage_reports(reader.damage),
        defective=tuple(reader.defects),
        read_only=read_only,
    )


def check_report(reader: LogReader, session_id: str, *, path: str, in_use_by: int | None) -> CheckReport:
    """What a read-only look at a log found."""
    state = reader.state
    torn = reader.torn
    return CheckReport(
        id=session_id,
        path=path,
        records=reader.scanner.records,
        bytes=reader.scanner.offset + (torn.length if torn else 0),
        set_aside=reader.set_aside,
        missing=reader.missing,
        torn_bytes=torn.length if torn else 0,
        defects=state.defects,
        open_calls=len(state.calls),
        open_attempts=int(state.open_attempt is not None),
        open_turn=state.turn if state.turn_open else None,
        read_only=state.too_new,
        in_use_by=in_use_by,
        damage=damage_reports(reader.damage),
        defective=tuple(reader.defects),
        would=tuple(_would(reader, in_use_by)),
    )


def corruption(reader: LogReader, session_id: str) -> SessionCorruptionError | None:
    """The first thing wrong with the log, as the error of a strict opening; None if nothing is."""
    where = "restore a copy, or open it without strict to go on with what is whole"
    if reader.damage:
        first = reader.damage[0]
        kind = "is torn" if first.torn else "is damaged"
        return SessionCorruptionError(
            f"the log of session {session_id!r} {kind} at byte {first.offset:,}, behind record "
            f"{first.after}: {first.reason} ({first.length:,} bytes); {where}"
        )
    if reader.defects:
        defect = reader.defects[0]
        return SessionCorruptionError(
            f"record {defect.seq} of session {session_id!r}, a {defect.kind} at byte {defect.offset:,}, "
            f"breaks the rules of the log: {defect.reason}; {where}"
        )
    return None


def first_record(session_id: str, cwd: str) -> SessionStart:
    """What a new log begins with. Raises CallerError for a folder whose name no log can hold."""
    try:
        cwd.encode()
    except UnicodeEncodeError as error:
        what = f"the folder {cwd!a} has a name that is no Unicode text, so a session cannot keep it"
        raise CallerError(f"{what}; rename it, or work in another one") from error
    return SessionStart(migration.CURRENT, session_id, cwd)


def implied_start(session_id: str, cwd: str) -> SessionStart:
    """What a log that lost its first record gets, if it has to; without a folder that no log can hold."""
    return SessionStart(migration.CURRENT, session_id, cwd if well_formed(cwd) == cwd else "")


def _would(reader: LogReader, in_use_by: int | None) -> list[str]:
    state, torn = reader.state, reader.torn
    if state.too_new is not None:
        return [f"show the session read-only: {state.too_new}"]
    if in_use_by is not None:
        return ["refuse, or show the session read-only, while another process writes it"]
    would = []
    if reader.scanner.records == 0:
        would.append("begin the log anew: it holds no whole record")
    if torn is not None:
        would.append(f"copy the unfinished record at byte {torn.offset:,} aside and cut it off")
    if reader.set_aside:
        would.append(f"skip {reader.set_aside} damaged places, each copied aside once")
    if state.defects:
        would.append(f"keep {state.defects} events that break the rules, and repair requests around them")
    if state.open_attempt is not None:
        would.append("close the interrupted model call; what it had said is kept")
    if state.calls:
        started = sum(call.started_seq is not None for call in state.calls.values())
        would.append(
            f"answer {len(state.calls)} tool calls: {started} with an unknown outcome, the others not started"
        )
    if state.turn_open:
        would.append(f"close turn {state.turn} as interrupted")
    return would

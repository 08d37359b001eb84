"""``lockstitch wire lint``: check a request against its provider's rules, and mend it with ``--fix``."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from ..history.ladder import told
from ..history.repair import lint as find_violations
from ..history.repair import repair
from ..providers.codecs import CODECS
from ..schema.errors import CallerError
from ..wire.strict_json import lenient, well_formed
from . import exit_codes
from .lines import json_text, tell

_DIALECTS = click.Choice(tuple(CODECS))


@click.command("lint")
@click.option("--dialect", required=True, type=_DIALECTS, help="Whose rules, and with --fix whose format.")
@click.option("--from", "source", type=_DIALECTS, help="The format of FILE, if it is another.")
@click.option("--profile", metavar="P", help="Name of the provider's profile.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=JSON",
    help="Override a field of the profile; repeatable.",
)
@click.option("--fix", is_flag=True, help="Mend the request and print it.")
@click.argument("file", metavar="FILE")
@click.pass_context
def lint(
    ctx: click.Context,
    *,
    dialect: str,
    source: str | None,
    profile: str | None,
    settings: tuple[str, ...],
    fix: bool,
    file: str,
) -> None:
    """Check the request in FILE (- for stdin) and print one JSON object.

    Without --fix the violations are those of the request as it is, and the exit code is 1 if there are any.
    With --fix they are those that the mended request still has; anomalies name what was changed.
    """
    request = _request(file)
    limits = dict(map(_setting, settings))
    out: dict[str, Any] = {"violations": [], "anomalies": []}
    if fix:
        mended = repair(request, dialect, source=source, profile=profile, **limits)
        found = find_violations(mended.request, dialect, profile=profile, **limits)
        out["anomalies"] = [msgspec.to_builtins(anomaly) for anomaly in mended.anomalies]
        out["request"] = mended.request
        if mended.anomalies:
            tell(f"mended: {told('normal', mended.anomalies)}")
    else:
        found = find_violations(request, dialect, source=source, profile=profile, **limits)
    out["violations"] = [msgspec.to_builtins(violation) for violation in found]
    click.echo(well_formed(json_text(out)).encode())
    for violation in found:
        tell(f"{violation.rule} at {violation.where}: {violation.detail}")
    ctx.exit(exit_codes.FAILED if found else exit_codes.DONE)


def _request(file: str) -> dict[str, Any]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CallerError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        # Not the strict parser: it would replace the lone surrogates that are to be found.
        data = data.removeprefix(b"\xef\xbb\xbf")
        request = lenient(data.decode(json.detect_encoding(data), "surrogatepass"))
    except ValueError as error:
        raise CallerError(f"{file} is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise CallerError(f"{file} holds no request: a JSON {type(request).__name__}, not an object")
    return request


def _setting(setting: str) -> tuple[str, Any]:
    key, equals, value = setting.partition("=")
    try:
        return key.strip(), lenient(value)
    except ValueError as error:
        what = "is not KEY=JSON" if not equals else f"has a value that is not JSON: {error}"
        raise CallerError(f"--set {setting!r} {what}; write it like vision=false") from error

"""``lockstitch wire classify``: say what an error response means, and what helps."""

import sys
import time
from pathlib import Path
from typing import Final, get_args

import click

from ..providers import catalog
from ..providers.classify import classify as classify_answer
from ..schema.errors import CallerError
from ..schema.profiles import Protocol
from .lines import json_text

BODY_BYTES: Final = 1024 * 1024
"""As much of a body as the runtime keeps of an error; the rest is not read."""


@click.command("classify")
@click.option("--status", required=True, type=click.IntRange(100, 599), help="HTTP status of the answer.")
@click.option(
    "--header", "headers", multiple=True, metavar="'K: V'", help="A header of the answer; repeatable."
)
@click.option("--dialect", type=click.Choice(get_args(Protocol)), help="Protocol of the provider.")
@click.option("--profile", metavar="P", help="Name of the provider's profile.")
@click.option(
    "--context-ratio",
    type=click.FloatRange(min=0),
    metavar="R",
    help="Estimated tokens of the request over the model's window; judges a 400 without a body.",
)
@click.argument("file", metavar="FILE")
def classify(
    *,
    status: int,
    headers: tuple[str, ...],
    dialect: str | None,
    profile: str | None,
    context_ratio: float | None,
    file: str,
) -> None:
    """Classify the error body in FILE (- for stdin) and print one JSON object."""
    known = catalog.profile(profile) if profile is not None else None
    found = classify_answer(
        status,
        _fields(headers),
        _body(file),
        dialect=dialect,
        profile=known,
        context_ratio=context_ratio,
        now_s=time.time(),
    )
    click.echo(
        json_text(
            {
                "code": found.code,
                "retryable": found.retryable,
                "recovery": found.recovery,
                "retry_after_s": found.retry_after_s,
                "message": found.message,
            }
        )
    )


def _fields(headers: tuple[str, ...]) -> dict[str, str]:
    fields = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip() or any(character.isspace() for character in name.strip()):
            raise CallerError(f"--header {header!r} is no header; write it as 'Name: value'")
        fields[name.strip()] = value.strip()
    return fields


def _body(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(BODY_BYTES)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(BODY_BYTES)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CallerError(
            f"cannot read {file}: {reason}; name a file with the body, or - for stdin"
        ) from error

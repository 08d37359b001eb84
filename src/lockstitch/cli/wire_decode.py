"""``lockstitch wire decode``: what a raw response body says, and what its gateway did wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from ..history.decode import Decoder
from ..history.decoded import chunk_json
from ..providers.dialects import DIALECTS
from ..providers.note_kinds import NOTE_KINDS
from ..schema.chunks import Chunk
from ..schema.errors import CallerError
from ..schema.failures import Failure
from ..schema.notes import Note
from . import exit_codes
from .lines import json_text, tell

CHUNKS_FORMAT: Final = 1
"""Version of the lines of ``--chunks``; raised only if a reader of the older ones would misread."""


@click.command("decode")
@click.option("--dialect", required=True, metavar="D", help=f"One of {', '.join(DIALECTS)}.")
@click.option(
    "--profile", metavar="P", help="Whose server it was, e.g. deepseek; default: nobody's in particular."
)
@click.option("--tools", metavar="A,B", default="", help="Names of the tools the request offered.")
@click.option(
    "--status", metavar="N", type=int, default=200, show_default=True, help="HTTP status of the answer."
)
@click.option("--content-type", metavar="T", help="Its content type; the first bytes decide all the same.")
@click.option(
    "--chunks", "as_chunks", is_flag=True, help="Print the chunks, one a line, instead of the answer."
)
@click.argument("file")
@click.pass_context
def decode(
    ctx: click.Context,
    *,
    dialect: str,
    profile: str | None,
    tools: str,
    status: int,
    content_type: str | None,
    as_chunks: bool,
    file: str,
) -> None:
    """Read the raw response body in FILE (- for stdin) as Lockstitch does.

    Prints one JSON object to stdout; on stderr, a line for each thing that the gateway did wrong. Exit code 0
    for an answer, 1 for a failure (the JSON says which).
    """
    decoder = Decoder(
        dialect,
        profile=profile,
        tools=[name.strip() for name in tools.split(",") if name.strip()],
        status=status,
        headers={"content-type": content_type} if content_type else None,
    )
    chunks = decoder.feed(_read(file)) + decoder.end()
    result = decoder.result
    if as_chunks:
        for line in _lines(chunks):
            click.echo(line)
    else:
        click.echo(_json(result.to_json()))
    for note in result.notes:
        tell(_explain(note))
    failure = result.finish.failure
    if failure is not None:
        tell(_explain_failure(failure))
    ctx.exit(exit_codes.DONE if failure is None else exit_codes.FAILED)


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CallerError(f"cannot read {file}: {error.strerror or error}") from error


def _lines(chunks: list[Chunk]) -> Iterator[bytes]:
    for chunk in chunks:
        yield _json({"v": CHUNKS_FORMAT, **chunk_json(chunk)})


def _json(value: object) -> bytes:
    """UTF-8 whatever the terminal's encoding: the output is for programs."""
    return json_text(value).encode()


def _explain(note: Note) -> str:
    """One note as a line for a bug report: how often, what happened, where, what to ask for."""
    kind = NOTE_KINDS[note.kind]  # a test sees to it that every kind there is has its words
    times = f" ({note.count} times)" if note.count > 1 else ""
    detail = f" [{note.detail}]" if note.detail else ""
    return f"{note.kind}{times}: {kind.meaning}{detail}. Ask the gateway: {kind.ask}."


def _explain_failure(failure: Failure) -> str:
    again = "worth a retry" if failure.retryable else "a retry would not help"
    return f"{failure.code}: {failure.message} ({again})"

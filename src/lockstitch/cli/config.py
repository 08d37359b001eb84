"""``lockstitch config``: where settings come from, and which project files are trusted."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from ..schema.errors import CallerError
from ..tools.text import clean
from . import config_files, exit_codes, lines
from .lines import json_text
from .settings import Value

FORM_VERSION: Final = 1
"""Of the JSON: docs/cli.md."""


@click.command("show")
@click.option("--cwd", metavar="DIR", default=".", help="For work in this folder. Default: the current one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(*, cwd: str, as_json: bool) -> int:
    """Show every setting that counts, and where it comes from. Keys are never shown."""
    settings = config_files.load(_folder(cwd), os.environ)
    for value in settings.values:
        sys.stdout.write((_json(value) if as_json else _line(value)) + "\n")
    tell(settings.notices)
    return exit_codes.DONE


@click.command("trust")
@click.argument("folder", default=".")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
def trust(*, folder: str, remove: bool) -> int:
    """Take everything from FOLDER's lockstitch.toml, as it is now. Read it first."""
    file = config_files.project_file(_folder(folder))
    if file is None:
        raise CallerError(f"there is no {config_files.PROJECT_FILE} in {folder} or above it")
    config_files.trust(file, os.environ, trusted=not remove)
    lines.tell(f"{'no longer trusted' if remove else 'trusted as it is now'}: {file}")
    return exit_codes.DONE


def tell(notices: Iterable[str]) -> None:
    """What the user is to be told, on stderr, one line each."""
    for notice in notices:
        lines.tell(f"lockstitch: {notice}")


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise CallerError(f"{text}: no such folder")
    return folder


def _json(value: Value) -> str:
    fields: dict[str, Any] = {"v": FORM_VERSION, "key": value.key, "value": value.value}
    return json_text({**fields, "origin": value.origin, "where": value.where})


def _line(value: Value) -> str:
    shown = clean(json.dumps(value.value, ensure_ascii=False))
    where = f" ({clean(value.where)})" if value.where else ""
    return f"{value.key} = {shown}   from {value.origin}{where}"

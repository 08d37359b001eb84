"""The store that a ``sessions`` command works on: its option, its opening, and its closing."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from ..session.choose import choose_store
from ..session.store import SessionKeeper
from .lines import escaped

FORM_VERSION: Final = 1
"""Of every JSON line of the ``sessions`` commands: docs/cli.md."""

T = TypeVar("T")

store_option = click.option(
    "--store",
    metavar="STORE",
    help="A folder's path, or sqlite:FILE. Default: LOCKSTITCH_STORE, or the usual folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines (docs/cli.md).")


def with_store(spec: str | None, work: Callable[[SessionKeeper], Awaitable[T]]) -> T:
    """Run ``work`` with the chosen store, and close it."""

    async def run() -> T:
        store = choose_store(spec or configured_store(), os.environ)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def configured_store() -> str | None:
    """The store of the settings that count in this folder; None: the usual one."""
    from .config_files import load

    return load(Path.cwd(), os.environ).store


def print_json(fields: Mapping[str, Any]) -> None:
    """One line on stdout, with the version of its form."""
    sys.stdout.write(escaped(msgspec.json.encode({"v": FORM_VERSION, **fields}).decode()) + "\n")

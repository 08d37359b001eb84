"""A click group that imports a command's module only when that command is called."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, and its line in the help: known without importing it."""

    target: str
    """``module:attribute``, the module relative to this package."""
    help: str


class LazyGroup(click.Group):
    """Commands from a table, listed in the table's order."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._table.items()])


def lazy_group(name: str, help_text: str, table: Mapping[str, Entry]) -> LazyGroup:
    """A group without options of its own."""
    return LazyGroup(name=name, help=help_text, table=table, no_args_is_help=True)

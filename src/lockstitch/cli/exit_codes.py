"""Exit codes of every command: part of the stable contract (docs/cli.md)."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The work failed; with ``--json`` the output says how."""
USAGE: Final = 2
"""Wrong usage or unreadable input; nothing was changed."""
APPROVAL: Final = 3
"""A tool needs an approval and nobody is there to give it."""
BUDGET: Final = 4
GAVE_UP: Final = 5
"""The provider failed until every retry was used up."""
INTERRUPTED: Final = 130
"""Ctrl-C."""

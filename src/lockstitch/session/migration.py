"""Logs of older format versions: their records are brought up to date while being read, and stay as they are.

A log says its format in its ``session_start``. Who opens an older one to write appends another
``session_start`` with the present format first: the records behind it have that format, and an older version,
which would misread them, sees a format that it does not know and only shows the session.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

from lockstitch.schema.events import FORMAT_VERSION

Envelope: TypeAlias = dict[str, Any]
"""A record as decoded JSON: ``seq``, ``time_ms``, ``kind``, ``data``, maybe ``needed``."""

CURRENT = FORMAT_VERSION
"""The format that this version writes."""

UPGRADES: Mapping[int, Callable[[Envelope], Envelope]] = {}
"""By format version: what makes a record of it one of the next version. There is only one version so far."""


def upgrade_from(format_version: int) -> Callable[[Envelope], Envelope] | None:
    """What brings a record of that format up to date; None if nothing has to be done.

    A format below the first is a mistake of the record and read as the present one.
    """
    steps = [UPGRADES[version] for version in range(max(format_version, 1), CURRENT) if version in UPGRADES]
    if not steps:
        return None
    return lambda envelope: reduce(lambda value, step: step(value), steps, envelope)

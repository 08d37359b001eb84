"""Plain requests that are nested deeper than anything can follow: cut before anybody recurses into them.

Python's own JSON reader takes what no provider's parser does, and what would end our walks in RecursionError.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..schema.notes import Anomaly, Violation
from .clean import anomaly

REQUEST_DEPTH_MAX: Final = 110
"""Nesting of a whole request: what a value in it may have (100), and the way to there."""
CUT_DEPTH: Final = 100
"""Nesting of a request that was cut, so that every value in it passes its own rule."""


class Shallow(NamedTuple):
    """A request, and the places where something deeper became null; the request itself if there are none."""

    request: Mapping[str, Any]
    cut: tuple[str, ...]

    def violations(self) -> list[Violation]:
        """One for each place."""
        detail = f"nested deeper than {REQUEST_DEPTH_MAX}"
        return [Violation("nested_too_deep", where, detail) for where in self.cut]

    def anomalies(self) -> tuple[Anomaly, ...]:
        """One for each place."""
        detail = f"what was nested deeper than {CUT_DEPTH} was left out"
        return tuple(anomaly("value_cut", where, detail=detail) for where in self.cut)


def shallow(request: Mapping[str, Any], depth: int) -> Shallow:
    """The request with null for every object and list that is nested deeper; places name its fields."""
    fields = {}
    cut = []
    for name, value in request.items():
        kept = _within(value, depth - 1)
        fields[name] = kept
        if kept is not value:
            cut.append(str(name))
    return Shallow(fields, tuple(cut)) if cut else Shallow(request, ())


def _within(value: Any, depth: int) -> Any:
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        fields = {key: _within(item, depth - 1) for key, item in value.items()}
        return fields if any(fields[key] is not item for key, item in value.items()) else value
    items = [_within(item, depth - 1) for item in value]
    return items if any(kept is not item for kept, item in zip(items, value, strict=True)) else value

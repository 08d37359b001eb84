"""What was odd about a stream (notes) and what was changed in a request (anomalies), as values."""

import msgspec


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One oddity of a response that was survived. Never an error: an error is a Failure."""

    kind: str
    """A stable snake_case word, e.g. ``identity_conflict``; listed in docs/notes.md."""
    detail: str = ""
    """One line for a bug report at the gateway."""
    count: int = 1
    """How often it happened; repeats of one kind and detail are counted, not listed."""


class Anomaly(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repair that a projection made to a request; the history itself is unchanged."""

    kind: str
    """A stable snake_case word, e.g. ``orphan_result_dropped``."""
    where: str = ""
    """The place in the history, e.g. ``messages[3]``."""
    ids: tuple[str, ...] = ()
    detail: str = ""


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule of a protocol that a request breaks."""

    rule: str
    where: str
    detail: str

"""Facts that a compaction must not lose: files touched, open tasks. What finds them is ``fact_search``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """What was touched and what is open. Paths and tasks as they were written, the latest last."""

    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


def facts_text(facts: Facts) -> str:
    """The facts as the model reads them; empty if there are none."""
    parts = [
        _list("Files changed so far:", facts.files_changed),
        _list("Files read so far:", facts.files_read),
        _list("Open tasks:", facts.tasks),
    ]
    return "\n\n".join(filter(None, parts))


def _list(heading: str, items: tuple[str, ...]) -> str:
    return "\n".join([heading, *(f"- {item}" for item in items)]) if items else ""

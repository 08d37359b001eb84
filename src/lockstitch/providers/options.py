"""Options of a request against what a profile's provider takes: shared by the encoders of all protocols."""

from typing import Any

from ..schema.messages import Options
from ..schema.notes import Note
from ..schema.profiles import Profile


def supported(options: Options, profile: Profile) -> tuple[Options, tuple[Note, ...]]:
    """The options without those that the provider refuses, and a note for each that was set."""
    if not profile.unsupported:
        return options, ()
    defaults = Options()
    kept: dict[str, Any] = {}
    notes: list[Note] = []
    for name in Options.__struct_fields__:
        value = getattr(options, name)
        if name in profile.unsupported and value != getattr(defaults, name):
            notes.append(Note(kind="option_left_out", detail=f"{profile.name} does not take {name}"))
        elif name not in profile.unsupported:
            kept[name] = value
    return Options(**kept), tuple(notes)

"""What requests to a model do without because it refused them with it (pure).

A rung of the ladder is for refusals that nobody understands; these are understood, and give up one thing.
What went through is in the log as the anomalies of a ``recovery`` that succeeded, so that it costs one
refused request and not one in every turn.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from ..schema.messages import ToolSpec
from ..schema.notes import Anomaly

LIMIT: Final = "limit_lowered"
TOOL: Final = "tool_left_out"
MEDIA: Final = "media_left_out"


@dataclass(frozen=True, slots=True)
class Amendments:
    """Of one model; the default asks for nothing to be left out."""

    max_tokens: int | None = None
    """A limit of output that was taken where a higher one was refused."""
    tools: tuple[tuple[str, str], ...] = ()
    """Tools whose definition was refused: name and digest. One that was changed since may be sent again."""
    media: bool = True
    """False: requests hold neither images nor files."""

    def refuses(self, spec: ToolSpec) -> bool:
        """Whether exactly this definition was refused."""
        return any(name == spec.name and known == digest(spec) for name, known in self.tools)

    def joined(self, later: "Amendments") -> "Amendments":
        """What both ask for."""
        limits = [limit for limit in (self.max_tokens, later.max_tokens) if limit is not None]
        return Amendments(
            max_tokens=min(limits, default=None),
            tools=tuple(dict.fromkeys((*self.tools, *later.tools))),
            media=self.media and later.media,
        )

    def anomalies(self) -> tuple[Anomaly, ...]:
        """Its form in the log."""
        limit = [Anomaly(LIMIT, "max_tokens", detail=str(self.max_tokens))] if self.max_tokens else []
        tools = [Anomaly(TOOL, "tools", (name,), detail=known) for name, known in self.tools]
        media = [] if self.media else [Anomaly(MEDIA, "messages")]
        return (*limit, *tools, *media)


NOTHING: Final = Amendments()


def amendments_in(anomalies: Iterable[Anomaly]) -> Amendments:
    """What the anomalies of a recovery say of it. Others say nothing, nor does what we never wrote."""
    found = NOTHING
    for anomaly in anomalies:
        match anomaly:
            case Anomaly(kind="limit_lowered", detail=str(detail)) if detail.isdecimal() and len(detail) < 10:
                found = found.joined(Amendments(max_tokens=max(int(detail), 1)))
            case Anomaly(kind="tool_left_out", ids=(name,), detail=str(known)) if known:
                found = found.joined(Amendments(tools=((name, known),)))
            case Anomaly(kind="media_left_out"):
                found = found.joined(Amendments(media=False))
            case _:
                pass
    return found


def digest(spec: ToolSpec) -> str:
    """Tells definitions of a tool apart."""
    return hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:16]

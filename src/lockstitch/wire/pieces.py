"""A text that comes in small pieces, kept small (pure).

A token's ``str`` takes ten times the room of its characters, so of a long answer only the latest pieces are
kept as they came. The others are joined, each once, so that the whole stays linear.
"""

from io import StringIO
from typing import Final

PIECES_MAX: Final = 32


class Pieces:
    """Append to ``latest``, and call ``settle`` now and then."""

    __slots__ = ("_settled", "latest")

    def __init__(self) -> None:
        self.latest: list[str] = []
        self._settled: StringIO | None = None

    def settle(self) -> None:
        """Join the latest pieces to those before, if they are many."""
        if len(self.latest) >= PIECES_MAX:
            if self._settled is None:
                self._settled = StringIO()
            self._settled.write("".join(self.latest))
            self.latest.clear()

    def text(self) -> str:
        """All pieces, joined."""
        latest = "".join(self.latest)
        return latest if self._settled is None else self._settled.getvalue() + latest

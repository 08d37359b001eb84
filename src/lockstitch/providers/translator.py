"""What every protocol's stream translation looks like from outside."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from ..schema.chunks import Chunk
from ..schema.failures import Failure
from ..schema.notes import Note

Mint: TypeAlias = Callable[[], str]
"""Gives a fresh call id at each call; the response makes sure that it is new in it."""


MODEL_MAX: Final = 256
"""Characters of a model's name, which goes beside every block that is given back."""
OVER_OUR_LIMIT: Final = "over_our_limit"
"""Subkind of an OUTPUT_LIMIT that is ours: the answer was larger than we read. Asking again for the same
would only bring as much again."""


class Translator(Protocol):
    """Turns the frames of one response into chunks. Never raises on input.

    The chunks of all calls together obey the grammar of ``schema.chunks`` and end in exactly one Finish;
    after it every method returns nothing.
    """

    @property
    def terminal(self) -> bool:
        """The protocol's own end was seen: nothing more has to be read. ``finished`` is then true too."""

    @property
    def finished(self) -> bool:
        """The Finish was given out."""

    @property
    def settled(self) -> bool:
        """A finish reason or an error of the provider came: what may still follow is usage and the end."""

    @property
    def refused(self) -> bool:
        """The provider reported an error of its own: whatever may follow, the ending is decided."""

    @property
    def notes(self) -> Sequence[Note]:
        """Oddities so far, repeats counted."""

    def frame(self, data: bytes, event: str) -> list[Chunk]:
        """Chunks of one frame; ``event`` is empty where the frame had no event field."""

    def keep_halves(self) -> None:
        """The next document holds halves of surrogate pairs: no chunk may."""

    def document(self, value: Any) -> list[Chunk]:
        """Chunks of a whole JSON answer where a stream was expected; ``end`` must follow."""

    def end(self, strays: bytes) -> list[Chunk]:
        """The body has ended. ``strays`` is its text outside of frames, searched for an error."""

    def fail(self, failure: Failure, *, aborted: bool = False) -> list[Chunk]:
        """The body will not come to its end: usage known so far, then the Finish.

        A failure that the provider itself reported before wins over ``failure``; a response whose terminal
        was seen is complete all the same. With ``aborted`` the reason is always ``aborted``.
        """


TranslateAll: TypeAlias = Callable[[Iterable[tuple[bytes, str]]], tuple[list[Chunk], int]]
"""A translator's method ``frames``, if it has one: the chunks that ``frame`` would give for each (data,
event) of one read, and how many of them were read. Those behind the Finish are not."""

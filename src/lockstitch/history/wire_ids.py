"""Ids of calls on the wire: unique in the request, in the target's alphabet, the same in every later request.

An id pairs a call with its result and nothing else, so any unused one will do; but a provider's prefix cache
holds only if the choice never changes. It therefore depends on nothing but the ids before it.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from ..providers.call_slots import is_signed
from ..schema.profiles import Profile

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MAX_ATTEMPTS: Final = 1_000
"""After so many ids that are taken, a target's length has no room for more: the id may then be longer, which
the validator reports, and the flattened rung needs none."""
_MINTED_LENGTH: Final = 24
"""Characters of a minted id where the target names no exact length: 143 bits, so that two never meet."""


class WireIds:
    """Gives each call of a request its id, in order. Mutable: one per projection."""

    def __init__(self, profile: Profile) -> None:
        self._allowed = re.compile(f"(?:{profile.id_pattern})+")
        self._signed = profile.signed_ids
        self._least = profile.id_exact or 1
        self._max = profile.id_exact or profile.id_max
        self._length = profile.id_exact or min(_MINTED_LENGTH, self._max)
        self._seen: dict[str, int] = {}
        """How often each id of the history was assigned."""
        self._used: set[str] = set()

    def keeps(self, raw: str) -> bool:
        """Whether the next call would keep the id ``raw``."""
        if raw in self._used:
            return False
        if self._least <= len(raw) <= self._max and self._allowed.fullmatch(raw) is not None:
            return True
        return self._signed and is_signed(raw)

    def keep(self, raws: Sequence[str]) -> None:
        """``assign`` for calls that each keep their id."""
        for raw in raws:
            self._seen[raw] = self._seen.get(raw, 0) + 1
        self._used.update(raws)

    def assign(self, raw: str) -> str:
        """The wire id of the next call, whose id in the history is ``raw``.

        The first occurrence of an id that the target allows keeps it; every other one is minted from the id
        and its occurrence.
        """
        occurrence = self._seen.get(raw, 0)
        self._seen[raw] = occurrence + 1
        wire_id = raw
        for attempt in range(MAX_ATTEMPTS):
            if self.keeps(wire_id):
                break
            wire_id = self._mint(raw, occurrence, attempt, self._length)
        else:
            wire_id = self._mint(raw, occurrence, MAX_ATTEMPTS, _MINTED_LENGTH)
        self._used.add(wire_id)
        return wire_id

    def _mint(self, raw: str, occurrence: int, attempt: int, length: int) -> str:
        seed = f"{occurrence}:{attempt}:{raw}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.sha256(seed).digest())
        digits = []
        for _ in range(length):
            number, digit = divmod(number, len(_DIGITS))
            digits.append(_DIGITS[digit])
        return "".join(digits)

"""Keys: where they are looked up, and how they are kept out of every text.

A key is found by the name of its environment variable, held in a ``Secret`` that does not show itself, and
replaced by ``***`` wherever a provider or a network error echoes it.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, quote_plus

import msgspec

from ..providers import catalog
from ..schema.errors import CallerError

MASK: Final = "***"
SHORTEST: Final = 6
"""Characters. A shorter value is no secret but a word, and masking it would garble every text."""
HEAD: Final = 8
"""Characters of a key that give it away: its vendor's prefix and more."""
PLACEHOLDERS: Final = frozenset({"EMPTY", "ollama", "dummy", "not-needed", "no-key-required", "lm-studio"})
"""What local servers are given where a client library insists on a key."""


class MissingCredentialError(CallerError):
    """No key for a provider that needs one; the text names the variable to set."""

    code: ClassVar[str] = "MISSING_CREDENTIAL"


class Secret:
    """A key that appears in no ``repr``, ``str``, format or pickle; ``reveal()`` is the only way out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled; look the key up again by its name")


def find_key(name: str, environ: Mapping[str, str]) -> Secret | None:
    """The key in the variable ``name``, without surrounding white space; None if unset or blank.

    Raises CallerError on a value that cannot be sent in a header, without showing it.
    """
    value = environ.get(name, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isprintable():
        raise CallerError(f"{name} holds characters that no API key has; copy the key again, on one line")
    return Secret(value)


class Masker:
    """Replaces known key values in any text, also URL-encoded, JSON-escaped, base64, or cut off."""

    __slots__ = ("_forms", "_heads")

    def __init__(self, values: Iterable[str | Secret]) -> None:
        plain = {value.reveal() if isinstance(value, Secret) else value for value in values}
        secret = {value for value in plain if len(value) >= SHORTEST and value not in PLACEHOLDERS}
        self._forms: dict[str, list[str]] = {}
        """Every form of every key, by its first HEAD characters."""
        for form in {form for value in secret for form in _forms(value)}:
            self._forms.setdefault(form[:HEAD], []).append(form)
        heads = sorted(self._forms, key=len, reverse=True)
        self._heads = re.compile("|".join(map(re.escape, heads))) if heads else None

    def __repr__(self) -> str:
        return "Masker()"

    def mask(self, text: str) -> str:
        """``text`` with ``***`` for every key, and for the beginning of one: messages are cut to a length."""
        if self._heads is None:
            return text
        kept: list[str] = []
        at = 0
        for found in self._heads.finditer(text):
            if found.start() < at:  # inside the key before it
                continue
            size = max(_shared(text, found.start(), form) for form in self._forms[found.group()])
            kept += [text[at : found.start()], MASK]
            at = found.start() + size
        return "".join([*kept, text[at:]])

    def mask_struct(self, value: Any) -> Any:
        """A Struct with all its string fields masked; the same object if there was nothing to mask."""
        changed = {}
        for name in value.__struct_fields__:
            text = getattr(value, name)
            if isinstance(text, str) and (masked := self.mask(text)) != text:
                changed[name] = masked
        return msgspec.structs.replace(value, **changed) if changed else value


def masker(environ: Mapping[str, str], *more: Secret | None) -> Masker:
    """A Masker for ``more`` and for every key that a profile of the catalog would take from ``environ``."""
    names = {profile.key_env for profile in catalog.profiles().values() if profile.key_env is not None}
    found = [environ[name].strip() for name in names if environ.get(name, "").strip()]
    return Masker([*found, *(secret for secret in more if secret is not None)])


def _shared(text: str, start: int, form: str) -> int:
    """How many characters of ``form`` stand in ``text`` from ``start`` on."""
    size = 0
    for here, there in zip(text[start : start + len(form)], form, strict=False):
        if here != there:
            break
        size += 1
    return size


def _forms(value: str) -> set[str]:
    raw = value.encode()
    forms = {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1], repr(value)[1:-1]}
    forms |= {re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), form) for form in forms}
    for before in range(3):  # the key may stand at any offset of what was encoded, e.g. behind "user:"
        inner = _inner_base64(raw, before)
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= SHORTEST}


def _inner_base64(raw: bytes, before: int) -> str:
    """The characters of a base64 text that depend on ``raw`` alone, ``before`` bytes preceding it."""
    encoded = base64.b64encode(b"\0" * before + raw).decode()
    first = -(-before * 8 // 6)
    return encoded[first : (before + len(raw)) * 8 // 6]

"""The catalog of profiles: what is particular to each provider, as data in ``catalog.toml``."""

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ..schema.errors import CallerError
from ..schema.profiles import Profile
from .call_slots import ID_MAX

DEFAULT_PROFILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai-chat": "generic",
        "anthropic-messages": "anthropic",
        "openai-responses": "openai-responses",
        "gemini": "gemini",
    }
)
"""The profile of a dialect for which none was named."""
_COUNTS: Final[Mapping[str, int]] = {
    "id_max": ID_MAX,
    "id_exact": 256,
    "image_max_base64": 1 << 40,
    "image_max_px": 1 << 40,
    "images_many_px": 1 << 40,
    "default_max_tokens": 1 << 40,
    "context_window": 1 << 40,
}
"""Fields that count something, and the most that each may be: with 0 every request would be unfit."""
_CHARACTER_CLASS: Final = re.compile(r"\[[^\[\]]{1,200}\]")
"""Nothing else, for a pattern of a user's own is matched against ids of any length."""


@functools.cache
def profiles() -> Mapping[str, Profile]:
    """Every profile by name, aliases included, in the order of the catalog."""
    text = resources.files(__package__).joinpath("catalog.toml").read_text(encoding="utf-8")
    return MappingProxyType(read_profiles(tomllib.loads(text)))


def profile(name: str) -> Profile:
    """The profile of this name or alias. Raises CallerError, naming those there are."""
    found = profiles().get(name)
    if found is None:
        raise CallerError(f"unknown profile {name!r}; known: {', '.join(profiles())}")
    return found


def read_profiles(
    document: Mapping[str, Any], *, before: Mapping[str, Profile] | None = None
) -> dict[str, Profile]:
    """Profiles of a parsed TOML document with the table ``profiles``, one table each.

    ``extends`` names an earlier profile whose other fields are taken over; ``aliases`` lists further names.
    ``before``: profiles that were there already, and are part of the answer.
    Raises CallerError on an unknown field or a value of the wrong type.
    """
    known: dict[str, Profile] = dict(before or {})
    tables = document.get("profiles", {})
    if not isinstance(tables, Mapping):
        raise CallerError("profiles: must be a table with a table for each profile")
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise CallerError(f"profile {name!r}: must be a table")
        fields = dict(table)
        aliases = fields.pop("aliases", ())
        base = fields.pop("extends", None)
        if base is not None and (not isinstance(base, str) or base not in known):
            raise CallerError(f"profile {name!r} extends {base!r}, which is not defined before it")
        inherited = msgspec.to_builtins(known[base]) if base is not None else {}
        made = _made({**inherited, **fields, "name": name}, name)
        known[name] = made
        for alias in _names(aliases, name):
            known[alias] = msgspec.structs.replace(made, name=alias)
    return known


def with_overrides(base: Profile, **limits: Any) -> Profile:
    """The profile with some fields changed. Raises CallerError on an unknown field or a wrong value."""
    return _made({**msgspec.to_builtins(base), **limits}, base.name)


def _made(fields: Mapping[str, Any], name: str) -> Profile:
    try:
        made = msgspec.convert(fields, Profile)
        name.encode()
    except (msgspec.ValidationError, UnicodeError) as error:
        raise CallerError(f"profile {name!r}: {error}") from error
    if not name:
        raise CallerError("profiles: a profile needs a name")
    for field, most in _COUNTS.items():
        count = getattr(made, field)
        if count is not None and not 1 <= count <= most:
            raise CallerError(f"profile {name!r}: {field} is {count}; it must be from 1 to {most:,}")
    if not _CHARACTER_CLASS.fullmatch(made.id_pattern) or not _compiles(made.id_pattern):
        shown = f"{made.id_pattern[:80]!r}; it must be a class of characters, such as [A-Za-z0-9_-]"
        raise CallerError(f"profile {name!r}: id_pattern is {shown}")
    return made


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _names(aliases: object, name: str) -> list[str]:
    if not isinstance(aliases, list | tuple) or not all(isinstance(one, str) and one for one in aliases):
        raise CallerError(f"profile {name!r}: aliases must be a list of names")
    return list(aliases)

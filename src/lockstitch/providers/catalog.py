"""The catalog of profiles: what is particular to each provider, as data in ``catalog.toml``."""

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ..schema.errors import CallerError
from ..schema.profiles import Profile

DEFAULT_PROFILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai-chat": "generic",
        "anthropic-messages": "anthropic",
        "openai-responses": "openai-responses",
        "gemini": "gemini",
    }
)
"""The profile of a dialect for which none was named."""


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
    for name, table in document.get("profiles", {}).items():
        fields = dict(table)
        aliases = fields.pop("aliases", ())
        base = fields.pop("extends", None)
        if base is not None and base not in known:
            raise CallerError(f"profile {name!r} extends {base!r}, which is not defined before it")
        inherited = msgspec.to_builtins(known[base]) if base is not None else {}
        try:
            made = msgspec.convert({**inherited, **fields, "name": name}, Profile)
        except msgspec.ValidationError as error:
            raise CallerError(f"profile {name!r}: {error}") from error
        known[name] = made
        for alias in aliases:
            known[alias] = msgspec.structs.replace(made, name=alias)
    return known


def with_overrides(base: Profile, **limits: Any) -> Profile:
    """The profile with some fields changed. Raises CallerError on an unknown field or a wrong type."""
    try:
        return msgspec.convert({**msgspec.to_builtins(base), **limits}, Profile)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise CallerError(f"profile {base.name!r}: {error}") from error

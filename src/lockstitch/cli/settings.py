"""Settings: what configuration files may say, and which of several sources counts.

Nothing here reads a file or a variable: ``config_files`` does, and hands over layers.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..providers import catalog
from ..schema.errors import CallerError
from ..schema.profiles import Profile
from ..tools.approval import Policy
from ..wire import strict_json

Origin: TypeAlias = Literal["flag", "environment", "project", "user", "default"]
"""Where a value comes from; an earlier one goes before a later one."""

ADDING: Final = frozenset({"approvals.allow", "approvals.ask", "approvals.deny"})
"""Lists that every source adds to: a project's rule to deny does not undo the user's."""
HARMLESS: Final = frozenset({"model", "approvals.ask", "approvals.deny", "agents_files"})
"""What a project's file may set before its folder is trusted: nothing here widens what may be done, or sends
a key or a word of the conversation to an address that the user has not chosen."""
DEFAULTS: Final[Mapping[str, Any]] = {"agents_files": True}


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None


class ModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a model; the prices are US dollars for a million tokens."""

    context_window: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    @property
    def has_price(self) -> bool:
        return self.input is not None and self.output is not None


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A configuration file, as docs/configuration.md describes it."""

    model: str | None = None
    base_url: str | None = None
    store: str | None = None
    agents_files: bool | None = None
    """Whether AGENTS.md files become part of the system prompt."""
    approvals: Policy = Policy()
    budget: BudgetTable = BudgetTable()
    profiles: Mapping[str, Mapping[str, Any]] = {}
    models: Mapping[str, ModelTable] = {}
    """By ``provider:model``."""


@dataclass(frozen=True, slots=True)
class Layer:
    """All that one source says, by dotted key."""

    origin: Origin
    where: str
    """Path of the file, or name of the variable or option."""
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """One setting that counts."""

    key: str
    value: Any
    origin: Origin
    where: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts, and what was left aside."""

    values: tuple[Value, ...]
    profiles: Mapping[str, Profile]
    """The catalog's and the user's."""
    notices: tuple[str, ...] = ()
    """What the user is to be told, one line each."""

    def get(self, key: str) -> Any:
        """The value that counts, or None."""
        return next((value.value for value in self.values if value.key == key), None)

    @property
    def model(self) -> str | None:
        found: str | None = self.get("model")
        return found

    @property
    def base_url(self) -> str | None:
        """The address that belongs to the model: one from a file does not go with a model from elsewhere.

        Else a file's address for a local server would get the key of whatever ``-m`` names.
        """
        sources = {value.key: value for value in self.values}
        address, model = sources.get("base_url"), sources.get("model")
        if address is None:
            return None
        near = address.origin in ("flag", "environment")
        together = model is not None and (model.origin, model.where) == (address.origin, address.where)
        return str(address.value) if near or together else None

    @property
    def store(self) -> str | None:
        found: str | None = self.get("store")
        return found

    @property
    def budget(self) -> BudgetTable:
        limits = {name: self.get(f"budget.{name}") for name in BudgetTable.__struct_fields__}
        return BudgetTable(**limits)

    @property
    def policy(self) -> Policy:
        return Policy(**{name: self._all(f"approvals.{name}") for name in ("allow", "ask", "deny")})

    @property
    def models(self) -> dict[str, ModelTable]:
        tables = {value.key: value.value for value in self.values if value.key.startswith("models.")}
        return {
            key.removeprefix("models."): msgspec.convert(table, ModelTable) for key, table in tables.items()
        }

    def _all(self, key: str) -> tuple[str, ...]:
        return tuple(rule for value in self.values if value.key == key for rule in value.value)


def read(text: str, where: str) -> dict[str, Any]:
    """The values of a file's text, by dotted key. Raises CallerError: one line that names file and key."""
    try:
        document = msgspec.convert(tomllib.loads(text, parse_float=strict_json.finite), Document)
    except msgspec.ValidationError as error:
        raise CallerError(f"{where}: {_problem(str(error))}") from error
    except strict_json.InvalidJson as error:  # a budget of nan would never be reached
        raise CallerError(f"{where}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise CallerError(f"{where} is not TOML: {error}") from error
    try:
        document.approvals.checked()
    except CallerError as error:
        raise CallerError(f"{where}: {error}") from error
    return _flat(document)


def layered(layers: Iterable[Layer], *, notices: Sequence[str] = ()) -> Settings:
    """What counts of several layers, given in the order of ``Origin``.

    Raises CallerError for a profile that cannot be read.
    """
    seen: dict[str, Value] = {}
    more: list[Value] = []
    for layer in (*layers, Layer("default", "", DEFAULTS)):
        for key, value in layer.values.items():
            item = Value(key, value, layer.origin, layer.where)
            if key in ADDING and key in seen:
                more.append(item)
            else:
                seen.setdefault(key, item)
    values = tuple(sorted((*seen.values(), *more), key=lambda item: item.key))
    return Settings(values=values, profiles=_profiles(values), notices=tuple(notices))


def trusted_part(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What a project's file may say without being trusted, and the keys that it may not."""
    kept = {key: value for key, value in values.items() if key in HARMLESS}
    return kept, sorted(set(values) - set(kept))


def _flat(document: Document) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name in ("model", "base_url", "store", "agents_files"):
        flat[name] = getattr(document, name)
    for name in ("allow", "ask", "deny"):
        flat[f"approvals.{name}"] = getattr(document.approvals, name) or None
    for name in document.budget.__struct_fields__:
        flat[f"budget.{name}"] = getattr(document.budget, name)
    flat |= {f"profiles.{name}": dict(table) for name, table in document.profiles.items()}
    for name, table in document.models.items():
        said = msgspec.to_builtins(table)
        flat[f"models.{name}"] = {key: value for key, value in said.items() if value is not None}
    return {key: value for key, value in flat.items() if value is not None}


def _profiles(values: Iterable[Value]) -> Mapping[str, Profile]:
    own = [value for value in values if value.key.startswith("profiles.")]
    known = dict(catalog.profiles())
    for value in _bases_first(own):
        name = value.key.removeprefix("profiles.")
        try:
            known = catalog.read_profiles({"profiles": {name: value.value}}, before=known)
        except CallerError as error:
            raise CallerError(f"{value.where}: {error}") from error
    return known


def _bases_first(own: Sequence[Value]) -> list[Value]:
    """In an order in which each profile comes behind the one it extends; a circle stays as it is."""
    waiting, ordered = list(own), list[Value]()
    while waiting:
        names = {value.key.removeprefix("profiles.") for value in waiting}
        ready = [value for value in waiting if str(value.value.get("extends")) not in names]
        ordered += ready or waiting
        waiting = [value for value in waiting if value not in ready] if ready else []
    return ordered


def _problem(text: str) -> str:
    """msgspec's words made a user's: ``unknown key modle``."""
    if "unknown field" in text:
        name = text.split("`")[1]
        inside = text.split("`$.")[1].rstrip("`") + "." if "`$." in text else ""
        known = _known_keys(inside.rstrip("."))
        return f"unknown key {inside}{name}" + (f"; known: {', '.join(known)}" if known else "")
    return text


def _known_keys(table: str) -> tuple[str, ...]:
    tables: dict[str, type[msgspec.Struct]] = {"": Document, "approvals": Policy, "budget": BudgetTable}
    if table.startswith("models"):
        return ModelTable.__struct_fields__
    return tables[table].__struct_fields__ if table in tables else ()

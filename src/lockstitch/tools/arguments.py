"""A model's arguments checked against the parameters of a function and converted to their types.

Exact first, then lenient: "10" becomes 10 where only a number fits, and a list or object that came as JSON
text is read, since models write both. Every problem is named with its place, all of them at once, so that one
more try can mend them all.
"""

import difflib
import re
import types
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from lockstitch.schema.errors import CallerError
from lockstitch.wire import strict_json

from .contract import InvalidArgumentsError
from .schema import Parameter, Schema, is_pydantic

_PROBLEMS_MAX: Final = 20
_WHERE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<where>.*)`)?$", re.DOTALL)


def convert(
    arguments: Mapping[str, Any], parameters: Sequence[Parameter], schema: Schema, *, tool: str
) -> dict[str, Any]:
    """Keyword arguments for the function; parameters that were left out and have a default are absent.

    Raises InvalidArgumentsError listing what is missing, unknown or of the wrong type.
    """
    problems = _unknown(arguments, schema, schema.get("$defs", {}), "")
    converted: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in arguments:
            if parameter.required:
                problems.append(f"{parameter.name}: missing, and it is required")
            continue
        try:
            converted[parameter.name] = _value(arguments[parameter.name], parameter.type)
        except _MismatchError as mismatch:
            problems.append(f"{parameter.name}{mismatch.where}: {mismatch.what}")
    if problems:
        shown = problems[:_PROBLEMS_MAX]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        listed = "\n".join(f"- {problem}" for problem in shown)
        raise InvalidArgumentsError(
            f"The arguments of {tool} do not fit, so it was not run:\n{listed}"
            f"\nIts parameters: {_summary(schema)}"
        )
    return converted


def check_supported(parameter: Parameter, owner: str) -> None:
    """Raises CallerError if values of the parameter's type could never be converted. Called once per tool."""
    try:
        _value(_Nothing(), parameter.type)
    except _MismatchError:
        return
    except (TypeError, NotImplementedError) as error:
        raise CallerError(f"{owner}: parameter {parameter.name!r}: {error}") from error


class _Nothing:
    """Converts to no type but Any."""


class _MismatchError(Exception):
    def __init__(self, what: str, where: str = "") -> None:
        self.what = what
        self.where = where


def _value(value: Any, kind: Any) -> Any:
    try:
        return _converted(value, kind)
    except _MismatchError:
        if not (isinstance(value, str) and value.lstrip()[:1] in ("[", "{")):
            raise
        try:
            return _converted(strict_json.parse(value), kind)
        except (strict_json.InvalidJson, _MismatchError):
            pass  # the first complaint, about what the model wrote, is the useful one
        raise


def _converted(value: Any, kind: Any) -> Any:
    arms = _own_arms(kind)
    if arms:
        return _first_fitting(value, arms)
    for strict in (True, False):
        try:
            return msgspec.convert(value, kind, strict=strict, dec_hook=_decode_foreign)
        except msgspec.ValidationError as error:
            if not strict:
                raise _mismatch(error, value) from error
    raise AssertionError("both passes either return or raise")


def _first_fitting(value: Any, arms: tuple[Any, ...]) -> Any:
    """The first arm that fits, for unions msgspec cannot tell apart (two classes without a tag)."""
    complaints: list[str] = []
    for arm in arms:
        try:
            return _converted(value, arm)
        except _MismatchError as mismatch:
            complaints.append(f"{getattr(arm, '__name__', arm)}{mismatch.where}: {mismatch.what}")
    raise _MismatchError("fits none of its types (" + "; ".join(complaints) + ")")


def _own_arms(kind: Any) -> tuple[Any, ...]:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) not in (Union, types.UnionType):
        return ()
    try:
        msgspec.convert(_Nothing(), kind, dec_hook=_decode_foreign)
    except TypeError:
        return get_args(kind)
    except msgspec.ValidationError:
        return ()
    return ()


def _decode_foreign(kind: type, value: Any) -> Any:
    """Types msgspec does not know: paths, and the user's pydantic models."""
    if issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return kind(value)
    if is_pydantic(kind):
        try:
            return kind.model_validate(value)  # type: ignore[attr-defined]  # what is_pydantic has checked
        except ValueError as error:  # pydantic.ValidationError is one
            raise ValueError(_pydantic_complaint(error)) from error
    raise NotImplementedError(
        f"type {kind.__name__} is not supported; use builtin, msgspec or pydantic types"
    )


def _pydantic_complaint(error: ValueError) -> str:
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return str(error)
    return "; ".join(
        f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}"
        if entry["loc"]
        else str(entry["msg"])
        for entry in listed(include_url=False, include_input=False)
    )


def _mismatch(error: msgspec.ValidationError, value: Any) -> _MismatchError:
    match = _WHERE.match(str(error))
    assert match is not None  # both groups are optional
    what = match["what"].replace("`", "")
    what = what[:1].lower() + what[1:]
    where = (match["where"] or "").removeprefix("$")
    if not where and isinstance(value, str | int | float | bool):
        what += f" ({_shown(value)})"
    return _MismatchError(what, where)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _unknown(value: Any, schema: Any, definitions: Schema, where: str) -> list[str]:
    """Arguments and fields that nothing would read. Follows objects and arrays, not unions."""
    if not isinstance(schema, dict):
        return []
    if isinstance(reference := schema.get("$ref"), str):
        schema = definitions.get(reference.removeprefix("#/$defs/"), {})
    found: list[str] = []
    properties = schema.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, dict):
        for key, item in value.items():
            place = f"{where}.{key}" if where else str(key)
            if key in properties:
                found += _unknown(item, properties[key], definitions, place)
            elif schema.get("additionalProperties") is False:
                close = difflib.get_close_matches(str(key), list(properties), n=1)
                found.append(
                    f"{_shown_key(place)}: unknown" + (f"; did you mean {close[0]}?" if close else "")
                )
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for position, item in enumerate(value):
            found += _unknown(item, items, definitions, f"{where}[{position}]")
    return found


def _shown_key(place: str) -> str:
    return place if len(place) <= 100 else f"{place[:100]}..."


def _summary(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    names = [name if name in required else f"{name}?" for name in schema["properties"]]
    return "{" + ", ".join(names) + "}"

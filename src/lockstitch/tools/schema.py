"""JSON Schema of a function's parameters, from annotations and docstrings.

Plain on purpose: objects are written where they stand and ``$ref`` appears only for a type that contains
itself, because several providers and most small models do not follow references. ``additionalProperties`` is
false for every object of known fields: an argument that nobody reads is a mistake of the model, and strict
modes demand it.
The order is that of the declaration, always, so that a provider's prefix cache can hold.
"""

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from lockstitch.schema.errors import CallerError
from lockstitch.wire import strict_json

from .docstring import Docstring, parse
from .schema_references import inlined

Schema = dict[str, Any]

_ARRAYS: Final = (list, tuple, set, frozenset)
_ABSTRACT_ARRAYS: Final = {"Sequence", "MutableSequence", "Collection", "Iterable", "Set", "MutableSet"}
_ABSTRACT_MAPS: Final = {"Mapping", "MutableMapping"}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Any
    """The annotation, resolved; Any where there is none."""
    required: bool


class UnsupportedTypeError(Exception):
    """A type that has no schema; carries the reason."""


def describe(
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
    documented: Docstring,
    *,
    owner: str,
) -> tuple[tuple[Parameter, ...], Schema]:
    """The parameters of one function and the schema of the object they form.

    Raises CallerError naming the owner and the parameter for what no schema can describe.
    """
    writer = _Writer()
    taken: list[Parameter] = []
    properties: Schema = {}
    for name, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise CallerError(
                f"{owner}: parameter {name!r} is {parameter.kind.description}; a model passes arguments by"
                " name, so declare each of them"
            )
        annotation = hints.get(name, Any)
        try:
            schema = writer.write(annotation)
        except UnsupportedTypeError as error:
            raise CallerError(f"{owner}: parameter {name!r}: {error}") from error
        if documented.parameters.get(name):
            schema = {**schema, "description": schema.get("description") or documented.parameters[name]}
        required = parameter.default is parameter.empty
        if not required:
            schema = _with_default(schema, parameter.default)
        properties[name] = schema
        taken.append(Parameter(name, annotation, required))
    result = _object(properties, [parameter.name for parameter in taken if parameter.required])
    if writer.definitions:
        result["$defs"] = writer.definitions
    return tuple(taken), result


def is_pydantic(kind: Any) -> bool:
    """Whether it is a pydantic model class; told by its methods, since pydantic is the user's, not ours."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def resolved_hints(target: Callable[..., Any] | type, owner: str) -> dict[str, Any]:
    """Annotations with their strings evaluated. Raises CallerError for a name that is not there."""
    if not inspect.isclass(target) and not inspect.isroutine(target) and callable(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise CallerError(
            f"{owner}: an annotation cannot be resolved ({error}); define the type at module level"
        ) from error


def _object(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def _with_default(schema: Schema, default: Any) -> Schema:
    try:
        encoded = msgspec.json.encode(default)
        held = strict_json.encoded(msgspec.to_builtins(default, str_keys=True)).encode()
    except (TypeError, ValueError):
        return schema  # a default with no JSON form (a sentinel) is simply not told
    if held != encoded:
        return schema  # neither is infinity, which is no null
    return {**schema, "default": msgspec.json.decode(encoded)}


class _Writer:
    """Writes schemas of types; collects definitions of types that contain themselves."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._open: list[Any] = []
        self._recursive: set[str] = set()

    def write(self, kind: Any) -> Schema:
        origin = get_origin(kind)
        if origin is Annotated:
            return self._annotated(kind)
        if isinstance(kind, typing.NewType):
            return self.write(kind.__supertype__)
        if isinstance(kind, typing.TypeVar):
            return self.write(kind.__bound__) if kind.__bound__ else {}
        if kind is Any or kind is inspect.Parameter.empty or kind is object:
            return {}
        if kind is None or kind is types.NoneType:
            return {"type": "null"}
        if origin in (Union, types.UnionType):
            return self._union(get_args(kind))
        if origin is Literal:
            return _values(list(get_args(kind)))
        if _is_array(origin or kind):
            return self._array(origin or kind, get_args(kind))
        if _is_map(origin or kind):
            arguments = get_args(kind)
            value = self.write(arguments[1]) if len(arguments) == 2 else {}
            return {"type": "object", "additionalProperties": value} if value else {"type": "object"}
        return self._class(kind)

    def _class(self, kind: Any) -> Schema:
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _values([member.value for member in kind])
        if isinstance(kind, type) and issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        if is_pydantic(kind):
            return inlined(kind.model_json_schema())
        if _has_fields(kind):
            return self._fields_of(kind)
        try:
            schema = inlined(msgspec.json.schema(kind))
        except TypeError as error:
            raise UnsupportedTypeError(
                f"type {_type_name(kind)} has no JSON Schema; use builtin types, dataclasses, TypedDict,"
                " Literal, Enum, msgspec or pydantic types"
            ) from error
        return schema

    def _annotated(self, kind: Any) -> Schema:
        inner, *extras = get_args(kind)
        metas = [extra for extra in extras if isinstance(extra, msgspec.Meta)]
        schema = self.write(inner)
        if metas:
            try:
                constrained = msgspec.json.schema(Annotated[(inner, *metas)])
            except TypeError as error:
                raise UnsupportedTypeError(f"constraints on {_type_name(inner)}: {error}") from error
            told = {key: value for key, value in constrained.items() if key not in ("$ref", "$defs", "anyOf")}
            schema = {**schema, **{key: value for key, value in told.items() if key not in schema}}
        for extra in extras:
            text = extra if isinstance(extra, str) else getattr(extra, "description", None)
            if isinstance(text, str) and text:
                schema = {**schema, "description": inspect.cleandoc(text)}
        return schema

    def _union(self, arms: tuple[Any, ...]) -> Schema:
        # not a list of types, which some providers refuse (gemini) and all take this
        return {"anyOf": [self.write(arm) for arm in arms]}

    def _array(self, container: Any, arguments: tuple[Any, ...]) -> Schema:
        schema: Schema = {"type": "array"}
        if container is tuple and arguments and arguments[-1] is not Ellipsis:
            items = [self.write(item) for item in arguments]
            if len({repr(item) for item in items}) == 1:
                schema["items"] = items[0]
            else:
                schema["prefixItems"] = items
                schema["items"] = False
            return {**schema, "minItems": len(items), "maxItems": len(items)}
        items_of = self.write(arguments[0]) if arguments else {}
        if items_of:
            schema["items"] = items_of
        else:
            schema["items"] = {}  # gemini refuses an array without items
        if container in (set, frozenset) or getattr(container, "__name__", "") in ("Set", "MutableSet"):
            schema["uniqueItems"] = True
        return schema

    def _fields_of(self, kind: Any) -> Schema:
        name = _type_name(kind)
        if kind in self._open:
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}"}
        self._open.append(kind)
        try:
            schema = self._object_of(kind)
        finally:
            self._open.pop()
        if name in self._recursive:
            self.definitions[name] = schema
            return {"$ref": f"#/$defs/{name}"}
        return schema

    def _object_of(self, kind: Any) -> Schema:
        documented = parse(_own_docstring(kind))
        properties: Schema = {}
        required: list[str] = []
        for name, annotation, default in _fields(kind):
            schema = self.write(annotation)
            told = documented.parameters.get(name)
            if told and "description" not in schema:
                schema = {**schema, "description": told}
            if default is _REQUIRED:
                required.append(name)
            elif default is not _UNTOLD:
                schema = _with_default(schema, default)
            properties[name] = schema
        result = _object(properties, required)
        if documented.description:
            result = {**result, "description": documented.description}
        return result


_REQUIRED: Final = object()
_UNTOLD: Final = object()


def _fields(kind: Any) -> list[tuple[str, Any, Any]]:
    """Name on the wire, annotation, and default (or _REQUIRED, or _UNTOLD) of each field of a class."""
    hints = resolved_hints(kind, _type_name(kind))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = [
            (field.encode_name, hints[field.name], _struct_default(field))
            for field in msgspec.structs.fields(kind)
        ]
        config = kind.__struct_config__
        if config.tag_field is not None:
            fields.insert(0, (config.tag_field, Literal[config.tag], _REQUIRED))
        return fields
    if dataclasses.is_dataclass(kind):
        return [
            (field.name, hints[field.name], _dataclass_default(field))
            for field in dataclasses.fields(kind)
            if field.init
        ]
    if typing.is_typeddict(kind):
        return [
            (name, _bare(annotation), _REQUIRED if name in kind.__required_keys__ else _UNTOLD)
            for name, annotation in hints.items()
        ]
    raise UnsupportedTypeError(f"type {_type_name(kind)} has no fields that can be told")


def _has_fields(kind: Any) -> bool:
    return (
        (
            isinstance(kind, type)
            and issubclass(kind, msgspec.Struct)
            and not kind.__struct_config__.array_like
        )
        or dataclasses.is_dataclass(kind)
        or typing.is_typeddict(kind)
    )


def _struct_default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return _REQUIRED
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return _made(field.default_factory)


def _dataclass_default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return _made(field.default_factory)
    return _REQUIRED


def _made(factory: Any) -> Any:
    """A default of list, dict, set or tuple is told; any other factory may have effects and is not called."""
    return factory() if factory in (list, dict, set, tuple) else _UNTOLD


def _bare(annotation: Any) -> Any:
    """Without Required, NotRequired and ReadOnly, which say what the schema's ``required`` says."""
    while getattr(get_origin(annotation), "_name", None) in ("Required", "NotRequired", "ReadOnly"):
        annotation = get_args(annotation)[0]
    return annotation


def _own_docstring(kind: Any) -> str | None:
    text = kind.__dict__.get("__doc__")
    if not isinstance(text, str):
        return None
    generated = dataclasses.is_dataclass(kind) and text.startswith(f"{_type_name(kind)}(")
    return None if generated else text


def _values(values: list[Any]) -> Schema:
    """An enumeration, with its type where all values share one."""
    names = [_json_type(value) for value in values]
    if None in names:
        raise UnsupportedTypeError("only strings, numbers, booleans and None can be enumerated")
    distinct = list(dict.fromkeys(names))
    schema: Schema = {"type": distinct[0]} if len(distinct) == 1 else {"type": distinct}
    return {**schema, "enum": values}


def _json_type(value: Any) -> str | None:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return None


def _is_array(kind: Any) -> bool:
    return kind in _ARRAYS or (
        getattr(kind, "__module__", "") == "collections.abc"
        and getattr(kind, "__name__", "") in _ABSTRACT_ARRAYS
    )


def _is_map(kind: Any) -> bool:
    return kind is dict or (
        getattr(kind, "__module__", "") == "collections.abc"
        and getattr(kind, "__name__", "") in _ABSTRACT_MAPS
    )


def _type_name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)

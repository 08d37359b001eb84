"""What a model is told about a tool: JSON Schema from annotations, descriptions from docstrings."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pytest

from lockstitch.schema.errors import CallerError
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.docstring import Docstring, parse
from lockstitch.tools.functions import tool
from lockstitch.tools.registry import Registry


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place.

    Attributes:
        x: how far right
    """

    x: int
    y: Annotated[int, "how far up"] = 0
    tags: list[str] = field(default_factory=list)


class Options(TypedDict):
    name: str
    deep: NotRequired[bool]


class Box(msgspec.Struct):
    corner: Point
    size: Annotated[int, msgspec.Meta(ge=1, description="edge length")] = 1


class Circle(msgspec.Struct, tag="circle", rename="camel"):
    inner_radius: float


@dataclass
class Tree:
    children: list["Tree"]


POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "how far right"},
        "y": {"type": "integer", "description": "how far up", "default": 0},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["x"],
    "additionalProperties": False,
    "description": "A place.",
}
TREE = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["children"],
    "additionalProperties": False,
}

TYPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "text is a string": (str, {"type": "string"}),
    "a whole number is an integer": (int, {"type": "integer"}),
    "a float is a number": (float, {"type": "number"}),
    "bool is not an integer": (bool, {"type": "boolean"}),
    "anything has no constraint": (Any, {}),
    "a path is a string": (Path, {"type": "string", "format": "path"}),
    "a description may stand in Annotated": (
        Annotated[int, "how many"],
        {"type": "integer", "description": "how many"},
    ),
    "constraints of msgspec are kept": (
        Annotated[int, msgspec.Meta(ge=1, le=9)],
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    "a literal is an enumeration": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    "a literal of several types lists them": (
        Literal["a", 1],
        {"type": ["string", "integer"], "enum": ["a", 1]},
    ),
    "an Enum is told by its values": (Colour, {"type": "string", "enum": ["red", "blue"]}),
    "optional is one of two, and no list of types": (
        str | None,
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    "a union lists its arms in order": (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    "a list tells its items": (list[int], {"type": "array", "items": {"type": "integer"}}),
    "a bare list has items of any kind": (list, {"type": "array", "items": {}}),
    "a sequence is an array": (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    "a set says that its items differ": (
        set[int],
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    ),
    "a pair has a fixed length": (
        tuple[int, int],
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    ),
    "a mixed pair tells each place": (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    "a tuple of any length is an array": (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
    "a dict tells its values": (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    "a mapping of anything is an open object": (Mapping[str, Any], {"type": "object"}),
    "a dataclass is written where it stands": (Point, POINT),
    "a TypedDict knows what may be missing": (
        Options,
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "deep": {"type": "boolean"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
    "a Struct nests without references": (
        Box,
        {
            "type": "object",
            "properties": {
                "corner": POINT,
                "size": {"type": "integer", "minimum": 1, "description": "edge length", "default": 1},
            },
            "required": ["corner"],
            "additionalProperties": False,
        },
    ),
    "a tagged Struct tells its tag and its names on the wire": (
        Circle,
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["circle"]},
                "innerRadius": {"type": "number"},
            },
            "required": ["type", "innerRadius"],
            "additionalProperties": False,
        },
    ),
}


def schema_of(annotation: Any) -> dict[str, Any]:
    def probe(value: Any) -> None: ...

    probe.__annotations__["value"] = annotation
    return dict(tool(probe).spec.parameters)


@pytest.mark.parametrize(("annotation", "expected"), TYPES.values(), ids=TYPES)
def test_schema_of_a_type(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema_of(annotation) == {
        "type": "object",
        "properties": {"value": expected},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_only_a_type_that_contains_itself_is_a_reference() -> None:
    assert schema_of(Tree) == {
        "type": "object",
        "properties": {"value": {"$ref": "#/$defs/Tree"}},
        "required": ["value"],
        "additionalProperties": False,
        "$defs": {"Tree": TREE},
    }


def test_a_pydantic_model_is_written_where_it_stands() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner = pydantic.create_model("Inner", n=(int, pydantic.Field(description="a number")))
    outer = pydantic.create_model("Outer", inner=(inner, ...), title=(str, "none"))
    value = schema_of(outer)["properties"]["value"]
    assert value["properties"] == {
        "inner": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "a number"}},
            "required": ["n"],
        },
        "title": {"type": "string", "default": "none"},
    }


def test_parameters_keep_their_order_and_the_context_is_not_one_of_them() -> None:
    @tool
    def search(query: str, *, context: ToolContext, limit: int = 10, deep: bool = False) -> str:
        """Search the archive.

        Args:
            query: what to look for,
                as words
            limit: how many

        Returns:
            One hit a line.
        """
        return query

    assert list(search.spec.parameters["properties"].items()) == [
        ("query", {"type": "string", "description": "what to look for, as words"}),
        ("limit", {"type": "integer", "description": "how many", "default": 10}),
        ("deep", {"type": "boolean", "default": False}),
    ]
    assert search.spec.description == "Search the archive.\n\nReturns:\n    One hit a line."


def test_the_schema_is_the_same_bytes_every_time() -> None:
    def build() -> bytes:
        return msgspec.json.encode(schema_of(dict[str, Box | None]))

    assert len({build() for _ in range(5)}) == 1


def variadic(*values: int) -> None: ...


def keywords(**values: int) -> None: ...


def functional(callback: Callable[[], None]) -> None: ...


def generating() -> Any:
    yield 1


def unresolved(value: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "positional arguments cannot be told to a model": (
        variadic,
        "tool variadic: parameter 'values' is variadic",
    ),
    "nor can any keyword": (keywords, "tool keywords: parameter 'values' is variadic"),
    "a function is no JSON": (
        functional,
        "tool functional: parameter 'callback': type Callable has no JSON Schema",
    ),
    "a generator does not return": (generating, "@tool needs a function that returns"),
    "an annotation must resolve": (unresolved, "tool unresolved: an annotation cannot be resolved"),
}


@pytest.mark.parametrize(("function", "message"), REFUSED.values(), ids=REFUSED)
def test_a_signature_without_a_schema_is_refused_when_it_is_declared(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(CallerError) as caught:
        tool(function)
    assert str(caught.value).startswith(message)


def test_a_tool_is_still_its_function() -> None:
    @tool(name="plus", description="Adds.", parallel=True, needs="approval", timeout_s=3, result_max_chars=9)
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert add(1, b=2) == 3
    assert (add.name, add.spec.description, add.parallel, add.needs, add.timeout_s, add.result_max_chars) == (
        "plus",
        "Adds.",
        True,
        "approval",
        3,
        9,
    )


DOCSTRINGS: dict[str, tuple[str | None, Docstring]] = {
    "no docstring says nothing": (None, Docstring()),
    "Google style": (
        """Do it.

        More about it.

        Args:
            first (int, optional): the first
                of them: really
            *rest: others

            last: after a blank line
        Raises:
            ValueError: never
        """,
        Docstring(
            "Do it.\n\nMore about it.\n\nRaises:\n    ValueError: never",
            {"first": "the first of them: really", "rest": "others", "last": "after a blank line"},
        ),
    ),
    "NumPy style": (
        """Do it.

        Parameters
        ----------
        x, y : int
            Where
            it is.
        z : float, optional

        Returns
        -------
        int
            The sum.
        """,
        Docstring(
            "Do it.\n\nReturns\n-------\nint\n    The sum.",
            {"x": "Where it is.", "y": "Where it is.", "z": ""},
        ),
    ),
    "Sphinx style": (
        """Do it.

        :param first: the first
            of them
        :type first: int
        :param int second: the second
        :returns: nothing
        """,
        Docstring("Do it.\n\n:returns: nothing", {"first": "the first of them", "second": "the second"}),
    ),
    "prose with a colon is prose": (
        "Note: this is text.\nArgs are good.",
        Docstring("Note: this is text.\nArgs are good."),
    ),
}


@pytest.mark.parametrize(("text", "expected"), DOCSTRINGS.values(), ids=DOCSTRINGS)
def test_docstrings(text: str | None, expected: Docstring) -> None:
    assert parse(text) == expected


def named(name: str) -> Any:
    return tool(name=name)(lambda: None)


def test_the_registry_keeps_its_order() -> None:
    registry = Registry([named("b"), named("a")])
    assert [spec.name for spec in registry.specs()] == ["b", "a"] == list(registry.names())
    assert registry.get("a") is not None
    assert registry.get("c") is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "two tools are named 'a'"),
        (["a b"], "tool name 'a b'"),
        (["x" * 65], "tool name"),
        (["é"], "tool name"),
    ],
    ids=["a name is there once", "a space is refused", "64 characters are the most", "letters are ASCII"],
)
def test_names_that_providers_refuse_are_refused_here(names: list[str], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        Registry([named(name) for name in names])

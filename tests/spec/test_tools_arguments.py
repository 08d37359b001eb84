"""A model's arguments, converted or answered with every problem and its place."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch.tools.contract import InvalidArgumentsError, Tool, ToolContext
from lockstitch.tools.functions import tool
from lockstitch.tools.output import to_output


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Named:
    name: str


class Job(TypedDict, total=False):
    points: list[Point]
    label: str


@tool(name="probe")
async def probe(
    n: int = 0,
    s: str = "",
    b: bool = False,
    items: list[int] | None = None,
    point: Point | None = None,
    either: Point | Named | None = None,
    job: Job | None = None,
    mode: Literal["fast", "slow"] = "fast",
    path: Path | None = None,
    number_or_text: int | str = 0,
) -> str:
    given = {key: value for key, value in locals().items() if value}
    given.pop("mode" if mode == "fast" else "", None)
    return repr(given)


@tool(name="strict")
async def strict(first: int, second: str) -> str:
    return f"{first} {second}"


FIT: dict[str, tuple[dict[str, Any], str]] = {
    "nothing at all, where all has defaults": ({}, "{}"),
    "a number written as text is a number": ({"n": "10"}, "{'n': 10}"),
    "a whole float is a whole number": ({"n": 3.0}, "{'n': 3}"),
    "true written as text is true": ({"b": "true"}, "{'b': True}"),
    "digits stay text where text is allowed": (
        {"s": "10", "number_or_text": "7"},
        "{'s': '10', 'number_or_text': '7'}",
    ),
    "an array written as JSON text is read": ({"items": "[1, 2]"}, "{'items': [1, 2]}"),
    "an object written as JSON text is read": ({"point": '{"x": 1}'}, "{'point': Point(x=1, y=0)}"),
    "JSON text stays text where text is wanted": ({"s": "[1]"}, "{'s': '[1]'}"),
    "null is none where none is allowed": ({"items": None}, "{}"),
    "numbers written as text inside an array": ({"items": ["1", 2]}, "{'items': [1, 2]}"),
    "two classes without a tag are told apart by what fits": (
        {"either": {"name": "a"}},
        "{'either': Named(name='a')}",
    ),
    "nested objects become their classes": (
        {"job": {"points": [{"x": 1, "y": 2}]}},
        "{'job': {'points': [Point(x=1, y=2)]}}",
    ),
    "a path becomes one": ({"path": "a/b"}, f"{{'path': {Path('a/b')!r}}}"),
}

MISFIT: dict[str, tuple[Tool, dict[str, Any], list[str]]] = {
    "what is missing is named, all of it": (
        strict,
        {},
        ["first: missing, and it is required", "second: missing, and it is required"],
    ),
    "what is unknown is named, with what was perhaps meant": (
        strict,
        {"first": 1, "secnd": "x"},
        ["secnd: unknown; did you mean second?", "second: missing, and it is required"],
    ),
    "the wrong type is named with the value": (
        strict,
        {"first": "ten", "second": "x"},
        ["first: expected int, got str ('ten')"],
    ),
    "a number is not text": (strict, {"first": 1, "second": 5}, ["second: expected str, got int (5)"]),
    "an error inside a list says where": (probe, {"items": [1, "x"]}, ["items[1]: expected int, got str"]),
    "an error inside an object says where": (
        probe,
        {"job": {"points": [{"x": 1}, {"x": "far"}]}},
        ["job.points[1].x: expected int, got str"],
    ),
    "a missing field inside an object is named": (
        probe,
        {"point": {"y": 1}},
        ["point: object missing required field x"],
    ),
    "a choice lists what was given": (
        probe,
        {"mode": "quick"},
        ["mode: invalid enum value 'quick' ('quick')"],
    ),
    "a union that nothing fits says why for each": (
        probe,
        {"either": {"z": 1}},
        [
            "either: fits none of its types (Point: object missing required field x; Named: object missing"
            " required field name; NoneType: expected null, got object)"
        ],
    ),
    "a whole that is not whole is refused": (probe, {"n": 1.5}, ["n: expected int, got float (1.5)"]),
}


@pytest.mark.parametrize(("arguments", "expected"), FIT.values(), ids=FIT)
async def test_arguments_that_fit(arguments: dict[str, Any], expected: str) -> None:
    assert await probe.invoke(arguments, ToolContext(Path())) == to_output(expected)


@pytest.mark.parametrize(("which", "arguments", "problems"), MISFIT.values(), ids=MISFIT)
async def test_arguments_that_do_not_fit(which: Tool, arguments: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await which.invoke(arguments, ToolContext(Path()))
    first, *listed, last = str(caught.value).split("\n")
    assert first == f"The arguments of {which.name} do not fit, so it was not run:"
    assert listed == [f"- {problem}" for problem in problems]
    assert last.startswith("Its parameters: {")


async def test_an_unknown_field_inside_an_object_is_reported() -> None:
    @tool
    async def place(point: Point) -> str:
        return repr(point)

    with pytest.raises(InvalidArgumentsError, match=r"- point\.z: unknown"):
        await place.invoke({"point": {"x": 1, "z": 2}}, ToolContext(Path()))


async def test_a_pydantic_model_validates_itself_and_its_complaints_are_told() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", n=(int, pydantic.Field(gt=0)))

    async def take(value: Any, many: Any = None) -> str:
        return repr(value)

    take.__annotations__.update(value=model, many=list[model] | None)
    made = tool(take)
    assert await made.invoke({"value": {"n": "3"}}, ToolContext(Path())) == to_output("Model(n=3)")
    with pytest.raises(InvalidArgumentsError) as caught:
        await made.invoke({"value": {"n": 0}, "many": [{"n": 1}, {}]}, ToolContext(Path()))
    assert str(caught.value).split("\n")[1:3] == [
        "- value: n: Input should be greater than 0",
        "- many[1]: n: Field required",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["n", "s", "items", "point", "either", "job", "mode", "path", "zz"]), JSON
    )
)
async def test_any_json_object_is_converted_or_complained_about(arguments: dict[str, Any]) -> None:
    try:
        await probe.invoke(arguments, ToolContext(Path()))
    except InvalidArgumentsError as error:
        assert str(error).startswith("The arguments of probe do not fit")

"""What `lockstitch` promises by name is there, and nothing else is promised by accident."""

import ast
import importlib
import types
from pathlib import Path

import pytest

import lockstitch

PACKAGE = Path(lockstitch.__file__).parent


def type_checked_names() -> set[str]:
    """Names imported under TYPE_CHECKING: what a type checker, and so an editor, believes to be there."""
    tree = ast.parse((PACKAGE / "__init__.py").read_bytes())
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


@pytest.mark.parametrize("name", lockstitch.__all__)
def test_a_promised_name_is_importable(name: str) -> None:
    value = getattr(lockstitch, name)
    assert not isinstance(value, types.ModuleType)
    assert value.__doc__, f"{name} is public and has no docstring"


def test_people_and_type_checkers_see_the_same_names() -> None:
    assert set(lockstitch.__all__) == type_checked_names()
    assert len(lockstitch.__all__) == len(set(lockstitch.__all__))
    assert set(lockstitch.__all__) <= set(dir(lockstitch))


def test_a_public_name_is_the_object_of_its_module() -> None:
    for name in lockstitch.__all__:
        value = getattr(lockstitch, name)
        if not isinstance(value, types.UnionType):  # which does not know where it is defined
            assert getattr(importlib.import_module(value.__module__), value.__name__) is value


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Angel'"):
        _ = lockstitch.Angel  # type: ignore[attr-defined]  # that it is not there is the point


def packages_with_promises() -> list[str]:
    """Modules below the package that have an `__all__` of their own."""
    return [
        ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent != PACKAGE and "__all__" in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("module", packages_with_promises())
def test_what_a_module_exports_is_there(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []

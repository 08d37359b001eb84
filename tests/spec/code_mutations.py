"""Forcing one decision of a module after the other, in place: what no test notices is untested.

Each ``if`` and each conditional expression is forced to true and to false. Only function code is exchanged,
so every reference that other modules hold stays good; the original code is put back in the end.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


def survivors(module: ModuleType, notices: Callable[[], bool], *, operands: bool = False) -> list[str]:
    """The decisions that can be forced without ``notices`` saying so, as ``forced <bool>: <source>``.

    ``operands``: each operand of ``and`` and ``or`` is left out, too, as ``without <source>``.
    """
    file = str(module.__file__)
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    alive: list[str] = []
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp)]:
        test = node.test
        for forced in (False, True):
            node.test = ast.copy_location(ast.Constant(forced), test)
            mutant = compile(tree, file, "exec")
            node.test = test
            with _running(module, mutant):
                noticed = notices()
            if not noticed:
                alive.append(f"forced {forced}: {ast.unparse(test)}")
    for whole in [node for node in ast.walk(tree) if isinstance(node, ast.BoolOp) and operands]:
        for place, operand in enumerate(whole.values):
            whole.values[place] = ast.copy_location(ast.Constant(isinstance(whole.op, ast.And)), operand)
            mutant = compile(tree, file, "exec")
            whole.values[place] = operand
            with _running(module, mutant):
                noticed = notices()
            if not noticed:
                alive.append(f"without {ast.unparse(operand)}")
    return alive


@contextmanager
def _running(module: ModuleType, code: CodeType) -> Iterator[None]:
    """The module's functions with the code they have in ``code``."""
    mutant = ModuleType(module.__name__)
    mutant.__package__ = module.__package__
    exec(code, mutant.__dict__)
    saved: list[tuple[FunctionType, CodeType]] = []
    originals = dict(_functions(module))
    for name, function in _functions(mutant):
        original = originals.get(name)
        if original is not None and original.__code__.co_freevars == function.__code__.co_freevars:
            saved.append((original, original.__code__))
            original.__code__ = function.__code__
    try:
        yield
    finally:
        for original, its_code in saved:
            original.__code__ = its_code


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            yield from _methods(name, value)


def _methods(owner: str, kind: Any) -> Iterator[tuple[str, FunctionType]]:
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else value
        if inspect.isfunction(function):
            yield f"{owner}.{name}", function

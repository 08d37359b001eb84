"""Deleting checks one at a time: a table of cases must notice each, or the check is an empty rule."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def deep() -> Any:
    """JSON that is nested deeper than providers read, and not deeper than Python does."""
    value: Any = 1
    for _ in range(150):
        value = [value]
    return value


def survivors(module: ModuleType, table: Callable[[Callable[..., Any]], list[Any]]) -> list[str]:
    """Places where ``module`` reports a violation that ``table`` would not miss, as ``rule at line``.

    ``table`` runs its cases through a ``violations`` function and returns all that it said.
    """
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    expected = table(module.violations)
    alive: list[str] = []
    for line, rule in _reports(source):
        mutant = _mutant(module, source, line, rule)
        if table(mutant.violations) == expected:
            alive.append(f"{rule} at line {line}")
    return alive


def _reports(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        rule = _reported(node)
        if rule is not None and isinstance(node, ast.Call):
            yield node.lineno, rule


def _reported(node: ast.AST) -> str | None:
    """The rule that a call reports, if it is ``self._add(rule, ...)`` or ``Violation(rule, ...)``."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0]
    if name in ("_add", "Violation") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    return None


class _Silence(ast.NodeTransformer):
    def __init__(self, line: int, rule: str) -> None:
        self._line, self._rule = line, rule

    def visit_Call(self, node: ast.Call) -> ast.AST:  # the visitor's own spelling
        self.generic_visit(node)
        if _reported(node) == self._rule and node.lineno == self._line:
            node.args[0] = ast.copy_location(ast.Constant("silenced"), node.args[0])
        return node


def _mutant(module: ModuleType, source: str, line: int, rule: str) -> ModuleType:
    tree = ast.fix_missing_locations(_Silence(line, rule).visit(ast.parse(source)))
    mutant = ModuleType(module.__name__)
    mutant.__package__ = module.__package__
    sys.modules.setdefault(module.__name__, module)
    exec(compile(tree, str(module.__file__), "exec"), mutant.__dict__)
    return mutant

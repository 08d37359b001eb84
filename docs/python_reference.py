"""Writes docs/python.md: every public name with its signature and its contract, from the code itself.

``python docs/python_reference.py`` rewrites the page; a test fails while it differs from the code.
"""

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lockstitch
from lockstitch.agent.events import UserEvent
from lockstitch.schema.blocks import Block

PAGE = Path(__file__).parent / "python.md"
WIDTH = 100
SHORT = {
    " | ".join(member.__name__ for member in union.__args__): name
    for name, union in (("Block", Block), ("UserEvent", UserEvent))
}
"""Unions that have a name of their own."""
HEAD = """\
# Python

Everything public, from `import lockstitch`, and `lockstitch.testing` ([gateway.md](gateway.md),
[agent.md](agent.md#tests)) beside it; modules below may change. Made by `docs/python_reference.py` from the
docstrings, which are contracts: change them there.
"""


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for name in lockstitch.__all__:
        parts += list(_entry(name, getattr(lockstitch, name)))
    return "\n".join(parts).rstrip() + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"## `{name}`\n"
    if isinstance(value, types.UnionType):
        yield "One of " + ", ".join(f"`{member.__name__}`" for member in value.__args__) + ".\n"
        return
    if not isinstance(value, type):
        yield f"```text\n{_broken(_signature(name, value))}\n```\n"
        yield _doc(value)
        return
    if not issubclass(value, BaseException):
        yield f"```text\n{_broken(_signature(name, value))}\n```\n"
    else:
        yield f"`code` is `{getattr(value, 'code', '')}`.\n"
    yield _doc(value)
    if not issubclass(value, BaseException):
        if inspect.isfunction(value.__init__) and value.__init__.__doc__:
            yield _doc(value.__init__)
        yield from _fields(value)
        yield from _members(value)


def _fields(owner: type) -> Iterator[str]:
    """What stands beneath the fields of a value, inherited ones included."""
    told = {}
    for kind in reversed(owner.__mro__):
        if not kind.__module__.startswith("lockstitch"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ) if not name.startswith("_"):
                    told[name] = inspect.cleandoc(words).replace("``", "`").replace("\n", " ")
    if told:
        yield "\n".join(f"- `{name}`: {words}" for name, words in told.items()) + "\n"


def _members(owner: type) -> Iterator[str]:
    for name, member in vars(owner).items():
        if name.startswith("_") or not getattr(member, "__doc__", None):
            continue
        if isinstance(member, property):
            yield f"**`.{name}`** {_doc(member)}"
        elif inspect.isfunction(member):
            kind = "await " if inspect.iscoroutinefunction(member) else ""
            yield f"**`{kind}.{_signature(name, member)}`**\n\n{_doc(member)}"


def _signature(name: str, value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    text = re.sub(r"\(self(?:, )?", "(", text)
    text = re.sub(r"\b(?:[a-z_]+\.)+([A-Za-z_]+)", r"\1", text)
    text = re.sub(r"(: |-> )(?:'([^']*)'|\"([^\"]*)\")", lambda m: m[1] + (m[2] or m[3]), text)
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)  # an address would differ in every run
    text = text.replace("~T", "T")
    text = re.sub(r"frozenset\(\{(.*?)\}\)", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", text)
    for union, short in SHORT.items():
        text = text.replace(union, short)
    return f"{name}{text}"


def _broken(signature: str) -> str:
    """One parameter a line, where they do not fit on one."""
    if len(signature) <= WIDTH:
        return signature
    name, _, rest = signature.partition("(")
    parameters, _, answer = rest.rpartition(")")
    lines, depth, line = [], 0, ""
    for character in parameters:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            lines.append(line.strip())
            line = ""
        else:
            line += character
    return "\n".join([f"{name}(", *(f"    {text}," for text in [*lines, line.strip()]), f"){answer}"])


def _doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return text.replace("``", "`") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())

"""What an ``Agent`` is given, checked where it is given: a mistake is one line that names the argument.

Types are hints that nobody has to heed, and a budget that is a text would otherwise break the first turn, far
from where it was written.
"""

import dataclasses
import os
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..llm.retry import RetryPolicy
from ..schema.blocks import Block, Text
from ..schema.errors import CallerError
from ..schema.messages import Options
from ..tools.approval import Policy
from ..tools.contract import Tool
from .hooks import Hooks
from .state import Budget, Price, Stuck


class _Kind(NamedTuple):
    kind: type[Any]
    example: str


_VALUES: Final[Mapping[str, _Kind]] = {
    "budget": _Kind(Budget, "Budget(cost_usd=1.50)"),
    "price": _Kind(Price, "Price(input=0.27, output=1.10)"),
    "policy": _Kind(Policy, 'Policy(allow=("write",))'),
    "options": _Kind(Options, "Options(temperature=0)"),
    "hooks": _Kind(Hooks, 'Hooks(before_tool=lambda call: "no" if call.name == "x" else None)'),
    "retry": _Kind(RetryPolicy, "RetryPolicy(max_elapsed_s=60)"),
    "stuck": _Kind(Stuck, "Stuck(stop_at=None)"),
}


def check(given: Mapping[str, Any]) -> None:
    """Raises CallerError for the first argument of an ``Agent`` that is not what it takes.

    ``given``: all of them by name. Nothing is looked up: a provider, a key and a folder are told of when a
    session is opened.
    """
    for name, (kind, example) in _VALUES.items():
        if given[name] is not None:
            _check_value(name, given[name], kind, example)
    _check_model(given["model"])
    _check_tools(given["tools"])
    _check_servers(given["mcp"])
    _check_approve(given["approve"])
    _check_store(given["store"])
    _require("instructions", "a text", given["instructions"], str)
    _require("base_url", "a text", given["base_url"], str, type(None))
    for name in ("cwd", "approvals_file"):
        _require(name, "a path", given[name], str, os.PathLike, type(None))
    _require("environ", "a mapping of texts", given["environ"], Mapping, type(None))
    _require("profiles", "a mapping of profiles", given["profiles"], Mapping, type(None))
    for name in ("facts", "key_store"):
        if given[name] is not None and not callable(given[name]):
            raise CallerError(f"{name} is a function; not {shown(given[name])}")


def content_of(prompt: object) -> tuple[Block, ...]:
    """The blocks of a prompt. Raises CallerError for what is none, or says nothing."""
    if isinstance(prompt, str):
        content: tuple[Block, ...] = (Text(prompt),)
    elif isinstance(prompt, Iterable) and not isinstance(prompt, (bytes, bytearray, Mapping)):
        content = tuple(prompt)
    else:
        raise CallerError(f"a prompt is a text, or a list of Text and Image; not {shown(prompt)}")
    for block in content:
        if not isinstance(block, Block):
            raise CallerError(
                f"a prompt is a text, or a list of Text and Image; not a list with {shown(block)}"
            )
    if not any(not isinstance(block, Text) or block.text.strip() for block in content):
        raise CallerError("the prompt is empty; say what is to be done")
    return content


def shown(value: object) -> str:
    """A value in a message: as it is written if that is short, else by its type."""
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return reprlib.repr(value)
    if isinstance(value, type):
        return value.__name__
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _check_value(name: str, value: object, kind: type[Any], example: str) -> None:
    article = "an" if kind.__name__[0] in "AEIO" else "a"
    if not isinstance(value, kind):
        raise CallerError(f"{name} is {article} {kind.__name__}, e.g. {example}; not {shown(value)}")
    if isinstance(value, Hooks):
        _check_hooks(value)
        return
    try:
        msgspec.convert(msgspec.to_builtins(value), kind)
    except (TypeError, ValueError) as error:
        said, _, place = str(error).partition(" - at `$")
        raise CallerError(f"{name}{place.rstrip('`')}: {said}; e.g. {example}") from None


def _check_hooks(hooks: Hooks) -> None:
    for field in dataclasses.fields(hooks):
        hook = getattr(hooks, field.name)
        if hook is not None and not callable(hook):
            raise CallerError(f"hooks.{field.name} is a function; not {shown(hook)}")


def _check_model(model: object) -> None:
    if model is None or isinstance(model, str):
        return
    if not callable(getattr(model, "stream", None)):
        raise CallerError(
            "model is provider:model, or an object that answers model calls (lockstitch.testing); "
            f"not {shown(model)}"
        )


def _check_tools(tools: object) -> None:
    if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
        raise CallerError(f"tools is a list of functions, e.g. tools=[add]; not {shown(tools)}")


def _check_servers(servers: Any) -> None:
    if not servers and isinstance(servers, (list, tuple)):
        return
    from ..tools.mcp import HttpServer, StdioServer

    several = isinstance(servers, Iterable) and not isinstance(servers, (str, bytes, Mapping))
    for server in servers if several else [servers]:
        if not several or not isinstance(server, (StdioServer, HttpServer)):
            raise CallerError(
                f"mcp is a list of lockstitch.tools.mcp.StdioServer and HttpServer; not {shown(server)}"
            )


def _check_approve(approve: object) -> None:
    # A word that is taken for consent, and a False that may mean "do not ask", are what must not be guessed.
    if approve is None or approve is True or approve == "--yes" or callable(approve):
        return
    raise CallerError(
        f"approve is True (everything may run), a function that is asked, or None; not {shown(approve)}"
    )


def _check_store(store: object) -> None:
    if store is None or isinstance(store, (str, Path)) or callable(getattr(store, "open", None)):
        return
    raise CallerError(
        f"store is a path, a name like sqlite:FILE, or an object that keeps sessions; not {shown(store)}"
    )


def _require(name: str, what: str, value: object, *kinds: Any) -> None:
    if not isinstance(value, kinds):
        raise CallerError(f"{name} is {what}; not {shown(value)}")

"""Approval policy: what a tool may do without asking, what it must ask for, and what it may not do. Pure.

A rule is a text: ``write`` (any use of the tool), ``mcp__github__*`` (all tools whose name begins so), or a
tool with a pattern in brackets, such as ``shell(git status *)``, ``edit(src/**)``,
``fetch(docs.python.org)``.

Rules to deny win over rules to ask, and those over rules to allow, whatever their order. Reading is
conservative on both sides: a rule allows only what it surely covers, and what a rule to deny *might* cover is
asked for, even where everything else has been approved beforehand. Rules are a guard rail and no sandbox: a
program that may be run can do what its user can.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from lockstitch.schema.errors import CallerError

from . import command_patterns
from .command_patterns import Match
from .contract import Needs
from .shell_grammar import read
from .walk import translated

Verdict: TypeAlias = Literal["allow", "ask", "deny"]

_RULE: Final = re.compile(r"([A-Za-z0-9_-]+\*?|\*)(?:\((.*)\))?", re.DOTALL)
_PATH_TOOLS: Final = frozenset({"read", "write", "edit", "list", "grep"})


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules by what they say. Made of configuration; ``checked`` finds what cannot be read."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def checked(self) -> "Policy":
        """Itself. Raises CallerError naming the first rule that cannot be read."""
        for rule in (*self.allow, *self.ask, *self.deny):
            _parsed(rule)
        return self

    def allowing(self, *rules: str) -> "Policy":
        """With more allowed: what a person said is to be remembered."""
        return msgspec.structs.replace(self, allow=(*self.allow, *rules)).checked()


@dataclass(frozen=True, slots=True)
class Decision:
    verdict: Verdict
    reason: str
    """For a person, and for the model if it is denied."""
    insist: bool = False
    """An ``ask`` that no approval given beforehand (``--yes``) answers: a rule to deny might cover it."""
    remember: str = ""
    """The rule to remember if a person allows this and more of its kind; empty: there is none to offer."""


def decide(
    policy: Policy,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    needs: Needs,
    resolve: Callable[[str], str] | None = None,
) -> Decision:
    """Whether a call may run. ``needs`` is what the tool itself asks for where no rule speaks.

    ``resolve`` gives a path's place relative to the workspace with links followed (``workspace.relative``);
    without it, paths are taken as they are written.
    """
    call = _Call(tool, arguments, resolve)
    perhaps = ""
    for rule in policy.deny:
        match call.against(rule, strict=False):
            case "yes":
                return Decision("deny", f"the rule {rule} denies it")
            case "perhaps":
                perhaps = perhaps or rule
            case "no":
                pass
    if perhaps:
        return Decision("ask", f"the rule {perhaps}, which denies, may cover it", insist=True)
    for rule in policy.ask:
        if call.against(rule, strict=False) != "no":
            return Decision("ask", f"the rule {rule} asks for it", remember="")
    if reason := call.allowed_by(policy.allow):
        return Decision("allow", reason)
    if needs == "nothing":
        return Decision("allow", f"{tool} needs no approval")
    return Decision("ask", f"{tool} needs an approval", remember=suggestion(tool, arguments))


def suggestion(tool: str, arguments: Mapping[str, Any]) -> str:
    """The rule that allows this call and its like, narrow enough to be accepted at a glance; or nothing."""
    if tool in _PATH_TOOLS:
        return tool
    if tool == "fetch":
        host = _url(arguments)
        return f"fetch({host.hostname})" if host is not None and host.hostname else ""
    if tool != "shell":
        return tool
    command = arguments.get("command")
    pattern = command_patterns.suggested(command) if isinstance(command, str) else ""
    return f"shell({pattern})" if pattern else ""


class _Call:
    """One call, read once, and compared with rules."""

    def __init__(self, tool: str, arguments: Mapping[str, Any], resolve: Callable[[str], str] | None) -> None:
        self._tool = tool
        self._arguments = arguments
        self._resolve = resolve
        command = arguments.get("command")
        self._reading = read(command) if tool == "shell" and isinstance(command, str) else None

    def allowed_by(self, rules: tuple[str, ...]) -> str:
        """Why it is allowed, else empty. Each command of a shell line may be allowed by another rule."""
        for rule in rules:
            if self.against(rule, strict=True) == "yes":
                return f"the rule {rule} allows it"
        if self._reading is None or not self._reading.plain:
            return ""
        patterns = [pattern for name, pattern in map(_parsed, rules) if _names(name, "shell") and pattern]
        covered = all(
            any(command_patterns.covers(command, pattern) for pattern in patterns)
            for command in self._reading.commands
        )
        return "rules allow each of its commands" if covered else ""

    def against(self, rule: str, *, strict: bool) -> Match:
        """Whether a rule covers the call; ``strict`` for rules that allow, where doubt means no."""
        name, pattern = _parsed(rule)
        if not _names(name, self._tool):
            return "no"
        if pattern is None:
            return "yes"
        if self._reading is not None:
            compare = command_patterns.allows if strict else command_patterns.forbids
            return compare(self._reading, pattern)
        if self._tool in _PATH_TOOLS:
            return self._path(pattern, strict=strict)
        if self._tool == "fetch":
            return _url_matches(_url(self._arguments), pattern, strict=strict)
        return "no" if strict else "perhaps"  # arguments that are not what the tool takes

    def _path(self, pattern: str, *, strict: bool) -> Match:
        given = self._arguments.get("path", ".")
        if not isinstance(given, str):
            return "no" if strict else "perhaps"
        places = {posixpath.normpath(given)}
        if self._resolve is not None:
            resolved = posixpath.normpath(self._resolve(given))
            places = {resolved} if given.startswith("/") else {*places, resolved}
        matches = [_path_matches(place, pattern) for place in places]
        if strict:
            inside = not any(place.startswith(("/", "..")) for place in places)
            return "yes" if inside and all(matches) else "no"
        return "yes" if any(matches) else "no"


def _parsed(rule: str) -> tuple[str, str | None]:
    """Tool name (perhaps with a star at its end) and pattern. Raises CallerError."""
    match = _RULE.fullmatch(rule.strip())
    if match is None:
        raise CallerError(f"approval rule {rule!r} cannot be read: write tool, tool_* or tool(pattern)")
    name, pattern = match.groups()
    if pattern is None or pattern.strip() in ("", "*"):
        return name, None
    if name not in {*_PATH_TOOLS, "shell", "fetch"}:
        raise CallerError(f"approval rule {rule!r}: only shell, fetch and the file tools have patterns")
    if name in _PATH_TOOLS:
        _compiled(rule, pattern.strip())
    return name, pattern.strip()


def _names(name: str, tool: str) -> bool:
    return tool.startswith(name[:-1]) if name.endswith("*") else tool == name


def _path_matches(place: str, pattern: str) -> bool:
    return _compiled(pattern, pattern).fullmatch(place) is not None


def _compiled(rule: str, pattern: str) -> "re.Pattern[str]":
    try:
        return re.compile(translated(pattern.removeprefix("./")), re.DOTALL)
    except re.error as error:
        raise CallerError(f"approval rule {rule!r}: its pattern cannot be read: {error}") from error


def _url(arguments: Mapping[str, Any]) -> "Any":
    try:
        parts = urlsplit(str(arguments.get("url", "")))
        parts.port  # noqa: B018  # raises for a port that is none
    except ValueError:
        return None
    return parts


def _url_matches(url: Any, pattern: str, *, strict: bool) -> Match:
    """The pattern is a host (``*.example.org`` for those below it), or an address with stars in its path."""
    doubtful: Match = "no" if strict else "perhaps"
    if url is None or not url.hostname or url.username is not None or "\\" in url.geturl():
        return doubtful
    if not url.hostname.isascii():
        return doubtful  # which host that is, the resolver decides
    wanted = urlsplit(pattern if "://" in pattern else f"https://{pattern}")
    schemes = {wanted.scheme} if strict or "://" in pattern else {"http", "https"}
    host = wanted.netloc.lower()
    default = {"https": 443, "http": 80}.get(url.scheme)
    name = url.hostname.removesuffix(".")
    own = name if url.port in (None, default) else f"{name}:{url.port}"
    below = host.startswith("*.") and own.endswith(host[1:])
    if url.scheme not in schemes or not (own == host or below):
        return "no"
    path = posixpath.normpath(url.path or "/")
    fits = not wanted.path or fnmatchcase(path, wanted.path) or fnmatchcase(url.path, wanted.path)
    if strict and ("%" in url.path or ".." in url.path):
        fits = not wanted.path  # what such a path means is decided by the server
    return "yes" if fits else "no"

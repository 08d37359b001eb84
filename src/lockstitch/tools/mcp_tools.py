"""What an MCP server says about its tools and returns from them, made into ours; none of it is trusted."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from lockstitch.schema.blocks import Base64Source, Image, Text
from lockstitch.schema.messages import ToolSpec
from lockstitch.wire import strict_json

from .contract import InvalidArgumentsError, ToolOutput
from .text import clean

NAME_MAX: Final = 64
DESCRIPTION_MAX_CHARS: Final = 4_000
SCHEMA_MAX_BYTES: Final = 64 * 1024
SCHEMA_DEPTH_MAX: Final = 30
_COMPLAINTS_MAX: Final = 10

Check: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Raises InvalidArgumentsError if arguments do not fit a tool's schema."""
Original: TypeAlias = tuple[str, Check]
"""The server's own name for a tool, and the check of its arguments."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that is not offered, and why."""

    name: str
    reason: str


def described(
    listed: Sequence[Any], server: str, tools_max: int
) -> tuple[list[tuple[ToolSpec, Original]], tuple[Quarantined, ...]]:
    """The tools of a server by name, and those that cannot be offered.

    ``listed`` are the ``mcp`` package's Tool values, sifted. Names become ``mcp__server__tool``.
    """
    found: dict[str, tuple[ToolSpec, Original]] = {}
    aside: list[Quarantined] = []
    for tool in sorted(listed, key=lambda tool: str(tool.name)):
        own_name = str(tool.name)
        name = namespaced(server, own_name)
        schema = tool.input_schema
        reason = ""
        if name in found:
            reason = "another tool has the same name"
        elif len(found) >= tools_max:
            reason = f"the server has more than {tools_max} tools"
        if reason:
            aside.append(Quarantined(clean(own_name)[:100], reason))
            continue
        description = clean(tool.description or own_name)[:DESCRIPTION_MAX_CHARS]
        found[name] = (ToolSpec(name, description, schema), (own_name, _check(schema, name)))
    return list(found.values()), tuple(aside)


def namespaced(server: str, tool: str) -> str:
    """``mcp__server__tool`` in the characters and length that providers take.

    A name that had to be changed carries a digest of the original, so that two cannot become one.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    name = f"mcp__{server}__{plain}"
    if plain == tool and len(name) <= NAME_MAX:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[: NAME_MAX - 9]}_{digest}"


def objection(schema: Any) -> str:
    """Why no provider should be shown this schema; empty if there is no reason."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its schema is not that of an object"
    if not isinstance(schema.get("properties", {}), dict):
        return "its schema's properties are not an object"
    try:
        size = len(json.dumps(schema).encode())
    except (TypeError, ValueError, RecursionError):
        return "its schema is not JSON"
    if size > SCHEMA_MAX_BYTES:
        return f"its schema has {size:,} bytes, more than {SCHEMA_MAX_BYTES:,}"
    return _structure(schema, 0) or _against_metaschema(schema)


def _structure(node: Any, depth: int) -> str:
    if depth > SCHEMA_DEPTH_MAX:
        return f"its schema is nested deeper than {SCHEMA_DEPTH_MAX}"
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            return "its schema refers to another document"
        node = list(node.values())
    if isinstance(node, list):
        return next((reason for item in node if (reason := _structure(item, depth + 1))), "")
    return ""


def _against_metaschema(schema: dict[str, Any]) -> str:
    try:
        import jsonschema_rs
    except ImportError:
        return ""  # it comes with the extra; without it the server's own check is the only one
    try:
        jsonschema_rs.validator_for(schema)
    except Exception as error:  # it raises several classes for schemas that are none
        first_line = str(error).strip().partition("\n")[0]
        return f"its schema is not valid: {first_line[:200]}"
    return ""


def _check(schema: dict[str, Any], name: str) -> Check:
    def check(arguments: Mapping[str, Any]) -> None:
        try:
            import jsonschema_rs
        except ImportError:
            return
        validator = jsonschema_rs.validator_for(schema)
        complaints = [
            f"- {'.'.join(str(part) for part in error.instance_path) or 'arguments'}: {error.message[:300]}"
            for error, _ in zip(validator.iter_errors(dict(arguments)), range(_COMPLAINTS_MAX), strict=False)
        ]
        if complaints:
            listed = "\n".join(complaints)
            raise InvalidArgumentsError(f"The arguments of {name} do not fit, so it was not run:\n{listed}")

    return check


def shown(result: Any) -> ToolOutput:
    """A call's result (the package's CallToolResult) as ours; kinds that have no place are named."""
    blocks: list[Text | Image] = [_block(item) for item in result.content]
    structured = result.structured_content
    if structured is not None and not blocks:
        blocks.append(Text(strict_json.encoded(structured)))
    return ToolOutput(tuple(blocks), is_error=bool(result.is_error))


def _block(item: Any) -> Text | Image:
    match getattr(item, "type", ""):
        case "text":
            return Text(item.text)
        case "image":
            return Image(item.mime_type, Base64Source(item.data))
        case "audio":
            return Text(f"(audio, {item.mime_type}, was left out)")
        case "resource_link":
            return Text(f"(resource {item.name}: {item.uri})")
        case "resource":
            text = getattr(item.resource, "text", None)
            return Text(text if isinstance(text, str) else f"(resource {item.resource.uri} is binary)")
        case other:
            return Text(f"(a block of type {other!r} was left out)")

"""Refuses what ``gemini`` refuses, in its words.

Wordings from public reports: https://github.com/google-gemini/gemini-cli/issues/3814 (number of responses),
https://github.com/google-gemini/gemini-cli/issues/26486 (place of a call),
https://github.com/lbjlaq/Antigravity-Manager/issues/139 (signature). Shapes from the types of the official
``google-genai`` package 3.6.1.
"""
# ruff: noqa: E501 - wordings of providers are quoted whole

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .refusal import RefusedError, word

NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")
BODY: Final = frozenset(
    {
        "contents",
        "tools",
        "toolConfig",
        "safetySettings",
        "systemInstruction",
        "generationConfig",
        "cachedContent",
        "labels",
        "model",
    }
)
DATA: Final = frozenset(
    {
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
    }
)
PART: Final = DATA | {"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"}
SCHEMA: Final = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "anyOf",
        "propertyOrdering",
        "default",
        "minimum",
        "maximum",
    }
)


def check(body: Mapping[str, Any], path: str) -> RefusedError | None:
    """The first reason why the request would be refused; None if it would not. The model is in the path."""
    try:
        _request(body, path)
    except RefusedError as refusal:
        return refusal
    except RecursionError:
        return _bad("nesting", "Invalid JSON payload received. Message too deep.")
    return None


def _request(body: Mapping[str, Any], path: str) -> None:
    _known(body, BODY, "")
    _unicode(body)
    _tools(body.get("tools"))
    if (system := body.get("systemInstruction")) is not None:
        _parts(system, "system_instruction")
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise _bad("contents_empty", "* GenerateContentRequest.contents: contents is not specified\n")
    for i, content in enumerate(contents):
        if not isinstance(content, Mapping) or word(content.get("role")) not in {"user", "model", "function"}:
            raise _bad("role", "Please use a valid role: user, model.")
        _parts(content, f"contents[{i}]")
    _turns(contents)
    if "gemini-3" in path:
        _signatures(contents)


def _parts(content: Any, where: str) -> None:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list) or not parts:
        text = f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n"
        raise _bad("parts_empty", text)
    for j, part in enumerate(parts):
        place = f"{where}.parts[{j}]"
        if not isinstance(part, Mapping):
            raise _bad(
                "part",
                f"Invalid value at '{place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)",
            )
        _known(part, PART, place)
        data = [key for key in part if key in DATA]
        if not data:
            text = f"* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field\n"
            raise _bad("part_empty", text)
        if len(data) > 1:
            raise _bad(
                "part",
                f"Invalid value at '{place}' (oneof), oneof field 'data' is already set. Cannot set '{data[1]}'",
            )
        _data(part, data[0], place)


def _data(part: Mapping[str, Any], kind: str, place: str) -> None:
    value = part[kind]
    if kind == "text":
        if not isinstance(value, str):
            raise _bad("text", f"Invalid value at '{place}.text' (TYPE_STRING), {json.dumps(value)}")
        if not value.strip() and not part.get("thoughtSignature"):
            # Vertex AI's
            text = "Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again."
            raise _bad("text_empty", text)
    elif kind in {"functionCall", "functionResponse"}:
        field, key = (
            ("function_call", "args") if kind == "functionCall" else ("function_response", "response")
        )
        name = value.get("name") if isinstance(value, Mapping) else None
        if not isinstance(name, str) or not name:
            raise _bad("name", f"* GenerateContentRequest.{place}.{field}.name: Name cannot be empty.\n")
        if not NAME.match(name):
            raise _bad("name", f"* GenerateContentRequest.{place}.{field}.name: {_name_rule()}\n")
        inner = value.get(key, {} if key == "args" else None)
        if not isinstance(inner, Mapping):
            text = f"Invalid value at '{place}.{field}.{key}' (type.googleapis.com/google.protobuf.Struct), {json.dumps(inner)}"
            raise _bad(key, text)
    elif kind == "inlineData" and not (
        isinstance(value, Mapping) and value.get("mimeType") and value.get("data")
    ):
        raise _bad(
            "image", f"* GenerateContentRequest.{place}.inline_data: mime_type and data must be set.\n"
        )


def _name_rule() -> str:
    return (
        "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
        "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
    )


def _names(content: Mapping[str, Any], kind: str) -> list[str]:
    return [part[kind]["name"] for part in content["parts"] if kind in part]


def _turns(contents: list[Mapping[str, Any]]) -> None:
    """Calls and responses stand in neighbouring turns, as many of one as of the other."""
    owed: list[str] = []
    before: Mapping[str, Any] | None = None
    for content in contents:
        calls, responses = _names(content, "functionCall"), _names(content, "functionResponse")
        if responses and not owed:
            text = "Please ensure that function response turn comes immediately after a function call turn."
            raise _bad("result_orphan", text)
        if owed and sorted(responses) != sorted(owed):
            text = (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
            raise _bad("call_unanswered", text)
        if calls and (content["role"] != "model" or before is None or before["role"] == "model"):
            text = (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
            raise _bad("call_place", text)
        owed, before = calls, content
    if owed or contents[-1]["role"] == "model":
        text = "Please ensure that multiturn requests ends with a user role or a function response."
        raise _bad("last_role", text)
    if contents[0]["role"] != "user":
        raise _bad("first_role", "Please ensure that multiturn requests start with a user role.")


def _signatures(contents: list[Mapping[str, Any]]) -> None:
    """Models of the third generation want back the signature of each step since the last prompt."""
    prompts = [i for i, c in enumerate(contents) if c["role"] == "user" and not _names(c, "functionResponse")]
    for i in range(prompts[-1] if prompts else 0, len(contents)):
        calls = [part for part in contents[i]["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            text = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance."
            )
            raise _bad("signature", text)


def _tools(tools: Any) -> None:
    names: set[str] = set()
    for i, tool in enumerate(_repeated(tools, "tools", "Tool")):
        if not isinstance(tool, Mapping):
            raise _wrong_type(f"tools[{i}]", "Tool")
        declarations = tool.get("functionDeclarations")
        for j, one in enumerate(
            _repeated(declarations, f"tools[{i}].function_declarations", "FunctionDeclaration")
        ):
            place = f"tools[{i}].function_declarations[{j}]"
            if not isinstance(one, Mapping):
                raise _wrong_type(place, "FunctionDeclaration")
            name = one.get("name")
            if not isinstance(name, str) or not NAME.match(name):
                raise _bad("tool_name", f"* GenerateContentRequest.{place}.name: {_name_rule()}\n")
            if name in names:
                raise _bad("tool_duplicate", f"Duplicate function declaration found: {name}")
            names.add(name)
            _known(
                one,
                frozenset(
                    {
                        "name",
                        "description",
                        "behavior",
                        "response",
                        "responseJsonSchema",
                        "parameters",
                        "parametersJsonSchema",
                    }
                ),
                place,
            )
            if one.get("parameters") is not None:
                _schema(one["parameters"], f"{place}.parameters")


def _schema(schema: Any, place: str) -> None:
    """The subset of OpenAPI that ``parameters`` knows; ``parametersJsonSchema`` takes more."""
    if not isinstance(schema, Mapping):
        raise _wrong_type(place, "Schema", rule="tool_schema")
    _known(schema, SCHEMA, place)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping | None):
        raise _wrong_type(f"{place}.properties", "Schema.PropertiesEntry", rule="tool_schema")
    for key, inner in (properties or {}).items():
        _schema(inner, f"{place}.properties[{key!r}]")
    if (items := schema.get("items")) is not None:
        _schema(items, f"{place}.items")
    for i, inner in enumerate(_repeated(schema.get("anyOf"), f"{place}.any_of", "Schema")):
        _schema(inner, f"{place}.any_of[{i}]")


def _repeated(value: Any, place: str, kind: str) -> list[Any]:
    """The items of a repeated field."""
    if not isinstance(value, list | None):
        raise _wrong_type(place, kind)
    return value or []


def _wrong_type(place: str, kind: str, *, rule: str = "tools") -> RefusedError:
    text = f"Invalid value at '{place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.{kind})"
    return _bad(rule, text)


def _known(value: Mapping[str, Any], allowed: frozenset[str], place: str) -> None:
    at = f" at '{place}'" if place else ""
    for key in value:
        if key not in allowed:
            text = f'Invalid JSON payload received. Unknown name "{key}"{at}: Cannot find field.'
            raise _bad("unknown_name", text)


def _unicode(body: Mapping[str, Any]) -> None:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _bad("surrogate", "Invalid JSON payload received. Invalid UTF-16 surrogate pair.") from error


def _bad(rule: str, message: str) -> RefusedError:
    return RefusedError(rule, message, fields={"code": 400, "status": "INVALID_ARGUMENT"})

"""Mending what stands beside the messages of a plain request: system prompt, tools, tool choice, thinking."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..providers.parsed import items, mapping, objects, text_of
from ..schema.notes import Anomaly, Violation
from .clean import anomaly, clean_value

MAX_CACHE_MARKS: Final = 4
DEFAULT_MAX_TOKENS: Final = 8_192
_SCHEMA_FIELDS: Final = ("parameters", "input_schema", "parametersJsonSchema")

_TEXT_REPAIRS: Final[Mapping[str, str]] = {"surrogate": "surrogate_replaced", "nul_character": "nul_replaced"}

Mended: TypeAlias = tuple[dict[str, Any], list[Anomaly]]


def asks_to_think(request: Mapping[str, Any]) -> bool:
    """Whether a request, in any format, is known to ask the model to reason."""
    thinking = request.get("thinking")
    if isinstance(thinking, Mapping):
        return thinking.get("type") in ("enabled", "adaptive")
    if thinking is True or request.get("enable_thinking") is True:
        return True
    effort = request.get("reasoning_effort", mapping(request.get("reasoning")).get("effort"))
    return isinstance(effort, str) and effort not in ("none", "off")


def with_system(request: Mapping[str, Any], field: str | None, leading: str) -> Mended:
    """The request with a system prompt that can be sent, and behind it ``leading``, what messages said.

    ``field`` is where the protocol keeps the prompt; None: it has no such field.
    """
    mended = dict(request)
    if field is None or not (leading or field in request):
        return mended, []
    system = request.get(field)
    gemini = field == "systemInstruction"
    blocks = [{"text": system}] if isinstance(system, str) else items(mapping(system).get("parts", system))
    kept = [clean_value(block) for block in objects(blocks) if _says_something(block, gemini=gemini)]
    odd = system is not None and not isinstance(system, (Mapping,) if gemini else (str, list, tuple))
    anomalies = [Anomaly("system_cleaned", field)] if odd or kept != list(blocks) else []
    if leading:
        kept.append({"text": leading} if gemini else {"type": "text", "text": leading})
        anomalies.append(Anomaly("system_moved", field, detail="system messages have no place further down"))
    if not anomalies and kept:
        return mended, []
    if not kept and not anomalies:
        anomalies.append(Anomaly("system_cleaned", field))
    if not kept:
        del mended[field]
    elif gemini:
        mended[field] = {"parts": kept}
    else:
        mended[field] = kept[0]["text"] if len(kept) == 1 else [{"type": "text", **block} for block in kept]
    return mended, anomalies


def _says_something(block: Mapping[str, Any], *, gemini: bool) -> bool:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        return False
    return gemini or block.get("type", "text") == "text"


def mend_fields(request: dict[str, Any], flagged: Sequence[Violation]) -> Mended:
    """The request without what the validator objects to beside its messages."""
    anomalies: list[Anomaly] = []
    rules = {violation.rule for violation in flagged}
    if rules & {"tool_name_invalid", "tool_name_duplicate", "tool_schema_invalid"}:
        request, found = _without_tools(request, {violation.where for violation in flagged})
        anomalies += found
    if "tools_shape" in rules:
        request = _without(request, "tools", "tool_choice")
        anomalies.append(Anomaly("field_dropped", "tools", detail="no list of tools, or an empty one"))
    elif "tool_choice_without_tools" in rules:
        request = _without(request, "tool_choice")
        anomalies.append(Anomaly("option_left_out", "tool_choice", detail="no tools are offered"))
    if "thinking_first" in rules:
        request = _without(request, "thinking")
        anomalies.append(Anomaly("thinking_disabled", detail="the last answer does not begin with thinking"))
    for violation in flagged:
        name = violation.where
        if violation.rule in _TEXT_REPAIRS and name in request:
            request = {**_without(request, name), clean_value(name): clean_value(request[name])}
            anomalies.append(anomaly(_TEXT_REPAIRS[violation.rule], name))
    if "max_tokens_invalid" in rules:
        request = {**request, "max_tokens": DEFAULT_MAX_TOKENS}
        anomalies.append(Anomaly("limit_replaced", "max_tokens", detail=f"by {DEFAULT_MAX_TOKENS}"))
    if "cache_marks" in rules:
        request = _with_fewer_marks(request)
        anomalies.append(Anomaly("cache_marks_removed", detail=f"at most {MAX_CACHE_MARKS} are taken"))
    return request, anomalies


def _without(request: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in names}


# --- tools


def _without_tools(request: dict[str, Any], places: set[str]) -> Mended:
    """Tools the validator refuses are left out; a schema that only lacks its type gets it."""
    anomalies: list[Anomaly] = []

    def kept(tools: Iterable[Any], prefix: str, inner: Callable[[Any, str], Any]) -> list[Any]:
        out: list[Any] = []
        for position, tool in enumerate(tools):
            where = f"{prefix}[{position}]"
            typed = _typed(tool)
            if where not in places:
                out.append(inner(tool, where))
            elif typed is not None:
                anomalies.append(
                    Anomaly("tool_schema_typed", where, (_tool_name(tool),), "type object added")
                )
                out.append(typed)
            else:
                anomalies.append(Anomaly("tool_left_out", where, (_tool_name(tool),), "it would be refused"))
        return out

    def declared(tool: Any, where: str) -> Any:
        field = "functionDeclarations" if "functionDeclarations" in mapping(tool) else "function_declarations"
        declarations = items(mapping(tool).get(field))
        if not declarations:
            return tool
        return {**tool, field: kept(declarations, f"{where}.functionDeclarations", lambda one, _: one)}

    tools = kept(items(request.get("tools")), "tools", declared)
    mended = {**request, "tools": tools}
    return (mended if tools else _without(mended, "tools", "tool_choice")), anomalies


def _typed(tool: Any) -> Any:
    """The tool with ``type: object`` in a schema that has no type; None if that is not what it lacks."""
    holder = mapping(mapping(tool).get("function", tool))
    for field in _SCHEMA_FIELDS:
        schema = holder.get(field)
        if isinstance(schema, Mapping) and "type" not in schema:
            mended = {**holder, field: {"type": "object", "properties": {}, **schema}}
            return {**tool, "function": mended} if "function" in tool else mended
    return None


def _tool_name(tool: Any) -> str:
    return text_of(mapping(mapping(tool).get("function", tool)).get("name"))


# --- cache marks


def _with_fewer_marks(request: dict[str, Any]) -> dict[str, Any]:
    """The last marks of the messages stay, as many as those before them leave."""
    fixed = {
        field: sum("cache_control" in mapping(block) for block in items(request.get(field)))
        for field in ("tools", "system")
    }
    mended = dict(request)
    for field, count in fixed.items():
        if sum(fixed.values()) > MAX_CACHE_MARKS and count:
            mended[field] = [_unmarked(block) for block in request[field]]
    left = max(0, MAX_CACHE_MARKS - sum(fixed.values()))
    messages: list[Any] = []
    for message in reversed(items(request.get("messages"))):
        kept, left = _last_marks(message, left)
        messages.append(kept)
    return {**mended, "messages": messages[::-1]}


def _last_marks(message: Any, left: int) -> tuple[Any, int]:
    content = mapping(message).get("content")
    if not isinstance(content, list | tuple):
        return message, left
    blocks: list[Any] = []
    for block in reversed(content):
        if "cache_control" in mapping(block):
            blocks.append(block if left > 0 else _unmarked(block))
            left -= 1
        else:
            blocks.append(block)
    return {**message, "content": blocks[::-1]}, max(0, left)


def _unmarked(block: Any) -> Any:
    return _without(block, "cache_control") if "cache_control" in mapping(block) else block

"""Reading a plain ``gemini`` request, from any agent and in any state, in either spelling of its fields.

Calls and responses may come without ids, and are then paired by position; such a pair gets an id of ours
that the encoder leaves out again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..schema.blocks import (
    Base64Source,
    Block,
    Image,
    Opaque,
    Reasoning,
    Replay,
    Text,
    ToolCall,
    ToolResult,
    UrlSource,
)
from ..schema.messages import Message, Options, Role, ToolSpec
from .gemini_request import UNSENT_ID
from .parsed import (
    Element,
    OptionReader,
    Target,
    items,
    json_text,
    mapping,
    objects,
    stop_of,
    text_of,
    without,
)

DIALECT: Final = "gemini"
LIST_FIELD: Final = "contents"

_CONFIG_FIELDS: Final[Mapping[str, str]] = {
    "maxOutputTokens": "max_tokens",
    "temperature": "temperature",
    "topP": "top_p",
}
_CHOICES: Final[Mapping[str, str]] = {"AUTO": "auto", "NONE": "none", "ANY": "required"}


def read_elements(elements: Sequence[Any], target: Target) -> list[Element]:
    """Each content as one message."""
    reader = _Reader(target)
    return [Element(reader.content(element)) for element in elements]


def read_options(body: Mapping[str, Any]) -> tuple[str, tuple[ToolSpec, ...], Options, set[str]]:
    """System prompt, tools and options of a request, and the names of the fields that were read."""
    instruction = mapping(body.get("systemInstruction", body.get("system_instruction")))
    system = "\n\n".join(text_of(part.get("text")) for part in objects(instruction.get("parts")))
    tools = tuple(
        ToolSpec(
            name=text_of(declaration.get("name")),
            description=text_of(declaration.get("description")),
            parameters=mapping(declaration.get("parametersJsonSchema", declaration.get("parameters")))
            or {"type": "object", "properties": {}},
        )
        for tool in objects(body.get("tools"))
        for declaration in objects(tool.get("functionDeclarations", tool.get("function_declarations")))
    )
    field = "generationConfig" if "generationConfig" in body else "generation_config"
    config = mapping(body.get(field))
    reader = OptionReader()
    for key, option in _CONFIG_FIELDS.items():
        reader.take(field, option, config.get(key))
    reader.take(field, "stop", stop_of(config.get("stopSequences")))
    reader.take(field, "response_schema", config.get("responseJsonSchema", config.get("responseSchema")))
    calling = mapping(mapping(body.get("toolConfig")).get("functionCallingConfig"))
    allowed = items(calling.get("allowedFunctionNames"))
    mode = _CHOICES.get(text_of(calling.get("mode")))
    reader.take("toolConfig", "tool_choice", allowed[0] if len(allowed) == 1 else mode)
    read = {"model", LIST_FIELD, "systemInstruction", "system_instruction", "tools", *reader.used}
    return system, tools, reader.options, read


class _Reader:
    """Reads contents in order, because calls and responses without ids are paired by position."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._count = 0
        self._waiting: list[ToolCall] = []
        """Calls of the last content of the model that no response has named yet."""

    def content(self, wire: Any) -> Message:
        if not isinstance(wire, Mapping):
            return Message("user", (Text(text=text_of(wire)),))
        role: Role = "assistant" if wire.get("role") in ("model", "assistant") else "user"
        if wire.get("role") == "system":
            role = "system"
        blocks = tuple(self._part(part) for part in items(wire.get("parts")))
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        if calls:
            self._waiting = calls
        author = role == "assistant"
        return Message(
            role,
            blocks,
            provider=self._target.profile.name if author else None,
            model=self._target.model if author else None,
            extra=without(wire, "role", "parts"),
        )

    def _part(self, part: Any) -> Block:
        if not isinstance(part, Mapping):
            return Text(text=text_of(part))
        signature = part.get("thoughtSignature", part.get("thought_signature"))
        replay = None
        if isinstance(signature, str) and signature:
            data = {"thought_signature": signature}
            replay = Replay(self._target.profile.name, self._target.model, data)
        call = part.get("functionCall", part.get("function_call"))
        response = part.get("functionResponse", part.get("function_response"))
        inline = part.get("inlineData", part.get("inline_data"))
        file = part.get("fileData", part.get("file_data"))
        if isinstance(call, Mapping):
            return self._call(call, replay, _rest(part))
        if isinstance(response, Mapping):
            return self._response(response, _rest(part))
        if isinstance(part.get("text"), str):
            return self._text(part, signature, replay)
        if isinstance(inline, Mapping) and _media_type(inline).startswith("image/"):
            source = Base64Source(text_of(inline.get("data")))
            return Image(media_type=_media_type(inline), source=source, replay=replay, extra=_rest(part))
        if isinstance(file, Mapping) and _media_type(file).startswith("image/"):
            url = UrlSource(text_of(file.get("fileUri", file.get("file_uri"))))
            return Image(media_type=_media_type(file), source=url, replay=replay, extra=_rest(part))
        return Opaque(protocol=DIALECT, value=dict(part))

    def _text(self, part: Mapping[str, Any], signature: Any, replay: Replay | None) -> Block:
        if part.get("thought") is True:
            return Reasoning(text=part["text"], signature=signature or None, extra=_rest(part))
        return Text(text=part["text"], replay=replay, extra=_rest(part))

    def _call(
        self, call: Mapping[str, Any], replay: Replay | None, extra: Mapping[str, Any] | None
    ) -> ToolCall:
        call_id, name, arguments = call.get("id"), call.get("name"), call.get("args", {})
        if not isinstance(call_id, str) or not call_id:
            self._count += 1
            call_id = f"{UNSENT_ID}{self._count}"
        return ToolCall(
            id=call_id,
            name=name if isinstance(name, str) else "",
            arguments=arguments if isinstance(arguments, str) else json_text(arguments or {}),
            replay=replay,
            extra=extra,
        )

    def _response(self, response: Mapping[str, Any], extra: Mapping[str, Any] | None) -> ToolResult:
        call_id = response.get("id")
        answered = self._answered(call_id, text_of(response.get("name")))
        if not isinstance(call_id, str) or not call_id:
            self._count += 1
            call_id = answered.id if answered else f"{UNSENT_ID}{self._count}"
        value = response.get("response")
        is_error = isinstance(value, Mapping) and set(value) == {"error"}
        return ToolResult(call_id=call_id, content=(Text(text=_said(value)),), is_error=is_error, extra=extra)

    def _answered(self, call_id: Any, name: str) -> ToolCall | None:
        """The waiting call that a response answers: by id, else the first of its name, else the first."""
        tests = (lambda call: call.id == call_id, lambda call: call.name == name, lambda call: True)
        for test in tests[:1] if isinstance(call_id, str) and call_id else tests[1:]:
            for call in self._waiting:
                if test(call):
                    self._waiting = [other for other in self._waiting if other is not call]
                    return call
        return None


def _said(value: Any) -> str:
    """The response's text: the value of its only usual field, else all of it as JSON."""
    if isinstance(value, Mapping) and len(value) == 1:
        field, said = next(iter(value.items()))
        if field in ("output", "error", "result") and isinstance(said, str):
            return said
    return json_text(value) if value is not None else ""


def _media_type(data: Mapping[str, Any]) -> str:
    return text_of(data.get("mimeType", data.get("mime_type")))


def _rest(part: Mapping[str, Any]) -> dict[str, Any] | None:
    return without(
        part,
        *("text", "thought", "thoughtSignature", "thought_signature", "functionCall", "function_call"),
        *("functionResponse", "function_response", "inlineData", "inline_data", "fileData", "file_data"),
    )

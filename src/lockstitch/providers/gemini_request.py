"""Requests of the ``gemini`` protocol (``POST /models/{model}:streamGenerateContent``).

The encoder is total and mends nothing: what has no place in this protocol is written for the validator to
name. Models from 3 on refuse a step of calls whose first one has no thought signature; where the history
has none (another model made the call), the documented stand-in goes out.

Sources: google-genai 3.6.1 (google/genai/types.py: Content, Tool, ToolConfig, GenerateContentConfig,
ThinkingConfig); the stand-in signature as https://github.com/erain/glue/releases/tag/v1.8.0 has verified it
(read 2026-11-30).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from ..schema.blocks import (
    Base64Source,
    BlobSource,
    Block,
    Image,
    ImageSource,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    UrlSource,
)
from ..schema.messages import Message, Options, Request, ToolSpec
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..wire import strict_json
from .options import supported
from .wire_request import WireRequest

DIALECT: Final = "gemini"
STAND_IN_SIGNATURE: Final = "skip_thought_signature_validator"
MAX_STOP_SEQUENCES: Final = 5
UNSENT_ID: Final = "noid-"
"""Begins ids that reading a request gave to calls which had none; they are not sent."""

_ROLES: Final[Mapping[str, str]] = {"assistant": "model", "tool": "user", "user": "user", "system": "system"}
_GENERATION: Final = re.compile(r"gemini-(\d+)")
_BUDGETS: Final[Mapping[str, int]] = {"off": 0, "low": 1_024, "medium": 8_192, "high": 24_576}
"""Thinking budgets for the 2.5 generation, which knows no levels."""


def encode(request: Request, profile: Profile) -> WireRequest:
    """The request as a streamed generation. Leading system messages join ``systemInstruction``.

    Fields of ``options.extra`` win over all but ``contents``.
    """
    system, messages = split_system(request.system, request.messages)
    return assemble(request, profile, system, encode_messages(messages, profile, model=request.model))


def assemble(
    request: Request, profile: Profile, system: Sequence[dict[str, Any]], contents: Sequence[Any]
) -> WireRequest:
    """A request around wire contents, in any form that is JSON."""
    options, left_out = supported(request.options, profile)
    body: dict[str, Any] = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in request.tools]}]
        if options.tool_choice is not None:
            body["toolConfig"] = {"functionCallingConfig": _calling(options.tool_choice)}
    config, notes = _generation_config(options, profile, request.model)
    if config:
        body["generationConfig"] = config
    for key, value in (options.extra or {}).items():
        if key != "contents":
            body[key] = value
    path = f"/models/{request.model.removeprefix('models/')}:streamGenerateContent?alt=sse"
    names = tuple(spec.name for spec in request.tools)
    return WireRequest(dialect=DIALECT, path=path, body=body, tools=names, notes=(*left_out, *notes))


def split_system(system: str, messages: Sequence[Message]) -> tuple[list[dict[str, Any]], Sequence[Message]]:
    """The system instruction's parts, with those of leading system messages, and the messages behind them."""
    parts: list[dict[str, Any]] = [{"text": system}] if system else []
    count = 0
    for message in messages:
        if message.role != "system":
            break
        parts.extend(_part(block, {}) for block in message.content)
        count += 1
    return parts, messages[count:]


def encode_messages(
    messages: Iterable[Message], profile: Profile, *, model: str, names: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Wire contents in order; ``names`` maps ids of earlier calls to their tools.

    Neighbouring messages of the role ``tool``, which only an unprojected request has, become one content.
    """
    wire: list[dict[str, Any]] = []
    known = dict(names or {})
    last = ""
    for message in messages:
        encoded = encode_message(message, profile, model=model, names=known)
        if last == message.role == "tool":
            wire[-1] = {**wire[-1], "parts": [*wire[-1]["parts"], *encoded["parts"]]}
        else:
            wire.append(encoded)
        last = message.role
    return wire


def encode_message(
    message: Message, profile: Profile, *, model: str, names: dict[str, str]
) -> dict[str, Any]:
    """One message as one content. ``names`` maps ids of calls to their tools; calls are added to it."""
    parts: list[dict[str, Any]] = []
    unsigned_call: int | None = None
    signed = False
    for block in message.content:
        part = _part(block, names)
        if type(block) is ToolCall:
            names[block.id] = block.name
            if unsigned_call is None and not signed:
                if "thoughtSignature" in part:
                    signed = True
                else:
                    unsigned_call = len(parts)
        parts.append(part)
    if unsigned_call is not None and needs_signatures(model):
        parts[unsigned_call] = {**parts[unsigned_call], "thoughtSignature": STAND_IN_SIGNATURE}
    return {**(message.extra or {}), "role": _ROLES[message.role], "parts": parts}


def needs_signatures(model: str) -> bool:
    """Whether the model refuses a call without a thought signature: generation 3 and later do."""
    found = _GENERATION.search(model)
    return found is not None and int(found[1]) >= 3


def _part(block: Block, names: Mapping[str, str]) -> dict[str, Any]:
    # a cache mark is another protocol's, and no field is ignored here: "Unknown name: Cannot find field"
    extra = (
        {key: value for key, value in block.extra.items() if key != "cache_control"} if block.extra else {}
    )
    match block:
        case Text():
            return {**extra, "text": block.text, **_signature(block)}
        case ToolCall():
            call = {**_id(block.id), "name": block.name, "args": _args(block.arguments)}
            return {**extra, "functionCall": call, **_signature(block)}
        case ToolResult():
            return {**extra, "functionResponse": _response(block, names)}
        case Reasoning():
            signature = {} if block.signature is None else {"thoughtSignature": block.signature}
            return {**extra, "text": block.text, "thought": True, **signature}
        case Image():
            return {**extra, **_image(block.media_type, block.source), **_signature(block)}
        case Opaque() if block.protocol == DIALECT and isinstance(block.value, Mapping):
            return dict(block.value)
        case Opaque():
            return dict(msgspec.to_builtins(block))
        case _:
            assert_never(block)


def _signature(block: Text | Image | ToolCall) -> dict[str, Any]:
    signature = block.replay.data.get("thought_signature") if block.replay else None
    return {"thoughtSignature": signature} if isinstance(signature, str) and signature else {}


def _args(text: str) -> object:
    """The arguments as an object; text that is none is kept, for the validator to name."""
    if not text or text == "{}":
        return {}
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _lenient(text)


def _lenient(text: str) -> object:
    """Text with lone surrogates, which the validator is to see as they are; or no JSON at all."""
    try:
        return strict_json.lenient(text)
    except strict_json.InvalidJson:
        return text


def _response(result: ToolResult, names: Mapping[str, str]) -> dict[str, Any]:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    response = {"error" if result.is_error else "output": text}
    return {**_id(result.call_id), "name": names.get(result.call_id, ""), "response": response}


def _id(call_id: str) -> dict[str, str]:
    return {} if call_id.startswith(UNSENT_ID) else {"id": call_id}


def _image(media_type: str, source: ImageSource) -> dict[str, Any]:
    match source:
        case Base64Source():
            return {"inlineData": {"mimeType": media_type, "data": source.data}}
        case UrlSource():
            return {"fileData": {"mimeType": media_type, "fileUri": source.url}}
        case BlobSource():
            return {
                "blob": {"sha256": source.sha256}
            }  # Loaded before encoding; the validator names this one.
        case _:
            assert_never(source)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": spec.name, "description": spec.description}
    if spec.parameters.get("properties"):
        wire["parametersJsonSchema"] = spec.parameters  # A declaration without parameters has no schema.
    return wire


def _calling(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"mode": choice.upper()}
        case "required":
            return {"mode": "ANY"}
        case _:
            return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _generation_config(options: Options, profile: Profile, model: str) -> tuple[dict[str, Any], list[Note]]:
    config: dict[str, Any] = {}
    notes: list[Note] = []
    max_tokens = options.max_tokens if options.max_tokens is not None else profile.default_max_tokens
    if max_tokens is not None:
        config["maxOutputTokens"] = max_tokens
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if options.top_p is not None:
        config["topP"] = options.top_p
    if options.stop:
        config["stopSequences"] = list(options.stop[:MAX_STOP_SEQUENCES])
        if len(options.stop) > MAX_STOP_SEQUENCES:
            detail = f"stop sequences beyond the {MAX_STOP_SEQUENCES} that {DIALECT} takes"
            notes.append(Note(kind="option_left_out", detail=detail))
    if options.response_schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = options.response_schema
    if options.reasoning_effort is not None:
        config["thinkingConfig"] = _thinking(options.reasoning_effort, model)
    return config, notes


def _thinking(effort: str, model: str) -> dict[str, Any]:
    if needs_signatures(model):
        # Generation 3 cannot switch thinking off; "low" is the least that all its models take.
        return {"thinkingLevel": "low" if effort in ("off", "low") else "high"}
    budget = {"thinkingBudget": _BUDGETS.get(effort, _BUDGETS["medium"])}
    return budget if effort == "off" else {**budget, "includeThoughts": True}

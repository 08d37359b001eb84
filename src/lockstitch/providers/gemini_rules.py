"""The rules of ``gemini`` requests.

Written from the provider's documents and error wordings, over the plain wire form, and sharing no code with
the projection or the encoder. Each rule quotes the wording it prevents. A fold: ``extend`` takes further
contents behind those that were checked.

Sources: google-genai 3.6.1 (google/genai/types.py: Content, Part, FunctionCall, FunctionResponse); the
refusals about thought signatures as https://docs.apiyi.com/en/faq/gemini-thought-signature-missing.md
quotes them (read 2026-11-30); wordings from public reports.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..schema.notes import Violation
from ..schema.profiles import Profile
from .rule_texts import (
    ARRAY,
    OBJECT,
    Within,
    extra_rules,
    field_violations,
    is_base64,
    is_blank,
    place_of,
    text_rules,
    value_problem,
    value_rules,
    word,
)

RULES: Final[Mapping[str, str]] = {
    "contents_empty": "GenerateContentRequest.contents: contents is not specified",
    "content_shape": "Invalid value at 'contents[0]'",
    "role_unknown": "Please use a valid role: user, model",
    "role_order": "Please ensure that multiturn requests alternate between user and model",
    "first_not_user": "Please ensure that function call turn comes immediately after a user turn",
    "parts_empty": "GenerateContentRequest.contents[0].parts: contents.parts must not be empty",
    "part_unknown": "contents.parts: required oneof field 'data' must have one initialized field",
    "text_blank": "Unable to submit request because it has an empty text parameter",
    "call_misplaced": "Please ensure that function call turn has the role model",
    "call_unanswered": (
        "Please ensure that the number of function response parts is equal to the number of function call "
        "parts of the function call turn"
    ),
    "response_without_call": (
        "Please ensure that function response turn comes immediately after a function call turn"
    ),
    "response_mixed": "Please ensure that a function response turn holds only function responses",
    "response_mismatch": "The name of the function response does not match that of the function call",
    "call_name_invalid": (
        "Invalid function name. Must start with a letter or an underscore, with a maximum length of 64"
    ),
    "call_id_duplicate": "Duplicate function call id",
    "call_id_invalid": "Invalid value at 'contents[1].parts[0].function_call.id' (TYPE_STRING)",
    "call_args_invalid": "Invalid value at 'contents[1].parts[0].function_call.args'",
    "response_shape": "Invalid value at 'contents[2].parts[0].function_response.response'",
    "signature_missing": "Function call is missing a thought_signature in functionCall parts",
    "image_unsupported": "Image input modality is not enabled for this model",
    "image_invalid": "Unsupported MIME type: image/gif",
    "image_too_large": "Request payload size exceeds the limit: 20971520 bytes",
    "images_too_many": "Please use fewer than 3600 images",
    "model_last": "Please ensure that multiturn requests end with a user role or a function response",
    "nul_character": "Invalid \\u0000 in string",
    "nested_too_deep": "The request body is not valid JSON: recursion limit exceeded",
    "surrogate": "Invalid JSON payload received. Invalid UTF-16 surrogate",
    "system_shape": "GenerateContentRequest.system_instruction.parts: contents.parts must not be empty",
    "tools_shape": "Invalid value at 'tools'",
    "tool_name_invalid": "Invalid function name in function_declarations[0].name",
    "tool_name_duplicate": "Duplicate function declaration found",
    "tool_schema_invalid": "function_declarations[0].parameters: schema must be of type OBJECT",
}
"""Each rule's name and the provider's wording that it prevents."""

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_CONTENT_FIELDS: Final = frozenset({"role", "parts"})
_CALL_FIELDS: Final = frozenset({"name", "args", "id"})
_PART_FIELDS: Final = frozenset({"text", "functionCall", "functionResponse", "inlineData"})
_SIGNED_GENERATION: Final = re.compile(r"gemini-([3-9]|\d{2,})")
_OTHER_PARTS: Final = frozenset({"fileData", "executableCode", "codeExecutionResult"})
_SPELLINGS: Final[Mapping[str, str]] = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "thought_signature": "thoughtSignature",
}
"""The API takes field names in both spellings."""


def violations(body: Mapping[str, Any], profile: Profile) -> list[Violation]:
    """Every rule the request breaks, in order of place. An empty list: it may be sent.

    ``body["model"]``, where a caller puts it, says which generation's rules apply.
    """
    contents = body.get("contents")
    if not isinstance(contents, ARRAY):
        return [Violation("contents_empty", "contents", "contents is missing or not an array")]
    rules = GeminiRules(profile, body)
    rules.extend(contents)
    return complete(rules, body)


def complete(rules: "GeminiRules", body: Mapping[str, Any]) -> list[Violation]:
    """What the rules found in the contents, and what is wrong beside them."""
    system = body.get("systemInstruction", body.get("system_instruction"))
    found = [*_system(system), *rules.found, *rules.at_end(), *_tools(body.get("tools"))]
    return [*found, *field_violations(body, "contents")]


class GeminiRules:
    """A resumable check of one request's contents: ``extend`` while there are more, ``at_end`` to close.

    ``found`` holds what is wrong whatever follows; ``at_end()`` what is wrong if nothing follows. It may be
    called at any time and changes nothing.
    """

    def __init__(self, profile: Profile, body: Mapping[str, Any]) -> None:
        self.found: list[Violation] = []
        self._profile = profile
        self._signed = _SIGNED_GENERATION.search(str(body.get("model", ""))) is not None
        self._count = 0
        self._images = 0
        self._ids: set[str] = set()
        self._last_role = ""
        self._calls: list[Mapping[str, Any]] = []
        """Of the content before, which this one must answer."""
        self._unsigned: list[int] = []
        """Numbers of the contents since the last prompt whose first call has no signature."""

    def extend(self, contents: Iterable[object]) -> None:
        for content in contents:
            self._count += 1
            if not isinstance(content, OBJECT):
                self._add("content_shape", (), f"a {type(content).__name__}, not an object")
                continue
            self._content(content)

    def at_end(self) -> list[Violation]:
        if self._count == 0:
            return [Violation("contents_empty", "contents", "there is no content")]
        where = self._place(())
        last: list[Violation] = []
        if self._calls:
            last.append(_unanswered(self._calls, where))
        elif self._last_role == "model" and not self._profile.prefill:
            last.append(Violation("model_last", where, f"{self._profile.name} takes no prefill"))
        if self._signed:
            detail = "the first call of a step has no signature"
            last += [
                Violation("signature_missing", f"contents[{number}]", detail) for number in self._unsigned
            ]
        return last

    def _content(self, content: Mapping[str, Any]) -> None:
        role = content.get("role", "user")
        if word(role) not in ("user", "model"):
            self._add("role_unknown", (), f"role is {role!r}")
            return
        if not self._last_role and role == "model":
            self._add("first_not_user", (), "the conversation starts with the model")
        if role == self._last_role == "model":
            self._add("role_order", (), "two contents of the model in a row")
        self._extra(content, _CONTENT_FIELDS, ())
        parts = self._parts(content.get("parts"))
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        self._responses(responses, parts, role)
        if role == "user" and not responses:
            self._unsigned = []
        if calls and role == "user":
            self._add("call_misplaced", (), "a function call of the user")
        elif calls:
            first = next(part for part in parts if "functionCall" in part)
            if not first.get("thoughtSignature"):
                self._unsigned.append(self._count - 1)
        self._calls = [call for call in calls if isinstance(call, OBJECT)]
        self._last_role = role

    def _parts(self, parts: object) -> list[Mapping[str, Any]]:
        """The parts with one spelling of their fields; each is checked by itself."""
        if not isinstance(parts, ARRAY) or not parts:
            self._add("parts_empty", (), "no parts")
            return []
        known: list[Mapping[str, Any]] = []
        for position, part in enumerate(parts):
            within = ("parts", position)
            if not isinstance(part, OBJECT):
                self._add("part_unknown", within, f"a {type(part).__name__}")
                continue
            spelled: Mapping[str, Any] = part
            if not _SPELLINGS.keys().isdisjoint(part):
                spelled = {_SPELLINGS.get(key, key): value for key, value in part.items()}
            self._part(spelled, within)
            known.append(spelled)
        return known

    def _part(self, part: Mapping[str, Any], within: Within) -> None:
        self._extra(part, _PART_FIELDS, within)
        if "functionCall" in part:
            self._call(part["functionCall"], within)
        elif "functionResponse" in part:
            self._response(part["functionResponse"], within)
        elif "inlineData" in part:
            self._inline(part["inlineData"], within)
        elif isinstance(part.get("text"), str):
            if is_blank(part["text"]) and not part.get("thoughtSignature"):
                self._add("text_blank", within, "blank text")
            for rule, detail in text_rules(part["text"]):
                self._add(rule, within, detail)
        elif not _OTHER_PARTS & part.keys():
            self._add(
                "part_unknown", within, f"no data in a part with {', '.join(map(repr, part)) or 'nothing'}"
            )

    def _call(self, call: object, within: Within) -> None:
        if not isinstance(call, OBJECT):
            self._add("part_unknown", within, "functionCall is not an object")
            return
        name, args, call_id = call.get("name"), call.get("args", {}), call.get("id")
        self._extra(call, _CALL_FIELDS, within)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._add("call_name_invalid", within, f"name is {name!r}")
        problem = value_problem(args)
        if not isinstance(args, OBJECT):
            self._add("call_args_invalid", within, f"args is {type(args).__name__}")
        elif problem:
            self._add("call_args_invalid", within, problem)
        if call_id is None:
            return
        if not isinstance(call_id, str) or not call_id or list(text_rules(call_id)):
            self._add("call_id_invalid", within, f"id is {call_id!r}")
        elif call_id in self._ids:
            self._add("call_id_duplicate", within, f"{call_id!r} was used before")
        self._ids.add(word(call_id))

    def _response(self, response: object, within: Within) -> None:
        if not isinstance(response, OBJECT) or not isinstance(response.get("response"), OBJECT):
            self._add("response_shape", within, "response is not an object")
        else:
            self._any(response, within)

    def _responses(self, responses: list[Any], parts: list[Mapping[str, Any]], role: str) -> None:
        calls, self._calls = self._calls, []
        if responses and (not calls or role != "user"):
            self._add("response_without_call", (), f"{len(responses)} responses to no call")
            return
        if len(responses) != len(calls):
            self.found.append(_unanswered(calls[len(responses) :] or calls, self._place(())))
            return
        if responses and len(parts) > len(responses):
            self._add("response_mixed", (), "something else beside the function responses")
        for call, response in zip(calls, responses, strict=True):
            if not isinstance(response, OBJECT):
                continue
            ids = (call.get("id"), response.get("id"))
            if call.get("name") != response.get("name") or (None not in ids and ids[0] != ids[1]):
                self._add("response_mismatch", (), f"{response.get('name')!r} answers {call.get('name')!r}")

    def _inline(self, data: object, within: Within) -> None:
        if not isinstance(data, OBJECT):
            self._add("part_unknown", within, "inlineData is not an object")
            return
        kind, content = data.get("mimeType", data.get("mime_type")), data.get("data")
        if not isinstance(kind, str) or not isinstance(content, str) or not kind or not content:
            self._add("image_invalid", within, "mimeType and data must be set")
            return
        if not kind.startswith("image/"):
            return  # Audio, video and documents: any type that the model knows.
        if not self._profile.vision:
            self._add("image_unsupported", within, f"{self._profile.name} takes no images")
            return
        self._images += 1
        if self._profile.images_max is not None and self._images > self._profile.images_max:
            self._add("images_too_many", within, f"more than {self._profile.images_max} images")
        limit = self._profile.image_max_base64
        if kind not in _IMAGE_TYPES or not is_base64(content):
            self._add("image_invalid", within, f"{kind!r} with data that is no supported image")
        elif limit is not None and len(content) > limit:
            self._add("image_too_large", within, f"{len(content)} characters of base64, at most {limit}")

    def _extra(self, fields: Mapping[str, Any], known: frozenset[str], within: Within) -> None:
        if not known.issuperset(fields):
            for rule, detail in extra_rules(fields, known):
                self._add(rule, within, detail)

    def _any(self, value: Mapping[str, Any], within: Within) -> None:
        for rule, detail in value_rules(value):
            self._add(rule, within, detail)

    def _add(self, rule: str, within: Within, detail: str) -> None:
        self.found.append(Violation(rule, self._place(within), detail))

    def _place(self, within: Within) -> str:
        return place_of(f"contents[{self._count - 1}]", within)


def _unanswered(calls: list[Mapping[str, Any]], where: str) -> Violation:
    names = ", ".join(repr(call.get("name")) for call in calls)
    return Violation("call_unanswered", where, f"the number of responses differs: {names}")


def _system(system: object) -> list[Violation]:
    if system is None:
        return []
    parts = system.get("parts") if isinstance(system, OBJECT) else None
    known = [part for part in parts if isinstance(part, OBJECT)] if isinstance(parts, ARRAY) else []
    texts = [part.get("text") for part in known] or [""]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return [Violation("system_shape", "systemInstruction", "no parts with text, or a blank one")]
    return []


def _tools(tools: object) -> list[Violation]:
    if tools is None:
        return []
    if not isinstance(tools, ARRAY):
        return [Violation("tools_shape", "tools", f"tools is {type(tools).__name__}")]
    found: list[Violation] = []
    names: set[str] = set()
    for position, tool in enumerate(tools):
        if not isinstance(tool, OBJECT):
            found.append(Violation("tool_schema_invalid", f"tools[{position}]", "not an object"))
            continue
        declarations = tool.get("functionDeclarations", tool.get("function_declarations", ()))
        for number, declaration in enumerate(declarations if isinstance(declarations, ARRAY) else ()):
            where = f"tools[{position}].functionDeclarations[{number}]"
            found.extend(_declaration(declaration, names, where))
    return found


def _declaration(declaration: object, names: set[str], where: str) -> Iterable[Violation]:
    if not isinstance(declaration, OBJECT):
        yield Violation("tool_schema_invalid", where, "not an object")
        return
    name = declaration.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield Violation("tool_name_invalid", where, f"name is {name!r}")
    elif name in names:
        yield Violation("tool_name_duplicate", where, f"{name!r} is declared twice")
    names.add(str(name))
    schema = declaration.get("parametersJsonSchema", declaration.get("parameters"))
    if schema is not None and (
        not isinstance(schema, OBJECT) or str(schema.get("type", "")).lower() != "object"
    ):
        yield Violation("tool_schema_invalid", where, f"parameters of {name!r} is no object schema")

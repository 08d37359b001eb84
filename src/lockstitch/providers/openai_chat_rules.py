"""The rules of ``openai-chat`` requests: what a provider of this protocol refuses, known before it is sent.

Written from the providers' documents and error wordings, over the plain wire form, and sharing no code with
the projection or the encoder: two independent readings of the same protocol have to agree. Each rule quotes
the wording it prevents. A fold: ``extend`` takes further messages behind those that were checked.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..schema.notes import Violation
from ..schema.profiles import Profile
from .call_slots import is_signed
from .rule_texts import (
    ARRAY,
    OBJECT,
    Within,
    extra_rules,
    field_violations,
    is_base64,
    is_blank,
    object_problem,
    place_of,
    text_rules,
    word,
)

RULES: Final[Mapping[str, str]] = {
    "messages_empty": "[] is too short - 'messages' (at least one message is required)",
    "message_shape": "Invalid type for 'messages[0]': expected an object",
    "role_unknown": "Invalid value: 'X'. Supported values are: 'system', 'assistant', 'user' and 'tool'",
    "tool_without_call": (
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
    ),
    "call_unanswered": (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages"
    ),
    "result_duplicate": "Duplicate value for 'tool_call_id' in messages",
    "call_id_duplicate": "tool call id is duplicated",
    "call_id_invalid": "Invalid 'messages[1].tool_calls[0].id': string too long / must be a-z, A-Z, 0-9",
    "call_name_invalid": "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern",
    "call_arguments_invalid": "function.arguments must be a JSON object string, got invalid JSON",
    "call_shape": "Missing required parameter: 'messages[1].tool_calls[0].type'",
    "calls_empty": "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1",
    "calls_misplaced": "Additional properties are not allowed ('tool_calls' was unexpected)",
    "content_shape": "Invalid value for 'content': expected a string, got null",
    "content_empty": "message at position 1 with role 'user' must not be empty",
    "assistant_empty": "Invalid assistant message: content or tool_calls must be set",
    "part_unknown": "Invalid value: 'X'. Supported values are: 'text', 'image_url', ...",
    "image_unsupported": "unknown variant `image_url`, expected `text`",
    "image_invalid": (
        "You uploaded an unsupported image. Please make sure your image has one of the following formats: "
        "['png', 'jpeg', 'gif', 'webp']"
    ),
    "image_too_large": "image exceeds 5 MB maximum",
    "images_too_many": "Too many images in request",
    "role_order": "conversation roles must alternate user/assistant/user/assistant/...",
    "system_not_first": "System message must be at the beginning",
    "assistant_last": (
        "This model does not support assistant message prefill. The conversation must end with a user message"
    ),
    "no_prompt": "at least one user message is required",
    "nul_character": "unsupported Unicode escape sequence: \\u0000 cannot be converted to text",
    "nested_too_deep": "The request body is not valid JSON: recursion limit exceeded",
    "surrogate": "The request body is not valid JSON: no low surrogate in string",
    "reasoning_missing": (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    ),
    "tools_shape": "Invalid 'tools': empty array. Expected an array with minimum length 1",
    "tool_name_invalid": "Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'",
    "tool_name_duplicate": "Tool names must be unique",
    "tool_schema_invalid": "Invalid schema for function 'X': schema must be of 'type: \"object\"'",
    "tool_choice_without_tools": "'tool_choice' is only allowed when 'tools' are specified",
}
"""Each rule's name and the provider's wording that it prevents."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_TEXT_FIELDS: Final = frozenset({"type", "text"})
_IMAGE_FIELDS: Final = frozenset({"type", "image_url"})
_URL_FIELDS: Final = frozenset({"url"})
_CALL_FIELDS: Final = frozenset({"id", "type", "function"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
_DATA_HEADS: Final = frozenset(f"data:image/{kind};base64" for kind in ("png", "jpeg", "jpg", "gif", "webp"))
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "tool": frozenset({"text"}),
    "assistant": frozenset({"text", "refusal"}),
    "user": frozenset({"text", "image_url", "input_audio", "file", "video_url"}),
}


def violations(body: Mapping[str, Any], profile: Profile) -> list[Violation]:
    """Every rule the request breaks, in order of place. An empty list: it may be sent."""
    messages = body.get("messages")
    if not isinstance(messages, ARRAY):
        return [Violation("messages_empty", "messages", "messages is missing or not an array")]
    rules = ChatRules(profile, thinking=asks_for_reasoning(body))
    rules.extend(messages)
    return complete(rules, body)


def complete(rules: "ChatRules", body: Mapping[str, Any]) -> list[Violation]:
    """What the rules found in the messages, and what is wrong beside them."""
    return [*rules.found, *rules.at_end(), *tool_violations(body), *field_violations(body, "messages")]


class ChatRules:
    """A resumable check of one request's messages: ``extend`` while there are more, ``at_end`` to close.

    ``found`` holds what is wrong whatever follows; ``at_end()`` what is wrong if nothing follows. It may be
    called at any time and changes nothing.
    """

    def __init__(self, profile: Profile, *, thinking: bool = False) -> None:
        self.found: list[Violation] = []
        self._profile = profile
        self._thinking = thinking
        self._id = re.compile(f"(?:{profile.id_pattern})+")
        self._count = 0
        self._images = 0
        self._last_role = ""
        self._prompts = 0
        self._ids: set[str] = set()
        self._open: dict[str, None] = {}
        """Calls of the latest assistant message without a result, in order."""
        self._answered: set[str] = set()

    def extend(self, messages: Iterable[object]) -> None:
        for message in messages:
            self._count += 1
            if isinstance(message, OBJECT):
                self._message(message)
            else:
                self._add("message_shape", (), f"a {type(message).__name__}, not an object")

    def at_end(self) -> list[Violation]:
        last: list[Violation] = []
        if self._count == 0:
            return [Violation("messages_empty", "messages", "there is no message")]
        if self._open:
            last.append(self._unanswered())
        if self._prompts == 0:
            last.append(Violation("no_prompt", "messages", "no user or tool message"))
        if self._last_role == "assistant" and not self._open and not self._profile.prefill:
            detail = f"{self._profile.name} takes no prefill"
            last.append(Violation("assistant_last", self._place(()), detail))
        return last

    def _message(self, message: Mapping[str, Any]) -> None:
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            self._add("role_unknown", (), f"role is {role!r}")
            return
        if role != "tool" and self._open:
            self.found.append(self._unanswered())
            self._open = {}
        if not _MESSAGE_FIELDS.issuperset(message):
            self._extra(message, _MESSAGE_FIELDS, ())
        if self._profile.strict_alternation:
            self._order(role)
        self._content(message.get("content"), role)
        if role == "assistant":
            self._assistant(message)
        elif role == "tool":
            self._result(message)
        elif message.get("tool_calls"):
            self._add("calls_misplaced", (), f"tool_calls in a {role} message")
        if role in ("user", "tool"):
            self._prompts += 1
        self._last_role = role

    def _order(self, role: str) -> None:
        if role in ("system", "developer"):
            if self._last_role not in ("", "system", "developer"):
                self._add("system_not_first", (), f"a {role} message behind the conversation's start")
        elif role == "assistant" and self._last_role in ("", "system", "developer"):
            self._add("role_order", (), "the conversation starts with an assistant message")
        elif role == self._last_role and role != "tool":
            self._add("role_order", (), f"two {role} messages in a row")

    def _content(self, content: object, role: str) -> None:
        if isinstance(content, str):
            for rule, detail in text_rules(content):
                self._add(rule, ("content",), detail)
            if is_blank(content) and role != "assistant":
                self._add("content_empty", (), f"blank content in a {role} message")
        elif isinstance(content, ARRAY):
            self._parts(content, role)
        elif content is not None or role != "assistant":
            self._add("content_shape", (), f"content is {type(content).__name__}")

    def _parts(self, parts: Iterable[object], role: str) -> None:
        count = 0
        for count, part in enumerate(parts, 1):
            place = ("content", count - 1)
            kind = word(part.get("type")) if isinstance(part, OBJECT) else ""
            if not isinstance(part, OBJECT) or kind not in _PARTS[role]:
                self._add(_part_rule(kind, role), place, f"part {kind!r} in a {role} message")
            elif kind == "text":
                self._text_part(part.get("text"), place)
                self._extra(part, _TEXT_FIELDS, place)
            elif kind == "image_url":
                self._image(part, place)
            else:
                self._extra(part, frozenset(), place)
        if count == 0 and role != "assistant":
            self._add("content_empty", (), "content is an empty list")

    def _text_part(self, text: object, within: Within) -> None:
        if not isinstance(text, str):
            self._add("content_shape", within, "text is not a string")
            return
        for rule, detail in text_rules(text):
            self._add(rule, within, detail)
        if is_blank(text):
            self._add("content_empty", within, "a blank text part")

    def _extra(self, fields: Mapping[str, Any], known: frozenset[str], within: Within) -> None:
        for rule, detail in extra_rules(fields, known):
            self._add(rule, within, detail)

    def _image(self, part: Mapping[str, Any], within: Within) -> None:
        if not self._profile.vision:
            self._add("image_unsupported", within, f"{self._profile.name} takes no images")
            return
        self._images += 1
        if self._profile.images_max is not None and self._images > self._profile.images_max:
            self._add("images_too_many", within, f"more than {self._profile.images_max} images")
        self._extra(part, _IMAGE_FIELDS, within)
        image = part.get("image_url")
        if isinstance(image, OBJECT):
            self._extra(image, _URL_FIELDS, within)
        url = image.get("url") if isinstance(image, OBJECT) else image
        if not isinstance(url, str):
            self._add("image_invalid", within, "image_url has no url")
        elif url.startswith("data:"):
            self._data_url(url, within)
        elif not url.startswith(("https://", "http://")):
            self._add("image_invalid", within, f"no URL that can be fetched: {url[:40]!r}")

    def _data_url(self, url: str, within: Within) -> None:
        head, _, data = url.partition(",")
        if head not in _DATA_HEADS:
            self._add("image_invalid", within, f"{head[:60]!r} is no image that is supported")
        if not is_base64(data):
            self._add("image_invalid", within, "the data is not base64")
        limit = self._profile.image_max_base64
        if limit is not None and len(data) > limit:
            self._add("image_too_large", within, f"{len(data)} characters of base64, at most {limit}")

    def _assistant(self, message: Mapping[str, Any]) -> None:
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, ARRAY):
            self._add("call_shape", (), "tool_calls is not an array")
            calls = None
        if calls is not None and not calls:
            self._add("calls_empty", (), "tool_calls is an empty array")
        if not calls and _blank(message.get("content")):
            self._add("assistant_empty", (), "neither text nor calls")
        self._answered = set()
        for position, call in enumerate(calls or ()):
            self._call(call, ("tool_calls", position))
        placeholder = self._profile.reasoning_placeholder
        if calls and self._thinking and placeholder is not None:
            field = self._profile.reasoning_field
            reasoning = message.get(field)
            if (reasoning or placeholder) != reasoning:
                detail = f"thinking is on and {field} is missing beside tool calls"
                self._add("reasoning_missing", (), detail)

    def _call(self, call: object, within: Within) -> None:
        function = call.get("function") if isinstance(call, OBJECT) else None
        if not isinstance(call, OBJECT) or not isinstance(function, OBJECT):
            self._add("call_shape", within, "not an object with a function")
            if isinstance(call, OBJECT):
                self._call_id(call.get("id"), within)
            return
        if not _CALL_FIELDS.issuperset(call):
            self._extra(call, _CALL_FIELDS, within)
        if call.get("type") != "function":
            self._add("call_shape", within, "type is not 'function'")
        self._call_id(call.get("id"), within)
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._add("call_name_invalid", within, f"name is {name!r}")
        problem = object_problem(function.get("arguments"))
        if problem:
            self._add("call_arguments_invalid", within, problem)

    def _call_id(self, call_id: object, within: Within) -> None:
        if not isinstance(call_id, str) or not call_id:
            self._add("call_id_invalid", within, "the id is missing or empty")
            self._open[""] = None
            return
        profile = self._profile
        if profile.signed_ids and is_signed(call_id):
            pass  # its gateway wants it back whole
        elif len(call_id) > profile.id_max:
            self._add("call_id_invalid", within, f"{len(call_id)} characters, at most {profile.id_max}")
        elif profile.id_exact is not None and len(call_id) != profile.id_exact:
            self._add("call_id_invalid", within, f"{len(call_id)} characters, must be {profile.id_exact}")
        elif not self._id.fullmatch(call_id):
            self._add("call_id_invalid", within, f"{call_id!r} has characters outside {profile.id_pattern}")
        if call_id in self._ids:
            self._add("call_id_duplicate", within, f"{call_id!r} was used before")
        self._ids.add(call_id)
        self._open[call_id] = None

    def _result(self, message: Mapping[str, Any]) -> None:
        call_id = message.get("tool_call_id")
        if isinstance(call_id, str) and call_id in self._open:
            del self._open[call_id]
            self._answered.add(call_id)
        elif isinstance(call_id, str) and call_id in self._answered and self._last_role == "tool":
            self._add("result_duplicate", (), f"{call_id!r} has its result already")
        else:
            self._add("tool_without_call", (), f"no call {call_id!r} in the assistant message before")

    def _unanswered(self) -> Violation:
        detail = "no result for " + ", ".join(map(repr, self._open))
        return Violation("call_unanswered", self._place(()), detail)

    def _add(self, rule: str, within: Within, detail: str) -> None:
        self.found.append(Violation(rule, self._place(within), detail))

    def _place(self, within: Within) -> str:
        return place_of(f"messages[{self._count - 1}]", within)


def _part_rule(kind: object, role: str) -> str:
    return "image_unsupported" if kind == "image_url" and role != "user" else "part_unknown"


def _blank(content: object) -> bool:
    """Whether an assistant's content says nothing: the wordings count whitespace as nothing."""
    if isinstance(content, str):
        return is_blank(content)
    if isinstance(content, ARRAY):
        return not any(isinstance(part, OBJECT) and _says_something(part) for part in content)
    return True


def _says_something(part: Mapping[str, Any]) -> bool:
    text = part.get("text") if part.get("type") == "text" else part.get("refusal")
    return isinstance(text, str) and bool(text.strip())


def asks_for_reasoning(body: Mapping[str, Any]) -> bool:
    """Whether the request switches thinking on by a field that the vendors document."""
    thinking = body.get("thinking")
    if isinstance(thinking, OBJECT):
        return thinking.get("type") in ("enabled", "adaptive")
    return thinking is True or body.get("enable_thinking") is True


def tool_violations(body: Mapping[str, Any]) -> list[Violation]:
    """What is wrong with the tools and the choice of one."""
    found: list[Violation] = []
    tools = body.get("tools")
    if tools is not None and (not isinstance(tools, ARRAY) or not tools):
        found.append(Violation("tools_shape", "tools", "tools is no array, or an empty one"))
    if not tools:
        if body.get("tool_choice") not in (None, "none", "auto"):
            found.append(Violation("tool_choice_without_tools", "tool_choice", "no tools are offered"))
        return found
    names: set[str] = set()
    for position, tool in enumerate(tools if isinstance(tools, ARRAY) else ()):
        where = f"tools[{position}]"
        function = tool.get("function") if isinstance(tool, OBJECT) else None
        if not isinstance(function, OBJECT):
            kind = word(tool.get("type")) if isinstance(tool, OBJECT) else ""
            if kind in ("", "function"):
                found.append(Violation("tool_schema_invalid", where, "no function, and no vendor's builtin"))
            continue  # A builtin of some vendor is not ours to judge.
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name.removeprefix("$")):
            found.append(Violation("tool_name_invalid", where, f"name is {name!r}"))
        elif name in names:
            found.append(Violation("tool_name_duplicate", where, f"{name!r} is offered twice"))
        names.add(str(name))
        parameters = function.get("parameters")
        if parameters is not None and (
            not isinstance(parameters, OBJECT) or parameters.get("type") != "object"
        ):
            found.append(
                Violation("tool_schema_invalid", where, f"parameters of {name!r} is no object schema")
            )
    return found

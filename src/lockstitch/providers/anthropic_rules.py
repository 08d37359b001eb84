"""The rules of ``anthropic-messages`` requests, for Anthropic itself and for Bedrock's strictness.

Written from the providers' documents and error wordings, over the plain wire form, and sharing no code with
the projection or the encoder. Each rule quotes the wording it prevents. A fold: ``extend`` takes further
messages behind those that were checked.

Sources: anthropic 2.14.0 (anthropic/types/message_param.py and what it names); read 2026-11-30:
https://platform.claude.com/docs/build-with-claude/thinking,
https://platform.claude.com/docs/en/build-with-claude/vision.md; wordings from public reports.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..schema.notes import Violation
from ..schema.profiles import Profile
from ..wire.image_size import size_of_base64
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
    "messages_empty": "messages: at least one message is required",
    "message_shape": "messages.0: Input should be a valid dictionary",
    "role_unknown": "messages.0.role: Input should be 'user' or 'assistant'",
    "first_not_user": 'messages: first message must use the "user" role',
    "role_order": 'messages: roles must alternate between "user" and "assistant", but found two in a row',
    "content_empty": "messages.1: all messages must have non-empty content",
    "content_shape": "messages.0.content: Input should be a valid list",
    "text_blank": "messages: text content blocks must contain non-whitespace text",
    "block_unknown": "content.0: Input tag found using 'type' does not match any of the expected tags",
    "block_misplaced": "`tool_use` blocks can only be in `assistant` messages",
    "call_unanswered": (
        "`tool_use` ids were found without `tool_result` blocks immediately after. Each `tool_use` block "
        "must have a corresponding `tool_result` block in the next message"
    ),
    "result_without_call": (
        "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must have a "
        "corresponding `tool_use` block in the previous message"
    ),
    "result_duplicate": "each tool_use must have a single result. Found multiple `tool_result` blocks",
    "results_not_first": "Messages following tool_use blocks must begin with a matching number of results",
    "call_id_duplicate": "`tool_use` ids must be unique",
    "call_id_invalid": "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    "call_name_invalid": "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    "call_input_invalid": "tool_use.input: Input should be a valid dictionary",
    "result_shape": "tool_result.content: Input should be a valid string or list",
    "thinking_signature": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "thinking_last": "The final block in an assistant message cannot be `thinking`",
    "thinking_first": (
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a "
        "final `assistant` message must start with a thinking block"
    ),
    "server_call_unpaired": "`web_search` tool use was found without its `web_search_tool_result` block",
    "image_unsupported": "this model does not support image input",
    "image_invalid": (
        "source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    ),
    "image_too_large": "image exceeds 5 MB maximum",
    "image_too_many_pixels": (
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
    ),
    "images_too_many": "Too much media: 0 document pages + 102 images > 100",
    "cache_marks": "A maximum of 4 blocks with cache_control may be provided. Found 5",
    "assistant_last": (
        "This model does not support assistant message prefill. The conversation must end with a user message"
    ),
    "prefill_whitespace": "messages: final assistant content cannot end with trailing whitespace",
    "nul_character": "invalid character \\u0000 in string",
    "nested_too_deep": "The request body is not valid JSON: recursion limit exceeded",
    "surrogate": "The request body is not valid JSON: no low surrogate in string",
    "system_shape": "system: Input should be a valid string or a list of text blocks",
    "max_tokens_invalid": "max_tokens: Input should be greater than or equal to 1",
    "tools_shape": "tools: Input should be a valid list",
    "tool_name_invalid": "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    "tool_name_duplicate": "tools: Tool names must be unique",
    "tool_schema_invalid": "tools.0.custom.input_schema.type: Field required",
    "tool_choice_without_tools": "tool_choice may only be specified while providing tools",
}
"""Each rule's name and the provider's wording that it prevents."""

MAX_CACHE_MARKS: Final = 4
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MESSAGE_FIELDS: Final = frozenset({"role", "content"})
_BLOCK_FIELDS: Final = frozenset(
    {"type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "thinking", "source"}
)
_IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_SERVER_RESULTS: Final = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_result",
    }
)
_USER_BLOCKS: Final = frozenset(
    {"text", "image", "tool_result", "document", "search_result", "container_upload"}
)
_OWN_BLOCKS: Final = frozenset({"text", "tool_use", "thinking", "redacted_thinking"})
_ASSISTANT_BLOCKS: Final = _OWN_BLOCKS | _SERVER_CALLS | _SERVER_RESULTS
_RESULT_PARTS: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})


def violations(body: Mapping[str, Any], profile: Profile) -> list[Violation]:
    """Every rule the request breaks, in order of place. An empty list: it may be sent."""
    messages = body.get("messages")
    if not isinstance(messages, ARRAY):
        return [Violation("messages_empty", "messages", "messages is missing or not an array")]
    rules = AnthropicRules(profile, body)
    rules.extend(messages)
    return complete(rules, body)


def complete(rules: "AnthropicRules", body: Mapping[str, Any]) -> list[Violation]:
    """What the rules found in the messages, and what is wrong beside them."""
    rules.thinking = asks_for_thinking(body)
    limit = body.get("max_tokens", 1)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        detail = f"max_tokens is {limit!r}"
        return [Violation("max_tokens_invalid", "max_tokens", detail), *_complete(rules, body)]
    return _complete(rules, body)


def _complete(rules: "AnthropicRules", body: Mapping[str, Any]) -> list[Violation]:
    found = [*_system(body.get("system")), *rules.found, *rules.at_end(), *_tools(body)]
    return [*found, *field_violations(body, "messages", "system")]


def asks_for_thinking(body: Mapping[str, Any]) -> bool:
    """Whether the request switches thinking on with a budget: its last answer has to begin with it then."""
    thinking = body.get("thinking")
    return isinstance(thinking, OBJECT) and thinking.get("type") == "enabled"


class AnthropicRules:
    """A resumable check of one request's messages: ``extend`` while there are more, ``at_end`` to close.

    ``found`` holds what is wrong whatever follows; ``at_end()`` what is wrong if nothing follows. It may be
    called at any time and changes nothing.
    """

    def __init__(self, profile: Profile, body: Mapping[str, Any]) -> None:
        self.found: list[Violation] = []
        self._profile = profile
        self._model = body.get("model")
        self.thinking = asks_for_thinking(body)
        """Only the end of the messages depends on it."""
        self._id = re.compile(f"(?:{profile.id_pattern})+")
        self._count = 0
        self._images = 0
        self._wide: list[tuple[str, int]] = []
        """Places and sides of images that are too large only beside many others."""
        self._marks = _marks(body.get("system")) + _marks(body.get("tools"))
        self._last_role = ""
        self._ids: set[str] = set()
        self._open: list[str] = []
        """Calls of the message before, which the next one must answer."""
        self._trailing_space = False
        self._turn_start = ""
        """Type of the first block of the last assistant message of the open turn."""

    def extend(self, messages: Iterable[object]) -> None:
        for message in messages:
            self._count += 1
            if not isinstance(message, OBJECT):
                self._add("message_shape", (), f"a {type(message).__name__}, not an object")
                continue
            self._message(message)

    def at_end(self) -> list[Violation]:
        if self._count == 0:
            return [Violation("messages_empty", "messages", "there is no message")]
        last: list[Violation] = []
        profile, where = self._profile, self._place(())
        if self._open:
            last.append(_unanswered(self._open, where))
        if self._last_role == "assistant" and not self._open:
            if not self._profile.prefill:
                last.append(Violation("assistant_last", where, f"{self._profile.name} takes no prefill"))
            elif self._trailing_space:
                last.append(Violation("prefill_whitespace", where, "the last text ends in whitespace"))
        if self.thinking and self._turn_start not in ("", "thinking", "redacted_thinking"):
            detail = f"thinking is enabled and the last answer starts with {self._turn_start}"
            last.append(Violation("thinking_first", where, detail))
        if profile.images_many is not None and self._images > profile.images_many:
            for place, side in self._wide:
                detail = f"{side} pixels a side, at most {profile.images_many_px} beside so many images"
                last.append(Violation("image_too_many_pixels", place, detail))
        if self._marks > MAX_CACHE_MARKS:
            last.append(
                Violation("cache_marks", "messages", f"{self._marks} marks, at most {MAX_CACHE_MARKS}")
            )
        return last

    def _message(self, message: Mapping[str, Any]) -> None:
        role = word(message.get("role"))
        if role not in ("user", "assistant"):
            self._add("role_unknown", (), f"role is {message.get('role')!r}")
            return
        if not self._last_role and role != "user":
            self._add("first_not_user", (), "the conversation starts with an assistant message")
        if role == self._last_role:
            self._add("role_order", (), f"two {role} messages in a row")
        self._extra(message, _MESSAGE_FIELDS, ())
        blocks = self._blocks(message.get("content"))
        self._trailing_space = False
        if role == "user":
            self._user(blocks)
        else:
            self._assistant(blocks)
        self._last_role = role

    def _blocks(self, content: object) -> list[Mapping[str, Any]]:
        """The content as blocks; what is none is reported and left out."""
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        if not isinstance(content, ARRAY):
            self._add("content_shape", (), f"content is {type(content).__name__}")
            return []
        if not content:
            self._add("content_empty", (), "content is an empty list")
        for position, block in enumerate(content):
            if not isinstance(block, OBJECT):
                self._add("block_unknown", ("content", position), "not an object")
        return [block for block in content if isinstance(block, OBJECT)]

    # --- user messages

    def _user(self, blocks: list[Mapping[str, Any]]) -> None:
        waiting, self._open = self._open, []
        answered: set[str] = set()
        others = 0
        for position, block in enumerate(blocks):
            within = ("content", position)
            self._marks += "cache_control" in block
            if block.get("type") != "tool_result":
                others += 1
                self._user_block(block, within)
                continue
            if others and (waiting or answered):
                self._add("results_not_first", within, "a result behind other content")
            self._answer(block.get("tool_use_id"), waiting, answered, within)
            self._result(block, within)
        if waiting:
            self.found.append(_unanswered(waiting, self._place(())))
        if others == len(blocks):
            self._turn_start = ""

    def _answer(self, call_id: object, waiting: list[str], answered: set[str], within: Within) -> None:
        if isinstance(call_id, str) and call_id in waiting:
            waiting.remove(call_id)
            answered.add(call_id)
        elif word(call_id) in answered:
            self._add("result_duplicate", within, f"{call_id!r} has its result already")
        else:
            self._add("result_without_call", within, f"no call {call_id!r} in the message before")

    def _result(self, block: Mapping[str, Any], within: Within) -> None:
        self._extra(block, _BLOCK_FIELDS, within)
        content = block.get("content")
        if isinstance(content, str):
            self._said(content, (*within, "content"))
        elif isinstance(content, ARRAY):
            for position, part in enumerate(content):
                kind = word(part.get("type")) if isinstance(part, OBJECT) else ""
                if not isinstance(part, OBJECT) or kind not in _RESULT_PARTS:
                    self._add("result_shape", within, f"part {kind!r} in a result")
                else:
                    self._user_block(part, (*within, "content", position))
        elif content is not None:
            self._add("result_shape", within, f"content is {type(content).__name__}")
        if not isinstance(block.get("is_error", False), bool):
            self._add("result_shape", within, "is_error is no boolean")

    def _user_block(self, block: Mapping[str, Any], within: Within) -> None:
        self._extra(block, _BLOCK_FIELDS, within)
        kind = word(block.get("type"))
        if kind == "text":
            self._text(block.get("text"), within)
        elif kind == "image":
            self._image(block.get("source"), within)
        elif kind in _USER_BLOCKS or kind in _RESULT_PARTS:
            self._any(block, within)
        else:
            rule = "block_misplaced" if kind in _ASSISTANT_BLOCKS else "block_unknown"
            self._add(rule, within, f"{kind!r} in a user message")

    def _image(self, source: object, within: Within) -> None:
        profile = self._profile
        if not profile.vision:
            self._add("image_unsupported", within, f"{profile.name} takes no images")
            return
        self._images += 1
        if profile.images_max is not None and self._images > profile.images_max:
            self._add("images_too_many", within, f"more than {profile.images_max} images")
        kind = source.get("type") if isinstance(source, OBJECT) else None
        if not isinstance(source, OBJECT) or kind not in ("base64", "url", "file"):
            self._add("image_invalid", within, f"source is of type {kind!r}")
        elif kind == "url" and not str(source.get("url")).startswith("https://"):
            self._add("image_invalid", within, "only https URLs are fetched")
        elif kind == "base64":
            self._base64(source, within)

    def _base64(self, source: Mapping[str, Any], within: Within) -> None:
        data, limit = source.get("data"), self._profile.image_max_base64
        if word(source.get("media_type")) not in _IMAGE_TYPES:
            self._add("image_invalid", within, f"media_type is {source.get('media_type')!r}")
        if not isinstance(data, str) or not is_base64(data):
            self._add("image_invalid", within, "data is not base64")
        elif limit is not None and len(data) > limit:
            self._add("image_too_large", within, f"{len(data)} characters of base64, at most {limit}")
        else:
            self._pixels(data, within)

    def _pixels(self, data: str, within: Within) -> None:
        profile, size = self._profile, size_of_base64(data)
        side = max(size) if size else 0
        if profile.image_max_px is not None and side > profile.image_max_px:
            self._add(
                "image_too_many_pixels", within, f"{side} pixels a side, at most {profile.image_max_px}"
            )
        elif profile.images_many_px is not None and side > profile.images_many_px:
            self._wide.append((self._place(within), side))

    # --- assistant messages

    def _assistant(self, blocks: list[Mapping[str, Any]]) -> None:
        if self._open:
            self.found.append(_unanswered(self._open, self._place(())))
            self._open = []
        for position, block in enumerate(blocks):
            self._marks += "cache_control" in block
            self._assistant_block(block, ("content", position))
        self._server_calls(blocks)
        if not blocks:
            return
        if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
            self._add("thinking_last", (), "nothing follows the thinking")
        self._turn_start = str(blocks[0].get("type"))
        text = blocks[-1].get("text")
        self._trailing_space = isinstance(text, str) and text != text.rstrip()

    def _assistant_block(self, block: Mapping[str, Any], within: Within) -> None:
        self._extra(block, _BLOCK_FIELDS, within)
        kind = word(block.get("type"))
        match kind:
            case "text":
                self._text(block.get("text"), within)
            case "tool_use":
                self._call(block, within)
            case "thinking":
                self._thought(block, within)
            case "redacted_thinking":
                if not isinstance(block.get("data"), str) or not block["data"]:
                    self._add("thinking_signature", within, "redacted_thinking without data")
                self._own(block, within)
            case _ if kind in _ASSISTANT_BLOCKS:
                self._any(block, within)
            case _:
                rule = "block_misplaced" if kind in _USER_BLOCKS else "block_unknown"
                self._add(rule, within, f"{kind!r} in an assistant message")

    def _thought(self, block: Mapping[str, Any], within: Within) -> None:
        if not isinstance(block.get("thinking"), str):
            self._add("thinking_signature", within, "thinking is not a string")
            return
        self._said(block["thinking"], within)
        if not isinstance(block.get("signature"), str) or not block["signature"]:
            self._add("thinking_signature", within, "the signature is missing")
        self._own(block, within)

    def _own(self, block: Mapping[str, Any], within: Within) -> None:
        """Agents that keep a block's model beside it tell what the signature alone does not."""
        if "model" in block and block["model"] != self._model:
            self._add("thinking_signature", within, f"signed by {block['model']!r}, another model")

    def _call(self, block: Mapping[str, Any], within: Within) -> None:
        call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
        if not isinstance(call_id, str) or not self._id.fullmatch(call_id):
            self._add("call_id_invalid", within, f"id is {call_id!r}")
        elif len(call_id) > self._profile.id_max:
            self._add("call_id_invalid", within, f"{len(call_id)} characters, at most {self._profile.id_max}")
        if word(call_id) in self._ids:
            self._add("call_id_duplicate", within, f"{call_id!r} was used before")
        self._ids.add(word(call_id))
        self._open.append(word(call_id))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._add("call_name_invalid", within, f"name is {name!r}")
        problem = value_problem(arguments)
        if not isinstance(arguments, OBJECT):
            self._add("call_input_invalid", within, f"input is {type(arguments).__name__}")
        elif problem:
            self._add("call_input_invalid", within, problem)

    def _server_calls(self, blocks: list[Mapping[str, Any]]) -> None:
        if all(word(block.get("type")) in _OWN_BLOCKS for block in blocks):
            return
        calls = {repr(block.get("id")) for block in blocks if word(block.get("type")) in _SERVER_CALLS}
        results = {
            repr(block.get("tool_use_id")) for block in blocks if word(block.get("type")) in _SERVER_RESULTS
        }
        for call_id in sorted(calls ^ results):
            half = "result" if call_id in calls else "call"
            self._add("server_call_unpaired", (), f"no {half} of {call_id} in the same message")

    # --- texts

    def _text(self, text: object, within: Within) -> None:
        if not isinstance(text, str):
            self._add("content_shape", within, "text is not a string")
            return
        self._said(text, within)
        if is_blank(text):
            self._add("text_blank", within, "blank text")

    def _said(self, text: str, within: Within) -> None:
        for rule, detail in text_rules(text):
            self._add(rule, within, detail)

    def _extra(self, fields: Mapping[str, Any], known: frozenset[str], within: Within) -> None:
        if not known.issuperset(fields):
            for rule, detail in extra_rules(fields, known):
                self._add(rule, within, detail)

    def _any(self, block: Mapping[str, Any], within: Within) -> None:
        known = {name: value for name, value in block.items() if name in _BLOCK_FIELDS}
        for rule, detail in value_rules(known):
            self._add(rule, within, detail)

    def _add(self, rule: str, within: Within, detail: str) -> None:
        self.found.append(Violation(rule, self._place(within), detail))

    def _place(self, within: Within) -> str:
        return place_of(f"messages[{self._count - 1}]", within)


def _unanswered(call_ids: list[str], where: str) -> Violation:
    return Violation("call_unanswered", where, "no result for " + ", ".join(map(repr, call_ids)))


def _marks(blocks: object) -> int:
    if not isinstance(blocks, ARRAY):
        return 0
    return sum(isinstance(block, OBJECT) and "cache_control" in block for block in blocks)


def _system(system: object) -> list[Violation]:
    if system is None:
        return []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    if not isinstance(blocks, ARRAY):
        return [Violation("system_shape", "system", f"system is {type(system).__name__}")]
    found: list[Violation] = []
    for position, block in enumerate(blocks):
        where = f"system[{position}]"
        text = block.get("text") if isinstance(block, OBJECT) and block.get("type") == "text" else None
        if not isinstance(text, str):
            found.append(Violation("system_shape", where, "not a text block"))
            continue
        if is_blank(text) and not isinstance(system, str):
            found.append(Violation("text_blank", where, "blank text"))
        found.extend(Violation(rule, where, detail) for rule, detail in text_rules(text))
    return found


def _tools(body: Mapping[str, Any]) -> list[Violation]:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, ARRAY):
        return [Violation("tools_shape", "tools", f"tools is {type(tools).__name__}")]
    if not tools:
        if body.get("tool_choice") is None:
            return []
        return [Violation("tool_choice_without_tools", "tool_choice", "no tools are offered")]
    found: list[Violation] = []
    names: set[str] = set()
    for position, tool in enumerate(tools):
        where = f"tools[{position}]"
        if not isinstance(tool, OBJECT):
            found.append(Violation("tool_schema_invalid", where, "not an object"))
            continue
        name, schema = tool.get("name"), tool.get("input_schema")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(Violation("tool_name_invalid", where, f"name is {name!r}"))
        elif name in names:
            found.append(Violation("tool_name_duplicate", where, f"{name!r} is offered twice"))
        names.add(str(name))
        client_side = tool.get("type") in (None, "custom")
        if client_side and (not isinstance(schema, OBJECT) or schema.get("type") != "object"):
            found.append(
                Violation("tool_schema_invalid", where, f"input_schema of {name!r} is no object schema")
            )
    return found

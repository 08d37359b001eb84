"""The rules of ``openai-responses`` requests, as strict as the strictest vendor of the protocol.

Written from the providers' documents and error wordings, over the plain wire form, and sharing no code with
the projection or the encoder. Each rule quotes the wording it prevents. A fold: ``extend`` takes further
items behind those that were checked.

Sources: openai-python 3.57.0 (openai/types/responses/response_input_item_param.py and what it names);
wordings from public reports.
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
    value_rules,
    word,
)

RULES: Final[Mapping[str, str]] = {
    "input_empty": "Invalid 'input': empty array. Expected an array with minimum length 1",
    "item_unknown": "Invalid value: 'X'. Supported values are: 'message', 'function_call', ...",
    "role_unknown": "Invalid value: 'X'. Supported values are: 'assistant', 'system', 'developer' and 'user'",
    "output_without_call": "No tool call found for function call output with call_id c1",
    "output_duplicate": "Duplicate function call output with call_id c1",
    "call_unanswered": "No tool output found for function call c1",
    "output_not_adjacent": "No tool output found for tool call c1 (an item stands between call and output)",
    "call_id_duplicate": "Duplicate item found with call_id c1",
    "call_id_invalid": "Invalid 'input[1].call_id': string too long. Expected at most 64 characters",
    "call_name_invalid": "Invalid 'input[1].name': string does not match pattern '^[a-zA-Z0-9_-]+$'",
    "call_arguments_invalid": "Invalid 'input[1].arguments': expected the JSON of an object",
    "item_id_invalid": "Invalid 'input[1].id': 'msg_1'. Expected an ID that begins with 'fc'",
    "output_shape": "Invalid type for 'input[2].output': expected one of an array or a string",
    "output_empty": "Invalid 'input[2].output': empty string",
    "content_shape": "Invalid type for 'input[0].content': expected one of an array of objects or string",
    "content_empty": "Invalid 'input[0].content': empty array",
    "part_unknown": "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'",
    "image_unsupported": "this model does not support image inputs",
    "image_invalid": "The image data you provided does not represent a valid image",
    "image_too_large": "image exceeds the maximum size",
    "images_too_many": "Too many images in request",
    "reasoning_unsealed": (
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false"
    ),
    "reasoning_last": "Item 'rs_1' of type 'reasoning' was provided without its required following item",
    "reasoning_not_repeated": "The `reasoning_text` in the thinking mode must be passed back to the API",
    "assistant_last": "The conversation must end with a user message or a function call output",
    "no_prompt": "at least one user message is required",
    "nul_character": "unsupported Unicode escape sequence: \\u0000 cannot be converted to text",
    "nested_too_deep": "The request body is not valid JSON: recursion limit exceeded",
    "surrogate": "The request body is not valid JSON: no low surrogate in string",
    "tools_shape": "Invalid type for 'tools': expected an array of objects",
    "tool_name_invalid": "Invalid 'tools[0].name': string does not match pattern '^[a-zA-Z0-9_-]+$'",
    "tool_name_duplicate": "Tool names must be unique",
    "tool_schema_invalid": "Invalid schema for function 'X': schema must be of 'type: \"object\"'",
    "tool_choice_without_tools": "Tool choice must be used with tools",
}
"""Each rule's name and the provider's wording that it prevents."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_HEADS: Final = frozenset(f"data:image/{kind};base64" for kind in ("png", "jpeg", "jpg", "gif", "webp"))
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset({"input_text", "input_image", "input_file"}),
    "system": frozenset({"input_text"}),
    "developer": frozenset({"input_text"}),
    "assistant": frozenset({"output_text", "refusal"}),
}
_ITEM_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "message": frozenset({"type", "role", "content"}),
    "function_call": frozenset({"type", "call_id", "name", "arguments"}),
    "function_call_output": frozenset({"type", "call_id", "output"}),
}
_ID_PREFIXES: Final[Mapping[str, str]] = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_TEXT_FIELDS: Final = frozenset({"type", "text"})
_OTHER_ITEMS: Final = frozenset(
    {
        "item_reference",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "computer_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction",
    }
)


def violations(body: Mapping[str, Any], profile: Profile) -> list[Violation]:
    """Every rule the request breaks, in order of place. An empty list: it may be sent."""
    items = body.get("input")
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    if not isinstance(items, ARRAY):
        return [Violation("input_empty", "input", "input is missing or neither text nor array")]
    rules = ResponsesRules(profile, body)
    rules.extend(items)
    return complete(rules, body)


def complete(rules: "ResponsesRules", body: Mapping[str, Any]) -> list[Violation]:
    """What the rules found in the items, and what is wrong beside them."""
    return [*rules.found, *rules.at_end(), *_tools(body), *field_violations(body, "input")]


class ResponsesRules:
    """A resumable check of one request's items: ``extend`` while there are more, ``at_end`` to close.

    ``found`` holds what is wrong whatever follows; ``at_end()`` what is wrong if nothing follows. It may be
    called at any time and changes nothing.
    """

    def __init__(self, profile: Profile, body: Mapping[str, Any]) -> None:
        self.found: list[Violation] = []
        self._profile = profile
        self._stored = body.get("store") is not False
        self._continues = bool(body.get("previous_response_id") or body.get("conversation"))
        self._id = re.compile(f"(?:{profile.id_pattern})+")
        self._count = 0
        self._images = 0
        self._prompts = 0
        self._last = ""
        """Type of the last item; of a message, its role."""
        self._ids: set[str] = set()
        self._open: list[str] = []
        self._answered: set[str] = set()
        self._foreign = ""
        """Place of an item that stands between the open calls and their outputs."""

    def extend(self, items: Iterable[object]) -> None:
        for item in items:
            self._count += 1
            if not isinstance(item, OBJECT):
                self._add("item_unknown", (), f"a {type(item).__name__}, not an object")
                continue
            self._item(item)

    def at_end(self) -> list[Violation]:
        if self._count == 0:
            return [Violation("input_empty", "input", "there is no item")]
        last: list[Violation] = []
        where = self._place(())
        if self._open:
            last.append(_unanswered(self._open, where))
        elif self._last == "assistant" and not self._profile.prefill:
            last.append(Violation("assistant_last", where, f"{self._profile.name} takes no prefill"))
        if self._last == "reasoning":
            last.append(Violation("reasoning_last", where, "no item follows the reasoning"))
        if self._prompts == 0 and not self._continues:
            last.append(Violation("no_prompt", "input", "no user message or function call output"))
        return last

    def _item(self, item: Mapping[str, Any]) -> None:
        kind = word(item.get("type", "message" if "role" in item else None))
        if kind == "message" or kind in _OTHER_ITEMS:
            self._stand_between()
        ours = kind == "function_call_output" or (kind == "message" and item.get("role") != "assistant")
        if self._last == "reasoning" and ours:
            self._add("reasoning_last", (), "no item of the answer follows the reasoning")
        prefix, item_id = _ID_PREFIXES.get(kind), item.get("id")
        if prefix is not None and item_id is not None and not str(item_id).startswith(prefix):
            self._add("item_id_invalid", (), f"id is {item_id!r}, not {prefix}_...")
        if kind in _ITEM_FIELDS:
            self._extra(item, _ITEM_FIELDS[kind], ())
        match kind:
            case "message":
                self._message(item)
            case "function_call":
                self._call(item)
            case "function_call_output":
                self._output(item)
            case "reasoning":
                self._reasoning(item)
            case _ if kind in _OTHER_ITEMS:
                self._any(item, ())
            case _:
                self._add("item_unknown", (), f"an item of type {kind!r}")
        self._last = str(item.get("role") if kind == "message" else kind)

    def _stand_between(self) -> None:
        """An item behind calls: their outputs had to come first."""
        if self._open and not self._foreign:
            self._foreign = self._place(())

    # --- messages

    def _message(self, item: Mapping[str, Any]) -> None:
        role, content = (
            item.get(
                "role",
            ),
            item.get(
                "content",
            ),
        )
        if not isinstance(role, str) or role not in _PARTS:
            self._add("role_unknown", (), f"role is {role!r}")
            return
        if role == "user":
            self._prompts += 1
        if isinstance(content, str):
            self._text(content, ("content",))
        elif not isinstance(content, ARRAY):
            self._add("content_shape", (), f"content is {type(content).__name__}")
        elif not content:
            self._add("content_empty", (), "content is an empty list")
        else:
            for position, part in enumerate(content):
                self._part(part, _PARTS[role], ("content", position))

    def _part(self, part: object, allowed: frozenset[str], within: Within) -> None:
        kind = word(part.get("type")) if isinstance(part, OBJECT) else ""
        if not isinstance(part, OBJECT) or kind not in allowed:
            self._add("part_unknown", within, f"part {kind!r} is not allowed here")
        elif kind in ("input_text", "output_text"):
            self._text(part.get("text"), within)
            self._extra(part, _TEXT_FIELDS, within)
        elif kind == "input_image":
            self._image(part, within)
            self._extra(part, _TEXT_FIELDS, within)
        else:
            self._any(part, within)

    def _image(self, part: Mapping[str, Any], within: Within) -> None:
        profile, url = self._profile, part.get("image_url")
        if not profile.vision:
            self._add("image_unsupported", within, f"{profile.name} takes no images")
            return
        self._images += 1
        if profile.images_max is not None and self._images > profile.images_max:
            self._add("images_too_many", within, f"more than {profile.images_max} images")
        if part.get("file_id"):
            return
        if not isinstance(url, str) or not url.startswith(("data:", "https://", "http://")):
            self._add("image_invalid", within, "no URL that can be fetched")
        elif url.startswith("data:"):
            head, _, data = url.partition(",")
            if head not in _DATA_HEADS or not is_base64(data):
                self._add("image_invalid", within, f"{head[:60]!r} with data that is no supported image")
            limit = profile.image_max_base64
            if limit is not None and len(data) > limit:
                self._add("image_too_large", within, f"{len(data)} characters of base64, at most {limit}")

    # --- calls and outputs

    def _call(self, item: Mapping[str, Any]) -> None:
        call_id, name = item.get("call_id"), item.get("name")
        if self._open and self._foreign:
            self.found.append(_unanswered(self._open, self._place(())))
            self._open = []
        if self._answered and self._last == "function_call_output":
            self._answered = set()
        self._foreign = ""
        if self._profile.signed_ids and is_signed(word(call_id)):
            pass  # its gateway wants it back whole
        elif not isinstance(call_id, str) or not self._id.fullmatch(call_id):
            self._add("call_id_invalid", (), f"call_id is {call_id!r}")
        elif len(call_id) > self._profile.id_max:
            self._add("call_id_invalid", (), f"{len(call_id)} characters, at most {self._profile.id_max}")
        if word(call_id) in self._ids:
            self._add("call_id_duplicate", (), f"{call_id!r} was used before")
        self._ids.add(word(call_id))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._add("call_name_invalid", (), f"name is {name!r}")
        problem = object_problem(item.get("arguments"))
        if problem:
            self._add("call_arguments_invalid", (), problem)
        if self._profile.repeats_reasoning and self._last == "function_call":
            self._add("reasoning_not_repeated", (), "a parallel call without reasoning before it")
        self._open.append(word(call_id))

    def _output(self, item: Mapping[str, Any]) -> None:
        call_id, output = item.get("call_id"), item.get("output")
        self._prompts += 1
        if isinstance(call_id, str) and call_id in self._open:
            self._open.remove(call_id)
            self._answered.add(call_id)
            if self._foreign:
                self._add("output_not_adjacent", (), f"{self._foreign} stands before it")
        elif word(call_id) in self._answered:
            self._add("output_duplicate", (), f"{call_id!r} has its output already")
        elif not (self._continues and not self._ids):
            self._add("output_without_call", (), f"no call {call_id!r} before it")
        if not self._open:
            self._foreign = ""
        if isinstance(output, str):
            if is_blank(output):
                self._add("output_empty", (), "blank output")
            self._said(output, ())
        elif isinstance(output, ARRAY) and output:
            for position, part in enumerate(output):
                self._part(part, _PARTS["user"], ("output", position))
        else:
            self._add("output_shape", (), f"output is {type(output).__name__}")

    def _reasoning(self, item: Mapping[str, Any]) -> None:
        self._any(item, ())
        sealed = item.get("encrypted_content")
        if not self._stored and not sealed and not self._profile.repeats_reasoning:
            self._add("reasoning_unsealed", (), "no encrypted_content, and nothing is stored")

    # --- texts

    def _text(self, text: object, within: Within) -> None:
        if not isinstance(text, str):
            self._add("content_shape", within, "text is not a string")
            return
        if is_blank(text):
            self._add("content_empty", within, "blank text")
        self._said(text, within)

    def _said(self, text: str, within: Within) -> None:
        for rule, detail in text_rules(text):
            self._add(rule, within, detail)

    def _extra(self, fields: Mapping[str, Any], known: frozenset[str], within: Within) -> None:
        if not known.issuperset(fields):
            for rule, detail in extra_rules(fields, known):
                self._add(rule, within, detail)

    def _any(self, item: Mapping[str, Any], within: Within) -> None:
        for rule, detail in value_rules(item):
            self._add(rule, within, detail)

    def _add(self, rule: str, within: Within, detail: str) -> None:
        self.found.append(Violation(rule, self._place(within), detail))

    def _place(self, within: Within) -> str:
        return place_of(f"input[{self._count - 1}]", within)


def _unanswered(call_ids: list[str], where: str) -> Violation:
    return Violation("call_unanswered", where, "no output for " + ", ".join(map(repr, call_ids)))


def _tools(body: Mapping[str, Any]) -> list[Violation]:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, ARRAY):
        return [Violation("tools_shape", "tools", f"tools is {type(tools).__name__}")]
    if not tools:
        if body.get("tool_choice") in (None, "auto", "none"):
            return []
        return [Violation("tool_choice_without_tools", "tool_choice", "no tools are offered")]
    found: list[Violation] = []
    names: set[str] = set()
    for position, tool in enumerate(tools):
        where = f"tools[{position}]"
        if not isinstance(tool, OBJECT):
            found.append(Violation("tool_schema_invalid", where, "not an object"))
        elif word(tool.get("type")) in ("", "function"):
            found.extend(_function(tool, names, where))
    return found


def _function(tool: Mapping[str, Any], names: set[str], where: str) -> Iterable[Violation]:
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield Violation("tool_name_invalid", where, f"name is {name!r}")
    elif name in names:
        yield Violation("tool_name_duplicate", where, f"{name!r} is offered twice")
    names.add(str(name))
    if parameters is not None and (not isinstance(parameters, OBJECT) or parameters.get("type") != "object"):
        yield Violation("tool_schema_invalid", where, f"parameters of {name!r} is no object schema")

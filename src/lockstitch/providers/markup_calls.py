"""Reading the calls in marked-up sections (see ``markup``).

Values keep the text the model wrote: where a format does not say whether a value is JSON, it is a string.
Sources, read 2026-11-30: https://huggingface.co/deepseek-ai/DeepSeek-V3.2 (encoding/encoding_dsv32.py, in
vLLM's copy), https://github.com/MoonshotAI/Kimi-K2 (docs/tool_call_guidance.md),
https://huggingface.co/MiniMaxAI/MiniMax-M2 (docs/tool_calling_guide.md), and the reports whose streams are in
tests/recorded/cases (Qwen3, Qwen3-Coder, GLM-4.5, DeepSeek-V3).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ..wire import strict_json
from .call_slots import NAME_MAX
from .markup import Section, pattern

_Blocks: TypeAlias = list[tuple[re.Match[str], str]]


class MarkedCall(NamedTuple):
    """One call, as a section says it."""

    name: str
    arguments: str
    """JSON text where the model wrote any, even if it is cut."""
    id: str | None = None
    """Where the format has one (Kimi)."""


def read_calls(section: Section) -> list[MarkedCall] | None:
    """The calls of a section in order; None if it is incomplete or does not say a call as its format has
    it.
    """
    if not section.complete:
        return None
    calls = _READERS[section.family](strict_json.well_formed(section.text))
    return calls if calls and all(0 < len(call.name) <= NAME_MAX for call in calls) else None


def _hermes(text: str) -> list[MarkedCall] | None:
    inner = text.removeprefix("<tool_call>").removesuffix("</tool_call>").strip()
    if inner[:1] in ("{", "["):
        return _json_calls(inner)
    functions = _blocks(inner, r"<function=([^>\n]+)>", "</function>")
    if functions is None:
        return None
    if functions:
        return [
            MarkedCall(head[1].strip(), _named(body, r"<parameter=([^>\n]+)>")) for head, body in functions
        ]
    return _glm(inner)


def _json_calls(inner: str) -> list[MarkedCall] | None:
    try:
        said = strict_json.parse(inner)
    except strict_json.InvalidJson:
        return None
    calls = []
    for one in said if isinstance(said, list) else [said]:
        function = one.get("function", one) if isinstance(one, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str):
            return None
        arguments = function.get("arguments", function.get("parameters", {}))
        text = arguments if isinstance(arguments, str) else strict_json.encoded(arguments)
        calls.append(MarkedCall(name, text))
    return calls


def _glm(inner: str) -> list[MarkedCall] | None:
    name = inner.partition("<arg_key>")[0].strip()
    if not re.fullmatch(r"[\w.:/-]+", name):
        return None
    pairs = _blocks(inner, r"<arg_key>([^<]*)</arg_key>\s*<arg_value>", "</arg_value>")
    if pairs is None:
        return None
    return [MarkedCall(name, strict_json.encoded({head[1].strip(): value for head, value in pairs}))]


def _dsml(text: str) -> list[MarkedCall] | None:
    if re.search(pattern("<|tool▁call▁begin|>"), text):
        return _deepseek_tokens(text)
    begin = pattern("<|DSML|invoke") + r'(?:\s+name="?([^">]*)"?)?\s*>'
    invokes = _blocks(text, begin, pattern("</|DSML|invoke>"))
    if invokes is None:
        return None
    return [MarkedCall(head[1] or "", _dsml_arguments(body)) for head, body in invokes]


def _dsml_arguments(body: str) -> str:
    begin = pattern("<|DSML|parameter") + r'\s+name="?([^">\s]*)"?(?:\s+string="?(\w*)"?)?\s*>'
    parameters = _blocks(body, begin, pattern("</|DSML|parameter>"))
    if not parameters:
        return body.strip()
    values: dict[str, Any] = {}
    for head, value in parameters:
        if head[2] != "false":
            values[head[1]] = value
            continue
        try:
            values[head[1]] = strict_json.parse(value)
        except strict_json.InvalidJson:
            return body.strip()
    return strict_json.encoded(values)


def _deepseek_tokens(text: str) -> list[MarkedCall] | None:
    blocks = _blocks(text, pattern("<|tool▁call▁begin|>"), pattern("<|tool▁call▁end|>"))
    calls = []
    for _, body in blocks or ():
        before, *behind = re.split(pattern("<|tool▁sep|>"), body, maxsplit=1)
        if not behind:
            return None
        rest = behind[0].strip()
        if rest and not rest.startswith("{"):
            # DeepSeek-V3 and R1: type, separator, name, and below it the arguments, mostly in a fence.
            before, _, rest = rest.partition("\n")
            rest = re.sub(r"^```\w*\s*|\s*```$", "", rest.strip())
        calls.append(MarkedCall(before.strip(), rest))
    return calls


def _kimi(text: str) -> list[MarkedCall] | None:
    blocks = _blocks(text, pattern("<|tool_call_begin|>"), pattern("<|tool_call_end|>"))
    calls = []
    for _, body in blocks or ():
        head = re.match(r"\s*([^\s<{]+)", body)
        if head is None:
            return None
        arguments = re.sub(pattern("<|tool_call_argument_begin|>"), "", body[head.end() :], count=1)
        name = re.sub(r":\d+$", "", head[1]).removeprefix("functions.")
        calls.append(MarkedCall(name, arguments.strip(), head[1]))
    return calls


def _minimax(text: str) -> list[MarkedCall] | None:
    invokes = _blocks(text, r'<invoke\s+name="?([^">]*)"?\s*>', "</invoke>")
    if invokes is None:
        return None
    return [
        MarkedCall(head[1], _named(body, r'<parameter\s+name="?([^">]*)"?\s*>')) for head, body in invokes
    ]


def _blocks(text: str, begin: str, end: str) -> _Blocks | None:
    """Each beginning with the text up to its end, in order; None if one never ends. Linear, unlike one
    pattern.
    """
    found: _Blocks = []
    begins, ends = re.compile(begin), re.compile(end)
    at = 0
    while head := begins.search(text, at):
        tail = ends.search(text, head.end())
        if tail is None:
            return None
        found.append((head, text[head.end() : tail.start()]))
        at = tail.end()
    return found


def _named(body: str, begin: str) -> str:
    """Parameters as JSON text, without the line ends that the templates put around each value."""
    parameters = _blocks(body, begin, "</parameter>")
    if parameters is None:
        return body.strip()
    return strict_json.encoded(
        {head[1].strip(): value.removeprefix("\n").removesuffix("\n") for head, value in parameters}
    )


_READERS: Final[Mapping[str, Callable[[str], list[MarkedCall] | None]]] = {
    "hermes": _hermes,
    "dsml": _dsml,
    "kimi": _kimi,
    "minimax": _minimax,
}

"""What of an openai-chat answer is text, what is reasoning, and what is a call written as markup.

A row gives the deltas in order: text for content, a dict for a whole delta. Each row is decoded as it is and
with its content split into single characters, which must not matter.
"""

from typing import Any

import pytest
from chat_streams import body, call, calls_of, delta, end, ending_of, notes_of, reasoning_of, text_of

from lockstitch.history.decode import Decoded, decode

Row = tuple[list[Any], str, str]


def stream(deltas: list[Any], *, finish: str, chars: bool) -> bytes:
    events: list[Any] = []
    for one in deltas:
        if isinstance(one, str):
            events += [delta(char) for char in one] if chars else [delta(one)]
        else:
            events.append(one if "choices" in one else delta(**one))
    return body([*events, *end(finish)])


def decoded(deltas: list[Any], *, chars: bool, profile: str = "generic", finish: str = "stop") -> Decoded:
    return decode(stream(deltas, finish=finish, chars=chars), "openai-chat", profile=profile)


def thought(text: str) -> dict[str, Any]:
    return {"reasoning_content": text}


REASONING: dict[str, Row] = {
    "a think block at the start is reasoning": (["<think>hm</think>Yes"], "Yes", "hm"),
    "white space before it goes with it": (["\n <think>hm</think>Yes"], "Yes", "hm"),
    "line ends behind it go with it": (["<think>hm</think>\n\nYes"], "Yes", "hm"),
    "line ends behind it go with it over any split": (
        ["<think>hm</think>", "\r\n", "\n", "Yes\n"],
        "Yes\n",
        "hm",
    ),
    "other white space behind it stays": (["<think>hm</think>\n  Yes"], "  Yes", "hm"),
    "line ends inside the reasoning stay": (["<think>\nhm\n</think>\nYes"], "Yes", "\nhm\n"),
    "kimi-vl has tags of its own": (["◁think▷hm◁/think▷\nYes"], "Yes", "hm"),
    "each opening tag has its own closing tag": (["◁think▷a</think>b◁/think▷Yes"], "Yes", "a</think>b"),
    "a stray closing tag of kimi-vl": ([thought("hm"), "◁/think▷Yes"], "Yes", "hm"),
    "tags of kimi-vl later are literal": (["Say ◁think▷."], "Say ◁think▷.", ""),
    "the beginning of a tag alone is text": (["◁thin"], "◁thin", ""),
    "it may come repeatedly": (["<think>a</think>\n<think>b</think>Yes"], "Yes", "ab"),
    "an empty one vanishes": (["<think></think>Yes"], "Yes", ""),
    "a think tag later is literal": (["Say <think>hm</think>."], "Say <think>hm</think>.", ""),
    "a closing tag that nothing opened is literal": (["a</think>b"], "a</think>b", ""),
    "one that is not quite a tag is literal": (["<thinking>a</thinking>b"], "<thinking>a</thinking>b", ""),
    "half a tag at the end is literal": (["<thi"], "<thi", ""),
    "a less-than sign is literal": (["< 3 and > 2"], "< 3 and > 2", ""),
    "a stray closing tag after the reasoning field": ([thought("hm"), "</think>Yes"], "Yes", "hm"),
    "a stray closing tag behind a line end": ([thought("hm"), "\n</think>\nYes"], "Yes", "hm"),
    "a stray closing tag after reasoning in the middle": (
        ["Yes.", thought("hm"), "</think>No."],
        "Yes.No.",
        "hm",
    ),
    "an opening tag after reasoning in the middle is literal": (
        ["Yes.", thought("hm"), "<think>No."],
        "Yes.<think>No.",
        "hm",
    ),
    "a think block beside the reasoning field": ([thought("a"), "<think>b</think>Yes"], "Yes", "ab"),
    "nested opening tags are part of the reasoning": (["<think>a<think>b</think>Yes"], "Yes", "a<think>b"),
    "angle brackets inside reasoning stay": (["<think>a < b </thin k></think>Yes"], "Yes", "a < b </thin k>"),
    "the first of the fields that is not empty counts": (
        [{"reasoning_content": "", "reasoning": "a", "thinking": "b"}, {"reasoning_text": "c"}, "Yes"],
        "Yes",
        "ac",
    ),
    "fields of another type are no reasoning": (
        [{"reasoning_content": {"x": 1}, "reasoning": 3, "thinking": "a"}, "Yes"],
        "Yes",
        "a",
    ),
    "content equal to the reasoning of its delta is dropped": (
        [{"reasoning": "a", "content": "a"}, "a"],
        "a",
        "a",
    ),
    "content that differs from the reasoning of its delta stays": (
        [{"reasoning": "a", "content": "b"}],
        "b",
        "a",
    ),
    "content as a list of parts": (
        [
            {"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "Y"}, None, "e"]},
            {"content": {"type": "text", "text": "s"}},
            {"content": [{"type": "thinking", "thinking": [{"text": "b"}, "c", {"x": 1}]}]},
        ],
        "Yes",
        "abc",
    ),
    "equal and growing pieces of text are all text": (["4", "4", "44", "444"], "4444444", ""),
    "white space alone between pieces stays": (["a", " ", "\n", "b"], "a \nb", ""),
    "a refusal is what the model said": (
        [{"content": None, "refusal": "I "}, {"refusal": "won't"}],
        "I won't",
        "",
    ),
}


@pytest.mark.parametrize("chars", [False, True], ids=["as sent", "by characters"])
@pytest.mark.parametrize("name", REASONING)
@pytest.mark.parametrize("profile", ["generic", "vllm"])
def test_text_and_reasoning(name: str, chars: bool, profile: str) -> None:
    deltas, text, reasoning = REASONING[name]
    result = decoded(deltas, chars=chars, profile=profile)
    assert (ending_of(result), text_of(result), reasoning_of(result)) == ("stop", text, reasoning)


HERMES = '<tool_call>\n{"name": "ls", "arguments": {"p": 1}}\n</tool_call>'
CODER = "<tool_call>\n<function=ls>\n<parameter=p>\n1\n</parameter>\n</function>\n</tool_call>"
GLM = "<tool_call>ls\n<arg_key>p</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"
DSML = (
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="ls">\n'
    '<｜DSML｜parameter name="p" string="false">1</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="q" string="true">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
)
V31 = (
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ls<｜tool▁sep｜>{"p":1}'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
V3 = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n"
    '{"p":1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
)
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
    '{"p":1}<|tool_call_end|><|tool_calls_section_end|>'
)
MINIMAX = (
    '<minimax:tool_call>\n<invoke name="ls">\n<parameter name="p">1</parameter>\n'
    "</invoke>\n</minimax:tool_call>"
)
MarkupRow = tuple[str, list[Any], str, list[tuple[str, ...]] | str]
LS = ("call_1", "ls", '{"p":1}')
LS_TEXT = ("call_1", "ls", '{"p":"1"}')
MARKUP: dict[str, MarkupRow] = {
    "hermes JSON": ("qwen", [HERMES], "", [LS]),
    "hermes, two sections with a line end between": (
        "qwen",
        ["Two:\n\n" + HERMES + "\n" + HERMES + "\n"],
        "Two:",
        [LS, ("call_2", "ls", '{"p":1}')],
    ),
    "text behind a section stays": ("qwen", ["a " + HERMES + "\nb"], "a \nb", [LS]),
    "hermes with functions and parameters": ("qwen", [CODER], "", [LS_TEXT]),
    "hermes with keys and values": ("zhipu", [GLM], "", [LS_TEXT]),
    "hermes with a name alone": ("zhipu", ["<tool_call>ls</tool_call>"], "", [("call_1", "ls", "{}")]),
    "dsml with typed parameters": ("deepseek", [DSML], "", [("call_1", "ls", '{"p":1,"q":"1"}')]),
    "dsml with other bars": (
        "deepseek",
        [DSML.replace("｜", "|").replace("</|", "</‖")],
        "",
        [("call_1", "ls", '{"p":1,"q":"1"}')],
    ),
    "dsml, the older tokens": ("deepseek", [V31], "", [LS]),
    "dsml, the oldest tokens with a fence": ("deepseek", [V3], "", [LS]),
    "dsml, the oldest tokens without a fence": (
        "deepseek",
        ["<｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n" + '{"p":1}<｜tool▁call▁end｜>'],
        "",
        [LS],
    ),
    "dsml without quotes, with doubled bars": (
        "deepseek",
        [DSML.replace('"', "").replace("｜", "||").replace("function_calls", "tool_calls")],
        "",
        [("call_1", "ls", '{"p":1,"q":"1"}')],
    ),
    "dsml without parameters": (
        "deepseek",
        ['<｜DSML｜invoke name="ls">\n</｜DSML｜invoke>'],
        "",
        [("call_1", "ls", "")],
    ),
    "kimi tokens keep their id": ("moonshot", [KIMI], "", [("functions.ls:0", "ls", '{"p":1}')]),
    "kimi tokens without a section": (
        "moonshot",
        ['<|tool_call_begin|> functions.ls:3 {"p":1} <|tool_call_end|>'],
        "",
        [("functions.ls:3", "ls", '{"p":1}')],
    ),
    "an id that occurs twice is minted the second time": (
        "moonshot",
        [KIMI + KIMI],
        "",
        [("functions.ls:0", "ls", '{"p":1}'), LS],
    ),
    "minimax tags": ("minimax", [MINIMAX], "", [LS_TEXT]),
    "in a code fence it is text": ("qwen", [f"```xml\n{HERMES}\n```"], f"```xml\n{HERMES}\n```", []),
    "in a tilde fence inside a quote it is text": ("qwen", [f"> ~~~\n> {HERMES}"], f"> ~~~\n> {HERMES}", []),
    "in a code span it is text": ("qwen", ["Use `<tool_call>` here."], "Use `<tool_call>` here.", []),
    "behind a closed fence it is a call": ("qwen", ["```\na\n```\n" + HERMES], "```\na\n```", [LS]),
    "a fence that closes on one line is a span": ("qwen", ["```a``` " + HERMES], "```a``` ", [LS]),
    "a longer fence is not closed by a shorter one": (
        "qwen",
        [f"````\n```\n{HERMES}\n````"],
        f"````\n```\n{HERMES}\n````",
        [],
    ),
    "of another family it is text": ("qwen", [KIMI], KIMI, []),
    "what only begins like a marker is text": (
        "qwen",
        ["a <tool_cat> <tool_call"],
        "a <tool_cat> <tool_call",
        [],
    ),
    "without its end it is refused": ("qwen", ["Hm.\n" + HERMES[:-3]], "Hm.", "MALFORMED_TOOL_CALL"),
    "with a cut object it is refused": (
        "qwen",
        ['<tool_call>{"name": "ls", "argum</tool_call>'],
        "",
        "MALFORMED_TOOL_CALL",
    ),
    "without a name it is refused": (
        "qwen",
        ['<tool_call>{"arguments": {}}</tool_call>'],
        "",
        "MALFORMED_TOOL_CALL",
    ),
    "cut arguments of a whole section are kept and not run": (
        "moonshot",
        ['<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"p":<|tool_call_end|>'],
        "",
        [("functions.ls:0", "ls", '{"p":', "not_json")],
    ),
    "beside a structured call it is only removed": (
        "qwen",
        ["Hm.", HERMES, call(0, "c1", "ls", "{}")],
        "Hm.",
        [("c1", "ls", "{}")],
    ),
    "incomplete beside a structured call it is only removed": (
        "qwen",
        ["Hm.\n<tool_call>\n{", call(0, "c1", "ls", "{}")],
        "Hm.",
        [("c1", "ls", "{}")],
    ),
    "in reasoning it is a call if nothing was answered": ("qwen", [thought("a " + HERMES)], "", [LS]),
    "in reasoning it is only removed if something was answered": (
        "qwen",
        [thought("a " + HERMES), "Done."],
        "Done.",
        [],
    ),
    "in a think block it is reasoning too": ("qwen", [f"<think>a{HERMES}</think>"], "", [LS]),
    "behind a think block it is a call": ("qwen", [f"<think>a</think>\n{HERMES}"], "", [LS]),
}


@pytest.mark.parametrize("chars", [False, True], ids=["as sent", "by characters"])
@pytest.mark.parametrize("name", MARKUP)
def test_marked_up_calls(name: str, chars: bool) -> None:
    profile, deltas, text, calls = MARKUP[name]
    result = decoded(deltas, chars=chars, profile=profile)
    if isinstance(calls, str):
        assert (ending_of(result), text_of(result), calls_of(result)) == (calls, text, [])
    else:
        wanted = "tool_calls" if calls else "stop"
        assert (ending_of(result), text_of(result), calls_of(result)) == (wanted, text, calls)
    assert "<tool_call>" not in reasoning_of(result)


@pytest.mark.parametrize("markup", [HERMES, DSML, KIMI, MINIMAX], ids=["hermes", "dsml", "kimi", "minimax"])
def test_the_generic_profile_only_notes_markup(markup: str) -> None:
    result = decoded([markup], chars=False)
    assert (ending_of(result), text_of(result), notes_of(result)) == ("stop", markup, {"text_tool_call": 1})


def test_markup_in_code_is_not_noted() -> None:
    assert notes_of(decoded([f"```\n{HERMES}\n```"], chars=False)) == {}


def test_markup_that_the_output_limit_cut_leaves_the_text() -> None:
    result = decoded(["Hm.\n<tool_call>\n{"], chars=False, profile="qwen", finish="length")
    assert (ending_of(result), text_of(result), calls_of(result)) == ("length", "Hm.", [])


def test_text_is_given_out_while_it_streams_up_to_what_may_be_markup() -> None:
    from lockstitch.history.decode import Decoder
    from lockstitch.schema.chunks import TextDelta

    decoder = Decoder("openai-chat", profile="qwen")
    shown = [
        "".join(chunk.text for chunk in decoder.feed(body([delta(piece)])) if isinstance(chunk, TextDelta))
        for piece in ("One", " two\n", "three <tool", "_box>", " four")
    ]
    assert shown == ["One", " two", "\nthree ", "<tool_box>", " four"]

"""What each target may hold: histories that are paired well, and the requests that targets get of them."""

import json
from typing import Any

import pytest
from histories import assistant, call, png, png_data, result, system, tool_result, user

from lockstitch.history.policy import Policy, policy
from lockstitch.history.project import CONTINUE, Projector
from lockstitch.history.shape import NO_RESULT, NOT_RUN
from lockstitch.providers.catalog import profile, with_overrides
from lockstitch.schema.blocks import (
    Base64Source,
    BlobSource,
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
from lockstitch.schema.messages import Message

A = call("a")
MARK = {"cache_control": {}}
LARGE = Image(media_type="image/png", source=Base64Source(png_data(9000, 10)))


def image(data: str = "aGk=", kind: str = "image/png") -> Image:
    return Image(media_type=kind, source=Base64Source(data))


def at(url: str) -> Image:
    return Image(media_type="image/png", source=UrlSource(url))


def blob(sha256: str = "ab", size: int = 3, kind: str = "image/png") -> Image:
    return Image(media_type=kind, source=BlobSource(sha256, size))


def thought(text: str = "hm", **fields: Any) -> Reasoning:
    return Reasoning(text=text, **fields)


def mine(*content: str | Block) -> Message:
    """An answer of the very model the request goes to."""
    return assistant(*content, provider="me", model="m")


SIGNED = Replay("me", "m", {"thought_signature": "s"})


def signed(call_id: str, signature: str = "s") -> ToolCall:
    replay = Replay("me", "m", {"thought_signature": signature})
    return ToolCall(id=call_id, name="read", arguments="{}", replay=replay)


def item(call_id: str, **extra: Any) -> ToolCall:
    return ToolCall(id=call_id, name="read", arguments="{}", extra=extra)


def opaque(kind: str, protocol: str = "anthropic-messages", **fields: Any) -> Opaque:
    return Opaque(protocol=protocol, value={"type": kind, **fields})


GEMINI_PARTS: tuple[dict[str, Any], ...] = (
    {"fileData": {"fileUri": "u"}},
    {"inlineData": {"mimeType": "a/b", "data": "x"}},
    {"x": 1},
    {"fileData": {}},
    {"fileData": 7},
    {"inlineData": {"mimeType": "a/b"}},
)

Case = tuple[str, list[Message], list[str], list[str]]
"""The target, the history, the request as lines, and the kinds of the anomalies.

A target is a profile's name, then overrides: ``anthropic vision=false rung=strict thinking=false``.
"""

TEXTS: dict[str, Case] = {
    "NUL and lone surrogates are replaced": (
        "generic",
        [user("a\0b\ud83d"), assistant("c\udfff"), user("q")],
        ["user a\ufffdb\ufffd", "assistant c\ufffd", "user q"],
        ["surrogate_replaced", "nul_replaced", "surrogate_replaced"],
    ),
    "a NUL alone is replaced": ("generic", [user("a\0b")], ["user a\ufffdb"], ["nul_replaced"]),
    "other characters are left alone": ("generic", [user("é世界😀")], ["user é世界😀"], []),
    "broken characters in a result are replaced": (
        "anthropic",
        [user("q"), assistant(A), result("a", "x\ud800")],
        ["user q", "assistant a(read {})", "user a=x\ufffd"],
        ["surrogate_replaced"],
    ),
    "blank text goes": (
        "generic",
        [user("q", " ", "r"), assistant("x", "\n", "y"), user("z")],
        ["user q|r", "assistant x|y", "user z"],
        ["blank_text_dropped", "blank_text_dropped"],
    ),
    "blank text beside calls stays in chat, where models say it": (
        "generic",
        [user("q"), assistant("\n\n", A), result("a")],
        ["user q", "assistant \n\n|a(read {})", "tool a=done"],
        [],
    ),
    "blank text beside calls goes where it is refused": (
        "anthropic",
        [user("q"), assistant("\n\n", A), result("a")],
        ["user q", "assistant a(read {})", "user a=done"],
        ["blank_text_dropped"],
    ),
    "marked blank text beside calls goes": (
        "generic",
        [user("q"), assistant(Text(text=" ", extra=MARK), A), result("a")],
        ["user q", "assistant a(read {})", "tool a=done"],
        ["blank_text_dropped"],
    ),
    "fields of a block go back": (
        "anthropic",
        [user(Text(text="q", extra=MARK))],
        ['user q+{"cache_control": {}}'],
        [],
    ),
    "fields of a block stay behind on a strict rung": (
        "anthropic rung=strict",
        [user(Text(text="q", extra=MARK))],
        ["user q"],
        [],
    ),
    "fields of a message go back": (
        "generic",
        [Message("user", (Text(text="q"),), extra={"name": "bob"})],
        ['user q +{"name": "bob"}'],
        [],
    ),
    "fields of an answer go back": (
        "generic",
        [user("q"), Message("assistant", (Text(text="x"),), extra={"refusal": None}), user("r")],
        ["user q", 'assistant x +{"refusal": null}', "user r"],
        [],
    ),
    "fields of answers that are joined stay behind": (
        "generic",
        [user("q"), Message("assistant", (Text(text="x"),), extra={"y": 1}), assistant("z"), user("r")],
        ["user q", "assistant x\n\nz", "user r"],
        ["assistants_merged"],
    ),
    "an id among a call's fields is nobody's but responses'": (
        "anthropic",
        [user("q"), assistant(item("a", id="x")), result("a")],
        ["user q", 'assistant a(read {})+{"id": "x"}', "user a=done"],
        [],
    ),
    "broken characters in a field are replaced": (
        "generic",
        [Message("user", (Text(text="q"),), extra={"na\ud800me": ["\ud800"]})],
        ['user q +{"na\\ufffdme": ["\\ufffd"]}'],
        [],
    ),
}

CALLS: dict[str, Case] = {
    "arguments that are no JSON become none": (
        "generic",
        [user("q"), assistant(call("a", arguments='{"x": tru')), result("a")],
        ["user q", "assistant a(read {})", "tool a=done"],
        ["arguments_replaced"],
    ),
    "arguments that are no object become none": (
        "generic",
        [user("q"), assistant(call("a", arguments="[1]")), result("a")],
        ["user q", "assistant a(read {})", "tool a=done"],
        ["arguments_replaced"],
    ),
    "no arguments are none": (
        "generic",
        [
            user("q"),
            assistant(call("a", arguments=""), call("b", arguments="null")),
            result("a"),
            result("b"),
        ],
        ["user q", "assistant a(read {})|b(read {})", "tool a=done", "tool b=done"],
        [],
    ),
    "arguments keep their spelling": (
        "generic",
        [user("q"), assistant(call("a", arguments=' { "x" : "é" } ')), result("a")],
        ["user q", 'assistant a(read  { "x" : "é" } )', "tool a=done"],
        [],
    ),
    "brackets within a text are no nesting": (
        "generic",
        [user("q"), assistant(call("a", arguments='{"x":"é' + "[" * 150 + '"}')), result("a")],
        ["user q", 'assistant a(read {"x":"é' + "[" * 150 + '"})', "tool a=done"],
        [],
    ),
    "broken characters in arguments are replaced": (
        "generic",
        [user("q"), assistant(call("a", arguments='{"x":"\\ud99c y"}')), result("a")],
        ["user q", 'assistant a(read {"x":"\ufffd y"})', "tool a=done"],
        ["surrogate_replaced"],
    ),
    "an escaped pair is no broken character": (
        "generic",
        [user("q"), assistant(call("a", arguments='{"x":"\\ud83d\\ude00"}')), result("a")],
        ["user q", 'assistant a(read {"x":"\\ud83d\\ude00"})', "tool a=done"],
        [],
    ),
    "a call with bad arguments and no result was not run": (
        "generic",
        [user("q"), assistant(call("a", arguments="{"))],
        ["user q", "assistant a(read {})", "tool a=?"],
        ["arguments_replaced", "result_synthesised"],
    ),
    "names are respelled": (
        "generic",
        [user("q"), assistant(call("a", "my tool.é")), result("a")],
        ["user q", "assistant a(my_tool__ {})", "tool a=done"],
        ["call_name_changed"],
    ),
    "long names are cut": (
        "generic",
        [user("q"), assistant(call("a", "n" * 70)), result("a")],
        ["user q", f"assistant a({'n' * 64} {{}})", "tool a=done"],
        ["call_name_changed"],
    ),
    "longer names at anthropic": (
        "anthropic",
        [user("q"), assistant(call("a", "n" * 70)), result("a")],
        ["user q", f"assistant a({'n' * 70} {{}})", "user a=done"],
        [],
    ),
    "gemini takes dots and wants a letter first": (
        "gemini",
        [user("q"), assistant(call("a", "x.y"), call("b", "1z")), result("a"), result("b")],
        ["user q", "assistant a(x.y {})|b(_1z {})", "user a=done|b=done"],
        ["call_name_changed"],
    ),
    "ids outside a target's alphabet are renamed": (
        "anthropic",
        [user("q"), assistant(call("f.r:0")), result("f.r:0")],
        ["user q", "assistant *(read {})", "user *=done"],
        ["call_id_changed"],
    ),
    "ids of kimi are left alone": (
        "moonshot thinking=false",
        [user("q"), assistant(call("f.r:0")), result("f.r:0")],
        ["user q", "assistant f.r:0(read {})", "tool f.r:0=done"],
        [],
    ),
    "ids that are too long are renamed": (
        "openai",
        [user("q"), assistant(call("x" * 41)), result("x" * 41)],
        ["user q", "assistant *(read {})", "tool *=done"],
        ["call_id_changed"],
    ),
    "mistral's ids have nine characters": (
        "mistral",
        [user("q"), assistant(call("abc"), call("abcdefghi")), result("abc"), result("abcdefghi")],
        ["user q", "assistant *(read {})|abcdefghi(read {})", "tool *=done", "tool abcdefghi=done"],
        ["call_id_changed"],
    ),
    "text stands before calls in responses": (
        "openai-responses",
        [user("q"), assistant(A, "looking"), result("a")],
        ["user q", "assistant looking|a(read {})", "tool a=done"],
        [],
    ),
    "text stays behind calls elsewhere": (
        "generic",
        [user("q"), assistant(A, "looking"), result("a")],
        ["user q", "assistant a(read {})|looking", "tool a=done"],
        [],
    ),
    "text stands before calls on a strict rung": (
        "anthropic rung=strict",
        [user("q"), assistant(A, "looking"), result("a")],
        ["user q", "assistant looking|a(read {})", "user a=done"],
        [],
    ),
    "all results of an answer are one message at anthropic, text behind them": (
        "anthropic",
        [user("q"), assistant(A, call("b")), result("a", "ra"), result("b", "rb"), user("so?")],
        ["user q", "assistant a(read {})|b(read {})", "user a=ra|b=rb|so?"],
        [],
    ),
    "results stand alone at gemini": (
        "gemini",
        [user("q"), assistant(A), result("a"), user("so?"), user("well?")],
        ["user q", "assistant a(read {})", "user a=done", "user so?\n\nwell?"],
        [],
    ),
    "calls and results are text on the flattened rung": (
        "generic rung=flattened",
        [
            user("q"),
            assistant("hm", call("a", arguments='{"x": tru')),
            result("a", "r"),
            assistant(call("b", " ")),
        ],
        [
            "user q",
            'assistant hm|[Called read with {"x": tru]',
            "user [Result of read:]|r",
            "assistant [Called a tool without a name with {}]",
            "user [There is no result of a tool without a name.]",
        ],
        ["call_flattened", "call_flattened"],
    ),
    "an answer of nothing is none on the flattened rung": (
        "generic rung=flattened",
        [user("q"), assistant(" "), user("r")],
        ["user q\n\nr"],
        ["empty_message_dropped"],
    ),
    "ids of items go with the reasoning they belong to": (
        "openai-responses",
        [
            user("q"),
            mine(thought(), ToolCall(id="a", name="read", arguments="{}", extra={"id": "fc_1"})),
            result("a"),
        ],
        ["user q", "assistant a(read {})", "tool a=done"],
        ["reasoning_dropped", "item_id_dropped"],
    ),
    "ids of items stay where nothing was dropped": (
        "openai-responses",
        [user("q"), mine(ToolCall(id="a", name="read", arguments="{}", extra={"id": "fc_1"})), result("a")],
        ["user q", 'assistant a(read {})+{"id": "fc_1"}', "tool a=done"],
        [],
    ),
    "other fields stay where reasoning was dropped": (
        "openai-responses",
        [user("q"), mine(thought(), Text(text="x", extra={"annotations": []})), user("r")],
        ["user q", 'assistant x+{"annotations": []}', "user r"],
        ["reasoning_dropped"],
    ),
    "an id of another kind of item goes": (
        "openai-responses",
        [
            user("q"),
            mine(ToolCall(id="a", name="read", arguments="{}", extra={"id": "msg_1", "x": 1})),
            result("a"),
        ],
        ["user q", 'assistant a(read {})+{"x": 1}', "tool a=done"],
        ["item_id_dropped"],
    ),
    "a message's id goes with its reasoning": (
        "openai-responses",
        [
            user("q"),
            mine(thought(), Text(text="x", extra={"item": {"id": "msg_1", "status": "s"}})),
            user("r"),
        ],
        ["user q", 'assistant x+{"item": {"status": "s"}}', "user r"],
        ["reasoning_dropped", "item_id_dropped"],
    ),
    "signatures go back to whom they came from": (
        "gemini",
        [user("q"), mine(Text(text="x", replay=SIGNED), signed("a")), result("a")],
        ["user q", "assistant x!s|a(read {})!s", "user a=done"],
        [],
    ),
    "signatures of another model stay behind": (
        "gemini",
        [user("q"), assistant(Text(text="x", replay=SIGNED), signed("a")), result("a")],
        ["user q", "assistant x|a(read {})", "user a=done"],
        [],
    ),
    "signatures stay behind where no reasoning goes back": (
        "gemini rung=no_reasoning",
        [user("q"), mine(signed("a")), result("a")],
        ["user q", "assistant a(read {})", "user a=done"],
        [],
    ),
    "signatures with broken characters stay behind": (
        "gemini",
        [user("q"), mine(signed("a", "\ud800")), result("a")],
        ["user q", "assistant a(read {})", "user a=done"],
        [],
    ),
}

MEDIA: dict[str, Case] = {
    "an image a model cannot see": (
        "generic vision=false",
        [user("see", png())],
        ["user see|[image omitted: model has no image input]"],
        ["image_omitted"],
    ),
    "an image on a rung without media": (
        "generic rung=no_media",
        [user("see", png())],
        ["user see|[image omitted: the request was refused with it]"],
        ["image_omitted"],
    ),
    "an image where just these were refused": (
        "generic media=false",
        [user("see", png())],
        ["user see|[image omitted: the request was refused with it]"],
        ["image_omitted"],
    ),
    "an image of an answer": (
        "generic",
        [user("q"), assistant("x", png()), user("r")],
        ["user q", "assistant x|[image omitted: an assistant message cannot hold one]", "user r"],
        ["image_omitted"],
    ),
    "an image of gemini's own": (
        "gemini",
        [user("q"), assistant("x", png()), user("r")],
        ["user q", "assistant x|<image/png aGk=>", "user r"],
        [],
    ),
    "an image of the system": (
        "generic",
        [Message("system", (Text(text="s"), png())), user("q")],
        ["system s|[image omitted: a system message cannot hold one]", "user q"],
        ["image_omitted"],
    ),
    "an image in a result, where results are text": (
        "generic",
        [user("q"), assistant(A), Message("tool", (tool_result("a", "r", png()),)), user("so?")],
        [
            "user q",
            "assistant a(read {})",
            "tool a=r|[image: shown in the next message]",
            "user <image/png aGk=>",
            "user so?",
        ],
        [],
    ),
    "an image in a result, where results hold images": (
        "anthropic",
        [user("q"), assistant(A), Message("tool", (tool_result("a", png()),))],
        ["user q", "assistant a(read {})", "user a=<image/png aGk=>"],
        [],
    ),
    "an image in a result on the flattened rung": (
        "generic rung=flattened",
        [user("q"), assistant(A), Message("tool", (tool_result("a", png(), " "),))],
        [
            "user q",
            "assistant [Called read with {}]",
            "user [Result of read:]|[image omitted: the request was refused with it]",
        ],
        ["call_flattened", "image_omitted", "blank_text_dropped"],
    ),
    "an image that is too large": (
        "generic image_max_base64=4",
        [user(image("QUJD"), image("QUJDREVG"), image("QUI="))],
        ["user <image/png QUJD>|[image omitted: 6 bytes exceeds the limit]|<image/png QUI=>"],
        ["image_omitted"],
    ),
    "an image with too many pixels": (
        "anthropic",
        [user("see", LARGE)],
        ["user see|[image omitted: 9000x10 pixels, of which 8000 a side are allowed]"],
        ["image_omitted"],
    ),
    "an image whose type is wrong": (
        "generic",
        [user(image("/9j/aGk=", "image/png"))],
        ["user <image/jpeg /9j/aGk=>"],
        ["image_type_corrected"],
    ),
    "an image of a type nobody takes": (
        "generic",
        [user(image(kind="image/tiff"), image(kind=""))],
        ["user [image omitted: image/tiff is not supported]|[image omitted: its type is not supported]"],
        ["image_omitted", "image_omitted"],
    ),
    "an image that is none": (
        "generic",
        [user(image("not base64!"), image(""))],
        [
            "user [image omitted: its data is not a readable image]|"
            "[image omitted: its data is not a readable image]"
        ],
        ["image_omitted", "image_omitted"],
    ),
    "images elsewhere": (
        "generic",
        [user(at("https://example.com/a"), at("http://example.com/b"), at("ftp://c"))],
        [
            "user <image/png https://example.com/a>|<image/png http://example.com/b>|"
            "[image omitted: its data is not a readable image]"
        ],
        ["image_omitted"],
    ),
    "images elsewhere, for anthropic": (
        "anthropic",
        [user(at("https://example.com/a"), at("http://example.com/b"))],
        ["user <image/png https://example.com/a>|[image omitted: its data is not a readable image]"],
        ["image_omitted"],
    ),
    "images in the session's blobs": (
        "generic image_max_base64=8",
        [user(blob(), blob(size=7), blob(sha256=""), blob(kind="image/tiff"))],
        [
            "user <image/png blob>|[image omitted: 7 bytes exceeds the limit]|"
            "[image omitted: its data is not a readable image]|[image omitted: image/tiff is not supported]"
        ],
        ["image_omitted", "image_omitted", "image_omitted"],
    ),
    "a URL has no size": (
        "generic image_max_base64=1",
        [user(at("https://example.com/a"))],
        ["user <image/png https://example.com/a>"],
        [],
    ),
}

REASONING: dict[str, Case] = {
    "a placeholder where reasoning is demanded": (
        "moonshot",
        [user("q"), assistant(A), result("a")],
        ["user q", "assistant ~ ~|a(read {})", "tool a=done"],
        [],
    ),
    "no placeholder without calls": (
        "moonshot",
        [user("q"), assistant("x"), user("r")],
        ["user q", "assistant x", "user r"],
        [],
    ),
    "no placeholder where no thinking is asked for": (
        "moonshot thinking=false",
        [user("q"), assistant(A), result("a")],
        ["user q", "assistant a(read {})", "tool a=done"],
        [],
    ),
    "no placeholder where no reasoning goes back": (
        "moonshot rung=no_reasoning",
        [user("q"), assistant(A), result("a")],
        ["user q", "assistant a(read {})", "tool a=done"],
        [],
    ),
    "no placeholder beside reasoning": (
        "moonshot",
        [user("q"), mine(thought(), A), result("a")],
        ["user q", "assistant ~hm~|a(read {})", "tool a=done"],
        [],
    ),
    "a placeholder of an earlier projection stays": (
        "moonshot",
        [user("q"), assistant(thought(" "), A), result("a")],
        ["user q", "assistant ~ ~|a(read {})", "tool a=done"],
        [],
    ),
    "reasoning on a rung without": (
        "gemini rung=no_reasoning",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "reasoning where none goes back": (
        "generic",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "reasoning of a turn without calls, where only the others go back": (
        "moonshot",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "reasoning alone is no answer": (
        "moonshot",
        [user("q"), mine(thought()), user("r")],
        ["user q", "user r"],
        ["reasoning_dropped", "empty_message_dropped"],
    ),
    "signed thinking at anthropic": (
        "anthropic",
        [user("q"), mine(thought(signature="s"), thought("", redacted="r"), "x"), user("r")],
        ["user q", "assistant ~hm~s|~~r|x", "user r"],
        [],
    ),
    "unsigned thinking at anthropic": (
        "anthropic",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "thinking behind everything": (
        "anthropic",
        [user("q"), mine("x", thought(signature="s")), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "thoughts behind everything at gemini": (
        "gemini",
        [user("q"), mine("x", thought()), user("r")],
        ["user q", "assistant x|~hm~", "user r"],
        [],
    ),
    "thinking that cannot be sent as it was signed": (
        "anthropic",
        [user("q"), mine(thought("a\0", signature="s"), thought(signature="\ud800"), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped", "reasoning_dropped"],
    ),
    "reasoning with broken characters": (
        "gemini",
        [user("q"), mine(thought("a\0", extra={"x": 1}), "x"), user("r")],
        ["user q", 'assistant ~a\ufffd~+{"x": 1}|x', "user r"],
        [],
    ),
    "fields of reasoning on a strict rung": (
        "gemini rung=strict",
        [user("q"), mine(thought(extra={"x": 1}), "x"), user("r")],
        ["user q", "assistant ~hm~|x", "user r"],
        [],
    ),
    "empty reasoning": (
        "gemini",
        [user("q"), mine(thought(""), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "sealed reasoning for who cannot read it": (
        "gemini",
        [user("q"), mine(thought("", redacted="r"), thought("", signature="s"), "x"), user("r")],
        ["user q", "assistant ~~s|x", "user r"],
        ["reasoning_dropped"],
    ),
    "sealed reasoning": (
        "openai-responses",
        [user("q"), mine(thought("", redacted="r"), "x"), user("r")],
        ["user q", "assistant ~~r|x", "user r"],
        [],
    ),
    "unsealed reasoning": (
        "openai-responses",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant x", "user r"],
        ["reasoning_dropped"],
    ),
    "unsealed reasoning that the provider stores": (
        "openai-responses stored=true",
        [user("q"), mine(thought(), "x"), user("r")],
        ["user q", "assistant ~hm~|x", "user r"],
        [],
    ),
    "reasoning of the user": (
        "gemini",
        [user(thought(), "q")],
        ["user q"],
        ["reasoning_dropped"],
    ),
}

BLOCKS: dict[str, Case] = {
    "a document goes to its own protocol": (
        "anthropic",
        [user(opaque("document", data="x"))],
        ['user <{"type": "document", "data": "x"}>'],
        [],
    ),
    "a document for another protocol": (
        "generic",
        [user(opaque("document"))],
        ["user [document omitted: it cannot be sent to this model]"],
        ["block_omitted"],
    ),
    "a document where media were refused": (
        "anthropic media=false",
        [user("see", opaque("document", data="x"))],
        ["user see|[document omitted: it cannot be sent to this model]"],
        ["block_omitted"],
    ),
    "what a server did where media were refused": (
        "anthropic media=false",
        [
            user("q"),
            assistant(
                "x",
                opaque("server_tool_use", id="s1", name="web_search", input={}),
                opaque("web_search_tool_result", tool_use_id="s1", content=[]),
            ),
            user("r"),
        ],
        [
            "user q",
            'assistant x|<{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}>|'
            '<{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}>',
            "user r",
        ],
        [],
    ),
    "a document on a strict rung": (
        "anthropic rung=strict",
        [user(opaque("document"))],
        ["user [document omitted: it cannot be sent to this model]"],
        ["block_omitted"],
    ),
    "a block in the wrong role": (
        "anthropic",
        [user("q"), assistant("x", opaque("document")), user("r")],
        ["user q", "assistant x|[document omitted: it cannot be sent to this model]", "user r"],
        ["block_omitted"],
    ),
    "a block that is no object": (
        "anthropic",
        [user(Opaque(protocol="anthropic-messages", value=7), Opaque(protocol="gemini", value={"x": 1}))],
        [
            "user [block omitted: it cannot be sent to this model]|"
            "[x omitted: it cannot be sent to this model]"
        ],
        ["block_omitted", "block_omitted"],
    ),
    "parts of gemini's": (
        "gemini",
        [user(*(Opaque(protocol="gemini", value=value) for value in GEMINI_PARTS))],
        [
            'user <{"fileData": {"fileUri": "u"}}>|<{"inlineData": {"mimeType": "a/b", "data": "x"}}>|'
            "[x omitted: it cannot be sent to this model]|"
            "[fileData omitted: it cannot be sent to this model]|"
            "[fileData omitted: it cannot be sent to this model]|"
            "[inlineData omitted: it cannot be sent to this model]"
        ],
        ["block_omitted"] * 4,
    ),
    "broken characters in a block": (
        "anthropic",
        [user(opaque("document", data=["\ud800"]))],
        ['user <{"type": "document", "data": ["\\ufffd"]}>'],
        ["surrogate_replaced"],
    ),
    "a server's call and its result": (
        "anthropic",
        [
            user("q"),
            assistant(opaque("server_tool_use", id="s"), opaque("web_search_tool_result", tool_use_id="s")),
            user("r"),
        ],
        [
            "user q",
            'assistant <{"type": "server_tool_use", "id": "s"}>|'
            '<{"type": "web_search_tool_result", "tool_use_id": "s"}>',
            "user r",
        ],
        [],
    ),
    "halves of a server's calls": (
        "anthropic",
        [
            user("q"),
            assistant(opaque("server_tool_use", id="s"), "x", opaque("mcp_tool_result", tool_use_id="t")),
            user("r"),
        ],
        [
            "user q",
            "assistant [server_tool_use omitted: its other half is missing]|x|"
            "[mcp_tool_result omitted: its other half is missing]",
            "user r",
        ],
        ["block_omitted", "block_omitted"],
    ),
}

ORDER: dict[str, Case] = {
    "users in a row": ("generic", [user("q"), user("r")], ["user q", "user r"], []),
    "users in a row where roles alternate": ("mistral", [user("q"), user("r")], ["user q\n\nr"], []),
    "users in a row, of whom one shows an image": (
        "mistral",
        [user("q"), user(png()), user("r")],
        ["user q|<image/png aGk=>|r"],
        [],
    ),
    "users in a row, of whom one is marked": (
        "anthropic",
        [user(Text(text="q", extra=MARK)), user("r")],
        ['user q+{"cache_control": {}}|r'],
        [],
    ),
    "an assistant first": ("generic", [assistant("x"), user("q")], ["assistant x", "user q"], []),
    "an assistant first where the user begins": (
        "anthropic",
        [system("s"), assistant("x"), user("q")],
        ["system s", "user …", "assistant x", "user q"],
        ["user_added"],
    ),
    "an exchange first where the user begins": (
        "gemini",
        [assistant(A), result("a")],
        ["user …", "assistant a(read {})", "user a=done"],
        ["user_added"],
    ),
    "a system message in the middle": (
        "generic",
        [user("q"), system("s"), user("r")],
        ["user q", "system s", "user r"],
        [],
    ),
    "a system message in the middle, for anthropic": (
        "anthropic",
        [system("1"), system("2"), user("q"), assistant("x"), system("s"), user("r")],
        ["system 1", "system 2", "user q", "assistant x", "user s\n\nr"],
        ["system_as_user"],
    ),
    "a system message at the end": ("generic", [user("q"), system("s")], ["user q", "system s"], []),
    "an answer at the end": (
        "generic",
        [user("q"), assistant("x")],
        ["user q", "assistant x", "user …"],
        ["user_added"],
    ),
    "an answer at the end, for anthropic": (
        "anthropic",
        [user("q"), assistant("x")],
        ["user q", "assistant x", "user …"],
        ["user_added"],
    ),
    "an answer at the end, on the flattened rung": (
        "anthropic rung=flattened",
        [user("q"), assistant("x")],
        ["user q", "assistant x", "user …"],
        ["user_added"],
    ),
    "an answer at the end that may be continued": (
        "generic prefill=true",
        [user("q"), assistant("x")],
        ["user q", "assistant x"],
        [],
    ),
    "answers that a blank user kept apart": (
        "generic",
        [user("q"), assistant("x"), user(" "), assistant("y"), user("r")],
        ["user q", "assistant x", "user …", "assistant y", "user r"],
        ["blank_text_dropped", "empty_message_dropped", "user_added"],
    ),
    "answers in a row have a blank line between them": (
        "generic",
        [user("q"), assistant("x"), assistant("y", "z"), user("r")],
        ["user q", "assistant x\n\ny|z", "user r"],
        ["assistants_merged"],
    ),
    "answers in a row, one of them blank": (
        "generic",
        [user("q"), assistant("x", " "), assistant("y"), user("r")],
        ["user q", "assistant x|y", "user r"],
        ["assistants_merged", "blank_text_dropped"],
    ),
    "a digest of everything": (
        "generic rung=digest",
        [system("s"), user("q"), assistant("x", A), result("a", "r"), user("and now?")],
        ["system s", "user #"],
        ["call_flattened", "digested"],
    ),
}

TABLES: dict[str, Case] = {**TEXTS, **CALLS, **MEDIA, **REASONING, **BLOCKS, **ORDER}


def projected(target: str, history: list[Message]) -> tuple[list[str], list[str]]:
    """The request as lines, and the kinds of its anomalies."""
    made_by = Projector(policy_of(target))
    made_by.extend(history)
    done = made_by.projected
    return [line(message, history) for message in done.messages], [one.kind for one in done.anomalies]


def policy_of(target: str) -> Policy:
    name, *settings = target.split()
    given = {
        key: json.loads(value) if value in ("true", "false") or value.isdigit() else value
        for key, value in (setting.split("=") for setting in settings)
    }
    how = {key: given.pop(key) for key in ("rung", "thinking", "stored", "media") if key in given}
    return policy(with_overrides(profile(name), name="me", **given), model="m", **how)


def line(message: Message, history: list[Message]) -> str:
    known = {block.id for one in history for block in one.content if isinstance(block, ToolCall)}
    extra = f" +{json.dumps(message.extra)}" if message.extra else ""
    text = "|".join(shown(block, known) for block in message.content)
    for ours, mark in ((NO_RESULT, "!"), (NOT_RUN, "?"), (CONTINUE, "…")):
        text = text.replace(ours, mark)
    return f"{message.role} {'#' if text.startswith('[This conversation') else text}{extra}"


def shown(block: Block, known: set[str]) -> str:
    extra = f"+{json.dumps(block.extra)}" if block.extra else ""
    signed_by = block.replay.data.get("thought_signature", "") if block.replay else ""
    mark = f"!{signed_by}" if signed_by else ""
    match block:
        case Text():
            text = block.text
        case Reasoning():
            text = f"~{block.text}~{block.signature or ''}{block.redacted or ''}"
        case Image(source=Base64Source(data=data)):
            text = f"<{block.media_type} {data}>"
        case Image(source=UrlSource(url=url)):
            text = f"<{block.media_type} {url}>"
        case Image():
            text = f"<{block.media_type} blob>"
        case ToolCall():
            text = f"{block.id if block.id in known else '*'}({block.name} {block.arguments})"
        case ToolResult():
            parts = "|".join(shown(part, known) for part in block.content)
            text = f"{block.call_id if block.call_id in known else '*'}={parts}"
        case Opaque():
            text = f"<{json.dumps(block.value)}>"
    return f"{text}{extra}{mark}"


@pytest.mark.parametrize("case", TABLES)
def test_a_target_gets_this_request(case: str) -> None:
    target, history, expected, anomalies = TABLES[case]
    assert projected(target, history) == (expected, anomalies)

"""Histories for tests: short constructors for tables, and strategies for any list of messages at all."""

import base64

from hypothesis import strategies as st

from lockstitch.schema.blocks import (
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
from lockstitch.schema.messages import Message


def user(*content: str | Block) -> Message:
    return Message("user", blocks(content))


def system(text: str) -> Message:
    return Message("system", (Text(text=text),))


def assistant(*content: str | Block, provider: str | None = None, model: str | None = None) -> Message:
    return Message("assistant", blocks(content), provider=provider, model=model)


def call(call_id: str, name: str = "read", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> Message:
    return Message("tool", (tool_result(call_id, text, is_error=is_error),))


def tool_result(call_id: str, *content: str | Image, is_error: bool = False) -> ToolResult:
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return ToolResult(call_id=call_id, content=parts, is_error=is_error)


def png(data: str = "aGk=") -> Image:
    return Image(media_type="image/png", source=Base64Source(data=data))


def png_data(width: int, height: int) -> str:
    """Base64 of a PNG's beginning: enough for its type and its size."""
    head = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR"
    return base64.b64encode(head + width.to_bytes(4, "big") + height.to_bytes(4, "big")).decode()


def blocks(content: tuple[str | Block, ...]) -> tuple[Block, ...]:
    return tuple(Text(text=part) if isinstance(part, str) else part for part in content)


NASTY_TEXTS = ["", " \n", "\0", "a\0b", "\ud800", "x\udfffy", "\ud83d", "é", "世界", "a" * 70, "Continue."]
NASTY_IDS = ["", " ", "a", "b", "functions.read:0", "c|fc_1", "x" * 70, "é", "\ud800", "abcdefghi", "a\0"]
NASTY_NAMES = ["read", "write", "", "  ", "bad name", "functions.read", "n" * 70, "\ud800", "é", "\0"]
NASTY_ARGUMENTS = [
    "",
    "{}",
    "null",
    "[]",
    "7",
    '{"a":1}',
    '{ "a" : 1 }',
    '{"a": tru',
    '{"a":NaN}',
    '{"a":"\\ud99c y"}',
    '{"a":"\ud800"}',
    '{"a":"\0"}',
    '{"a":"\\u0000"}',
    "[" * 200,
    '{"a":' * 150 + "1" + "}" * 150,
    '{"a":1,"a":2}',
    '"{}"',
    "{}{}",
    "\ufeff{}",
    '{"a":1e400}',
    '{"a":123456789012345678901234567890}',
    '{"a":-0.0}',
    '{"":{"":[[]]}}',
]

texts = st.one_of(st.sampled_from(NASTY_TEXTS), st.text(max_size=8))
ids = st.sampled_from(NASTY_IDS)
extras = st.sampled_from([None, None, None, {"cache_control": {"type": "ephemeral"}}])
providers = st.sampled_from([None, "generic", "deepseek", "anthropic", "openai-responses", "gemini"])
models = st.sampled_from([None, "m", "other"])
replays = st.one_of(
    st.none(),
    st.builds(
        Replay,
        provider=st.sampled_from(["generic", "openai-responses", "gemini"]),
        model=st.sampled_from(["m", "other"]),
        data=st.sampled_from([{"id": "fc_1"}, {"id": ""}, {"thought_signature": "sig"}, {}]),
    ),
)
images = st.builds(
    Image,
    media_type=st.sampled_from(["image/png", "image/jpeg", "image/tiff", "", "text/plain"]),
    source=st.one_of(
        st.builds(Base64Source, data=st.sampled_from(["aGk=", "", "not base64!", "QUJD" * 20])),
        st.builds(
            UrlSource, url=st.sampled_from(["https://example.com/a.png", "", "data:image/png;base64,aGk="])
        ),
    ),
)
text_blocks = st.builds(Text, text=texts, extra=extras)
reasoning_blocks = st.builds(
    Reasoning,
    text=texts,
    signature=st.sampled_from([None, None, "sig", ""]),
    redacted=st.sampled_from([None, None, "enc", ""]),
    replay=replays,
)
call_blocks = st.builds(
    ToolCall,
    id=ids,
    name=st.sampled_from(NASTY_NAMES),
    arguments=st.sampled_from(NASTY_ARGUMENTS),
    replay=replays,
    extra=st.none(),
)
result_blocks = st.builds(
    ToolResult,
    call_id=ids,
    content=st.lists(st.one_of(text_blocks, images), max_size=2).map(tuple),
    is_error=st.booleans(),
)
opaque_blocks = st.builds(
    Opaque,
    protocol=st.sampled_from(["openai-chat", "anthropic-messages", "openai-responses", "gemini", "nowhere"]),
    value=st.sampled_from(
        [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "refusal", "refusal": "no"},
            {"fileData": {"mimeType": "a/b", "fileUri": "gs://x"}},
            {"type": "item_reference", "id": "x"},
            {},
            "text",
            None,
            7,
        ]
    ),
)
any_block = st.one_of(
    text_blocks,
    call_blocks,
    result_blocks,
    call_blocks,
    result_blocks,
    reasoning_blocks,
    images,
    opaque_blocks,
)
any_message = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool", "system", "assistant", "tool"]),
    content=st.lists(any_block, max_size=4).map(tuple),
    provider=providers,
    model=models,
)
any_messages = st.lists(any_message, max_size=10)
"""Messages of any roles, ids, contents and orders: nothing about them can be relied on."""

plausible_message = st.one_of(
    st.builds(user, st.sampled_from(["q", "next", "go"])),
    st.builds(assistant, st.sampled_from(["ok", "Let me check"])),
    st.builds(
        lambda text, calls: assistant(*text, *calls),
        st.sampled_from([(), ("looking",)]),
        st.lists(st.builds(call, st.sampled_from("abc")), min_size=1, max_size=3),
    ),
    st.builds(result, st.sampled_from("abc"), st.sampled_from(["r1", "r2"])),
)
plausible_messages = st.lists(plausible_message, max_size=14)
"""Messages as agents have them, in any order: many orphans, doubles, gaps and reused ids."""

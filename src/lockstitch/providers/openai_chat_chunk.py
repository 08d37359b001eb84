"""A chunk of openai-chat that looks as it should, as typed structs: what does not fit takes the slow way."""

from typing import Any, Final

import msgspec


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


# Fields of type None are rarely there. If one is, and is not null, the frame does not fit and takes the slow
# way: the decoder tells, so that nothing has to be asked of the frames that fit.


class Entry(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: Function | None = None
    name: None = None
    arguments: None = None
    extra_content: None = None


class Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    thinking: str | None = None
    tool_calls: list[Entry | None] | None = None
    function_call: None = None
    refusal: None = None
    reasoning_details: None = None
    images: None = None
    audio: None = None


class Choice(msgspec.Struct, gc=False):
    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    message: None = None
    text: None = None
    usage: None = None
    error: None = None


class ChatChunk(msgspec.Struct, gc=False):
    choices: list[Choice | None]
    usage: dict[str, Any] | None = None
    error: None = None
    base_resp: None = None
    x_groq: None = None


decode_chunk: Final = msgspec.json.Decoder(ChatChunk).decode

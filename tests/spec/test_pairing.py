"""Which result belongs to which call: histories as agents leave them, and the request they become."""

import json

import pytest
from histories import assistant, call, result, system, tool_result, user

from lockstitch.history.policy import policy
from lockstitch.history.project import CONTINUE, Intent, Projector, project
from lockstitch.history.shape import NO_RESULT
from lockstitch.providers.catalog import profile
from lockstitch.schema.blocks import Reasoning, Text, ToolCall, ToolResult
from lockstitch.schema.messages import Message
from lockstitch.schema.notes import Anomaly

GENERIC = profile("generic")

Case = tuple[list[Message], list[str], list[str]]
"""The history, the request as lines, and the kinds of the anomalies."""

A, B = call("a"), call("b")

PAIRING: dict[str, Case] = {
    "a well-formed exchange is left as it is": (
        [user("q"), assistant("hm", A), result("a"), assistant("done"), user("next")],
        ["user q", "assistant hm a()", "tool a done", "assistant done", "user next"],
        [],
    ),
    "a result further down is moved behind its call": (
        [user("q"), assistant(A), user("u2"), result("a")],
        ["user q", "assistant a()", "tool a done", "user u2"],
        ["result_moved"],
    ),
    "results in another order come in the order of the calls": (
        [user("q"), assistant(A, B), result("b", "rb"), result("a", "ra")],
        ["user q", "assistant a() b()", "tool a ra", "tool b rb"],
        [],
    ),
    "a call without a result in the middle gets one that says so": (
        [user("q"), assistant(A), user("u2")],
        ["user q", "assistant a()", "tool a !", "user u2"],
        ["result_synthesised"],
    ),
    "a call without a result at the end gets one too": (
        [user("q"), assistant(A)],
        ["user q", "assistant a()", "tool a !"],
        ["result_synthesised"],
    ),
    "one of two calls without a result gets one": (
        [user("q"), assistant(A, B), result("b", "rb"), user("u2")],
        ["user q", "assistant a() b()", "tool a !", "tool b rb", "user u2"],
        ["result_synthesised"],
    ),
    "an orphan at the beginning goes": (
        [user("SUMMARY"), result("x"), user("go on")],
        ["user SUMMARY", "user go on"],
        ["orphan_result_dropped"],
    ),
    "an orphan in the middle goes": (
        [user("q"), assistant("a"), result("x"), user("u2")],
        ["user q", "assistant a", "user u2"],
        ["orphan_result_dropped"],
    ),
    "an orphan at the end goes": ([user("q"), result("x")], ["user q"], ["orphan_result_dropped"]),
    "an orphan between two assistants does not keep them apart": (
        [user("q"), assistant("x"), result("o"), assistant("y"), user("u2")],
        ["user q", "assistant x¶y", "user u2"],
        ["orphan_result_dropped", "assistants_merged"],
    ),
    "a result before its call is an orphan": (
        [user("q"), result("a", "early"), assistant(A), user("u2")],
        ["user q", "assistant a()", "tool a !", "user u2"],
        ["orphan_result_dropped", "result_synthesised"],
    ),
    "a result before its call does not stand in the way of the right one": (
        [user("q"), result("a", "early"), assistant(A), result("a", "right")],
        ["user q", "assistant a()", "tool a right"],
        ["orphan_result_dropped"],
    ),
    "a result without an id is an orphan": (
        [user("q"), assistant(A), result(""), result("a")],
        ["user q", "assistant a()", "tool a done"],
        ["orphan_result_dropped"],
    ),
    "a second result of one call goes": (
        [user("q"), assistant(A), result("a", "first"), result("a", "second")],
        ["user q", "assistant a()", "tool a first"],
        ["orphan_result_dropped"],
    ),
    "one id twice in a message: results in order, the second renamed": (
        [user("q"), assistant(A, call("a", arguments='{"n":2}')), result("a", "1"), result("a", "2")],
        ["user q", "assistant a() *({'n': 2})", "tool a 1", "tool * 2"],
        ["call_id_changed"],
    ),
    "one id twice in a message with one result: the first has it": (
        [user("q"), assistant(A, call("a", "write")), result("a", "1")],
        ["user q", "assistant a() *()", "tool a 1", "tool * !"],
        ["call_id_changed", "result_synthesised"],
    ),
    "a call repeated to the letter goes if no result is left for it": (
        [user("q"), assistant(A, call("a")), result("a", "1"), user("u2")],
        ["user q", "assistant a()", "tool a 1", "user u2"],
        ["duplicate_call_dropped"],
    ),
    "a call repeated to the letter stays if it has its result": (
        [user("q"), assistant(A, call("a")), result("a", "1"), result("a", "2")],
        ["user q", "assistant a() *()", "tool a 1", "tool * 2"],
        ["call_id_changed"],
    ),
    "an id reused in a later step belongs to the later call": (
        [user("q"), assistant(A), result("a", "1"), assistant(A), result("a", "2")],
        ["user q", "assistant a()", "tool a 1", "assistant *()", "tool * 2"],
        ["call_id_changed"],
    ),
    "an id reused while the first has no result goes to the latest message": (
        [user("q"), assistant(A), user("u2"), assistant(A), result("a", "2")],
        ["user q", "assistant a()", "tool a !", "user u2", "assistant *()", "tool * 2"],
        ["result_synthesised", "call_id_changed"],
    ),
    "a late result of a reused id then goes to the earlier message": (
        [user("q"), assistant(A), user("u2"), assistant(A), result("a", "2"), result("a", "1")],
        ["user q", "assistant a()", "tool a 1", "user u2", "assistant *()", "tool * 2"],
        ["result_moved", "call_id_changed"],
    ),
    "an empty id is an id like any other, and renamed": (
        [user("q"), assistant(call("")), result("", "r")],
        ["user q", "assistant *()", "tool * r"],
        ["call_id_changed"],
    ),
    "a call without a name goes, with its result": (
        [user("q"), assistant("hm", call("a", ""), B), result("a"), result("b", "rb")],
        ["user q", "assistant hm b()", "tool b rb"],
        ["nameless_call_dropped"],
    ),
    "a message of nothing but a nameless call goes": (
        [user("q"), assistant(call("a", " ")), result("a"), user("u2")],
        ["user q", "user u2"],
        ["nameless_call_dropped", "empty_message_dropped"],
    ),
    "a message of nothing but a nameless call goes, though its result comes late": (
        [user("q"), assistant(call("a", "")), user("u2"), result("a")],
        ["user q", "user u2"],
        ["result_moved", "nameless_call_dropped", "empty_message_dropped"],
    ),
    "neighbouring answers are one if the first has no calls": (
        [user("q"), assistant("Let me check"), assistant(A), user("go")],
        ["user q", "assistant Let me check a()", "tool a !", "user go"],
        ["assistants_merged", "result_synthesised"],
    ),
    "neighbouring answers are one if the results behind both answer the first": (
        [user("q"), assistant(A), assistant("Looking"), result("a"), user("u2")],
        ["user q", "assistant Looking a()", "tool a done", "user u2"],
        ["assistants_merged"],
    ),
    "parallel calls that were stored one by one are one answer": (
        [user("q"), assistant(A), assistant(B), result("a", "ra"), result("b", "rb")],
        ["user q", "assistant a() b()", "tool a ra", "tool b rb"],
        ["assistants_merged"],
    ),
    "parallel calls that were stored one by one, results in another order": (
        [user("q"), assistant(A), assistant(B), result("b", "rb"), result("a", "ra")],
        ["user q", "assistant a() b()", "tool a ra", "tool b rb"],
        ["assistants_merged"],
    ),
    "neighbouring answers stay apart if the results answer the second": (
        [user("q"), assistant(A), assistant(B), result("b", "rb"), user("u2")],
        ["user q", "assistant a()", "tool a !", "assistant b()", "tool b rb", "user u2"],
        ["result_synthesised"],
    ),
    "three answers in a row that one result ties together": (
        [user("q"), assistant(A), assistant("x"), assistant(B), result("a", "ra"), result("b", "rb")],
        ["user q", "assistant x a() b()", "tool a ra", "tool b rb"],
        ["assistants_merged"],
    ),
    "answers with a result between them stay apart": (
        [
            user("q"),
            assistant(A, B),
            result("a", "ra"),
            assistant(call("c")),
            result("b", "rb"),
            result("c", "rc"),
        ],
        ["user q", "assistant a() b()", "tool a ra", "tool b rb", "assistant *()", "tool * rc"],
        ["result_moved"],
    ),
    "neighbours with one id, both answered, are one: the latest was answered first": (
        [user("q"), assistant(A), assistant(A), result("a", "1"), result("a", "2")],
        ["user q", "assistant a() *()", "tool a 2", "tool * 1"],
        ["assistants_merged", "call_id_changed"],
    ),
    "a message between call and result moves behind": (
        [user("q"), assistant(A), system("lint"), result("a")],
        ["user q", "assistant a()", "tool a done", "system lint"],
        ["result_moved"],
    ),
    "results inside of a user message are results": (
        [user("q"), assistant(A), user(tool_result("a", "ra"), "and now?")],
        ["user q", "assistant a()", "tool a ra", "user and now?"],
        [],
    ),
    "results inside of the assistant's own message are results": (
        [user("q"), assistant(A, tool_result("a", "ra")), user("u2")],
        ["user q", "assistant a()", "tool a ra", "user u2"],
        [],
    ),
    "an assistant message of nothing but results is none": (
        [user("q"), assistant(A), assistant(tool_result("a", "ra")), user("u2")],
        ["user q", "assistant a()", "tool a ra", "user u2"],
        [],
    ),
    "calls in a user message become an answer of their own": (
        [user("q", A), result("a")],
        ["user q", "assistant a()", "tool a done"],
        ["calls_moved"],
    ),
    "text of a tool message that answers nothing is said by the user": (
        [user("q"), Message("tool", (Text(text="loose"),))],
        ["user q", "user loose"],
        ["role_changed"],
    ),
    "an assistant without content goes": (
        [user("q"), assistant(), user("u2")],
        ["user q", "user u2"],
        ["empty_message_dropped"],
    ),
    "a user who says nothing goes": (
        [user("q"), assistant("plan"), user("   ")],
        ["user q", "assistant plan", "user …"],
        ["blank_text_dropped", "empty_message_dropped", "user_added"],
    ),
    "an answer at the end is asked to go on": (
        [user("q"), assistant("plan")],
        ["user q", "assistant plan", "user …"],
        ["user_added"],
    ),
    "nothing becomes a question": ([], ["user …"], ["user_added"]),
    "only a system message gets a question": ([system("s")], ["system s", "user …"], ["user_added"]),
    "an empty result says so": (
        [user("q"), assistant(A), result("a", " \n")],
        ["user q", "assistant a()", "tool a (no output)"],
        [],
    ),
}


def lines(messages: tuple[Message, ...], known: set[str]) -> list[str]:
    """One line a message; ids that the history does not have are ``*``, our own texts are marks."""
    out = []
    for message in messages:
        parts = [message.role]
        for block in message.content:
            if isinstance(block, ToolCall):
                arguments = "" if block.arguments == "{}" else str(json.loads(block.arguments))
                parts.append(f"{block.id if block.id in known else '*'}({arguments})")
            elif isinstance(block, ToolResult):
                parts.append(block.call_id if block.call_id in known else "*")
                parts += [part.text for part in block.content if isinstance(part, Text)]
            elif isinstance(block, Text):
                parts.append(block.text)
        line = " ".join(parts).replace(NO_RESULT, "!").replace(CONTINUE, "…").replace("\n\n", "¶")
        out.append(line)
    return out


@pytest.mark.parametrize("case", PAIRING)
def test_a_history_becomes_this_request(case: str) -> None:
    history, expected, anomalies = PAIRING[case]
    known = {"a", "b"}
    projected = project(history, GENERIC, model="m")
    assert lines(tuple(map(calls_last, projected.messages)), known) == expected
    assert [anomaly.kind for anomaly in projected.anomalies] == anomalies


def calls_last(message: Message) -> Message:
    ordered = sorted(message.content, key=lambda block: isinstance(block, ToolCall))
    return Message(message.role, tuple(ordered))


@pytest.mark.parametrize("case", PAIRING)
def test_a_fragment_to_be_counted_is_left_alone(case: str) -> None:
    history = PAIRING[case][0]
    assert project(history, GENERIC, model="m", intent=Intent.SIZING) == (tuple(history), ())


@pytest.mark.parametrize("case", PAIRING)
def test_a_summary_is_as_strict_as_a_request(case: str) -> None:
    history = PAIRING[case][0]
    summary = project(history, GENERIC, model="m", intent=Intent.SUMMARY)
    assert summary == project(history, GENERIC, model="m", intent=Intent.REQUEST)


# --- histories of a log: results have addresses, and requests have been sent


def asked(message: Message, seq: int, requests: int) -> Message:
    return Message(message.role, message.content, seq=seq, requests=requests, provider="generic", model="m")


def answer(call_id: str, text: str, seq: int, position: int, *, requests: int) -> Message:
    return Message(
        "tool", (tool_result(call_id, text),), seq=100 + seq, answers=(seq, position), requests=requests
    )


LOGS: dict[str, Case] = {
    "an address wins over the id": (
        [
            asked(assistant(A, call("a", "write")), 1, 1),
            answer("a", "second", 1, 1, requests=1),
            answer("a", "first", 1, 0, requests=1),
        ],
        ["assistant a() *()", "tool a first", "tool * second"],
        ["call_id_changed"],
    ),
    "an address counts calls without a name": (
        [
            asked(assistant(call("x", ""), B), 1, 1),
            answer("b", "rb", 1, 1, requests=1),
            answer("x", "rx", 1, 0, requests=1),
        ],
        ["assistant b()", "tool b rb"],
        ["nameless_call_dropped"],
    ),
    "an address that is not in the history is an orphan, whatever the id": (
        [asked(assistant(A), 5, 1), answer("a", "of another message", 1, 0, requests=1)],
        ["assistant a()", "tool a !"],
        ["orphan_result_dropped", "result_synthesised"],
    ),
    "a position that the message does not have is an orphan": (
        [asked(assistant(A), 1, 1), answer("a", "r", 1, 3, requests=1)],
        ["assistant a()", "tool a !"],
        ["orphan_result_dropped", "result_synthesised"],
    ),
    "a second answer to one address goes": (
        [asked(assistant(A), 1, 1), answer("a", "1", 1, 0, requests=1), answer("a", "2", 1, 0, requests=1)],
        ["assistant a()", "tool a 1"],
        ["surplus_result_dropped"],
    ),
    "a result that a request has gone without is told where it came": (
        [
            asked(assistant(A), 1, 1),
            asked(user("u"), 2, 1),
            asked(assistant("so?"), 3, 2),
            answer("a", "late", 1, 0, requests=2),
        ],
        [
            "assistant a()",
            "tool a !",
            "user u",
            "assistant so?",
            "user [A result of the earlier call of read arrived only now:] late",
        ],
        ["late_result_moved", "result_synthesised"],
    ),
    "a result that came before the next request is moved to its call": (
        [asked(assistant(A), 1, 1), asked(user("u"), 2, 1), answer("a", "r", 1, 0, requests=1)],
        ["assistant a()", "tool a r", "user u"],
        ["result_moved"],
    ),
    "answers with a request between them stay apart": (
        [asked(user("q"), 1, 0), asked(assistant("part"), 2, 1), asked(assistant("rest"), 3, 2)],
        ["user q", "assistant part", "user …", "assistant rest", "user …"],
        ["user_added", "user_added"],
    ),
    "a result by id passes over what an address has answered": (
        [
            asked(assistant(A, call("a", "write")), 1, 1),
            answer("a", "first", 1, 0, requests=1),
            result("a", "second"),
        ],
        ["assistant a() *()", "tool a first", "tool * second"],
        ["call_id_changed"],
    ),
    "joined answers keep their addresses": (
        [
            asked(assistant(A), 1, 1),
            asked(assistant(B), 2, 1),
            answer("a", "ra", 1, 0, requests=1),
            answer("b", "rb", 2, 0, requests=1),
        ],
        ["assistant a() b()", "tool a ra", "tool b rb"],
        ["assistants_merged"],
    ),
}


def test_a_resumed_pairing_is_that_of_the_whole() -> None:
    for history, _, _ in (*PAIRING.values(), *LOGS.values()):
        for target in (GENERIC, profile("anthropic")):
            projector = Projector(policy(target, model="m"))
            for count, message in enumerate(history, 1):
                projector.extend([message])
                assert projector.projected == project(history[:count], target, model="m")


def test_anomalies_name_place_ids_and_content() -> None:
    history = [
        user("q"),
        assistant("hm", call("a", "", '{"p":1}'), call("b"), call("b"), call("c", "")),
        result("a", "lost"),
        result("x"),
        user("so?"),
        result("b"),
        user(Reasoning(text="secret"), "r"),
    ]
    assert project(history, GENERIC, model="m").anomalies == (
        Anomaly("orphan_result_dropped", "messages[3]", ("x",), "no call is left without a result"),
        Anomaly("reasoning_dropped", "messages[6]", (), "reasoning in a user message"),
        Anomaly("result_moved", "messages[1]", ("b",), "put directly behind its call"),
        Anomaly("nameless_call_dropped", "messages[1]", ("a",), "arguments '{\"p\":1}', result 'lost'"),
        Anomaly("duplicate_call_dropped", "messages[1]", ("b",), "read was called like this"),
        Anomaly("nameless_call_dropped", "messages[1]", ("c",), "arguments '{}'"),
    )


@pytest.mark.parametrize("case", LOGS)
def test_a_log_becomes_this_request(case: str) -> None:
    history, expected, anomalies = LOGS[case]
    projected = project(history, GENERIC, model="m")
    assert lines(projected.messages, {"a", "b"}) == expected
    assert [anomaly.kind for anomaly in projected.anomalies] == anomalies

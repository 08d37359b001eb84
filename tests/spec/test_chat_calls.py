"""Identity of tool calls in openai-chat streams: each row one thing a gateway does to it.

A row is the events, what the answer's calls are, and the notes that tell of it. Every row ends with the
finish chunk and the sentinel, so a row whose calls are a string is refused with that code.
"""

from typing import Any

import pytest
from chat_streams import body, call, calls_of, delta, end, ending_of, entry, notes_of, text_of

from lockstitch.history.decode import decode

TOOLS = ("read", "read_file", "get_weather", "ls")
CONFLICT = {"identity_conflict": 1}
MINTED = {"call_id_minted": 1}
Row = tuple[list[Any], list[tuple[str, ...]] | str, dict[str, int]]


def many(*entries: Any) -> dict[str, Any]:
    """One chunk with several entries."""
    return delta(tool_calls=list(entries))


WHO: dict[str, Row] = {
    "a late id is taken, after name and arguments": (
        [call(0, ..., "ls", "{"), call(0, ..., ..., "}"), call(0, "c1", ..., "")],
        [("c1", "ls", "{}")],
        {},
    ),
    "a late name is taken, after id and arguments": (
        [call(0, "c1", ..., "{"), call(0, ..., ..., "}"), call(0, ..., "ls", "")],
        [("c1", "ls", "{}")],
        {},
    ),
    "a number is no id, and the string after it is": (
        [call(0, 17, "ls", "{}"), call(0, "c1", ..., "")],
        [("c1", "ls", "{}")],
        {},
    ),
    "an object is no name": ([call(0, "c1", {"name": "ls"}, "{}")], "MALFORMED_TOOL_CALL", {}),
    "a boolean is no name": ([call(0, "c1", True, "{}")], "MALFORMED_TOOL_CALL", {}),
    "white space is no name": ([call(0, "c1", " \n", "{}")], "MALFORMED_TOOL_CALL", {}),
    "white space is no id": ([call(0, "  ", "ls", "{}")], [("call_1", "ls", "{}")], MINTED),
    "every level may be null": (
        [
            {"choices": None},
            {"choices": [{"index": None, "delta": None, "finish_reason": None}]},
            delta(tool_calls=None),
            many(None, {"index": 0, "id": "c1", "function": None}),
            many({"index": 0, "id": None, "type": None, "function": {"name": "ls", "arguments": None}}),
        ],
        [("c1", "ls", "")],
        {},
    ),
    "an entry that says nothing is no call": (
        [
            many({"index": 0}, {"index": 1, "type": "function"}, {}, entry(2, None, "", None)),
            call(3, "c1", "ls"),
        ],
        [("c1", "ls", "")],
        {},
    ),
    "an id alone is a call, and is refused without a name": ([call(0, "c1")], "MALFORMED_TOOL_CALL", {}),
    "arguments alone are a call, and are refused without a name": (
        [call(0, ..., ..., "{}")],
        "MALFORMED_TOOL_CALL",
        {},
    ),
    "one nameless call refuses the good one beside it": (
        [call(0, "c1", "ls", "{}"), call(1, "c2", ..., "{}")],
        "MALFORMED_TOOL_CALL",
        {},
    ),
    "another name after arguments is a conflict, and the first stays": (
        [call(0, "c1", "ls", "{"), call(0, "c1", "read", "}")],
        [("c1", "ls", "{}")],
        CONFLICT,
    ),
    "another id is noise while the name is the same and the arguments go on": (
        [call(0, "c1", "ls", "{"), call(0, "c2", "ls", "}"), call(0, "c3", ..., "")],
        [("c1", "ls", "{}")],
        {"identity_conflict": 2},
    ),
    "a fresh id for every delta is noise without a name": (
        [call(0, "a", "ls", ""), call(0, "b", ..., "{"), call(0, "c", ..., "}")],
        [("a", "ls", "{}")],
        {"identity_conflict": 2},
    ),
    "another id before the name came is noise too": (
        [call(0, "a", "", ""), call(0, "b", "ls", "{}")],
        [("a", "ls", "{}")],
        CONFLICT,
    ),
    "the function may be flattened into the entry": (
        [many({"index": 0, "id": "c1", "name": "ls", "arguments": "{}"})],
        [("c1", "ls", "{}")],
        {},
    ),
    "a lone object in place of the list": (
        [delta(tool_calls=entry(0, "c1", "ls", "{}"))],
        [("c1", "ls", "{}")],
        {},
    ),
    "the legacy function_call streams like a call without an id": (
        [
            delta(function_call={"name": "ls", "arguments": ""}),
            delta(function_call={"arguments": '{"p":'}),
            delta(function_call={"arguments": "1}", "name": None}),
        ],
        [("call_1", "ls", '{"p":1}')],
        MINTED,
    ),
    "several choices form one message": (
        [
            {"choices": [{"index": 0, "delta": {"content": "ok"}}]},
            {"choices": [{"index": 1, "delta": {"tool_calls": [entry(0, "c1", "ls", "{")]}}]},
            {"choices": [{"index": 2, "delta": {"tool_calls": [entry(0, "c2", "read", "{}")]}}]},
            {"choices": [{"index": 1, "delta": {"tool_calls": [entry(0, ..., ..., "}")]}}]},
        ],
        [("c1", "ls", "{}"), ("c2", "read", "{}")],
        {},
    ),
    "a minted id avoids those of the response": (
        [call(0, "call_1", "ls", "{}"), call(1, ..., "ls", "{}"), call(2, ..., "read", "{}")],
        [("call_1", "ls", "{}"), ("call_2", "ls", "{}"), ("call_3", "read", "{}")],
        {"call_id_minted": 2},
    ),
    "a minted id avoids one that was only noise": (
        [call(0, "x", "ls", "{}"), call(0, "call_1", ..., ""), call(1, ..., "ls", "{}")],
        [("x", "ls", "{}"), ("call_2", "ls", "{}")],
        {**CONFLICT, **MINTED},
    ),
}

NAMES: dict[str, Row] = {
    "a name in fragments is joined to an offered tool": (
        [call(0, "c1", "get_", ""), call(0, "c1", "wea", ""), call(0, ..., "ther", "{}")],
        [("c1", "get_weather", "{}")],
        {},
    ),
    "a fragment that leads to no offered tool is a conflict": (
        [call(0, "c1", "get_", ""), call(0, ..., "time", "{}")],
        [("c1", "get_", "{}")],
        CONFLICT,
    ),
    "a fragment under a new id begins another call": (
        [call(0, "c1", "get_", ""), call(0, "c2", "weather", "{}")],
        [("c1", "get_", ""), ("c2", "weather", "{}")],
        {},
    ),
    "a fragment after arguments started is a conflict": (
        [call(0, "c1", "get_", "{"), call(0, ..., "weather", "}")],
        [("c1", "get_", "{}")],
        CONFLICT,
    ),
    "a cumulative name grows": (
        [call(0, "c1", "get", ""), call(0, ..., "get_wea", ""), call(0, ..., "get_weather", "{}")],
        [("c1", "get_weather", "{}")],
        {},
    ),
    "an offered name may still grow into a longer offered one": (
        [call(0, "c1", "read", ""), call(0, "c1", "read_file", "{}")],
        [("c1", "read_file", "{}")],
        {},
    ),
    "an offered name does not grow into one that is not offered": (
        [call(0, "c1", "ls", ""), call(0, "c1", "lsof", "{}")],
        [("c1", "ls", "{}")],
        CONFLICT,
    ),
    "a repeated name is no fragment": (
        [call(0, "c1", "ls", "")] * 3 + [call(0, "c1", "ls", "{}")],
        [("c1", "ls", "{}")],
        {},
    ),
    "null between fragments changes nothing": (
        [call(0, "c1", "get_", None), call(0, None, None, None), call(0, None, "weather", None)],
        [("c1", "get_weather", "")],
        {},
    ),
}

SLOTS: dict[str, Row] = {
    "two calls share a slot, each with an id and whole arguments": (
        [call(0, "a", "ls", '{"p":1}'), call(0, "b", "ls", '{"p":2}')],
        [("a", "ls", '{"p":1}'), ("b", "ls", '{"p":2}')],
        {},
    ),
    "two calls of other names share a slot before the first one's arguments came": (
        [call(0, "a", "ls", ""), call(0, "b", "read", "{}")],
        [("a", "ls", ""), ("b", "read", "{}")],
        {},
    ),
    "calls that share a slot and interleave are told apart by id": (
        [
            call(0, "a", "ls", '{"p":'),
            call(0, "b", "read", '{"q":'),
            call(0, "a", ..., "1}"),
            call(0, "b", ..., "2}"),
        ],
        [("a", "ls", '{"p":1}'), ("b", "read", '{"q":2}')],
        {},
    ),
    "in a shared slot what only has arguments belongs to the call named last": (
        [
            call(0, "a", "ls", '{"p":'),
            call(0, "b", "read", '{"q":'),
            call(0, "a", ..., "1"),
            call(0, ..., ..., "}"),
            call(0, "b", ..., ""),
            call(0, ..., ..., "2}"),
        ],
        [("a", "ls", '{"p":1}'), ("b", "read", '{"q":2}')],
        {},
    ),
    "without ids a name behind whole arguments begins another call": (
        [call(0, ..., "ls", '{"p":'), call(0, ..., ..., "1}"), call(0, ..., "ls", ' {"p":2}')],
        [("call_1", "ls", '{"p":1}'), ("call_2", "ls", ' {"p":2}')],
        {"call_id_minted": 2},
    ),
    "without ids a name behind unfinished arguments is a repeat": (
        [call(0, ..., "ls", '{"p":"}'), call(0, ..., "ls", '{"}')],
        [("call_1", "ls", '{"p":"}{"}')],
        MINTED,
    ),
    "without ids a name without arguments does not begin another call": (
        [call(0, ..., "ls", "{}"), call(0, ..., "ls", "")],
        [("call_1", "ls", "{}")],
        MINTED,
    ),
    "an id that comes behind whole arguments is late, not new": (
        [call(0, ..., "ls", "{}"), call(0, "c1", "ls", "")],
        [("c1", "ls", "{}")],
        {},
    ),
    "whole arguments behind whole arguments are another call, though only the second has an id": (
        [call(0, ..., "ls", "{}"), call(0, "c1", "read", "{}")],
        [("call_1", "ls", "{}"), ("c1", "read", "{}")],
        MINTED,
    ),
    "braces in strings end no object": (
        [call(0, "a", "ls", '{"c":"}'), call(0, "b", "ls", '\\"}"'), call(0, ..., ..., "}")],
        [("a", "ls", '{"c":"}\\"}"}')],
        CONFLICT,
    ),
    "the same call sent whole twice under one id is glued and not run": (
        [call(0, "a", "ls", "{}"), call(0, "a", "ls", "{}")],
        [("a", "ls", "{}{}", "not_json")],
        {"invalid_arguments": 1},
    ),
    "cumulative arguments are not guessed at": (
        [call(0, "a", "ls", '{"p"'), call(0, "a", "ls", '{"p":1}')],
        [("a", "ls", '{"p"{"p":1}', "not_json")],
        {"invalid_arguments": 1},
    ),
    "two calls with one id in two slots stay two": (
        [call(0, "a", "ls", '{"p":1}'), call(1, "a", "ls", '{"p":2}')],
        [("a", "ls", '{"p":1}'), ("a", "ls", '{"p":2}')],
        {"duplicate_call_id": 1},
    ),
    "a number that changes inside a call is noise under its id": (
        [call(0, "a", "ls", '{"p":'), call(1, "a", ..., "1"), call(1, ..., ..., "}")],
        [("a", "ls", '{"p":1}')],
        {},
    ),
}

INDICES: dict[str, Row] = {
    "no index: a name and an unseen id begin a call even before the first is whole": (
        [call(..., "a", "ls", "{"), call(..., "b", "ls", "{}"), call(..., "a", ..., "}")],
        [("a", "ls", "{}"), ("b", "ls", "{}")],
        {},
    ),
    "no index: what only has arguments belongs to the call touched last": (
        [
            call(..., "a", "ls", ""),
            call(..., "b", "read", ""),
            call(..., "a", ..., "{"),
            call(..., ..., ..., "}"),
        ],
        [("a", "ls", "{}"), ("b", "read", "")],
        {},
    ),
    "no index: an unseen id without a name is noise": (
        [call(..., "a", "ls", "{"), call(..., "b", ..., "}")],
        [("a", "ls", "{}")],
        CONFLICT,
    ),
    "no index, no ids: whole objects are calls of their own": (
        [many(entry(..., ..., "ls", "{}"), entry(..., ..., "ls", "{}"))],
        [("call_1", "ls", "{}"), ("call_2", "ls", "{}")],
        {"call_id_minted": 2},
    ),
    "no index, no ids, no arguments: entries of one list are calls of their own": (
        [many(entry(..., ..., "ls", ""), entry(..., ..., "read", ""))],
        [("call_1", "ls", ""), ("call_2", "read", "")],
        {"call_id_minted": 2},
    ),
    "null is no index": (
        [call(None, "a", "ls", "{"), call(None, ..., ..., "}")],
        [("a", "ls", "{}")],
        {},
    ),
    "an index in a string is the number": (
        [call("0", "a", "ls", "{"), call("1", "b", "read", "{}"), call(0, ..., ..., "}")],
        [("a", "ls", "{}"), ("b", "read", "{}")],
        {},
    ),
    "a float is the number, a boolean is none": (
        [call(1.0, "a", "ls", "{"), call(1, ..., ..., "}"), call(True, "b", "read", "{}")],
        [("a", "ls", "{}"), ("b", "read", "{}")],
        {},
    ),
    "negative and huge indices are keys like others": (
        [
            call(-1, "a", "ls", "{"),
            call(10**30, "b", "read", "{"),
            call(-1, ..., ..., "}"),
            call(10**30, ..., ..., "}"),
        ],
        [("a", "ls", "{}"), ("b", "read", "{}")],
        {},
    ),
    "the order is that of opening, not of the numbers": (
        [call(7, "a", "ls", "{}"), call(2, "b", "read", "{}")],
        [("a", "ls", "{}"), ("b", "read", "{}")],
        {},
    ),
    "an index that comes only after a call began without one continues it": (
        [call(..., "a", "ls", ""), call(0, ..., ..., "{"), call(0, ..., ..., "}")],
        [("a", "ls", "{}")],
        {},
    ),
    "an index that goes missing inside a call continues it": (
        [call(0, "a", "ls", "{"), call(..., ..., ..., "}")],
        [("a", "ls", "{}")],
        {},
    ),
}

ARGUMENTS: dict[str, Row] = {
    "an object is encoded": ([call(0, "a", "ls", {"p": [1, "é"]})], [("a", "ls", '{"p":[1,"é"]}')], {}),
    "null at parse time is no arguments": ([call(0, "a", "ls", "null")], [("a", "ls", "null")], {}),
    "white space is no arguments": ([call(0, "a", "ls", " \n")], [("a", "ls", " \n")], {}),
    "a list is not an object": (
        [call(0, "a", "ls", [1])],
        [("a", "ls", "[1]", "not_an_object")],
        {"invalid_arguments": 1},
    ),
    "a number is not an object": (
        [call(0, "a", "ls", 5)],
        [("a", "ls", "5", "not_an_object")],
        {"invalid_arguments": 1},
    ),
    "a JSON string is not an object": (
        [call(0, "a", "ls", '"{}"')],
        [("a", "ls", '"{}"', "not_an_object")],
        {"invalid_arguments": 1},
    ),
    "cut arguments are kept and not run": (
        [call(0, "a", "ls", '{"p":"half')],
        [("a", "ls", '{"p":"half', "not_json")],
        {"invalid_arguments": 1},
    ),
    "NaN is not JSON": (
        [call(0, "a", "ls", '{"p":NaN}')],
        [("a", "ls", '{"p":NaN}', "not_json")],
        {"invalid_arguments": 1},
    ),
    "nesting of a hundred is the limit": (
        [call(0, "a", "ls", '{"p":' + "[" * 99 + "]" * 99 + "}")],
        [("a", "ls", '{"p":' + "[" * 99 + "]" * 99 + "}")],
        {},
    ),
    "nesting of a hundred and one is invalid": (
        [call(0, "a", "ls", '{"p":' + "[" * 100 + "]" * 100 + "}")],
        [("a", "ls", '{"p":' + "[" * 100 + "]" * 100 + "}", "not_json")],
        {"invalid_arguments": 1},
    ),
    "brackets in a string do not nest": (
        [call(0, "a", "ls", '{"p":"' + "[" * 300 + '"}')],
        [("a", "ls", '{"p":"' + "[" * 300 + '"}')],
        {},
    ),
    "each call is judged by itself": (
        [call(0, "a", "ls", "{"), call(1, "b", "read", "{}")],
        [("a", "ls", "{", "not_json"), ("b", "read", "{}")],
        {"invalid_arguments": 1},
    ),
}


@pytest.mark.parametrize(
    "row",
    [*WHO.items(), *NAMES.items(), *SLOTS.items(), *INDICES.items(), *ARGUMENTS.items()],
    ids=lambda row: row[0],
)
def test_calls(row: tuple[str, Row]) -> None:
    events, calls, notes = row[1]
    decoded = decode(body([*events, *end("tool_calls")]), "openai-chat", tools=TOOLS)
    if isinstance(calls, str):
        assert (ending_of(decoded), calls_of(decoded)) == (calls, [])
    else:
        assert (ending_of(decoded), calls_of(decoded)) == ("tool_calls", calls)
    assert notes_of(decoded) == notes


LENGTH: dict[str, tuple[list[Any], list[tuple[str, ...]]]] = {
    "the last call is truncated even if its arguments parse": (
        [call(0, "a", "ls", "{}"), call(1, "b", "ls", "{}")],
        [("a", "ls", "{}"), ("b", "ls", "{}", "truncated")],
    ),
    "a call that text follows is complete": (
        [call(0, "a", "ls", "{}"), delta("and now")],
        [("a", "ls", "{}")],
    ),
    "a call that reasoning follows is complete": (
        [call(0, "a", "ls", "{}"), delta(reasoning_content="and now")],
        [("a", "ls", "{}")],
    ),
    "a line end behind a call is nothing that follows": (
        [call(0, "a", "ls", "{}"), delta("\n")],
        [("a", "ls", "{}", "truncated")],
    ),
    "cut arguments of an earlier call are truncated too": (
        [call(0, "a", "ls", '{"p":'), call(1, "b", "ls", "{}")],
        [("a", "ls", '{"p":', "truncated"), ("b", "ls", "{}", "truncated")],
    ),
    "whole arguments that are no object stay what they are": (
        [call(0, "a", "ls", "[]"), call(1, "b", "ls", "{}")],
        [("a", "ls", "[]", "not_an_object"), ("b", "ls", "{}", "truncated")],
    ),
}


@pytest.mark.parametrize("row", LENGTH.items(), ids=lambda row: row[0])
def test_calls_under_length(row: tuple[str, tuple[list[Any], list[tuple[str, ...]]]]) -> None:
    events, calls = row[1]
    decoded = decode(body([*events, *end("length")]), "openai-chat", tools=TOOLS)
    assert (ending_of(decoded), calls_of(decoded)) == ("length", calls)


MESSAGES: dict[str, tuple[list[Any], str, list[tuple[str, ...]]]] = {
    "a whole message counts if no delta came": (
        [{"choices": [{"message": {"content": "ok", "tool_calls": [entry(..., "a", "ls", "{}")]}}]}],
        "ok",
        [("a", "ls", "{}")],
    ),
    "a whole message repeats what the deltas said": (
        [
            delta("ok"),
            call(0, "a", "ls", "{}"),
            {
                "choices": [
                    {"delta": {}, "message": {"content": "ok", "tool_calls": [entry(0, "a", "ls", "{}")]}}
                ]
            },
        ],
        "ok",
        [("a", "ls", "{}")],
    ),
    "of several whole messages the last counts": (
        [{"choices": [{"message": {"content": text}}]} for text in ("o", "ok")],
        "ok",
        [],
    ),
    "entries of a message are calls of their own, whatever they lack": (
        [
            {
                "choices": [
                    {
                        "message": {
                            "content": None,
                            "tool_calls": [entry(..., ..., "ls", ""), entry(..., ..., "ls", "")],
                        }
                    }
                ]
            }
        ],
        "",
        [("call_1", "ls", ""), ("call_2", "ls", "")],
    ),
    "the text of the older completions API is content": (
        [{"choices": [{"text": "o"}]}, {"choices": [{"text": "k"}]}],
        "ok",
        [],
    ),
}


@pytest.mark.parametrize("row", MESSAGES.items(), ids=lambda row: row[0])
def test_whole_messages(row: tuple[str, tuple[list[Any], str, list[tuple[str, ...]]]]) -> None:
    events, text, calls = row[1]
    decoded = decode(body([*events, *end("stop")]), "openai-chat", tools=TOOLS)
    assert (text_of(decoded), calls_of(decoded)) == (text, calls)
    assert decoded.finish.reason == ("tool_calls" if calls else "stop")

"""Numbers that JSON or a double cannot hold, and texts of too many values, wherever they come in."""

import json
import math
from typing import Any

import pytest
from click.testing import CliRunner

from lockstitch.cli.wire_lint import lint
from lockstitch.history.clean import clean_arguments
from lockstitch.history.decode import Decoder, decode
from lockstitch.providers import frames
from lockstitch.providers.note_book import NoteBook
from lockstitch.schema.blocks import Opaque, Text
from lockstitch.schema.errors import CallerError
from lockstitch.schema.events import Event, NoteEvent, Title
from lockstitch.schema.notes import Note
from lockstitch.tools.functions import tool
from lockstitch.tools.output import plain_meta, to_output
from lockstitch.wire import jsonl, strict_json
from lockstitch.wire.strict_json import VALUES_MAX, InvalidJson

UNKEPT = {
    "beyond a double": "1e999",
    "beyond a double, negative": "-1e400",
    "just beyond a double": "1.7976931348623159e308",
    "more digits than Python reads": "1" * 5000,
}
KEPT: dict[str, tuple[str, Any]] = {
    "the largest double": ("1.7976931348623157e308", 1.7976931348623157e308),
    "minus zero": ("-0.0", -0.0),
    "below the smallest double": ("1e-400", 0.0),
    "a large integer": ("1" + "0" * 400, 10**400),
    "the sum of 0.1 and 0.2": ("0.30000000000000004", 0.1 + 0.2),
    "an integer beyond a double": ("9007199254740993", 2**53 + 1),
}


@pytest.mark.parametrize("name", UNKEPT)
def test_a_text_with_such_a_number_is_no_json(name: str) -> None:
    for text in (f'{{"a":{UNKEPT[name]}}}', f'{{"a":{UNKEPT[name]},"b":"\\ud800"}}'):
        with pytest.raises(InvalidJson, match="is no number that JSON and a double can hold"):
            strict_json.parse(text)
        assert not strict_json.is_object(text)
        assert clean_arguments(text) == ("{}", ("arguments_replaced",))


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("beside", ["", ',"b":"\\ud800"'], ids=["alone", "beside a lone surrogate"])
def test_a_number_that_can_be_kept_is(name: str, beside: str) -> None:
    text, value = KEPT[name]
    found = strict_json.parse(f'{{"a":{text}{beside}}}')["a"]
    assert (type(found), str(found)) == (type(value), str(value))
    assert strict_json.parse(strict_json.encoded({"a": found})) == {"a": value}


@pytest.mark.parametrize("name", UNKEPT)
def test_in_a_frame_it_is_the_text_of_its_digits_and_noted(name: str) -> None:
    notebook = NoteBook()
    digits = UNKEPT[name]
    assert frames.parse(f'{{"a":[{digits},{digits}]}}'.encode(), notebook) == {"a": [digits, digits]}
    shown = digits if len(digits) <= 40 else digits[:40] + "..."
    assert notebook.notes() == [Note("number_not_kept", shown, 2)]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_python_writes_for_no_number_is_null_in_a_frame_and_noted(word: str) -> None:
    notebook = NoteBook()
    assert frames.parse(f'{{"a":{word}}}'.encode(), notebook) == {"a": None}
    assert notebook.notes() == [Note("number_not_kept", word, 1)]


def stream(dialect: str, value: str) -> bytes:
    """A whole answer of the protocol that holds an object of an unknown type, which is kept as it came."""
    match dialect:
        case "openai-responses":
            item = f'{{"type":"response.output_item.done","output_index":0,"item":{value}}}'
            said = [item, '{"type":"response.completed","response":{"status":"completed","output":[]}}']
        case "anthropic-messages":
            said = [
                '{"type":"message_start","message":{"role":"assistant"}}',
                f'{{"type":"content_block_start","index":0,"content_block":{value}}}',
                '{"type":"content_block_stop","index":0}',
                '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
                '{"type":"message_stop"}',
            ]
        case _:
            said = [f'{{"candidates":[{{"content":{{"parts":[{value}]}},"finishReason":"STOP"}}]}}']
    return "".join(f"data: {one}\n\n" for one in said).encode()


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic-messages", "gemini"])
def test_what_is_kept_of_a_provider_says_what_was_received(dialect: str) -> None:
    decoded = decode(stream(dialect, '{"type":"new","new":{"n":1e999,"m":-0.0}}'), dialect)
    value = {"type": "new", "new": {"n": "1e999", "m": -0.0}}
    assert decoded.content == (Opaque(protocol=dialect, value=value),)
    assert [note for note in decoded.notes if note.kind != "unknown_block"] == [
        Note("number_not_kept", "1e999")
    ]
    (line, *_) = jsonl.encode(0, 0, NoteEvent("x", {"kept": value})).splitlines()
    assert jsonl.decode(line) == Event(0, 0, NoteEvent("x", {"kept": value}), needed=False)


@pytest.mark.parametrize("number", ["1e999", "NaN", "1" * 5000], ids=["1e999", "NaN", "5,000 digits"])
@pytest.mark.parametrize("fix", [(), ("--fix",)], ids=["to look", "to mend"])
def test_wire_lint_refuses_a_file_with_such_a_number(number: str, fix: tuple[str, ...]) -> None:
    arguments = ["--dialect", "openai-chat", *fix, "-"]
    with pytest.raises(CallerError, match="is no number that JSON and a double can hold"):
        CliRunner().invoke(lint, arguments, input=f'{{"temperature":{number}}}', catch_exceptions=False)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages", "gemini", "openai-responses"])
def test_wire_lint_does_not_make_null_of_arguments(dialect: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n":1e999}'}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "y"},
    ]
    arguments = ["--dialect", dialect, "--from", "openai-chat", "--fix", "-"]
    request = json.dumps({"model": "m", "messages": messages})
    said = json.loads(CliRunner().invoke(lint, arguments, input=request, catch_exceptions=False).stdout)
    assert "arguments_replaced" in [anomaly["kind"] for anomaly in said["anomalies"]]
    assert '"n"' not in json.dumps(said["request"])


RETURNED: dict[str, tuple[Any, str]] = {
    "infinity": (math.inf, '"Infinity"'),
    "in an object beside null": ({"a": [None, -math.inf]}, '{"a":[null,"-Infinity"]}'),
    "beside a lone surrogate": ([math.nan, "\ud800"], '["NaN","\ufffd"]'),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_a_tool_returns_is_not_made_null(name: str) -> None:
    value, text = RETURNED[name]
    assert to_output(value).content == (Text(text),)
    assert plain_meta({"v": value}, {}) == {"v": json.loads(text)}


def test_a_default_that_json_cannot_hold_is_not_told() -> None:
    @tool
    def probe(limit: float = math.inf, other: float | None = None) -> None:
        return None

    assert probe.spec.parameters["properties"] == {
        "limit": {"type": "number"},
        "other": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    }


def test_a_record_is_not_written_with_null_for_infinity() -> None:
    assert jsonl.encode(0, 0, NoteEvent("x", {"a": None}))
    with pytest.raises(TypeError, match="infinity and NaN are no numbers of JSON"):
        jsonl.encode(0, 0, NoteEvent("x", {"a": [None, {"b": math.inf}]}))


# ---- the number of values ------------------------------------------------------------------------------

OBJECTS = "[" + "{}," * VALUES_MAX + "{}]"
COMMAS = '["' + "," * (2 * VALUES_MAX) + '"]'
LARGE = {
    "empty objects": OBJECTS,
    "empty lists": OBJECTS.replace("{}", "[]"),
    "numbers": "[" + "1," * VALUES_MAX + "1]",
    "short strings": "[" + '"",' * VALUES_MAX + '""]',
    "fields": "{" + '"a":"",' * VALUES_MAX + '"a":0}',
    "one in the other": "[" + '{"a":[0]},' * (VALUES_MAX // 2) + "0]",
    "strings without an end": '"' + "," * VALUES_MAX + '",' * (2 * VALUES_MAX),
}
NOT_LARGE = {
    "as many as there may be": "[" + "1," * (VALUES_MAX - 2) + "1]",
    "commas in a string": COMMAS,
    "commas behind quotes in a string": '["' + '\\",{' * VALUES_MAX + '"]',
}


@pytest.mark.parametrize("name", LARGE)
def test_a_text_of_too_many_values_is_not_decoded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "msgspec", None)
    for text in (LARGE[name], LARGE[name].encode()):
        with pytest.raises(InvalidJson, match="more than 1,000,000 values"):
            strict_json.parse(text)
    assert not strict_json.is_object(LARGE[name])


@pytest.mark.parametrize("name", NOT_LARGE)
def test_a_text_of_many_bytes_is(name: str) -> None:
    assert strict_json.parse(NOT_LARGE[name]) == strict_json.parse(NOT_LARGE[name].encode())


def test_a_string_without_its_end_is_looked_at_once() -> None:
    # read again from each of its escaped quotes, these brackets would count
    assert strict_json.depth('["\\"[\\"[\\"[') == 1


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages", "openai-responses", "gemini"])
@pytest.mark.parametrize("form", ["a frame", "a document", "a list of frames"])
def test_an_answer_of_too_many_values_ends_as_one_beyond_our_limits(dialect: str, form: str) -> None:
    body = {
        "a frame": f"data: {OBJECTS}\n\n",
        "a document": f'{{"x":{OBJECTS}}}',
        "a list of frames": OBJECTS,
    }
    decoder = Decoder(dialect)
    decoder.feed(body[form].encode())
    decoder.end()
    cause = decoder.result.finish.failure
    assert cause is not None
    assert (cause.code, cause.subkind) == ("OUTPUT_LIMIT", "over_our_limit")
    assert cause.message == "the response holds more than 1,000,000 values in one place; ask for less"


def test_what_came_before_the_frame_is_kept() -> None:
    said = json.dumps({"choices": [{"delta": {"content": "a"}}]})
    decoded = decode(f"data: {said}\n\ndata: {OBJECTS}\n\ndata: {said}\n\n".encode(), "openai-chat")
    assert [block.text.rstrip("…") for block in decoded.content if isinstance(block, Text)] == ["a"]


def test_json_lines_may_hold_more_together() -> None:
    many = "[" + "1," * (VALUES_MAX // 2) + "1]"
    said = json.dumps({"choices": [{"delta": {"content": "a"}}]})
    ending = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    lines = [said, *(f'{{"choices":[],"x":{many}}}' for _ in range(3)), ending]
    decoded = decode("\n".join(lines).encode(), "openai-chat")
    assert decoded.finish.reason == "stop"


def test_a_record_of_too_many_values_is_set_aside_as_damaged() -> None:
    line = jsonl.encode(0, 0, NoteEvent("x", {"a": [[]] * VALUES_MAX}))
    with pytest.raises(jsonl.BadRecordError, match="more than 1,000,000 values"):
        jsonl.decode(line[:-1])
    assert jsonl.decode_intact(jsonl.encode(0, 0, Title("a")) + line) is None
    large = jsonl.encode(0, 0, Title("," * 2 * VALUES_MAX))
    assert jsonl.decode_intact(large) == ([jsonl.decode(large[:-1])], (int(large[-11:-3], 16),))

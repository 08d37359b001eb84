"""Scripts of the mock gateway: what is played in which order, and what is said about a mistake."""

import json
from typing import Any

import pytest
from gateway_client import ASK, answer, ask, post_bytes

from lockstitch.testing.gateway import running_gateway
from lockstitch.testing.script import ScriptError, load, parse


def test_answers_come_in_order_then_the_last_one_for_ever() -> None:
    with running_gateway({"answers": ["a", "b"], "then": "z"}) as gateway:
        texts = [ask(gateway).deltas()[1] for _ in range(4)]
    assert [text["content"] for text in texts] == ["a", "b", "z", "z"]
    assert [entry["answer"] for entry in gateway.requests] == [0, 1, None, None]


def test_a_used_up_script_says_so() -> None:
    with running_gateway(["a"]) as gateway:
        ask(gateway)
        reply = ask(gateway)
    assert (reply.status, json.loads(reply.body)["error"]["message"]) == (
        500,
        "gateway: the script has 1 answers, all given, and no `then`",
    )


def test_an_error_has_the_protocols_form() -> None:
    spec = {"error": {"message": "slow down", "code": "rate"}, "status": 429, "headers": {"Retry-After": "3"}}
    reply = answer(spec)
    assert (reply.status, reply.headers["retry-after"], json.loads(reply.body)) == (
        429,
        "3",
        {
            "error": {
                "message": "slow down",
                "type": "invalid_request_error",
                "param": None,
                "code": "rate",
            }
        },
    )


EXPECTATIONS: dict[str, tuple[dict[str, Any], int]] = {
    "a text in the body": ({"contains": "hello"}, 200),
    "a text that is escaped on the wire": ({"contains": 'say "é"'}, 200),
    "a text that is missing": ({"contains": ["hello", "bye"]}, 500),
    "a text that must be missing": ({"lacks": "hello"}, 500),
    "a header": ({"headers": {"X-Tag": "one"}}, 200),
    "a header that is missing": ({"headers": {"X-Other": "one"}}, 500),
    "a path": ({"path": "/v1/"}, 200),
    "another path": ({"path": "/v2/"}, 500),
}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_expectations(name: str) -> None:
    expect, status = EXPECTATIONS[name]
    body = {**ASK, "messages": [{"role": "user", "content": 'hello, say "é"'}]}
    reply = answer({"text": "a", "expect": expect}, post_bytes(body, headers="X-Tag: one\r\n"))
    assert reply.status == status
    if status == 500:
        assert "not as answers[0] expects" in json.loads(reply.body)["error"]["message"]


SCRIPT_ERRORS: dict[str, tuple[Any, str]] = {
    "no script": (3, "script: a script is an object with answers, or the list of them"),
    "an unknown key at the top": (
        {"answer": []},
        'script: unknown key "answer"; allowed: answers, then',
    ),
    "an unknown key of a call": (
        [{"tool_calls": [{"name": "a", "args": {}}]}],
        'script: answers[0].tool_calls[0]: unknown key "args"; allowed: arguments, id, name, signature',
    ),
    "an unknown key of an expectation": (
        {"answers": [], "then": {"expect": {"has": "x"}}},
        'script: then.expect: unknown key "has"; allowed: contains, headers, lacks, path',
    ),
    "an unknown bucket of usage": (
        [{"usage": {"prompt_tokens": 1}}],
        'script: answers[0].usage: unknown key "prompt_tokens"; allowed: input_tokens, output_tokens, '
        "cache_read_tokens, cache_write_tokens, reasoning_tokens",
    ),
    "a wrong type": (["a", {"text": 3}], "script: answers[1]: text: Expected `str | null`, got `int`"),
    "a wrong type further down": (
        [{"tool_calls": [{"name": 3}]}],
        "script: answers[0]: tool_calls[0].name: Expected `str`, got `int`",
    ),
    "a call without a name": (
        [{"tool_calls": [{}]}],
        "script: answers[0]: tool_calls[0]: Object missing required field `name`",
    ),
    "an answer that is none": ([3], "script: answers[0]: an answer is an object, or a string for its text"),
    "two forms": (
        [{"text": "a", "raw": "b"}],
        "script: answers[0]: an answer has one form, this has 2: text, reasoning, tool_calls; raw",
    ),
    "a number out of range": ([{"split": 0}], "script: answers[0].split: 0 is not in 1 to 1073741824"),
    "a hang without bound": ([{"hang": 1e9}], "script: answers[0].hang: 1000000000.0 is not in 0 to 600.0"),
    "not base64": (
        [{"raw_b64": ["ZGF0", "!"]}],
        "script: answers[0].raw_b64[1]: not base64: Only base64 data is allowed",
    ),
    "a header that would end the head": (
        [{"headers": {"A": "b\r\nc"}}],
        "script: answers[0].headers: 'A' cannot be sent as a header",
    ),
}


@pytest.mark.parametrize("name", SCRIPT_ERRORS)
def test_a_mistake_in_a_script_is_named_with_its_place(name: str) -> None:
    value, message = SCRIPT_ERRORS[name]
    with pytest.raises(ScriptError) as caught:
        parse(value)
    assert str(caught.value) == message


def test_an_unknown_key_or_quirk_is_told_what_is_allowed() -> None:
    with pytest.raises(ScriptError, match=r'answers\[0\]: unknown key "texts"; allowed: chunk_chars, .*text'):
        parse([{"texts": "a"}])
    with pytest.raises(
        ScriptError, match=r'quirks: unknown quirk "no_end"; allowed: .*no_done.*_field:VALUE'
    ):
        parse([{"quirks": ["no_end"]}])


FILES: dict[str, tuple[bytes | None, str]] = {
    "missing": (None, "cannot read the script: No such file or directory"),
    "cut JSON": (b'{"answers": [', ":1:14: not JSON: Expecting value"),
    "not text": (b"\xff\xfe", "not UTF-8 at byte 0"),
    "nested too deeply": (b"[" * 100_000, "not JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_script_file_that_cannot_be_read(name: str, tmp_path: Any) -> None:
    content, message = FILES[name]
    path = tmp_path / "script.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:")
    assert message in str(caught.value)


def test_a_script_file_is_played(tmp_path: Any) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"answers": ["from a file"]}')
    with running_gateway(path) as gateway:
        assert {"content": "from a file"[:16]} in ask(gateway).deltas()


ODD_SCRIPTS: dict[str, Any] = {
    "a name of a file that is none": "\ud800",
    "a text that cannot be compared with words": [{"status": "\ud800"}],
    "half a character in a list": [{"quirks": ["\ud800"]}],
    "half a character as a number": [{"split": "\ud800"}],
}


@pytest.mark.parametrize("name", ODD_SCRIPTS)
def test_halves_of_characters_are_a_mistake_in_a_script(name: str) -> None:
    with pytest.raises(ScriptError) as caught:
        load(ODD_SCRIPTS[name])
    str(caught.value).encode("utf-8", "backslashreplace")

"""Keys: found by name, shown nowhere; endpoints resolved from what a user wrote."""

import asyncio
import base64
import copy
import json
import logging
import pickle
import traceback
from typing import Any
from urllib.parse import quote

import pytest
from raw_server import DONE, END, HEAD, KEY, WIRE, chunked, collect, endpoint, refusal, serving, text

from lockstitch.llm.credentials import Masker, MissingCredentialError, Secret, find_key, masker
from lockstitch.llm.endpoint import Endpoint, resolve
from lockstitch.llm.exchange import Call
from lockstitch.llm.runtime import ModelRuntime
from lockstitch.providers.catalog import profile
from lockstitch.schema.errors import CallerError
from lockstitch.schema.failures import failure

ENCODED = {
    "as it is": KEY,
    "in a header": f"Authorization: Bearer {KEY}",
    "URL-encoded": quote(KEY, safe=""),
    "URL-encoded in lower case": quote(KEY, safe="").lower()
    if KEY.islower()
    else quote(KEY, safe="").replace("%2F", "%2f"),
    "in JSON": json.dumps({"key": KEY}),
    "in base64": base64.b64encode(KEY.encode()).decode(),
    "in base64 behind a user": base64.b64encode(b"u:" + KEY.encode()).decode(),
    "in base64 behind a longer user": base64.b64encode(b"me:" + KEY.encode() + b"\n").decode(),
    "in URL-safe base64": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "twice": KEY + KEY,
}


@pytest.mark.parametrize("shown", ENCODED.values(), ids=ENCODED)
def test_a_key_is_masked_in_every_form(shown: str) -> None:
    masked = Masker([Secret(KEY)]).mask(f"before {shown} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert "***" in masked
    for part in (KEY, KEY[2:18], quote(KEY, safe="")[2:18], base64.b64encode(KEY.encode()).decode()[3:18]):
        assert part not in masked


def test_a_key_with_quotes_is_masked_where_json_escapes_it() -> None:
    assert Masker(['ab"cd\\ef']).mask(json.dumps('x ab"cd\\ef')) == '"x ***"'


PLAIN = ["", "EMPTY", "ollama", "abc", "none"]


@pytest.mark.parametrize("value", PLAIN)
def test_a_word_is_no_secret(value: str) -> None:
    assert (
        Masker([value]).mask("EMPTY_RESPONSE from ollama, abc, none")
        == "EMPTY_RESPONSE from ollama, abc, none"
    )


def test_the_longer_of_two_keys_is_masked_whole() -> None:
    assert Masker(["sk-123456", "sk-123456-789"]).mask("key sk-123456-789!") == "key ***!"


def test_a_key_that_a_cut_message_ends_in_is_masked_too() -> None:
    assert Masker([KEY]).mask(f"no such key: {KEY[:14]}…") == "no such key: ***…"


def test_every_string_of_a_failure_is_masked() -> None:
    found = failure("AUTH", f"bad {KEY}", provider_message=KEY, provider_code=f"x{KEY}", status=401)
    assert Masker([KEY]).mask_struct(found) == failure(
        "AUTH", "bad ***", provider_message="***", provider_code="x***", status=401
    )


def test_keys_of_other_providers_in_the_environment_are_masked_too() -> None:
    mask = masker(
        {"OPENAI_API_KEY": "sk-openai-1", "HOME": "/home/someone"}, Secret("sk-deepseek-2"), None
    ).mask
    assert mask("sk-openai-1 sk-deepseek-2 /home/someone") == "*** *** /home/someone"


HOLDERS: dict[str, Any] = {
    "a secret": Secret(KEY),
    "an endpoint": endpoint("http://127.0.0.1/v1"),
    "a masker": Masker([KEY]),
    "a call": Call("http://127.0.0.1/v1", {"Authorization": KEY}, b"{}", "x"),
    "a copy of a secret": copy.copy([Secret(KEY)]),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_what_holds_a_key_does_not_show_it(holder: Any) -> None:
    shown = f"{holder!r} {holder} {[holder]!r} {holder!a}"
    assert KEY not in shown
    assert "***" not in shown or "Secret" in shown


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(KEY))


# ---- no key anywhere, whatever a server does with it -------------------------------------------------

ECHOES = {
    "a refusal that echoes the key": refusal(
        401, json.dumps({"error": {"message": f"Bad key {KEY}", "code": KEY}}).encode()
    ),
    "a refusal that echoes the header": refusal(400, f"Bearer {KEY} is no key".encode()),
    "a request id that is the key": refusal(500, b"{}", x_request_id=KEY),
    "a redirect that carries the key": refusal(
        302, b"", location=f"https://x.example/{quote(KEY, safe='')}?k={KEY}"
    ),
    "an error in the stream": HEAD
    + chunked(b"data: " + json.dumps({"error": {"message": KEY}}).encode() + b"\n\n")
    + END,
    "a page": HEAD + chunked(f"<html><title>{KEY}</title></html>".encode()) + END,
    "a stray line": HEAD + chunked(text("Hi"), f"error: {KEY}\n".encode()) + END,
    "a frame that is no JSON": HEAD + chunked(text("Hi"), f"data: {KEY}\n\n".encode(), DONE) + END,
    "a status line": b"HTTP/1.1 500 " + KEY.encode() + b"\r\n\r\n",
    "no HTTP but the key": KEY.encode() + b"\r\n\r\n",
    "a chunk size that is the key": HEAD + KEY.encode() + b"\r\n",
    "a key where the message is cut": refusal(400, b"x" * 288 + KEY.encode()),
    "a key where an error in the stream is cut": HEAD
    + chunked(b"data: " + json.dumps({"error": {"message": "x" * 288 + KEY}}).encode() + b"\n\n")
    + END,
    "a cut": HEAD + chunked(text("Hi"))[:-3],
}


@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
async def test_no_failure_note_or_log_line_holds_a_key(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(answer) as server, ModelRuntime() as runtime:
        stream = runtime.stream(endpoint(server.url), WIRE)
        chunks = await collect(stream)
    shown = f"{chunks!r} {stream.result!r} {caplog.text} {stream!r} {runtime!r}"
    for form in (KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode()):
        assert form not in shown
        assert form[:12] not in shown


async def test_no_traceback_of_a_cancelled_call_holds_a_key() -> None:
    async def hang(peer: Any) -> None:
        await peer.gone.wait()

    async with serving(hang) as server, ModelRuntime() as runtime:
        task = asyncio.create_task(collect(runtime.stream(endpoint(server.url), WIRE)))
        await asyncio.sleep(0.03)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
    assert KEY not in "".join(traceback.format_exception(caught.value))


# ---- finding keys and endpoints ----------------------------------------------------------------------


def test_a_key_loses_the_white_space_around_it() -> None:
    assert find_key("K", {"K": "  sk-1\n"}) == Secret("sk-1")
    assert find_key("K", {"K": " \n"}) is None
    assert find_key("K", {}) is None


@pytest.mark.parametrize("value", ["sk-1\nsk-2", "sk-ключ", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused_unshown(value: str) -> None:
    with pytest.raises(CallerError, match="K holds characters") as caught:
        find_key("K", {"K": value})
    assert value not in str(caught.value)


def shape(found: Endpoint) -> tuple[str, str, str, Secret | None]:
    return found.profile.name, found.model, found.base_url, found.key


DEEPSEEK = {"DEEPSEEK_API_KEY": "sk-d"}
RESOLVED = {
    "provider and model": (
        ("deepseek:deepseek-chat", None, DEEPSEEK),
        ("deepseek", "deepseek-chat", "https://api.deepseek.com", Secret("sk-d")),
    ),
    "another address": (
        ("deepseek:m", "http://127.0.0.1:1/v1/", DEEPSEEK),
        ("deepseek", "m", "http://127.0.0.1:1/v1", Secret("sk-d")),
    ),
    "a model with colons": (
        ("openrouter:x/y:free", None, {"OPENROUTER_API_KEY": "k"}),
        ("openrouter", "x/y:free", "https://openrouter.ai/api/v1", Secret("k")),
    ),
    "a bare model at an address": (
        ("m", "http://127.0.0.1:1", {}),
        ("generic", "m", "http://127.0.0.1:1", None),
    ),
    "a bare model with a colon at an address": (
        ("qwen3:8b", "http://127.0.0.1:1", {}),
        ("generic", "qwen3:8b", "http://127.0.0.1:1", None),
    ),
    "generic takes a key if there is one": (
        ("generic:m", "http://127.0.0.1:1", {"LOCKSTITCH_API_KEY": "sk-g"}),
        ("generic", "m", "http://127.0.0.1:1", Secret("sk-g")),
    ),
    "a local provider needs no key": (
        ("ollama:m", None, {}),
        ("ollama", "m", "http://127.0.0.1:11434/v1", None),
    ),
}


@pytest.mark.parametrize(("asked", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_a_model_resolves_to_an_endpoint(
    asked: tuple[str, str | None, dict[str, str]], expected: tuple[Any, ...]
) -> None:
    model, base_url, environ = asked
    assert shape(resolve(model, base_url=base_url, environ=environ)) == expected


REFUSED = {
    "an unknown provider": (("nope:m", None, {}), "unknown provider 'nope'"),
    "no provider": (("deepseek-chat", None, {}), "no provider in 'deepseek-chat'"),
    "no model": (("deepseek:", None, DEEPSEEK), "no model in 'deepseek:'"),
    "nothing": (("", None, {}), "no model in ''"),
    "no key": (("deepseek:m", None, {}), "no API key for deepseek: set DEEPSEEK_API_KEY"),
    "a blank key": (("deepseek:m", None, {"DEEPSEEK_API_KEY": " "}), "set DEEPSEEK_API_KEY"),
    "generic without an address": (("generic:m", None, {}), "give one with --base-url"),
    "an address that is none": (("generic:m", "127.0.0.1:8000", {}), "bad base URL"),
    "a wrong port": (("generic:m", "http://h:99999", {}), "bad base URL"),
    "another scheme": (("generic:m", "ftp://h/v1", {}), "bad base URL"),
    "credentials in the address": (("generic:m", "http://u:sk-1@h/v1", {}), "takes no user or password"),
}


@pytest.mark.parametrize(("asked", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_resolved_says_what_to_do(
    asked: tuple[str, str | None, dict[str, str]], message: str
) -> None:
    model, base_url, environ = asked
    with pytest.raises(CallerError) as caught:
        resolve(model, base_url=base_url, environ=environ)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


def test_a_missing_key_has_a_code_of_its_own() -> None:
    with pytest.raises(MissingCredentialError) as caught:
        resolve("deepseek:m", environ={})
    assert caught.value.code == "MISSING_CREDENTIAL"


URLS = {
    "joined": ("https://h/v1", "/chat/completions", "https://h/v1/chat/completions"),
    "already whole": ("https://h/v1/chat/completions", "/chat/completions", "https://h/v1/chat/completions"),
    "a query of the base is kept": ("https://h/o?api-version=1", "/chat", "https://h/o/chat?api-version=1"),
    "two queries are joined": ("https://h/o?a=1", "/m:stream?alt=sse", "https://h/o/m:stream?a=1&alt=sse"),
}


@pytest.mark.parametrize(("base", "path", "url"), URLS.values(), ids=URLS)
def test_paths_are_joined(base: str, path: str, url: str) -> None:
    assert Endpoint(profile("generic"), "m", base).url(path) == url


HEADERS = {
    "deepseek": {"Authorization": "Bearer k"},
    "anthropic": {"x-api-key": "k"},
    "azure": {"api-key": "k"},
}


@pytest.mark.parametrize(("name", "headers"), HEADERS.items())
def test_the_key_goes_where_the_provider_looks_for_it(name: str, headers: dict[str, str]) -> None:
    assert Endpoint(profile(name), "m", "https://h", Secret("k")).auth_headers() == headers
    assert Endpoint(profile(name), "m", "https://h").auth_headers() == {}

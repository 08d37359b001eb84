"""Exceptions of the HTTP client, proxies, and how long silence may last."""

import inspect
import ssl
from collections.abc import Iterator

import aiohttp
import pytest

from lockstitch.llm.network_errors import RULES, UNEXPECTED, translate
from lockstitch.llm.proxies import Proxy, proxy_for
from lockstitch.llm.watchdog import Watchdog

NOT_OF_A_CALL = {
    "ContentTypeError",  # response.json(), which is never called
    "TooManyRedirects",  # redirects are off, and so are the four below
    "RedirectClientError",
    "InvalidUrlRedirectClientError",
    "NonHttpUrlRedirectClientError",
    "WSMessageTypeError",  # web sockets
    "WSServerHandshakeError",
    "WebSocketError",
    "UploadAbortedError",  # upload trackers
    "BadContentDispositionHeader",  # multipart
    "BadContentDispositionParam",
    "EofStream",  # queues of the client's server side
}


def client_exceptions() -> Iterator[type[BaseException]]:
    for name, value in vars(aiohttp).items():
        if inspect.isclass(value) and issubclass(value, BaseException) and name not in NOT_OF_A_CALL:
            yield value


@pytest.mark.parametrize("kind", list(client_exceptions()), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_client_has_a_rule_of_its_own_or_of_its_parent(
    kind: type[BaseException],
) -> None:
    error = kind.__new__(kind)
    rule = next((rule for rule in RULES if isinstance(error, rule[0])), UNEXPECTED)
    assert rule is not UNEXPECTED
    assert rule[0] is not OSError


def test_no_rule_is_hidden_by_a_wider_one_above_it() -> None:
    hidden = [
        (wider[0].__name__, narrower[0].__name__)
        for at, wider in enumerate(RULES)
        for narrower in RULES[at + 1 :]
        if issubclass(narrower[0], wider[0])
    ]
    assert hidden == []


OTHERS = {
    "a broken secure connection": (
        ssl.SSLError(1, "bad record mac"),
        "TRANSPORT",
        "tls",
        "SSLError: bad record mac",
    ),
    "the operating system": (
        OSError(113, "No route to host"),
        "TRANSPORT",
        "os",
        "OSError: No route to host",
    ),
    "a timeout of the loop": (TimeoutError(), "TIMEOUT", "idle", "TimeoutError"),
    "a name that cannot be encoded": (
        UnicodeError("label too long"),
        "TRANSPORT",
        "unexpected",
        "label too long",
    ),
    "a bug of the client": (AssertionError(), "TRANSPORT", "unexpected", "AssertionError"),
}


@pytest.mark.parametrize(("error", "code", "subkind", "detail"), OTHERS.values(), ids=OTHERS)
def test_other_exceptions_become_failures_too(
    error: BaseException, code: str, subkind: str, detail: str
) -> None:
    found = translate(error, "deepseek (api.deepseek.com)")
    assert (found.code, found.subkind) == (code, subkind)
    assert found.message.startswith("deepseek (api.deepseek.com): ")
    assert detail in found.message


PROXIES = {
    "by scheme": (
        {"https_proxy": "http://proxy:3128"},
        "https://api.x.example/v1",
        Proxy("http://proxy:3128", {}),
    ),
    "upper case too": (
        {"HTTPS_PROXY": "http://proxy:3128"},
        "https://api.x.example",
        Proxy("http://proxy:3128", {}),
    ),
    "the other scheme's is not used": ({"https_proxy": "http://proxy:3128"}, "http://api.x.example", None),
    "for all": ({"all_proxy": "http://proxy:3128"}, "http://api.x.example", Proxy("http://proxy:3128", {})),
    "without a scheme": (
        {"http_proxy": "proxy:3128"},
        "http://api.x.example",
        Proxy("http://proxy:3128", {}),
    ),
    "with credentials": (
        {"http_proxy": "http://me:p%40ss@proxy:3128"},
        "http://api.x.example",
        Proxy("http://proxy:3128", {"Proxy-Authorization": "Basic bWU6cEBzcw=="}),
    ),
    "excluded by domain": (
        {"https_proxy": "http://proxy:3128", "no_proxy": "x.example"},
        "https://api.x.example",
        None,
    ),
    "excluded altogether": (
        {"https_proxy": "http://proxy:3128", "no_proxy": "*"},
        "https://api.x.example",
        None,
    ),
    "never for this machine": ({"http_proxy": "http://proxy:3128"}, "http://127.0.0.1:8000/v1", None),
    "by whatever name": ({"http_proxy": "http://proxy:3128"}, "http://localhost:8000/v1", None),
    "in version six": ({"http_proxy": "http://proxy:3128"}, "http://[::1]:8000/v1", None),
    "none set": ({}, "https://api.x.example", None),
}


@pytest.mark.parametrize(("variables", "url", "expected"), PROXIES.values(), ids=PROXIES)
def test_proxies_come_from_the_environment(
    variables: dict[str, str], url: str, expected: Proxy | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected


WAITS = {
    # each step: seconds waited, then data frames so far (None: the read is still to come)
    "a fresh stream may be silent for the idle limit": ([], 300),
    "silence adds up over reads": ([(100, None), (100, None)], 100),
    "comments before data restart the silence": ([(290, 0)], 300),
    "but all waiting before data is bounded": ([(290, 0), (290, 0)], 80),
    "and then used up": ([(290, 0), (290, 0), (80, 0)], 0),
    "data restarts the silence": ([(290, 1)], 300),
    "after data, comments do not": ([(1, 1), (200, 1)], 100),
    "after data, nothing else bounds the whole": ([(290, 1), (290, 2), (290, 3), (290, 4)], 300),
}


@pytest.mark.parametrize(("steps", "left_s"), WAITS.values(), ids=WAITS)
def test_how_long_the_next_read_may_wait(steps: list[tuple[float, int | None]], left_s: float) -> None:
    watchdog = Watchdog(idle_s=300, first_frame_s=660)
    for seconds, frames in steps:
        watchdog.waited(seconds)
        if frames is not None:
            watchdog.received(frames)
    assert watchdog.allowance_s() == left_s

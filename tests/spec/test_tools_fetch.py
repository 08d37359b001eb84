"""fetch: what it returns, and that it reaches nothing it should not."""

import asyncio
import gzip
import ipaddress
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lockstitch.schema.blocks import Base64Source, Image, Text, ToolCall
from lockstitch.schema.errors import CallerError
from lockstitch.tools import builtin_fetch, public_addresses
from lockstitch.tools.builtin_fetch import fetch_tool
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.page_text import page_text
from lockstitch.tools.public_addresses import Reach
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call


async def fetch(url: str, *allowed: str, environ: dict[str, str] | None = None) -> Ran:
    call = ToolCall(id="c1", name="fetch", arguments=json.dumps({"url": url}))
    context = ToolContext(Path.cwd(), environ=environ or {})
    return await run_call(Registry([fetch_tool(allowed)]), call, context)


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """A server on loopback, under any name the test gives it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.port = 0
        self.answers: dict[str, Handler] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.host, request.path))
        return await self.answers[request.path](request)

    def answer(self, path: str, **response: Any) -> None:
        async def give(_request: web.Request) -> web.Response:
            return web.Response(**response)

        self.answers[path] = give

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    runner = web.ServerRunner(web.Server(made.handle))
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


PNG = b"\x89PNG\r\n\x1a\n"
ANSWERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "plain text": ({"text": "hello"}, "done", "answered 200, text/plain\n\nhello"),
    "JSON as it is": ({"text": '{"a":1}', "content_type": "application/json"}, "done", 'json\n\n{"a":1}'),
    "a page as text": (
        {"text": "<title>T</title><h1>Head</h1><p>a <b>b</b>", "content_type": "text/html"},
        "done",
        "answered 200, text/html\n\nT\n\n# Head\n\na b",
    ),
    "another charset": (
        {"body": "é".encode("latin-1"), "headers": {"Content-Type": "text/plain; charset=latin-1"}},
        "done",
        "text/plain\n\né",
    ),
    "a charset that is none": (
        {"body": b"a", "headers": {"Content-Type": "text/plain; charset=nope"}},
        "done",
        "text/plain\n\na",
    ),
    "packed": (
        {
            "body": gzip.compress(b"unpacked"),
            "headers": {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
        },
        "done",
        "text/plain\n\nunpacked",
    ),
    "an error with its text": (
        {"text": "no such page", "status": 404},
        "failed",
        "answered 404, text/plain\n\nno such page",
    ),
    "nothing": ({"text": ""}, "done", "answered 200, text/plain"),
    "bytes that are no text": (
        {"body": b"PK\0\0", "content_type": "application/zip"},
        "failed",
        "that is not text, and 4 bytes of it cannot be shown.",
    ),
}


@pytest.mark.parametrize(("response", "outcome", "ending"), ANSWERS.values(), ids=ANSWERS)
async def test_answers(response: dict[str, Any], outcome: str, ending: str, site: Site) -> None:
    site.answer("/x", **response)
    ran = await fetch(site.url("/x"), "127.0.0.1")
    assert ran.outcome == outcome
    assert text_of(ran).startswith(f"{site.url('/x')} answered ")
    assert text_of(ran).rstrip().endswith(ending)


async def test_an_image_is_returned_as_one(site: Site) -> None:
    site.answer("/x", body=PNG, content_type="image/png")
    ran = await fetch(site.url("/x"), "127.0.0.1")
    assert ran.content[1] == Image("image/png", Base64Source("iVBORw0KGgo="))


async def test_a_large_page_is_read_only_in_part(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_fetch, "BODY_MAX_BYTES", 100)
    site.answer("/x", text="y" * 200_000)
    text = text_of(await fetch(site.url("/x"), "127.0.0.1"))
    assert text.endswith("\n\n" + "y" * 100 + "\n[only the first 100 bytes were read]")


async def test_a_page_that_never_ends_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_fetch, "TOTAL_S", 0.1)

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await request.content.wait_eof()

        await asyncio.sleep(0.25)
        return response

    site.answers["/x"] = drip
    ran = await fetch(site.url("/x"), "127.0.0.1")
    assert text_of(ran) == f"{site.url('/x')} did not answer completely within 0.1 s."


async def test_redirects_on_the_same_host_are_followed_to_a_limit(site: Site) -> None:
    site.answer("/a", status=302, headers={"Location": "/b"})
    site.answer("/b", text="arrived")
    site.answer("/loop", status=307, headers={"Location": "/loop"})
    assert text_of(await fetch(site.url("/a"), "127.0.0.1")).endswith(
        "/b answered 200, text/plain\n\narrived"
    )
    assert (
        text_of(await fetch(site.url("/loop"), "127.0.0.1"))
        == f"{site.url('/loop')} redirects more than 5 times."
    )


REDIRECTS: dict[str, tuple[str, str]] = {
    "to another host": ("http://example.org/", "redirects to http://example.org/, on another host"),
    "to a private address": ("http://169.254.169.254/latest", "on another host"),
    "to a file": ("file:///etc/passwd", "is not a complete http:// or https:// address."),
    "to a host behind a user name": ("http://127.0.0.1@evil.org/", "are not fetched."),
    "to nonsense": ("http://[", "cannot be read"),
}


@pytest.mark.parametrize(("location", "said"), REDIRECTS.values(), ids=REDIRECTS)
async def test_redirects_that_are_not_followed(location: str, said: str, site: Site) -> None:
    site.answer("/a", status=301, headers={"Location": location})
    ran = await fetch(site.url("/a"), "127.0.0.1")
    assert ran.outcome == "failed"
    assert said in text_of(ran)
    assert [path for _, path in site.seen] == ["/a"]


NOT_FETCHED: dict[str, tuple[str, str]] = {
    "loopback": ("http://127.0.0.1:{port}/", "127.0.0.1 leads to 127.0.0.1, which is not a public address."),
    "loopback by name": ("http://localhost:{port}/", "localhost leads to "),
    "loopback in short": ("http://127.1:{port}/", "127.1 leads to 127.0.0.1"),
    "loopback as one number": ("http://2130706433:{port}/", "leads to 127.0.0.1"),
    "loopback in hexadecimal": ("http://0x7f000001:{port}/", "leads to 127.0.0.1"),
    "loopback in full-width digits": ("http://１２７.0.0.1:{port}/", "leads to 127.0.0.1"),
    "loopback as IPv6": ("http://[::1]:{port}/", "leads to ::1"),
    "loopback wrapped in IPv6": ("http://[::ffff:127.0.0.1]:{port}/", "which is not a public address"),
    "this host": ("http://0.0.0.0:{port}/", "which is not a public address"),
    "a private network": ("http://10.0.0.1/", "10.0.0.1, which is not a public address"),
    "the metadata of a cloud": ("http://169.254.169.254/", "which is not a public address"),
    "shared addresses of carriers": ("http://100.64.0.1/", "which is not a public address"),
    "another scheme": ("file:///etc/passwd", "is not a complete http:// or https:// address."),
    "no scheme": ("example.org", "is not a complete http:// or https:// address."),
    "no host": ("http:///x", "is not a complete http:// or https:// address."),
    "a port that is none": ("http://example.org:99999/", "cannot be read"),
    "a user name": (
        "http://user@example.org/",
        "Addresses with a user name or password in them are not fetched.",
    ),
    "a host with a backslash": ("http://evil.org\\@127.0.0.1/", "are not fetched."),
    "a host with odd characters": ("http://exa mple.org/", "has characters that no host has."),
    "a name that is not there": ("http://nonexistent.invalid/", "The host nonexistent.invalid was not found"),
}


@pytest.mark.parametrize(("url", "said"), NOT_FETCHED.values(), ids=NOT_FETCHED)
async def test_what_is_not_fetched(url: str, said: str, site: Site) -> None:
    ran = await fetch(url.replace("{port}", str(site.port)))
    assert ran.outcome == "failed"
    assert said in text_of(ran)
    assert site.seen == []


async def test_the_connection_goes_to_the_address_that_was_checked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to a permitted address once and to another one from then on."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    monkeypatch.setattr(public_addresses, "resolve", resolve)
    site.answer("/x", text="there")
    ran = await fetch(site.url("/x", host="rebind.test"), "127.0.0.1/32")
    assert text_of(ran).endswith("there")
    assert asked == ["rebind.test"]
    assert site.seen == [(f"rebind.test:{site.port}", "/x")]


async def test_a_name_that_leads_inside_as_well_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.215.14", "127.0.0.1"]

    monkeypatch.setattr(public_addresses, "resolve", resolve)
    ran = await fetch(site.url("/x", host="mixed.test"))
    assert "mixed.test leads to 127.0.0.1, which is not a public address." in text_of(ran)
    assert site.seen == []


async def test_a_redirect_is_checked_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def resolve(_host: str, _port: int) -> list[str]:
        return next(answers)

    monkeypatch.setattr(public_addresses, "resolve", resolve)
    site.answer("/a", status=302, headers={"Location": "/b"})
    ran = await fetch(site.url("/a", host="turn.test"), "127.0.0.0/8")
    assert "turn.test leads to 10.0.0.1" in text_of(ran)
    assert [path for _, path in site.seen] == ["/a"]


async def test_a_proxy_of_the_environment_is_used_but_not_for_what_it_excludes(site: Site) -> None:
    async def relay(request: web.Request) -> web.Response:
        return web.Response(
            text=f"relayed {request.raw_path if request.raw_path.startswith('http') else request.url}"
        )

    for path in ("/x", "http://nonexistent.invalid/x"):
        site.answers[path] = relay
    proxy = f"http://127.0.0.1:{site.port}"
    ran = await fetch("http://nonexistent.invalid/x", environ={"HTTP_PROXY": proxy})
    assert "relayed http://nonexistent.invalid/x" in text_of(ran)
    bypassed = await fetch(
        "http://nonexistent.invalid/x", environ={"http_proxy": proxy, "no_proxy": ".invalid"}
    )
    assert "was not found" in text_of(bypassed)
    inside = await fetch("http://10.0.0.1/x", environ={"http_proxy": proxy})
    assert "which is not a public address" in text_of(inside)


ADDRESSES: dict[str, tuple[str, bool]] = {
    "public": ("93.184.215.14", True),
    "public IPv6": ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
    "private": ("192.168.1.1", False),
    "unique local": ("fd00::1", False),
    "link local": ("fe80::1", False),
    "multicast": ("224.0.0.1", False),
    "IPv6 multicast": ("ff02::1", False),
    "broadcast": ("255.255.255.255", False),
    "unspecified": ("::", False),
    "documentation": ("203.0.113.5", False),
    "IPv4 in IPv6, public": ("::ffff:93.184.215.14", True),
    "IPv4 in IPv6, private": ("::ffff:10.0.0.1", False),
    "6to4 of a private address": ("2002:0a00:0001::1", False),
    "NAT64 of a public address": ("64:ff9b::5db8:d70e", True),
    "NAT64 of a private address": ("64:ff9b::a00:1", False),
}


@pytest.mark.parametrize(("address", "permitted"), ADDRESSES.values(), ids=ADDRESSES)
def test_which_addresses_are_public(address: str, permitted: bool) -> None:
    assert Reach().permits("x", ipaddress.ip_address(address)) is permitted


@pytest.mark.parametrize("allowed", ["", "a/b", "http://x", "10.0.0.0/99"])
def test_what_cannot_be_allowed_is_refused(allowed: str) -> None:
    with pytest.raises(CallerError, match="fetch cannot be allowed to reach"):
        fetch_tool([allowed])


PAGES: dict[str, tuple[str, str]] = {
    "headings and paragraphs": ("<h2>A</h2><p>b</p><p>c</p>", "## A\n\nb\n\nc"),
    "lists": ("<ul><li>a<li>b</ul>", "- a\n- b"),
    "links": ("<a href='https://x/'>here</a> <a href='#y'>there</a>", "[here](https://x/) there"),
    "code keeps its lines": ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
    "tables": ("<table><tr><td>a<td>b<tr><td>c</table>", "| a | b\n | c"),
    "scripts and styles go": ("<style>x{}</style>a<script>if (a<b) {}</script>b", "ab"),
    "entities are read": ("a&nbsp;&amp;&lt;b", "a &<b"),
    "a head that is never closed": ("<head><title>T</title><body><p>a", "T\n\na"),
    "images are named": ("<img alt='a cat' src=x>", "[image: a cat]"),
    "text without a tag": ("just text", "just text"),
    "tags that were never opened": ("</script></pre></a>a", "a"),
}


@pytest.mark.parametrize(("html", "text"), PAGES.values(), ids=PAGES)
def test_pages(html: str, text: str) -> None:
    assert page_text(html) == text


def test_a_page_that_takes_too_long_is_read_in_part() -> None:
    text = page_text("<p>begun</p>" + "<!--" * 20_000, time_s=-1)
    assert text == "begun\n[the rest of the page took too long to read]"


@pytest.mark.parametrize("piece", ["<!--", "<![CDATA[", "<a b=", "</", "<script>", "&#", "<div "])
def test_no_page_takes_for_ever(piece: str) -> None:
    page_text("<p>a" + piece * 100_000, time_s=0.1)


@pytest.mark.parametrize(
    "charset",
    ["punycode", "idna", "undefined", "unicode_escape", "utf-7", "bz2", "a\0b", "x" * 9999, "rot13"],
)
def test_a_charset_that_no_page_has_is_none(charset: str) -> None:
    assert builtin_fetch._encoding(charset) == "utf-8"


@pytest.mark.parametrize(
    ("charset", "name"),
    [
        *(("UTF-8", "utf-8"), ("latin1", "iso8859-1"), ("windows-1252", "cp1252"), ("koi8-u", "koi8-u")),
        *(("gb2312", "gb2312"), ("gb18030", "gb18030"), ("Big5-HKSCS", "big5hkscs"), ("euc-kr", "euc_kr")),
        *(("Shift_JIS", "shift_jis"), ("iso-2022-jp", "iso2022_jp"), ("x-mac-cyrillic", "utf-8")),
        *(
            ("macintosh", "mac-roman"),
            ("utf-16le", "utf-16-le"),
            ("us-ascii", "ascii"),
            ("tis-620", "tis-620"),
        ),
    ],
)
def test_charsets_of_pages(charset: str, name: str) -> None:
    assert builtin_fetch._encoding(charset) == name

"""MCP servers: a real one of the official package, and ones that misbehave; none in the agent's way."""

import asyncio
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lockstitch.schema.blocks import Image, Text, ToolCall
from lockstitch.schema.errors import CallerError
from lockstitch.tools import mcp_tools
from lockstitch.tools.contract import ToolContext
from lockstitch.tools.mcp import HttpServer, McpServers, Server, Status, StdioServer
from lockstitch.tools.mcp_tools import Quarantined, namespaced, objection
from lockstitch.tools.process import supervised
from lockstitch.tools.registry import Registry
from lockstitch.tools.run import Ran, run_call

pytest.importorskip("mcp")
pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

REAL = '''
import os, sys
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("real")

@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b

@server.tool()
def fail() -> str:
    raise ValueError("no luck")

@server.tool()
def picture() -> Image:
    return Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png")

@server.tool()
def environment() -> list[str]:
    return sorted(os.environ)

@server.tool()
async def slow(context: Context) -> str:
    await context.report_progress(1, 2, "half")
    open("entered", "w").close()
    import anyio
    await anyio.sleep(600)
    return "never"

@server.tool()
def die() -> str:
    os._exit(3)

if sys.argv[1:]:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
'''

# Speaks the protocol by hand, since the package's server would not say such things.
HOSTILE = """
import json, sys
TOOLS = [
    {"name": "fine", "description": "ok\\x1b[31m", "inputSchema": {
        "type": "object", "properties": {"n": {"type": "integer"}}}},
    {"name": "no schema"},
    {"name": "text", "inputSchema": "nope"},
    {"name": "array", "inputSchema": {"type": "array"}},
    {"name": "invalid", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
    {"name": "remote", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}}},
    {"inputSchema": {"type": "object"}},
    5,
    {"name": "odd name!", "inputSchema": {"type": "object"}},
]
print("this is not JSON", flush=True)
print("listening", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    match asked["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "h", "version": "1"}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            result = {"content": [
                {"type": "text", "text": "got " + json.dumps(asked["params"]["arguments"])},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource_link", "name": "r", "uri": "file:///r"},
                {"type": "resource", "resource": {"uri": "file:///t", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
            ]}
        case _:
            result = None
    said = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "real.py").write_text(REAL)
    (tmp_path / "hostile.py").write_text(HOSTILE)
    return tmp_path


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is given two seconds by the package; here a tenth of one."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)


def real(**options: Any) -> StdioServer:
    return StdioServer("real", sys.executable, ("real.py",), **options)


async def started(*servers: Server, cwd: Path) -> McpServers:
    made = await McpServers(servers, cwd=cwd).__aenter__()
    await made.settled(60)
    return made


@pytest.fixture
async def servers(work: Path) -> AsyncIterator[McpServers]:
    made = await started(real(env={"PASSED": "1"}), cwd=work)
    yield made
    await made.close()


async def call(
    servers: McpServers, name: str, cwd: Path, *, context: Mapping[str, Any] | None = None, **arguments: Any
) -> Ran:
    request = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    return await run_call(Registry(servers.tools()), request, ToolContext(cwd, **(context or {})))


def text_of(ran: Ran) -> str:
    return "\n".join(block.text for block in ran.content if isinstance(block, Text))


NAMES = ("add", "die", "environment", "fail", "picture", "slow")


async def test_a_real_server_over_standard_streams(servers: McpServers, work: Path) -> None:
    assert servers.status() == (
        Status("real", "ready", "", tuple(f"mcp__real__{name}" for name in NAMES), ()),
    )
    add = servers.tools()[0]
    assert (add.needs, add.parallel, add.spec.description) == ("approval", False, "Add two numbers.")
    assert add.spec.parameters["required"] == ["a"]
    assert text_of(await call(servers, "mcp__real__add", work, a=2, b=3)) == "5"
    failed = await call(servers, "mcp__real__fail", work)
    assert (failed.outcome, text_of(failed)) == ("failed", "Error executing tool fail")
    picture = await call(servers, "mcp__real__picture", work)
    assert [type(block) for block in picture.content] == [Image]
    invalid = await call(servers, "mcp__real__add", work, a="two")
    assert (invalid.outcome, text_of(invalid)) == (
        "invalid",
        'The arguments of mcp__real__add do not fit, so it was not run:\n- a: "two" is not of type "integer"',
    )


async def test_a_server_gets_no_key_of_the_agent(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")
    made = await started(real(env={"PASSED": "1"}), cwd=work)
    try:
        names = text_of(await call(made, "mcp__real__environment", work))
    finally:
        await made.close()
    assert "PASSED" in names
    assert "OPENAI_API_KEY" not in names


async def test_a_call_reports_progress_and_its_cancellation_leaves_the_server_of_use(
    servers: McpServers, work: Path
) -> None:
    seen: list[str] = []
    running = asyncio.create_task(call(servers, "mcp__real__slow", work, context={"progress": seen.append}))
    for _ in range(500):
        if (work / "entered").exists() and seen:
            break
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["1 of 2 half"]
    assert text_of(await call(servers, "mcp__real__add", work, a=1)) == "2"


async def test_a_server_that_dies_costs_its_call_and_is_started_again(
    servers: McpServers, work: Path
) -> None:
    before = [tool.spec for tool in servers.tools()]
    died = await call(servers, "mcp__real__die", work)
    assert (died.outcome, text_of(died)) == (
        "failed",
        "The MCP server real ended during the call; whether that had an effect is not known.",
    )
    assert servers.status()[0].state == "failed"
    assert [tool.spec for tool in servers.tools()] == before
    assert text_of(await call(servers, "mcp__real__add", work, a=1)) == "2"
    assert servers.status()[0].state == "ready"


async def test_a_call_over_its_time_is_answered(work: Path) -> None:
    made = await started(real(call_s=0.2), cwd=work)
    try:
        ran = await call(made, "mcp__real__slow", work)
        assert (ran.outcome, text_of(ran)) == (
            "failed",
            "The MCP server real refused: Request 'tools/call' timed out",
        )
    finally:
        await made.close()


async def test_a_real_server_over_http(work: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "real.py", str(port), cwd=work, stderr=asyncio.subprocess.DEVNULL
    )
    made = None
    try:
        for _ in range(500):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                break
        server = HttpServer("web", f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "secret"})
        assert "secret" not in repr(server)
        made = await started(server, cwd=work)
        assert text_of(await call(made, "mcp__web__add", work, a=2)) == "3"
    finally:
        if made is not None:
            await made.close()
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_what_a_hostile_server_says_is_sifted(work: Path) -> None:
    made = await started(StdioServer("h", sys.executable, ("hostile.py",)), cwd=work)
    try:
        status = made.status()[0]
        assert status.tools == ("mcp__h__fine", namespaced("h", "odd name!"))
        assert {item.name: item.reason for item in status.quarantined} == {
            "no schema": "its schema is not that of an object",
            "text": "its schema is not that of an object",
            "array": "its schema is not that of an object",
            "invalid": 'its schema is not valid: "nonsense" is not valid under any of the schemas listed in'
            " the 'anyOf' keyword",
            "remote": "its schema refers to another document",
            "": "it has no name",
        }
        assert made.tools()[0].spec.description == "ok"
        ran = await call(made, "mcp__h__fine", work, n=1)
        assert [block.text for block in ran.content if isinstance(block, Text)] == [
            'got {"n": 1}',
            "(audio, audio/wav, was left out)",
            "(resource r: file:///r)",
            "inside",
            "(resource file:///b is binary)",
        ]
    finally:
        await made.close()


RELAYED: dict[str, tuple[str, bytes, str]] = {
    "lines pass": ("printf 'a\\nb\\n'", b"a\nb\n", ""),
    "a last line without an end passes": ("printf 'a\\nb'", b"a\nb", ""),
    "many short lines pass": ("seq 100000", b"".join(b"%d\n" % number for number in range(1, 100_001)), ""),
    "a line that is too long ends it": (
        "echo a; head -c 300000 /dev/zero | tr '\\0' x; sleep 600",
        b"a\n",
        "ended: it wrote a line of more than 200000 bytes or too many values",
    ),
    "a line of too many objects ends it": (
        "echo a; yes '{},{},[],' | head -n 20000 | tr -d '\\n'; sleep 600",
        b"a\n",
        "ended: it wrote a line of more than 200001 bytes or too many values",
    ),
}


@pytest.mark.parametrize("name", RELAYED)
def test_what_a_server_writes_is_passed_on_line_by_line(name: str, tmp_path: Path) -> None:
    script, written, said = RELAYED[name]
    objects = "objects" in name
    limits = (
        {"line_max_bytes": 200_001, "values_max": 5_000}
        if objects
        else {"line_max_bytes": 200_000, "values_max": 10**9}
    )
    argv = supervised(["sh", "-c", script], **limits)
    done = subprocess.run(argv, capture_output=True, check=False, cwd=tmp_path, timeout=60)
    assert done.stdout.startswith(written) if said else done.stdout == written
    assert len(done.stdout) < 300_000 or not said
    assert done.stderr.decode().strip() == said


async def test_a_message_that_is_too_large_costs_its_call_and_not_the_memory(work: Path) -> None:
    script = HOSTILE.replace(
        'result = {"content": [',
        "print('{' + '[' * 1_500_000, flush=True)\n            result = {\"content\": [",
    )
    assert script != HOSTILE
    (work / "large.py").write_text(script)
    made = await started(StdioServer("h", sys.executable, ("large.py",)), cwd=work)
    try:
        ran = await call(made, "mcp__h__fine", work, n=1)
        assert ran.outcome == "failed"
        assert text_of(ran).startswith(
            "The MCP server h ended during the call; whether that had an effect is not"
        )
        assert made.status()[0].state == "failed"
    finally:
        await made.close()


RESTLESS = """
import json, sys
lists = 0
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"] if "id" in asked else "":
        case "initialize":
            able = {"tools": {"listChanged": True}}
            info = {"serverInfo": {"name": "h", "version": "1"}, "capabilities": able}
            say(id=asked["id"], result={"protocolVersion": "2025-06-18", **info})
        case "tools/list":
            lists += 1
            say(id=asked["id"], result={"tools": [{"name": "count", "inputSchema": {"type": "object"}}]})
            say(method="notifications/tools/list_changed")
        case "tools/call":
            say(id=asked["id"], result={"content": [{"type": "text", "text": str(lists)}]})
        case "":
            pass
        case _:
            say(id=asked["id"], error={"code": -32601, "message": "no"})
"""


async def test_a_server_whose_tools_change_all_the_time_is_asked_now_and_then(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstitch.tools.mcp.REFRESH_PAUSE_S", 600)
    (work / "restless.py").write_text(RESTLESS)
    made = await started(StdioServer("h", sys.executable, ("restless.py",)), cwd=work)
    try:
        for _ in range(100):
            counted = text_of(await call(made, "mcp__h__count", work))
        assert counted == "2"
    finally:
        await made.close()


BODIES: dict[str, tuple[bytes, dict[str, str], str]] = {
    "too many bytes": (b'"' + b"x" * 40_000_000, {}, "the message has more than 33,554,432 bytes"),
    "too many bytes, packed": (
        gzip.compress(b'"' + b"x" * 40_000_000),
        {"Content-Encoding": "gzip"},
        "the message has more than 33,554,432 bytes",
    ),
    "too many values": (
        b"[" + b"{}," * 1_100_000 + b"{}]",
        {},
        "the message holds more than 1,000,000 values",
    ),
}


@pytest.mark.parametrize("name", BODIES)
async def test_an_answer_over_http_that_is_too_large_is_not_taken_into_memory(name: str, work: Path) -> None:
    body, headers, reason = BODIES[name]

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.can_read_body else {}
        match asked.get("method"):
            case "initialize":
                info = {"serverInfo": {"name": "h", "version": "1"}, "capabilities": {"tools": {}}}
                result: dict[str, Any] = {"protocolVersion": "2025-06-18", **info}
            case "tools/list":
                result = {"tools": [{"name": "large", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return web.Response(body=body, content_type="application/json", headers=headers)
            case _:
                return web.Response(status=405 if request.method == "GET" else 202)
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    async with TestServer(app) as site:
        made = await started(HttpServer("web", str(site.make_url("/mcp"))), cwd=work)
        try:
            assert [status.detail for status in made.status()] == [""]
            ran = await call(made, "mcp__web__large", work)
            assert ran.outcome == "failed"
            assert reason in text_of(ran)
        finally:
            await made.close()


BROKEN: dict[str, tuple[tuple[str, ...], str]] = {
    "a program that is not there": (
        ("nonexistent-program-x",),
        "nonexistent-program-x: No such file or directory",
    ),
    "a program that ends at once": (
        (sys.executable, "-c", "import sys; print('bad config', file=sys.stderr); sys.exit(3)"),
        "its last words: bad config",
    ),
}


@pytest.mark.parametrize(("argv", "detail"), BROKEN.values(), ids=BROKEN)
async def test_a_server_that_does_not_start_is_a_status_and_not_an_exception(
    argv: tuple[str, ...], detail: str, work: Path
) -> None:
    made = await started(StdioServer("bad", argv[0], argv[1:]), real(), cwd=work)
    try:
        bad, good = made.status()
        assert (bad.state, good.state) == ("failed", "ready")
        assert detail in bad.detail
        assert len(made.tools()) == len(NAMES)
    finally:
        await made.close()


async def test_a_slow_server_delays_neither_start_nor_end(work: Path) -> None:
    silent = StdioServer("silent", sys.executable, ("-c", "import time; time.sleep(600)"))
    made = McpServers([silent, HttpServer("gone", "http://127.0.0.1:9/mcp")], cwd=work)
    async with made:
        assert made.tools() == []
        assert [status.state for status in made.status()] == ["starting", "starting"]
        await made.settled(0.05)
    assert [status.state for status in made.status()] == ["closed", "closed"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_no_server_is_left_behind(work: Path) -> None:
    script = "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '654321'])\n" + REAL
    (work / "forking.py").write_text(script)
    made = await started(StdioServer("forking", sys.executable, ("forking.py",)), cwd=work)
    assert len(processes("654321")) == 1
    await made.close()
    for _ in range(250):
        if not processes("654321"):
            break
        await asyncio.sleep(0.02)
    assert processes("654321") == []


def processes(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.split(b"\0")[1:2] == [word.encode()]:
                found.append(line.decode())
    return found


@pytest.mark.parametrize("names", [["a", "a"], ["a b"], [""], ["x" * 25], ["a_b"]])
def test_names_of_servers(names: list[str], tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="MCP server name"):
        McpServers([StdioServer(name, "x") for name in names], cwd=tmp_path)


NAMESPACED: dict[str, tuple[str, str]] = {
    "a plain name": ("search", "mcp__docs__search"),
    "a name with a dot": ("a.b", "mcp__docs__a_b_2e7336dc"),
    "a name with another sign there": ("a/b", "mcp__docs__a_b_c14cddc0"),
}


@pytest.mark.parametrize(("name", "expected"), NAMESPACED.values(), ids=NAMESPACED)
def test_tools_are_named_after_their_server(name: str, expected: str) -> None:
    assert namespaced("docs", name) == expected


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    names = {namespaced("docs", "x" * 100 + end) for end in "ab"}
    assert [len(name) for name in names] == [64, 64]


SCHEMAS: dict[str, tuple[Any, str]] = {
    "an object": ({"type": "object"}, ""),
    "a reference to itself": (
        {"type": "object", "$defs": {"T": {"$ref": "#/$defs/T"}}, "properties": {"t": {"$ref": "#/$defs/T"}}},
        "",
    ),
    "no object": ({"type": "string"}, "its schema is not that of an object"),
    "properties that are none": (
        {"type": "object", "properties": []},
        "its schema's properties are not an object",
    ),
    "too large": (
        {"type": "object", "description": "x" * 70_000},
        "its schema has 70,037 bytes, more than 65,536",
    ),
}


@pytest.mark.parametrize(("schema", "reason"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas(schema: Any, reason: str) -> None:
    assert objection(schema) == reason


def test_a_schema_nested_too_deeply() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"x": schema}}
    assert objection(schema) == "its schema is nested deeper than 30"


def test_two_tools_of_one_name_and_too_many() -> None:
    class Listed:
        description = None

        def __init__(self, name: str) -> None:
            self.name = name
            self.input_schema = {"type": "object"}

    found, aside = mcp_tools.described([Listed("b"), Listed("a"), Listed("a"), Listed("c")], "s", 2)
    assert [spec.name for spec, _ in found] == ["mcp__s__a", "mcp__s__b"]
    assert aside == (
        Quarantined("a", "another tool has the same name"),
        Quarantined("c", "the server has more than 2 tools"),
    )


def test_nothing_of_mcp_is_imported_before_a_server_starts() -> None:
    import subprocess

    program = textwrap.dedent(
        """
        import sys
        from lockstitch.tools.mcp import McpServers
        assert not {"mcp", "httpx2", "pydantic", "jsonschema_rs"} & set(sys.modules)
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(
    shutil.which("mcp-server-everything") is None, reason="mcp-server-everything is not installed"
)
async def test_the_reference_server_in_another_language(work: Path) -> None:
    made = await started(StdioServer("all", "mcp-server-everything", ("stdio",)), cwd=work)
    try:
        assert made.status()[0].state == "ready"
        assert text_of(await call(made, "mcp__all__get-sum", work, a=1, b=2)) == "The sum of 1 and 2 is 3."
    finally:
        await made.close()

"""What users of the Python interface get wrong: each mistake is one line, says where, and changes nothing."""

import asyncio
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstitch import Agent, Budget, CallerError, Hooks, LockstitchError, Price, tool
from lockstitch.agent.events import ApprovalNeeded
from lockstitch.schema.messages import Options
from lockstitch.testing.scripted_model import ScriptedModel
from lockstitch.tools.approval import Policy


class Plain:
    """No dataclass: nothing says what its fields are."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def positional(a: int, /) -> int:
    return a


def agent(**given: Any) -> Agent:
    return Agent(**{"model": ScriptedModel(["Hello."]), "store": "memory", **given})


def run(prompt: Any = "Hi.", session: Any = None, output: Any = None, **given: Any) -> Any:
    return agent(**given).run_sync(prompt, session=session, output=output)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a provider that is misspelled": (
        lambda: run(model="deepsek:deepseek-chat"),
        "unknown provider 'deepsek' in 'deepsek:deepseek-chat'; did you mean 'deepseek'? Known: generic, ",
    ),
    "a model without its provider": (
        lambda: run(model="gpt-4"),
        "no provider in 'gpt-4'; write provider:model, or give a base URL",
    ),
    "a key that is missing": (
        lambda: run(model="deepseek:deepseek-chat", environ={}),
        "no API key for deepseek: set DEEPSEEK_API_KEY and run this again",
    ),
    "a model that is no model": (
        lambda: run(model=5),
        "model is provider:model, or an object that answers model calls (lockstitch.testing); not 5",
    ),
    "a tool that is not in a list": (
        lambda: run(tools=add),
        "tools is a list of functions, e.g. tools=[add]",
    ),
    "a tool by its name": (lambda: run(tools="add"), "tools is a list of functions, e.g. tools=[add]"),
    "a tool by its name in a list": (lambda: run(tools=["add"]), "@tool needs a function, not str"),
    "a tool whose arguments have no names": (
        lambda: run(tools=[positional]),
        "tool positional: parameter 'a' is positional-only; a model passes arguments by name",
    ),
    "instructions as a list": (lambda: run(instructions=["Be brief."]), "instructions is a text; not a list"),
    "a budget as a text": (
        lambda: run(budget="1.50"),
        "budget is a Budget, e.g. Budget(cost_usd=1.50); not '1.50'",
    ),
    "a budget with a text in it": (
        lambda: run(budget=Budget(cost_usd="1.50")),  # type: ignore[arg-type]  # the mistake
        "budget.cost_usd: Expected `float | null`, got `str`; e.g. Budget(cost_usd=1.50)",
    ),
    "a price as a number": (
        lambda: run(price=3),
        "price is a Price, e.g. Price(input=0.27, output=1.10); not 3",
    ),
    "a price with a text in it": (
        lambda: run(price=Price(input="1", output=2)),  # type: ignore[arg-type]  # the mistake
        "price.input: Expected `float`, got `str`; e.g. Price(",
    ),
    "options as a dict": (
        lambda: run(options={"temperature": 0}),
        "options is an Options, e.g. Options(temperature=0); not a dict",
    ),
    "options with a text in them": (
        lambda: run(options=Options(max_tokens="9")),  # type: ignore[arg-type]  # the mistake
        "options.max_tokens: Expected `int | null`, got `str`; e.g. Options(",
    ),
    "a policy as a dict": (lambda: run(policy={"allow": ["add"]}), "policy is a Policy, e.g. Policy("),
    "a rule that is not in a tuple": (
        lambda: run(policy=Policy(allow="write")),  # type: ignore[arg-type]  # the mistake
        "policy.allow: Expected `array`, got `str`; e.g. Policy(",
    ),
    "hooks as a dict": (lambda: run(hooks={"before_tool": print}), "hooks is a Hooks, e.g. Hooks("),
    "a hook that cannot be called": (
        lambda: run(hooks=Hooks(before_tool=True)),  # type: ignore[arg-type]  # the mistake
        "hooks.before_tool is a function; not True",
    ),
    "retries as a number": (lambda: run(retry=3), "retry is a RetryPolicy, e.g. RetryPolicy("),
    "an approval in words": (
        lambda: run(approve="never"),
        "approve is True (everything may run), a function that is asked, or None; not 'never'",
    ),
    "an approval that may mean both": (lambda: run(approve=False), "approve is True (everything may run), "),
    "an MCP server as a dict": (
        lambda: run(mcp=[{"command": "npx"}]),
        "mcp is a list of lockstitch.tools.mcp.StdioServer and HttpServer; not a dict",
    ),
    "an environment as a text": (lambda: run(environ="KEY=1"), "environ is a mapping of texts; not 'KEY=1'"),
    "a workspace that is not there": (
        lambda: run(cwd="/no/such/folder"),
        "there is no folder /no/such/folder for the tools to work in; make it, or give another cwd",
    ),
    "a store of an unknown kind": (
        lambda: run(store="file:/tmp/x"),
        "no store is called 'file:/tmp/x': use files, files:DIRECTORY, sqlite:FILE or memory, or a path",
    ),
    "a store by a word that may be a folder": (lambda: run(store="sessions"), "such as ./sessions"),
    "a store that keeps nothing": (
        lambda: run(store=5),
        "store is a path, a name like sqlite:FILE, or an object",
    ),
    "a prompt as a number": (lambda: run(5), "a prompt is a text, or a list of Text and Image; not 5"),
    "a prompt as bytes": (lambda: run(b"Hi."), "a prompt is a text, or a list of Text and Image; not b'Hi.'"),
    "a prompt as messages": (
        lambda: run([{"role": "user", "content": "Hi."}]),
        "a prompt is a text, or a list of Text and Image; not a list with a dict",
    ),
    "a prompt that says nothing": (lambda: run("  "), "the prompt is empty; say what is to be done"),
    "an output by its name": (
        lambda: run(output="Town"),
        "output='Town' is no type that a JSON Schema can be made of; use a dataclass",
    ),
    "an output by an example": (
        lambda: run(output={"name": "Rome"}),
        "output={'name': 'Rome'} is no type that a JSON Schema can be made of; use a dataclass",
    ),
    "an output of a class without fields": (
        lambda: run(output=Plain),
        "output=Plain is no type that a JSON Schema can be made of; use a dataclass",
    ),
    "a session's id as a number": (lambda: run(session=5), "a session's id is a text that is not empty"),
}


@pytest.mark.parametrize(("mistake", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line(mistake: Callable[[], Any], said: str) -> None:
    with pytest.raises(CallerError) as caught:
        mistake()
    (line,) = str(caught.value).splitlines()
    assert said in line
    shown = "".join(traceback.format_exception(caught.value))
    assert "direct cause" not in shown, "the last line says it all"
    assert "During handling" not in shown


def test_a_mistake_about_the_answer_makes_no_session(tmp_path: Path) -> None:
    with pytest.raises(CallerError):
        run(output="Town", store=tmp_path / "sessions")
    assert not (tmp_path / "sessions").exists()


PLACES: dict[str, Callable[[Path], Any]] = {
    "a Path": lambda place: place,
    "a text": str,
    "a text that says so": lambda place: f"files:{place}",
}


@pytest.mark.parametrize("spelled", PLACES.values(), ids=PLACES)
def test_a_folder_is_a_store(spelled: Callable[[Path], Any], tmp_path: Path) -> None:
    run(store=spelled(tmp_path / "some" / "dir"), session="a/b")
    assert len(list((tmp_path / "some" / "dir").rglob("log.jsonl"))) == 1


def test_a_relative_path_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(store="./here", session="s")
    run(store="there/too", session="s")
    logs = [place.relative_to(tmp_path).parts[:-2] for place in tmp_path.rglob("s/log.jsonl")]
    assert sorted(logs) == [("here",), ("there", "too")]


ANSWERS: dict[str, tuple[Any, str]] = {
    "nothing": (None, "the approver answered None"),
    "a number": (1, "the approver answered 1"),
}


@pytest.mark.parametrize(("answer", "said"), ANSWERS.values(), ids=ANSWERS)
async def test_an_approval_that_is_no_answer_allows_nothing(answer: Any, said: str) -> None:
    ran: list[str] = []

    @tool(needs="approval")
    def launch() -> str:
        """Launch."""
        ran.append("launch")
        return "gone"

    def ask(_: ApprovalNeeded) -> Any:
        return answer

    model = ScriptedModel([{"tool_calls": [{"name": "launch", "arguments": {}}]}, "Done."])
    asking = agent(model=model, tools=[launch], approve=ask)
    with pytest.raises(CallerError, match=said):
        await asking.run("Launch it.")
    assert ran == []


async def inside_run() -> None:
    agent().run_sync("Hi.")


async def inside_stream() -> None:
    list(agent().stream_sync("Hi."))


@pytest.mark.parametrize("inside", [inside_run, inside_stream], ids=["run_sync", "stream_sync"])
@pytest.mark.filterwarnings("error")
def test_a_sync_twin_in_a_loop_names_its_async_twin_in_one_line(inside: Callable[[], Any]) -> None:
    with pytest.raises(
        RuntimeError, match=r"event loop.*await agent\.run|async for .* agent\.stream"
    ) as caught:
        asyncio.run(inside())
    assert "During handling" not in "".join(traceback.format_exception(caught.value))


async def test_what_is_used_after_its_end_says_so() -> None:
    async with agent().open("s") as session:
        pass
    for use in (session.send("Hi.").result, lambda: session.steer("Hi."), session.compact, session.undo):
        with pytest.raises(LockstitchError, match=r"session 's' is closed[;:] open it again"):
            await use()

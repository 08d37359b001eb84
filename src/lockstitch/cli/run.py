"""``lockstitch run``: one turn without a person at the terminal."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from ..schema.errors import CallerError
from ..schema.events import TurnEndReason
from ..schema.failures import RETRYABLE, Failure
from . import exit_codes

MODEL_VARIABLE: Final = "LOCKSTITCH_MODEL"


@click.command("run")
@click.argument("prompt", required=False)
@click.option(
    "-m", "--model", metavar="PROVIDER:MODEL", help=f"Default: {MODEL_VARIABLE}, else the session's."
)
@click.option("--base-url", metavar="URL", help="Where the model is, instead of the provider's address.")
@click.option("--session", metavar="ID", help="Go on with this session, or make it. Default: a new one.")
@click.option("--cwd", metavar="DIR", help="Workspace of the tools. Default: the session's, or this folder.")
@click.option("--store", metavar="STORE", help="A folder's path, or sqlite:FILE. Default: LOCKSTITCH_STORE.")
@click.option("--max-steps", type=click.IntRange(1), metavar="N", help="End the turn behind N steps.")
@click.option("--yes", is_flag=True, help="Approve every tool call.")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines (docs/cli.md).")
@click.option("--continue", "go_on", is_flag=True, help="Go on where the session stopped.")
def run(
    *,
    prompt: str | None,
    model: str | None,
    base_url: str | None,
    session: str | None,
    cwd: str | None,
    store: str | None,
    max_steps: int | None,
    yes: bool,
    as_json: bool,
    go_on: bool,
) -> int:
    """Give the agent PROMPT and wait until it is done. A PROMPT of - is read from stdin.

    The model's text goes to stdout, everything else to stderr. Ctrl-C stops the turn, answers every open tool
    call, and exits 130; the session can be continued.
    """
    said = _prompt(prompt, session, go_on=go_on)
    workspace = workspace_of(cwd)
    from .config import tell
    from .workspace_agent import look_around, make_agent

    flags = {"model": model, "base_url": base_url, "store": store, "budget.steps": max_steps}
    around = look_around(workspace, session, flags, os.environ)
    tell(around.notices)
    agent = make_agent(around, cwd=workspace, environ=os.environ, approve="--yes" if yes else None)
    return asyncio.run(_turn(agent, said, session, settings=around.settings, as_json=as_json))


def _prompt(prompt: str | None, session: str | None, *, go_on: bool) -> str | None:
    if go_on and prompt is not None:
        raise click.UsageError("give a PROMPT or --continue, not both")
    if go_on and session is None:
        raise click.UsageError("--continue needs --session ID; `lockstitch sessions list` shows them")
    if not go_on and prompt is None:
        raise click.UsageError("nothing to do: give a PROMPT, - for stdin, or --continue")
    if prompt == "-":
        from .run_text import stdin_text

        prompt = stdin_text(sys.stdin)
    if prompt is not None and not prompt.strip():
        raise CallerError("the prompt is empty; say what is to be done")
    return prompt


def workspace_of(cwd: str | None) -> Path | None:
    """The folder that an option names, if it does. Raises CallerError if there is none."""
    if cwd is None:
        return None
    path = Path(cwd).expanduser()
    if not path.is_dir():
        raise CallerError(f"--cwd {cwd}: no such folder")
    return path


async def _turn(agent: Any, said: str | None, session_id: str | None, *, settings: Any, as_json: bool) -> int:
    from .config import tell
    from .run_text import JsonPrinter, TextPrinter
    from .workspace_agent import unlimited

    printer: JsonPrinter | TextPrinter = JsonPrinter() if as_json else TextPrinter()
    async with agent.open(session_id, create=said is not None) as session:
        turn = session.resume() if said is None else session.send(said)
        printer.session(session.id, session.report)
        if limit := unlimited(session, settings):
            tell([limit])
        async with turn:
            with _interruptible(turn):
                async for event in turn:
                    printer.show(event)
            result = await turn.result()
    code = exit_code(result.reason, result.failure)
    if isinstance(printer, JsonPrinter):
        printer.result(_fields(result, code))
    return code


def exit_code(reason: TurnEndReason, failure: Failure | None) -> int:
    """The exit code for the way a turn ended."""
    codes: Mapping[TurnEndReason, int] = {
        "completed": exit_codes.DONE,
        "cancelled": exit_codes.INTERRUPTED,
        "approval": exit_codes.APPROVAL,
        "budget": exit_codes.BUDGET,
    }
    if reason == "failed" and failure is not None and failure.code in RETRYABLE:
        return exit_codes.GAVE_UP
    return codes.get(reason, exit_codes.FAILED)


def _fields(result: Any, code: int) -> dict[str, object]:
    import msgspec

    return {
        "session_id": result.session_id,
        "turn": result.turn,
        "reason": result.reason,
        "detail": result.detail,
        "text": result.text,
        "usage": msgspec.to_builtins(result.usage),
        "cost_usd": result.cost,
        "repairs": msgspec.to_builtins(result.repairs),
        "failure": msgspec.to_builtins(result.failure),
        "exit_code": code,
    }


class _interruptible:  # noqa: N801  # reads as a word: with _interruptible(turn)
    """Ctrl-C and SIGTERM cancel the turn; a second one ends the program at once."""

    def __init__(self, turn: Any) -> None:
        self._turn = turn
        self._seen = False

    def __enter__(self) -> None:
        self._set(self._stop)

    def __exit__(self, *_: object) -> None:
        self._set(None)

    def _set(self, handler: Any) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Windows has no handlers in its loop; there KeyboardInterrupt cancels the task instead.
            with suppress(NotImplementedError):
                if handler is None:
                    loop.remove_signal_handler(number)
                else:
                    loop.add_signal_handler(number, handler)

    def _stop(self) -> None:
        if self._seen:
            os._exit(exit_codes.INTERRUPTED)
        self._seen = True
        self._turn.cancel("interrupted")

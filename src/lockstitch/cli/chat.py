"""``lockstitch chat``: a conversation in the terminal."""

import asyncio
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from ..schema.errors import CallerError
from . import exit_codes

DUMB: Final = frozenset({"", "dumb", "unknown"})
CHOICE_MAX: Final = 100
"""Bytes of the line that chooses a session."""
HOW_TO_GET_MORE: Final = "for a better terminal: pip install 'lockstitch[cli]'"


@click.command("chat")
@click.option("-m", "--model", metavar="PROVIDER:MODEL", help="Default: the settings' (`config show`).")
@click.option("--base-url", metavar="URL", help="Where the model is, instead of the provider's address.")
@click.option("--session", metavar="ID", help="Go on with this session, or make it. Default: a new one.")
@click.option("--continue", "latest", is_flag=True, help="Go on with the latest session of this folder.")
@click.option("--pick", is_flag=True, help="Choose from the stored sessions.")
@click.option("--cwd", metavar="DIR", help="Workspace of the tools. Default: the session's, or this folder.")
@click.option("--store", metavar="STORE", help="A folder's path, or sqlite:FILE. Default: LOCKSTITCH_STORE.")
@click.option("--yes", is_flag=True, help="Approve every tool call.")
@click.option("--plain", is_flag=True, help="Plain lines, as on a dumb terminal.")
def chat(
    *,
    model: str | None,
    base_url: str | None,
    session: str | None,
    latest: bool,
    pick: bool,
    cwd: str | None,
    store: str | None,
    yes: bool,
    plain: bool,
) -> int:
    """Talk with the agent in the terminal. /help lists its commands.

    Ctrl-C stops a turn; twice, it leaves. The session is kept, and `chat --continue` goes on.
    """
    from .run import workspace_of
    from .workspace_agent import look_around, make_agent

    workspace = workspace_of(cwd)
    flags = {"model": model, "base_url": base_url, "store": store}
    if sum((session is not None, latest, pick)) > 1:
        raise click.UsageError("--session, --continue and --pick exclude each other")
    if latest or pick:
        from .config_files import load

        here = (workspace or Path.cwd()).resolve()
        place = load(here, os.environ, flags=flags).store
        session = _latest(place, here) if latest else _picked(place)
    around = look_around(workspace, session, flags, os.environ)

    from .chat_commands import run_command
    from .chat_talk import Talk

    talk = Talk(
        around,
        look=lambda other: look_around(workspace, other, flags, os.environ),
        make_agent=lambda found, wanted, ask: make_agent(
            found, cwd=workspace, environ=os.environ, approve="--yes" if yes else ask, model=wanted
        ),
        run_command=run_command,
        session_id=session,
    )
    asyncio.run(_talk(talk, plain=plain))
    return exit_codes.DONE


async def _talk(talk: "object", *, plain: bool) -> None:
    from .chat_talk import Talk

    assert isinstance(talk, Talk)
    if plain or not _is_terminal():
        from .chat_plain import run_plain

        await run_plain(talk)
        return
    if find_spec("prompt_toolkit") is None or find_spec("rich") is None:
        from .chat_plain import run_plain

        click.echo(f"lockstitch: {HOW_TO_GET_MORE}", err=True)
        await run_plain(talk)
        return
    from .chat_screen import Screen
    from .config_files import config_home

    colour = not os.environ.get("NO_COLOR")
    await Screen(talk, colour=colour, history=config_home(os.environ) / "chat_history").run()


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in DUMB


def _latest(store: str | None, here: Path) -> str:
    from .chat_commands import sessions_here

    found = asyncio.run(sessions_here(store, cwd=str(here)))
    if not found:
        raise CallerError(f"no session has worked in {here}; `lockstitch chat --pick` shows all")
    return found[0].id


def _picked(store: str | None) -> str:
    from .chat_commands import session_line, sessions_here

    found = asyncio.run(sessions_here(store))
    if not found:
        raise CallerError("there are no sessions yet; `lockstitch chat` begins one")
    for number, info in enumerate(found, 1):
        click.echo(session_line(number, info), err=True)
    return found[_number(len(found)) - 1].id


def _number(most: int) -> int:
    """What the user chooses, from 1 to ``most``. What comes behind that line is left for the conversation."""
    if sys.stdin.isatty():
        chosen: int = click.prompt("session number", type=click.IntRange(1, most), err=True)
        return chosen
    # Without a buffer, which would take the next lines too; and asked once, for those are no answers.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source:
        line = source.readline(CHOICE_MAX).decode(errors="replace").strip()
    if not line.isdecimal() or not 1 <= int(line) <= most:
        raise click.UsageError(f"--pick takes a number from 1 to {most} from the first line, not {line!r}")
    return int(line)

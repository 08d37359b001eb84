"""The commands of a conversation: lines that begin with a slash."""

import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from ..schema.errors import CallerError
from ..session.choose import choose_store
from ..session.housekeeping import fork
from ..session.reports import SessionInfo
from .chat_items import UserText, one_line, safe
from .chat_talk import Talk, session_or_error
from .chat_turn import tokens_text
from .story_text import time_text

LISTED: Final = 15
"""Sessions that ``/sessions`` shows."""


class Command(NamedTuple):
    run: Callable[[Talk, str], Awaitable[None]]
    form: str
    help: str


async def run_command(talk: Talk, text: str) -> bool:
    """Run a line that is a command; False if it is none. Raises LockstitchError."""
    word, _, rest = text.strip().partition(" ")
    if not word.startswith("/") or word.count("/") > 1 or "\n" in word:
        return False
    talk.view.show(UserText(safe(text.strip())))
    command = COMMANDS.get(word[1:])
    if command is None:
        raise CallerError(f"there is no command {one_line(word, 40)}; /help lists them")
    await command.run(talk, rest.strip())
    return True


async def sessions_here(talk_store: str | None, *, cwd: str | None = None) -> list[SessionInfo]:
    """The stored sessions, the latest first; with ``cwd`` those of one folder."""
    store = choose_store(talk_store, os.environ)
    try:
        return [info for info in await store.list() if cwd is None or info.cwd == cwd]
    finally:
        await store.close()


def session_line(number: int, info: SessionInfo) -> str:
    """One session in a list to choose from."""
    when = time_text(info.updated_ms)[:16] if info.updated_ms is not None else "?" * 16
    damaged = f"[damaged: {info.problem}]" if info.problem else ""
    parts = [one_line(part, 120) for part in (info.title or info.id, info.cwd, damaged) if part]
    return "  ".join([f"{number:3}", when, *parts])


async def _help(talk: Talk, _rest: str) -> None:
    width = max(len(command.form) for command in COMMANDS.values())
    lines = [f"{command.form:{width}}  {command.help}" for command in COMMANDS.values()]
    keys = [
        "",
        "Enter sends; while the model works, the line is queued and said at its next step.",
        "Alt-Enter or Ctrl-J begins a new line, Tab completes, Up recalls.",
        "Ctrl-C stops the turn; twice, it leaves. Ctrl-D leaves.",
    ]
    talk.lines([*lines, *keys])


async def _model(talk: Talk, rest: str) -> None:
    if not rest:
        talk.lines([f"model {talk.session.model}; /model PROVIDER:MODEL changes it"])
        return
    session = session_or_error(talk)
    await talk.switch(session.id, rest)


async def _compact(talk: Talk, rest: str) -> None:
    session = session_or_error(talk)

    async def work() -> None:
        told = await session.compact(rest or None, watch=talk.tell)
        if told is None:
            talk.note("nothing to gain: the history is short enough")
            return
        shorter = f"{told.tokens_before:,} tokens became {told.tokens_after:,}"
        talk.note(f"older history is now a summary: {shorter}", "good")

    talk.begin_job("summarising older history", work())


async def _fork(talk: Talk, rest: str) -> None:
    session = session_or_error(talk)
    new_id = rest or f"{session.id[:100]}-{secrets.token_hex(4)}"
    store = choose_store(talk.around.settings.store, os.environ)
    try:
        await fork(store, session.id, new_id)
    finally:
        await store.close()
    talk.note(f"forked from {session.id}, which stays as it is", "good")
    await talk.switch(new_id, talk.model)


async def _undo(talk: Talk, rest: str) -> None:
    if rest and not (rest.isdecimal() and 0 < int(rest[:6]) < 100_000):
        raise CallerError("/undo takes a number: how many turns")
    first = await session_or_error(talk).undo(int(rest[:6] or 1))
    talk.note(f"turns from {first} on no longer count; files that they changed are as they are", "good")


async def _clear(talk: Talk, _rest: str) -> None:
    await session_or_error(talk).clear()
    talk.note("the model starts afresh; the session keeps what was said", "good")


async def _sessions(talk: Talk, rest: str) -> None:
    infos = await sessions_here(talk.around.settings.store)
    if not rest:
        talk.lines([session_line(n, info) for n, info in enumerate(infos[:LISTED], 1)] or ["no sessions yet"])
        talk.note("/sessions NUMBER or ID continues one; `lockstitch sessions search WORDS` finds more")
        return
    session = session_or_error(talk)
    chosen = rest
    with suppress(ValueError):
        number = int(rest)
        if not 1 <= number <= len(infos):
            raise CallerError(f"there is no session number {number}; /sessions lists them")
        chosen = infos[number - 1].id
    if chosen == session.id:
        raise CallerError("that is this session")
    if chosen not in {info.id for info in infos}:
        raise CallerError(f"there is no session {one_line(chosen, 60)}; /sessions lists them")
    await talk.switch(chosen, None, recap=True)


async def _new(talk: Talk, _rest: str) -> None:
    session = session_or_error(talk)
    await talk.switch(None, session.model)


async def _title(talk: Talk, rest: str) -> None:
    session = session_or_error(talk)
    if not rest:
        talk.lines([session.title or "no title yet"])
        return
    await session.rename(one_line(rest, 80))
    talk.note(f"title: {session.title}", "good")


async def _cost(talk: Talk, _rest: str) -> None:
    session = talk.session
    cost = session.cost
    window = session.context_window
    lines = [f"{tokens_text(session.usage)} in this session, failed attempts included"]
    if session.usage.cache_read_tokens:
        lines.append(f"{session.usage.cache_read_tokens:,} of them read from the provider's cache")
    size = f"the next request: about {session.context_tokens:,} tokens"
    lines.append(size + (f" of {window:,}" if window else "; the model's window is not known"))
    lines.append(
        f"${cost:.4f} at the price of {session.model}"
        if cost is not None
        else f"the price of {session.model} is not known; `lockstitch models` says how to get it"
    )
    talk.lines(lines)


async def _why(talk: Talk, rest: str) -> None:
    if rest and not rest.isdecimal():
        raise CallerError("/why takes a number: how far back")
    talk.lines(talk.reasons.text(int(rest[:4] or 1)))


async def _continue(talk: Talk, _rest: str) -> None:
    session_or_error(talk)
    talk.begin(None)


async def _exit(talk: Talk, _rest: str) -> None:
    talk.leave()


COMMANDS: Final[Mapping[str, Command]] = {
    "help": Command(_help, "/help", "this list"),
    "model": Command(_model, "/model [P:M]", "show or change the model, in mid-session"),
    "compact": Command(_compact, "/compact [FOCUS]", "summarise older history now"),
    "undo": Command(_undo, "/undo [N]", "take the last turns back from the model's memory"),
    "clear": Command(_clear, "/clear", "start afresh in this session"),
    "fork": Command(_fork, "/fork [ID]", "go on in a copy of this session"),
    "sessions": Command(_sessions, "/sessions [N]", "list sessions, or continue one"),
    "new": Command(_new, "/new", "begin a new session"),
    "title": Command(_title, "/title [TEXT]", "show or set this session's title"),
    "continue": Command(_continue, "/continue", "go on where the last turn stopped"),
    "cost": Command(_cost, "/cost", "tokens and money so far"),
    "why": Command(_why, "/why [N]", "details of the last repair, retry or refusal"),
    "exit": Command(_exit, "/exit", "leave; the session is kept"),
}

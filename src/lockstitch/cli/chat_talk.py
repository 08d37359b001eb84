"""A conversation at a terminal, whatever the terminal: lines come in, items go to a view.

One loop takes what the user does in order. While a turn runs a line is queued for the model (it is durable at
once), unless a question about a tool is open and the line answers it.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from ..agent import events
from ..agent.api import Agent, Session, Turn
from ..agent.approval import Answer, Approver, Decision
from ..schema.errors import CallerError, LockstitchError
from . import chat_why
from .chat_items import (
    NoteLine,
    Tone,
    UserText,
    call_line,
    choices,
    last_exchange,
    one_line,
    question_lines,
    safe,
)
from .chat_turn import Status, TurnTeller, View
from .run_text import mended
from .workspace_agent import Surroundings, unlimited

_DENIAL: Final = re.compile(r"(?:n|no)(?:[ ,:]+(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Typed:
    text: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The terminal, or the input, is at its end."""


Input: TypeAlias = Typed | Interrupted | Closed


Look: TypeAlias = Callable[[str | None], Surroundings]
"""What the files around a session's workspace say. May block; called in a thread."""
Opener: TypeAlias = Callable[[Surroundings, str | None, Approver], Agent]
"""Makes an agent for a model (None: the settings' or the session's own)."""
Commands: TypeAlias = Callable[["Talk", str], Awaitable[bool]]
"""Runs a line that is a command; False if it is none. Raises LockstitchError."""


class Talk:
    """One conversation; ``run`` is its whole life."""

    def __init__(
        self,
        around: Surroundings,
        *,
        look: Look,
        make_agent: Opener,
        run_command: Commands,
        session_id: str | None,
    ) -> None:
        """``around``: what ``look`` found for the first session."""
        self.around = around
        self._look = look
        self.inbox: asyncio.Queue[Input] = asyncio.Queue()
        self.reasons = chat_why.Reasons()
        self.model = around.settings.model
        self._make_agent = make_agent
        self._run_command = run_command
        self._session_id = session_id
        self._view: View | None = None
        self._session: Session | None = None
        self._opened: AbstractAsyncContextManager[Session] | None = None
        self._turn: Turn[object] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._job: asyncio.Task[None] | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._idle = asyncio.Event()
        self._teller: TurnTeller | None = None
        self._between = Status()
        self._leaving = False
        self._armed = False

    # ---- what views and commands read ----

    @property
    def session(self) -> Session:
        assert self._session is not None, "a conversation has a session while it runs"
        return self._session

    @property
    def is_open(self) -> bool:
        return self._session is not None

    @property
    def status(self) -> Status:
        return self._between if self._teller is None else self._teller.status

    @property
    def busy(self) -> bool:
        return self._watch is not None and not self._watch.done()

    @property
    def view(self) -> View:
        assert self._view is not None
        return self._view

    def note(self, text: str, tone: Tone = "dim") -> None:
        self.view.show(NoteLine(one_line(text, 500), tone))

    def lines(self, lines: "list[str] | tuple[str, ...]", tone: Tone = "plain") -> None:
        for line in lines:
            self.view.show(NoteLine(safe(line), tone))

    def tell(self, event: events.UserEvent) -> None:
        """An event of work that is no turn."""
        if self._teller is not None:
            self._teller.tell(event)

    # ---- its life ----

    async def run(self, view: View) -> None:
        """Take inputs until the user leaves. Raises what opening the session raises."""
        self._view = view
        await self.open(self._session_id, self.model, recap=True)
        for notice in self.around.notices:
            self.note(notice)
        try:
            while not self._leaving:
                got = await self.inbox.get()
                match got:
                    case Typed(text):
                        await self._typed(text)
                    case Interrupted():
                        await self._interrupted()
                    case Closed():
                        await self._closed()
                    case _:
                        assert_never(got)
        finally:
            kept = self._session
            await self.shut()
            if kept is not None and kept.messages:
                self.note(f"session {kept.id} is kept; `lockstitch chat --session {kept.id}` goes on")

    def leave(self) -> None:
        """End ``run`` behind the input that is being taken."""
        self._leaving = True

    async def open(self, session_id: str | None, model: str | None, *, recap: bool = False) -> None:
        """Work with this session from here on. The one before has to be shut.

        ``recap``: show what was said last, as far as somebody is there who may have forgotten.
        """
        opened = self._make_agent(self.around, model, self._ask).open(session_id)
        session = await opened.__aenter__()
        self._opened, self._session = opened, session
        self._teller = TurnTeller(session, self.view, self.reasons)
        report = session.report
        kind = "new session" if report.created else "session"
        title = f": {session.title}" if session.title else ""
        self.note(f"{kind} {session.id}{title}, {session.model}, in {session.cwd}")
        if limit := unlimited(session, self.around.settings):
            self.note(limit, "warn")
        if recap and self.view.interactive:
            for item in last_exchange(session):
                self.view.show(item)
        if report.mended:
            was = "damaged" if chat_why.is_damaged(report) else "interrupted"
            line = f"this session was {was}: {mended(report)} (/why)"
            self.note(line, "warn")
            self.reasons.add(line, chat_why.of_opening(report))
        if report.read_only is not None:
            self.note(f"it can be shown but not continued: {report.read_only}", "bad")

    async def shut(self) -> None:
        """Cancel what runs, and give the session free."""
        opened, self._opened, self._session = self._opened, None, None
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait({self._job})
        if self._answer is not None and not self._answer.done():
            self._answer.set_result("the user left")
        if opened is not None:
            await opened.__aexit__(None, None, None)
        if self._watch is not None:
            await asyncio.wait({self._watch})

    async def switch(self, session_id: str | None, model: str | None, *, recap: bool = False) -> None:
        """Another session or model. If that cannot be opened, the old one is opened again, and it is told."""
        before, old_model, old_around = self.session.id, self.model, self.around
        await self.shut()
        try:
            if session_id not in (None, before):
                self.around = await asyncio.to_thread(self._look, session_id)
            await self.open(session_id, model, recap=recap)
            self.model = model
        except LockstitchError as error:
            self.note(str(error), "bad")
            self.around = old_around
            await self.open(before, old_model)

    # ---- inputs ----

    async def _typed(self, text: str) -> None:
        self._armed = False
        if not self.view.interactive:
            await self._ready()
        if not text.strip():
            return
        if self.status.question is not None and (answer := _answer_in(text)) is not None:
            self._decide(answer, text)
            return
        try:
            if await self._run_command(self, text):
                return
            if self.busy:
                await self.session.steer(text)
                if self._teller is not None:
                    self._teller.typed_ahead(text)
                self.view.changed()
            else:
                self.begin(text)
        except LockstitchError as error:
            self.note(str(error), "bad")

    def begin(self, prompt: str | None) -> None:
        """A turn with this prompt; None: go on where the last one stopped."""
        turn: Turn[object] = self.session.resume() if prompt is None else self.session.send(prompt)
        if prompt is not None:
            self.view.show(UserText(safe(prompt)))
        self._turn = turn
        assert self._teller is not None
        self._teller.status = Status(activity="waiting for the model", since=time.monotonic())
        self._watch = asyncio.create_task(self._watched(turn))

    def begin_job(self, activity: str, job: Coroutine[Any, Any, None]) -> None:
        """Work of the session's own that takes its time: shown and stopped as a turn is."""
        assert self._teller is not None
        self._teller.status = Status(activity=activity, since=time.monotonic())
        self._job = self._watch = asyncio.create_task(self._worked(job))

    async def _worked(self, job: Coroutine[Any, Any, None]) -> None:
        try:
            await job
        except LockstitchError as error:
            self.note(str(error), "bad")
        except asyncio.CancelledError:
            self.note("stopped; nothing was changed", "warn")  # whoever cancels it waits for its end
        self._job = None
        self._rest()
        if self._session is not None and self._session.queued:
            self.begin(None)  # what was typed meanwhile

    async def _interrupted(self) -> None:
        if not self.busy:
            if self._armed:
                self.leave()
                return
            self._armed = True
            self.note("Ctrl-C again, or /exit, leaves; the session is kept")
        elif self.status.stopping:
            self.leave()
        else:
            self.status.stopping = True
            self.status.activity = "stopping (Ctrl-C again leaves)"
            if self._turn is not None:
                self._turn.cancel("interrupted")
            elif self._job is not None:
                self._job.cancel()
            if self._answer is not None and not self._answer.done():
                self._answer.set_result("the user stopped the turn")
            self.view.changed()

    async def _closed(self) -> None:
        if not self.view.interactive:
            await self._ready()
            while self.status.question is not None:
                self._decide(Decision(allowed=False, reason="nobody is there to answer"), "n")
                await self._ready()
        self.leave()

    async def _ready(self) -> None:
        """Nothing runs, or a question is open."""
        while self.busy and self.status.question is None:
            self._idle.clear()
            await self._idle.wait()

    # ---- approvals ----

    async def _ask(self, asked: events.ApprovalNeeded) -> Answer:
        self._answer = asyncio.get_running_loop().create_future()
        self.status.question = asked
        self.view.settle()
        if not self.view.interactive:
            self.lines([f"? {line}" for line in question_lines(asked)], "warn")
            self.note(f"allow? {choices(asked)}", "warn")
        self._idle.set()
        self.view.changed()
        try:
            return await self._answer
        finally:
            self._answer = None
            self.status.question = None
            self.view.changed()

    def _decide(self, decision: Decision, text: str) -> None:
        asked = self.status.question
        assert asked is not None
        remembered = {"session": ", for this session", "always": ", for good"}.get(decision.remember, "")
        word = "allowed" if decision.allowed else "denied"
        summary = call_line(asked.name, asked.arguments)
        self.note(
            f"{word}{remembered}: {summary.name} {summary.summary}", "good" if decision.allowed else "warn"
        )
        if not decision.allowed:
            self.reasons.add(f"denied: {summary.name}", [asked.reason, f"you said: {text}"])
        self.status.question = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(decision)

    # ---- a turn ----

    async def _watched(self, turn: "Turn[object]") -> None:
        teller = self._teller
        assert teller is not None, "a turn runs in an open session"
        try:
            async for event in turn:
                teller.tell(event)
        except LockstitchError as error:
            self.note(str(error), "bad")
        finally:
            self.view.settle()
            self._turn = None
            self._rest()

    def _rest(self) -> None:
        """Nothing runs any more."""
        if self._teller is not None:
            self._teller.status = Status()
        self._idle.set()
        self.view.changed()


def _answer_in(text: str) -> Decision | None:
    """The decision that a line is, if it is one; a line that only begins with yes is not."""
    word = text.strip()
    match word.lower():
        case "y" | "yes":
            return Decision(allowed=True)
        case "s":
            return Decision(allowed=True, remember="session")
        case "a":
            return Decision(allowed=True, remember="always")
        case _:
            denial = _DENIAL.fullmatch(word)
            return None if denial is None else Decision(allowed=False, reason=(denial[1] or "").strip())


def session_or_error(talk: Talk) -> Session:
    """The session, if nothing runs in it. Raises CallerError."""
    if talk.busy:
        raise CallerError("a turn is running: wait for its end, or stop it with Ctrl-C")
    return talk.session

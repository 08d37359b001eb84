"""The public face of the runtime: ``Agent``, ``Session``, ``Turn`` and ``Result``.

``agent = Agent("deepseek:deepseek-chat", tools=[add])``, then ``await agent.run("...")`` for one answer,
``async with agent.open("id") as session`` for a conversation, and ``run_sync`` and ``stream_sync`` where
there is no event loop.
"""

import asyncio
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from ..history.context import Context
from ..llm.endpoint import Endpoint, resolve
from ..llm.retry import RetryPolicy
from ..schema.blocks import Block, ToolCall
from ..schema.errors import CallerError
from ..schema.messages import Options
from ..schema.profiles import Profile
from ..session.store import SessionLog, SessionStore
from ..tools.approval import Policy
from ..tools.contract import Tool, ToolContext
from . import given, portal, price_data
from .approval import Approvals, Approver
from .compaction import Compactor
from .events import UserEvent
from .hooks import Hooks
from .messages import log_reader
from .requests import RequestMaker
from .result import Result
from .rewriting import complete
from .session import Parts, Session
from .session_fold import SessionFold
from .shared import Shared
from .state import Budget, Facts, Price, Rules, Stuck
from .structured import require_schema
from .toolset import Toolset
from .turn import Turn
from .world import Models, World

if TYPE_CHECKING:
    from ..tools.mcp import Server

__all__ = ["Agent", "Result", "Session", "Turn"]

T = TypeVar("T")


class Agent:
    """A model with tools, instructions and rules. Cheap to make; connects when it first has to."""

    def __init__(
        self,
        model: "str | Models | None",
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        instructions: str = "",
        store: SessionStore | Path | str | None = None,
        budget: Budget | None = None,
        approve: "Approver | Literal[True, '--yes'] | None" = None,
        policy: Policy | None = None,
        mcp: "Sequence[Server]" = (),
        approvals_file: Path | str | None = None,
        base_url: str | None = None,
        cwd: Path | str | None = None,
        options: Options | None = None,
        hooks: Hooks | None = None,
        retry: RetryPolicy | None = None,
        stuck: Stuck | None = None,
        price: Price | None = None,
        facts: Callable[[str, str], Facts] | None = None,
        profiles: Mapping[str, Profile] | None = None,
        key_store: Callable[[str], str | None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """``model``: ``provider:model``; None: the one a session was last used with; or an object that
        answers model calls (``lockstitch.testing``).

        ``store``: where sessions are kept: a path, ``sqlite:FILE``, ``memory`` (as long as this object), or
        what has the methods of one; None: the user's data directory (``LOCKSTITCH_HOME``).
        ``approve``: asked about tools that need it; True allows all; with None a call that needs it ends the
        turn. ``policy``: rules to allow, ask or deny; ``approvals_file`` keeps what was allowed for good.
        ``mcp``: servers whose tools are offered as soon as they are ready (``lockstitch.tools.mcp``).
        ``cwd``: workspace of the tools; None: the session's, for a new one the current directory.
        ``facts``: what is known of a provider's model (both by name), asked when a session opens; None:
        genai-prices, if the extra ``prices`` is installed. ``price`` goes before it.
        ``profiles``: providers by name, instead of the catalog's. ``key_store``: asked for a key by the name
        of its variable where the environment has none.
        Raises CallerError for an argument that is not what it takes, tools that cannot be described and rules
        that cannot be read.
        """
        given.check(locals())
        self._model = model
        self._toolset = Toolset(
            tools,
            all_need_decision=bool(
                (hooks is not None and hooks.before_tool is not None)
                or (policy is not None and (policy.ask or policy.deny))
            ),
        )
        self._instructions = instructions
        self._base_url = base_url
        self._cwd = cwd
        self._options = options
        self._hooks = hooks or Hooks()
        self._approve = approve
        self._policy = (policy or Policy()).checked()
        self._approvals_file = None if approvals_file is None else Path(approvals_file)
        self._environ = environ
        self._facts = facts
        self._profiles = profiles
        self._key_store = key_store
        self._rules = Rules(
            retry=retry or RetryPolicy(),
            budget=budget or Budget(),
            stuck=stuck or Stuck(),
            price=price,
            error_hook=self._hooks.on_request_error is not None,
        )
        self._shared = Shared(store, model if isinstance(model, Models) else None, tuple(mcp))

    async def run(
        self,
        prompt: str | Sequence[Block] | None,
        *,
        session: str | None = None,
        output: type[T] | None = None,
    ) -> Result[T]:
        """One turn in a session (a new one without ``session``), to its end.

        ``prompt`` None continues the session. Raises ProviderError, BudgetError, ApprovalRequiredError or
        TurnFailedError if the turn did not come to an answer; the session can go on in any case.
        """
        # What cannot be is refused before a session is made for it.
        said = None if prompt is None else given.content_of(prompt)
        if output is not None:
            require_schema(output)
        async with self.open(session) as opened:
            turn: Turn[T] = opened.resume(output=output) if said is None else opened.send(said, output=output)
            async with turn:
                return (await turn.result()).check()

    async def stream(
        self, prompt: str | Sequence[Block] | None, *, session: str | None = None
    ) -> AsyncIterator[UserEvent]:
        """The events of one turn; the last is ``TurnEnded``. Leaving early cancels the turn."""
        said = None if prompt is None else given.content_of(prompt)
        async with self.open(session) as opened:
            turn: Turn[Any] = opened.resume() if said is None else opened.send(said)
            async with turn:
                async for event in turn:
                    yield event
                    for more in turn.ready():
                        yield more

    def run_sync(
        self,
        prompt: str | Sequence[Block] | None,
        *,
        session: str | None = None,
        output: type[T] | None = None,
    ) -> Result[T]:
        """``run`` for code without an event loop. Ctrl-C cancels the turn, waits for its end, passes on."""
        return portal.call(self.run(prompt, session=session, output=output), twin="await agent.run(...)")

    def stream_sync(
        self, prompt: str | Sequence[Block] | None, *, session: str | None = None
    ) -> Iterator[UserEvent]:
        """``stream`` for code without an event loop."""
        return portal.iterate(
            self.stream(prompt, session=session), twin="async for event in agent.stream(...)"
        )

    def open(
        self, session: str | None = None, *, create: bool = True
    ) -> AbstractAsyncContextManager[Session]:
        """The session of this id, made if there is none; without an id, a new one.

        What a crash left open is closed first; ``session.report`` says what was mended. Raises CallerError
        for an impossible id, an unknown model or a missing key, SessionBusyError, StorageError.
        """
        return self._opened(session, create)

    @asynccontextmanager
    async def _opened(self, session_id: str | None, create: bool) -> AsyncIterator[Session]:
        opened = await self._open(session_id, create=create)
        try:
            yield opened
        finally:
            await asyncio.shield(opened.close())

    async def _open(self, session_id: str | None, *, create: bool) -> Session:
        environ = os.environ if self._environ is None else self._environ
        # A model that cannot be used is told before a session is made for it.
        endpoint = None if self._model is None else self._endpoint(environ)
        if endpoint is None and session_id is None:
            raise CallerError("no model: name one as provider:model")
        fold = SessionFold()
        store, models, servers = await self._shared.take(environ, self._workspace(""))
        try:
            log = await store.open(
                new_session_id() if session_id is None else session_id,
                create=create and endpoint is not None,
                cwd=str(self._workspace("")),
                fold=fold,
            )
        except BaseException:
            await asyncio.shield(self._shared.give_back())
            raise
        try:
            read_log = log_reader(store, log)
            await complete(fold, read_log)
            context = fold.context
            workspace = self._workspace(context.cwd)
            target = endpoint or self._stored_endpoint(context, environ)
            known = await self._known(target)
            if known.context_window is not None:
                profile = msgspec.structs.replace(target.profile, context_window=known.context_window)
                target = replace(target, profile=profile)
            world = World(
                log=log,
                fold=fold,
                requests=self._requests(target, log),
                models=models,
                registry=self._toolset.registry(),
                clock_ms=lambda: time.time_ns() // 1_000_000,
                jitter=random.random,
                hooks=self._hooks,
                approvals=Approvals(
                    workspace=workspace,
                    policy=self._policy,
                    beforehand=self._approved_beforehand(),
                    approver=self._approve if callable(self._approve) else None,
                    file=self._approvals_file,
                ),
                tool_context=_surroundings(workspace, log, self._without_keys(environ)),
            )
        except BaseException:
            await log.close()
            await asyncio.shield(self._shared.give_back())
            raise
        rules = replace(self._rules, price=self._rules.price or known.price)
        world.compactor = compactor = Compactor(world, rules)
        return Session(
            Parts(
                log=log,
                world=world,
                rules=rules,
                tools=self._toolset,
                more_tools=None if servers is None else servers.tools,
                cwd=workspace,
                read_log=read_log,
                compactor=compactor,
                close=self._shared.give_back,
            )
        )

    def _endpoint(self, environ: Mapping[str, str]) -> Endpoint:
        if isinstance(self._model, str):
            return self._resolved(self._model, self._base_url, environ)
        endpoint = getattr(self._model, "endpoint", None)
        if not isinstance(endpoint, Endpoint):
            raise CallerError("a model object needs an .endpoint beside .stream(); see lockstitch.testing")
        return endpoint

    def _stored_endpoint(self, context: Context, environ: Mapping[str, str]) -> Endpoint:
        """Where the session's last request went."""
        header = context.header
        if header is None:
            raise CallerError(
                f"session {context.session_id!r} has used no model yet: name one as provider:model"
            )
        base_url = self._base_url or header.base_url
        return self._resolved(f"{header.provider}:{header.model}", base_url, environ)

    def _resolved(self, model: str, base_url: str | None, environ: Mapping[str, str]) -> Endpoint:
        return resolve(
            model, base_url=base_url, environ=environ, profiles=self._profiles, key_store=self._key_store
        )

    def _without_keys(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """For tools: without the variables that profiles of the user's own take their keys from.

        The catalog's, and names that say what they hold, are left out by the tools themselves.
        """
        names = {profile.key_env for profile in (self._profiles or {}).values()}
        kept = {name: value for name, value in environ.items() if name not in names}
        return environ if len(kept) == len(environ) else kept

    async def _known(self, endpoint: Endpoint) -> Facts:
        provider, model = endpoint.profile.name, endpoint.model
        if self._facts is not None:
            return self._facts(provider, model)
        known = Facts()
        if provider in price_data.PROVIDERS and price_data.is_installed():
            # In a thread, because loading the data takes as long as some turns.
            known = await asyncio.to_thread(price_data.facts_of, provider, model)
        if self._rules.budget.cost_usd is not None and (self._rules.price or known.price) is None:
            raise CallerError(
                f"budget.cost_usd limits money, and the price of {provider}:{model} is not known: give "
                "price=Price(input=..., output=...) in US dollars for a million tokens, or limit tokens"
            )
        return known

    def _workspace(self, stored: str) -> Path:
        """The caller's choice, else the session's own, else where the program stands."""
        if self._cwd is not None:
            try:
                folder = Path(self._cwd).expanduser().resolve()
                found = folder.is_dir()
            except ValueError as error:  # NUL, or half of a surrogate pair
                raise CallerError(f"the folder {str(self._cwd)!a} cannot be one: {error}") from None
            if not found:
                raise CallerError(
                    f"there is no folder {folder} for the tools to work in; make it, or give another cwd"
                )
            return folder
        return Path(stored) if stored else Path.cwd()

    def _requests(self, endpoint: Endpoint, log: SessionLog) -> RequestMaker:
        return RequestMaker(
            endpoint=endpoint,
            registry=self._toolset.registry(),
            system=self._instructions,
            options=self._options,
            blobs=log.blobs,
        )

    def _approved_beforehand(self) -> str:
        """Who approved everything, for the log."""
        if self._approve is None or callable(self._approve):
            return ""
        return "policy" if self._approve is True else self._approve


def _surroundings(
    workspace: Path, log: SessionLog, environ: Mapping[str, str]
) -> Callable[[ToolCall, Callable[[str], None]], ToolContext]:
    def keep(data: bytes) -> str:
        return log.blobs.place(log.blobs.put(data).sha256)

    def make(call: ToolCall, progress: Callable[[str], None]) -> ToolContext:
        return ToolContext(
            cwd=workspace,
            session_id=log.id,
            call_id=call.id,
            progress=progress,
            environ=environ,
            blob_sink=keep,
        )

    return make


def new_session_id() -> str:
    """Sorts by time and can be typed: ``20261130-142501-3f9a7c51e2``.

    Forty random bits: with six hex digits, one in thirty starts of a thousand sessions at once had a pair.
    """
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(5)}"

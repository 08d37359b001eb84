"""The agent of ``run`` and ``chat``: made of settings, the project's own words, and a workspace."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..agent.api import Agent, Session
from ..agent.approval import Approver
from ..agent.state import MAX_STEPS, Budget
from ..schema.errors import CallerError
from ..schema.events import Event, SessionStart
from ..session.choose import choose_store
from ..tools.builtin import builtin_tools
from . import agents_files, config_files
from .instructions import CODING_AGENT
from .keyring_keys import key_from_keyring
from .known_models import KnownModels
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the files around a workspace say."""

    workspace: Path
    settings: Settings
    project: agents_files.ProjectText

    @property
    def notices(self) -> list[str]:
        """What the user is to be told, one line each."""
        names = ", ".join(_short(file, self.workspace) for file in self.project.files)
        read = [f"instructions from {names}"] if names else []
        return [*self.settings.notices, *read, *self.project.notices]


def look_around(
    cwd: Path | None, session_id: str | None, flags: Mapping[str, object], environ: Mapping[str, str]
) -> Surroundings:
    """Settings and project text for work in ``cwd``, else where the session works, else here.

    Raises CallerError for a file that cannot be read as what it is.
    """
    here = Path.cwd()
    if cwd is None and session_id is not None:
        store = config_files.load(here, environ, flags=flags).store
        stored = stored_workspace(session_id, store, environ)
        cwd = stored if stored is not None and stored.is_dir() else None
    workspace = (cwd or here).expanduser().resolve()
    settings = config_files.load(workspace, environ, flags=flags)
    project = agents_files.ProjectText()
    if settings.get("agents_files"):
        project = agents_files.project_text(workspace, home=Path.home())
    return Surroundings(workspace, settings, project)


def make_agent(
    around: Surroundings,
    *,
    cwd: Path | None,
    environ: Mapping[str, str],
    approve: "Approver | Literal[True, '--yes'] | None",
    model: str | None = None,
) -> Agent:
    """The agent. ``model`` instead of the settings' own; ``cwd`` only if the user named a workspace."""
    settings = around.settings
    limits = settings.budget
    return Agent(
        model or settings.model,
        tools=builtin_tools(),
        instructions=instructions(around.project),
        store=settings.store,
        budget=Budget(
            steps=MAX_STEPS if limits.steps is None else limits.steps,
            tokens=limits.tokens,
            seconds=limits.seconds,
            cost_usd=limits.cost_usd,
        ),
        approve=approve,
        policy=settings.policy,
        approvals_file=config_files.config_home(environ) / config_files.APPROVALS_FILE,
        base_url=settings.base_url if _same_provider(model, settings.model) else None,
        cwd=cwd,
        facts=KnownModels(settings).facts,
        profiles=settings.profiles,
        key_store=key_from_keyring,
        environ=environ,
    )


def unlimited(session: Session, settings: Settings) -> str:
    """What the user is to be told of a limit that cannot be kept; empty if there is none."""
    if settings.budget.cost_usd is None or session.cost is not None:
        return ""
    return (
        f"budget.cost_usd is not kept: the price of {session.model} is not known "
        "(`lockstitch models` says how to get it)"
    )


def instructions(project: agents_files.ProjectText) -> str:
    """The system prompt: fixed text, then the project's own."""
    return f"{CODING_AGENT}\n{project.text}" if project.text else CODING_AGENT


def stored_workspace(session_id: str, store: str | None, environ: Mapping[str, str]) -> Path | None:
    """Where a stored session works, from its first record; None if there is none."""
    import asyncio

    return asyncio.run(_stored_workspace(session_id, store, environ))


class _Seen(Exception):  # noqa: N818  # no error: it ends the reading of a log whose first record is enough
    pass


async def _stored_workspace(session_id: str, spec: str | None, environ: Mapping[str, str]) -> Path | None:
    found: list[Path] = []

    def first(event: Event) -> None:
        if isinstance(event.body, SessionStart) and event.body.cwd:
            found.append(Path(event.body.cwd))
        raise _Seen

    store = choose_store(spec, environ)
    try:
        # An id that cannot be, or is not there, is told where the session is opened in earnest.
        with suppress(_Seen, CallerError):
            await store.open(session_id, create=False, read_only=True, fold=first)
    finally:
        await store.close()
    return found[0] if found else None


def _same_provider(model: str | None, other: str | None) -> bool:
    """Whether an address that goes with one goes with the other."""
    return model is None or other is None or model.partition(":")[0] == other.partition(":")[0]


def _short(file: Path, workspace: Path) -> str:
    return os.path.relpath(file, workspace)

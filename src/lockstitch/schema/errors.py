"""Exceptions for callers. One root; a subclass says who must act; ``code`` is stable, text is for people."""

from typing import ClassVar

from .failures import Failure


class LockstitchError(Exception):
    """Root of every exception this package raises on purpose."""

    code: ClassVar[str] = "ERROR"


class CallerError(LockstitchError):
    """The caller must change something: an argument, a file, the configuration. Exit status 2."""

    code = "CALLER"


class ProviderError(LockstitchError):
    """The provider gave up after everything was tried; ``failure`` says how. Exit status 1 or 5."""

    code = "PROVIDER"
    failure: Failure | None = None
    """Set where the error ends a turn."""


class SessionCorruptionError(LockstitchError):
    """A log is damaged and the caller asked for strictness: offset, record and reason are in the text."""

    code = "SESSION_CORRUPT"


class SessionBusyError(CallerError):
    """Another process holds the session; its process id is in the text."""

    code = "SESSION_BUSY"


class SessionReadOnlyError(CallerError):
    """The log needs a newer Lockstitch to be continued; it can be shown."""

    code = "SESSION_READ_ONLY"


class GateError(LockstitchError):
    """An event that the log could not read back was offered to ``append``; nothing was written."""

    code = "GATE"


class StorageError(LockstitchError):
    """The disk refused; nothing acknowledged was lost. Retry when the fault has ended."""

    code = "STORAGE"


class BudgetError(LockstitchError):
    """A budget of steps, tokens, time or money is used up. Exit status 4."""

    code = "BUDGET"


class ApprovalRequiredError(LockstitchError):
    """A tool needs an approval and nobody is there to give it. Exit status 3."""

    code = "APPROVAL"

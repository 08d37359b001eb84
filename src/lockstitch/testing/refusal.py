"""What a strict checker says about a request that its provider would refuse."""

from collections.abc import Mapping
from typing import Any


class RefusedError(Exception):
    """One refusal: raised within a checker to stop at the first finding, given to the gateway as a value.

    ``rule`` is our name for it, for the journal; no provider sends it. ``message`` is the provider's own
    wording, ``fields`` are the further fields of its error object.
    """

    def __init__(
        self, rule: str, message: str, *, status: int = 400, fields: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.status = status
        self.error: dict[str, Any] = {"message": message, **(fields or {})}


def word(value: Any) -> str:
    """A value that has to be one of some words: what is no text is none of them, and can be looked up."""
    return value if isinstance(value, str) else f"({type(value).__name__})"

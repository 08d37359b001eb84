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

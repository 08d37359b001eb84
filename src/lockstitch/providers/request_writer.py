"""Writing and checking the requests of one session: what an earlier request held costs nothing again.

A session's requests grow at their end, so a writer keeps the JSON of the messages it has written and the
state of the rules behind them. Where the beginning of a request changed after all, it starts anew by itself:
the result is always that of ``encode`` and ``violations`` on the whole request.
"""

from typing import NamedTuple, Protocol

from ..schema.messages import Request
from ..schema.notes import Violation
from .wire_request import WireRequest


class Written(NamedTuple):
    wire: WireRequest
    violations: list[Violation]
    """Every rule that the request breaks, in order of place; one with any is not to be sent."""


class RequestWriter(Protocol):
    """Writes the requests of one session to one model. Mutable; not for several sessions."""

    def write(self, request: Request) -> Written:
        """The request in its protocol's format, checked. Raises CallerError as the protocol's ``encode``."""
        ...

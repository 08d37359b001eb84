"""The writer of a protocol that has no growing one, and for requests that cannot grow."""

from ..schema.messages import Request
from ..schema.profiles import Profile
from . import dialects
from .request_writer import Written


class WholeWriter:
    """For protocols whose messages depend on their neighbours: every request is written from the start."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def write(self, request: Request) -> Written:
        wire = dialects.encode(request, self._profile)
        return Written(wire, dialects.violations(wire.body, wire.dialect, self._profile))

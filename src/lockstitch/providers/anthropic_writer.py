"""The growing requests of ``anthropic-messages``: each message is encoded and checked once.

The last two are encoded again, because they carry the cache marks of one request only.
"""

from typing import Any

from ..schema.messages import Message, Request
from ..schema.profiles import Profile
from .anthropic_request import MARKED_MESSAGES, assemble, encode_message, split_system
from .anthropic_rules import AnthropicRules, complete
from .growing import Growing, UngroupedError
from .request_writer import Written
from .whole_writer import WholeWriter


class AnthropicWriter:
    """See ``request_writer.RequestWriter``. The body's messages but the last two are ``msgspec.Raw``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._whole = WholeWriter(profile)
        self._growing = Growing(self._encode, lambda model: AnthropicRules(profile, {"model": model}))

    def write(self, request: Request) -> Written:
        system, messages = split_system(request.system, request.messages)
        try:
            rules = self._growing.update(request.model, (), messages)
        except UngroupedError:
            return self._whole.write(request)
        first = self._growing.written[:-MARKED_MESSAGES]
        wire = assemble(request, self._profile, system, first, self._growing.last)
        return Written(wire, complete(rules, wire.body))

    def _encode(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "tool":
            raise UngroupedError
        return [encode_message(message, self._profile)]

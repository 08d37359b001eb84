"""The growing requests of ``openai-chat``: each message is encoded and checked once."""

import msgspec

from ..schema.messages import Request
from ..schema.profiles import Profile
from .growing import Growing
from .openai_chat_request import encode, encode_message
from .openai_chat_rules import ChatRules, asks_for_reasoning, complete
from .request_writer import Written


class ChatWriter:
    """See ``request_writer.RequestWriter``. The body's messages are JSON already, each a ``msgspec.Raw``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._growing = Growing(
            lambda message: encode_message(message, profile),
            lambda start: ChatRules(profile, thinking=start[1]),
        )

    def write(self, request: Request) -> Written:
        wire = encode(msgspec.structs.replace(request, messages=()), self._profile)
        # What the rules depend on besides the messages.
        start = (wire.body["messages"], asks_for_reasoning(wire.body))
        rules = self._growing.update(start, wire.body["messages"], request.messages)
        body = {**wire.body, "messages": self._growing.written}
        return Written(msgspec.structs.replace(wire, body=body), complete(rules, body))

"""The growing requests of ``openai-responses``: each item is encoded and checked once."""

from ..schema.messages import Request
from ..schema.profiles import Profile
from .growing import Growing
from .request_writer import Written
from .responses_request import assemble, encode_message
from .responses_rules import ResponsesRules, complete


class ResponsesWriter:
    """See ``request_writer.RequestWriter``. The body's items are ``msgspec.Raw``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._growing = Growing(
            lambda message: encode_message(message, profile), lambda body: ResponsesRules(profile, body)
        )

    def write(self, request: Request) -> Written:
        frame = assemble(request, self._profile, ())
        start = {key: frame.body.get(key) for key in ("store", "previous_response_id", "conversation")}
        rules = self._growing.update(start, (), request.messages)
        wire = assemble(request, self._profile, self._growing.written)
        return Written(wire, complete(rules, wire.body))

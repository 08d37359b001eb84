"""The growing requests of ``gemini``: each content is encoded and checked once."""

from typing import Any

from ..schema.messages import Message, Request
from ..schema.profiles import Profile
from .gemini_request import assemble, encode_message, split_system
from .gemini_rules import GeminiRules, complete
from .growing import Growing, UngroupedError
from .request_writer import Written
from .whole_writer import WholeWriter


class GeminiWriter:
    """See ``request_writer.RequestWriter``. The body's contents are ``msgspec.Raw``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._whole = WholeWriter(profile)
        self._model = ""
        self._names: dict[str, str] = {}
        """Tools by the ids of the calls written so far, which results name."""
        self._growing = Growing(self._encode, self._start)

    def write(self, request: Request) -> Written:
        system, messages = split_system(request.system, request.messages)
        self._model = request.model
        frame = assemble(request, self._profile, system, ())
        try:
            rules = self._growing.update((request.model, frame.body.get("model")), (), messages)
        except UngroupedError:
            return self._whole.write(request)
        wire = assemble(request, self._profile, system, self._growing.written)
        return Written(wire, complete(rules, wire.body))

    def _start(self, start: tuple[str, Any]) -> GeminiRules:
        self._names = {}
        return GeminiRules(self._profile, {} if start[1] is None else {"model": start[1]})

    def _encode(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "tool":
            raise UngroupedError
        return [encode_message(message, self._profile, model=self._model, names=self._names)]

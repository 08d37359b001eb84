"""The growing requests of ``openai-chat``: each message is encoded and checked once."""

from collections.abc import Sequence
from operator import is_
from typing import Any

import msgspec

from ..schema.messages import Message, Request
from ..schema.profiles import Profile
from .openai_chat_request import encode, encode_message
from .openai_chat_rules import ChatRules, asks_for_reasoning, tool_violations
from .request_writer import Written

_encode_json = msgspec.json.Encoder().encode


class ChatWriter:
    """See ``request_writer.RequestWriter``. The body's messages are JSON already, each a ``msgspec.Raw``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._start: tuple[list[dict[str, Any]], bool] | None = None
        """What the state of the rules depends on besides the messages: the system message, and whether
        reasoning is asked for."""
        self._rules = ChatRules(profile)
        self._messages: tuple[Message, ...] = ()
        self._written: list[Any] = []

    def write(self, request: Request) -> Written:
        wire = encode(msgspec.structs.replace(request, messages=()), self._profile)
        start = wire.body["messages"], asks_for_reasoning(wire.body)
        if start != self._start or not self._continues(request.messages):
            self._start = start
            self._rules = ChatRules(self._profile, thinking=start[1])
            self._messages, self._written = (), []
            self._take(start[0])
        new = request.messages[len(self._messages) :]
        wire_messages = [one for message in new for one in encode_message(message, self._profile)]
        self._take(wire_messages)
        self._messages = request.messages
        body = {**wire.body, "messages": list(self._written)}
        found = [*self._rules.found, *self._rules.at_end(), *tool_violations(body)]
        return Written(msgspec.structs.replace(wire, body=body), found)

    def _continues(self, messages: Sequence[Message]) -> bool:
        """Whether they begin with those of the last request: the same objects, since equal ones may differ in
        JSON (1 and True)."""
        return len(messages) >= len(self._messages) and all(map(is_, messages, self._messages))

    def _take(self, wire_messages: list[dict[str, Any]]) -> None:
        self._rules.extend(wire_messages)
        for message in wire_messages:
            try:
                self._written.append(msgspec.Raw(_encode_json(message)))
            except UnicodeEncodeError:
                self._written.append(message)  # the rules have found the lone surrogate

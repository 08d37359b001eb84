"""Plays a script: what is answered to which request, and what is taken down about it. No I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..schema.errors import CallerError
from ..wire import strict_json
from . import delivery, playback, routes
from .expectations import unmet
from .http1 import HttpRequest
from .journal import Journal
from .prompt_cache import PromptCache
from .refusal import RefusedError
from .script import Answer, Source, load
from .strict import CHECKERS, WORDINGS, Wording, worded
from .window import overflow


class GatewayError(CallerError):
    """The gateway cannot start; the text says why."""

    code = "GATEWAY"


@dataclass(frozen=True, slots=True)
class Played:
    """What one request is answered with."""

    status: int
    body: delivery.Body
    answer: Answer
    """How it is to be sent."""
    entry: dict[str, Any]
    """Of the journal; what becomes of the answer is added to it."""


_PLAIN = Answer()
NESTING_MAX = 200
"""Deeper requests are no JSON here. More than any provider takes, and less than would overflow a stack."""


class Player:
    """The state of one run of a script. Raises ScriptError or GatewayError when it is made."""

    def __init__(
        self,
        script: Source,
        *,
        strict: str | None = None,
        wording: Wording = "provider",
        window: int | None = None,
    ) -> None:
        if wording not in WORDINGS:
            raise GatewayError(f'unknown wording "{wording}"; known: {", ".join(WORDINGS)}')
        if strict is not None and strict not in CHECKERS:
            raise GatewayError(f'no strict rules for "{strict}"; known: {", ".join(CHECKERS)}')
        self._script = load(script)
        self._strict = strict
        self._wording: Wording = wording
        self._window = window
        self._journal = Journal()
        self._cache = PromptCache()
        self._next = 0
        self._given = 0

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The journal: docs/gateway.md tells what an entry has."""
        return self._journal.entries()

    @property
    def left(self) -> int:
        """Answers of the script that were not given yet."""
        return max(0, len(self._script.answers) - self._next)

    def play(self, request: HttpRequest) -> Played:
        """Take down a request and decide its answer."""
        entry = self._journal.add(request)
        path = request.target.partition("?")[0].rstrip("/")
        protocol = routes.protocol_of(path) if request.method == "POST" else None
        if protocol is None:
            known = ", ".join(f"POST …{end}" for end in routes.PATHS)
            error = {"message": f"{request.method} {path}: not served; known: {known}, GET /requests"}
            return _refusal(entry, 404, {"error": error})
        body = _parsed(request.body)
        if not isinstance(body, Mapping):
            error = {"message": "We could not parse the JSON body of your request."}
            return _refusal(entry, 400, protocol.error(error, 400))
        if self._strict == protocol.dialect and (refused := CHECKERS[self._strict](body, path)) is not None:
            return self._refuse(refused, protocol, entry)
        too_long = None if self._window is None else overflow(protocol.dialect, body, self._window)
        if too_long is not None:
            return self._refuse(too_long, protocol, entry)
        return self._give(request, routes.asked(protocol, request.target, body), body, entry)

    def _refuse(self, refused: RefusedError, protocol: routes.Protocol, entry: dict[str, Any]) -> Played:
        entry["refused"] = {"rule": refused.rule, "message": refused.message}
        said = worded(refused, self._wording)
        if said.error is not None:
            return _refusal(entry, said.status, protocol.error(said.error, said.status))
        entry["status"] = said.status
        return Played(said.status, delivery.Body([], delivery.JSON, streamed=False), _PLAIN, entry)

    def _give(
        self, request: HttpRequest, asked: routes.Asked, body: Mapping[str, Any], entry: dict[str, Any]
    ) -> Played:
        position, answer = self._take()
        entry["answer"] = position
        problem = None
        if answer is None:
            problem = f"the script has {len(self._script.answers)} answers, all given, and no `then`"
        elif (missing := unmet(answer.expect, request)) is not None:
            problem = f"the request is not as answers[{position}] expects: {missing}"
        if answer is None or problem is not None:
            return _refusal(entry, 500, asked.protocol.error({"message": f"gateway: {problem}"}, 500))
        status = entry["status"] = playback.status_of(answer)
        share = self._cache.count(asked.protocol.dialect, asked.model, body) if status == 200 else None
        if share is not None:
            entry["cache"] = share.journaled()
        return Played(status, playback.body_of(answer, asked, self._given, share), answer, entry)

    def _take(self) -> tuple[int | None, Answer | None]:
        """The next answer and its position in the script (None: it is ``then``)."""
        position = self._next
        self._given += 1
        if position < len(self._script.answers):
            self._next += 1
            return position, self._script.answers[position]
        return None, self._script.then


def _parsed(body: bytes) -> Any:
    """The JSON of a request, None if there is none in it that a provider would read."""
    try:
        return json.loads(body) if strict_json.depth(body) <= NESTING_MAX else None
    except (ValueError, RecursionError):
        return None


def _refusal(entry: dict[str, Any], status: int, value: Any) -> Played:
    entry["status"] = status
    entry["note"] = value["error"]["message"]
    return Played(status, delivery.document(value), _PLAIN, entry)

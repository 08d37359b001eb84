"""From the live context to a request that its protocol's validator accepts: the answer to ``Prepare``.

A request the validator objects to is never sent: the projection is at fault then, and the turn machine climbs
to a safer rung. This is the one place where projection, encoding and validation meet.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ..history.context import Context, counted
from ..history.meter import BODY_CHARS_MAX, Meter
from ..history.policy import policy
from ..history.project import Projected, Projector
from ..history.window import THRESHOLD, threshold_of, window_of
from ..llm.endpoint import Endpoint
from ..providers import dialects
from ..providers.wire_request import WireRequest
from ..schema.errors import CallerError
from ..schema.events import Body, Recovery, RequestHeader
from ..schema.failures import Failure, failure
from ..schema.messages import Options, Request
from ..schema.notes import Anomaly, Violation
from ..session.blobs import Blobs
from ..tools.registry import Registry
from .amendments import MEDIA, NOTHING, Amendments, digest
from .carried import Carried, repair_key
from .events import Repaired, UserEvent
from .inputs import RequestReady, RequestUnfit
from .media import loaded

VIOLATIONS_SHOWN: Final = 3
_SECRET_NAME: Final = re.compile(r"key|token|secret|sig|pass|auth", re.IGNORECASE)
REGROWN: Final = 1.1
"""How much more than after the last compaction a request must be to be compacted again."""
MAX_TOKENS_UNKNOWN: Final = 16_384
"""What is halved where a limit of output is refused that nobody set."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may be sent, and what is to be logged before it."""

    wire: WireRequest
    ready: RequestReady
    input_estimate: int


class RequestMaker:
    """Makes the requests of one session for one model."""

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        registry: Registry,
        system: str = "",
        options: Options | None = None,
        blobs: Blobs | None = None,
    ) -> None:
        """``blobs``: where images of the history lie that are not in its records."""
        self.endpoint = endpoint
        self._blobs = blobs
        profile = endpoint.profile
        self._plain = RequestHeader(
            provider=profile.name,
            model=endpoint.model,
            options=options or Options(),
            system=system,
            tools=registry.specs(),
            base_url=_stored_url(endpoint),
        )
        self.header = self._plain
        self._writer = dialects.writer(profile)
        self._refused: set[bytes] = set()
        self._projector: Projector | None = None
        self._place = ("", 0, True)
        self._taken = 0
        self._amended = NOTHING
        self._learning: tuple[Anomaly, ...] = ()
        self._meter = Meter(self._plain)
        self._settled_at = 0
        """Tokens that the last compaction left: until there are clearly more, another would gain nothing."""

    def offer(self, registry: Registry) -> None:
        """The tools of the coming requests."""
        if registry.specs() != self._plain.tools:
            self._plain = self.header = msgspec.structs.replace(self._plain, tools=registry.specs())

    def amend(
        self, known: Amendments, *, lowered: int = 0, without: Sequence[str] = (), media: bool = True
    ) -> None:
        """The next request does without what is ``known`` to be refused, and gives up more.

        ``lowered``: how often the limit of output is halved; ``without``: tools; ``media``: images and files.
        """
        header = self._plain
        wanted = header.options.max_tokens or self.endpoint.profile.default_max_tokens
        limit = known.max_tokens
        if limit is not None and wanted is not None and wanted <= limit:
            limit = None
        if lowered:
            limit = max((limit or wanted or MAX_TOKENS_UNKNOWN) >> lowered, 1)
        if limit is not None:
            options = msgspec.structs.replace(header.options, max_tokens=limit)
            header = msgspec.structs.replace(header, options=options)
        refused = [spec for spec in header.tools if spec.name in without or known.refuses(spec)]
        if refused:
            kept = tuple(spec for spec in header.tools if spec not in refused)
            header = msgspec.structs.replace(header, tools=kept)
        self.header = header
        tools = tuple((spec.name, digest(spec)) for spec in refused)
        self._amended = Amendments(limit, tools, media and known.media)
        self._learning = self._amended.anomalies() if known.joined(self._amended) != known else ()

    async def request(self, context: Context, rung: str) -> tuple[Request, Projected]:
        """The projected request on ``rung``; it may still be unfit to send. Raises StorageError."""
        header = self.header
        projected = await self._projection(context, rung)
        request = Request(
            model=header.model,
            messages=projected.messages,
            system=header.system,
            tools=header.tools,
            options=header.options,
        )
        return request, projected

    def prepare(
        self, context: Context, carried: Carried, rung: str, request: Request, projected: Projected
    ) -> Prepared | RequestUnfit:
        """Encode and validate. Changes nothing but the memory of what was sent."""
        try:
            wire, found = self._writer.write(request)
        except CallerError as error:
            return RequestUnfit(failure("INVALID_STRUCTURE", f"the request cannot be written: {error}"))
        if found:
            return RequestUnfit(unfit(found))
        digest = _digest(wire) if self._refused else b""
        if digest in self._refused:
            said = "this rung would send what was just refused"
            return RequestUnfit(failure("INVALID_STRUCTURE", said), repeated=True)
        tokens = self.estimate(context)
        bodies: list[Body] = []
        events: tuple[UserEvent, ...] = ()
        if context.header != self.header:
            bodies.append(self.header)
        # Of images and files that are left out the projection tells one by one.
        left_out = (anomaly for anomaly in self._amended.anomalies() if anomaly.kind != MEDIA)
        anomalies = (*projected.anomalies, *left_out)
        if anomalies and repair_key(rung, anomalies) not in carried.repairs:
            header = self.header
            bodies.append(
                Recovery(rung=rung, anomalies=anomalies, provider=header.provider, model=header.model)
            )
            events = (Repaired(rung=rung, anomalies=anomalies),)
        crowded = self.crowded(context)
        ready = RequestReady(
            input_estimate=tokens,
            bodies=tuple(bodies),
            events=events,
            learning=self._learning,
            crowded=crowded,
        )
        return Prepared(wire=wire, ready=ready, input_estimate=tokens)

    async def _projection(self, context: Context, rung: str) -> Projected:
        """Only what is new is projected, unless the rung or older messages changed."""
        place = (rung, context.epoch, self._amended.media)
        if self._projector is None or place != self._place or self._taken > len(context.messages):
            thinking = self.header.options.reasoning_effort != "off"
            wanted = policy(
                self.endpoint.profile,
                model=self.header.model,
                rung=rung,
                thinking=thinking,
                media=self._amended.media,
            )
            self._projector, self._place, self._taken = Projector(wanted), place, 0
        new = context.messages[self._taken :]
        self._projector.extend(new if self._blobs is None else await loaded(new, self._blobs))
        self._taken += len(new)
        return self._projector.projected

    def refused(self, wire: WireRequest) -> None:
        """Remember a request that was refused for its structure, so that no rung repeats it byte for byte."""
        self._refused.add(_digest(wire))

    def settled(self) -> None:
        """An answer came: what was refused before it is history."""
        self._refused.clear()

    def estimate(self, context: Context) -> int:
        """Tokens of the next prompt: the provider's last count and an estimate of what is new."""
        return self.meter.size(context).tokens

    @property
    def meter(self) -> Meter:
        """Measures requests with the current header."""
        if counted(self._meter.header) != counted(self.header):
            self._meter = Meter(self.header)
        return self._meter

    @property
    def blobs(self) -> Blobs | None:
        """Where large content of the history lies."""
        return self._blobs

    def window(self, context: Context) -> int | None:
        """Tokens that the model takes, as far as is known or was learned."""
        return window_of(context, self.header, self.endpoint.profile.context_window)

    def crowded(self, context: Context) -> bool:
        """Whether the history should be made shorter before the next request."""
        size = self.meter.size(context)
        if size.tokens < self._settled_at * REGROWN:
            return False
        window = self.window(context)
        full = window is not None and size.tokens >= threshold_of(window, self.header.options.max_tokens)
        return full or size.body_chars >= BODY_CHARS_MAX * THRESHOLD

    def compacted(self, context: Context) -> None:
        """A compaction was tried: what there is now is what it can do."""
        self._settled_at = self.meter.size(context).tokens


def _stored_url(endpoint: Endpoint) -> str | None:
    """What the log keeps of an address: None for the provider's own; no parameter that may be a key."""
    if endpoint.base_url == endpoint.profile.base_url:
        return None
    url, _, query = endpoint.base_url.partition("?")
    kept = [pair for pair in query.split("&") if pair and not _SECRET_NAME.search(pair.partition("=")[0])]
    return f"{url}?{'&'.join(kept)}" if kept else url


def unfit(found: list[Violation]) -> Failure:
    """The local refusal of a request that breaks its protocol's rules."""
    shown = "; ".join(f"{v.rule} at {v.where}" for v in found[:VIOLATIONS_SHOWN])
    more = f" and {len(found) - VIOLATIONS_SHOWN} more" if len(found) > VIOLATIONS_SHOWN else ""
    text = f"the request breaks its protocol's rules ({shown}{more}) and was not sent; please report this"
    return failure("INVALID_STRUCTURE", text, subkind="violations")


def _digest(wire: WireRequest) -> bytes:
    """What tells requests apart. Those that hold text nobody can send are all alike: one try is enough."""
    try:
        return hashlib.sha256(wire.encoded()).digest()
    except UnicodeEncodeError:
        return b"not sendable"

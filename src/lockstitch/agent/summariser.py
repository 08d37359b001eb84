"""Asking a model for a summary: the whole history in one request, or its text in pieces; with retries.

Every answer is judged before it may stand for a history. Failed calls are counted like others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ..history.compact import Limits, Plan
from ..history.plain_text import pieces
from ..history.summary import MOST_OVER, Rejected, judged, piece_request, request
from ..history.tokens import estimate, text_tokens
from ..llm.retry import RetryAfter, after_failure
from ..providers import dialects
from ..providers.wire_request import WireRequest
from ..schema.blocks import Block
from ..schema.chunks import FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from ..schema.errors import CallerError
from ..schema.events import CompactionCall
from ..schema.failures import Failure, FailureCode
from ..schema.messages import Request
from ..schema.usage import Usage
from .events import Retrying, UserEvent
from .media import loaded
from .recovery import disposition
from .shown import OutputMeter
from .state import Rules

if TYPE_CHECKING:
    from .world import World

Tell: TypeAlias = Callable[[UserEvent], Awaitable[None]]
"""Tells whoever watches."""
MAX_PIECES: Final = 12
PIECE_SHARE: Final = 0.5
"""Of the window, for the text of one piece: the summary so far, the question and the answer need the rest."""
PIECE_MIN: Final = 200
HALVINGS: Final = 3
"""How often smaller pieces are tried after one was refused as too long."""
HOPELESS: Final[frozenset[FailureCode]] = frozenset(
    {"AUTH", "QUOTA", "MODEL_NOT_FOUND", "MISSING_CREDENTIAL", "NOT_AN_API", "ABORTED"}
)
"""No other form of the question helps, and the next request would meet the same."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no answer to be had: the provider is down, or does not let us in."""

    failure: Failure

    @property
    def hopeless(self) -> bool:
        return self.failure.code in HOPELESS


@dataclass(frozen=True, slots=True)
class Refused:
    """This form of the question does not work; another may."""

    reason: str
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    content: tuple[Block, ...]
    finish: FinishReason


class Summariser:
    """The model calls of one compaction."""

    def __init__(
        self,
        world: "World",
        rules: Rules,
        wanted: Limits,
        *,
        compaction: str,
        window: int | None,
        focus: str | None,
        tell: Tell,
    ) -> None:
        self._compaction = compaction
        """Its id."""
        self._tell = tell
        self.usage: Usage | None = None
        """Of all calls so far."""
        self._world = world
        self._rules = rules
        self._wanted = wanted
        self._window = window
        """Tokens that a request may have; None where that is not known."""
        self._focus = focus
        self._spent_before = world.context.usage.context_tokens

    async def whole(self, planned: Plan) -> str | Refused | Gone:
        """Ask on the history as it was last sent, so that the provider's cache of it holds."""
        requests = self._world.requests
        head = planned.head if requests.blobs is None else tuple(await loaded(planned.head, requests.blobs))
        profile = requests.endpoint.profile
        made, _ = request(head, requests.header, profile, self._wanted, self._focus)
        tokens = requests.meter.fixed + estimate(made.messages)
        needed = requests.meter.likely(tokens) + self._wanted.summary // 2
        if self._window is not None and needed > self._window:
            return Refused("it would not fit the window", too_long=True)
        return self._judged(await self._ask(made, tokens), planned.replaced)

    async def in_pieces(self, planned: Plan) -> str | Refused | Gone:
        """Ask on the rendered text, piece by piece, the summary so far in front of each."""
        window = self._wanted.room if self._window is None else self._window
        size = max(int((window - self._wanted.summary * MOST_OVER) * PIECE_SHARE), PIECE_MIN)
        said: str | Refused | Gone = Refused("there is nothing to ask about")
        for _ in range(HALVINGS):
            said = await self._rolling(planned, size)
            if not (isinstance(said, Refused) and said.too_long):
                return said
            size = max(size // 2, PIECE_MIN)
        return said

    async def _rolling(self, planned: Plan, size: int) -> str | Refused | Gone:
        header = self._world.requests.header
        texts = pieces(planned.head, size, MAX_PIECES)
        summary = ""
        for number, text in enumerate(texts, 1):
            asked = piece_request(
                text,
                header,
                self._wanted,
                before=summary,
                part=(number, len(texts)),
                focus=self._focus,
            )
            answer = await self._ask(asked, estimate(asked.messages, system=asked.system))
            said = self._judged(answer, planned.replaced)
            if not isinstance(said, str):
                return said
            summary = said
        return summary or Refused("there is no text to ask about")

    def _judged(self, answer: _Answer | Refused | Gone, replaced: int) -> str | Refused | Gone:
        if not isinstance(answer, _Answer):
            return answer
        verdict = judged(answer.content, answer.finish, replaced, self._wanted)
        return Refused(verdict.reason) if isinstance(verdict, Rejected) else verdict

    async def _ask(self, asked: Request, tokens: int) -> _Answer | Refused | Gone:
        """One question, retried by the same policy as every model call."""
        world = self._world
        profile = world.requests.endpoint.profile
        try:
            wire = dialects.encode(asked, profile)
        except CallerError as error:
            return Refused(f"the request cannot be written: {error}")
        if dialects.violations(wire.body, wire.dialect, profile):
            return Refused("the request breaks its protocol's rules")
        began_ms, retry = world.clock_ms(), 0
        while True:
            if self._over_budget():
                return Refused("the budget is used up")
            answer = await self._call(wire, tokens)
            if isinstance(answer, _Answer):
                return answer
            retry += 1
            decision = after_failure(
                self._rules.retry,
                answer,
                retry=retry,
                elapsed_s=(world.clock_ms() - began_ms) / 1000,
                jitter=world.jitter(),
            )
            if not isinstance(decision, RetryAfter):
                return _ending(answer)
            delay_ms = round(decision.delay_s * 1000)
            await self._tell(Retrying(retry=retry, code=answer.code, delay_ms=delay_ms, of="summary"))
            await world.sleep(decision.delay_s)

    async def _call(self, wire: WireRequest, tokens: int) -> _Answer | Failure:
        world = self._world
        world.append(CompactionCall(self._compaction, input_estimate=tokens, spent=self.usage))
        await world.log.flush()
        ratio = None if self._window is None else tokens / self._window
        said: list[str] = []
        meter = OutputMeter(world)
        try:
            async with world.models.stream(
                world.requests.endpoint, wire, input_estimate=tokens, context_ratio=ratio
            ) as stream:
                async for chunk in stream:
                    if isinstance(chunk, (TextDelta, ReasoningDelta)):
                        said.append(chunk.text)
                        meter.add(chunk.text)
                    elif isinstance(chunk, ToolCallDelta):
                        meter.add(chunk.arguments)
        except asyncio.CancelledError:
            # It was sent, so it is billed.
            written = text_tokens("".join(said))
            self._count(Usage(input_tokens=tokens, output_tokens=written, estimated=True))
            raise
        finally:
            meter.close()
        decoded = stream.result
        self._count(decoded.usage)
        why: Failure | None = decoded.finish.failure
        return _Answer(decoded.content, decoded.finish.reason) if why is None else why

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def _over_budget(self) -> bool:
        budget, spent = self._rules.budget, self.usage or Usage()
        if budget.tokens is not None and self._spent_before + spent.context_tokens >= budget.tokens:
            return True
        price = self._rules.price
        if budget.cost_usd is None or price is None:
            return False
        return price.of(self._world.context.usage) + price.of(spent) >= budget.cost_usd


def _ending(why: Failure) -> Refused | Gone:
    """What a failure that is not retried (any more) leaves to be tried."""
    if why.code in HOPELESS:
        return Gone(why)
    way = disposition(why)
    if way == "retry" and why.code not in ("EMPTY_RESPONSE", "MALFORMED_TOOL_CALL", "MALFORMED_RESPONSE"):
        return Gone(why)  # The provider is down: nothing is wrong with the question.
    return Refused(why.message, too_long=way == "compact" or why.code == "REQUEST_TOO_LARGE")

"""Compaction at work: carries out ``history.compact`` with a model, a log and time.

Each compaction is a transaction in the log: its start is durable before a model is asked, its summary and its
end are written together. A crash in between leaves the old history, with the start closed when the session
is opened again. Ways out, one behind the other: pruning long results, a summary of the history as it was last
sent, the rendered text in pieces, a digest that no model makes.
"""

import asyncio
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ..history.compact import PRUNE_ENOUGH, SEVERITIES, Limits, Plan, limits, long_results, plan
from ..history.fact_search import gather
from ..history.meter import BODY_CHARS_MAX
from ..history.plain_text import digest
from ..history.summary import composed
from ..history.window import THRESHOLD
from ..schema.events import CompactionEnd, CompactionStart, CompactionSummary, Prune
from ..schema.failures import Failure, failure
from ..schema.usage import Usage
from .events import Compacted, Compacting, UserEvent
from .inputs import CompactionDone
from .state import Rules
from .summariser import Gone, Summariser, Tell

if TYPE_CHECKING:
    from .world import World

Trigger: TypeAlias = Literal["manual", "threshold", "overflow"]
Method: TypeAlias = Literal["model", "pieces", "digest", "prune"]
UNKNOWN_SHARE: Final = 0.85
"""Of a refused request: the window, where neither anybody nor a refusal named one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one compaction came to."""

    told: Compacted | None
    """None: the history is as it was."""
    failure: Failure | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class _Round:
    """What one attempt to make room may do."""

    trigger: Trigger
    severity: int
    window: int
    """Tokens to aim for."""
    known: int | None
    """What a request for a summary may have."""
    wanted: Limits
    focus: str | None
    before: int
    """Tokens of the history."""
    tell: Tell


@dataclass(frozen=True, slots=True)
class _Summary:
    method: Literal["model", "pieces", "digest"]
    text: str
    usage: Usage | None


class Compactor:
    """Makes the history of one session shorter. One compaction at a time."""

    def __init__(self, world: "World", rules: Rules) -> None:
        self._world = world
        self._rules = rules

    async def compact(
        self,
        trigger: Literal["threshold", "overflow"],
        severity: int,
        tell: Tell,
    ) -> CompactionDone:
        """For a turn; see ``driver.Compactor``."""
        outcome = await self.run(trigger, severity=severity, tell=tell)
        if outcome.told is not None:
            await tell(outcome.told)
        return CompactionDone(outcome.told is not None, outcome.failure, outcome.usage)

    async def run(
        self, trigger: Trigger, *, severity: int = 0, focus: str | None = None, tell: Tell | None = None
    ) -> Outcome:
        """Shorten the history until it fits well, giving up more each time round; at most three times.

        ``tell`` hears when a model is asked, and of retries. Cancelled, it leaves the log with its compaction
        closed or not begun.
        """
        requests, context = self._world.requests, self._world.context
        size = requests.meter.size(context)
        before = size.tokens
        known = requests.window(context)
        fixed = requests.meter.likely(requests.meter.fixed)
        if known is not None and fixed >= known:
            return Outcome(None, no_room(fixed, known))
        window = _aim(trigger, known, before)
        if size.body_chars >= BODY_CHARS_MAX * THRESHOLD:
            window = min(window, before // 2)  # The body is what must shrink, whatever the window.
        spent: Usage | None = None
        method: Method | None = None
        why: Failure | None = None
        for level in range(severity, SEVERITIES if trigger != "manual" else severity + 1):
            wanted = limits(window, requests.meter.fixed, level)
            now = _Round(trigger, level, window, known, wanted, focus, before, tell or _nobody)
            done, why, usage = await self._once(now)
            spent = _sum(spent, usage)
            method = done or method
            if why is not None or (done and requests.estimate(context) < window * THRESHOLD):
                break
        requests.compacted(context)
        after = requests.estimate(context)
        if method is None:
            return Outcome(None, why, spent)
        return Outcome(Compacted(trigger, method, before, after), why, spent)

    async def _once(self, now: _Round) -> tuple[Method | None, Failure | None, Usage | None]:
        world = self._world
        pruned = self._prune(now)
        size = world.requests.estimate(world.context)
        enough = pruned and now.trigger != "manual" and size <= now.window * PRUNE_ENOUGH
        planned = None if enough else plan(world.context.messages, world.context.is_prompt, now.wanted)
        if planned is None:
            await world.log.flush()
            return ("prune" if pruned else None), None, None
        made = await self._transaction(now, planned)
        if isinstance(made, CompactionEnd):
            return ("prune" if pruned else None), made.failure, made.usage
        return made.method, None, made.usage

    def _prune(self, now: _Round) -> bool:
        seqs = long_results(self._world.context.messages, now.wanted, spare_last=now.severity == 0)
        if seqs:
            self._world.append(Prune(seqs, now.wanted.head_chars, now.wanted.tail_chars))
        return bool(seqs)

    async def _transaction(self, now: _Round, planned: Plan) -> _Summary | CompactionEnd:
        """Start, summary and end; or the end of a compaction that was not applied."""
        world = self._world
        facts = gather(planned.head, world.context.facts)
        start = CompactionStart(
            id=f"c{secrets.token_hex(6)}",
            trigger=now.trigger,
            keep_from_seq=planned.keep_from_seq,
            keep_prompts=planned.keep_prompts,
            shorten=planned.shorten,
            head_chars=planned.head_chars,
            tail_chars=planned.tail_chars,
        )
        world.append(start)
        await world.log.flush()
        summariser = Summariser(
            world,
            self._rules,
            now.wanted,
            compaction=start.id,
            window=now.known,
            focus=now.focus,
            tell=now.tell,
        )
        try:
            made = await self._summary(summariser, now, planned)
        except asyncio.CancelledError:
            world.append(CompactionEnd(start.id, applied=False, usage=summariser.usage))
            raise
        if isinstance(made, Gone):
            end = CompactionEnd(start.id, applied=False, failure=made.failure, usage=summariser.usage)
            world.append(end)
            await world.log.flush()
            return end
        by_model, prompts = made.method != "digest", bool(planned.keep_prompts)
        summary = CompactionSummary(
            id=start.id,
            content=composed(made.text, facts, now.wanted, by_model=by_model, prompts=prompts),
            usage=made.usage,
            method=made.method,
            files_read=facts.files_read,
            files_changed=facts.files_changed,
            tasks=facts.tasks,
        )
        world.append(summary, CompactionEnd(start.id, applied=True))
        await world.log.flush()
        return made

    async def _summary(self, summariser: Summariser, now: _Round, planned: Plan) -> _Summary | Gone:
        if now.severity == 0:
            await now.tell(Compacting(now.trigger, now.before))
            said = await summariser.whole(planned)
            if isinstance(said, str):
                return _Summary("model", said, summariser.usage)
            if not isinstance(said, Gone):
                said = await summariser.in_pieces(planned)
                if isinstance(said, str):
                    return _Summary("pieces", said, summariser.usage)
            # Before a request that may still fit, a provider that is down costs no history.
            if isinstance(said, Gone) and (said.hopeless or now.trigger != "overflow"):
                return said
        room = max(min(now.wanted.summary, planned.replaced * 3 // 4), 1)
        return _Summary("digest", digest(planned.head, room), summariser.usage)


def no_room(fixed: int, window: int) -> Failure:
    """Why shortening the history cannot help."""
    return failure(
        "CONTEXT_WINDOW_EXCEEDED",
        f"the system prompt and the tools alone take about {fixed:,} of the {window:,} tokens that the model "
        "takes: shorten them, offer fewer tools, or use a model with a larger window",
    )


async def _nobody(_: UserEvent) -> None:
    """Nobody watches."""


def _aim(trigger: Trigger, known: int | None, before: int) -> int:
    """The window to fit into; by hand and with room to spare, what there is now is the measure."""
    if trigger == "manual":
        return min(known or before, before)
    return int(before * UNKNOWN_SHARE) if known is None else known


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return first + second

"""The machine between turns, as the log leaves it (pure)."""

from ..history.context import Context
from ..session.log_state import LogState
from .carried import Carried
from .state import Queued, Rules, State


def waiting(log: LogState, context: Context) -> tuple[Queued, ...]:
    """Input that can be taken: what waits and, in a log with defects, the gate knows of as well."""
    items = [item for item in context.queued.values() if item.id in log.inputs]
    return tuple(Queued(item.id, item.content, item.mode) for item in items)


def machine_state(
    rules: Rules,
    log: LogState,
    context: Context,
    carried: Carried,
    *,
    provider: str,
    model: str,
    without: tuple[str, ...] = (),
) -> State:
    """The machine between turns, as the log leaves it.

    What the gate has a say in (the turn's number, input that can be taken) comes of the gate's own state:
    over a log with defects it may know more, or less, than the context. ``without``: offered tools that the
    model has refused.
    """
    return State(
        rules=rules,
        turn=log.turns,
        carried=carried.retries,
        server_failures=carried.server_failures,
        without=without,
        media=carried.amendments(provider, model).media,
        base_rung=context.recovered.get((provider, model), "normal"),
        queue=waiting(log, context),
        session_usage=context.usage,
        session_cost_usd=rules.price.of(context.usage) if rules.price else 0.0,
    )

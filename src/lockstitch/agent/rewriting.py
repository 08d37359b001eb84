"""Taking back what was said: undo, rewind and clear, each an appended event; the log keeps everything."""

from typing import TYPE_CHECKING

from ..history.context import Context
from ..schema.errors import CallerError
from ..schema.events import Clear, Undo
from .messages import ReadLog

if TYPE_CHECKING:
    from .world import World


async def undo(world: "World", read_log: ReadLog, turns: int) -> int:
    """The last ``turns`` turns that count no longer do; the number of the first of them.

    Raises CallerError if there are fewer.
    """
    live = world.context.live_turns
    if not 1 <= turns <= len(live):
        raise CallerError(f"{turns} turns cannot be undone: the conversation has {len(live)}")
    await _undo(world, read_log, live[-turns])
    return live[-turns]


async def rewind(world: "World", read_log: ReadLog, turn: int) -> None:
    """Go on as if ``turn`` had been the last; 0 goes back to the beginning. Raises CallerError on another."""
    live = world.context.live_turns
    if turn != 0 and turn not in live:
        known = ", ".join(map(str, live[-10:])) or "none"
        raise CallerError(f"there is no turn {turn} to go back to; the last that count: {known}")
    later = [number for number in live if number > turn]
    if later:
        await _undo(world, read_log, later[0])


async def clear(world: "World") -> None:
    """The model starts afresh; pages still show everything."""
    world.append(Clear())
    await world.log.flush()


async def complete(context: Context, read_log: ReadLog) -> Context:
    """The context, folded again where an undo went back behind more than memory had kept."""
    if not context.needed:
        return context
    again = Context(kept_rewrites=frozenset(context.needed))
    await read_log(again.apply)
    again.epoch = max(again.epoch, context.epoch) + 1  # Nothing that was made of the old one may be reused.
    return again


async def _undo(world: "World", read_log: ReadLog, to_turn: int) -> None:
    world.append(Undo(to_turn))
    await world.log.flush()
    world.context = await complete(world.context, read_log)

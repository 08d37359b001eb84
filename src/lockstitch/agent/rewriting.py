"""Taking back what was said: undo, rewind and clear, each an appended event; the log keeps everything."""

from typing import TYPE_CHECKING

from ..history.context import Context
from ..schema.errors import CallerError
from ..schema.events import Clear, Event, Undo
from .messages import ReadLog
from .session_fold import SessionFold

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


async def complete(fold: SessionFold, read_log: ReadLog) -> None:
    """Fold the context again where an undo went back behind more than memory had kept."""
    if not fold.context.needed:
        return
    again, last_seq = Context(kept_rewrites=fold.context.kept_rewrites), -1

    def take(event: Event) -> None:
        nonlocal last_seq
        again.apply(event)
        last_seq = event.seq

    with fold.watching() as meanwhile:
        await read_log(take)
    for event in meanwhile:  # input may be queued at any time
        if event.seq > last_seq:
            again.apply(event)
    again.epoch = max(again.epoch, fold.context.epoch) + 1  # Nothing made of the old one may be reused.
    fold.context = again


async def _undo(world: "World", read_log: ReadLog, to_turn: int) -> None:
    world.append(Undo(to_turn))
    await world.log.flush()
    await complete(world.fold, read_log)

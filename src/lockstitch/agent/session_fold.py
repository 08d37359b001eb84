"""Everything an agent folds from the events of a session, as one fold that can be saved (pure)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from ..history.context import Context
from ..history.saved_context import SavedContext, restored, saved, snapshot
from ..schema.events import Event
from .amendments import Amendments
from .carried import Carried


class _SavedCarried(msgspec.Struct, frozen=True, kw_only=True):
    """Named as in ``Carried``."""

    retries: int
    repairs: tuple[str, ...]
    server_failures: int
    allowed: tuple[str, ...]
    amended: tuple[tuple[str, str, Amendments], ...]
    """Provider, model, and what requests to it do without."""
    before: int
    in_step: int


class _Saved(msgspec.Struct, frozen=True):
    carried: _SavedCarried
    context: SavedContext


_DECODER: Final = msgspec.json.Decoder(_Saved)


class SessionFold:
    """See ``session.saving.SavingFold``. ``context`` may be replaced by one that was folded again."""

    version = "session"

    def __init__(self) -> None:
        self._watchers: list[list[Event]] = []
        self.reset()

    def reset(self) -> None:
        self.context = Context()
        self.carried = Carried()
        self.next_seq = 0

    def __call__(self, event: Event) -> None:
        self.context.apply(event)
        self.carried.apply(event)
        self.next_seq = event.seq + 1
        for seen in self._watchers:
            seen.append(event)

    @contextmanager
    def watching(self) -> Iterator[list[Event]]:
        """What is folded meanwhile, for who reads the log beside its writer."""
        seen: list[Event] = []
        self._watchers.append(seen)
        try:
            yield seen
        finally:
            self._watchers = [other for other in self._watchers if other is not seen]

    def save(self) -> Callable[[], bytes]:
        context, carried = snapshot(self.context), _saved_carried(self.carried)
        return lambda: msgspec.json.encode(_Saved(carried, saved(context)))

    def restore(self, data: bytes | memoryview, next_seq: int) -> None:
        try:
            value = _DECODER.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"it is no saved session: {error}") from error
        self.context = restored(value.context)
        self.carried = _restored_carried(value.carried)
        self.next_seq = next_seq


def _saved_carried(carried: Carried) -> _SavedCarried:
    return _SavedCarried(
        retries=carried.retries,
        repairs=tuple(sorted(key.decode() for key in carried.repairs)),
        server_failures=carried.server_failures,
        allowed=tuple(sorted(carried.allowed)),
        amended=tuple((*place, known) for place, known in carried.amended.items()),
        before=carried._before,
        in_step=carried._in_step,
    )


def _restored_carried(value: _SavedCarried) -> Carried:
    carried = Carried()
    carried.retries, carried.server_failures = value.retries, value.server_failures
    carried.repairs = {key.encode() for key in value.repairs}
    carried.allowed = set(value.allowed)
    carried.amended = {(provider, model): known for provider, model, known in value.amended}
    carried._before, carried._in_step = value.before, value.in_step
    return carried

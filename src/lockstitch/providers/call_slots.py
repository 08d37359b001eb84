"""Which call a delta belongs to, and who that call is: the identity rules of tool calls in a stream.

Gateways blank, repeat, fragment, delay and change ids and names, number calls from anywhere or not at all,
and let several calls share one number. The rules here are the product's promise that a call's identity, once
established, is never erased or altered (docs/decisions/0011 to 0013).
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..schema.blocks import Replay
from ..wire.json_scan import ObjectScan
from ..wire.pieces import PIECES_MAX, Pieces

ID_MAX: Final = 128 * 1024
"""Characters of a call's id. LiteLLM writes a thought's signature into it, which takes kilobytes
(https://github.com/BerriAI/litellm/issues/41534, read 2026-12-01)."""
_SIGNED: Final = re.compile(r"[!-~]*__thought__[!-~]+")
NAME_MAX: Final = 1024
"""Characters of a call's name; no provider takes more than 128."""


def is_signed(id: str) -> bool:
    """Whether an id holds the signature of a thought."""
    return len(id) <= ID_MAX and _SIGNED.fullmatch(id) is not None


@dataclass(slots=True)
class Call:
    """One tool call while it streams."""

    index: int
    """Of its block."""
    id: str | None = None
    name: str | None = None
    parts: list[str] = field(default_factory=list)
    """Pieces of the arguments, in order; of many, the latest."""
    slot: Hashable | None = None
    """The provider's number for it; None while it has none."""
    whole: str | None = None
    """Arguments the provider gave at the end in place of the pieces."""
    fragment: bool = False
    """The name is no offered tool's but begins one's: it may yet come whole, so it is shown only at the
    end."""
    shown_name: bool = False
    shown_id: bool = False
    shown_parts: int = 0
    """Of ``parts``."""
    extra: Mapping[str, Any] | None = None
    replay: Replay | None = None
    scan: ObjectScan | None = None
    scanned_parts: int = 0
    """Of ``parts``, once there is a scan."""
    pieces: Pieces = field(default_factory=Pieces)
    """All of the arguments; its latest are ``parts``."""

    def __post_init__(self) -> None:
        self.pieces.latest = self.parts

    @property
    def arguments(self) -> str:
        return self.pieces.text() if self.whole is None else self.whole

    def settle(self) -> None:
        """Join the parts to those before, if they are many and given out."""
        if self.shown_parts == len(self.parts) >= PIECES_MAX:
            if self.scan is not None:
                self._scan_on(self.scan)
            self.pieces.settle()
            self.shown_parts = self.scanned_parts = 0

    @property
    def complete(self) -> bool:
        """Whether the arguments so far are one whole JSON object. Each piece is scanned once, and only if
        asked.
        """
        if self.scan is None:
            self.scan = ObjectScan()
            self.scan.feed(self.pieces.text())
        else:
            self._scan_on(self.scan)
        self.scanned_parts = len(self.parts)
        return self.scan.complete

    def _scan_on(self, scan: ObjectScan) -> None:
        for piece in self.parts[self.scanned_parts :]:
            scan.feed(piece)


@dataclass(slots=True)
class CallDelta:
    """What one entry says, reduced to what counts: only non-empty strings identify."""

    slot: Hashable | None = None
    """None: the entry has no usable number."""
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    follows: bool = False
    """An earlier entry of the same list went before it, so it cannot continue what came in an earlier
    delta.
    """
    whole_slot: bool = False
    """The slot is known to be that of one call: whatever it says, it opens no other."""


class CallSlots:
    """Routes deltas to calls and settles their identity."""

    def __init__(self, tools: Sequence[str]) -> None:
        self.calls: list[Call] = []
        """In order of opening."""
        self.ids: set[str] = set()
        """Every id that occurred, those that did not count included."""
        self.conflicts = 0
        """Deltas whose id or name differed from an established one."""
        self._tools = tuple(name for name in tools if name)
        self._last: dict[Hashable, Call] = {}
        """The call that each slot holds now: the one named last."""
        self._by_slot: dict[tuple[Hashable, str], Call] = {}
        """Calls by slot and id: several may share a slot."""
        self._by_id: dict[str, Call] = {}
        self._open: Call | None = None

    def route(self, delta: CallDelta, next_index: int) -> tuple[Call, bool]:
        """The call that ``delta`` belongs to, and whether it is new; a new one gets block ``next_index``.

        Identity is settled, arguments are not added: that is the caller's, after it has shown the name.
        """
        call = self._find(delta)
        opened = call is None
        if call is None:
            call = Call(index=next_index, slot=delta.slot)
            self.calls.append(call)
        self._open = call
        self._identify(call, delta)
        if delta.slot is not None:
            self._bind(call, delta.slot)
        if delta.id is not None:
            self.ids.add(delta.id)
        return call, opened

    def continues(self, slot: Hashable, id: str | None) -> Call | None:
        """The slot's last call, if a delta without a name and with this id plainly continues it. The hot
        path.
        """
        call = self._last.get(slot)
        if call is None or (id is not None and id != call.id):
            return None
        self._open = call
        return call

    def last_in(self, slot: Hashable) -> Call | None:
        """The call that a slot holds now."""
        return self._last.get(slot)

    def complete_name(self, slot: Hashable, whole: str) -> None:
        """The whole name of a slot's last call, given again at its end: completes a fragment, and nothing
        else.
        """
        call = self._last.get(slot)
        if call is None or call.name is None or not (call.fragment and self._offered(whole)):
            return
        if not call.shown_name and whole.startswith(call.name):
            call.name = whole
            call.fragment = False

    def _find(self, delta: CallDelta) -> Call | None:
        if delta.slot is None:
            return self._find_unnumbered(delta)
        last = self._last.get(delta.slot)
        if last is None:
            return self._find_in_fresh_slot(delta)
        if delta.id is not None and (known := self._by_slot.get((delta.slot, delta.id))) is not None:
            return known
        return None if not delta.whole_slot and self._opens(last, delta) else last

    def _find_unnumbered(self, delta: CallDelta) -> Call | None:
        if delta.id is not None and delta.id in self._by_id:
            return self._by_id[delta.id]
        call = self._open
        if call is None:
            return None
        unseen_id = delta.id is not None
        if unseen_id and delta.name is not None and call.id is not None:
            return None
        if delta.follows and not unseen_id and delta.name is not None:
            return None
        return None if self._opens(call, delta) else call

    def _find_in_fresh_slot(self, delta: CallDelta) -> Call | None:
        if delta.name is not None:
            return None
        if delta.id is not None:
            # A number that changes inside a call, under the id it began with.
            known = self._by_id.get(delta.id)
            return known if known is not None and not known.complete else None
        call = self._open
        return call if call is not None and call.slot is None else None

    def _opens(self, call: Call, delta: CallDelta) -> bool:
        """Whether a delta for a slot that is taken by ``call`` begins another call."""
        if delta.name is None:
            return False
        if delta.id is None:
            return delta.arguments.lstrip().startswith("{") and call.complete
        if delta.id in self._by_id:
            return False
        if call.id is None:
            return delta.arguments.lstrip().startswith("{") and call.complete
        return (call.name is not None and call.name != delta.name) or call.complete

    def _bind(self, call: Call, slot: Hashable) -> None:
        self._last[slot] = call
        if call.slot is None:
            call.slot = slot
        if call.id is not None:
            self._by_slot.setdefault((slot, call.id), call)

    def _identify(self, call: Call, delta: CallDelta) -> None:
        self._settle_identity(call, delta)
        call.fragment = call.name is not None and not self._offered(call.name) and self._begins(call.name)

    def _settle_identity(self, call: Call, delta: CallDelta) -> None:
        new_id = delta.id is not None and delta.id != call.id and call.id is not None
        if delta.id is not None and call.id is None:
            call.id = delta.id
            self._by_id.setdefault(delta.id, call)
        if delta.name is not None and delta.name != call.name:
            if call.name is None:
                call.name = delta.name
            elif (joined := self._longer_name(call, delta.name)) and not new_id:
                call.name = joined
            else:
                self.conflicts += 1
                return
        if new_id:
            self.conflicts += 1

    def _longer_name(self, call: Call, said: str) -> str | None:
        """The name after one more piece of it, while it is provisional; None if ``said`` is no such piece."""
        assert call.name is not None
        if call.shown_name or call.parts:
            return None
        joined = call.name + said
        if said.startswith(call.name) and not (self._offered(call.name) and not self._begins(said)):
            return said if self._begins(said) or not self._begins(joined) else joined
        return joined if self._begins(joined) else None

    def _offered(self, name: str) -> bool:
        return name in self._tools

    def _begins(self, name: str) -> bool:
        return any(tool.startswith(name) for tool in self._tools)

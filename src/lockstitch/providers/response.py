"""Builds the chunks of one response, for every protocol.

A translator reads its protocol and says what a frame says: ``text``, ``reasoning``, ``call``, ``usage``,
``reason``, ``failed``. The builder numbers the blocks, settles the identity of calls, sorts think tags and
markup out of the text, and decides the ending. Every method may be called at any time and in any order; after
the Finish all are inert. Chunks pile up until ``take`` hands them over.

    builder = ResponseBuilder("my-protocol", profile, tools, mint)
    builder.text("Hello", part=0)                      # part: the provider's number of a block, or nothing
    builder.call(CallDelta(slot=1, id="c", name="ls", arguments="{}"))
    builder.usage(Usage(input_tokens=3))
    builder.reason("tool_calls")
    builder.close()                                    # the protocol's own end; ``end`` when only the body
    ended chunks = builder.take()
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ..schema.blocks import Image, Opaque, Replay
from ..schema.chunks import BlockEnd, Finish, UsageChunk
from ..schema.failures import Failure, failure
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..schema.usage import Usage
from ..wire import strict_json
from ..wire.visible import is_visible
from . import frames
from .call_slots import ID_MAX, NAME_MAX, Call, CallDelta, CallSlots
from .classify import bounded
from .markup_calls import MarkedCall
from .note_book import NoteBook
from .other_protocols import protocol_of, wrong_protocol
from .response_blocks import BLOCKS_MAX, BlockWriter, Slot, finished_block
from .response_verdict import cause_of_cut, why_no_answer
from .split_characters import SplitCharacters, rest_of
from .text_sorter import TextSorter
from .think_tags import Part
from .translator import OVER_OUR_LIMIT, Mint

Reason: TypeAlias = Literal["stop", "tool_calls", "length"]
_SEVERITY: Final[Mapping[str, int]] = {"stop": 0, "tool_calls": 1, "length": 2}
_NO_ARGUMENTS: Final = "{}"
_EMPTY_START: Final = re.compile(r'\{\}\s*(?=\{\s*")')
_SHARING_MAX: Final = 64
"""Of the calls that share a slot, those that are looked at."""
_MINT_TRIES: Final = 100
"""Ids asked of a mint before our own are used: one that repeats itself must not hang the response."""


class ResponseBuilder:
    """One response while it streams. See the module for how a translator uses it."""

    def __init__(
        self, dialect: str, profile: Profile, tools: Sequence[str] = (), mint: Mint | None = None
    ) -> None:
        self.replay: Replay | None = None
        """What the provider wants back with the whole response; goes into the Finish."""
        self.finished = False
        self.notebook = NoteBook()
        self._dialect = dialect
        self._profile = profile
        self._mint = mint
        self._minted = 0
        self._writer = BlockWriter(self._overflow)
        self.take = self._writer.take
        """The chunks since the last ``take``."""
        self._sorter = TextSorter(profile.markup_calls, tools)
        self._think = self._sorter.think
        self._calls = CallSlots(tools)
        self._doubtful: set[int] = set()
        """Blocks of calls whose arguments are anybody's guess: pieces came that may belong to any of them."""
        self._call_last = False
        """The last thing that came was a call."""
        self._usage: Usage | None = None
        self._reason: Reason | None = None
        self._failure: Failure | None = None
        self._unreadable: str | None = None
        self._spoken: str | None = None
        """Another protocol, whose frames came."""
        self._split: SplitCharacters | None = None

    @property
    def begun(self) -> bool:
        """Text, reasoning, a call or another block came."""
        return bool(self._writer.slots) or self._sorter.holding

    @property
    def terminal_seen(self) -> bool:
        """A finish reason or an error of the provider came: the response is decided, if not at its end."""
        return self._reason is not None or self._failure is not None

    @property
    def refused(self) -> bool:
        """An error of the provider came. A further one changes nothing, and need not be classified."""
        return self._failure is not None

    @property
    def well(self) -> bool:
        """A finish reason came, and no error of the provider."""
        return self._reason is not None and self._failure is None

    @property
    def calls(self) -> Sequence[Call]:
        """In order of opening."""
        return self._calls.calls

    @property
    def notes(self) -> list[Note]:
        return [*self.notebook.notes(), *(self._split.notes if self._split is not None else ())]

    def keep_halves(self) -> None:
        """From here on pieces may begin and end with half a character; its halves are put together again."""
        if self._split is None:
            split, take = SplitCharacters(), self._writer.take
            self._split = split
            self.take = lambda: split.mended(take())

    # ---- text and reasoning ------------------------------------------------------------------

    def text(self, piece: str, *, part: Hashable = None) -> None:
        """More of the answer. Pieces of one part form one block; an empty piece opens nothing."""
        if self.finished or not piece:
            return
        if self._call_last and is_visible(piece):
            self._call_last = False
        if self._think.passing:
            self._writer.text(self._sorter.passed(piece) if self._sorter.filters else piece, part)
        else:
            self._give(self._sorter.text(piece), part)

    def annotate_text(
        self, *, part: Hashable, extra: Mapping[str, Any] | None = None, replay: Replay | None = None
    ) -> None:
        """What belongs to a text block beside its text. Nothing if no text came."""
        slot = self._writer.opened("text", part)
        if slot is not None and not self.finished:
            slot.extra = extra if extra is not None else slot.extra
            slot.replay = replay if replay is not None else slot.replay

    def reasoning(self, piece: str, *, part: Hashable = None) -> None:
        """More reasoning, from a field of its own. Pieces of one part form one block."""
        if self.finished or not piece:
            return
        self._call_last = False
        self._writer.reasoning(self._sorter.reasoning(piece), part)

    def seal_reasoning(
        self,
        *,
        part: Hashable = None,
        signature: str | None = None,
        redacted: str | None = None,
        extra: Mapping[str, Any] | None = None,
        replay: Replay | None = None,
    ) -> None:
        """What belongs to a reasoning block beside its text; opens the block if no text came. None changes
        nothing.
        """
        if self.finished:
            return
        slot = self._writer.open("reasoning", part)
        slot.signature = signature if signature is not None else slot.signature
        slot.redacted = redacted if redacted is not None else slot.redacted
        slot.extra = extra if extra is not None else slot.extra
        slot.replay = replay if replay is not None else slot.replay

    def block(self, whole: Image | Opaque, *, visible: bool = False) -> None:
        """A block in one piece. ``visible``: it counts as an answer."""
        if not self.finished:
            self._call_last = False
            self._writer.whole(whole, visible=visible)

    # ---- calls -------------------------------------------------------------------------------

    def call(self, delta: CallDelta) -> Call | None:
        """One entry about a call; returns the call it belongs to. An entry that says nothing is no call."""
        if self.finished or not (delta.id or delta.name or delta.arguments):
            return None
        if len(delta.id or "") > ID_MAX or len(delta.name or "") > NAME_MAX:
            self.note("identity_too_long")
            delta.id = delta.id if len(delta.id or "") <= ID_MAX else None
            delta.name = delta.name if len(delta.name or "") <= NAME_MAX else None
        if self._split is not None:
            delta.id, delta.name = self._split.clean(delta.id), self._split.clean(delta.name)
        if not self._call_last:
            self._call_last = True
            self._give(self._sorter.pause(), self._writer.text_part)
        call, opened = self._calls.route(delta, len(self._writer.slots))
        if opened:
            self._writer.call(call)
        if delta.arguments:
            call.parts.append(delta.arguments)
        self._writer.settled(call)
        return call

    def call_arguments(self, slot: Hashable, piece: str, id: str | None = None) -> Call | None:
        """More arguments of the last call in a slot, which it returns: ``call`` for the plain case, cheaper.
        None
        if it is not that, and nothing happened.
        """
        call = self._calls.continues(slot, id)
        if call is None or self.finished:
            return None
        if piece:
            self._call_last = True
            call.parts.append(piece)
            self._writer.arguments(call, piece)
        return call

    def complete_name(self, slot: Hashable, whole: str) -> None:
        """The whole name of a slot's last call, given again at its end: completes one that came in part."""
        if not self.finished:
            self._calls.complete_name(slot, whole)

    def complete_arguments(self, slot: Hashable, whole: str) -> None:
        """The whole arguments of a slot's last call, given again at its end: they replace what was collected,
        but no empty object erases anything (https://github.com/earendil-works/pi/pull/917, read 2026-12-01).
        """
        call = self._calls.last_in(slot)
        if call is None or self.finished or not whole:
            return
        said = call.arguments
        if said and whole.strip() == _NO_ARGUMENTS:
            return
        rest = rest_of(whole, said) if call.whole is None else None
        if rest:
            call.parts.append(rest)
            self._writer.settled(call)
        elif rest is None and whole != said:
            call.whole = whole
            self.note("arguments_replaced", call.name or "")

    def doubt(self, slots: Iterable[Hashable]) -> dict[Hashable, None]:
        """Arguments come that do not say whose they are, and may belong to a call in any of these slots. If
        several of those are unfinished none can be run, and from then on no call that is said so. Returns
        the slots that need not be left out the next time.
        """
        unfinished = {
            slot: call
            for slot in slots
            if (call := self._calls.last_in(slot)) is not None and not call.complete
        }
        if self._doubtful or len(unfinished) > 1:
            self._doubtful.update(call.index for call in unfinished.values())
        return {} if self._doubtful else dict.fromkeys(unfinished)

    def doubt_sharing(self, slot: Hashable | None) -> None:
        """Arguments come for several calls of one slot at once, which do not say whose they are."""
        latest = self._calls.calls[-_SHARING_MAX:]
        unfinished = [call for call in latest if call.slot == slot and not call.complete]
        if len(unfinished) > 1:
            self._doubtful.update(call.index for call in unfinished)

    # ---- usage, oddities, endings ------------------------------------------------------------

    def usage(self, usage: Usage | None) -> None:
        """The token counts known now, in place of those before; None changes nothing."""
        if usage is not None and not self.finished:
            self._usage = usage

    def note(self, kind: str, detail: str = "") -> None:
        """An oddity that was survived; kinds are those of ``note_kinds``."""
        self.notebook.add(kind, detail)

    def unreadable(self, data: bytes, reason: str) -> None:
        """A frame that is not JSON. Only noted if the response comes to its end all the same."""
        start = data[:120].decode("utf-8", "replace")
        self._unreadable = self._unreadable or f"{start!r} ({reason})"
        self.note("frame_not_json", f"{start!r}: {reason}")

    def not_ours(self, value: Mapping[str, Any], event: str = "") -> None:
        """A frame that the protocol does not know; if it is another's and nothing else comes, that is why."""
        spoken = self._spoken or protocol_of(value, event)
        self._spoken = spoken if spoken != self._dialect else None

    def reason(self, reason: Reason) -> None:
        """A finish reason. Of several the gravest stays: a cut is never taken for an end."""
        if self._reason is None or _SEVERITY[reason] > _SEVERITY[self._reason]:
            self._reason = reason

    def failed(self, reported: Failure) -> None:
        """An error that the provider itself reported; the first one stays and decides the ending."""
        if self._failure is None:
            self._failure = reported

    def close(self) -> None:
        """The protocol's own end was seen."""
        if (otherwise := self._otherwise()) is not None:
            self.failed(otherwise)
        self.reason("stop")
        self._finish()

    def end(self, strays: bytes = b"") -> None:
        """The body ended. Without a finish reason the stream was cut, and the cause is looked for."""
        if not self.finished and not self.terminal_seen:
            reported = frames.reported_in_text(strays, dialect=self._dialect, profile=self._profile)
            self._failure = reported or self._otherwise() or cause_of_cut(strays, self._unreadable)
        self._finish()

    def fail(self, cause: Failure, *, aborted: bool = False) -> None:
        """The body will not come to its end, because of ``cause``. What the provider said before wins, unless
        the caller ``aborted``.
        """
        if self.finished:
            return
        if aborted:
            self._give(self._sorter.end(), self._writer.text_part)
            self._finish_with(Finish("aborted", cause))
            return
        if self._reason is not None and self._failure is None:
            self.note("broken_after_finish", f"{cause.code}: {cause.message}")
        elif self._failure is None:
            self._failure = self._otherwise() or cause
        self._finish()

    # ---- how it ends -------------------------------------------------------------------------

    def _finish(self) -> None:
        if self.finished:
            return
        self._give(self._sorter.end(), self._writer.text_part)
        self._note_oddities()
        marked = self._marked_calls()
        refusal = self._failure or why_no_answer(
            self._calls.calls, marked, self._reason, self._profile, self._writer
        )
        if refusal is not None:
            self._finish_with(Finish("error", refusal))
            return
        for marked_call in marked or ():
            self._open_marked_call(marked_call)
        self._settle_calls()
        cut = self._cut_call()
        for slot in self._writer.slots:
            self._writer.write(BlockEnd(slot.index, finished_block(slot, self._invalid(slot, cut))))
        reason = self._reason or "stop"
        if self._calls.calls and reason == "stop":
            reason = "tool_calls"
        self._finish_with(Finish(reason, replay=self.replay))

    def _finish_with(self, finish: Finish) -> None:
        if self._usage is not None:
            self._writer.write(UsageChunk(self._usage))
        if finish.failure is not None:
            finish = Finish(finish.reason, bounded(finish.failure), finish.replay)
        self._writer.write(finish)
        self._writer.close()
        self.finished = True

    def _overflow(self) -> None:
        """Too many blocks: the response ends here, whatever is still to come."""
        text = f"the answer has more than {BLOCKS_MAX:,} blocks; ask for less"
        self._finish_with(
            Finish("error", self._failure or failure("OUTPUT_LIMIT", text, subkind=OVER_OUR_LIMIT))
        )

    def _otherwise(self) -> Failure | None:
        """What is wrong if all that came is of another protocol."""
        if self._spoken is None or self.terminal_seen or self.begun:
            return None
        return wrong_protocol(self._dialect, self._spoken)

    def _settle_calls(self) -> None:
        """Gives every call an id, and shows those that arguments never settled."""
        seen: set[str] = set()
        for call in self._calls.calls:
            if call.id is None:
                call.id = self._fresh_id()
                self.note("call_id_minted", call.name or "")
            if call.id in seen:
                self.note("duplicate_call_id", call.id)
            seen.add(call.id)
            self._writer.settled(call, ended=True)
            self._drop_empty_start(call)

    def _drop_empty_start(self, call: Call) -> None:
        """Gateways before Anthropic's models pass on the empty object that a call starts with there
        (https://github.com/openai/openai-agents-js/pull/712, read 2026-12-01)."""
        if found := _EMPTY_START.match(said := call.arguments):
            call.whole = said[found.end() :]
            self.note("empty_arguments_first", call.name or "")

    def _cut_call(self) -> Call | None:
        """The call that the output limit cut: the last one, unless something followed it."""
        if self._reason != "length" or not self._calls.calls or not self._call_last:
            return None
        return self._calls.calls[-1]

    def _invalid(self, slot: Slot, cut: Call | None) -> str | None:
        if not isinstance(slot, Call):
            return None
        if slot is cut:
            return "truncated"
        if slot.index in self._doubtful:
            return "not_told_apart"
        try:
            strict_json.arguments(slot.arguments)
        except strict_json.InvalidJson as error:
            self.note("invalid_arguments", f"{slot.name}: {error.reason}")
            return "truncated" if self._reason == "length" and error.kind == "not_json" else error.kind
        return None

    def _marked_calls(self) -> list[MarkedCall] | None:
        """Calls written as markup; with structured calls beside it markup is only removed."""
        if self._calls.calls:
            return []
        return self._sorter.calls(answered=self._writer.visible, cut=self._reason == "length")

    def _open_marked_call(self, marked: MarkedCall) -> None:
        usable = marked.id and len(marked.id) <= ID_MAX and marked.id not in self._calls.ids
        id = marked.id if marked.id and usable else self._fresh_id()
        call = Call(len(self._writer.slots), id, marked.name, [marked.arguments])
        self._calls.ids.add(id)
        self._calls.calls.append(call)
        self._writer.call(call)

    def _note_oddities(self) -> None:
        if self._calls.conflicts:
            self.notebook.add("identity_conflict", count=self._calls.conflicts)
        found = self._sorter.found(list(self._writer.texts()))
        if found is not None:
            self.note("text_tool_call", found)

    def _fresh_id(self) -> str:
        made = ""
        for _ in range(_MINT_TRIES if self._mint is not None else 0):
            assert self._mint is not None
            made = self._mint()
            if made and made not in self._calls.ids:
                break
        while not made or made in self._calls.ids:
            self._minted += 1
            made = f"call_{self._minted}"
        self._calls.ids.add(made)
        return made

    def _give(self, parts: list[Part], part: Hashable) -> None:
        for kind, piece in parts:
            if kind == "reasoning":
                self._writer.reasoning(piece, part)
            else:
                self._writer.text(piece, part)

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

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ..schema.blocks import Block, Image, Opaque, Reasoning, Replay, Text, ToolCall
from ..schema.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from ..schema.failures import Failure, failure
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..schema.usage import Usage
from ..wire import strict_json
from ..wire.visible import is_visible
from . import frames, markup, markup_calls
from .call_slots import Call, CallDelta, CallSlots
from .note_book import NoteBook
from .think_tags import Part, ThinkTags
from .translator import Mint

Reason: TypeAlias = Literal["stop", "tool_calls", "length"]
_SEVERITY: Final[Mapping[str, int]] = {"stop": 0, "tool_calls": 1, "length": 2}
_MINT_TRIES: Final = 100


@dataclass(slots=True)
class _TextSlot:
    """One text or reasoning block."""

    index: int
    kind: Literal["text", "reasoning"]
    parts: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: str | None = None
    extra: Mapping[str, Any] | None = None
    replay: Replay | None = None

    def block(self) -> Block:
        text = "".join(self.parts)
        if self.kind == "text":
            return Text(text, extra=self.extra, replay=self.replay)
        return Reasoning(
            text, signature=self.signature, redacted=self.redacted, extra=self.extra, replay=self.replay
        )


@dataclass(slots=True)
class _WholeSlot:
    """A block that came in one piece."""

    index: int
    whole: Image | Opaque

    def block(self) -> Block:
        return self.whole


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
        self._out: list[Chunk] = []
        self._slots: list[_TextSlot | _WholeSlot | Call] = []
        self._open: dict[tuple[str, Hashable], _TextSlot] = {}
        self._text_slot: _TextSlot | None = None
        """The text block written to last, with its part."""
        self._text_part: Hashable = None
        self._raw: dict[tuple[str, Hashable], list[str]] = {}
        """What was said of a numbered part, for ``complete_text`` and ``complete_reasoning``."""
        self._calls = CallSlots(tools)
        self._call_last = False
        """The last thing that came was a call."""
        self._think = ThinkTags()
        self._markup = markup.MarkupFilter(profile.markup_calls) if profile.markup_calls else None
        self._reasoning_markup = (
            markup.MarkupFilter(profile.markup_calls, code=False) if profile.markup_calls else None
        )
        self._visible = False
        self._usage: Usage | None = None
        self._reason: Reason | None = None
        self._failure: Failure | None = None
        self._unreadable: str | None = None

    # ---- what the response says ---------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Text, reasoning, a call or another block came."""
        return bool(self._slots) or self._think.holding

    @property
    def terminal_seen(self) -> bool:
        """A finish reason or an error of the provider came: the response is decided, if not at its end."""
        return self._reason is not None or self._failure is not None

    @property
    def calls(self) -> Sequence[Call]:
        """In order of opening."""
        return self._calls.calls

    def text(self, piece: str, *, part: Hashable = None) -> None:
        """More of the answer. Pieces of one part form one block; an empty piece opens nothing."""
        if self.finished or not piece:
            return
        if self._call_last and is_visible(piece):
            self._call_last = False
        if part is not None:
            self._raw.setdefault(("text", part), []).append(piece)
        if self._think.passing and self._markup is None:
            self._show_text(piece, part)
        else:
            self._sort(self._think.feed(piece), part)

    def complete_text(self, whole: str, *, part: Hashable) -> None:
        """The whole text of a part, given again at its end: adds what its pieces left out."""
        self.text(self._missing("text", part, whole), part=part)

    def reasoning(self, piece: str, *, part: Hashable = None) -> None:
        """More reasoning, from a field of its own. Pieces of one part form one block."""
        if self.finished or not piece:
            return
        self._call_last = False
        self._think.reasoning_came()
        if part is not None:
            self._raw.setdefault(("reasoning", part), []).append(piece)
        self._show_reasoning(piece, part)

    def complete_reasoning(self, whole: str, *, part: Hashable) -> None:
        """The whole reasoning of a part, given again at its end: adds what its pieces left out."""
        self.reasoning(self._missing("reasoning", part, whole), part=part)

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
        slot = self._slot("reasoning", part)
        slot.signature = signature if signature is not None else slot.signature
        slot.redacted = redacted if redacted is not None else slot.redacted
        slot.extra = extra if extra is not None else slot.extra
        slot.replay = replay if replay is not None else slot.replay

    def annotate_text(
        self, *, part: Hashable, extra: Mapping[str, Any] | None = None, replay: Replay | None = None
    ) -> None:
        """What belongs to a text block beside its text. Nothing if no text came."""
        slot = self._open.get(("text", part))
        if slot is not None and not self.finished:
            slot.extra = extra if extra is not None else slot.extra
            slot.replay = replay if replay is not None else slot.replay

    def block(self, whole: Image | Opaque, *, visible: bool = False) -> None:
        """A block in one piece. ``visible``: it counts as an answer."""
        if self.finished:
            return
        kind: Literal["image", "opaque"] = "image" if isinstance(whole, Image) else "opaque"
        self._call_last = False
        self._out.append(BlockStart(len(self._slots), kind))
        self._slots.append(_WholeSlot(len(self._slots), whole))
        self._visible = self._visible or visible

    def call(self, delta: CallDelta) -> Call | None:
        """One entry about a call; returns the call it belongs to. An entry that says nothing is no call."""
        if self.finished or not (delta.id or delta.name or delta.arguments):
            return None
        if not self._call_last:
            self._call_last = True
            self._sort(self._think.pause(), self._text_part)
        call, opened = self._calls.route(delta, len(self._slots))
        if opened:
            self._slots.append(call)
            self._out.append(BlockStart(call.index, "tool_call"))
        if delta.arguments:
            call.parts.append(delta.arguments)
        self._show_call(call)
        return call

    def call_arguments(self, slot: Hashable, piece: str, id: str | None = None) -> bool:
        """More arguments of the last call in a slot: ``call`` for the plain case, cheaper. False if it is not
        that.
        """
        call = self._calls.continues(slot, id)
        if call is None or self.finished:
            return False
        if piece:
            self._call_last = True
            call.parts.append(piece)
            if call.shown_name and call.shown_id:
                call.shown_parts += 1
                self._out.append(ToolCallDelta(call.index, piece))
            else:
                self._show_call(call)
        return True

    def complete_arguments(self, slot: Hashable, whole: str) -> None:
        """The whole arguments of a slot's last call, given again at its end: they replace what was
        collected.
        """
        call = self._calls.last_in(slot)
        if call is None or self.finished or not whole:
            return
        said = call.arguments
        if whole.startswith(said) and call.whole is None:
            if whole != said:
                call.parts.append(whole[len(said) :])
                self._show_call(call)
        elif whole != said:
            call.whole = whole
            self.note("arguments_replaced", f"{call.name}: the arguments at the end differ from their pieces")

    def usage(self, usage: Usage | None) -> None:
        """The token counts known now, in place of those before; None changes nothing."""
        if usage is not None and not self.finished:
            self._usage = usage

    def reason(self, reason: Reason) -> None:
        """A finish reason. Of several the gravest stays: a cut is never taken for an end."""
        if self._reason is None or _SEVERITY[reason] > _SEVERITY[self._reason]:
            self._reason = reason

    def failed(self, reported: Failure) -> None:
        """An error that the provider itself reported; the first one stays and decides the ending."""
        if self._failure is None:
            self._failure = reported

    def unreadable(self, data: bytes, reason: str) -> None:
        """A frame that is not JSON. Only noted if the response comes to its end all the same."""
        start = data[:120].decode("utf-8", "replace")
        self._unreadable = self._unreadable or f"{start!r} ({reason})"
        self.note("frame_not_json", f"{start!r}: {reason}")

    def note(self, kind: str, detail: str = "") -> None:
        self.notebook.add(kind, detail)

    # ---- endings -----------------------------------------------------------------------------

    def close(self) -> None:
        """The protocol's own end was seen."""
        self.reason("stop")
        self._finish()

    def end(self, strays: bytes = b"") -> None:
        """The body ended. Without a finish reason the stream was cut, and the cause is looked for."""
        if self.finished:
            return
        if not self.terminal_seen:
            self._failure = self._cause(strays)
        self._finish()

    def fail(self, cause: Failure, *, aborted: bool = False) -> None:
        """The body will not come to its end, because of ``cause``."""
        if self.finished:
            return
        if aborted:
            self._flush()
            self._end_with("aborted", cause)
        elif self.terminal_seen:
            if self._failure is None:
                self.note("broken_after_finish", f"{cause.code} after the finish reason: {cause.message}")
            self._finish()
        else:
            self._failure = cause
            self._finish()

    def take(self) -> list[Chunk]:
        """The chunks since the last ``take``."""
        out, self._out = self._out, []
        return out

    @property
    def notes(self) -> list[Note]:
        return self.notebook.notes()

    # ---- text and reasoning ------------------------------------------------------------------

    def _sort(self, parts: list[Part], part: Hashable) -> None:
        for kind, piece in parts:
            if kind == "reasoning":
                self._show_reasoning(piece, part)
            elif self._markup is None:
                self._show_text(piece, part)
            else:
                self._show_text(self._markup.feed(piece), part)

    def _show_text(self, piece: str, part: Hashable) -> None:
        if not piece:
            return
        slot = self._text_slot
        if slot is None or part != self._text_part:
            slot = self._text_slot = self._slot("text", part)
            self._text_part = part
        slot.parts.append(piece)
        if not self._visible:
            self._visible = is_visible(piece)
        self._out.append(TextDelta(slot.index, piece))

    def _show_reasoning(self, piece: str, part: Hashable) -> None:
        if self._reasoning_markup is not None:
            piece = self._reasoning_markup.feed(piece)
        if piece:
            slot = self._slot("reasoning", part)
            slot.parts.append(piece)
            self._out.append(ReasoningDelta(slot.index, piece))

    def _slot(self, kind: Literal["text", "reasoning"], part: Hashable) -> _TextSlot:
        slot = self._open.get((kind, part))
        if slot is None:
            slot = self._open[(kind, part)] = _TextSlot(len(self._slots), kind)
            self._slots.append(slot)
            self._out.append(BlockStart(slot.index, kind))
        return slot

    def _missing(self, kind: str, part: Hashable, whole: str) -> str:
        said = "".join(self._raw.get((kind, part), ()))
        if whole.startswith(said):
            return whole[len(said) :]
        if whole:
            self.note("text_differs", f"the {kind} given at the end of a part differs from its pieces")
        return ""

    def _flush(self) -> None:
        """Gives out what the filters held back."""
        self._sort(self._think.end(), self._text_part)
        if self._markup is not None:
            self._show_text(self._markup.end(), self._text_part)
        if self._reasoning_markup is not None and (rest := self._reasoning_markup.end()):
            slot = self._slot("reasoning", None)
            slot.parts.append(rest)
            self._out.append(ReasoningDelta(slot.index, rest))

    # ---- calls -------------------------------------------------------------------------------

    def _show_call(self, call: Call, *, ended: bool = False) -> None:
        """Gives out what is settled of a call. Its name is settled once arguments started or the call
        ended.
        """
        if call.name is None or not (call.parts or ended):
            return
        pieces = call.parts[call.shown_parts :]
        identified = call.id is not None and not call.shown_id
        if not pieces and not identified and call.shown_name:
            return
        self._out.append(
            ToolCallDelta(
                call.index,
                "".join(pieces),
                id=call.id if identified else None,
                name=None if call.shown_name else call.name,
            )
        )
        call.shown_parts = len(call.parts)
        call.shown_name = True
        call.shown_id = call.shown_id or identified

    def _fresh_id(self) -> str:
        for _ in range(_MINT_TRIES if self._mint is not None else 0):
            assert self._mint is not None
            made = self._mint()
            if made and made not in self._calls.ids:
                break
        else:
            made = ""
        while not made or made in self._calls.ids:
            self._minted += 1
            made = f"call_{self._minted}"
        self._calls.ids.add(made)
        return made

    # ---- the ending --------------------------------------------------------------------------

    def _cause(self, strays: bytes) -> Failure:
        found = frames.reported_in_text(strays, dialect=self._dialect, profile=self._profile)
        if found is not None:
            return found
        if self._unreadable is not None:
            return failure(
                "MALFORMED_RESPONSE", f"a frame of the stream is not JSON: {self._unreadable}; try again"
            )
        outside = " ".join(strays.decode("utf-8", "replace").split())[:200]
        said = f"; outside of the stream it says {outside!r}" if outside else ""
        return failure(
            "STREAM_CLOSED",
            f"the stream ended without a finish reason or a sentinel{said}; try again",
            subkind="clean_eof",
        )

    def _finish(self) -> None:
        if self.finished:
            return
        self._flush()
        marked = self._marked_calls()
        self._note_oddities()
        refusal = self._failure or self._refusal(marked)
        if refusal is not None:
            self._end_with("error", refusal)
            return
        for marked_call in marked or ():
            self._open_marked_call(marked_call)
        for call in self._calls.calls:
            if call.id is None:
                call.id = self._fresh_id()
                self.note("call_id_minted", f"the call of {call.name} came without an id")
            self._show_call(call, ended=True)
        cut = self._cut_call()
        self._out.extend(BlockEnd(slot.index, self._block(slot, cut)) for slot in self._slots)
        reason = self._reason or "stop"
        if self._calls.calls and reason == "stop":
            reason = "tool_calls"
        self._give_usage()
        self._out.append(Finish(reason, replay=self.replay))
        self.finished = True

    def _end_with(self, reason: Literal["error", "aborted"], cause: Failure) -> None:
        self._give_usage()
        self._out.append(Finish(reason, cause))
        self.finished = True

    def _give_usage(self) -> None:
        if self._usage is not None:
            self._out.append(UsageChunk(self._usage))

    def _refusal(self, marked: Sequence[markup_calls.MarkedCall] | None) -> Failure | None:
        """Why a response that came to its end is no answer all the same."""
        calls = self._calls.calls
        for call in calls:
            if call.name is None:
                return _malformed_call(f"tool call {call.id or call.index} never got a name")
            if call.id is None and self._profile.missing_call_id == "refuse":
                return _malformed_call(f"the call of tool {call.name!r} never got an id")
        if marked is None:
            return _malformed_call("the text holds marked-up tool calls that are incomplete or unreadable")
        if calls or marked or self._reason == "length":
            return None
        if self._reason == "tool_calls":
            return failure("EMPTY_RESPONSE", "the model stopped to call tools but called none; try again")
        if not self._visible:
            only = "reasoning but no answer" if self._slots else "nothing"
            return failure("EMPTY_RESPONSE", f"the model ended its turn with {only}; try again")
        return None

    def _cut_call(self) -> Call | None:
        """The call that the output limit cut: the last one, unless something followed it."""
        if self._reason != "length" or not self._calls.calls or not self._call_last:
            return None
        return self._calls.calls[-1]

    def _block(self, slot: _TextSlot | _WholeSlot | Call, cut: Call | None) -> Block:
        if not isinstance(slot, Call):
            return slot.block()
        assert slot.id is not None and slot.name is not None
        invalid = "truncated" if slot is cut else self._invalid(slot)
        return ToolCall(
            slot.id, slot.name, slot.arguments, invalid=invalid, extra=slot.extra, replay=slot.replay
        )

    def _invalid(self, call: Call) -> str | None:
        try:
            strict_json.arguments(call.arguments)
        except strict_json.InvalidJson as error:
            self.note("invalid_arguments", f"{call.name}: {error.reason}")
            return "truncated" if self._reason == "length" and error.kind == "not_json" else error.kind
        return None

    # ---- markup ------------------------------------------------------------------------------

    def _marked_calls(self) -> list[markup_calls.MarkedCall] | None:
        """Calls written as markup; None if there is markup that should be calls and cannot be read as such.

        With structured calls beside it markup is only removed. In reasoning it counts only if nothing was
        answered: a model may think about a call that it then does not make.
        """
        sections = self._markup.sections if self._markup is not None else []
        in_reasoning = self._reasoning_markup.sections if self._reasoning_markup is not None else []
        if sections or in_reasoning:
            where = "the text" if sections else "the reasoning"
            self.note(
                "text_tool_call", f"{where} holds tool calls as {(sections or in_reasoning)[0].family} markup"
            )
        if self._calls.calls:
            return []
        if not sections and not self._visible:
            sections = in_reasoning
        if self._reason == "length":  # the limit cut the markup, and asking again would cut it again
            sections = [section for section in sections if section.complete]
        found: list[markup_calls.MarkedCall] = []
        for section in sections:
            calls = markup_calls.read_calls(section)
            if calls is None:
                return None
            found.extend(calls)
        return found

    def _open_marked_call(self, marked: markup_calls.MarkedCall) -> None:
        id = marked.id if marked.id and marked.id not in self._calls.ids else self._fresh_id()
        call = Call(len(self._slots), id, marked.name, [marked.arguments])
        self._calls.ids.add(id)
        self._calls.calls.append(call)
        self._slots.append(call)
        self._out.append(BlockStart(call.index, "tool_call"))

    def _note_oddities(self) -> None:
        if self._calls.conflicts:
            self.notebook.add(
                "identity_conflict",
                "a later delta of a tool call had another id or name; the first stayed",
                self._calls.conflicts,
            )
        if self._markup is None and any(
            markup.mentions("".join(slot.parts)) for slot in self._slots if isinstance(slot, _TextSlot)
        ):
            self.note(
                "text_tool_call", "the text holds tool calls as markup; this profile does not read them"
            )


def _malformed_call(what: str) -> Failure:
    return failure("MALFORMED_TOOL_CALL", f"{what}; the response was refused, try again")

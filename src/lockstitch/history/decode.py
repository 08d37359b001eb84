"""Decoding a provider's answer: raw bytes in any split to chunks, blocks, usage and one ending.

``Decoder`` is the incremental form for people with their own transport, ``decode`` its loop over a whole
body. Neither raises on input, whatever it is: what a provider did wrong is the Finish's failure, or a note.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from ..providers import frames
from ..providers.catalog import DEFAULT_PROFILES
from ..providers.catalog import profile as profile_named
from ..providers.classify import classify
from ..providers.dialects import DIALECTS, translator
from ..providers.note_book import NoteBook
from ..providers.translator import OVER_OUR_LIMIT, Mint, TranslateAll
from ..schema.chunks import BlockEnd, Chunk, Finish, UsageChunk
from ..schema.errors import CallerError
from ..schema.failures import Failure, failure
from ..schema.notes import Note
from ..schema.profiles import Profile
from ..wire import strict_json
from ..wire.body_kind import BodyKind, Gunzip, GunzipError, sniff
from ..wire.sse import LINE_MAX, RESPONSE_MAX, Frame, FrameTooLarge, SseDecoder
from .answer_size import ANSWER_MAX, LARGE_BYTES, AnswerSize
from .assemble import Assembler, Grammar
from .decoded import Decoded

__all__ = ["Decoded", "Decoder", "decode"]

ERROR_BODY_MAX: Final = 256 * 1024
"""Bytes of an error answer, or of a page, that are read."""

_OVERFULL: Final = f"the response holds more than {strict_json.VALUES_MAX:,} values in one place"


def decode(
    body_or_chunks: bytes | bytearray | memoryview | str | Iterable[bytes],
    dialect: str,
    *,
    profile: Profile | str | None = None,
    tools: Sequence[str] = (),
    status: int = 200,
    content_type: str | None = None,
    mint: Mint | None = None,
) -> Decoded:
    """A whole answer, from its body or from the reads of it in order.

    Arguments as for ``Decoder``; ``content_type`` is a hint for messages only. Raises CallerError on an
    unknown dialect or profile, and nothing else of its own.
    """
    headers = {"content-type": content_type} if content_type else None
    decoder = Decoder(dialect, profile=profile, tools=tools, status=status, headers=headers, mint=mint)
    if isinstance(body_or_chunks, str):
        body_or_chunks = body_or_chunks.encode("utf-8", "replace")
    if isinstance(body_or_chunks, bytes | bytearray | memoryview):
        body_or_chunks = (bytes(body_or_chunks),)
    for data in body_or_chunks:
        decoder.feed(data)
        if decoder.terminal:
            break
    decoder.end()
    return decoder.result


class Decoder:
    """One answer, fed as it arrives: ``feed`` each read, then ``end``, or ``fail`` if it broke.

    Each returns the chunks that became known; all together obey the grammar of ``schema.chunks`` and end in
    one Finish. The chunks' concatenated deltas and ``result`` are the same for every split of the same bytes.
    """

    def __init__(
        self,
        dialect: str,
        *,
        profile: Profile | str | None = None,
        tools: Sequence[str] = (),
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        mint: Mint | None = None,
        line_max: int = LINE_MAX,
        response_max: int = RESPONSE_MAX,
    ) -> None:
        """``profile``: a profile or its name, by default the dialect's plain one. ``tools``: names offered in
        the
        request. ``mint`` makes ids for calls that came without one, by default ``call_1`` and so on. Limits
        are in bytes, decompressed. Raises CallerError on an unknown dialect or profile.
        """
        if dialect not in DIALECTS:
            raise CallerError(f"unknown dialect {dialect!r}; known: {', '.join(DIALECTS)}")
        if profile is None:
            profile = DEFAULT_PROFILES[dialect]
        self.profile = profile_named(profile) if isinstance(profile, str) else profile
        self.data_frames = 0
        """Frames with data so far; keepalive comments are none."""
        self._dialect = dialect
        self._status = status
        self._headers = headers or {}
        self._translator = translator(dialect, self.profile, tools, mint)
        # Not isinstance: for a protocol that looks through all its members, in every model call.
        self._translate_all: TranslateAll | None = getattr(self._translator, "frames", None)
        self._grammar = Grammar()
        self._assembler = Assembler()
        self._notebook = NoteBook()
        self._sse = SseDecoder(line_max=line_max, response_max=response_max)
        self._response_max = response_max
        self._gunzip: Gunzip | None = None
        self._read = 0
        self._overfull = False
        """A frame came that holds more values than may be decoded: nothing behind it is read."""
        self._size = AnswerSize()
        """Bytes of the body so far, decompressed."""
        self._kind: BodyKind | None = None
        self._head = b""
        """The first bytes, as long as they do not say what the body is."""
        self._skipped = 0
        """White space before it."""
        self._buffer: list[bytes] = []
        self._buffered = 0

    @property
    def finished(self) -> bool:
        """The Finish was given out."""
        return self._assembler.finish is not None

    @property
    def terminal(self) -> bool:
        """Nothing more has to be read: stop reading and close the connection."""
        return self.finished

    @property
    def settled(self) -> bool:
        """A finish reason or an error of the provider came: what may still follow is usage and the end."""
        return self._translator.settled

    @property
    def refused(self) -> bool:
        """The provider reported an error, which decides the ending: what may still come is usage at most, so
        waiting long for the end of the body is no use."""
        return self._translator.refused

    @property
    def notes(self) -> tuple[Note, ...]:
        """Oddities so far."""
        return (*self._notebook.notes(), *self._translator.notes)

    @property
    def argument_chars(self) -> int:
        """Characters of call arguments so far, those of calls that do not count in the end included."""
        return self._assembler.argument_chars

    @property
    def result(self) -> Decoded:
        """The answer. Raises CallerError before the Finish."""
        finish = self._assembler.finish
        if finish is None:
            raise CallerError("the answer has not ended; call end() or fail() first")
        failed = finish.reason in ("error", "aborted")
        content = self._assembler.interrupted() if failed else self._assembler.blocks()
        return Decoded(content, finish, self._assembler.usage, self.notes)

    def feed(self, data: bytes) -> list[Chunk]:
        """Chunks of one read, of any size."""
        if self.finished:
            return []
        if self._gunzip is None:
            return self._feed_plain(data)
        chunks: list[Chunk] = []
        try:
            for piece in self._gunzip.feed(data):
                chunks += self._feed_plain(piece)
                if self.terminal:
                    break
        except GunzipError as error:
            chunks += self._give_up(
                failure("MALFORMED_RESPONSE", f"the gzip body is damaged: {error}; try again")
            )
        return chunks

    def end(self) -> list[Chunk]:
        """Chunks that the end of the body makes known, the Finish among them."""
        if self.finished:
            return []
        if self._kind is None and self._head:
            head, self._head = self._head, b""
            chunks = self._begin(head, sniff(head, ended=True) or "text")
            return chunks + self.end()
        if self._gunzip is not None and not self._gunzip.complete:
            self._notebook.add("gzip_truncated")
        if not 200 <= self._status < 300:
            return self._end_refused()
        if self._kind == "page":
            return self._end_page()
        if self._kind == "json":
            return self._end_document()
        return self._end_stream()

    def fail(self, cause: Failure | str, *, aborted: bool = False) -> list[Chunk]:
        """The body will not come to its end: the connection broke, a deadline passed, or (``aborted``) the
        caller stopped. A text stands for a TRANSPORT or ABORTED failure with that message.

        What the provider already said decides the ending, unless the caller aborted: an error of its own, an
        error status, a finish reason behind which only the end is missing.
        """
        if self.finished:
            return []
        if isinstance(cause, str):
            cause = failure("ABORTED" if aborted else "TRANSPORT", cause)
        if aborted:
            return self._emit(self._translator.fail(cause, aborted=True))
        if not 200 <= self._status < 300 or self._kind == "page":
            return self.end()
        chunks = self._frames(self._last_frames())
        if self._kind == "json" and (value := self._document()) is not None:
            chunks += self._emit(self._translator.document(value))
        return chunks + self._emit(self._translator.fail(cause))

    # ---- bytes -------------------------------------------------------------------------------

    def _feed_plain(self, data: bytes) -> list[Chunk]:
        self._read += len(data)
        if self._kind is not None:
            return self._feed_kind(data)
        head = self._head + data
        if not self._head:  # white space before a body is none of it, also if it came together with it
            begun = head.lstrip()
            self._skipped += len(head) - len(begun)
            head = begun
        if self._skipped > self._response_max:
            return self._too_large(f"the response is larger than {self._response_max:,} bytes")
        kind = sniff(head)
        if kind is not None and kind != "gzip":
            self._head = b""
            return self._begin(head, kind)
        if kind is not None and self._gunzip is None:
            self._head = b""
            self._gunzip = Gunzip()
            return self.feed(head)
        if kind is not None:
            return self._give_up(
                failure("NOT_AN_API", "the body is compressed twice; check the proxy in between")
            )
        self._head = head
        return []

    def _begin(self, head: bytes, kind: BodyKind) -> list[Chunk]:
        self._kind = kind
        return self._feed_kind(head)

    def _feed_kind(self, data: bytes) -> list[Chunk]:
        refused = not 200 <= self._status < 300
        if refused or self._kind == "page":
            return self._buffer_error(data, refused)
        if self._kind == "json":
            self._buffer.append(data)
            self._buffered += len(data)
            if self._buffered > self._response_max:
                return self._too_large(f"the response is larger than {self._response_max:,} bytes")
            return []
        payloads, data = self._sse.feed_plain(data)
        if payloads:
            chunks = self._frames(zip(payloads, repeat("")))
            return chunks if self.finished or not data else chunks + self._feed_kind(data)
        try:
            return self._frames(self._sse.feed(data))
        except FrameTooLarge as error:
            return self._frames(error.frames) + self._too_large(str(error))

    def _buffer_error(self, data: bytes, refused: bool) -> list[Chunk]:
        room = ERROR_BODY_MAX - self._buffered
        self._buffer.append(data[:room])
        self._buffered += len(data)
        if len(data) < room:
            return []
        return self._end_refused() if refused else self._end_page()

    def _frames(self, found: Iterable[tuple[bytes, str]]) -> list[Chunk]:
        if self._read <= strict_json.VALUES_MAX:  # so few bytes hold fewer values
            return self._translated(found)
        chunks = self._translated(self._until_overfull(found))
        return chunks + self._too_large(_OVERFULL) if self._overfull else chunks

    def _until_overfull(self, found: Iterable[tuple[bytes, str]]) -> Iterator[tuple[bytes, str]]:
        for frame in found:
            self._overfull = strict_json.has_too_many_values(frame[0])
            if self._overfull:
                return
            yield frame

    def _translated(self, found: Iterable[tuple[bytes, str]]) -> list[Chunk]:
        if self._translate_all is not None:
            chunks, read = self._translate_all(found)
            self.data_frames += read
            return self._emit(chunks)
        chunks = []
        translate = self._translator.frame
        for data, event in found:
            self.data_frames += 1
            chunks += translate(data, event)
            if chunks and type(chunks[-1]) is Finish:
                break
        return self._emit(chunks)

    def _emit(self, chunks: list[Chunk]) -> list[Chunk]:
        if self._read > LARGE_BYTES and (at := self._size.first_beyond(chunks)) is not None:
            chunks = self._cut_short(chunks, at)
        self._grammar.check_all(chunks)
        self._assembler.add_all(chunks)
        return chunks

    def _cut_short(self, chunks: list[Chunk], at: int) -> list[Chunk]:
        """The chunks of an answer that is too large from ``at`` on: it ends there."""
        text = f"the answer is larger than {ANSWER_MAX:,} bytes once it is written; ask for less"
        cause = failure("OUTPUT_LIMIT", text, subkind=OVER_OUR_LIMIT)
        before = [chunk for chunk in chunks[:at] if not isinstance(chunk, BlockEnd)]
        if not self._translator.finished:
            return before + self._translator.fail(cause)
        usage: list[Chunk] = [chunk for chunk in chunks[at:] if isinstance(chunk, UsageChunk)]
        return [*before, *usage, Finish("error", cause)]

    # ---- endings -----------------------------------------------------------------------------

    def _last_frames(self) -> list[Frame]:
        """The frames that the end of the body completes. One that was cut inside its JSON is none: that is
        the
        cut's fault, and not a malformed frame of the gateway's.
        """
        last = self._sse.end()
        if not (self._sse.cut and last):
            return last
        kept = _before_cut(last.pop())
        if kept is not None:
            return [*last, kept]
        self.data_frames += 1
        return last

    def _end_stream(self) -> list[Chunk]:
        chunks = self._frames(self._last_frames())
        if self.finished:
            return chunks
        strays = self._sse.strays
        if self.data_frames:
            return chunks + self._emit(self._translator.end(strays))
        found = frames.reported_in_text(strays, dialect=self._dialect, profile=self.profile)
        if found is None and self._kind == "text" and strays.strip():
            start = " ".join(strays.decode("utf-8", "replace").split())[:120]
            found = failure("NOT_AN_API", f"the answer is no event stream: {start!r}; check the base URL")
        if found is None:
            keepalives = f" besides {self._sse.comments} keepalives" if self._sse.comments else ""
            found = failure("EMPTY_RESPONSE", f"the answer held nothing{keepalives}; try again")
        return chunks + self._give_up(found)

    def _end_document(self) -> list[Chunk]:
        value = self._document()
        if value is not None:
            self.data_frames += 1
            chunks = self._emit(self._translator.document(value))
            return chunks + self._emit(self._translator.end(b""))
        body = b"".join(self._buffer)
        self._buffer = []
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith(b"{") for line in lines):
            self._notebook.add("json_lines")
            chunks = self._frames(Frame(line.strip(), "") for line in lines)
            return chunks if self.finished else chunks + self._emit(self._translator.end(b""))
        if strict_json.has_too_many_values(body):
            return self._too_large(_OVERFULL)
        # A bare line before the stream, or JSON that was cut: the event stream rules tell.
        self._kind = "sse"
        try:
            chunks = self._frames(self._sse.feed(body))
        except FrameTooLarge as error:
            chunks = self._frames(error.frames)
        if self.finished or self.data_frames:
            return chunks + self.end()
        cut = failure("STREAM_CLOSED", "the JSON answer is cut off; try again", subkind="clean_eof")
        said = frames.reported_in_text(body, dialect=self._dialect, profile=self.profile)
        return chunks + self._give_up(said or cut)

    def _document(self) -> Any | None:
        try:
            body = b"".join(self._buffer).removeprefix(b"\xef\xbb\xbf")
            return frames.parse(body, self._notebook, self._translator.keep_halves)
        except strict_json.InvalidJson:
            return None

    def _end_refused(self) -> list[Chunk]:
        body = b"".join(self._buffer)
        if body.lstrip().startswith((b"data:", b"event:")):
            sse = SseDecoder()
            found = sse.feed(body) + sse.end()
            body = found[0].data if found else body
        refusal = classify(
            self._status, self._headers, body, dialect=self._dialect, profile=self.profile
        ).failure
        return self._give_up(refusal)

    def _end_page(self) -> list[Chunk]:
        title = frames.html_title(b"".join(self._buffer))
        named = f" titled {title!r}" if title else ""
        return self._give_up(
            failure("NOT_AN_API", f"the answer is a web page{named}; check the base URL, a login or a proxy")
        )

    def _too_large(self, what: str) -> list[Chunk]:
        if self.finished:
            return []
        return self._give_up(failure("OUTPUT_LIMIT", f"{what}; ask for less", subkind=OVER_OUR_LIMIT))

    def _give_up(self, cause: Failure) -> list[Chunk]:
        return self._emit(self._translator.fail(cause))


def _before_cut(frame: Frame) -> Frame | None:
    """What is whole of a frame whose last line did not end; None if nothing is."""
    if frame.event == "error" or _is_whole(frame.data):
        return frame
    before, _, last = frame.data.rpartition(b"\n")
    if _is_whole(last):  # events without blank lines between
        return frame
    return Frame(before, frame.event) if _is_whole(before.partition(b"\n")[0]) else None


def _is_whole(data: bytes) -> bool:
    if data.strip() == b"[DONE]":
        return True
    try:
        frames.parse(data)
    except strict_json.InvalidJson:
        return False
    return True

"""Server-sent events, sans-IO: bytes in any split go in, frames come out.

Follows the event stream grammar of WHATWG HTML, "Server-sent events" (as quoted in
https://docs.rs/crate/eventsource-stream2/0.3.0/source/src/parser.rs, read 2026-11-30): lines end in LF, CR or
CRLF, a BOM may come first, a colon starts a comment, several ``data`` lines of one event are joined by LF.
Differs from it where model gateways do: the last event counts without its blank line, and lines that are no
field are kept for a search, because proxies write their errors there.

Lines are split on bytes, so a character may be cut anywhere, and U+2028 inside JSON ends nothing.
"""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

LINE_MAX: Final = 32 * 1024 * 1024
"""Bytes of one line."""
RESPONSE_MAX: Final = 64 * 1024 * 1024
"""Bytes of one response, decompressed."""
STRAYS_MAX: Final = 64 * 1024
"""Bytes of text outside of frames that are kept."""

_BOM = b"\xef\xbb\xbf"
_FIELD = b"data: "


class Frame(NamedTuple):
    """One event with data."""

    data: bytes
    """The data lines, joined by LF; never empty."""
    event: str
    """The event field, empty if there was none."""


_as_frame: Final[Callable[[tuple[bytes, str]], Frame]] = partial(tuple.__new__, Frame)
"""Much quicker than a named tuple's own constructor, which takes as long as the rest of framing."""
_BLANK = b"\n\n" + _FIELD


class FrameTooLarge(ValueError):  # noqa: N818  # reads as what it is
    """A limit was passed. ``frames`` are those that were complete before it, in order."""

    def __init__(self, what: str, limit: int, frames: list[Frame]) -> None:
        super().__init__(f"{what} is larger than {limit:,} bytes")
        self.frames = frames


class SseDecoder:
    """Feed bytes until the body ends, then call ``end`` once.

    The frames are the same for every split of the same bytes. Memory holds one event and the strays.
    """

    def __init__(self, *, line_max: int = LINE_MAX, response_max: int = RESPONSE_MAX) -> None:
        self.comments = 0
        """Comment lines so far: keepalives."""
        self.cut = False
        """After ``end``: the last line had no end, so its frame may be part of one."""
        self._line_max = line_max
        self._response_max = response_max
        self._total = 0
        self._start: bytes | None = b""
        """The first bytes, while they may still become a BOM; None afterwards."""
        self._skip_lf = False
        """The last byte was a CR that has already ended its line."""
        self._line: list[bytes] = []
        """Pieces of the line that has not ended."""
        self._line_size = 0
        self._data: list[bytes] = []
        self._event = ""
        self._strays: list[bytes] = []
        self._strays_size = 0

    @property
    def strays(self) -> bytes:
        """Lines that are no field of an event, the first ``STRAYS_MAX`` bytes of them."""
        return b"\n".join(self._strays)

    def feed(self, data: bytes) -> list[Frame]:
        """Frames that ``data`` completes. Raises FrameTooLarge over a limit; feed nothing after that."""
        room = self._response_max - self._total
        self._total += len(data)
        frames = self._split(data if len(data) <= room else data[:room])
        if len(data) > room:
            raise FrameTooLarge("the response", self._response_max, frames)
        return frames

    def feed_plain(self, data: bytes) -> tuple[list[bytes], bytes]:
        """``feed`` for the plain frames that ``data`` begins with: their payloads, and what is left to feed.

        Plain is a frame of one ``data: `` line without an event field, which nearly every stream of the chat
        protocol is made of. Takes nothing where there is anything else among them, which is never wrong.
        """
        if self._start is not None or self._skip_lf or self._data or self._event or b"\r" in data:
            return [], data
        if len(data) > self._response_max - self._total:
            return [], data
        payloads, rest = self._plain(data)
        self._total += len(data) - len(rest)
        return payloads, rest

    def end(self) -> list[Frame]:
        """The frame that the end of the body completes, if any: its blank line may be missing."""
        frames: list[Frame] = []
        if self._start:
            self._line.append(self._start)
        self._start = None
        if self._line:
            self.cut = True
            self._take_line(b"".join(self._line), frames)
            self._line.clear()
        self._dispatch(frames)
        return frames

    def _split(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self._start is not None:
            data = self._without_bom(data)
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == 0x0A:
                data = data[1:]
        if not data:
            return frames
        if b"\r" in data:
            self._skip_lf = data[-1] == 0x0D
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not (self._data or self._event):
            payloads, data = self._plain(data)
            frames += map(_as_frame, zip(payloads, repeat("")))
        self._lines(data, frames)
        return frames

    def _plain(self, data: bytes) -> tuple[list[bytes], bytes]:
        """See ``feed_plain``; for data without CR, when no event has begun."""
        end = data.rfind(b"\n\n")
        if end < 0 or self._line_size + end > self._line_max:
            return [], data
        whole = data[:end]
        if self._line:
            whole = b"".join((*self._line, whole))
        payloads = whole[len(_FIELD) :].split(_BLANK)
        if not whole.startswith(_FIELD) or whole.count(b"\n") != 2 * len(payloads) - 2:
            return [], data
        self._line.clear()
        self._line_size = 0
        if b"" in payloads:
            payloads = [payload for payload in payloads if payload]
        return payloads, data[end + 2 :]

    def _lines(self, data: bytes, frames: list[Frame]) -> None:
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line.clear()
            self._line_size = 0
        for line in lines:
            if len(line) > self._line_max:
                raise FrameTooLarge("a line", self._line_max, frames)
            self._take_line(line, frames)
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
            if self._line_size > self._line_max:
                raise FrameTooLarge("a line", self._line_max, frames)

    def _without_bom(self, data: bytes) -> bytes:
        data = (self._start or b"") + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(_BOM)

    def _take_line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            if self._data:
                self._dispatch(frames)
            self._event = ""
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line[0] == 0x3A:
            self.comments += 1
        else:
            self._take_field(line)

    def _take_field(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name == b"data" and not colon:
            self._data.append(b"")
        elif name not in (b"id", b"retry"):
            room = STRAYS_MAX - self._strays_size
            if room > 0:
                self._strays.append(line[:room])
                self._strays_size += len(line) + 1

    def _dispatch(self, frames: list[Frame]) -> None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        # Blocks of id, retry or event alone are no events, and neither is an empty data line.
        if data:
            frames.append(Frame(data, self._event))
        self._event = ""

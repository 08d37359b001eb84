"""From the bytes of a log to its events and its damage, in pieces and in bounded memory.

Torn is not corrupt: what follows the last newline and is no whole record is an append that a crash cut short.
Any other bytes that are no record are damage. Neither keeps the records around it from being read.
"""

import hashlib
from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

from lockstitch.schema.events import Event, SessionStart
from lockstitch.wire.jsonl import RECORD_MAX_BYTES, BadRecordError, decode, decode_intact, records_within

from . import migration

PIECE_BYTES: Final = 64 * 1024
"""A good size of the pieces to feed: memory is a few of them, unless a single record is larger. With a MiB a
scan took a quarter longer: its events then outlive a collection of garbage and the processor's cache."""

_PADDING: Final = b" \t\r\xef\xbb\xbf"
"""Around a record these are no damage: line ends of other systems, a byte order mark."""
_BEHIND_MEMBER: Final = (b",", b"}", b"]")
SEQ_GAP_MAX: Final = 10_000_000
"""How far a record's number may run ahead of its predecessor's and still be believed."""


class Damage(NamedTuple):
    """Bytes of a log that are no record."""

    offset: int
    length: int
    """Bytes, without a newline that follows; 0 for a gap in the numbers with nothing in its place."""
    digest: str
    """First 16 hex digits of the SHA-256 of the bytes."""
    reason: str
    torn: bool
    """True for an unterminated end: to be cut off before the next record is appended."""
    after: int
    """Number of the last record before it; -1 if there is none."""


class Scanner:
    """Reads a log that is fed in pieces of any size: the same items come out for any split."""

    def __init__(
        self,
        *,
        after: int = -1,
        format_version: int | None = None,
        offset: int = 0,
        keep_lines: bool = False,
    ) -> None:
        """``after`` and ``format_version``: the last record's number and the format it had, if what is fed
        continues a log that was read before; ``offset``: where in it that begins.

        ``keep_lines``: for those who copy logs, ``lines`` holds the bytes of each event, without its newline,
        until it is cleared.
        """
        self.records = 0
        self.lines: list[bytes] = []
        self.offset = offset
        """Bytes of all lines that are done with."""
        self.end_offset: int | None = None
        """After ``end``: where the next record may be appended, once anything behind is cut off."""
        self.unterminated = False
        """After ``end``: the last record lacks its newline."""
        self._keep_lines = keep_lines
        self._pieces: list[bytes] = []
        self._pending = 0
        self._oversize: _Oversize | None = None
        self._last_seq = after
        self._first_seq = after + 1
        self._checksums = array("I")
        """Of each record by its number, from ``_first_seq`` on; 0 for one that is missing."""
        self._damaged_since = False
        self._upgrade = None if format_version is None else migration.upgrade_from(format_version)
        """For the records of a log of an older format."""
        self._offsets: list[int] = []
        """Of the items that are being returned; not kept for those of an intact piece."""
        self._intact = b""
        """The intact piece whose items were returned last, or nothing."""

    def feed(self, piece: bytes) -> list[Event | Damage]:
        """Events and damage of the lines that ``piece`` completes, in order."""
        end = piece.rfind(b"\n") + 1
        items: list[Event | Damage] = []
        self._offsets = []
        if end:
            lines = self._take_pending(piece[:end])
            if self._oversize is not None or not self._take_intact(lines, items):
                self._intact = b""
                for line in lines[:-1].split(b"\n"):
                    self._line(line, items)
        self._hold(piece[end:])
        return items

    def end(self) -> list[Event | Damage]:
        """Events and damage of the unterminated last line, if there is one."""
        items: list[Event | Damage] = []
        self._offsets, self._intact = [], b""
        start = self.offset
        line = self._take_pending(b"")
        self.end_offset = start
        if self._oversize is not None:
            self._add(self._oversize.damage(start, torn=True, after=self._last_seq), items)
        elif line:
            self._last_line(start, line, items)
        return items

    def offset_of(self, index: int) -> int:
        """Where the item of that index begins, of those that ``feed`` or ``end`` returned last."""
        if not self._intact:
            return self._offsets[index]
        lines = self._intact.split(b"\n", index)
        return self.offset - len(lines[-1])

    # --- lines ---------------------------------------------------------------------------------------------

    def _take_intact(self, lines: bytes, items: list[Event | Damage]) -> bool:
        """Take all lines at once if nothing about them is unusual: what a log consists of, as a rule."""
        decoded = decode_intact(lines) if self._upgrade is None else None
        if decoded is None:
            return False
        events, checksums = decoded
        first = self._last_seq + 1
        if first == 0 and events and _is_older(events[0]):
            return False
        if [event.seq for event in events] != list(range(first, first + len(events))):
            return False
        self._last_seq += len(events)
        self._checksums.extend(checksums)
        self._damaged_since = False
        self.records += len(events)
        self.offset += len(lines)
        self._intact = lines
        items += events
        if self._keep_lines:
            self.lines += lines[:-1].split(b"\n")
        return True

    def _hold(self, rest: bytes) -> None:
        if self._oversize is not None:
            self._oversize.add(rest)
        elif rest:
            self._pieces.append(rest)
            self._pending += len(rest)
            if self._pending > RECORD_MAX_BYTES:
                # No record is that long. Only its digest and length are kept, whatever is still to come.
                self._oversize = _Oversize(self._pieces)
                self._pieces, self._pending = [], 0

    def _take_pending(self, line_end: bytes) -> bytes:
        if not self._pieces:
            return line_end
        self._pieces.append(line_end)
        line = b"".join(self._pieces)
        self._pieces, self._pending = [], 0
        return line

    def _line(self, line: bytes, items: list[Event | Damage]) -> None:
        start = self.offset
        if self._oversize is not None:
            self._oversize.add(line)
            self._add(self._oversize.damage(start, torn=False, after=self._last_seq), items)
            self.offset += self._oversize.length + 1
            self._oversize, self._damaged_since = None, True
            return
        self.offset += len(line) + 1
        try:
            event = decode(line, self._upgrade)
        except BadRecordError as error:
            self._bad_line(start, line, error, items)
        else:
            self._take(event, line, start, items)

    def _bad_line(self, start: int, line: bytes, error: BadRecordError, items: list[Event | Damage]) -> None:
        if not line.strip(_PADDING):
            return
        done = 0
        for event, begin, end in self._within(line):
            self._rest(start + done, line[done:begin], str(error), items)
            self._take(event, line[begin:end], start + begin, items)
            done = end
        self._rest(start + done, line[done:], str(error), items)

    def _last_line(self, start: int, line: bytes, items: list[Event | Damage]) -> None:
        done = 0
        for event, begin, end in self._within(line):
            self._rest(start + done, line[done:begin], "no record before the next one", items)
            self._take(event, line[begin:end], start + begin, items)
            done = end
        self.end_offset = start + done
        self.unterminated = done > 0
        if line[done:].strip(_PADDING):
            torn = line[done:]
            self._add(self._damage(start + done, torn, "an unfinished record", torn=True), items)

    def _within(self, line: bytes) -> Iterable[tuple[Event, int, int]]:
        """Whole records in a line, with their places, but for those that may be quoted: a damaged record can
        hold another one, maybe of another session, as an object inside. Such an object is followed by what
        JSON has behind a member; a record of this log is not, or its number is the next one."""
        last = self._last_seq
        for begin, end in records_within(line):
            try:
                event = decode(line[begin:end], self._upgrade)
            except BadRecordError:
                continue
            if event.seq == last + 1 or (event.seq > last and line[end : end + 1] not in _BEHIND_MEMBER):
                last = event.seq
                yield event, begin, end

    def _rest(self, offset: int, rest: bytes, reason: str, items: list[Event | Damage]) -> None:
        if rest.strip(_PADDING):
            self._damaged_since = True
            self._add(self._damage(offset, rest, reason), items)

    def _take(self, event: Event, line: bytes, offset: int, items: list[Event | Damage]) -> None:
        seq = event.seq
        if type(event.body) is SessionStart:
            self._upgrade = migration.upgrade_from(event.body.format)
        if seq == self._last_seq + 1:
            self._last_seq = seq
            self._checksums.append(int(line[-10:-2], 16))
        elif not self._counts_out_of_order(event, line, offset, items):
            return
        self._damaged_since = False
        self.records += 1
        self._offsets.append(offset)
        items.append(event)
        if self._keep_lines:
            self.lines.append(line)

    def _counts_out_of_order(
        self, event: Event, line: bytes, offset: int, items: list[Event | Damage]
    ) -> bool:
        """Whether the record counts. An exact repeat does not: nothing is lost with it."""
        seq, checksum = event.seq, int(line[-10:-2], 16)
        if seq <= self._last_seq:
            if seq >= self._first_seq and self._checksums[seq - self._first_seq] == checksum:
                reason = f"record {seq} again, exactly as before"
                self._add(self._damage(offset, line, reason), items)
                return False
            return True  # the reader marks it: its number was there, with other content
        gap = seq - self._last_seq - 1
        if gap > SEQ_GAP_MAX:
            reason = f"a record with the number {seq} behind {self._last_seq}"
            self._add(self._damage(offset, line, reason), items)
            return False
        if not self._damaged_since:
            reason = (
                f"record {seq} follows record {self._last_seq}" if self.records else "the log begins late"
            )
            self._add(self._damage(offset, b"", f"{reason}: {gap} missing"), items)
        self._checksums.extend([0] * gap)
        self._checksums.append(checksum)
        self._last_seq = seq
        return True

    def _add(self, damage: Damage, items: list[Event | Damage]) -> None:
        self._offsets.append(damage.offset)
        items.append(damage)

    def _damage(self, offset: int, data: bytes, reason: str, *, torn: bool = False) -> Damage:
        digest = hashlib.sha256(data).hexdigest()[:16]
        return Damage(offset, len(data), digest, reason, torn, self._last_seq)


def _is_older(event: Event) -> bool:
    return type(event.body) is SessionStart and migration.upgrade_from(event.body.format) is not None


class _Oversize:
    """A line beyond the limit of a record, of which only the length and the digest are known."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.length = 0
        self._hash = hashlib.sha256()
        for piece in pieces:
            self.add(piece)

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        self._hash.update(piece)

    def damage(self, offset: int, *, torn: bool, after: int) -> Damage:
        reason = f"a line of more than {RECORD_MAX_BYTES} bytes"
        return Damage(offset, self.length, self._hash.hexdigest()[:16], reason, torn, after)

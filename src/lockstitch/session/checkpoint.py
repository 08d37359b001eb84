"""A checkpoint: what a log amounted to at one place, so that an opening need not fold what lies before it.

It says "a log that begins with these bytes gives this state", and nothing about any file: the bytes are named
by their length and SHA-256. Three lines: a header in JSON that closes with a MAC of itself and names what
follows likewise, the state behind the gate in JSON, and the state of the caller's fold. So who made it is
known before more than its first line is read. See docs/formats/session-log.md.
"""

import hmac
from copy import copy
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from .. import __version__
from .fold_code import FOLD_CODE
from .log_state import LogState, OpenCall

CHECKPOINT_FORMAT: Final = 2
HEADER_MAX_BYTES: Final = 4096
"""It has some hundred."""
_MAC_START: Final = b',"mac":"'
_MAC_BYTES: Final = len(_MAC_START) + 2 * sha256().digest_size + len(b'"}')


class Checkpoint(NamedTuple):
    """What the first ``length`` bytes of a log, all of them sound records, amount to."""

    length: int
    digest: str
    """Their SHA-256 in hex."""
    state: LogState
    fold: bytes | memoryview
    """What the caller's fold saved of itself; of a stored checkpoint a view of it, for it may be large."""


class _Maker(msgspec.Struct, frozen=True, kw_only=True):
    """Who can use a checkpoint: only the code that made it, decoding with the same library."""

    checkpoint: int = CHECKPOINT_FORMAT
    lockstitch: str = __version__
    msgspec: str = msgspec.__version__
    code: str = FOLD_CODE
    fold: str
    """The fold's own version."""


class Header(_Maker, frozen=True, kw_only=True):
    """Its first line but for the MAC: what it is about."""

    records: int
    bytes: int
    sha256: str
    """Of the log's beginning: how many records, how many bytes, and their digest."""
    state_bytes: int
    state_sha256: str
    """Of all that follows the header."""


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """An open call, which JSON cannot have as a member named by two numbers."""

    message_seq: int
    position: int
    call: OpenCall


class _State(msgspec.Struct, frozen=True):
    state: LogState
    """Without its calls."""
    calls: tuple[_Place, ...]


_HEADERS: Final = msgspec.json.Decoder(Header)
_STATES: Final = msgspec.json.Decoder(_State)


def encode(checkpoint: Checkpoint, fold_version: str, key: bytes) -> bytes:
    state = copy(checkpoint.state)
    calls, state.calls = state.calls, {}
    places = tuple(_Place(*place, call) for place, call in calls.items())
    rest = b"%s\n%s\n" % (msgspec.json.encode(_State(state, places)), checkpoint.fold)
    header = Header(
        fold=fold_version,
        records=state.next_seq,
        bytes=checkpoint.length,
        sha256=checkpoint.digest,
        state_bytes=len(rest),
        state_sha256=sha256(rest).hexdigest(),
    )
    head = msgspec.json.encode(header)[:-1]
    return b'%s%s%s"}\n%s' % (head, _MAC_START, _mac(key, head), rest)


def decode_header(line: bytes, fold_version: str, key: bytes) -> Header | None:
    """The header, given without its newline; None for one of other code or of another key, and for anything
    else."""
    head, tail = line[:-_MAC_BYTES], line[-_MAC_BYTES:]
    if not hmac.compare_digest(tail, b'%s%s"}' % (_MAC_START, _mac(key, head))):
        return None
    try:
        header = _HEADERS.decode(head + b"}")
    except msgspec.MsgspecError:
        return None  # made by other code: of a format that this one does not know
    made_by = msgspec.structs.asdict(_Maker(fold=fold_version))
    if any(getattr(header, name) != value for name, value in made_by.items()):
        return None
    return header if min(header.records, header.bytes, header.state_bytes) > 0 else None


def decode(header: Header, rest: bytes) -> Checkpoint | None:
    """The checkpoint of that header and what follows it; None if that is not what the header names."""
    if len(rest) != header.state_bytes or sha256(rest).hexdigest() != header.state_sha256:
        return None
    state_end = rest.find(b"\n")
    try:
        saved = _STATES.decode(memoryview(rest)[:state_end])
    except (msgspec.MsgspecError, RecursionError):
        return None
    state = saved.state
    state.calls = {(place.message_seq, place.position): place.call for place in saved.calls}
    if state.start is None or state.next_seq != header.records:
        return None
    return Checkpoint(header.bytes, header.sha256, state, memoryview(rest)[state_end + 1 : -1])


def _mac(key: bytes, head: bytes) -> bytes:
    return hmac.new(key, head, sha256).hexdigest().encode()


class LogDigest:
    """SHA-256 of the whole lines of a log that is fed in pieces."""

    def __init__(self) -> None:
        self._fed = sha256()
        self._fed_length = 0
        self._lines = self._fed
        self.length = 0
        """Bytes of the lines that were fed whole."""

    def feed(self, piece: bytes) -> None:
        end = piece.rfind(b"\n") + 1
        if end:
            self._fed.update(piece if end == len(piece) else memoryview(piece)[:end])
            self.length = self._fed_length + end
            # Only what a rest of a line follows has to be kept apart from it.
            self._lines = self._fed if end == len(piece) else self._fed.copy()
        if end < len(piece):
            if self._lines is self._fed:
                self._lines = self._fed.copy()
            self._fed.update(memoryview(piece)[end:])
        self._fed_length += len(piece)

    def cut(self) -> None:
        """Forget the bytes behind the last whole line."""
        self._fed, self._fed_length = self._lines, self.length

    @property
    def value(self) -> str:
        """In hex."""
        return self._lines.hexdigest()

"""What all protocols do with a frame before they know it: lenient parsing, and errors a provider reports in
it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from ..schema.failures import Failure
from ..schema.profiles import Profile
from ..wire import strict_json
from ..wire.strict_json import InvalidJson
from .classify import classify
from .error_body import DELAY_KEYS
from .note_book import NoteBook

_NUMBER_SHOWN: Final = 40
"""Characters of a number that cannot be kept, in the note about it."""
_SPACE: Final = re.compile(r"\s*")
_OK_CODES: Final = ("", "0", "200", "ok", "success")
"""Values of a ``code`` that gateways write into answers that are no errors."""


def parse(
    data: bytes, notebook: NoteBook | None = None, keep_halves: Callable[[], None] | None = None
) -> Any:
    """The value of one frame; what had to be replaced in it is noted. Raises InvalidJson.

    More lenient than ``strict_json``, because a frame carries more than what is wanted of it: NaN and
    Infinity (vLLM writes them into log probabilities) are None, a number that no double holds (1e999) is the
    text that it was written as, control characters in strings and invalid UTF-8 pass. Halves of surrogate
    pairs become U+FFFD; with ``keep_halves``, which is called if there are any, they stay, because the other
    half may be in another frame.
    """
    strict_json.check_bounds(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # the lenient way tells whether it is JSON at all
    return _parse_leniently(data, notebook, keep_halves)


def _parse_leniently(data: bytes, notebook: NoteBook | None, keep_halves: Callable[[], None] | None) -> Any:
    text = _decoded(data, notebook).removeprefix("\ufeff")
    unkept: Counter[str] = Counter()

    def stand_in(number: str) -> str | None:
        unkept[number if len(number) <= _NUMBER_SHOWN else f"{number[:_NUMBER_SHOWN]}..."] += 1
        return None if number[-1].isalpha() else number

    value = strict_json.lenient(text, stand_in, controls=True)
    if notebook is not None:
        for number, count in unkept.items():
            notebook.add("number_not_kept", number, count)
    clean = strict_json.well_formed_value(value)
    if clean == value:
        return clean
    if keep_halves is not None:
        keep_halves()
        return value
    if notebook is not None:
        notebook.add("lone_surrogate")
    return clean


def _decoded(data: bytes, notebook: NoteBook | None) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        if notebook is not None:
            notebook.add("invalid_utf8")
    try:
        # CESU-8: each half of a pair was encoded by itself, as Java's modified UTF-8 has it.
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def glued(data: bytes, notebook: NoteBook) -> list[bytes] | None:
    """The frames in a frame that is not JSON, because its gateway put several into one event or wrote
    ``data:``
    twice; None if there are none. What it did is noted.
    """
    lines = [line.strip() for line in data.split(b"\n")]
    parts = [line.removeprefix(b"data:").strip() for line in lines if line]
    if not all(part[:1] in (b"{", b"[") for part in parts):
        return None
    if any(line.startswith(b"data:") for line in lines):
        notebook.add("doubled_data_prefix")
        return parts
    if len(parts) > 1:
        notebook.add("events_without_blank_line")
        return parts
    found = _objects_in_a_row(data)
    if found is not None:
        notebook.add("several_objects_in_frame")
    return found


def _objects_in_a_row(data: bytes) -> list[bytes] | None:
    """Two or more JSON objects with nothing but white space between; None if it is anything else."""
    text = data.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder(strict=False)
    ends = [0]
    try:
        while ends[-1] < len(text):
            begin = _SPACE.match(text, ends[-1])
            value, end = decoder.raw_decode(text, begin.end() if begin else ends[-1])
            if not isinstance(value, dict):
                return None
            ends.append(end)
    except (ValueError, RecursionError):
        return None
    parts = [text[begin:end].encode("utf-8", "replace") for begin, end in pairwise(ends)]
    return parts if len(parts) > 1 else None


def reported(value: Mapping[str, Any], *, event: str, dialect: str, profile: Profile) -> Failure | None:
    """The error that a frame, or a whole JSON answer with status 200, reports instead of content."""
    said = error_in(value, event)
    return None if said is None else reported_as(said, dialect=dialect, profile=profile)


def error_in(value: Mapping[str, Any], event: str) -> Mapping[str, Any] | None:
    """The error object that a frame of this event type holds, as ``reported_as`` takes it; cheap."""
    said: Any = value.get("error")
    if not said:
        said = None
        base = value.get("base_resp")  # MiniMax: {"base_resp": {"status_code": 1002, "status_msg": "..."}}
        if isinstance(base, dict) and base.get("status_code"):
            said = {"message": base.get("status_msg") or "", "code": base["status_code"]}
        elif not _has_content(value) and (
            event == "error"
            or value.get("type") == "error"
            or value.get("object") == "error"
            or _is_bare_error(value)
        ):
            said = dict(value)
    return None if said is None else {**_siblings(value), "error": said}


def reported_as(said: Mapping[str, Any], *, dialect: str, profile: Profile) -> Failure:
    """The failure behind what ``error_in`` found. It reads all wordings there are, so ask for it once."""
    return classify(None, None, said, dialect=dialect, profile=profile).failure


def delays(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object that may say when to come back."""
    return {key: said for key, said in value.items() if key.lower() in DELAY_KEYS}


def unwrapped(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The answer in a document, which gateways wrap in an object of their own; ``keys`` tell an answer.

    Sources: https://github.com/cline/cline/issues/13348 (``data``, read 2026-11-30), Cloudflare's ``result``.
    """
    if any(key in value for key in keys):
        return value
    for wrapper in ("data", "result", "response"):
        inner = value.get(wrapper)
        if isinstance(inner, dict) and any(key in inner for key in keys):
            return inner
    return value


def reported_as_text(text: str, *, dialect: str, profile: Profile) -> Failure:
    """The failure behind an error frame that is not JSON."""
    return classify(None, None, {"error": text}, dialect=dialect, profile=profile).failure


def reported_in_text(strays: bytes, *, dialect: str, profile: Profile) -> Failure | None:
    """The JSON error in text that came outside of frames, if there is one."""
    if b"{" not in strays:
        return None
    lines = strays.split(b"\n")
    for candidate in (strays, *lines):
        begin = candidate.find(b"{")
        if begin < 0:
            continue
        try:
            value = parse(candidate[begin:])
        except InvalidJson:
            continue
        if isinstance(value, dict):
            failure = reported(value, event="", dialect=dialect, profile=profile)
            if failure is not None:
                return failure
    return None


def html_title(page: bytes) -> str:
    """The title of a page, for a message; empty if it has none."""
    match = re.search(rb"<title[^>]*>([^<]*)", page, re.IGNORECASE)
    return " ".join(match[1].decode("utf-8", "replace").split())[:120] if match else ""


def _has_content(value: Mapping[str, Any]) -> bool:
    return any(value.get(key) for key in ("choices", "candidates", "content", "output", "delta"))


def _is_bare_error(value: Mapping[str, Any]) -> bool:
    """``{"code": ..., "message": ...}`` (DashScope), ``{"error_code": ..., "error_msg": ...}`` (Qianfan),
    ``{"status": 429, "message": ...}``, ``{"type": "..._error", "message": ...}`` (an error of
    anthropic-messages or openai-chat without its wrapper), ``{"success": false, "errors": [...]}``
    (Cloudflare) and ``{"detail": ...}`` (FastAPI), each without anything else.
    """
    keys = ("message",) if value.get("data") else _MESSAGES  # beside data it is a gateway's "ok"
    if any(isinstance(said := value.get(key), str) and said for key in keys):
        code, kind, status = (
            value.get("code", value.get("error_code")),
            value.get("type"),
            value.get("status"),
        )
        named = isinstance(kind, str) and kind.endswith("_error")
        refused = isinstance(status, int) and status >= 400
        return named or refused or (code is not None and str(code).lower() not in _OK_CODES)
    if value.get("success") is False and value.get("errors"):
        return True
    return bool(value.get("detail")) and set(value) <= {"detail", "status", "title", "type", "instance"}


_MESSAGES: Final = ("message", "msg", "error_msg")
_SIBLINGS: Final = ("code", "type", "status", "message", "details", "request_id", "base_resp")


def _siblings(value: Mapping[str, Any]) -> dict[str, Any]:
    """Fields beside an error that say more about it."""
    return {**{key: value[key] for key in _SIBLINGS if key in value}, **delays(value)}

"""What an error body says, whatever its shape: its texts, its codes, a status and a delay named inside.

Only what a provider says is collected. Fields that echo the request (``input``, ``ctx``,
``failed_generation``) are passed over, or a user's own words would be classified.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ..wire.strict_json import well_formed
from . import retry_after

SEARCHED_CHARS: Final = 8 * 1024
"""Texts of one body are searched up to here; errors are short, and what follows is an echo or a page."""
PARSED_BYTES: Final = 1024 * 1024
"""A longer body is not parsed as JSON but searched as text."""
HEADERS: Final = 64
"""Headers within a body that are read."""
DEPTH: Final = 8
"""Levels of nesting followed, JSON within a text counted; five is the deepest seen (a proxy and a proxy)."""

_TEXT_KEYS = (
    "message",
    "msg",
    "detail",
    "details",
    "error_message",
    "error_msg",
    "errormessage",
    "errormsg",
    "error_description",
    "status_msg",
    "reason",
    "title",
    "raw",
    "description",
)
_CODE_KEYS = (
    "code",
    "type",
    "status",
    "__type",
    "error_code",
    "errorcode",
    "reason",
    "error_type",
    "quotaid",
    "quota_limit",
)
_STATUS_KEYS = ("code", "status", "status_code", "statuscode", "http_status", "http_code", "httpstatus")
_NESTED_KEYS = (
    "error",
    "errors",
    "inner_error",
    "innererror",
    "metadata",
    "base_resp",
    "response",
    "body",
    "cause",
    "violations",
    "fault",
    "data",
)
_DELAY_KEYS = (
    *("retrydelay", "retry_delay", "retry_after", "retry-after", "retryafter"),
    *("retry_after_seconds", "retryafterseconds", "retry_after_s", "retry_in"),
)
_DELAY_MS_KEYS = ("retry_after_ms", "retryafterms", "retry-after-ms")
DELAY_KEYS: Final = frozenset((*_DELAY_KEYS, *_DELAY_MS_KEYS, "headers"))
"""Fields, in lower case, that may say when to come back."""
_NO_BODY = ("(no body)", "no body", "null", "none", "{}", "[]", '""', "bad request")
_CLIENT_SAW_NO_BODY = (
    "status code (no body)"  # what the openai and anthropic clients write; proxies pass it on
)
_PAGE = re.compile(r"<(?:!doctype|html|head|body|title|h1|center|\?xml|!--)", re.IGNORECASE)
"""Not just ``<``: dashscope begins its messages with ``<400> InternalError``."""
_ECHO = re.compile(r"[;,] messages ?= ?\[.*|input_value=.{0,2000}?, input_type=", re.DOTALL)
"""Where llama.cpp and pydantic repeat the request inside their message."""
_SAYS_NOTHING = re.compile(r"\d{3}|(invalid_?request_?|bad_?request_?)(error)?|failure")


@dataclass(slots=True)
class Said:
    """What one error body says."""

    texts: list[str] = field(default_factory=list)
    """In order of nearness to the surface; verbatim."""
    codes: list[str] = field(default_factory=list)
    """Machine words, verbatim: types, codes, google's status and reason names, numbers as text."""
    status: int | None = None
    """An HTTP status named inside the body."""
    delay_s: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Of the answer that a proxy passes on, with lower-case names."""
    param: str = ""
    html: bool = False
    empty: bool = False
    structured: bool = False
    """The body was a JSON object."""
    request_id: str | None = None

    def searched(self) -> str:
        """All texts as one lower-case line with one kind of quote, cut to SEARCHED_CHARS."""
        return normalised("\n".join(self.texts))


def normalised(text: str) -> str:
    """Lower case, ``'`` for every quote, single spaces, at most SEARCHED_CHARS: what phrases expect."""
    cut = text[:SEARCHED_CHARS].lower().translate(_QUOTES)
    return " ".join(cut.split())


_QUOTES: Final = str.maketrans(dict.fromkeys('"`´‘’“”«»', "'") | {"\\": None, "\u200b": None})


def read(body: object) -> Said:
    """Everything that bytes, a text or a decoded value says. Never raises; what is no JSON is one text."""
    said = Said()
    value: Any = body
    if isinstance(body, bytes | bytearray | memoryview):
        value = bytes(body).decode("utf-8-sig", "replace")
    if isinstance(value, str):
        value = _opened(value.strip(), said)
    _collect(value, said, 0)
    said.texts = _distinct(map(well_formed, said.texts))
    said.codes = _distinct(map(well_formed, said.codes))
    mute = all(_SAYS_NOTHING.fullmatch(code.lower()) for code in said.codes)
    said.empty = not said.html and (
        any(_CLIENT_SAW_NO_BODY in text for text in said.texts)
        or (mute and all(_is_blank(text) for text in said.texts))
    )
    return said


def _opened(text: str, said: Said) -> Any:
    """The JSON value of a body's text, or what is worth searching of it."""
    if text[:5].lower() == "data:":  # an error sent as one frame of a stream
        text = text[5:].strip()
    if _PAGE.match(text):
        said.html = True
        return _page_title(text)
    if len(text) <= PARSED_BYTES:
        value = _json(text)
        if value is not None:
            return value
    return text


def _collect(value: Any, said: Said, depth: int) -> None:
    if depth > DEPTH or len(said.texts) > 64:
        return
    match value:
        case str():
            _collect_text(value, said, depth)
        case Mapping():
            _collect_object(value, said, depth)
        case list() | tuple():
            for item in value[:32]:
                _collect(item, said, depth + 1)
        case bool() | None:
            pass
        case int() | float() if depth == 0:
            said.texts.append(_text_of(value))
        case _:
            pass


def _collect_text(text: str, said: Said, depth: int) -> None:
    said.texts.append(_ECHO.sub("", text[:SEARCHED_CHARS]))
    start = text.find("{", 0, SEARCHED_CHARS)
    if start < 0 or depth >= DEPTH or len(text) > PARSED_BYTES:
        return
    inner = _json(text[start:])
    if isinstance(inner, Mapping):
        _collect(inner, said, depth + 1)


def _collect_object(value: Mapping[Any, Any], said: Said, depth: int) -> None:
    said.structured = True
    fields = {key.lower(): item for key, item in value.items() if isinstance(key, str)}
    for key in _STATUS_KEYS:
        _note_status(fields.get(key), said)
    for key in _CODE_KEYS:
        _note_code(fields.get(key), said)
    for key in _DELAY_MS_KEYS:
        _note_delay(fields.get(key), said, unit_s=0.001)
    for key in _DELAY_KEYS:
        _note_delay(fields.get(key), said)
    if isinstance(headers := fields.get("headers"), Mapping):
        _note_headers(headers, said)
    if isinstance(where := fields.get("loc"), list | tuple):
        said.texts.append(".".join(str(part) for part in where[:16]))
    if isinstance(param := fields.get("param"), str) and not said.param:
        said.param = param
    if isinstance(request_id := fields.get("request_id"), str) and request_id and not said.request_id:
        said.request_id = well_formed(request_id[:200])
    if isinstance(base := fields.get("base_resp"), Mapping):
        _note_code(f"minimax:{base.get('status_code')}", said)
    for key in (*_TEXT_KEYS, *_NESTED_KEYS):
        if key in fields:
            _collect(fields[key], said, depth + 1)


def _note_status(item: Any, said: Said) -> None:
    if isinstance(item, str) and item.isascii() and item.isdigit() and len(item) == 3:
        item = int(item)
    if said.status is None and isinstance(item, int) and not isinstance(item, bool) and 300 <= item <= 599:
        said.status = item


def _note_code(item: Any, said: Said) -> None:
    if isinstance(item, bool):
        return
    if isinstance(item, int):
        item = _text_of(item)
    if isinstance(item, str) and item and len(item) <= 200 and item.lower() not in ("error", "none", "null"):
        said.codes.append(item)


def _note_delay(item: Any, said: Said, *, unit_s: float = 1.0) -> None:
    """A delay as a number, a text of either kind, or RetryInfo's object (seconds are text where JSON comes of
    a 64-bit integer). A negative one says nothing."""
    if isinstance(item, Mapping):
        item = item.get("seconds")
    delay = None
    if isinstance(item, str):
        delay = retry_after.number(item)
        if delay is None:
            delay, unit_s = retry_after.duration_s(item), 1.0
    elif isinstance(item, int | float) and not isinstance(item, bool):
        delay = float(min(item, retry_after.LONGEST_S / unit_s))  # before it is a float: integers have no end
    if delay is not None and delay >= 0 and said.delay_s is None:
        said.delay_s = retry_after.bounded(delay * unit_s)


def _note_headers(headers: Mapping[Any, Any], said: Said) -> None:
    for name, said_of in headers.items():
        value = said_of[0] if isinstance(said_of, list) and len(said_of) == 1 else said_of
        if isinstance(name, str) and isinstance(value, str | int | float) and len(said.headers) < HEADERS:
            said.headers.setdefault(name.lower()[:200], _text_of(value)[:1000])


def _text_of(value: str | float) -> str:
    """A number as text; one that is too long to be written out is none."""
    try:
        return str(value)
    except ValueError:
        return ""


def _json(text: str) -> Any:
    if text[:1] not in ("{", "[", '"'):
        return None
    try:
        value, _ = _decoder().raw_decode(text)
    except (ValueError, RecursionError):  # not JSON, or nested beyond reason: it stays a text
        return None
    return value


@cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder()


def _page_title(page: str) -> str:
    """The title or first heading of an HTML page: the one line of it that people can use."""
    found = re.search(r"<(title|h1)[^<>]{0,200}>([^<]{1,300})", page[:SEARCHED_CHARS], re.IGNORECASE)
    return " ".join(found.group(2).split()) if found else ""


def _is_blank(text: str) -> bool:
    """Whether a text carries nothing: also what client libraries write where there was no body."""
    bare = text.strip().lower()
    bare = re.sub(r"^(error code: ?)?\d{3}( status code)?[ :-]*", "", bare[:80]) if len(bare) < 80 else bare
    return not bare or bare in _NO_BODY


def _distinct(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(item for item in items if item.strip()))

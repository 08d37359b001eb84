"""Why a provider refused: one stable code for any status, headers and body.

Order: status, then the provider's code, then its wording; 429 and 5xx are never an overflow. What cannot be
read off is decided by the status alone, and a 400 without a body by how full the window was. The tables are
``provider_codes`` and ``wordings``; bodies are read by ``error_body``, delays by ``retry_after``. Lives here
and not beside the HTTP client because the stream translators classify errors inside a 200 answer.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ..schema.failures import RETRYABLE, Failure, FailureCode, Recovery
from ..schema.profiles import Profile
from . import error_body, provider_codes, retry_after, wordings
from .error_body import Said
from .translator import OVER_OUR_LIMIT

OVERFLOW_RATIO: Final = 0.9
"""A 400 without a body is an overflow from here on. Our own estimate errs high, so a lower mark would compact
for nothing; a higher one would miss a window that the estimate just fails to fill."""
SMALL_PROMPT: Final = 0.5
"""Below this share of the window a prompt is not what overflows it: the room asked for the answer is."""
SOON_S: Final = 300.0
"""A limit that is over within so many seconds is a rate limit, whatever it is called."""
PROVIDER_MESSAGE_CHARS: Final = 2000
SHOWN_CHARS: Final = 300
MESSAGE_CHARS: Final = 1000
"""Of a failure's whole message; ours are shorter."""
CODE_CHARS: Final = 200
"""Of a provider's code, and of the id of a request."""
REQUEST_ID_HEADERS: Final = (
    "x-request-id",
    "request-id",
    "x-deepseek-request-id",
    "x-ds-trace-id",
    "apim-request-id",
    "x-ms-request-id",
    "x-amzn-requestid",
    "x-goog-request-id",
    "msh-request-id",
    "x-msh-request-id",
    "x-litellm-call-id",
    "x-generation-id",
    "x-trace-id",
    "trace-id",
    "cf-ray",
)
"""In order of preference; a proxy's own id is better than none."""


class Classified(msgspec.Struct, frozen=True):
    """A failure, and what to do about it."""

    failure: Failure
    recovery: Recovery

    @property
    def code(self) -> FailureCode:
        return self.failure.code

    @property
    def retryable(self) -> bool:
        return self.failure.retryable

    @property
    def retry_after_s(self) -> float | None:
        return self.failure.retry_after_s

    @property
    def message(self) -> str:
        return self.failure.message


def classify(
    status: int | None,
    headers: Mapping[str, str] | None,
    body: object,
    *,
    dialect: str | None = None,
    profile: Profile | str | None = None,
    context_ratio: float | None = None,
    now_s: float | None = None,
) -> Classified:
    """The failure behind one error answer, or behind an error object in a stream (``status`` None or 200).

    ``body`` is the answer's bytes, its text, or the decoded error object; None is no body. ``context_ratio``
    is the request's estimated tokens over the model's window; it decides only what nothing else does.
    ``now_s`` (Unix seconds) turns a Retry-After date into a delay where the answer has no Date header.
    ``dialect`` and ``profile`` name the sender in the message, and the latter says whose numbers the codes
    are. Never raises on what a provider sent.
    """
    said = error_body.read(body)
    fields = {str(name).lower(): str(value) for name, value in (headers or {}).items()}
    if said.delay_s is None:
        said.delay_s = retry_after.from_text(said.searched())
    if said.delay_s is None:
        said.delay_s = retry_after.from_headers(_passed_on(said, fields), now_s=now_s)
    seen = status if status is not None and status >= 300 else said.status
    name = profile.name if isinstance(profile, Profile) else profile or ""
    codes = provider_codes.numbered(said.codes, name)
    code, subkind = _decide(said, codes, seen, context_ratio)
    text = _provider_text(said)
    failure = Failure(
        code=code,
        message=_message(
            code, subkind, seen, text, sender=name or dialect, location=fields.get("location", "")
        ),
        retryable=code in RETRYABLE,
        status=status if status is not None and status >= 300 else said.status,
        retry_after_s=_delay_s(code, said, fields, now_s),
        request_id=request_id(fields) or said.request_id,
        provider_code=_provider_code(said),
        provider_message=text[:PROVIDER_MESSAGE_CHARS] or None,
        subkind=subkind,
    )
    return Classified(failure=failure, recovery=recovery_of(failure))


def _delay_s(code: FailureCode, said: Said, fields: Mapping[str, str], now_s: float | None) -> float | None:
    """The answer's headers, then its body, then when a limit begins anew."""
    found = retry_after.from_headers(fields, now_s=now_s)
    if found is None:
        found = said.delay_s
    for headers in (fields, _passed_on(said, fields)) if code in _LIMITS else ():
        if found is None:
            found = retry_after.from_reset_headers(headers, now_s=now_s)
    return found


def _passed_on(said: Said, fields: Mapping[str, str]) -> Mapping[str, str]:
    return {"date": fields.get("date", ""), **said.headers}


def recovery_of(failure: Failure) -> Recovery:
    """What helps against a failure: a property of its code, refined by ``subkind`` where there are two."""
    by_subkind = _BY_SUBKIND.get(failure.subkind or "")
    if by_subkind is not None:
        return by_subkind
    return _BY_CODE.get(failure.code) or ("retry" if failure.code in RETRYABLE else "none")


def bounded(failure: Failure) -> Failure:
    """A failure whose texts are short, whatever a provider wrote where a word was due."""
    limits = {"message": MESSAGE_CHARS, "provider_code": CODE_CHARS, "request_id": CODE_CHARS}
    cut = {
        name: value[:limit]
        for name, limit in limits.items()
        if isinstance(value := getattr(failure, name), str) and len(value) > limit
    }
    return msgspec.structs.replace(failure, **cut) if cut else failure


def one_line(text: str, limit: int = SHOWN_CHARS) -> str:
    """A provider's text as people can read it: printable, single spaces, cut to ``limit`` characters."""
    cut = text[: 4 * limit]
    words = "".join(character if character.isprintable() else " " for character in cut).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[:limit] + "…"


def request_id(headers: Mapping[str, str]) -> str | None:
    """The id under which the provider can find this request; ``headers`` has lower-case names."""
    for name in REQUEST_ID_HEADERS:
        value = headers.get(name, "").strip()
        if value:
            return one_line(value, CODE_CHARS)
    return None


_LIMITS: Final = ("RATE_LIMIT", "OVERLOADED", "QUOTA")
_BY_CODE: Final[Mapping[FailureCode, Recovery]] = {
    "CONTEXT_WINDOW_EXCEEDED": "compact",
    "REQUEST_TOO_LARGE": "drop_media",
    "UNSUPPORTED_CONTENT": "drop_media",
    "OUTPUT_LIMIT": "lower_max_tokens",
    "INVALID_STRUCTURE": "ladder",
    "INVALID_TOOL_SCHEMA": "drop_tool",
}
_BY_SUBKIND: Final[Mapping[str, Recovery]] = {
    "unrecognised": "ladder",  # a 400 or 422 that nothing recognises may be structure in words not seen yet
    "no_images": "drop_media",
    OVER_OUR_LIMIT: "none",  # far beyond any max_tokens: what sends so much does not heed it
    "over_whole_limit": "lower_max_tokens",  # the same request never fits, however long one waits
}

_PHRASES: Final[Mapping[FailureCode, tuple[str, str]]] = {
    "EMPTY_RESPONSE": ("the answer was empty", "send the request again"),
    "MALFORMED_TOOL_CALL": ("the model wrote a tool call that cannot be used", "send the request again"),
    "MALFORMED_RESPONSE": ("the answer cannot be read", "send the request again"),
    "STREAM_CLOSED": ("the stream ended before the answer did", "send the request again"),
    "RATE_LIMIT": ("rate limit reached", "wait and send the request again"),
    "OVERLOADED": ("the provider is overloaded", "wait and send the request again"),
    "SERVER": ("the provider failed", "send the request again"),
    "TIMEOUT": ("the provider took too long", "send the request again"),
    "TRANSPORT": ("the connection failed", "send the request again"),
    "CONTEXT_WINDOW_EXCEEDED": ("the request is larger than the model's window", "compact the history"),
    "REQUEST_TOO_LARGE": ("the request has too many bytes", "drop images or long results"),
    "UNSUPPORTED_CONTENT": ("an image or file was refused", "drop it from the request"),
    "OUTPUT_LIMIT": ("more output was asked for than is allowed", "lower max_tokens"),
    "INVALID_STRUCTURE": ("the structure of the history was refused", "repair the request"),
    "INVALID_TOOL_SCHEMA": ("a tool's definition was refused", "leave the tool out or mend its schema"),
    "INVALID_REQUEST": ("the request was refused", "correct it; sending it again will not help"),
    "AUTH": ("the key was refused or lacks permission", "check the API key"),
    "QUOTA": ("the account's quota or balance is used up", "check plan and billing"),
    "MODEL_NOT_FOUND": ("the model cannot serve this request", "check the model's name and abilities"),
    "CONTENT_FILTER": ("a content filter refused", "change the input"),
    "NOT_AN_API": ("the address does not answer as a model API", "check the base URL"),
    "MISSING_CREDENTIAL": ("no API key", "set the key's environment variable"),
    "ABORTED": ("the request was cancelled", "send it again if that was not meant"),
    "UNKNOWN": ("the provider reported an error", "see its text"),
}

_BY_STATUS: Final[Mapping[int, FailureCode]] = {
    401: "AUTH",
    402: "QUOTA",
    403: "AUTH",
    404: "MODEL_NOT_FOUND",
    405: "NOT_AN_API",
    407: "AUTH",
    408: "TIMEOUT",
    409: "SERVER",
    413: "REQUEST_TOO_LARGE",
    424: "SERVER",
    425: "SERVER",
    429: "RATE_LIMIT",
    451: "CONTENT_FILTER",
    499: "TRANSPORT",
    529: "OVERLOADED",
}


def _decide(
    said: Said, codes: list[str], status: int | None, ratio: float | None
) -> tuple[FailureCode, str | None]:
    text = said.searched()
    strong = provider_codes.by_code(codes, status, provider_codes.STRONG)
    if strong is not None:
        return _refined(strong.code, strong.subkind, text)
    row = wordings.by_wording(text, status, skip=_skipped(text, said, status))
    if row is not None:
        return _refined(row.code, row.subkind, text)
    if said.html and status in (None, 400, 404, 405):
        return "NOT_AN_API", "html"
    if status is not None and 300 <= status < 400:
        return "NOT_AN_API", "redirect"
    if status == 400 and said.empty:
        full = ratio is not None and ratio >= OVERFLOW_RATIO
        return ("CONTEXT_WINDOW_EXCEEDED", "no_body") if full else ("INVALID_REQUEST", "unrecognised")
    weak = provider_codes.by_code(codes, status, provider_codes.WEAK)
    if weak is not None:
        return weak.code, weak.subkind
    return _by_status(said, status)


def _skipped(text: str, said: Said, status: int | None) -> frozenset[FailureCode]:
    """Codes whose wording does not count here."""
    if status != 429:
        return frozenset()
    # Gemini says "exceeded your current quota" for a limit per minute too; its body then names a delay, and
    # only a limit per day is worth giving up for.
    codes = " ".join(said.codes).lower()
    if "perday" in codes or "per day" in text:
        return frozenset({"RATE_LIMIT"})
    limit = ("resource_exhausted" in codes or "throttling" in codes) and "billing" not in text
    soon = said.delay_s is not None and said.delay_s <= SOON_S
    return frozenset({"QUOTA"}) if limit or soon or "perminute" in codes else frozenset()


def _refined(code: FailureCode, subkind: str | None, text: str) -> tuple[FailureCode, str | None]:
    """What the figures in a text add to its words."""
    if code == "RATE_LIMIT" and _over_whole_limit(text):
        return code, "over_whole_limit"
    if code == "CONTEXT_WINDOW_EXCEEDED" and _prompt_share(text) < SMALL_PROMPT:
        return "OUTPUT_LIMIT", "room_for_answer"
    return code, subkind


def _prompt_share(text: str) -> float:
    """The prompt's share of the window, where a text names both and the output asked for; else 1."""
    for pattern in _SHARES:
        if found := pattern.search(text):
            sizes = {name: int(size) for name, size in found.groupdict().items()}
            return sizes["prompt"] / max(sizes["window"], 1)
    return 1.0


_SHARES: Final = (
    re.compile(r"(?P<prompt>\d{1,9}) \+ (?P<output>\d{1,9}) > (?P<window>\d{1,9})"),
    re.compile(
        r"context length is (?P<window>\d{1,9}) tokens.{0,20} you requested (?:about )?\d{1,9} tokens "
        r"\((?P<prompt>\d{1,9}) .{0,30}[,;] (?P<output>\d{1,9}) "
    ),
    re.compile(
        r"context length is (?P<window>\d{1,9}) tokens.{0,20} you requested (?P<output>\d{1,9}) output "
        r"tokens and your prompt contains at least (?P<prompt>\d{1,9})"
    ),
)


def _over_whole_limit(text: str) -> bool:
    """A limit per minute that the request alone exceeds: "Limit 12000, Requested 14137"."""
    found = re.search(r"limit:? ?(\d{1,12}),? .{0,40}?requested:? ?(\d{1,12})", text)
    return found is not None and "used" not in found.group(0) and int(found.group(2)) > int(found.group(1))


def _by_status(said: Said, status: int | None) -> tuple[FailureCode, str | None]:
    if status is None:
        # an error object inside an accepted answer: the provider's own fault until it says otherwise
        return ("SERVER", "unrecognised_error") if said.structured else ("UNKNOWN", None)
    if status in _BY_STATUS:
        return _BY_STATUS[status], None
    if status >= 500:
        return "SERVER", "gateway_timeout" if status in (504, 522, 524) else None
    return "INVALID_REQUEST", "unrecognised"


def _provider_text(said: Said) -> str:
    """The most telling text: the innermost that is not a wrapper around JSON."""
    for text in said.texts:
        if text.strip() and not text.lstrip().startswith("{"):
            return text.strip()
    return said.texts[0].strip() if said.texts else ""


def _provider_code(said: Said) -> str | None:
    named = [code for code in said.codes if not code.isdigit()]
    return next((one_line(code, CODE_CHARS) for code in named or said.codes), None)


def _message(
    code: FailureCode,
    subkind: str | None,
    status: int | None,
    text: str,
    *,
    sender: str | None,
    location: str,
) -> str:
    what, advice = _PHRASES[code]
    where = f"{sender}: " if sender else ""
    http = f" (HTTP {status})" if status is not None else ""
    shown = one_line(text)
    detail = f': "{shown}"' if shown else ": no explanation given"
    if subkind == "over_whole_limit":
        advice = "the request alone exceeds the limit; lower max_tokens or shorten it"
    elif subkind == "no_images":
        advice = "drop the images or choose a model that takes them"
    elif subkind == "redirect":
        # without its query: a login page's address may carry tokens
        target = one_line(location.partition("?")[0]) or "nowhere"
        what, detail = "the address answers with a redirect", f" to {target}"
    elif subkind == "no_body":
        what, detail = "a 400 without a body while the window is nearly full", ""
    return f"{where}{what}{http}{detail}; {advice}"

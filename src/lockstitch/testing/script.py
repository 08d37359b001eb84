"""The script of the mock gateway: what it answers, in order. docs/gateway.md is the description for people.

A script is read once, whole, before the gateway listens, and every mistake in it is an error that names the
place and what is allowed there: a test that runs against half a script proves nothing.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ..schema.errors import CallerError
from . import quirks as quirk_names

MAX_DELAY_MS: Final = 600_000
MAX_HANG_S: Final = 600.0
MAX_SCRIPT_BYTES: Final = 64 << 20

USAGE_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
"""The disjoint buckets of ``schema.usage``; each protocol's spelling is made from them."""


class ScriptError(CallerError):
    """A script that cannot be played; the text names the place and what is allowed there."""

    code = "SCRIPT"


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of an answer."""

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)
    """An object, or the raw text for arguments that no object gives (cut, not JSON)."""
    id: str | None = None
    """None: made from the answer's and the call's position."""
    signature: str | None = None
    """Proof the provider wants back beside the call (gemini's thoughtSignature)."""


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """What the request must look like for the answer to be given; otherwise the answer is a 500 saying so."""

    contains: tuple[str, ...] = ()
    """Texts that must occur in the body as sent, or in a string within its JSON."""
    lacks: tuple[str, ...] = ()
    """Texts that must not."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Header name to a text that its value must contain."""
    path: str | None = None
    """A text that the path must contain."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted answer in one of its forms: high-level, ``events``, ``raw``, ``raw_b64`` or ``error``."""

    text: str | None = None
    reasoning: str | None = None
    signature: str | None = None
    """The provider's proof over ``reasoning``."""
    tool_calls: tuple[ScriptCall, ...] = ()
    finish: str | None = None
    """``stop``, ``tool_calls``, ``length`` or ``content_filter`` in the protocol's spelling; else as is."""
    usage: dict[str, int] | None = None
    """Buckets of USAGE_FIELDS. None: counted from the request and the answer."""
    model: str | None = None
    """None: the model of the request."""
    events: tuple[Any, ...] | None = None
    """Payload of each event; a string is sent as it is (``[DONE]``), anything else as JSON."""
    raw: str | None = None
    raw_b64: tuple[str, ...] | None = None
    """The body as base64, one string for each write."""
    error: dict[str, Any] | None = None
    """The provider's error object: ``message``, ``type``, ``code``, whatever else is to be sent."""
    status: int | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    content_type: str | None = None
    delay_ms: int = 0
    """Before the status line; with ``keepalive_ms`` behind the headers instead."""
    event_delay_ms: int = 0
    keepalive_ms: int = 0
    """While waiting (delay, between events, hang): a comment line this often."""
    split: int | None = None
    """Bytes of each write."""
    cut_after: int | None = None
    """Bytes of the body that are sent before the connection closes."""
    hang: float = 0.0
    """Seconds the connection is held open behind the last byte, before it ends or is cut."""
    chunk_chars: int = 16
    """Characters of text, reasoning or arguments in one delta."""
    stream: bool | None = None
    """None: as the request asks."""
    quirks: tuple[str, ...] = ()
    expect: Expect | None = None

    @property
    def quirk_set(self) -> frozenset[str]:
        return frozenset(self.quirks)


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Answers in the order of the requests, and what comes when they are used up."""

    answers: tuple[Answer, ...] = ()
    then: Answer | None = None
    """None: further requests get a 500 that says the script is exhausted."""


Source: TypeAlias = "Script | Mapping[str, Any] | list[Any] | tuple[Any, ...] | str | Path"

_PLACES: Final[Mapping[type, tuple[str, ...]]] = {
    kind: kind.__struct_fields__ for kind in (Script, Answer, ScriptCall, Expect)
}


def load(source: Source) -> Script:
    """The script behind a path, or given as values.

    A list stands for its ``answers``; a bare string among them for an answer's text. Raises ScriptError.
    """
    if isinstance(source, Script):
        return source
    where = "script"
    value: Any = source
    if isinstance(source, (str, Path)):
        where = str(source)
        value = _read(Path(source))
    return parse(value, where)


def parse(value: object, where: str = "script") -> Script:
    """The script that JSON ``value`` describes; ``where`` opens the text of every ScriptError."""
    if isinstance(value, (list, tuple)):
        value = {"answers": value}
    if not isinstance(value, Mapping):
        raise ScriptError(f"{where}: a script is an object with answers, or the list of them")
    fields = dict(value)
    _known(fields, Script, where)
    answers = fields.get("answers", [])
    if not isinstance(answers, (list, tuple)):
        raise ScriptError(f"{where}: answers: must be a list")
    then = fields.get("then")
    return Script(
        answers=tuple(_answer(answer, f"{where}: answers[{i}]") for i, answer in enumerate(answers)),
        then=None if then is None else _answer(then, f"{where}: then"),
    )


def _read(path: Path) -> object:
    try:
        if path.stat().st_size > MAX_SCRIPT_BYTES:
            raise ScriptError(f"{path}: larger than {MAX_SCRIPT_BYTES >> 20} MiB; split the script")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ScriptError(f"{path}: cannot read the script: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: not UTF-8 at byte {error.start}; a script is JSON") from error
    except json.JSONDecodeError as error:
        raise ScriptError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except UnicodeEncodeError as error:
        raise ScriptError(
            f"{str(path)!r}: no name of a file; give one without halves of characters"
        ) from error
    except RecursionError as error:
        raise ScriptError(f"{path}: not JSON that can be read: nested too deeply") from error


def _known(fields: Mapping[str, Any], kind: type, where: str) -> None:
    allowed = _PLACES[kind]
    for key in fields:
        if key not in allowed:
            raise ScriptError(f'{where}: unknown key "{key}"; allowed: {", ".join(sorted(allowed))}')


def _answer(value: object, where: str) -> Answer:
    if isinstance(value, Answer):
        return value
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, Mapping):
        raise ScriptError(f"{where}: an answer is an object, or a string for its text")
    fields = dict(value)
    _known(fields, Answer, where)
    _nested(fields, where)
    try:
        answer = msgspec.convert(fields, Answer)
    except msgspec.ValidationError as error:
        raise ScriptError(f"{where}: {_plain(str(error))}") from error
    except UnicodeEncodeError as error:
        text = "a text holds half of a character; write what is to be sent as it is, in raw"
        raise ScriptError(f"{where}: {text}") from error
    _check(answer, where)
    return answer


def _nested(fields: dict[str, Any], where: str) -> None:
    """Check keys below an answer and widen shorthands, so that conversion sees one shape only."""
    calls = fields.get("tool_calls")
    if isinstance(calls, (list, tuple)):
        for i, call in enumerate(calls):
            if isinstance(call, Mapping):
                _known(call, ScriptCall, f"{where}.tool_calls[{i}]")
    if isinstance(expect := fields.get("expect"), Mapping):
        expect = dict(expect)
        _known(expect, Expect, f"{where}.expect")
        for key in ("contains", "lacks"):
            if isinstance(expect.get(key), str):
                expect[key] = [expect[key]]
        fields["expect"] = expect
    if isinstance(fields.get("raw_b64"), str):
        fields["raw_b64"] = [fields["raw_b64"]]
    if isinstance(fields.get("quirks"), str):
        fields["quirks"] = [fields["quirks"]]
    if isinstance(fields.get("error"), str):
        fields["error"] = {"message": fields["error"]}


def _plain(error: str) -> str:
    """Msgspec's message with its place first: ``tool_calls[0].name: Expected `str`, got `int```."""
    text, marker, place = error.rpartition(" - at `$")
    return f"{place.rstrip('`').lstrip('.')}: {text}" if marker else error


def _check(answer: Answer, where: str) -> None:
    for name in answer.quirks:
        if quirk_names.unknown(name):
            allowed = [*quirk_names.QUIRKS, *(f"{name}:VALUE" for name in quirk_names.PARAMETRIC)]
            raise ScriptError(
                f'{where}.quirks: unknown quirk "{name}"; allowed: {", ".join(sorted(allowed))}'
            )
    for key in answer.usage or ():
        if key not in USAGE_FIELDS:
            raise ScriptError(f'{where}.usage: unknown key "{key}"; allowed: {", ".join(USAGE_FIELDS)}')
    _check_form(answer, where)
    _check_ranges(answer, where)
    for i, part in enumerate(answer.raw_b64 or ()):
        try:
            base64.b64decode(part, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ScriptError(f"{where}.raw_b64[{i}]: not base64: {error}") from error


def _check_form(answer: Answer, where: str) -> None:
    high = any((answer.text is not None, answer.reasoning is not None, answer.tool_calls))
    forms = {
        "text, reasoning, tool_calls": high,
        "events": answer.events is not None,
        "raw": answer.raw is not None,
        "raw_b64": answer.raw_b64 is not None,
        "error": answer.error is not None
        and not answer.quirk_set & {"error_in_stream", "error_as_json_line"},
    }
    used = [name for name, is_used in forms.items() if is_used]
    if len(used) > 1:
        raise ScriptError(f"{where}: an answer has one form, this has {len(used)}: {'; '.join(used)}")


def _check_ranges(answer: Answer, where: str) -> None:
    ranges: Mapping[str, tuple[float | None, float, float]] = {
        "status": (answer.status, 200, 599),
        "delay_ms": (answer.delay_ms, 0, MAX_DELAY_MS),
        "event_delay_ms": (answer.event_delay_ms, 0, MAX_DELAY_MS),
        "keepalive_ms": (answer.keepalive_ms, 0, MAX_DELAY_MS),
        "hang": (answer.hang, 0, MAX_HANG_S),
        "split": (answer.split, 1, 1 << 30),
        "cut_after": (answer.cut_after, 0, 1 << 40),
        "chunk_chars": (answer.chunk_chars, 1, 1 << 30),
    }
    for key, (value, low, high) in ranges.items():
        if value is not None and not low <= value <= high:
            raise ScriptError(f"{where}.{key}: {value} is not in {low} to {high}")
    for name, text in answer.headers.items():
        if any(c in name + text for c in "\r\n\0") or not name.isascii() or not text.isascii():
            raise ScriptError(f"{where}.headers: {name!r} cannot be sent as a header")

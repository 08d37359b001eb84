"""Text from anywhere made safe for a log, a request and a terminal, and cut to size."""

import re
from typing import Final

from lockstitch.wire.strict_json import well_formed

_ESCAPES: Final = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|[\]P^_X][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS and the like
    r"|[ -/]*[0-~]"  # two-character escapes
    r")?"
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 character
)
# ECMA-48, https://ecma-international.org/publications-and-standards/standards/ecma-48/
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_SUSPECT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without terminal escapes; other control characters become visible, a lone CR a line end.

    Tab, LF and CRLF stay. Lone surrogates become U+FFFD. Costs one scan if there is nothing to do.
    """
    if not _SUSPECT.search(text):
        return text
    return visible(_ESCAPES.sub("", text))


def visible(text: str) -> str:
    """Like ``clean``, but escapes are shown (``␛[31m``) and not removed: for the contents of files."""
    if not _SUSPECT.search(text):
        return text
    return _CONTROLS.sub(_picture, well_formed(text))


def _picture(match: re.Match[str]) -> str:
    character = match.group()
    if character == "\r":
        return "\n"
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def middle_cut(text: str, max_chars: int, *, hint: str = "") -> str:
    """The text itself if it fits, else its head and tail around a line that says what is missing.

    Two thirds go to the head. The result is longer than ``max_chars`` only by that line.
    """
    if len(text) <= max_chars:
        return text
    head = max_chars * 2 // 3
    tail = max_chars - head
    missing = len(text) - max_chars
    lines = text.count("\n", head, len(text) - tail)
    gap = f"[... {missing:,} characters ({lines:,} line ends) left out{hint} ...]"
    return f"{text[:head]}\n{gap}\n{text[len(text) - tail :] if tail else ''}"

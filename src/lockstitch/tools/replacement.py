"""One exact replacement in a text, and a useful answer when the text is not there, or there twice."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

_BOM: Final = "\ufeff"
_NUMBERED: Final = re.compile(r"^\s*\d+\t", re.MULTILINE)
_LINES_NAMED: Final = 10
_CANDIDATE_LINES_MAX: Final = 20_000
"""Of the file, for the search for the most similar place."""
_OLD_LINES_MAX: Final = 200
_CANDIDATE_SHOWN: Final = 12
_SIMILAR: Final = 0.6


class NotUniqueError(Exception):
    """The text to replace occurs not at all or more than once; the message is for the model."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text with LF line ends, and what is needed to write it back byte for byte."""

    text: str
    ends: Literal["\n", "\r\n"] = "\n"
    """CRLF only if every line of the file ends so; the text of a mixed file keeps its CRs."""
    bom: bool = False

    @staticmethod
    def decode(data: bytes) -> "FileText":
        """Bytes that are not UTF-8 survive as lone surrogates and are encoded back to what they were."""
        text = data.decode("utf-8", "surrogateescape")
        bom = text.startswith(_BOM)
        text = text.removeprefix(_BOM)
        if "\r\n" in text and text.count("\r") == text.count("\n") == text.count("\r\n"):
            return FileText(text.replace("\r\n", "\n"), "\r\n", bom)
        return FileText(text, "\n", bom)

    def encode(self) -> bytes:
        text = self.text if self.ends == "\n" else self.text.replace("\n", "\r\n")
        return ((_BOM if self.bom else "") + text).encode("utf-8", "surrogateescape")

    def shown(self) -> str:
        return self.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def replace_once(file: FileText, old: str, new: str) -> tuple[FileText, int]:
    """The changed text, and the line (from 1) where the change begins. Raises NotUniqueError.

    In a file whose lines all end in CRLF, LF in ``old`` and ``new`` means CRLF.
    """
    if file.ends == "\r\n":
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise NotUniqueError("the old text is empty. To create a file or replace all of it use write.")
    if old == new:
        raise NotUniqueError("old and new text are the same.")
    count = _occurrences(file.text, old)
    if count > 1:
        raise NotUniqueError(
            f"the old text occurs {count} times, at lines {_lines_of(file.text, old)}. Add lines around it so"
            " that it is found only once."
        )
    if count == 0:
        raise NotUniqueError(_why_missing(file.text, old))
    at = file.text.index(old)
    changed = f"{file.text[:at]}{new}{file.text[at + len(old) :]}"
    return FileText(changed, file.ends, file.bom), file.text.count("\n", 0, at) + 1


def _occurrences(text: str, old: str) -> int:
    """Overlapping ones counted: ``aa`` is in ``aaa`` twice, and which was meant is not known."""
    count, at = 0, text.find(old)
    while at >= 0:
        count += 1
        at = text.find(old, at + 1)
    return count


def _lines_of(text: str, old: str) -> str:
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) <= _LINES_NAMED:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + 1)
    return ", ".join(numbers[:_LINES_NAMED]) + (", ..." if len(numbers) > _LINES_NAMED else "")


def _why_missing(text: str, old: str) -> str:
    if _NUMBERED.match(old) and (bare := _NUMBERED.sub("", old)) and bare in text:
        return "the old text carries the line numbers that read puts in front. Leave number and tab out."
    unix = text.replace("\r\n", "\n")
    if old.replace("\r\n", "\n") in unix:
        return (
            "the old text is there, but its line ends differ: the file mixes LF and CRLF. Use text that lies"
            " within one line, or write the whole file."
        )
    lines, wanted = unix.split("\n"), old.split("\n")
    for key, difference in _DIFFERENCES:
        if (at := _find_lines(lines, wanted, key)) is not None:
            there = _exact(lines, at, len(wanted))
            return f"the old text differs from the file at line {at + 1} only in {difference}.{there}"
    return _nearest(lines, wanted)


def _find_lines(lines: list[str], wanted: list[str], key: Callable[[str], str]) -> int | None:
    """Where the wanted lines stand one below the other if both sides are seen through ``key``."""
    keyed = [key(line) for line in lines]
    target = [key(line) for line in wanted]
    if not any(target):
        return None
    for at in range(len(keyed) - len(target) + 1):
        if keyed[at : at + len(target)] == target:
            return at
    return None


_LOOKALIKES: Final = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\xa0": " "})


def _squeezed(line: str) -> str:
    return " ".join(line.translate(_LOOKALIKES).split())


_DIFFERENCES: Final[tuple[tuple[Callable[[str], str], str], ...]] = (
    (str.rstrip, "spaces at line ends"),
    (str.strip, "indentation"),
    (_squeezed, "spaces, quotes or dashes"),
)


def _nearest(lines: list[str], wanted: list[str]) -> str:
    """The most similar place, found by its most similar line."""
    probe = max(wanted[:_OLD_LINES_MAX], key=lambda line: len(line.strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(probe.strip())
    best, best_at = _SIMILAR, -1
    for number, line in enumerate(lines[:_CANDIDATE_LINES_MAX]):
        matcher.set_seq1(line.strip()[:1000])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, best_at = matcher.ratio(), number
    if best_at < 0:
        return "the old text is not there, nor anything like it. Read the file again."
    start = max(best_at - wanted.index(probe), 0)
    return (
        f"the old text is not there. The nearest is at line {start + 1}.{_exact(lines, start, len(wanted))}"
    )


def _exact(lines: list[str], at: int, count: int) -> str:
    shown = lines[at : at + min(count, _CANDIDATE_SHOWN)]
    body = "\n".join(line[:500] for line in shown)
    rest = "\n..." if count > len(shown) else ""
    return f" There the file reads:\n{body}{rest}"

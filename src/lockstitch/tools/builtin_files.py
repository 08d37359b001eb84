"""``read``, ``write``, ``edit`` and ``list``: files of the workspace."""

import base64
import codecs
import os
import stat
import sys
from itertools import islice
from typing import Annotated, BinaryIO, Final

from lockstitch.schema.blocks import Base64Source, Image, Text

from .contract import Tool, ToolContext, ToolError, ToolOutput
from .diffs import unified
from .functions import tool
from .replacement import FileText, NotUniqueError, replace_once
from .save import load, save
from .text import visible
from .workspace import Place, directory, explained, locate, open_regular, parent_of

DEFAULT_LINES: Final = 2_000
"""Lines that read returns unless told otherwise."""
READ_MAX_CHARS: Final = 45_000
"""Of one read; below the limit of a result, so that it ends at a line and says where to go on."""
LINE_MAX_BYTES: Final = 4_000
"""Of one line shown; longer ones are cut with a remark."""
IMAGE_MAX_BYTES: Final = 3_750_000
"""5 MB of base64, the least that a provider with vision takes."""
LIST_MAX: Final = 1_000
_COUNT_MAX_BYTES: Final = 16 * 1024 * 1024
"""Files up to here are read to their end to say how many lines there are."""
_PIECE_BYTES: Final = 65_536
_SNIFF_BYTES: Final = 8_192
_IMAGES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def file_tools() -> list[Tool]:
    return [
        tool(name="read", parallel=True)(_read),
        tool(name="write", needs="approval")(_write),
        tool(name="edit", needs="approval")(_edit),
        tool(name="list", parallel=True)(_list),
    ]


def _read(
    path: Annotated[str, "File to read, relative to the workspace or absolute inside it."],
    offset: Annotated[int, "First line to return, counted from 1."] = 1,
    limit: Annotated[int, "Number of lines to return."] = DEFAULT_LINES,
    *,
    context: ToolContext,
) -> ToolOutput:
    """Read a file of the workspace. Each line is shown as its number, a tab, and its text.

    The number and the tab are not part of the file. Images are returned as images. A long file is returned in
    parts: the last line says how to go on.
    """
    place = locate(context, path)
    first = max(offset, 1)
    try:
        with os.fdopen(open_regular(place), "rb") as file:
            head = file.read(_SNIFF_BYTES)
            file.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
            if media_type := _image_type(head):
                return _image(place, file, media_type)
            _refuse_binary(place, head, os.fstat(file.fileno()).st_size)
            return ToolOutput((Text(_numbered(place, file, first, max(limit, 1), context)),))
    except OSError as error:
        raise explained(place, error) from error


def _write(
    path: Annotated[str, "File to write; it and its directories are created if they are missing."],
    content: Annotated[str, "The whole new content."],
    *,
    context: ToolContext,
) -> ToolOutput:
    """Write a file of the workspace, replacing what it held. To change a part of a file use edit."""
    place = locate(context, path, write=True)
    data = content.encode()
    try:
        with parent_of(place, create=True) as parent:
            old = load(place, parent, missing_ok=True)
            save(place, parent, data, expected=old)
    except OSError as error:
        raise explained(place, error) from error
    before = "" if old is None else old.data.decode("utf-8", "replace")
    state = "Created" if old is None else "Wrote"
    diff = unified(before, content, place.shown)
    return ToolOutput(
        (Text(f"{state} {place.shown}: {_count_lines(content)}, {len(data):,} bytes."),),
        meta={"path": place.shown, "created": old is None, **diff},
    )


def _edit(
    path: Annotated[str, "File to change."],
    old: Annotated[
        str, "Text to replace, exactly as in the file, with enough around it to be found only once."
    ],
    new: Annotated[str, "Text to put in its place."],
    *,
    context: ToolContext,
) -> ToolOutput:
    """Replace one piece of text in a file of the workspace. The old text must occur exactly once."""
    place = locate(context, path, write=True)
    try:
        with parent_of(place) as parent:
            loaded = load(place, parent, missing_ok=False)
            assert loaded is not None  # a missing file raised
            _refuse_binary(place, loaded.data[:_SNIFF_BYTES], len(loaded.data))
            before = FileText.decode(loaded.data)
            try:
                after, line = replace_once(before, old, new)
            except NotUniqueError as error:
                raise ToolError(f"{place.shown} was not changed: {error}") from error
            save(place, parent, after.encode(), expected=loaded)
    except OSError as error:
        raise explained(place, error) from error
    diff = unified(before.shown(), after.shown(), place.shown)
    around = _around(after.shown(), line, new.count("\n") + 1)
    return ToolOutput(
        (Text(f"Changed {place.shown} at line {line}. It now reads:\n{around}"),),
        meta={"path": place.shown, **diff},
    )


def _list(
    path: Annotated[str, "Directory to list, relative to the workspace or absolute inside it."] = ".",
    *,
    context: ToolContext,
) -> str:
    """List a directory of the workspace: directories first, with a slash, then files with their size."""
    place = locate(context, path)
    try:
        with directory(place) as descriptor:
            entries = list(
                islice(os.scandir(descriptor if descriptor is not None else place.path), LIST_MAX * 10)
            )
            rows = sorted(_row(entry, descriptor) for entry in entries)
    except OSError as error:
        raise explained(place, error) from error
    lines = [text for _, _, text in rows[:LIST_MAX]]
    if len(rows) > LIST_MAX:
        lines.append(f"[{len(rows) - LIST_MAX:,} more entries; use glob to choose among them]")
    return "\n".join(lines) or "(an empty directory)"


def _row(entry: "os.DirEntry[str]", descriptor: int | None) -> tuple[bool, str, str]:
    name = visible(entry.name).replace("\n", "\u2424")
    if entry.is_symlink():
        link = entry.name if descriptor is not None else entry.path
        target = os.readlink(link, dir_fd=descriptor)
        return True, name, f"{name} -> {visible(target)}"
    if entry.is_dir(follow_symlinks=False):
        return False, name, f"{name}/"
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return True, name, name  # it went away meanwhile
    special = "" if stat.S_ISREG(status.st_mode) else "  (not a regular file)"
    return True, name, f"{name}  {status.st_size}{special}"


def _image_type(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES.items() if head.startswith(magic)), None)


def _image(place: Place, file: BinaryIO, media_type: str) -> ToolOutput:
    data = file.read(IMAGE_MAX_BYTES + 1)
    if len(data) > IMAGE_MAX_BYTES:
        raise ToolError(
            f"{place.shown} is an image of more than {IMAGE_MAX_BYTES:,} bytes; make it smaller first."
        )
    image = Image(media_type, Base64Source(base64.b64encode(data).decode()))
    return ToolOutput((Text(f"{place.shown}: {media_type}, {len(data):,} bytes"), image))


def _refuse_binary(place: Place, head: bytes, size: int) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(
            f"{place.shown} is UTF-16 text; convert it with the shell (iconv -f UTF-16 -t UTF-8)."
        )
    if b"\0" in head:
        raise ToolError(
            f"{place.shown} is a binary file of {size:,} bytes; it cannot be shown or edited as text."
        )


def _numbered(place: Place, file: BinaryIO, first: int, limit: int, context: ToolContext) -> str:
    passed = _skip(file, first - 1, context)
    shown: list[str] = []
    chars = 0
    replaced = False
    while len(shown) < limit and chars <= READ_MAX_CHARS and (line := _line(file, context)) is not None:
        text = line.decode("utf-8", "replace")
        replaced = replaced or "\ufffd" in text
        shown.append(f"{first + len(shown):>6}\t{visible(text)}")
        chars += len(shown[-1]) + 1
    if not shown and not passed:
        return f"({place.shown} is empty)"
    if not shown:
        raise ToolError(f"{place.shown} has {passed:,} lines; there is no line {first:,}.")
    last = first + len(shown) - 1
    if os.fstat(file.fileno()).st_size > _COUNT_MAX_BYTES:
        more, total = bool(file.read(1)), ""
    else:
        behind = _skip(file, sys.maxsize, context)
        more, total = behind > 0, f" of {last + behind:,}"
    if more:
        shown.append(f"[lines {first:,} to {last:,}{total}; go on with offset={last + 1}]")
    if replaced:
        shown.append("[some bytes are not UTF-8 and are shown as \ufffd]")
    return "\n".join(shown)


def _skip(file: BinaryIO, lines: int, context: ToolContext) -> int:
    """Pass over so many lines, or to the end of the file; how many it were. Costs little for each line."""
    passed = 0
    unended = False
    while passed < lines:
        piece = file.read(_PIECE_BYTES)
        if not piece:
            return passed + unended
        _look_at(context)
        ends = piece.count(b"\n")
        if passed + ends >= lines:
            at = 0
            for _ in range(lines - passed):
                at = piece.index(b"\n", at) + 1
            file.seek(at - len(piece), os.SEEK_CUR)
            return lines
        passed += ends
        unended = not piece.endswith(b"\n")
    return passed


def _line(file: BinaryIO, context: ToolContext) -> bytes | None:
    """The next line without its end, cut at LINE_MAX_BYTES with a remark; None at the end of the file."""
    line = file.readline(LINE_MAX_BYTES)
    if not line:
        return None
    if not line.endswith(b"\n"):
        rest = 0
        while (piece := file.readline(_PIECE_BYTES)) and not piece.endswith(b"\n"):
            _look_at(context)
            rest += len(piece)
        rest += len(piece.rstrip(b"\r\n"))
        if rest:
            cut = line.decode("utf-8", "ignore").encode()  # not in the middle of a character
            return cut + f" [... {rest + len(line) - len(cut):,} more bytes in this line]".encode()
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _look_at(context: ToolContext) -> None:
    """Whether to go on with a file of any size. Raises ToolError."""
    if context.stopping.is_set():
        raise ToolError("cancelled")


def _around(text: str, line: int, lines: int) -> str:
    """The changed lines and two on each side, numbered; the middle of a long change left out."""
    all_lines = text.removesuffix("\n").split("\n")
    start = max(line - 3, 0)
    end = min(line + 1 + lines, len(all_lines))
    rows = [f"{number + 1:>6}\t{visible(all_lines[number][:500])}" for number in range(start, end)]
    return "\n".join(rows if len(rows) <= 40 else [*rows[:20], "   ...", *rows[-20:]])


def _count_lines(text: str) -> str:
    count = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    return f"{count:,} line" + ("" if count == 1 else "s")

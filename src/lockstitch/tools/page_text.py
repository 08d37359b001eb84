"""Web pages as text that a model can read: headings, lists and links kept, everything else dropped."""

import re
import time
from html.parser import HTMLParser
from typing import Final

_SKIPPED: Final = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "head"})
_BLOCKS: Final = frozenset(
    {
        "p",
        "div",
        "section",
        "article",
        "header",
        "footer",
        "main",
        "nav",
        "aside",
        "ul",
        "ol",
        "table",
        "form",
    }
    | {"blockquote", "figure", "dl", "dd", "dt", "address", "details", "summary", "hr"}
)
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_DEPTH_MAX: Final = 1_000
_PIECE_CHARS: Final = 16_384


def page_text(html: str, *, time_s: float = 5.0) -> str:
    """The page's title and text. Takes any text; what is no HTML comes back as it is, more or less.

    Blocking; for a worker thread. A page that takes longer than ``time_s`` is read only as far as that, for
    the standard library's parser can be made to take quadratic time.
    """
    reader = _Reader()
    deadline = time.monotonic() + time_s
    for start in range(0, len(html), _PIECE_CHARS):
        reader.feed(html[start : start + _PIECE_CHARS])
        if time.monotonic() > deadline:
            return f"{reader.text()}\n[the rest of the page took too long to read]"
    if len(reader.rawdata) < _PIECE_CHARS:
        reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._skipping: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._verbatim = 0
        self._links: list[tuple[int, str]] = []

    def text(self) -> str:
        body = "".join(self._out)
        body = re.sub(r"[ \t]+\n", "\n", body)
        body = re.sub(r"\n{3,}", "\n\n", body).strip()
        title = " ".join("".join(self._title).split())
        return f"{title}\n\n{body}".strip() if title else body

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in _SKIPPED:
            if len(self._skipping) < _DEPTH_MAX:
                self._skipping.append(tag)
            return
        if self._skipping:
            if tag != "body":
                return
            self._skipping.clear()  # a head that was never closed
        match tag:
            case "br":
                self._out.append("\n")
            case "li":
                self._out.append("\n- ")
            case "tr":
                self._out.append("\n")
            case "td" | "th":
                self._out.append(" | ")
            case "pre":
                self._verbatim += 1
                self._out.append("\n\n```\n")
            case "a":
                self._links.append((len(self._out), dict(attrs).get("href") or ""))
            case "img":
                if alt := dict(attrs).get("alt"):
                    self._out.append(f"[image: {alt}]")
            case _ if tag in _HEADINGS:
                self._out.append(f"\n\n{_HEADINGS[tag]} ")
            case _ if tag in _BLOCKS:
                self._out.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in self._skipping:
            while self._skipping.pop() != tag:
                pass
            return
        if self._skipping:
            return
        match tag:
            case "pre" if self._verbatim:
                self._verbatim -= 1
                self._out.append("\n```\n\n")
            case "a" if self._links:
                self._close_link(*self._links.pop())
            case _ if tag in _HEADINGS or tag in _BLOCKS:
                self._out.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif self._skipping:
            return
        elif self._verbatim:
            self._out.append(data)
        else:
            text = re.sub(r"\s+", " ", data)
            if text != " " or (self._out and not self._out[-1].endswith(("\n", " "))):
                self._out.append(text)

    def _close_link(self, start: int, target: str) -> None:
        label = "".join(self._out[start:]).strip()
        if label and target.startswith(("http://", "https://", "/")) and "\n" not in label:
            self._out[start:] = [f"[{label}]({target})"]

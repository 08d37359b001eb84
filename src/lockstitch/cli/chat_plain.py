"""A conversation in plain lines: for dumb terminals, pipes, and where prompt_toolkit is not installed."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, TextIO, assert_never

from .chat_items import (
    AnswerText,
    CallLine,
    Item,
    NoteLine,
    ResultLines,
    UserText,
    choices,
    question_lines,
    safe,
)
from .chat_talk import Closed, Interrupted, Talk, Typed

LINE_MAX: Final = 1024 * 1024
"""Bytes of one line of input; more than that is no line that somebody typed."""
READ_BYTES: Final = 64 * 1024
"""At once."""


def plain(item: Item) -> Iterator[str]:
    """The lines of an item, without colour."""
    match item:
        case UserText(text):
            yield from (f"> {line}" for line in text.split("\n"))
        case AnswerText(text):
            yield from text.split("\n")
        case NoteLine(text):
            yield f"-- {text}"
        case CallLine(name, summary):
            yield f"* {name} {summary}".rstrip()
        case ResultLines(name, outcome, detail, lines, _, more, of):
            yield f"  {of or name}: {outcome}" + (f", {detail}" if detail else "")
            yield from (f"  | {line}" for line in lines)
            if more:
                yield f"  | … {more} more lines"
        case _:
            assert_never(item)


class LineView:
    """Prints items as they come. An answer streams on a terminal; elsewhere only what is final is printed."""

    def __init__(self, out: TextIO, *, interactive: bool) -> None:
        self.interactive = interactive
        self._out = out
        self._live = out.isatty()
        self._held: list[str] = []
        self._open = False
        self._question: object = None
        self.talk: Talk | None = None

    def show(self, item: Item) -> None:
        self._end_line()
        if isinstance(item, UserText) and item.echoed and self.interactive:
            return  # it stands there: the terminal showed it
        for line in plain(item):
            self._write(line + "\n")

    def stream(self, text: str) -> None:
        self._held.append(text)
        if self._live:
            self._write(safe(text))
            self._open = not text.endswith("\n")

    def settle(self) -> None:
        text = "".join(self._held)
        self._held.clear()
        if not self._live and text.strip():
            self._write(safe(text))
            self._open = not text.endswith("\n")
        self._end_line()

    def withdraw(self) -> None:
        shown = self._live and "".join(self._held).strip()
        self._held.clear()
        self._end_line()
        if shown:
            self.show(NoteLine("the text above belongs to a model call that failed: it does not count"))

    def changed(self) -> None:
        asked = self.talk.status.question if self.talk is not None else None
        if asked is not None and asked is not self._question and self.interactive:
            for line in question_lines(asked):
                self.show(NoteLine(f"? {line}"))
            self.show(NoteLine(f"allow? {choices(asked)}"))
        self._question = asked

    def _end_line(self) -> None:
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def lines_of(read: Callable[[], bytes | None]) -> Iterator[str]:
    """The lines of what ``read`` gives, until it gives nothing: as soon as each is whole, without its end."""
    held = b""
    while data := read():
        *whole, held = (held + data).split(b"\n")
        if len(held) >= LINE_MAX:
            whole.append(held)
            held = b""
        yield from (line.decode(errors="replace").rstrip("\r") for line in whole)
    if held:
        yield held.decode(errors="replace").rstrip("\r")


async def run_plain(talk: Talk) -> None:
    """The whole conversation, over stdin and stdout."""
    import signal
    from contextlib import suppress

    loop = asyncio.get_running_loop()
    view = LineView(sys.stdout, interactive=sys.stdin.isatty())
    view.talk = talk

    def read() -> None:
        # Without a buffer: its lock, held by a thread that waits for a line, is fatal when Python ends.
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source, suppress(RuntimeError):
            # A loop that is closed has nobody left who would read.
            with suppress(OSError):  # a terminal that is gone, which is an end as well
                for text in lines_of(lambda: source.read(READ_BYTES)):
                    loop.call_soon_threadsafe(talk.inbox.put_nowait, Typed(text))
            loop.call_soon_threadsafe(talk.inbox.put_nowait, Closed())

    with suppress(NotImplementedError):  # Windows has no handlers in its loop
        loop.add_signal_handler(signal.SIGINT, talk.inbox.put_nowait, Interrupted())
        loop.add_signal_handler(signal.SIGTERM, talk.inbox.put_nowait, Closed())
    # A daemon, because nothing can wake a thread that waits for a line.
    threading.Thread(target=read, name="stdin", daemon=True).start()
    await talk.run(view)

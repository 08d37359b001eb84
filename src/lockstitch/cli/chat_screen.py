"""A conversation on a real terminal: finished lines scroll away above, the rest is kept at the bottom.

The screen is the terminal's own, not an alternate one, so what was said stays in its scrollback after the
program has ended. Only what is final is printed there; a running answer is drawn at the bottom, and is
printed in part only when it outgrows that place.
"""

import asyncio
import os
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.containers import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.utils import get_cwidth

from .chat_complete import candidates
from .chat_items import AnswerText, Item, NoteLine, choices, one_line, question_lines
from .chat_paint import Painter, stable_part
from .chat_talk import Closed, Interrupted, Talk, Typed

KEPT: Final = 200
"""Items that are printed again when the window's size changes."""
TICK_S: Final = 0.125
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
INPUT_LINES: Final = 8
QUEUE_LINES: Final = 4


class Screen:
    """The view, and the prompt_toolkit application under it."""

    interactive = True

    def __init__(self, talk: Talk, *, colour: bool, history: Path | None) -> None:
        self._talk = talk
        self._painter = Painter(colour=colour)
        self._answer = ""
        self._items: deque[Item] = deque(maxlen=KEPT)
        self._waiting: list[Item] = []
        self._print = asyncio.Event()
        self._size = (0, 0)
        self._resized = False
        self._hint = ""
        self._partly_printed = False
        self._live_cache: tuple[tuple[str, int, int], StyleAndTextTuples] = (("", 0, 0), [])
        self._buffer = Buffer(multiline=True, history=_history(history), accept_handler=self._accepted)
        self._app: Application[None] = Application(
            layout=Layout(self._layout()),
            key_bindings=self._keys(),
            full_screen=False,
            erase_when_done=True,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            after_render=lambda _: self._check_size(),
        )

    async def run(self) -> None:
        """The whole conversation. Raises what opening the session raises."""
        # Never at the very top: some terminals keep a whole screen that is erased in their scrollback.
        sys.stdout.write("/help lists the commands\n")
        sys.stdout.flush()
        helpers = [asyncio.create_task(self._printer()), asyncio.create_task(self._ticker())]
        talking = asyncio.create_task(self._talk.run(self))
        talking.add_done_callback(lambda _: self._leave())
        try:
            await self._app.run_async(handle_sigint=False)
        finally:
            if not talking.done():
                self._talk.inbox.put_nowait(Closed())
            await asyncio.wait({talking})
            for helper in helpers:
                helper.cancel()
            self._flush_at_the_end()
        await talking

    # ---- the view ----

    def show(self, item: Item) -> None:
        self._items.append(item)
        self._waiting.append(item)
        self._print.set()

    def stream(self, text: str) -> None:
        self._answer += text
        self._spill()

    def settle(self) -> None:
        text, self._answer = self._answer, ""
        self._partly_printed = False
        if text.strip():
            self.show(AnswerText(text))

    def withdraw(self) -> None:
        if self._partly_printed:
            self.show(NoteLine("the answer above belongs to a model call that failed: it does not count"))
        self._answer = ""
        self._partly_printed = False

    def changed(self) -> None:
        self._app.invalidate()

    def _spill(self) -> None:
        """Print what is complete of an answer that no longer fits at the bottom."""
        lines = self._answer.count("\n") + len(self._answer) // max(self._columns(), 20)
        if lines <= self._live_lines():
            return
        at = stable_part(self._answer)
        if at and self._answer[:at].strip():
            self.show(AnswerText(self._answer[:at]))
            self._answer = self._answer[at:]
            self._partly_printed = True

    # ---- printing above ----

    async def _printer(self) -> None:
        while True:
            await self._print.wait()
            self._print.clear()
            items, self._waiting = self._waiting, []
            resized, self._resized = self._resized, False
            text = self._all_that_fits() if resized else self._painted(items)
            if not text:
                continue
            async with in_terminal():
                output = self._app.output
                if resized:
                    output.write_raw("\x1b[2J\x1b[H")
                output.write_raw(text.replace("\n", "\r\n"))
                output.flush()

    def _painted(self, items: "list[Item]") -> str:
        return "".join(self._painter.item(item, self._columns()) for item in items)

    def _all_that_fits(self) -> str:
        """The latest items, for the new size: what an old size had wrapped is not to be mended in place."""
        room = self._app.output.get_size().rows - 4
        parts: list[str] = []
        for item in reversed(self._items):
            text = self._painted([item])
            room -= text.count("\n")
            if room < 0 and parts:
                break
            parts.append(text)
        return "".join(reversed(parts))

    def _check_size(self) -> None:
        size = self._app.output.get_size()
        now = (size.rows, size.columns)
        if self._size not in ((0, 0), now):
            self._resized = True
            self._print.set()
        self._size = now

    def _flush_at_the_end(self) -> None:
        items, self._waiting = self._waiting, []
        sys.stdout.write(self._painted(items))
        sys.stdout.flush()

    # ---- the bottom ----

    def _layout(self) -> HSplit:
        def window(text: "object", *, height: Dimension | int | None = None) -> Window:
            control = FormattedTextControl(text)  # type: ignore[arg-type]  # a callable that makes such text
            return Window(control, height=height, dont_extend_height=True, wrap_lines=False)

        live = window(self._live)
        question = window(self._question)
        queue = window(self._queue)
        entry = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput("> ", style="bold")]),
            height=Dimension(min=1, max=INPUT_LINES),
            dont_extend_height=True,
            wrap_lines=True,
        )
        return HSplit(
            [
                ConditionalContainer(live, filter=Condition(lambda: bool(self._answer.strip()))),
                ConditionalContainer(
                    question, filter=Condition(lambda: self._talk.status.question is not None)
                ),
                ConditionalContainer(
                    window(self._activity, height=1), filter=Condition(lambda: self._talk.busy)
                ),
                ConditionalContainer(queue, filter=Condition(lambda: bool(self._queued()))),
                entry,
                window(self._bar, height=1),
            ]
        )

    def _live(self) -> StyleAndTextTuples:
        """The end of the running answer."""
        rows, columns = self._live_lines(), self._columns()
        key = (self._answer, rows, columns)
        if self._live_cache[0] != key:
            painted = self._painter.markdown(self._answer[-rows * columns * 2 :], columns)
            lines = list(split_lines(to_formatted_text(ANSI(painted.rstrip("\n")))))[-rows:]
            joined: StyleAndTextTuples = []
            for line in lines:
                joined += [*line, ("", "\n")]
            self._live_cache = (key, joined[:-1])
        return self._live_cache[1]

    def _question(self) -> StyleAndTextTuples:
        asked = self._talk.status.question
        if asked is None:
            return []
        room = max(self._app.output.get_size().rows - 10, 3)
        lines = question_lines(asked)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines"]
        body = "\n".join(self._cut(f"? {line}") for line in lines)
        return [("fg:ansiyellow", body + "\n"), ("bold fg:ansiyellow", self._cut(f"allow? {choices(asked)}"))]

    def _activity(self) -> StyleAndTextTuples:
        status = self._talk.status
        if not status.activity:
            return []
        elapsed = time.monotonic() - status.since
        spin = SPINNER[int(elapsed / TICK_S) % len(SPINNER)]
        parts = [f"{spin} {status.activity}", f"{elapsed:.0f} s"]
        if status.streamed_chars:
            parts.append(f"~{status.streamed_chars // 4:,} tokens")
        if not status.stopping:
            parts.append("Ctrl-C stops")
        if status.progress:
            parts.append(status.progress)
        return [("fg:ansicyan", self._cut(" · ".join(parts)))]

    def _queued(self) -> tuple[str, ...]:
        return self._talk.session.queued if self._talk.is_open else ()

    def _queue(self) -> StyleAndTextTuples:
        waiting = [self._cut(f"queued: {one_line(text)}") for text in self._queued()]
        more = [f"… {len(waiting) - QUEUE_LINES} more"] if len(waiting) > QUEUE_LINES else []
        return [("italic", "\n".join([*waiting[:QUEUE_LINES], *more]))]

    def _bar(self) -> StyleAndTextTuples:
        if self._hint:
            return [("", self._cut(self._hint))]
        if not self._talk.is_open:
            return [("", "opening …")]
        session = self._talk.session
        parts = [session.model]
        size, window = session.context_tokens, session.context_window
        parts.append(f"{size * 100 // window}% of {window:,}" if window else f"{size:,} tokens")
        if session.cost is not None:
            parts.append(f"${session.cost:.4f}")
        parts.append(session.title or session.id)
        return [("fg:ansibrightblack", self._cut(one_line(" · ".join(parts), 400)))]

    def _cut(self, text: str) -> str:
        """As much as goes on one line; a character of two columns counts as two."""
        room = self._columns() - 1
        width = 0
        for position, character in enumerate(text):
            width += get_cwidth(character)
            if width > room:
                return text[: max(position - 1, 0)] + "…"
        return text

    def _columns(self) -> int:
        return self._app.output.get_size().columns

    def _live_lines(self) -> int:
        return max(self._app.output.get_size().rows // 2, 4)

    # ---- input ----

    def _accepted(self, buffer: Buffer) -> bool:
        self._hint = ""
        self._talk.inbox.put_nowait(Typed(buffer.text))
        return False

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            self._buffer.validate_and_handle()

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._hint = ""
            if self._buffer.text and not self._talk.busy:
                self._buffer.reset()
            else:
                self._talk.inbox.put_nowait(Interrupted())

        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            if self._buffer.text:
                self._buffer.delete()
            else:
                self._talk.inbox.put_nowait(Closed())

        @keys.add("tab")
        def _(event: KeyPressEvent) -> None:
            self._complete()

        return keys

    def _complete(self) -> None:
        before = self._buffer.document.text_before_cursor
        start, found = candidates(before, self._talk)
        if not found:
            return
        common = os.path.commonprefix(found)  # noqa: RUF071  # of texts, not of paths
        if len(found) == 1 and not common.endswith("/"):
            common += " "
        if len(common) > len(before) - start:
            text = before[:start] + common + self._buffer.document.text_after_cursor
            self._buffer.document = Document(text, start + len(common))
        self._hint = "  ".join(found) if len(found) > 1 else ""

    # ---- its life ----

    async def _ticker(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self._talk.busy:
                self._app.invalidate()

    def _leave(self) -> None:
        # The application may not have begun, where the session could not be opened at all.
        with suppress(Exception):
            self._app.exit()


def _history(file: Path | None) -> History:
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        # Not being able to remember is no reason not to talk.
        return InMemoryHistory()
    return FileHistory(str(file))

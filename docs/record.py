"""Records docs/images from a real conversation: ``lockstitch chat`` in tmux, against the mock gateway.

``python docs/record.py`` needs tmux, and pyte and Pillow (the extra ``docs``). It writes the recording as an
asciicast (``chat.cast``, for ``asciinema play``) and screenshots as PNG, from the bytes that were written.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
from PIL import Image, ImageDraw, ImageFont

from lockstitch.testing.gateway import running_gateway

WIDTH, HEIGHT = 84, 34
IMAGES = Path(__file__).parent / "images"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono{}.ttf"
SIZE = 15
CELL = (9, 19)
COLOURS = {
    "default": "#d8dee4", "black": "#24292f", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341",
    "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#56d4dd", "white": "#d8dee4",
    "brightblack": "#7d8590", "brightred": "#ffa198", "brightgreen": "#a5f3b0", "brightbrown": "#f2cc60",
    "brightblue": "#a5d6ff", "brightmagenta": "#e2c5ff", "brightcyan": "#8ae9ef", "brightwhite": "#ffffff",
}  # fmt: skip
BACKGROUND = "#0d1117"
SLOW = {"chunk_chars": 5, "event_delay_ms": 35}
SCRIPT: list[Any] = [
    {"text": "I shall look at the code and its test first.", **SLOW,
     "tool_calls": [{"name": "read", "arguments": {"path": "add.py"}},
                    {"name": "shell", "arguments": {"command": "python -m unittest -q test_add"}}]},
    {"text": "`add` subtracts. I shall mend that.", **SLOW,
     "tool_calls": [{"name": "edit", "arguments": {
         "path": "add.py", "old": "    return a - b\n", "new": "    return a + b\n"}}]},
    {"text": "Now the te", **SLOW, "cut_after": 300},
    {"tool_calls": [{"name": "shell", "arguments": {"command": "python -m unittest -q test_add"}}]},
    {"text": "The test passes now.\n\n- `add` **subtracted**: it returned `a - b`\n- I changed one line\n"
             "- the docstring says what it does, as you asked\n", **SLOW},
]  # fmt: skip


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_gateway(SCRIPT) as gateway:
        work = Path(folder) / "sums"
        work.mkdir()
        (work / "add.py").write_text('def add(a, b):\n    """The sum."""\n    return a - b\n')
        (work / "test_add.py").write_text(
            "import unittest\n\nfrom add import add\n\n\nclass Test(unittest.TestCase):\n"
            "    def test_sum(self):\n        self.assertEqual(add(2, 2), 4)\n"
        )
        recorder = Recorder(work, Path(folder), gateway.base_url)
        recorder.until("new session")
        recorder.say("The test fails. Mend it.")
        recorder.until("? $ python -m unittest")
        recorder.say("s")
        recorder.until("? edit add.py")
        recorder.say("and check the docstring")
        recorder.until("queued: and check")
        recorder.picture("chat")
        recorder.say("y")
        recorder.until("as you asked", "tokens in")
        recorder.say("/why")
        recorder.until("  code: ")
        recorder.picture("chat-why")
        recorder.say("/exit")
        recorder.until("is kept")
        recorder.save("chat")
        recorder.close()


class Recorder:
    """A chat in tmux, whose output goes to a file with the times at which it came."""

    def __init__(self, work: Path, folder: Path, base_url: str) -> None:
        self._name = f"record-{os.getpid()}"
        self._raw = folder / "raw.jsonl"
        environ = {
            "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONUTF8": "1",
            "DEEPSEEK_API_KEY": "sk-recording-0123456789", "LOCKSTITCH_HOME": str(folder / "home"),
            "HOME": str(folder),
        }  # fmt: skip
        command = [sys.executable, "-m", "lockstitch", "chat", "-m", "deepseek:deepseek-chat"]
        command += ["--session", "sums", "--base-url", base_url]
        pairs = [f"{name}={value}" for name, value in environ.items()]
        size = ["-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(work)]
        stamp = (
            "import sys,os,time,json\nb=time.time()\nout=open(sys.argv[1],'w')\n"
            "while data:=os.read(0,65536):\n"
            " out.write(json.dumps([time.time()-b,data.decode(errors='replace')])+'\\n');out.flush()"
        )
        stamper = folder / "stamp.py"
        stamper.write_text(stamp)
        # The program waits for a line, so that nothing is written before the pipe is there.
        script = 'read _; exec env -i "$@"'
        self._tmux(
            "-f",
            os.devnull,
            "new-session",
            "-d",
            "-s",
            "t",
            *size,
            "sh",
            "-c",
            script,
            "sh",
            *pairs,
            *command,
        )
        self._tmux("set-option", "-t", "t", "remain-on-exit", "on")
        self._tmux("pipe-pane", "-t", "t", f"{sys.executable} {stamper} {self._raw}")
        self._tmux("send-keys", "-t", "t", "Enter")

    def say(self, text: str) -> None:
        """As fast as a person types."""
        for character in text:
            self._tmux("send-keys", "-t", "t", "-l", character)
            time.sleep(0.05)
        self._tmux("send-keys", "-t", "t", "Enter")

    def until(self, *texts: str) -> None:
        deadline = time.monotonic() + 30
        while not all(text in self._shown() for text in texts):
            assert time.monotonic() < deadline, f"{texts}:\n{self._shown()}"
            time.sleep(0.05)
        time.sleep(0.4)

    def picture(self, name: str) -> None:
        """The screen as PNG, from the bytes so far."""
        screen = pyte.Screen(WIDTH, HEIGHT)
        stream = pyte.Stream(screen)
        for _, data in self._events():
            stream.feed(data)
        _image(screen).save(IMAGES / f"{name}.png", optimize=True)

    def save(self, name: str) -> None:
        """The recording, in the format asciicast v2."""
        head = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": "lockstitch chat"}
        lines = [json.dumps(head)]
        lines += [json.dumps([round(at, 2), "o", data]) for at, data in self._events()]
        (IMAGES / f"{name}.cast").write_text("\n".join(lines) + "\n")

    def close(self) -> None:
        self._tmux("kill-server")

    def _events(self) -> Iterator[tuple[float, str]]:
        for line in self._raw.read_text().splitlines():
            at, data = json.loads(line)
            yield at, data

    def _shown(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "t")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout


def _image(screen: pyte.Screen) -> Image.Image:
    fonts = {bold: ImageFont.truetype(FONT.format("-Bold" if bold else ""), SIZE) for bold in (False, True)}
    margin = 14
    size = (screen.columns * CELL[0] + 2 * margin, screen.lines * CELL[1] + 2 * margin)
    image = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(image)
    for row in range(screen.lines):
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            place = (margin + column * CELL[0], margin + row * CELL[1])
            front, back = COLOURS.get(cell.fg, f"#{cell.fg}"), COLOURS.get(cell.bg, f"#{cell.bg}")
            if cell.reverse:
                front, back = BACKGROUND, COLOURS["default"]
            elif cell.bg == "default":
                back = BACKGROUND
            if back != BACKGROUND:
                draw.rectangle([place, (place[0] + CELL[0], place[1] + CELL[1])], fill=back)
            if cell.data.strip():
                shown = "•" if "\u2800" <= cell.data[0] <= "\u28ff" else cell.data  # the font has no braille
                draw.text(place, shown, fill=front, font=fonts[cell.bold])
    return image.quantize(64)


if __name__ == "__main__":
    main()

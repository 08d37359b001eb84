"""The lines that commands write: JSON for programs, and single lines for people.

Both may end on a terminal, and hold what models, tools, gateways and files said. Neither steers it.
"""

import json
import re
from typing import Final

import click

from ..tools.text import clean

_UNESCAPED: Final = re.compile(r"[\x7f-\x9f]")
"""Control characters that JSON may hold as they are; terminals obey the upper ones like an escape."""


def json_text(value: object) -> str:
    """``value`` as JSON on one line, with every control character escaped."""
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    """The same JSON, with the control characters escaped that its encoder left as they are."""
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def tell(text: str) -> None:
    """A line on stderr, for people; what is no text in it is made visible or left out."""
    click.echo(" ".join(clean(text).split()), err=True)

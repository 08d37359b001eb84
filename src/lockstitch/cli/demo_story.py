"""The story that ``lockstitch demo`` plays: a project, a model's answers, and what must come of them."""

import shlex
from typing import Any, Final

from ..schema.usage import Usage

TASK: Final = "The test of this project fails. Find out why, mend it, and show that the test passes."
KEY_VARIABLE: Final = "DEEPSEEK_API_KEY"
KEY: Final = "sk-demo-1f0c6d2b9a7e4458"
"""Given to the agent; looked for in everything it leaves behind."""
MODEL: Final = "deepseek:deepseek-chat"
SESSION: Final = "demo"

SIGN_OF_LIFE: Final = "audit.pid"
"""The tool that gets killed writes its process id here when it runs."""

_TILL: Final = '''\
"""Prices in cents."""


def total(prices, discount_percent=0):
    """Sum of the prices, less the discount, rounded to a cent."""
    full = sum(prices)
    return full - full * discount_percent
'''

MENDED: Final = _TILL.replace("full * discount_percent\n", "round(full * discount_percent / 100)\n")

PROJECT: Final = {
    "till.py": _TILL,
    "test_till.py": """\
import unittest

from till import total


class Till(unittest.TestCase):
    def test_a_discount_is_a_percentage(self):
        self.assertEqual(total([1000, 250], discount_percent=10), 1125)
""",
    "audit.py": f'''\
"""A slow tool: says that it lives, then takes its time."""

import os
import pathlib
import time

sign = pathlib.Path("{SIGN_OF_LIFE}.part")
sign.write_text(str(os.getpid()))
sign.rename("{SIGN_OF_LIFE}")
time.sleep(600)
''',
}

USAGES: Final = (
    Usage(input_tokens=412, output_tokens=58),
    Usage(input_tokens=690, output_tokens=31),  # the refused attempt: billed, so counted
    Usage(input_tokens=690, output_tokens=40),
    Usage(input_tokens=160, output_tokens=77, cache_read_tokens=640),
    Usage(input_tokens=210, output_tokens=44, cache_read_tokens=896),
    Usage(input_tokens=205, output_tokens=36, cache_read_tokens=1088),
)
"""What the gateway bills for each of its answers, in order."""


def answers(python: str) -> list[dict[str, Any]]:
    """The gateway's script; ``python`` runs the project's test and the slow tool."""
    test = f"{shlex.quote(python)} -m unittest -q"
    look, nameless, run, mend, check, done = ({"usage": _wire_usage(usage)} for usage in USAGES)
    return [
        {
            **look,
            "reasoning": "The failing test and the code it tests come first.",
            "text": "Let me look at the test and the code.",
            "tool_calls": [
                {"name": "read", "arguments": {"path": "test_till.py"}},
                {"name": "read", "arguments": {"path": "till.py"}},
            ],
            "quirks": ["empty_continuation_ids", "interleaved"],
            "chunk_chars": 4,
        },
        {
            **nameless,
            "text": "I will run the test.",
            "tool_calls": [{"name": "shell", "arguments": {"command": test}}],
            "quirks": ["no_name"],
        },
        {
            **run,
            "text": "Now let me see it fail.",
            "tool_calls": [{"name": "shell", "arguments": {"command": test}}],
            "quirks": ["null_continuation_ids"],
            "chunk_chars": 3,
        },
        {
            **mend,
            "text": "A percentage must be divided by 100. I mend that, then audit the till.",
            "tool_calls": [
                {
                    "name": "edit",
                    "arguments": {
                        "path": "till.py",
                        "old": "full * discount_percent",
                        "new": "round(full * discount_percent / 100)",
                    },
                },
                {"name": "shell", "arguments": {"command": f"{shlex.quote(python)} audit.py"}},
            ],
            "quirks": ["empty_continuation_ids"],
            "chunk_chars": 5,
        },
        {
            **check,
            "text": "The edit is done; what became of the audit is unknown, so I do not rely on it.",
            "tool_calls": [{"name": "shell", "arguments": {"command": test}}],
            "quirks": ["repeated_identity"],
            # The gateway answers this only if the model is told the truth about both calls.
            "expect": {"contains": ["outcome is unknown", "Continue where you left off"]},
        },
        {**done, "text": "total() treated 10 % as a factor of 10. It is mended, and the test passes."},
    ]


CALLS: Final = (
    ("read", "done"),
    ("read", "done"),
    ("shell", "failed"),
    ("edit", "done"),
    ("shell", "unknown"),
    ("shell", "done"),
)
"""Every call of the log in order, and what its answer must say about it."""
TURNS: Final = ("interrupted", "completed")
ATTEMPTS: Final = 6
REFUSED: Final = "MALFORMED_TOOL_CALL"
ANSWER: Final = "total() treated 10 % as a factor of 10. It is mended, and the test passes."


def billed() -> Usage:
    """The sum of all that the gateway billed."""
    total = Usage()
    for usage in USAGES:
        total = total + usage
    return total


def _wire_usage(usage: Usage) -> dict[str, int]:
    fields = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if usage.cache_read_tokens is not None:
        fields["cache_read_tokens"] = usage.cache_read_tokens
    return fields

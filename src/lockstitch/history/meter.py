"""The meter: how large the next request is, from the provider's last count and an estimate of what is new.

An answer's usage is the truth for everything up to it. It is believed only for the same model, system prompt
and tools, and not where it is out of all proportion to the estimate (gateways report zeros and parts). It
also corrects the estimate of a history that was rewritten since, for which no count exists yet.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from ..schema.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from ..schema.events import RequestHeader
from .context import Context, counted
from .media import base64_size
from .tokens import estimate, message_tokens

LEAST_RATIO: Final = 0.25
"""Of a believable count to the estimate: text of one rare kind can lie this far off, and hardly more."""
MOST_RATIO: Final = 3.0
CAUTION: Final = 1.1
"""On the correction of an estimate: what is left of a history may be of another kind than the whole."""
BODY_CHARS_MAX: Final = 16_000_000
"""Characters of a request. The smallest limit of the four protocols' vendors is 20 MB.

Source: https://discuss.ai.google.dev/t/is-there-any-preprocessing-of-images-in-api/43061 (read 2026-11-30): a
Gemini request of more than 20 MB has to go through the Files API.
"""


class Size(NamedTuple):
    """Of one request."""

    tokens: int
    body_chars: int
    """Of its JSON, roughly: texts and base64."""
    images: int


class Meter:
    """Measures one session's requests to one model; each message is estimated once."""

    def __init__(self, header: RequestHeader) -> None:
        self.header = header
        self.fixed = estimate((), system=header.system, tools=header.tools)
        """Tokens of system prompt and tools."""
        self._fixed_chars = len(header.system) + sum(len(tool.description) + 400 for tool in header.tools)
        self._epoch = -1
        self._tokens: list[int] = [0]
        self._chars: list[int] = [0]
        self._images: list[int] = [0]
        self._ratio = 1 / CAUTION
        """Of counts to estimates; without any count yet the estimate stands as it is."""

    def size(self, context: Context) -> Size:
        """Of the next request; tokens err high."""
        self._catch_up(context)
        return Size(self._prompt_tokens(context), self._fixed_chars + self._chars[-1], self._images[-1])

    def of(self, context: Context, start: int, end: int) -> int:
        """Estimated tokens of the live messages from ``start`` up to ``end``."""
        self._catch_up(context)
        return self._tokens[end] - self._tokens[start]

    def likely(self, tokens: int) -> int:
        """An estimate as the provider would probably count it: for what may well be refused."""
        return math.ceil(tokens * self._ratio)

    def _corrected(self, tokens: int) -> int:
        return math.ceil(tokens * min(self._ratio * CAUTION, MOST_RATIO))

    def _is_own(self, header: RequestHeader | None) -> bool:
        return header is not None and counted(header) == counted(self.header)

    def _catch_up(self, context: Context) -> None:
        known = len(self._tokens) - 1
        if self._epoch != context.epoch or known > len(context.messages):
            self._tokens, self._chars, self._images, known = [0], [0], [0], 0
            self._epoch = context.epoch
        for message in context.messages[known:]:
            self._tokens.append(self._tokens[-1] + message_tokens(message))
            chars, images = _body(message.content)
            self._chars.append(self._chars[-1] + chars)
            self._images.append(self._images[-1] + images)

    def _prompt_tokens(self, context: Context) -> int:
        whole = self.fixed + self._tokens[-1]
        usage, measured = context.last_usage, context.measured
        if usage is None or not self._is_own(context.header) or measured >= len(self._tokens):
            return self._corrected(whole)
        estimated = self.fixed + self._tokens[measured]
        ratio = usage.context_tokens / max(estimated, 1)
        if not LEAST_RATIO <= ratio <= MOST_RATIO:
            return whole
        self._ratio = ratio
        return usage.context_tokens + math.ceil((whole - estimated) * max(ratio, 1.0))


def _body(content: Iterable[Block]) -> tuple[int, int]:
    chars = images = 0
    for block in content:
        match block:
            case Text() | Reasoning():
                chars += len(block.text)
            case ToolResult():
                more, pictures = _body(block.content)
                chars, images = chars + more, images + pictures
            case ToolCall():
                chars += len(block.arguments)
            case Image():
                chars, images = chars + base64_size(block), images + 1
            case _:
                chars += 1_000
    return chars, images

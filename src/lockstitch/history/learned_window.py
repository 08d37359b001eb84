"""What a refusal as too long says about the window: the limit it names, or that the request did not fit."""

import re
from typing import Final

from ..schema.failures import Failure

LEARNED_SHARE: Final = 0.85
"""Of a request that was refused: the largest that is sent again where no limit was named."""
NAMED_MIN: Final = 512
NAMED_MAX: Final = 100_000_000

_NAMED: Final = (
    re.compile(r"maximum (?:context|input|prompt) length (?:is|of|was)[: ]+([\d,_]+)", re.I),
    re.compile(r"tokens? > ([\d,_]+) maximum", re.I),
    re.compile(
        r"maximum (?:allowed )?(?:input length|number of tokens)(?: allowed)?(?: of)? \(?([\d,_]+)", re.I
    ),
    re.compile(r"context (?:window|length|size|limit)(?: is| of|:)? \(?([\d,_]{4,})(?![\d,_]| *\+)", re.I),
    re.compile(r"context limit: [\d,_]+ \+ [\d,_]+ > ([\d,_]+)", re.I),
    re.compile(r"token count of [\d,_]+ exceeds the limit of ([\d,_]+)", re.I),
    re.compile(r"\bn_ctx[\"']?\s*[=:]\s*([\d,_]+)", re.I),
)
"""How providers name their limit. Only a hint: with a wording nobody knows more is compacted than need be."""


def learned_window(failure: Failure, estimate: int) -> int | None:
    """Tokens that a model seems to take, after it refused a request of ``estimate`` tokens; None: no idea."""
    named = named_window(f"{failure.provider_message or ''}\n{failure.message}")
    refused = int(estimate * LEARNED_SHARE) if estimate > 0 else None
    if named is None or refused is None:
        return named or refused
    # A limit above what was refused is in tokens of another measure than ours: ours decides what is sent.
    return min(named, refused)


def named_window(message: str) -> int | None:
    """The limit that a refusal names, in the provider's tokens; None if it names none we know."""
    for pattern in _NAMED:
        found = pattern.search(message)
        digits = re.sub(r"\D", "", found[1]) if found else ""
        if digits and NAMED_MIN <= int(digits[:12]) <= NAMED_MAX:
            return int(digits[:12])
    return None

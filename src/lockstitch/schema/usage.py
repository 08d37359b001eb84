"""Token counts of one response or of several, in disjoint buckets."""

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens billed. Buckets are disjoint: the prompt is input + cache_read + cache_write."""

    input_tokens: int = 0
    """Prompt tokens neither read from nor written to a cache."""
    output_tokens: int = 0
    """Everything generated; reasoning_tokens is a part of it."""
    cache_read_tokens: int | None = None
    """None: the provider did not say."""
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool = False
    """True if any count is ours, because the stream was cut before the provider reported."""

    @property
    def context_tokens(self) -> int:
        """What the exchange occupies in the model's window: prompt and answer."""
        return (
            self.input_tokens
            + (self.cache_read_tokens or 0)
            + (self.cache_write_tokens or 0)
            + self.output_tokens
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=_add(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens=_add(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens=_add(self.reasoning_tokens, other.reasoning_tokens),
            estimated=self.estimated or other.estimated,
        )


def _add(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right

"""Token counts of openai-chat and its dialects, made disjoint."""

from collections.abc import Mapping
from typing import Any

from ..schema.usage import Usage


def usage_of(wire: Mapping[str, Any]) -> Usage | None:
    """The usage object of a chunk; None if it holds no count.

    ``prompt_tokens`` includes cache hits, ``Usage.input_tokens`` does not. Hits are
    ``prompt_tokens_details.cached_tokens`` (OpenAI), ``prompt_cache_hit_tokens`` (DeepSeek) or
    ``cached_tokens`` (Moonshot). Counts that are no non-negative whole number are taken as absent. Sources:
    openai-python 3.57.0 (openai/types/completion_usage.py), which has ``cache_write_tokens`` too, and
    https://www.openrouter.ai/docs/use-cases/usage-accounting (read 2026-11-30).
    """
    prompt = count(wire.get("prompt_tokens"))
    completion = count(wire.get("completion_tokens"))
    if prompt is None and completion is None:
        return None
    details = _mapping(wire.get("prompt_tokens_details"))
    read = _first(
        details.get("cached_tokens"), wire.get("prompt_cache_hit_tokens"), wire.get("cached_tokens")
    )
    written = count(details.get("cache_write_tokens"))
    reasoning = _first(
        _mapping(wire.get("completion_tokens_details")).get("reasoning_tokens"), wire.get("reasoning_tokens")
    )
    return Usage(
        input_tokens=max(0, (prompt or 0) - (read or 0) - (written or 0)),
        output_tokens=completion or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )


def count(value: Any) -> int | None:
    """A token count, or None: gateways send null, negative numbers, floats, numbers in strings."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else None


def _first(*values: Any) -> int | None:
    return next((found for value in values if (found := count(value)) is not None), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
